// SPDX-License-Identifier: Apache-2.0
// Parties of an array move bytes between their memories, over connections they prove to each other.
#include "support/array_party.hpp"

namespace weft::sim {
namespace {

using node::ArrayLinks;
using test::ArrayParty;
using test::box_end;
using test::secret_of;
using test::TestTransfer;
using Kind = ArrayLinks::Event::Kind;

class ArrayLinksTest : public testing::Test {
protected:
    static constexpr std::uint64_t plenty = 10'000'000;

    void run() { ASSERT_TRUE(world.run_until_quiet(plenty)); }
    void run_until(const std::function<bool()>& done) {
        for (std::uint64_t i = 0; i < plenty && !done() && world.step(); ++i) {
        }
        ASSERT_TRUE(done());
    }
    void introduce(ArrayParty& one, ArrayParty& other, std::uint8_t seed) {
        one.meets(other, secret_of(seed));
        other.meets(one, secret_of(seed));
    }
    static std::size_t count(const ArrayParty& party, Kind kind) {
        return static_cast<std::size_t>(
            std::ranges::count(party.events, kind, &ArrayLinks::Event::kind));
    }

    World world{7};
    ArrayLinks::Options options;
    ArrayParty oak{world, "oak", box_end(1), options};
    ArrayParty elm{world, "elm", box_end(2), options};
};

TEST_F(ArrayLinksTest, MovesBytesBothWays) {
    introduce(oak, elm, 9);
    std::ranges::fill(std::span(elm.memory).subspan(5000, 3000), std::byte{0x5a});
    TestTransfer fetch(elm.access(), 5000, 3000, 0);
    TestTransfer send(elm.access(), 100'000, 300'000, 0xc3);
    oak.links->fetch(fetch);
    oak.links->send(send);
    run();
    EXPECT_TRUE(fetch.succeeded());
    EXPECT_EQ(fetch.octets, std::vector<std::byte>(3000, std::byte{0x5a}));
    EXPECT_TRUE(send.succeeded());
    EXPECT_TRUE(std::ranges::equal(std::span(elm.memory).subspan(100'000, 300'000), send.octets));
    EXPECT_EQ(elm.memory[99'999], std::byte{0});
    EXPECT_EQ(elm.memory[400'000], std::byte{0});
    EXPECT_EQ(oak.links->links(), 1u);
    EXPECT_EQ(elm.links->links(), 1u);

    // The other way goes by a connection of its own.
    TestTransfer back(oak.access(), 0, 10, 7);
    elm.links->send(back);
    run();
    EXPECT_TRUE(back.succeeded());
    EXPECT_EQ(oak.memory[9], std::byte{7});
    EXPECT_EQ(oak.links->links(), 2u);
}

TEST_F(ArrayLinksTest, TellsOfASendOnlyWhenTheBytesAreThere) {
    introduce(oak, elm, 9);
    world.network().set_options({.shortest_delay = std::chrono::milliseconds(1),
                                 .longest_delay = std::chrono::milliseconds(4)});
    std::vector<std::unique_ptr<TestTransfer>> sends;
    int there = 0;
    for (std::uint8_t i = 0; i < 100; ++i) {
        const std::size_t size = 1 + i * 50u, at = i * 8192u;
        sends.push_back(std::make_unique<TestTransfer>(elm.access(), at, size, i + 1));
        sends.back()->then = [&, i, at, size] {
            there +=
                elm.memory[at] == std::byte(i + 1) && elm.memory[at + size - 1] == elm.memory[at];
        };
        oak.links->send(*sends.back());
    }
    run();
    EXPECT_EQ(there, 100);
}

TEST_F(ArrayLinksTest, FetchesIntoMemoryThatIsReadyAndIntoAnyOther) {
    introduce(oak, elm, 9);
    std::ranges::fill(elm.memory, std::byte{0x11});
    ASSERT_TRUE(oak.links->keep_ready(oak.memory));
    TestTransfer ready(elm.access(), 0, 0, 0), other(elm.access(), 0, 64, 0);
    ready.memory = Buffer(oak.memory).subspan(oak.memory.size() - 4096);
    oak.links->fetch(ready);
    oak.links->fetch(other);
    run();
    EXPECT_TRUE(ready.succeeded());
    EXPECT_TRUE(other.succeeded());
    EXPECT_EQ(oak.memory.back(), std::byte{0x11});
    EXPECT_EQ(oak.memory[oak.memory.size() - 4097], std::byte{0});
    EXPECT_EQ(other.octets.back(), std::byte{0x11});
}

TEST_F(ArrayLinksTest, KnowsNobodyUnasked) {
    TestTransfer transfer(elm.access(), 0, 8, 0);
    oak.links->fetch(transfer);
    EXPECT_EQ(transfer.failure, Code::access_denied) << "nobody told oak of elm";

    oak.meets(elm, secret_of(9));
    TestTransfer second(elm.access(), 0, 8, 0);
    oak.links->fetch(second);
    run();
    EXPECT_EQ(second.failure, Code::disconnected);
    EXPECT_EQ(elm.last_reason(), "nobody has spoken of it");
    EXPECT_EQ(elm.links->links(), 0u);

    TestTransfer third(elm.access(), 0, 8, 0);
    ASSERT_TRUE(oak.links->know(elm.end, secret_of(9), std::nullopt));
    oak.links->fetch(third);
    EXPECT_EQ(third.failure, Code::disconnected) << "nobody said where it is";
}

TEST_F(ArrayLinksTest, RefuseAWrongSecret) {
    oak.meets(elm, secret_of(9));
    elm.meets(oak, secret_of(8));
    TestTransfer transfer(elm.access(), 0, 8, 0);
    oak.links->fetch(transfer);
    run();
    EXPECT_EQ(transfer.failure, Code::disconnected);
    EXPECT_EQ(oak.last_reason(), "its proof is not one of who knows the secret");
    EXPECT_EQ(count(elm, Kind::linked), 0u);
    EXPECT_EQ(elm.links->unproved(), 0u);
}

TEST_F(ArrayLinksTest, RefuseAnotherClusterAnOldEpochAndWhoLooksForSomebodyElse) {
    introduce(oak, elm, 9);
    auto reason = [&] {
        TestTransfer transfer(elm.access(), 0, 8, 0);
        oak.links->fetch(transfer);
        run();
        return transfer.succeeded() ? "" : elm.last_reason();
    };
    oak.links->set_office({{4}}, test::the_epoch);
    EXPECT_EQ(reason(), "it is of another cluster");
    oak.links->set_office(test::the_cluster, wire::Epoch{4});
    EXPECT_EQ(reason(), "it obeys a controller that is no longer in office");
    oak.links->set_office(test::the_cluster, wire::Epoch{6});
    EXPECT_EQ(reason(), "") << "elm will hear of the new controller in its turn";
    elm.links->disappear(elm.end);
    run();
    EXPECT_EQ(reason(), "it looks for somebody else");
}

TEST_F(ArrayLinksTest, LetThoseInWhoKnowTheirPartOfASessionsSecret) {
    wire::ArrayConnectionEnd session{.role = wire::ArrayRole::host, .identity = {{0, 1}}};
    ArrayParty host(world, "host", session, options);
    host.links->appear_as(session, secret_of(3));
    ASSERT_TRUE(oak.links->know(session, node::secret_for(secret_of(3), oak.end), host.where()));
    // What it knows is another's, and under its own name of no use to it.
    ASSERT_TRUE(elm.links->know(session, node::secret_for(secret_of(3), oak.end), host.where()));
    TestTransfer good(host.access(), 0, 8, 1), bad(host.access(), 0, 8, 2);
    oak.links->send(good);
    elm.links->send(bad);
    run();
    EXPECT_TRUE(good.succeeded());
    EXPECT_EQ(bad.failure, Code::disconnected);
    EXPECT_EQ(host.memory[0], std::byte{1});

    host.links->disappear(session);
    run();
    EXPECT_EQ(count(oak, Kind::lost), 1u);
}

TEST_F(ArrayLinksTest, KeepOutWhoIsBarredUntilItIsLetInAgain) {
    wire::ArrayConnectionEnd session{.role = wire::ArrayRole::host, .identity = {{0, 1}}};
    ArrayParty host(world, "host", session, options);
    host.links->appear_as(session, secret_of(3));
    for (auto* box : {&oak, &elm})
        ASSERT_TRUE(
            box->links->know(session, node::secret_for(secret_of(3), box->end), host.where()));
    auto outcome = [&](ArrayParty& box, std::uint8_t fill) {
        TestTransfer transfer(host.access(), 0, 8, fill);
        box.links->send(transfer);
        run();
        return transfer.failure;
    };
    EXPECT_EQ(outcome(oak, 1), std::nullopt);
    EXPECT_EQ(outcome(elm, 2), std::nullopt);
    ASSERT_EQ(host.links->links(), 2u);

    TestTransfer late(host.access(), 0, 1 << 20, 3);
    elm.links->send(late);
    host.links->bar(session, elm.end);
    EXPECT_EQ(host.links->links(), 1u) << "at once";
    run();
    EXPECT_EQ(late.failure, Code::disconnected);
    EXPECT_EQ(outcome(elm, 4), Code::disconnected);
    EXPECT_EQ(host.last_reason(), "it was counted out");
    EXPECT_EQ(host.memory[0], std::byte{2});
    EXPECT_EQ(outcome(oak, 5), std::nullopt) << "the others are not concerned";

    host.links->let_in(session, elm.end);
    EXPECT_EQ(outcome(elm, 6), std::nullopt);
    host.links->bar(session, elm.end);
    host.links->appear_as(session, secret_of(3));
    EXPECT_EQ(outcome(elm, 7), std::nullopt) << "a new session has nothing against it";
}

/// Cases of the failure table, docs/failures.md.
using FailureTableLinks = ArrayLinksTest;

/// The same machine, address and tag; but another session, with a secret that boxes are yet to be
/// told.
TEST_F(FailureTableLinks, Case14_AHostRebootsAndUsesItsAddressAgain_WhoKnewItBeforeIsRefused) {
    const wire::ArrayConnectionEnd before{.role = wire::ArrayRole::host, .identity = {{0, 1}}};
    const wire::ArrayConnectionEnd after{.role = wire::ArrayRole::host, .identity = {{0, 2}}};
    ArrayParty host(world, "host", before, options);
    host.links->appear_as(before, secret_of(3));
    ASSERT_TRUE(oak.links->know(before, node::secret_for(secret_of(3), oak.end), host.where()));
    TestTransfer good(host.access(), 0, 8, 1);
    oak.links->send(good);
    run();
    ASSERT_TRUE(good.succeeded());
    host.links->disappear(before);
    host.links->appear_as(after, secret_of(4));
    run();
    TestTransfer written(host.access(), 0, 8, 2), fetched(host.access(), 0, 8, 0);
    oak.links->send(written);
    oak.links->fetch(fetched);
    run();
    EXPECT_EQ(written.failure, Code::disconnected);
    EXPECT_EQ(fetched.failure, Code::disconnected);
    EXPECT_EQ(host.last_reason(), "it looks for somebody else");
    EXPECT_EQ(host.memory[0], std::byte{1}) << "its memory has changed";
}

/// It was fetching when it was counted out, or when another controller came.
TEST_F(FailureTableLinks, Case16_AFencedBoxFetchesLate_ItsConnectionsAreCut) {
    introduce(oak, elm, 9);
    auto begin = [&](TestTransfer& transfer) {
        oak.links->fetch(transfer);
        run_until([&] { return oak.links->links() == 1 && elm.links->links() == 1; });
        ASSERT_EQ(transfer.ends, 0) << "it is under way";
    };
    TestTransfer first(elm.access(), 0, 1 << 20, 0);
    begin(first);
    elm.links->forget(oak.end);
    run();
    EXPECT_EQ(first.failure, Code::disconnected);
    EXPECT_EQ(elm.links->links(), 0u);

    elm.meets(oak, secret_of(9));
    TestTransfer second(elm.access(), 0, 1 << 20, 0);
    begin(second);
    oak.links->set_office(test::the_cluster, wire::Epoch{6});
    EXPECT_EQ(second.failure, Code::disconnected) << "at once: its memory must be free";
    run();
    EXPECT_EQ(elm.links->links(), 0u);

    TestTransfer third(elm.access(), 0, 8, 0);
    begin(third);
    run();
    EXPECT_TRUE(third.succeeded());
}

TEST_F(ArrayLinksTest, EndNothingButWhatWasRefusedWhenATransferIsRefused) {
    introduce(oak, elm, 9);
    for (bool fetches : {true, false}) {
        std::vector<std::unique_ptr<TestTransfer>> transfers;
        for (std::uint8_t i = 0; i < 20; ++i) {
            auto access = elm.access();
            if (i == 7) access.tag = SteeringTag{static_cast<std::uint32_t>(access.tag) ^ 1};
            transfers.push_back(std::make_unique<TestTransfer>(access, i * 40'000u, 40'000, i));
            fetches ? oak.links->fetch(*transfers.back()) : oak.links->send(*transfers.back());
        }
        run();
        for (int i = 0; i < 20; ++i) {
            EXPECT_EQ(transfers[i]->ends, 1);
            if (i == 7)
                EXPECT_EQ(transfers[i]->failure, Code::access_denied);
            else
                EXPECT_FALSE(transfers[i]->failure) << i;
        }
    }
    EXPECT_EQ(elm.memory[40'000 * 19], std::byte{19});
}

TEST_F(ArrayLinksTest, HaveABoundForWhatWaits) {
    options.link.waiting_max = 3;
    options.link.under_way_max = 2;
    ArrayParty ash(world, "ash", box_end(3), options);
    introduce(ash, elm, 9);
    std::vector<std::unique_ptr<TestTransfer>> transfers;
    auto ask = [&] {
        transfers.push_back(std::make_unique<TestTransfer>(elm.access(), 0, 64, 1));
        ash.links->send(*transfers.back());
    };
    for (int i = 0; i < 4; ++i) ask();
    EXPECT_EQ(transfers[3]->failure, Code::exhausted);
    run();
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(transfers[i]->succeeded()) << i;
}

TEST_F(ArrayLinksTest, GiveUpAPeerThatIsSilent) {
    introduce(oak, elm, 9);
    TestTransfer first(elm.access(), 0, 8, 0), second(elm.access(), 0, 8, 0);
    oak.links->fetch(first);
    run();
    ASSERT_TRUE(first.succeeded());
    for (auto link : world.network().links()) world.network().partition(link, Side::acceptor);
    world.network().power_cut("elm");
    oak.links->fetch(second);
    run();
    EXPECT_EQ(second.failure, Code::disconnected);
    ASSERT_EQ(oak.events.size(), 3u);
    EXPECT_EQ(oak.events[1].why, "it moved nothing for too long");
    EXPECT_EQ(oak.events[2].kind, Kind::failed);
}

TEST_F(ArrayLinksTest, TakeMemoryBackFromAPeerThatTakesNothing) {
    options.link.patience = std::chrono::seconds(60);  // it must not be the one that ends it
    ArrayParty ash(world, "ash", box_end(3), options);
    introduce(ash, elm, 9);
    TestTransfer first(elm.access(), 0, 8, 0), second(elm.access(), 0, 1 << 20, 0);
    ash.links->fetch(first);
    run();
    ASSERT_TRUE(first.succeeded());
    const auto tag = elm.region->tag();
    EXPECT_FALSE(elm.links->take_back(tag)) << "nothing is on its way";
    elm.links->take_back_later(tag);
    world.run_for(std::chrono::seconds(11));
    EXPECT_EQ(elm.links->links(), 1u) << "nor was it when the time had come";
    ash.links->fetch(second);
    for (auto link : world.network().links()) world.network().partition(link, Side::acceptor);
    bool freed = false;
    run_until([&] { return elm.links->links() == 0 || elm.region->is_still_lent() || freed; });
    ASSERT_TRUE(elm.region->deregister([&] { freed = true; }));
    world.run_for(std::chrono::seconds(1));
    ASSERT_FALSE(freed);
    elm.links->take_back_later(tag);
    world.run_for(std::chrono::seconds(8));
    EXPECT_FALSE(freed);
    world.run_for(std::chrono::seconds(3));
    EXPECT_TRUE(freed);
    EXPECT_EQ(elm.links->links(), 0u);
    run();
    EXPECT_EQ(second.failure, Code::access_denied) << "tried again, and the memory is gone";
}

TEST_F(ArrayLinksTest, EndWhatIsUnderWayWhenTheyGo) {
    introduce(oak, elm, 9);
    TestTransfer fetch(elm.access(), 0, 1 << 20, 0), waiting(elm.access(), 0, 8, 0);
    oak.links->fetch(fetch);
    run_until([&] { return oak.links->links() == 1; });
    auto* links = oak.links.get();
    fetch.then = [&] { links->send(waiting); };  // whoever is told may ask again
    oak.region.reset();
    oak.links.reset();
    EXPECT_EQ(fetch.failure, Code::disconnected);
    EXPECT_EQ(waiting.ends, 1);
    run();
}

TEST_F(ArrayLinksTest, MayGoWhenOneOfTheirTransfersEnds) {
    introduce(oak, elm, 9);
    TestTransfer first(elm.access(), 0, 8, 0), second(elm.access(), 0, 8, 0);
    first.then = [&] {
        oak.region.reset();
        oak.links.reset();
    };
    oak.links->fetch(first);
    oak.links->fetch(second);
    run();
    EXPECT_EQ(first.ends, 1);
    EXPECT_EQ(second.ends, 1);
}

}  // namespace
}  // namespace weft::sim
