// SPDX-License-Identifier: Apache-2.0
// A whole box with a journal: its part is made with one, and it knows what was prepared when it
// starts again.
#include <gtest/gtest.h>

#include "node/box_node.hpp"
#include "raid/recall.hpp"
#include "support/array_boxes.hpp"

namespace weft::sim {
namespace {

using raid::Phase;
using raid::Verb;
using wire::ArrayAction;
using wire::ArrayOutcome;
using wire::ArrayTransactionState;

constexpr std::uint32_t block = 4096;

class BoxJournalOnSim : public test::ArrayBoxes {
protected:
    BoxJournalOnSim() { consistency = wire::ArrayConsistency::journal; }

    void fill_host(unsigned seed) {
        for (std::size_t i = 0; i < 2 * block; ++i)
            host->memory[i] = static_cast<std::byte>((i * 7 + seed * 31 + i / 256) & 0xff);
    }
    ArrayOutcome prepare(std::uint64_t transaction, std::uint64_t where) {
        return order(oak, transaction, Phase::stage,
                     {{.verb = Verb::fetch, .peer = raid::the_host, .length = 2 * block},
                      {.verb = Verb::prepare, .length = 2 * block, .home = where}})
            .outcome;
    }
    ArrayOutcome say(ArrayAction action, std::uint64_t transaction) {
        const auto where = encoded(address(oak, photos));
        return oak
            .send({.action = action,
                   .transaction = wire::TransactionNumber{transaction},
                   .parameter_length = where.size()},
                  {where.begin(), where.end()})
            .outcome;
    }
    raid::Recalled recall() {
        const auto where = encoded(address(oak, photos));
        std::optional<Result<raid::Recalled>> recalled;
        oak.session->send({.action = ArrayAction::recall, .parameter_length = where.size()},
                          {where.begin(), where.end()}, 256u << 10,
                          [&](Result<node::BoxReply> reply) {
                              ASSERT_TRUE(reply);
                              recalled = raid::parse_recall(reply->data);
                          });
        oak.run_until([&] { return recalled.has_value(); });
        EXPECT_TRUE(*recalled);
        return **recalled;
    }
    /// Whether it reads as the host's memory is.
    bool reads_as_written(std::uint64_t where) {
        const auto said = order(oak, ++reads, Phase::read,
                                {{.verb = Verb::send_home,
                                  .peer = raid::the_host,
                                  .length = 2 * block,
                                  .home = where,
                                  .at = 16 * block}},
                                true);
        return said.outcome == ArrayOutcome::done &&
               std::equal(host->memory.begin(), host->memory.begin() + 2 * block,
                          host->memory.begin() + 16 * block);
    }
    bool said(const std::string& what) const {
        return std::ranges::any_of(
            oak.news, [&](const auto& each) { return each.find(what) != std::string::npos; });
    }
    void restart(bool orderly) {
        orderly ? oak.stop() : oak.cut_power_at_rest();
        oak.start();
        introduce();
    }
    std::uint64_t reads = 1000;
};

TEST_F(BoxJournalOnSim, KnowsWhatWasPreparedWhenItStartsAgain) {
    set_up();
    EXPECT_EQ(oak.description().free, (64u << 20) - (3u << 20) - 3 * block)
        << "checksums and versions count, too";
    for (bool orderly : {true, false}) {
        const std::uint64_t first = orderly ? 1 : 11;
        fill_host(static_cast<unsigned>(first));
        ASSERT_EQ(prepare(first, 0), ArrayOutcome::done);
        ASSERT_EQ(order(oak, first, Phase::commit, {}, true).outcome, ArrayOutcome::done);
        ASSERT_TRUE(reads_as_written(0));
        ASSERT_EQ(prepare(first + 1, 4 * block), ArrayOutcome::done);
        restart(orderly);
        const auto recalled = recall();
        ASSERT_GE(recalled.transactions.size(), 2u);
        EXPECT_EQ(recalled.transactions.back().state, ArrayTransactionState::prepared);
        EXPECT_TRUE(reads_as_written(0));
        EXPECT_FALSE(reads_as_written(4 * block));
        EXPECT_EQ(say(ArrayAction::resolve, first + 1), ArrayOutcome::done);
        EXPECT_TRUE(reads_as_written(4 * block));
    }
}

TEST_F(BoxJournalOnSim, SaysThatItsJournalCannotBeReadAndTakesNothing) {
    set_up();
    fill_host(1);
    for (std::uint64_t transaction = 1; transaction < 4; ++transaction) {
        ASSERT_EQ(prepare(transaction, 0), ArrayOutcome::done);
        ASSERT_EQ(order(oak, transaction, Phase::commit, {}, true).outcome, ArrayOutcome::done);
    }
    world.disk(oak.part_path(photos))
        .make_bad((1u << 20) + raid::journal_ring_offset, block, BadFor::reads);
    restart(true);
    EXPECT_EQ(prepare(9, 0), ArrayOutcome::disk_failed);
    EXPECT_TRUE(said("its journal cannot be used"));
    EXPECT_EQ(create(oak, 0), ArrayOutcome::already_there) << "it may be whole";
}

/// A record is gone that later ones show to have been there.
TEST_F(BoxJournalOnSim, LeavesOutAPartWhoseJournalIsDamagedAndKeepsItBesideANewOne) {
    set_up();
    fill_host(1);
    for (std::uint64_t transaction = 1; transaction < 4; ++transaction) {
        ASSERT_EQ(prepare(transaction, 0), ArrayOutcome::done);
        ASSERT_EQ(order(oak, transaction, Phase::commit, {}, true).outcome, ArrayOutcome::done);
    }
    oak.cut_power_at_rest();
    const auto path = oak.part_path(photos);
    world.disk(path).rot((1u << 20) + raid::journal_ring_offset + 100, 3);
    oak.start();
    EXPECT_TRUE(said("its journal is damaged; the box starts without this part"));
    EXPECT_EQ(oak.description().parts, 0);
    EXPECT_EQ(oak.description().left_out, 1);
    std::vector<std::byte> damaged(4u << 20), after(4u << 20);
    world.disk(path).peek(0, damaged);
    EXPECT_EQ(create(oak, 0), ArrayOutcome::done);
    world.disk(path).peek(0, after);
    EXPECT_EQ(after, damaged) << "for who wants to look at it";
    restart(true);
    EXPECT_EQ(oak.description().parts, 1);
    EXPECT_EQ(oak.description().left_out, 0);
    EXPECT_TRUE(recall().transactions.empty()) << "as of a new disk";
    EXPECT_FALSE(reads_as_written(0));
}

}  // namespace
}  // namespace weft::sim
