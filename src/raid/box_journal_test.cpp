// SPDX-License-Identifier: Apache-2.0
// A box with a journal, as its controller sees it.
#include <gtest/gtest.h>

#include "raid/box.hpp"
#include "raid/stale_blocks.hpp"
#include "support/raid_cluster.hpp"

namespace weft::raid {
namespace {

using test::RaidCluster;
using test::TestBox;
using wire::ArrayAction;
using wire::ArrayOutcome;
using wire::ArrayTransactionState;
using wire::TransactionNumber;

/// Three boxes of which the first is looked at; orders are made by hand.
struct JournaledBox : RaidCluster {
    JournaledBox()
        : RaidCluster(*Layout::make(Level::raid5, 3, 8192), 6, 1, wire::ArrayConsistency::journal) {
        for (auto& octet : host) octet = static_cast<std::byte>(agenda.random());
        tags[host_tag] = host;
    }

    Box& box() { return boxes[0]->box; }
    wire::ArrayAnswer send(const Order& order, OrderEnvelope envelope) {
        envelope.address = address_of(0);
        envelope.window_tag = window_tag(0, static_cast<std::uint64_t>(envelope.transaction));
        envelope.window_length = 16384;
        envelope.settled = settled;
        const auto ticket = tell(0, encode_order(order, envelope, accesses()));
        agenda.run();
        EXPECT_EQ(boxes[0]->answers.count(ticket), 1u) << "not answered";
        return boxes[0]->answers[ticket];
    }
    static std::vector<PartyAccess> accesses() { return {{the_host, host_tag, 0, {}}}; }

    /// Fetches from the host and prepares for `home`.
    wire::ArrayAnswer prepare(std::uint64_t transaction, std::uint64_t home,
                              std::uint64_t how = as_new, std::uint32_t window = 0) {
        return send({.phase = Phase::stage,
                     .prepares = true,
                     .pieces = {{.verb = Verb::fetch, .peer = the_host, .length = 8192},
                                {.verb = Verb::prepare, .length = 8192, .home = home, .at = how}}},
                    {.transaction = TransactionNumber{transaction},
                     .host = wire::HostSession{3},
                     .host_command = transaction * 10,
                     .participants = 0b11,
                     .window = window,
                     .host_identity = {{9}},
                     .to_prepare = 8192});
    }
    ArrayOutcome commit(std::uint64_t transaction, std::uint32_t window = 0) {
        return send({.phase = Phase::commit, .closes = true, .pieces = {}},
                    {.transaction = TransactionNumber{transaction}, .window = window})
            .outcome;
    }
    ArrayOutcome say(ArrayAction action, std::uint64_t transaction) {
        const auto ticket = tell(0, action, transaction, weft::encoded(address_of(0)));
        agenda.run();
        return outcome(0, ticket);
    }
    Recalled recall() {
        const auto ticket = tell(0, ArrayAction::recall, 0, weft::encoded(address_of(0)));
        agenda.run();
        EXPECT_EQ(outcome(0, ticket), ArrayOutcome::done);
        const auto recalled = parse_recall(boxes[0]->data[ticket]);
        EXPECT_TRUE(recalled);
        return recalled ? *recalled : Recalled{};
    }
    std::vector<std::pair<std::uint64_t, ArrayTransactionState>> states() {
        std::vector<std::pair<std::uint64_t, ArrayTransactionState>> list;
        for (const auto& each : recall().transactions)
            list.emplace_back(static_cast<std::uint64_t>(each.transaction), each.state);
        return list;
    }
    /// What a reader gets; the outcome if it gets nothing.
    std::pair<ArrayOutcome, std::vector<std::byte>> read(std::uint64_t home) {
        std::vector<std::byte> got(8192);
        const auto before = tags[host_tag];
        tags[host_tag] = got;
        const auto answer = send(
            {.phase = Phase::read,
             .closes = true,
             .pieces = {{.verb = Verb::send_home, .peer = the_host, .length = 8192, .home = home}}},
            {.transaction = TransactionNumber{++reads}, .window = 3});
        say(ArrayAction::release, reads);
        tags[host_tag] = before;
        return {answer.outcome, got};
    }
    bool reads_as(std::uint64_t home, const std::vector<std::byte>& expected) {
        const auto [outcome, got] = read(home);
        return outcome == ArrayOutcome::done && got == expected;
    }
    void cut_power() {
        agenda.run();
        auto superblock = box().superblock();
        auto disk = boxes[0]->disk.lasting;
        const auto kept = newest_superblock(disk.all().first(4096), disk.all().subspan(4096, 4096));
        if (kept) superblock = *kept;
        boxes[0]->windows.vanish();
        boxes[0] = std::make_unique<TestBox>(agenda, tags, superblock);
        boxes[0]->disk.octets = boxes[0]->disk.lasting = disk;
        boxes[0]->recover();
    }
    ArrayOutcome new_epoch() {
        auto address = address_of(0);
        address.epoch = wire::Epoch{static_cast<std::uint64_t>(address.epoch) + 1};
        const auto ticket = tell(0, ArrayAction::new_epoch, 0, weft::encoded(address));
        agenda.run();
        return outcome(0, ticket);
    }

