// SPDX-License-Identifier: Apache-2.0
// When a write of a journal's volume counts, and what happens to it from then on: the engine
// against boxes that answer what a test says, when it says it.
#include <gtest/gtest.h>

#include <deque>

#include "raid/superblock.hpp"
#include "raid/volume_engine.hpp"

namespace weft::raid {
namespace {

using wire::ArrayAction;
using wire::ArrayMemberState;
using wire::ArrayOutcome;

wire::TransactionNumber number_in_epoch_7(std::uint64_t count) {
    return wire::TransactionNumber{std::uint64_t{7} << 40 | count};
}

struct Asked final : HostRequest {
    std::optional<Result<void>> outcome;
    void completed(Result<void> how) override {
        EXPECT_FALSE(outcome) << "completed twice";
        outcome = how;
    }
};

/// A command on its way, not answered yet.
struct Command {
    unsigned box = 0;
    CommandTicket ticket{};
    ArrayAction action{};
    wire::TransactionNumber transaction{};
    wire::ArrayOrderHeader header{};

    bool commits() const {
        return wire::is_order(action) && header.phase == static_cast<std::uint8_t>(Phase::commit);
    }
};

struct Script final : VolumeEngineOwner {
    explicit Script(Level level = Level::raid5) {
        volume.volume.octets[0] = 2;
        volume.generation = wire::Generation{1};
        volume.level = static_cast<std::uint8_t>(level);
        volume.boxes = level == Level::raid5 ? 3 : 4;
        volume.consistency = wire::ArrayConsistency::journal;
        volume.chunk_bytes = 8192;
        volume.stripes = 8;
        for (std::uint8_t i = 0; i < volume.boxes; ++i) {
            volume.members[i].box.octets[0] = static_cast<std::uint8_t>(10 + i);
            volume.members[i].state = ArrayMemberState::current;
        }
        set_volume();
    }
    void set_volume() {
        Health health;
        for (std::uint8_t i = 0; i < volume.boxes; ++i)
            if (volume.members[i].state == ArrayMemberState::absent) health.lose(BoxIndex{i});
        ASSERT_TRUE(engine.set_volume({}, wire::Epoch{7}, volume, health));
    }
    void count_out(unsigned box) {
        volume.members[box].state = ArrayMemberState::absent;
        volume.generation = wire::Generation{static_cast<std::uint64_t>(volume.generation) + 1};
        set_volume();
    }

    void carry(BoxIndex box, CommandTicket ticket, const EncodedOrder& order) override {
        Command command{.box = number(box),
                        .ticket = ticket,
                        .action = order.command_block.action,
                        .transaction = order.command_block.transaction};
        if (wire::is_order(command.action))
            command.header = *decode<wire::ArrayOrderHeader>(order.parameters);
        out.push_back(command);
    }
    SteeringTag window_tag(BoxIndex, std::uint32_t, wire::TransactionNumber) override { return {}; }
    void in_trouble(const Trouble& trouble) override {
        troubles.push_back(number(trouble.reporter.value()));
    }
    void audit_failed(std::span<const Band>) override { ++audits_failed; }
    bool is_host_here(wire::HostSession) const override { return host_is_here; }
    void end_is_pending(const wire::BoxIdentity&, wire::TransactionNumber transaction) override {
        owed = transaction;
    }
    std::optional<wire::TransactionNumber> lowest_pending_end() const override {
        return nobody_returns ? std::nullopt : owed;
    }

    Asked& write(Range range) { return ask(HostOperation::write, range); }
    Asked& ask(HostOperation operation, Range range) {
        Asked& asked = asked_list.emplace_back();
        asked.operation = operation;
        asked.range = range;
        asked.command = asked_list.size();
        asked.host_identity.octets[0] = 99;
        engine.submit(asked);
        return asked;
    }
    Command take() {
        EXPECT_FALSE(out.empty());
        if (out.empty()) return {};
        Command next = out.front();
        out.pop_front();
        return next;
    }
    void answer(const Command& command, const wire::ArrayAnswer& with = {}) {
        engine.answered(command.ticket, with);
    }
    /// All that is out is done, again and again, until commits are.
    void prepare_all() {
        while (!out.empty() && !out.front().commits()) answer(take());
    }
    void finish_all() {
        while (!out.empty()) answer(take());
    }
    std::vector<Command> of(ArrayAction action) const {
        std::vector<Command> found;
        for (const auto& command : out)
            if (command.action == action) found.push_back(command);
        return found;
    }

