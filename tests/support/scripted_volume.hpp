// SPDX-License-Identifier: Apache-2.0
// A volume of real boxes, a real manager and journaled disks, stopped at exact points: what must
// not come yet is parked on its way, and whatever shall happen then does. Everything between two
// such points is in an order that is drawn, so that a case is many runs.
//
// It is asked at the end whether all holds: the data, the parity, every block with any one box
// away, nothing staged, nothing in doubt, the boxes alone knowing the same volume as the store.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <set>

#include "sim/raid_cluster.hpp"
#include "support/seeds.hpp"

namespace weft::test {

using raid::HostOperation;
using raid::Level;
using raid::VolumeEventKind;
using raid::VolumeState;
using sim::RaidMessage;

struct VolumeSetting {
    Level level = Level::raid5;
    std::uint64_t seed = 1;
    std::uint32_t journal_blocks = 128;
    unsigned spares = 0;
};

class ScriptedVolume {
public:
    static constexpr std::uint64_t block = raid::slice_size;
    static constexpr std::uint64_t stripes = 8;

    struct Request final : raid::HostRequest {
        explicit Request(ScriptedVolume& all) : volume(all) {}
        void completed(Result<void> how) override {
            EXPECT_FALSE(outcome) << "answered twice";
            outcome = how;
            volume.answered(*this);
        }
        bool is_ok() const { return outcome && *outcome; }
        ScriptedVolume& volume;
        std::vector<std::byte> octets;
        std::optional<Result<void>> outcome;
    };

    explicit ScriptedVolume(const VolumeSetting& setting)
        : agenda(setting.seed),
          habits(habits_of(setting)),
          cluster(agenda, complaints, habits, sim::RaidMutation::none),
          layout(cluster.layout()),
          shadow(stripes * layout.stripe_bytes()) {
        cluster.on_event = [this](const raid::VolumeEvent& event) { events.push_back(event); };
        cluster.may_pass = [this](const RaidMessage& message) {
            if (kept_back_ && kept_back_(message)) return false;
            note(message);
            return true;
        };
        for (std::uint64_t stripe = 0; stripe < stripes; ++stripe)
            write({stripe * layout.stripe_bytes(), layout.stripe_bytes()});
        run_until([] { return false; });  // also the flush that comes a while after a write
        EXPECT_TRUE(all_answered() && is_healthy() && is_quiet());
        events.clear();
    }

    // Where a block is.
    unsigned box_of(std::uint64_t at) const {
        const auto place = layout.place_of(at);
        return raid::number(layout.box_of(place.stripe, place.column));
    }
    /// Whoever changes when this block does, its own box first.
    std::vector<unsigned> participants_of(std::uint64_t at) const {
        std::vector<unsigned> all{box_of(at)};
        const auto stripe = layout.place_of(at).stripe;
        const raid::Column first = layout.level() == Level::mirror ? 1 : layout.row_parity();
        for (raid::Column column = first; column < layout.boxes(); ++column)
            all.push_back(raid::number(layout.box_of(stripe, column)));
        return all;
    }
    /// Where it lies on a box's disk, in every box that has a block of its row.
    std::uint64_t home_of(unsigned box, std::uint64_t at) {
        const auto place = layout.place_of(at);
        return cluster.offset_of(box, layout.home_of(place.stripe) + place.offset);
    }

    // What hosts do.
    Request& write(raid::Range range, std::uint8_t host = 1) {
        auto& request = ask(HostOperation::write, range, host, ++commands_);
        for (auto& octet : request.octets) octet = static_cast<std::byte>(agenda.random.next());
        expect_of(range, request.octets);
        submit(request);
        return request;
    }
    Request& read(raid::Range range, std::uint8_t host = 1) {
        auto& request = ask(HostOperation::read, range, host, ++commands_);
        submit(request);
        return request;
    }
    /// The host has not been answered and asks again. Its memory has other octets by then, so that
    /// it shows whether they are fetched.
    Request& ask_again(const Request& before, bool with_other_octets = false) {
        auto& request =
            ask(before.operation, before.range, before.host_identity.octets[0], before.command);
        request.repeated = true;
        if (!with_other_octets) request.octets = before.octets;
        submit(request);
        return request;
    }
    /// A read, of a controller that may not be in office any more.
    Request& ask_of(raid::VolumeManager& manager, raid::Range range, std::uint8_t host) {
        auto& request = ask(HostOperation::read, range, host, ++commands_);
        submit_to(manager, request);
        return request;
    }
    /// Its memory is gone, and nobody hears what it is answered.
    void lose_host(std::uint8_t host) { cluster.restart_host(host); }
    /// What the volume shall have there.
    void expect_of(raid::Range range, ConstBuffer octets) {
        std::ranges::copy(octets, shadow.begin() + static_cast<std::ptrdiff_t>(range.offset));
    }
    std::vector<std::byte> expected(raid::Range range) const {
        const auto at = shadow.begin() + static_cast<std::ptrdiff_t>(range.offset);
        return {at, at + static_cast<std::ptrdiff_t>(range.length)};
    }

