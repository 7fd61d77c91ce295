// SPDX-License-Identifier: Apache-2.0
#include "node/controller_box.hpp"

#include <gtest/gtest.h>

#include "raid/superblock.hpp"

namespace weft::node {
namespace {

/// What a box with one part says of itself.
struct Said {
    Said() {
        box.box = {{4}};
        box.windows = 2;
        box.parts = 1;
        box.left_out = 2;
        volume.volume = {{7}};
        volume.generation = wire::Generation{1};
        volume.level = 5;
        volume.boxes = 3;
        volume.chunk_bytes = 4096;
        volume.stripes = 10;
        for (std::uint8_t place = 0; place < 3; ++place)
            volume.members[place] = {.box = {{static_cast<std::uint8_t>(place + 4)}},
                                     .state = wire::ArrayMemberState::current,
                                     .rebuilt_stripes = 0};
        superblock = raid::part_superblock({{1}}, wire::Epoch{2}, volume, 0, 40960);
    }
    std::vector<std::byte> octets() const {
        std::vector<std::byte> all;
        auto append = [&](const auto& part) {
            const auto some = encoded(part);
            all.insert(all.end(), some.begin(), some.end());
        };
        append(box);
        append(superblock);
        for (auto tag : {SteeringTag{0x1200}, SteeringTag{0x1300}}) {
            all.resize(all.size() + 4);
            store_big_endian<4>(static_cast<std::uint32_t>(tag), &all[all.size() - 4]);
        }
        append(damaged);
        append(unread);
        return all;
    }

    wire::ArrayBoxDescription box;
    wire::ArrayVolume volume;
    wire::ArraySuperblock superblock;
    wire::ArrayLeftOutPart damaged{.volume = {{8}}, .size = 4096, .damaged = true};
    wire::ArrayLeftOutPart unread{.volume = {{9}}, .size = 4096, .damaged = false};
};

TEST(BoxDescription, IsWhatTheBoxSaid) {
    Said said;
    auto read = parse_box_description(said.octets());
    ASSERT_TRUE(read);
    EXPECT_EQ(read->box, said.box);
    const auto& part = read->parts.at({{7}});
    EXPECT_EQ(part.superblock, said.superblock);
    EXPECT_EQ(part.window_tags, (std::vector{SteeringTag{0x1200}, SteeringTag{0x1300}}));
    EXPECT_EQ(read->left_out.at({{8}}), said.damaged);
    EXPECT_FALSE(read->keeps_unread({{7}}));
    EXPECT_FALSE(read->keeps_unread({{8}})) << "a new one may take its place";
    EXPECT_TRUE(read->keeps_unread({{9}}));
}

TEST(BoxDescription, IsRefusedIfItCannotBeTrue) {
    Said elsewhere;
    elsewhere.superblock.place = 200;
    EXPECT_FALSE(parse_box_description(elsewhere.octets()));
    Said anothers;
    anothers.superblock.box = {{5}};
    anothers.superblock.place = 1;
    EXPECT_FALSE(parse_box_description(anothers.octets())) << "another box's part";
    Said impossible;
    impossible.superblock.volume.chunk_bytes = 5;
    EXPECT_FALSE(parse_box_description(impossible.octets()));
    const auto whole = Said().octets();
    for (std::size_t size = 0; size < whole.size(); ++size)
        EXPECT_FALSE(parse_box_description(ConstBuffer(whole).first(size))) << size;
}

}  // namespace
}  // namespace weft::node
