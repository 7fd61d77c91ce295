// SPDX-License-Identifier: Apache-2.0
// Many connections that want to hold what all must share, and one that just wants to work.
#include <chrono>

#include "support/fpdu_writer.hpp"
#include "support/rdma_fixture.hpp"
#include "support/stranger.hpp"
#include "wire/rdmap.hpp"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;
using test::RdmaSide;
using test::Stranger;
using verbs::Operation;

class RdmaCrowd : public test::RdmaTest {
protected:
    struct Guest {
        Stranger stranger{Stranger::request({.peer_to_peer = false})};
        std::unique_ptr<RdmaSide> host;
    };

    void add_guests(std::size_t count) {
        if (!listener) listen();
        for (std::size_t i = 0; i < count; ++i) {
            auto& guest = *guests.emplace_back(std::make_unique<Guest>());
            guest.stranger.stream = std::move(*world.host("ash").connect(elm, guest.stranger));
            guest.host = std::make_unique<RdmaSide>(*there);
            run_until([&] { return !requests.empty(); });
            ASSERT_TRUE(guest.host->accept(*requests.back()));
            requests.clear();
        }
        world.run_for(100ms);
    }
    std::ptrdiff_t gone() const {
        return std::ranges::count(guests, verbs::QueuePairState::failed,
                                  [](auto& each) { return each->host->state(); });
    }
    /// One write of a good connection, whose bytes are then in `to`.
    Result<void> write(std::uint64_t id) {
        std::ranges::fill(from, static_cast<std::byte>(id));
        std::array local{source->local(0, size)};
        return a.queue_pair->post(verbs::SendRequest{
            .id = id, .operation = Operation::write, .local = local, .remote = target->remote()});
    }
    bool is_written() const { return to == from; }

    static constexpr std::uint32_t size = 60'000;
    std::vector<std::unique_ptr<Guest>> guests;
    RdmaSide a{*here}, b{*there};
    std::vector<std::byte> from = std::vector<std::byte>(size), to = from;
    std::unique_ptr<verbs::MemoryRegion> source =
        std::move(*a.domain->register_memory(from, test::every_right));
    std::unique_ptr<verbs::MemoryRegion> target =
        std::move(*b.domain->register_memory(to, test::every_right));
};

/// The length of the longest FPDU there is, the header of a Write, and one octet of its payload.
std::vector<std::byte> beginning_of_an_fpdu() {
    std::vector<std::byte> octets(17);
    octets[0] = octets[1] = std::byte{0xff};
    octets[2] = std::byte{0xc1};
    octets[3] = std::byte{0x40};
    return octets;
}

TEST_F(RdmaCrowd, HoldsNobodyUpByFpdusThatItBegins) {
    join(a, b);
    auto begin_fpdus = [&](std::size_t first) {
        for (auto i = first; i < guests.size(); ++i)
            guests[i]->stranger.say(beginning_of_an_fpdu());
        world.run_for(100ms);
    };
    add_guests(900);
    begin_fpdus(0);
    world.run_for(5s);
    EXPECT_EQ(gone(), 0) << "as long as there is enough for all";
    ASSERT_TRUE(write(1));
    world.run_for(100ms);
    EXPECT_TRUE(is_written());

    add_guests(200);
    begin_fpdus(900);
    ASSERT_TRUE(write(2));
    world.run_for(100ms);
    EXPECT_FALSE(is_written());
    world.run_for(3s);
    EXPECT_TRUE(is_written());
    EXPECT_GT(gone(), 100);
    EXPECT_LT(gone(), 300) << "no more than were in the way";
    EXPECT_EQ(a.ends(), "1:success 2:success");
}

TEST_F(RdmaCrowd, HoldsNobodyUpByAnswersThatItDoesNotTake) {
    join(a, b);
    std::vector<std::byte> much(1 << 20);
    std::vector<std::unique_ptr<verbs::MemoryRegion>> regions;
    add_guests(1000);
    for (auto& guest : guests) {
        guest->stranger.listens = false;
        regions.push_back(
            std::move(*guest->host->domain->register_memory(much, Rights::remote_read)));
        auto& region = *regions.back();
        test::FpduWriter words(true, false);
        words.add(wire::UntaggedSegment{.last = true,
                                        .opcode = wire::RdmapOpcode::read_request,
                                        .queue = wire::QueueNumber::read_request},
                  test::octets_of(
                      wire::ReadRequest{.size = 1 << 20,
                                        .source_tag = region.tag(),
                                        .source_offset = wire::TaggedOffset{region.address()}}));
        guest->stranger.say(words.octets());
    }
    world.run_for(100ms);
    ASSERT_TRUE(write(1));
    world.run_for(100ms);
    EXPECT_FALSE(is_written());
    world.run_for(3s);
    EXPECT_TRUE(is_written());
    EXPECT_GT(gone(), 0);
    EXPECT_LT(gone(), 500) << "no more than were in the way";
}

}  // namespace
}  // namespace weft::sim