    // Time.
    template <class Condition>
    bool run_until(Condition condition) {
        constexpr int plenty = 300'000;
        for (int i = 0; i < plenty; ++i) {
            if (condition()) return true;
            if (!agenda.step() && !cluster.pass_time()) return condition();
        }
        return condition();
    }
    /// All that can happen without time passing does.
    void run_dry() {
        while (agenda.step()) continue;
    }
    void some_steps(std::uint64_t steps) {
        for (; steps > 0 && agenda.step(); --steps) continue;
    }
    /// Until so many messages of this kind have come to where they are kept.
    template <class Kind>
    [[nodiscard]] bool park(std::size_t count, Kind kind) {
        const auto before = cluster.parked();
        kept_back_ = kind;
        return run_until([&] { return cluster.parked() >= before + count; });
    }
    /// At all that comes to boxes, and all they answer.
    void look(std::function<void(const RaidMessage&)> looker) { looker_ = std::move(looker); }
    void let_go() {
        kept_back_ = nullptr;
        cluster.store_is_away = false;
        cluster.let_go();
    }

    // How it is.
    bool is_healthy() { return state() == VolumeState::healthy; }
    VolumeState state() { return cluster.manager().status().state; }
    bool all_answered() const {
        return std::ranges::all_of(requests, [](const auto& r) { return r.outcome.has_value(); });
    }
    wire::ArrayMemberState member(unsigned box) {
        return cluster.manager().volume().members[box].state;
    }
    std::uint64_t generation() {
        return static_cast<std::uint64_t>(cluster.manager().volume().generation);
    }
    std::size_t count(VolumeEventKind kind) const {
        return static_cast<std::size_t>(std::ranges::count(events, kind, &raid::VolumeEvent::kind));
    }
    const raid::VolumeEvent* last(VolumeEventKind kind) const {
        for (auto event = events.rbegin(); event != events.rend(); ++event)
            if (event->kind == kind) return &*event;
        return nullptr;
    }
    /// What a box's journal has prepared, and nobody has decided.
    std::size_t in_doubt(unsigned box) {
        const auto recalled = cluster.machine(box).journaled->recall();
        return static_cast<std::size_t>(std::ranges::count(recalled.transactions,
                                                           wire::ArrayTransactionState::prepared,
                                                           &wire::ArrayRecalled::state));
    }
    bool is_quiet() {
        return run_until([&] {
            for (unsigned i = 0; i < cluster.machines(); ++i)
                if (cluster.place_of(i) && (in_doubt(i) != 0 || cluster.box(i).open_windows() != 0))
                    return false;
            return cluster.manager().status().requests == 0;
        });
    }

    /// In how many transactions what a host asked for was committed somewhere.
    std::size_t executions(const Request& request) const {
        const auto found = executed_.find({request.host_identity.octets[0], request.command});
        return found == executed_.end() ? 0 : found->second.size();
    }

    // What shall hold in the end.
    void expect_data(const std::string& when) {
        std::vector<Request*> reads;
        for (std::uint64_t at = 0; at < shadow.size(); at += layout.stripe_bytes())
            reads.push_back(&read({at, layout.stripe_bytes()}, 77));
        ASSERT_TRUE(run_until([&] {
            return std::ranges::all_of(reads, [](auto* r) { return r->outcome.has_value(); });
        })) << when;
        for (const auto* each : reads) {
            ASSERT_TRUE(each->is_ok()) << when << ", code " << int(each->outcome->error().code);
            for (std::uint64_t at = 0; at < each->range.length; at += block)
                ASSERT_TRUE(
                    std::ranges::equal(std::span(each->octets).subspan(at, block),
                                       std::span(shadow).subspan(each->range.offset + at, block)))
                    << when << ", the block at " << each->range.offset + at << "\n"
                    << story();
        }
    }
    void expect_scrub_finds(std::uint64_t mismatches) {
        ASSERT_TRUE(cluster.manager().scrub(false));
        ASSERT_TRUE(run_until([&] { return !cluster.manager().status().scrub.running; }));
        const auto scrub = cluster.manager().status().scrub;
        EXPECT_EQ(scrub.mismatches, mismatches) << story();
        EXPECT_EQ(scrub.unchecked, 0u) << story();
        EXPECT_EQ(scrub.done, stripes);
    }
    /// A scrub comes upon blocks that are not what was written, and mends them.
    void expect_scrub_heals() {
        ASSERT_TRUE(cluster.manager().scrub(true));
        ASSERT_TRUE(run_until([&] { return !cluster.manager().status().scrub.running; }));
        expect_scrub_finds(0);
    }
    /// All boxes are there again: the volume becomes whole, and everything is as it should be.
    void expect_whole() {
        let_go();
        for (unsigned i = 0; i < cluster.machines(); ++i) cluster.bring(i);
        ASSERT_TRUE(run_until([&] { return is_healthy(); })) << story();
        ASSERT_TRUE(is_quiet()) << "something is left staged or in doubt\n" << story();
        expect_data("with all boxes");
        expect_scrub_finds(0);
        for (unsigned i = 0; i < cluster.machines(); ++i) {
            if (!cluster.place_of(i)) continue;
            cluster.drop(i);
            expect_data("without box " + std::to_string(i));
            cluster.bring(i);
            ASSERT_TRUE(run_until([&] { return is_healthy(); })) << story();
        }
        ASSERT_TRUE(is_quiet());
        run_dry();
        cluster.check_quiet();
        cluster.check_epochs();
        cluster.check_assembly();
        for (const auto& [who, transactions] : executed_)
            EXPECT_LE(transactions.size(), 1u)
                << "command " << who.second << " of host " << int(who.first) << "\n"
                << story();
        for (const auto& complaint : complaints.all())
            ADD_FAILURE() << complaint << "\n" << story();
    }
    std::string story() {
        std::string text = "state " + raid::to_text(state());
        for (const auto& member : cluster.manager().status().members)
            text += "\n  place " + std::to_string(member.place) + " state " +
                    std::to_string(int(member.state)) + (member.up ? " up" : " down") +
                    (member.failed ? " failed" : "");
        for (const auto& event : events)
            text += "\n" + raid::to_text(event.kind) +
                    (event.place ? " place " + std::to_string(*event.place) : "") + " " +
                    raid::to_text(event.why) + " " + std::to_string(event.number);
        return text;
    }

