// SPDX-License-Identifier: Apache-2.0
#include "support/scsi_bench.hpp"

namespace weft::scsi {
namespace {

using namespace wire;
using test::filled;
using test::OctetVector;

struct Mode : test::ScsiBench {
    template <class Page>
    Page page(ModePageCode code, ModePageControl control = ModePageControl::current) {
        auto sensed = run(ModeSense6{.no_block_descriptors = true,
                                     .page_control = control,
                                     .page = code,
                                     .allocation_length = 255});
        EXPECT_TRUE(sensed->good());
        return *decode<Page>(ConstBuffer(sensed->data).subspan(4));
    }
    template <class Page>
    unsigned select(const Page& wanted) {
        OctetVector list(4);
        auto octets = encoded(wanted);
        list.insert(list.end(), octets.begin(), octets.end());
        const auto length = static_cast<std::uint8_t>(list.size());
        return run(ModeSelect6{.page_format = true, .parameter_length = length}, list)->code();
    }
};

TEST_F(Mode, IsSensedWholeOrByPage) {
    set_up();
    auto all = run(ModeSense6{.page = ModePageCode::all_pages, .allocation_length = 255});
    ASSERT_TRUE(all->good());
    const auto header = *decode<ModeHeader6>(all->data);
    EXPECT_EQ(header.data_length + 1u, all->data.size());
    EXPECT_TRUE(header.device.cache_control);
    EXPECT_FALSE(header.device.write_protected);
    EXPECT_EQ(header.block_descriptors_length, 8);
    ModePages pages(ConstBuffer(all->data).subspan(12));
    std::vector<ModePageCode> codes;
    for (auto next = pages.next(); next && *next; next = pages.next()) {
        codes.push_back((*next)->code);
        if ((*next)->code == ModePageCode::control) {
            EXPECT_EQ(*decode<ControlPage>((*next)->whole),
                      page<ControlPage>(ModePageCode::control));
        }
    }
    EXPECT_EQ(codes, (std::vector{ModePageCode::caching, ModePageCode::control,
                                  ModePageCode::informational_exceptions}));
    auto cut = run(ModeSense6{.page = ModePageCode::all_pages, .allocation_length = 4});
    EXPECT_EQ(cut->data.size(), 4u);
    EXPECT_EQ(cut->heard.length_in, 4u);
    auto long_form = run(ModeSense10{
        .long_addresses_accepted = true, .page = ModePageCode::caching, .allocation_length = 255});
    const auto long_header = *decode<ModeHeader10>(long_form->data);
    EXPECT_EQ(long_header.data_length + 2u, long_form->data.size());
    EXPECT_TRUE(long_header.long_block_descriptors);
    EXPECT_EQ(decode<LongBlockDescriptor>(ConstBuffer(long_form->data).subspan(8))->block_count,
              test::bench_blocks);
}

TEST_F(Mode, RefusesPagesAndValuesItDoesNotHave) {
    set_up();
    EXPECT_EQ(run(ModeSense6{.page = ModePageCode{0x19}, .allocation_length = 255})->code(),
              0x52400u);
    EXPECT_EQ(run(ModeSense6{.page_control = ModePageControl::saved,
                             .page = ModePageCode::control,
                             .allocation_length = 255})
                  ->code(),
              0x53900u);
    EXPECT_EQ(run(ModeSense6{.page = ModePageCode::control, .subpage = 7, .allocation_length = 64})
                  ->code(),
              0x52400u);
}

TEST_F(Mode, ProtectsFromWritingBySoftware) {
    set_up();
    auto control = page<ControlPage>(ModePageCode::control);
    EXPECT_TRUE(page<ControlPage>(ModePageCode::control, ModePageControl::changeable)
                    .software_write_protect);
    control.software_write_protect = true;
    EXPECT_EQ(select(control), 0u);
    EXPECT_TRUE(page<ControlPage>(ModePageCode::control).software_write_protect);
    EXPECT_FALSE(
        page<ControlPage>(ModePageCode::control, ModePageControl::defaults).software_write_protect);
    EXPECT_EQ(run(*second, TestUnitReady{})->code(), 0x62a01u);
    EXPECT_TRUE(run(TestUnitReady{})->good()) << "who did it needs not be told";
    EXPECT_EQ(run(Write10{.block_address = 0, .block_count = 1}, filled(512, 1))->code(), 0x72700u);
    EXPECT_TRUE(run(Read10{.block_address = 0, .block_count = 1})->good());
    auto all = run(ModeSense6{.page = ModePageCode::all_pages, .allocation_length = 255});
    EXPECT_TRUE(decode<ModeHeader6>(all->data)->device.write_protected);
    control.software_write_protect = false;
    EXPECT_EQ(select(control), 0u);
    EXPECT_TRUE(run(Write10{.block_address = 0, .block_count = 1}, filled(512, 1))->good());
}

TEST_F(Mode, ChangesOnlyWhatCanBeChanged) {
    set_up();
    auto control = page<ControlPage>(ModePageCode::control);
    control.queue_algorithm = 0;
    EXPECT_EQ(select(control), 0x52600u);
    auto caching = page<CachingPage>(ModePageCode::caching);
    EXPECT_TRUE(caching.write_cache);
    caching.write_cache = false;
    EXPECT_EQ(select(caching), 0u);
    EXPECT_FALSE(page<CachingPage>(ModePageCode::caching).write_cache);
    caching.read_cache_disabled = true;
    EXPECT_EQ(select(caching), 0x52600u);
    EXPECT_EQ(run(ModeSelect6{.page_format = true, .save_pages = true, .parameter_length = 4},
                  filled(4, 0))
                  ->code(),
              0x52400u);
    EXPECT_EQ(run(ModeSelect6{.page_format = true, .parameter_length = 3}, filled(3, 0))->code(),
              0x51a00u);
    EXPECT_EQ(run(ModeSelect10{.page_format = true, .parameter_length = 16}, filled(8, 0))->code(),
              0x51a00u)
        << "less came than was announced";
    EXPECT_TRUE(run(ModeSelect10{.page_format = true})->good());
}

}  // namespace
}  // namespace weft::scsi