    std::vector<std::byte> host = std::vector<std::byte>(8192);
    const std::vector<std::byte> zeroes = std::vector<std::byte>(8192);
    TransactionNumber settled{};
    std::uint64_t reads = 1'000'000;
};

TEST(BoxJournal, PreparesWithoutChangingHomeAndCommits) {
    JournaledBox one;
    const auto answer = one.prepare(1, 16384);
    EXPECT_EQ(answer.outcome, ArrayOutcome::done);
    EXPECT_EQ(answer.row_digest, digest_of(one.host, Blend::copy, 0, 16384).row);
    EXPECT_TRUE(one.reads_as(16384, one.zeroes));
    EXPECT_EQ(one.commit(1), ArrayOutcome::done);
    EXPECT_TRUE(one.reads_as(16384, one.host));
    EXPECT_EQ(one.commit(1), ArrayOutcome::done) << "asked again";
    EXPECT_EQ(one.box().open_windows(), 0u);
    EXPECT_TRUE(one.box().idle());
}

TEST(BoxJournal, DigestsTheChangeAgainstHome) {
    JournaledBox one;
    ASSERT_EQ(one.prepare(1, 0).outcome, ArrayOutcome::done);
    ASSERT_EQ(one.commit(1), ArrayOutcome::done);
    const auto old = one.host;
    for (auto& octet : one.host) octet ^= std::byte{0x5a};
    std::vector<std::byte> change(8192, std::byte{0x5a});
    EXPECT_EQ(one.prepare(2, 0, as_change).row_digest, digest_of(change, Blend::copy, 0, 0).row);
    EXPECT_EQ(one.say(ArrayAction::abort, 2), ArrayOutcome::done);
    EXPECT_EQ(one.prepare(3, 0, uncounted).row_digest, 0u);
    EXPECT_EQ(one.say(ArrayAction::abort, 3), ArrayOutcome::done);
    EXPECT_TRUE(one.reads_as(0, old));
}

/// What it never heard of is noted all the same, or it could begin later: unless it is settled.
TEST(BoxJournal, NeedsNoRoomToUndoWhatItIsToldToBeSettled) {
    JournaledBox one;
    std::uint64_t next = 1;
    while (next < 10'000 && one.say(ArrayAction::abort, next) == ArrayOutcome::done) ++next;
    ASSERT_EQ(one.say(ArrayAction::abort, next), ArrayOutcome::no_room);
    const auto address = weft::encoded(one.address_of(0));
    const auto settled = weft::encoded(wire::ArraySettled{TransactionNumber{next + 10}});
    std::vector<std::byte> both(address.begin(), address.end());
    both.insert(both.end(), settled.begin(), settled.end());
    auto say = [&](ArrayAction action, std::uint64_t transaction) {
        const auto ticket = one.tell(0, action, transaction, both);
        one.agenda.run();
        return one.outcome(0, ticket);
    };
    EXPECT_EQ(say(ArrayAction::release, next), ArrayOutcome::malformed) << "by who aborts alone";
    EXPECT_EQ(one.say(ArrayAction::abort, next), ArrayOutcome::no_room);
    EXPECT_EQ(say(ArrayAction::abort, next), ArrayOutcome::done);
    EXPECT_EQ(one.say(ArrayAction::abort, next + 5), ArrayOutcome::done);
    EXPECT_EQ(one.prepare(next + 20, 0).outcome, ArrayOutcome::done) << "there is room again";
}

TEST(BoxJournal, KeepsWhatIsPreparedOverPowerCutsAndEpochs) {
    JournaledBox one;
    ASSERT_EQ(one.prepare(1, 0, as_new, 0).outcome, ArrayOutcome::done);
    ASSERT_EQ(one.prepare(2, 8192, as_new, 1).outcome, ArrayOutcome::done);
    ASSERT_EQ(one.prepare(3, 16384, as_new, 2).outcome, ArrayOutcome::done);
    ASSERT_EQ(one.commit(3, 2), ArrayOutcome::done);
    ASSERT_EQ(one.new_epoch(), ArrayOutcome::done);
    EXPECT_EQ(one.box().open_windows(), 0u);
    one.cut_power();
    const auto recalled = one.recall();
    ASSERT_EQ(recalled.transactions.size(), 3u);
    const auto& first = recalled.transactions[0];
    EXPECT_EQ(first.state, ArrayTransactionState::prepared);
    EXPECT_EQ(first.participants, 0b11u);
    EXPECT_EQ(first.host_identity, wire::HostIdentity{{9}});
    EXPECT_EQ(first.host_command, 10u);
    EXPECT_EQ(recalled.transactions[1].home, 8192u);
    EXPECT_EQ(recalled.transactions[1].length, 8192u);
    EXPECT_EQ(recalled.transactions[2].state, ArrayTransactionState::committed);
    ASSERT_EQ(recalled.notes.size(), 1u);
    EXPECT_EQ(recalled.notes[0].host_command, 30u);
    EXPECT_TRUE(one.reads_as(0, one.zeroes));
    EXPECT_EQ(one.say(ArrayAction::resolve, 1), ArrayOutcome::done);
    EXPECT_EQ(one.say(ArrayAction::abort, 2), ArrayOutcome::done);
    EXPECT_EQ(one.say(ArrayAction::resolve, 2), ArrayOutcome::unknown_transaction);
    EXPECT_EQ(one.say(ArrayAction::abort, 1), ArrayOutcome::unknown_transaction);
    one.cut_power();
    EXPECT_TRUE(one.reads_as(0, one.host));
    EXPECT_TRUE(one.reads_as(8192, one.zeroes));
    EXPECT_TRUE(one.reads_as(16384, one.host));
}

TEST(BoxJournal, CommitsWithoutTheWindowToo) {
    JournaledBox one;
    ASSERT_EQ(one.prepare(1, 0).outcome, ArrayOutcome::done);
    ASSERT_EQ(one.say(ArrayAction::release, 1), ArrayOutcome::done);
    EXPECT_EQ(one.commit(1), ArrayOutcome::done);
    EXPECT_TRUE(one.reads_as(0, one.host));
    EXPECT_EQ(one.commit(77), ArrayOutcome::unknown_transaction);
}

TEST(BoxJournal, NeverPreparesWhatItWasToldToForget) {
    JournaledBox one;
    EXPECT_EQ(one.say(ArrayAction::abort, 5), ArrayOutcome::done);
    EXPECT_EQ(one.prepare(5, 0).outcome, ArrayOutcome::unknown_transaction);
    one.cut_power();
    EXPECT_EQ(one.prepare(5, 0).outcome, ArrayOutcome::unknown_transaction);
    one.settled = TransactionNumber{9};
    EXPECT_EQ(one.prepare(9, 0).outcome, ArrayOutcome::done);
    EXPECT_EQ(one.prepare(8, 8192, as_new, 1).outcome, ArrayOutcome::unknown_transaction);
    EXPECT_EQ(one.states(),
              (std::vector{std::pair(std::uint64_t{9}, ArrayTransactionState::prepared)}));
}

TEST(BoxJournal, ListsWhatIsUndecidedThoughItShouldBeSettled) {
    JournaledBox one;
    ASSERT_EQ(one.prepare(1, 0).outcome, ArrayOutcome::done);
    one.settled = TransactionNumber{50};
    ASSERT_EQ(one.prepare(60, 8192, as_new, 1).outcome, ArrayOutcome::done);
    ASSERT_EQ(one.states().size(), 2u);
    EXPECT_EQ(one.states()[0], std::pair(std::uint64_t{1}, ArrayTransactionState::prepared));
}

TEST(BoxJournal, RefusesBeforeItBeginsWhenThereIsNoRoom) {
    JournaledBox one;
    std::uint64_t transaction = 1;
    auto next = [&] {
        const auto outcome = one.prepare(transaction, 0).outcome;
        if (outcome == ArrayOutcome::done) {
            EXPECT_EQ(one.commit(transaction), ArrayOutcome::done);
        }
        return outcome;
    };
    while (transaction < 100 && next() == ArrayOutcome::done) ++transaction;
    EXPECT_GT(transaction, 10u);
    ASSERT_LT(transaction, 100u) << "nothing was settled, and still there was room";
    EXPECT_EQ(one.boxes[0]->answers.rbegin()->second.outcome, ArrayOutcome::no_room);
    EXPECT_EQ(one.box().open_windows(), 0u);
    one.settled = TransactionNumber{transaction};
    EXPECT_EQ(next(), ArrayOutcome::no_room) << "it hears that there will be room";
    for (int more = 0; more < 200; ++more) {
        ++transaction;
        one.settled = TransactionNumber{transaction};
        ASSERT_EQ(next(), ArrayOutcome::done);
    }
    EXPECT_TRUE(one.reads_as(0, one.host));
    EXPECT_GE(one.recall().notes.size(), 100u) << "notes outlive their records";
}

// Nobody comes back for a checksum as the controller does for what it commits.
TEST(BoxJournal, FindsOutThatThereIsRoomAgainForAChecksum) {
    JournaledBox one;
    auto& disk = one.boxes[0]->disk;
    std::uint64_t transaction = 1;
    for (; transaction < 12; ++transaction) {
        ASSERT_EQ(one.prepare(transaction, 0).outcome, ArrayOutcome::done);
        ASSERT_EQ(one.commit(transaction), ArrayOutcome::done);
    }
    disk.no_room_from = one.box().superblock().data_offset;
    one.boxes[0]->journaled->checkpoint();
    one.agenda.run();
    ASSERT_TRUE(disk.refused_at) << "no checksum was stored";
    EXPECT_EQ(one.prepare(transaction, 0).outcome, ArrayOutcome::no_space);
    EXPECT_EQ(one.prepare(transaction, 0).outcome, ArrayOutcome::no_space);
    disk.no_room_from.reset();
    EXPECT_EQ(one.prepare(transaction, 0).outcome, ArrayOutcome::no_space) << "it is looked for";
    EXPECT_EQ(one.prepare(transaction, 0).outcome, ArrayOutcome::done);
    EXPECT_EQ(one.commit(transaction), ArrayOutcome::done);
}

TEST(BoxJournal, RemembersOfWhichWriteABlockIs) {
    JournaledBox one;
    auto versions = [&](std::uint64_t home, Column first = 0) {
        const auto answer = one.send(
            {.phase = Phase::read,
             .closes = true,
             .pieces = {{.verb = Verb::versions, .column = first, .length = 4096, .home = home}}},
            {.transaction = TransactionNumber{++one.reads}, .window = 3});
        one.say(ArrayAction::release, one.reads);
        EXPECT_EQ(answer.outcome, ArrayOutcome::done);
        Versions said;
        take_versions({.row = answer.row_digest, .diagonals = answer.diagonal_digests}, first,
                      said);
        return said;
    };
    auto version = [](std::uint64_t transaction, bool restored = false) {
        return version_of(TransactionNumber{transaction}, restored);
    };
    EXPECT_TRUE(versions(0).kept);
    EXPECT_EQ(versions(0).columns[0], Version{}) << "never written";
    ASSERT_EQ(one.prepare(1, 4096, prepare_word(as_new, 0b11, false)).outcome, ArrayOutcome::done);
    EXPECT_EQ(versions(4096).columns[0], Version{}) << "prepared only";
    ASSERT_EQ(one.commit(1), ArrayOutcome::done);
    ASSERT_EQ(one.prepare(2, 8192, prepare_word(as_new, 0b10, true)).outcome, ArrayOutcome::done);
    ASSERT_EQ(one.commit(2), ArrayOutcome::done);
    one.cut_power();
    EXPECT_EQ(versions(4096).columns[0], version(1));
    EXPECT_EQ(versions(4096).columns[1], version(1));
    EXPECT_EQ(versions(8192).columns[0], version(1)) << "the other column only was made anew";
    EXPECT_EQ(versions(8192).columns[1], version(2, true));
    EXPECT_EQ(versions(12288).columns[0], Version{});
    EXPECT_EQ(versions(12288).columns[1], version(2, true));
    ASSERT_EQ(one.prepare(3, 4096, prepare_word(as_new, 0b01, false)).outcome, ArrayOutcome::done);
    ASSERT_EQ(one.say(ArrayAction::abort, 3), ArrayOutcome::done);
    EXPECT_EQ(versions(4096).columns[0], version(1)) << "what is aborted was never written";
    EXPECT_EQ(versions(4096, 8).columns[8], Version{});
}

TEST(BoxJournal, SaysWhichBlockIsNotWhatWasWritten) {
    JournaledBox one;
    ASSERT_EQ(one.prepare(1, 16384).outcome, ArrayOutcome::done);
    ASSERT_EQ(one.commit(1), ArrayOutcome::done);
    const auto& superblock = one.box().superblock();
    const auto at =
        superblock.data_offset + CheckedDisk::place_below(16384, superblock.columns) + 5000;
    one.boxes[0]->disk.octets.all()[at] ^= std::byte{1};
    const auto before = one.zeroes;
    const auto [outcome, got] = one.read(16384);
    EXPECT_EQ(outcome, ArrayOutcome::corrupt);
    EXPECT_EQ(got, before) << "nothing was passed on";
    EXPECT_TRUE(one.reads_as(0, one.zeroes)) << "the others are read as ever";
    const auto answer = one.prepare(2, 16384, as_change);
    EXPECT_EQ(answer.outcome, ArrayOutcome::corrupt);
    EXPECT_EQ(answer.piece, 2u);
    EXPECT_EQ(answer.row_digest, 4096u) << "the second block of the piece";
    one.say(ArrayAction::abort, 2);
    ASSERT_EQ(one.prepare(3, 16384).outcome, ArrayOutcome::done) << "written anew, it is whole";
    ASSERT_EQ(one.commit(3), ArrayOutcome::done);
    EXPECT_TRUE(one.reads_as(16384, one.host));
}

TEST(BoxJournal, RefusesWhatWouldGoPastIt) {
    JournaledBox one;
    const auto past =
        one.send({.phase = Phase::commit, .pieces = {{.verb = Verb::commit, .length = 4096}}},
                 {.transaction = TransactionNumber{1}});
    EXPECT_EQ(past.outcome, ArrayOutcome::malformed);
    const auto over =
        one.send({.phase = Phase::stage,
                  .prepares = true,
                  .pieces = {{.verb = Verb::clear, .length = 8192},
                             {.verb = Verb::prepare, .length = 8192},
                             {.verb = Verb::prepare, .length = 4096, .slot = 8192, .home = 4096}}},
                 {.transaction = TransactionNumber{2}});
    EXPECT_EQ(over.outcome, ArrayOutcome::malformed) << "two blocks for one place";
    EXPECT_EQ(one.say(ArrayAction::abort, 2), ArrayOutcome::done);
    EXPECT_EQ(one.states().size(), 1u);
}

/// Where the next controller has not been yet: of the one before only time tells.
TEST(FailureTable, Case17_TheLeaseOfAControllerIsOver_ABoxThatKnowsNoOtherRefusesItToo) {
    JournaledBox one;
    auto flush = [&](std::uint32_t lease_ms) {
        const auto outcome =
            one.send({.phase = Phase::read,
                      .closes = true,
                      .pieces = {{.verb = Verb::digest, .length = 4096}}},
                     {.transaction = TransactionNumber{++one.reads}, .lease_ms = lease_ms})
                .outcome;
        one.say(ArrayAction::release, one.reads);
        return outcome;
    };
    EXPECT_EQ(flush(0), ArrayOutcome::done) << "nobody spoke of leases";
    EXPECT_EQ(flush(3000), ArrayOutcome::done);
    one.box().tick(Instant{} + std::chrono::seconds(2));
    EXPECT_EQ(flush(0), ArrayOutcome::done);
    one.box().tick(Instant{} + std::chrono::seconds(4));
    EXPECT_EQ(flush(0), ArrayOutcome::lease_over);
    EXPECT_EQ(flush(1000), ArrayOutcome::done);
    one.box().tick(Instant{} + std::chrono::seconds(9));
    EXPECT_EQ(one.new_epoch(), ArrayOutcome::done);
    EXPECT_EQ(flush(0), ArrayOutcome::done) << "another is in office";
}

TEST(BoxJournal, TakesNothingWhenTheDiskHasLostWhatWasLasting) {
    JournaledBox one;
    ASSERT_EQ(one.prepare(1, 0).outcome, ArrayOutcome::done);
    ASSERT_EQ(one.commit(1), ArrayOutcome::done);
    auto disk = one.boxes[0]->disk.lasting;
    const auto superblock = one.box().superblock();
    disk.all()[superblock.journal_offset + journal_ring_offset + 5000] ^= std::byte{1};
    one.boxes[0]->windows.vanish();
    one.boxes[0] = std::make_unique<TestBox>(one.agenda, one.tags, superblock);
    one.boxes[0]->disk.octets = one.boxes[0]->disk.lasting = disk;
    one.boxes[0]->disk.answers_at_once = true;
    std::optional<Result<void>> outcome;
    one.boxes[0]->journaled->recover([&](Result<void> how) { outcome = how; });
    ASSERT_TRUE(outcome.has_value());
    EXPECT_FALSE(*outcome);
    EXPECT_TRUE(one.boxes[0]->journaled->is_damaged());
    EXPECT_EQ(one.prepare(2, 0).outcome, ArrayOutcome::disk_failed);
    EXPECT_EQ(one.read(0).first, ArrayOutcome::disk_failed);
}

}  // namespace
}  // namespace weft::raid