    sim::Complaints complaints;
    sim::RaidAgenda agenda;
    sim::RaidHabits habits;
    std::deque<Request> requests;  ///< whose memory the cluster's machines may still have
    sim::RaidCluster cluster;
    const raid::Layout layout;
    std::vector<std::byte> shadow;
    std::vector<raid::VolumeEvent> events;

private:
    sim::RaidHabits habits_of(const VolumeSetting& setting) {
        sim::RaidHabits all(agenda.random, wire::ArrayConsistency::journal, false);
        all.level = setting.level;
        all.boxes = setting.level == Level::mirror ? 3 : setting.level == Level::raid5 ? 4 : 5;
        all.chunk_bytes = 2 * block;
        all.stripes = stripes;
        all.journal_blocks = setting.journal_blocks;
        all.spares = setting.spares;
        return all;
    }
    using HostCommand = std::pair<std::uint8_t, std::uint64_t>;

    void note(const RaidMessage& message) {
        if (looker_) looker_(message);
        if (message.prepares() && message.order.host_command != 0)
            asked_by_[message.transaction] = {message.order.host_identity.octets[0],
                                              message.order.host_command};
        const auto whose = asked_by_.find(message.transaction);
        if (message.is_answer && message.commits() && whose != asked_by_.end() &&
            message.outcome == wire::ArrayOutcome::done)
            executed_[whose->second].insert(message.transaction);
    }
    Request& ask(HostOperation operation, raid::Range range, std::uint8_t host,
                 std::uint64_t command) {
        auto& request = requests.emplace_back(*this);
        request.operation = operation;
        request.range = range;
        request.octets.resize(range.length);
        request.session = wire::HostSession{host};
        request.host_identity.octets[0] = host;
        request.command = command;
        return request;
    }
    void submit(Request& request) { submit_to(cluster.manager(), request); }
    void submit_to(raid::VolumeManager& manager, Request& request) {
        const auto host = request.host_identity.octets[0];
        const bool is_read = request.operation == HostOperation::read;
        request.memory.tag = cluster.host(host).lend(request.octets, is_read);
        cluster.attach(host, request);
        manager.submit(request);
    }
    void answered(const Request& request) {
        const auto host = request.host_identity.octets[0];
        cluster.hear(host, cluster.news_for(host));
        if (request.leaves_writers)
            cluster.host(host).take_back_from_writers(request.memory.tag, request.command);
        else
            cluster.host(host).take_back(request.memory.tag, [] {});
        if (request.operation == HostOperation::write && request.is_ok())
            cluster.check_membership();
    }

    std::function<bool(const RaidMessage&)> kept_back_;
    std::function<void(const RaidMessage&)> looker_;
    std::map<wire::TransactionNumber, HostCommand> asked_by_;
    std::map<HostCommand, std::set<wire::TransactionNumber>> executed_;
    std::uint64_t commands_ = 0;
};

/// The same for every level, and for so many draws of everything that is left open.
inline void for_each_volume(std::uint64_t seeds, const std::function<void(ScriptedVolume&)>& body,
                            std::uint32_t journal_blocks = 128) {
    for_each_seed(seeds, [&](std::uint64_t seed) {
        for (const Level level : {Level::mirror, Level::raid5, Level::raid6}) {
            SCOPED_TRACE("level " + std::to_string(static_cast<int>(level)));
            ScriptedVolume volume({level, seed, journal_blocks});
            if (!testing::Test::HasFailure()) body(volume);
        }
    });
}

}  // namespace weft::test