    VolumeEngine engine{*this, {.plan = {}, .own = {}, .windows = 4}};
    wire::ArrayVolume volume;
    std::deque<Command> out;
    std::deque<Asked> asked_list;
    std::vector<unsigned> troubles;
    std::optional<wire::TransactionNumber> owed;
    bool nobody_returns = false;
    bool host_is_here = true;
    int audits_failed = 0;
};

TEST(VolumeCommit, AnswersTheHostWhenAllHavePreparedAndHoldsTheRowsUntilAllHaveCommitted) {
    Script script;
    auto& write = script.write({0, 4096});
    for (int orders = 0; orders < 4; ++orders) {  // two stage, two prepare
        EXPECT_FALSE(write.outcome) << "after " << orders << " answers";
        ASSERT_FALSE(script.out.front().commits());
        script.answer(script.take());
    }
    EXPECT_TRUE(write.outcome && *write.outcome);
    ASSERT_EQ(script.out.size(), 2u);
    EXPECT_TRUE(script.out[0].commits() && script.out[1].commits());
    auto& behind = script.ask(HostOperation::read, {0, 4096});
    EXPECT_EQ(script.out.size(), 2u) << "its rows are still the write's";
    script.answer(script.take());
    EXPECT_EQ(script.out.size(), 1u) << "one has acknowledged, and one has not";
    script.answer(script.take());
    ASSERT_EQ(script.out.size(), 1u);
    script.answer(script.take());
    EXPECT_TRUE(behind.outcome && *behind.outcome);
    EXPECT_EQ(script.engine.requests(), 0u);
}

TEST(VolumeCommit, TellsABoxThatIsLostAgainOnceItIsBack) {
    Script script;
    auto& write = script.write({0, 4096});
    script.prepare_all();
    ASSERT_TRUE(write.outcome && *write.outcome);
    const Command first = script.take(), second = script.take();
    const auto lost = script.volume.members[second.box].box;
    EXPECT_TRUE(script.engine.lost(lost).empty()) << "nothing is to be undone there";
    script.answer(first);
    EXPECT_TRUE(script.engine.is_decided(first.transaction));
    auto& behind = script.ask(HostOperation::read, {0, 4096});
    script.engine.halt();
    script.engine.give_up(Error{Code::io_failed});
    EXPECT_TRUE(behind.outcome && !*behind.outcome) << "who waits is told";
    script.set_volume();  // with the box in it
    ASSERT_EQ(script.out.size(), 1u);
    EXPECT_EQ(script.out[0].action, ArrayAction::resolve);
    EXPECT_EQ(script.out[0].box, second.box);
    EXPECT_EQ(script.out[0].transaction, second.transaction);
    // What it says counts no more than its silence did.
    script.answer(script.take(), {.outcome = ArrayOutcome::disk_failed});
    EXPECT_EQ(script.troubles, (std::vector<unsigned>{second.box, second.box}));
    EXPECT_TRUE(script.engine.is_decided(first.transaction));
    script.engine.try_again();
    ASSERT_EQ(script.out.size(), 1u);
    script.answer(script.take());
    EXPECT_FALSE(script.engine.is_decided(first.transaction));
    ASSERT_EQ(script.out.size(), 1u);
    EXPECT_EQ(script.out[0].action, ArrayAction::release) << "if it still has the window";
    script.answer(script.take());
    EXPECT_EQ(script.engine.requests(), 0u);
}

TEST(VolumeCommit, NeedsNoWordOfABoxThatIsCountedOut) {
    Script script;
    auto& write = script.write({0, 4096});
    script.prepare_all();
    const Command first = script.take(), second = script.take();
    script.answer(first);
    script.engine.lost(script.volume.members[second.box].box);
    EXPECT_EQ(script.engine.settled(), first.transaction);
    script.nobody_returns = true;
    script.count_out(second.box);
    EXPECT_EQ(script.owed, first.transaction) << "what it has of it is dropped if it ever returns";
    EXPECT_TRUE(script.out.empty());
    EXPECT_EQ(script.engine.requests(), 0u);
    EXPECT_TRUE(*write.outcome);
    EXPECT_GT(script.engine.settled(), first.transaction);
}

TEST(VolumeCommit, UndoesEverywhereWhatOneHasNotPreparedAndDoesItAgain) {
    Script script;
    auto& write = script.write({0, 4096});
    const auto transaction = script.out.front().transaction;
    script.answer(script.take());
    script.answer(script.take());
    const Command parity = script.take();
    script.engine.lost(script.volume.members[parity.box].box);
    EXPECT_EQ(script.owed, transaction) << "it may have prepared: that must be undone";
    EXPECT_TRUE(script.of(ArrayAction::abort).empty()) << "data is still being prepared";
    script.answer(script.take());
    ASSERT_EQ(script.of(ArrayAction::abort).size(), 1u);
    EXPECT_FALSE(write.outcome);
    script.finish_all();
    EXPECT_EQ(script.engine.settled(), transaction) << "as long as the box may return";
    script.owed.reset();
    script.count_out(parity.box);
    ASSERT_FALSE(script.out.empty());
    EXPECT_GT(script.out.front().transaction, transaction);
    script.finish_all();
    EXPECT_TRUE(write.outcome && *write.outcome);
}

TEST(VolumeCommit, UndoesWhatWasPreparedForAnotherVolumeThanThisIsNow) {
    Script script;
    auto& write = script.write({0, 4096});
    script.answer(script.take());
    script.answer(script.take());
    const Command parity = script.take();
    const unsigned other = 3 - parity.box - 0;  // neither data's box, which is 0, nor parity's
    script.count_out(other);
    script.answer(parity);
    script.answer(script.take());
    EXPECT_FALSE(write.outcome) << "its boxes may not be those of this volume";
    EXPECT_EQ(script.of(ArrayAction::abort).size(), 2u);
    script.finish_all();
    EXPECT_TRUE(write.outcome && *write.outcome);
}

TEST(VolumeCommit, CommitsNothingThatDoesNotAddUp) {
    Script script;
    auto& write = script.write({0, 4096});
    script.answer(script.take());
    script.answer(script.take());
    script.answer(script.take(), {.row_digest = 5});
    EXPECT_EQ(script.audits_failed, 0) << "the other may say the same";
    script.answer(script.take());
    EXPECT_EQ(script.audits_failed, 1);
    EXPECT_FALSE(write.outcome);
    ASSERT_EQ(script.of(ArrayAction::abort).size(), 2u);
    script.answer(script.take());
    script.answer(script.take());
    // Parity is made anew now, of all the data: the third box is asked for its own too.
    EXPECT_EQ(script.out.size(), 2u);
    unsigned boxes = 0;
    while (!script.out.empty() && !script.out.front().commits()) {
        boxes |= 1u << script.out.front().box;
        script.answer(script.take());
    }
    EXPECT_EQ(boxes, 7u);
    EXPECT_TRUE(write.outcome && *write.outcome);
}

TEST(VolumeCommit, RefusesWhatDoesNotAddUpASecondTime) {
    Script script;
    auto& write = script.write({0, 16384});  // all of a stripe: its sums tell something always
    for (int i = 0; i < 100 && !write.outcome; ++i)
        script.answer(script.take(), {.row_digest = static_cast<std::uint32_t>(1 << i % 20)});
    ASSERT_TRUE(write.outcome);
    EXPECT_EQ(write.outcome->error().code, Code::io_failed);
    EXPECT_EQ(script.audits_failed, 2);
    EXPECT_TRUE(script.out.empty());
}

TEST(VolumeCommit, NumbersTransactionsOverAllControllersAndSaysWhatHasSettled) {
    Script script;
    script.write({0, 4096});
    script.write({16384, 4096});
    EXPECT_EQ(script.out[0].transaction, number_in_epoch_7(1));
    EXPECT_EQ(script.out[0].header.settled, number_in_epoch_7(1));
    EXPECT_EQ(script.out[2].transaction, number_in_epoch_7(2));
    EXPECT_EQ(script.out[2].header.settled, number_in_epoch_7(1));
    EXPECT_EQ(script.out[0].header.to_prepare, 4096u);
    script.finish_all();
    script.write({0, 4096});
    EXPECT_EQ(script.out[0].header.settled, number_in_epoch_7(3));
    script.finish_all();
    script.owed = number_in_epoch_7(2);
    script.ask(HostOperation::read, {0, 4096});
    EXPECT_EQ(script.out[0].header.settled, number_in_epoch_7(2));
}

TEST(VolumeCommit, HasNothingToFlush) {
    Script script;
    EXPECT_TRUE(*script.ask(HostOperation::flush, {}).outcome);
    Asked durable;
    durable.operation = HostOperation::write;
    durable.range = {0, 4096};
    durable.durable = true;
    script.engine.submit(durable);
    std::size_t orders = 0;
    for (; !script.out.empty(); ++orders) script.answer(script.take());
    EXPECT_EQ(orders, 6u) << "as any other write";
    EXPECT_TRUE(*durable.outcome);
}

TEST(VolumeCommit, ExecutesNoWriteTwice) {
    Script script;
    auto& write = script.write({0, 4096});
    EXPECT_EQ(script.out[0].header.host_command, 1u);
    EXPECT_EQ(script.out[0].header.host_identity.octets[0], 99);
    // The answer will be lost. It is asked for again while it is under way, and once it is over.
    Asked repeated[3];
    for (Asked& again : repeated) {
        again.operation = HostOperation::write;
        again.range = {0, 4096};
        again.command = 1;
        again.host_identity.octets[0] = 99;
        again.repeated = true;
    }
    repeated[2].command = 77;  // and this one got lost before it was heard of
    script.engine.submit(repeated[0]);
    script.prepare_all();
    EXPECT_TRUE(*write.outcome);
    EXPECT_FALSE(repeated[0].outcome) << "what it asks for is still being done";
    EXPECT_EQ(script.out.size(), 2u);
    script.finish_all();
    ASSERT_TRUE(repeated[0].outcome && *repeated[0].outcome);
    script.engine.submit(repeated[1]);
    EXPECT_TRUE(repeated[1].outcome && *repeated[1].outcome);
    EXPECT_TRUE(script.out.empty());
    script.engine.submit(repeated[2]);
    EXPECT_FALSE(script.out.empty()) << "nobody has executed that one";
    script.finish_all();
    EXPECT_TRUE(repeated[2].outcome && *repeated[2].outcome);
}

TEST(VolumeCommit, ExecutesAWriteAgainThatWasUndone) {
    Script script;
    script.host_is_here = false;
    auto& write = script.write({0, 4096});
    script.answer(script.take(), {.outcome = ArrayOutcome::peer_unreachable, .party = 0});
    script.finish_all();
    ASSERT_TRUE(write.outcome);
    EXPECT_EQ(write.outcome->error().code, Code::disconnected) << "its host was not reached";
    Asked again;
    again.operation = HostOperation::write;
    again.range = {0, 4096};
    again.command = 1;
    again.host_identity.octets[0] = 99;
    script.engine.submit(again);
    EXPECT_FALSE(again.outcome);
    script.finish_all();
    EXPECT_TRUE(again.outcome && *again.outcome);
}

TEST(VolumeCommit, PreparesWhatIsRebuiltToo) {
    struct Rebuild final : UpkeepRequest {
        std::optional<Result<void>> outcome;
        void completed(Result<void> how) override { outcome = how; }
    };
    Script script;
    script.count_out(1);
    Rebuild rebuild;
    rebuild.kind = UpkeepKind::rebuild;
    rebuild.targets = only(1);
    script.engine.submit(rebuild);
    bool prepared = false;
    while (!script.out.empty() && !script.out.front().commits()) {
        prepared = prepared || script.out.front().header.prepares;
        script.answer(script.take());
    }
    EXPECT_TRUE(prepared);
    EXPECT_FALSE(rebuild.outcome) << "only when it can be read there";
    script.finish_all();
    EXPECT_TRUE(rebuild.outcome && *rebuild.outcome);
}

}  // namespace
}  // namespace weft::raid
