// SPDX-License-Identifier: Apache-2.0
// The controller's own windows: who may write into which, and until when.
#include "raid/own_work.hpp"

#include <gtest/gtest.h>

#include <map>

#include "support/raid_memory.hpp"

namespace weft::raid {
namespace {

constexpr std::uint32_t slice = 4096;

/// Windows that peers reach by tag; a Write to a tag that is closed would end a connection.
class ReachableWindows final : public StagingMemory {
public:
    std::uint32_t windows() const override { return 3; }
    std::uint32_t window_limit() const override { return 4 * slice; }
    Result<Buffer> open(std::uint32_t window, SteeringTag tag, std::uint32_t length) override {
        if (still_lent == window) return Error{Code::exhausted};
        EXPECT_FALSE(reached.contains(tag));
        open_[window] = tag;
        return reached[tag] = memory_.all().subspan(window * window_limit(), length);
    }
    void close(std::uint32_t window) override { reached.erase(open_[window]); }
    Buffer landing(std::uint32_t) override { return landing_.all(); }

    std::map<SteeringTag, Buffer> reached;
    std::optional<std::uint32_t> still_lent;

private:
    std::array<SteeringTag, 3> open_{};
    test::AlignedBytes memory_{std::size_t{12} * slice}, landing_{landing_size};
};

class HeldHost final : public PeerTransfers {
public:
    void fetch(PeerTransfer& transfer) override { held = &transfer; }
    void send(PeerTransfer& transfer) override { held = &transfer; }
    PeerTransfer* held = nullptr;
};

struct OwnWindows : testing::Test, OwnWork::Listener {
    SteeringTag own_window_tag(std::uint32_t window, wire::TransactionNumber transaction) override {
        return tag_in(SteeringTag{(window + 1) << 8}, transaction);
    }
    void own_order_ended(CommandTicket, const OrderResult& result) override { ended = result; }

    OwnWindow opened(std::uint64_t transaction) {
        const auto window = own.open(wire::TransactionNumber{transaction}, slice, {});
        EXPECT_TRUE(window.has_value());
        return window ? *window : OwnWindow{};
    }
    /// What a box that is late still does.
    bool write_late(SteeringTag tag) {
        const auto found = windows.reached.find(tag);
        if (found == windows.reached.end()) return false;
        std::ranges::fill(found->second, std::byte{0xdd});
        return true;
    }

    ReachableWindows windows;
    HeldHost host;
    OwnWork own{*this, {.windows = &windows, .transfers = &host}};
    std::optional<OrderResult> ended;
};

TEST_F(OwnWindows, AreGivenOutWhateverWindowBoxesUse) {
    const OwnWindow one = opened(1), two = opened(2), three = opened(3);
    EXPECT_NE(one, two);
    EXPECT_NE(two, three);
    EXPECT_EQ(own.open(wire::TransactionNumber{4}, slice, {}).error().code, Code::exhausted);
    own.close(two);
    EXPECT_EQ(opened(5), two);
}

TEST_F(OwnWindows, StayReachableToALateBoxUntilItHasConfirmed) {
    const OwnWindow late = opened(1);
    const SteeringTag tag = own.tag(late);
    own.abandon(late);
    EXPECT_EQ(own.abandoned(), 1u);
    const OwnWindow again = opened(2);
    EXPECT_NE(again, late);
    const Buffer memory = windows.reached.at(own.tag(again));
    std::ranges::fill(memory, std::byte{0x11});
    EXPECT_TRUE(write_late(tag));
    EXPECT_TRUE(std::ranges::all_of(memory, [](auto octet) { return octet == std::byte{0x11}; }));
    own.close(late);
    EXPECT_EQ(own.abandoned(), 0u);
    EXPECT_FALSE(write_late(tag));
    EXPECT_EQ(opened(3), late);
}

TEST_F(OwnWindows, AreUsedUpByLateBoxesAndNoFurther) {
    for (std::uint64_t transaction = 1; transaction <= 3; ++transaction)
        own.abandon(opened(transaction));
    EXPECT_EQ(own.open(wire::TransactionNumber{9}, slice, {}).error().code, Code::exhausted);
    own.close(OwnWindow{1});
    EXPECT_EQ(opened(10), OwnWindow{1});
}

TEST_F(OwnWindows, ArePassedOverWhileTheirBytesAreOnTheirWay) {
    windows.still_lent = 0;
    EXPECT_EQ(opened(1), OwnWindow{1});
    windows.still_lent.reset();
    EXPECT_EQ(opened(2), OwnWindow{0});
}

TEST_F(OwnWindows, AreNeverLongerThanTheirMemory) {
    EXPECT_EQ(own.open(wire::TransactionNumber{1}, 5 * slice, {}).error().code, Code::unsupported);
    EXPECT_EQ(own.windows(), 3u);
    OwnWork none(*this, {});
    EXPECT_EQ(none.open(wire::TransactionNumber{1}, slice, {}).error().code, Code::unsupported);
}

TEST_F(OwnWindows, TakeNoOrderOfARequestThatWasAbandonedAmidOne) {
    const OwnWindow window = opened(1);
    ReceivedOrder order;
    order.order.pieces = {{.verb = Verb::send_slot, .peer = the_host, .length = slice}};
    order.parties.push_back({.party = the_host, .tag = {}, .base = 0, .identity = {}});
    own.start(window, CommandTicket{7}, std::move(order));
    ASSERT_NE(host.held, nullptr);
    EXPECT_DEATH(own.abandon(window), "");
    host.held->completed({});
    ASSERT_TRUE(ended.has_value());
    own.abandon(window);
    own.close(window);
}

}  // namespace
}  // namespace weft::raid
