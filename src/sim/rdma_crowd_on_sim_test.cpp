// SPDX-License-Identifier: Apache-2.0
// Many connections that want to hold what all must share, and one that just wants to work.
#include <chrono>

#include "support/rdma_fixture.hpp"
#include "support/stranger.hpp"

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
        return std::ranges::count(guests, true,
                                  [](auto& each) { return each->stranger.is_closed; });
    }

    std::vector<std::unique_ptr<Guest>> guests;
    RdmaSide a{*here}, b{*there};
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
    std::vector<std::byte> from(60'000, std::byte{7}), to(60'000);
    auto source = std::move(*a.domain->register_memory(from, test::every_right));
    auto target = std::move(*b.domain->register_memory(to, test::every_right));
    std::array local{source->local(0, 60'000)};
    auto write = [&](std::uint64_t id) {
        return a.queue_pair->post(verbs::SendRequest{
            .id = id, .operation = Operation::write, .local = local, .remote = target->remote()});
    };
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
    EXPECT_TRUE(to == from);

    add_guests(200);
    begin_fpdus(900);
    std::ranges::fill(from, std::byte{8});
    ASSERT_TRUE(write(2));
    world.run_for(100ms);
    EXPECT_FALSE(to == from);
    world.run_for(3s);
    EXPECT_TRUE(to == from);
    EXPECT_GT(gone(), 100);
    EXPECT_LT(gone(), 300) << "no more than were in the way";
    EXPECT_EQ(a.ends(), "1:success 2:success");
}

}  // namespace
}  // namespace weft::sim
