// SPDX-License-Identifier: Apache-2.0
// A volume's manager with real boxes, a store, hosts and time: everything that is asked waits in
// one list, and a draw decides what happens next. Boxes lose their session, their power or their
// disk, and the controller is replaced by another, amid everything.
#pragma once

#include <deque>
#include <set>

#include "raid/records.hpp"
#include "raid/volume_manager.hpp"
#include "raid/volume_records.hpp"
#include "support/raid_cluster.hpp"

namespace weft::test {

class ManagedVolume : public RaidCluster, private raid::VolumeManagerOwner {
public:
    struct Request final : raid::HostRequest {
        std::vector<std::byte> bytes, expected;
        std::optional<Result<void>> outcome;
        TagTable* tags = nullptr;
        /// As hosts do: the tag is closed before anybody may use the memory for something else.
        void completed(Result<void> how) override {
            EXPECT_FALSE(outcome) << "completed twice";
            outcome = how;
            if (tags) tags->erase(memory.tag);
        }
    };
    static constexpr std::uint64_t stripe_count = 8;
    virtual ~ManagedVolume() = default;

    ManagedVolume(raid::Level level, std::uint8_t box_count, std::uint64_t seed,
                  raid::VolumeManagerOptions wishes = {},
                  wire::ArrayConsistency consistency = wire::ArrayConsistency::none)
        : RaidCluster(*raid::Layout::make(level, box_count, 8192), stripe_count, seed, consistency),
          options(wishes),
          own_windows(tags, raid::own_windows_for(Windows::of_a_box)),
          own_network(agenda, tags),
          shadow(stripe_count * layout.stripe_bytes()) {
        options.windows = 4;
        options.own.windows = &own_windows;
        options.own.transfers = &own_network;
        options.own.identity.octets[0] = 200;
        options.window_bytes = 1 << 20;
        options.upkeep_bytes = 4096;
        options.rebuild_save_stripes = 3;
        if (options.request_patience == raid::VolumeManagerOptions{}.request_patience)
            options.request_patience = std::chrono::hours(24 * 365);  // time leaps here
        cluster = boxes[0]->box.superblock().cluster;
        const auto& volume = boxes[0]->box.superblock().volume;
        kept[raid::volume_record_name(volume.volume)] = raid::encode_record(volume);
        identities.resize(box_count);
        sessions.resize(box_count);
        for (unsigned i = 0; i < box_count; ++i) {
            identities[i] = volume.members[i].box;
            std::ranges::copy(raid::encode_superblock(boxes[i]->box.superblock()),
                              boxes[i]->disk.octets.all().begin());
            boxes[i]->disk.lasting = boxes[i]->disk.octets;
            listen(i);
        }
        start();
    }

private:
    // What the manager asks for.
    void carry(const wire::BoxIdentity& box, raid::CommandTicket ticket,
               const raid::EncodedOrder& command) override {
        const unsigned i = index_of(box);
        ASSERT_TRUE(sessions[i].up) << "a command for a box that is down";
        auto& queue = sessions[i].queue;
        queue.push_back({ticket, command});
        agenda.later([this, i, session = sessions[i].number] { deliver(i, session); });
    }
    void deliver(unsigned i, unsigned session) {
        if (sessions[i].number != session) return;  // lost with it
        if (sessions[i].held) return void(++sessions[i].held_back);
        auto [next, what] = std::move(sessions[i].queue.front());
        sessions[i].queue.pop_front();
        if (sessions[i].mute) return;
        ++commands;
        note_execution(what);
        if (lost_commits > 0 && is_commit(what)) {
            --lost_commits;
            return manager->lost(next);
        }
        boxes[i]->box.receive(in_session(next, session), what.command_block, what.parameters);
    }
    void create_part(const wire::BoxIdentity& box, raid::CommandTicket ticket,
                     const wire::ArraySuperblock& superblock) override {
        const unsigned i = index_of(box);
        agenda.later([this, i, ticket, superblock, session = sessions[i].number] {
            if (sessions[i].number != session) return;
            if (sessions[i].full)
                return manager->answered(ticket, {.outcome = wire::ArrayOutcome::no_room});
            auto own = superblock;
            lay_out(own);
            make_box(i, own);
            boxes[i]->format();
            std::ranges::copy(raid::encode_superblock(own), boxes[i]->disk.octets.all().begin());
            boxes[i]->disk.lasting = boxes[i]->disk.octets;
            manager->answered(ticket, {});
        });
    }
    SteeringTag window_tag(const wire::BoxIdentity& box, std::uint32_t,
                           wire::TransactionNumber transaction) override {
        const unsigned i = box == options.own.identity ? 40 : index_of(box);
        return SteeringTag{static_cast<std::uint32_t>(
            0x10'0000 * (i + 1) + static_cast<std::uint64_t>(transaction) % 0x8'0000 +
            0x8'0000 * (epoch % 2))};
    }
    void store(std::vector<raid::MetadataChange> changes) override {
        EXPECT_FALSE(std::exchange(storing, true)) << "two changes at once";
        agenda.later([this, changes = std::move(changes), office = epoch] {
            if (office != epoch) return;
            storing = false;
            if (store_fails > 0) return --store_fails, manager->stored(Error{Code::io_failed});
            for (const auto& change : changes)
                if (change.record)
                    kept[change.name] = *change.record;
                else
                    kept.erase(change.name);
            manager->stored({});
        });
    }
    void needs_spare(std::uint8_t place) override {
        if (spares.empty()) return;
        const auto spare = spares.front();
        agenda.later([this, place, spare, office = epoch] {
            if (office != epoch || spares.empty() || spares.front() != spare) return;
            if (manager->replace(place, spare)) spares.pop_front();
        });
    }
    void event(const raid::VolumeEvent& event) override { events.push_back(event); }
    void deadline_changed() override {}

public:
    // What happens to boxes.
    void drop(unsigned i) {
        if (!std::exchange(sessions[i].up, false)) return;
        ++sessions[i].number;
        sessions[i].queue.clear();
        sessions[i].held_back = 0;
        manager->box_down(identities[i]);
    }
    void bring(unsigned i) {
        if (std::exchange(sessions[i].up, true)) return;
        const bool has = boxes[i] != nullptr;
        if (has && boxes[i]->box.superblock().epoch < wire::Epoch{epoch}) announce(i);
        const auto known = has ? boxes[i]->box.superblock() : wire::ArraySuperblock{};
        manager->box_up(identities[i], {.has_part = has,
                                        .generation = known.volume.generation,
                                        .data_length = known.data_length,
                                        .boot = sessions[i].boot});
    }
    /// It takes no command, until it is let go: then all that came meanwhile.
    void hold(unsigned i) { sessions[i].held = true; }
    void let_go(unsigned i) {
        sessions[i].held = false;
        for (auto count = std::exchange(sessions[i].held_back, 0u); count > 0; --count)
            agenda.later([this, i, session = sessions[i].number] { deliver(i, session); });
    }
    /// All it had not flushed is gone, and what it was doing.
    void cut_power(unsigned i) {
        drop(i);
        auto disk = boxes[i]->disk.lasting;
        const auto known =
            raid::newest_superblock(disk.all().first(4096), disk.all().subspan(4096, 4096));
        ASSERT_TRUE(known);
        make_box(i, *known);
        boxes[i]->disk.octets = boxes[i]->disk.lasting = disk;
        sessions[i].boot += 100;
        boxes[i]->recover();
    }
    /// Its disk is another one, and empty.
    void wipe(unsigned i) {
        drop(i);
        bury(i);
    }
    unsigned add_spare_box() {
        const auto i = static_cast<unsigned>(boxes.size());
        boxes.push_back(nullptr);
        sessions.emplace_back();
        auto& identity = identities.emplace_back();
        identity.octets[0] = static_cast<std::uint8_t>(10 + i);
        bring(i);
        return i;
    }
    /// Everything is without power: nobody has anything but what was lasting.
    void cut_all_power() {
        for (unsigned i = 0; i < boxes.size(); ++i) cut_power(i);
        replace_controller();
    }
    /// Another takes office: it has the store and the boxes, and hosts ask again.
    void replace_controller() {
        ++epoch;
        storing = false;
        own_windows.vanish();
        offices.back()->is_held = false;
        for (unsigned i = 0; i < boxes.size(); ++i) {
            ++sessions[i].number;
            sessions[i].queue.clear();
            sessions[i].held_back = 0;
            sessions[i].was_up = std::exchange(sessions[i].up, false);
        }
        start();
        for (unsigned i = 0; i < boxes.size(); ++i)
            if (sessions[i].was_up) bring(i);
        for (auto& request : requests) {
            if (request->outcome) continue;
            request->repeated = true;
            if (hosts_ask_again) manager->submit(*request);
        }
    }

    // What hosts do.
    Request& submit(raid::HostOperation operation, raid::Range range, bool in_band = false) {
        auto& request = *requests.emplace_back(std::make_unique<Request>());
        request.operation = operation;
        request.range = range;
        request.bytes.resize(range.length);
        auto place = std::span(shadow).subspan(range.offset, range.length);
        if (operation == raid::HostOperation::write) {
            for (auto& octet : request.bytes) octet = static_cast<std::byte>(agenda.random());
            std::ranges::copy(request.bytes, place.begin());
        }
        request.expected.assign(place.begin(), place.end());
        const SteeringTag tag{static_cast<std::uint32_t>(0x8000'0000 + requests.size())};
        tags[tag] = request.bytes;
        request.tags = &tags;
        request.memory.tag = tag;
        request.in_band = in_band;
        request.command = requests.size();
        request.host_identity.octets[0] = 1;
        manager->submit(request);
        return request;
    }
    raid::Range draw() {
        const std::uint64_t slices = shadow.size() / raid::slice_size;
        const std::uint64_t first = agenda.random() % slices;
        const std::uint64_t most = std::min<std::uint64_t>(slices - first, 12);
        return {first * raid::slice_size, (1 + agenda.random() % most) * raid::slice_size};
    }
    void submit_randomly(int count) {
        for (int i = 0; i < count; ++i) {
            const auto kind = agenda.random() % 8;  // drawn first, whatever the compiler
            if (kind == 0)
                submit(raid::HostOperation::flush, {});
            else
                submit(kind % 2 ? raid::HostOperation::write : raid::HostOperation::read, draw(),
                       in_band_too && agenda.random() % 3 == 0);
            some_steps(agenda.random() % 40);
        }
    }
    void some_steps(std::uint64_t steps) {
        for (; steps > 0; --steps)
            if (!agenda.step()) pass_time();
    }
    /// To the next moment something is due.
    bool pass_time() {
        auto due = manager->deadline();
        if (!due) return false;
        now = std::max(now, *due);
        manager->tick(now);
        return true;
    }
    /// All that is due within a span happens.
    void pass(Duration span) {
        for (const Instant end = now + span; now < end;) {
            agenda.run();
            const auto due = manager->deadline();  // before now: as soon as it is told the time
            now = due ? std::clamp(*due, now, end) : end;
            manager->tick(now);
        }
        agenda.run();
    }
    /// Until it is so, or for so long that it never will be.
    template <class Condition>
    bool run_until(Condition condition) {
        for (int i = 0; i < 2'000'000; ++i) {
            if (condition()) return true;
            if (!agenda.step() && !pass_time()) return condition();
        }
        return false;
    }
    bool all_answered() const {
        return std::ranges::all_of(requests, [](const auto& r) { return r->outcome.has_value(); });
    }
    bool is_healthy() const { return manager->status().state == raid::VolumeState::healthy; }
    void expect_all_right() {
        ASSERT_TRUE(run_until([&] { return all_answered(); }));
        for (const auto& request : requests) {
            ASSERT_TRUE(*request->outcome) << "code " << int(request->outcome->error().code) << "\n"
                                           << story();
            ASSERT_TRUE(request->bytes == request->expected)
                << "at " << request->range.offset << ", " << request->range.length << " octets\n"
                << story();
        }
    }
    /// All of it reads back, and the boxes agree.
    void expect_whole() {
        ASSERT_TRUE(run_until([&] { return all_answered() && is_healthy(); })) << story();
        expect_all_right();
        for (std::uint64_t at = 0; at < shadow.size(); at += 8 * raid::slice_size)
            submit(raid::HostOperation::read,
                   {at, std::min<std::uint64_t>(8 * raid::slice_size, shadow.size() - at)});
        expect_all_right();
        ASSERT_TRUE(manager->scrub(false));
        ASSERT_TRUE(run_until([&] { return !manager->status().scrub.running; }));
        const auto scrub = manager->status().scrub;
        EXPECT_EQ(scrub.done, manager->volume().stripes);
        EXPECT_EQ(scrub.mismatches, 0u) << story();
        EXPECT_EQ(scrub.unchecked, 0u) << story();
    }
    void expect_nobody_counted_out() {
        EXPECT_EQ(count(raid::VolumeEventKind::box_failed), 0u) << story();
        EXPECT_EQ(count(raid::VolumeEventKind::member_absent), 0u) << story();
    }
    /// What has happened, for whoever reads why a test failed.
    std::string story() const {
        std::string text = "state " + raid::to_text(manager->status().state);
        for (const auto& member : manager->status().members)
            text += "\n  place " + std::to_string(member.place) + " state " +
                    std::to_string(int(member.state)) + (member.up ? " up" : " down") +
                    (member.failed ? " failed" : "");
        for (const auto& rebuild : manager->status().rebuilds)
            text += "\n  rebuild " + std::to_string(rebuild.done) + " of " +
                    std::to_string(rebuild.to_do);
        for (const auto& event : events)
            text += "\n" + raid::to_text(event.kind) +
                    (event.place ? " place " + std::to_string(*event.place) : "") + " " +
                    raid::to_text(event.why) + " " + std::to_string(event.number);
        return text;
    }
    std::size_t count(raid::VolumeEventKind kind) const {
        return static_cast<std::size_t>(std::ranges::count(events, kind, &raid::VolumeEvent::kind));
    }
    unsigned index_of(const wire::BoxIdentity& box) const {
        return static_cast<unsigned>(std::ranges::find(identities, box) - identities.begin());
    }

    struct Session {
        bool up = false, was_up = false, full = false, mute = false, held = false;
        unsigned held_back = 0;  ///< commands that came while it was held
        unsigned number = 0;
        std::uint64_t boot = 100;  ///< another after every loss of power
        std::deque<std::pair<raid::CommandTicket, raid::EncodedOrder>> queue;
    };
    raid::VolumeManagerOptions options;
    Windows own_windows;
    Network own_network;
    raid::VolumeManager* manager = nullptr;  ///< the one in office
    std::vector<std::byte> shadow;
    std::vector<std::unique_ptr<Request>> requests;
    std::vector<wire::BoxIdentity> identities;
    std::vector<Session> sessions;
    std::deque<wire::BoxIdentity> spares;
    std::map<std::string, std::vector<std::byte>> kept;
    std::vector<raid::VolumeEvent> events;
    wire::ClusterIdentity cluster;
    std::uint64_t epoch = 1;
    Instant now{};
    unsigned commands = 0;
    int store_fails = 0;
    int lost_commits = 0;      ///< so many of the next orders that write home get lost on their way
    bool in_band_too = false;  ///< some of the random requests go by way of the controller
    bool hosts_ask_again = true;
    /// With a journal: as which transactions a host's command was committed, one at most.
    std::map<std::uint64_t, std::set<wire::TransactionNumber>> executions;
    bool storing = false;

private:
    /// A manager, and who hears it: nobody, once another is in office.
    struct Office final : raid::VolumeManagerOwner {
        explicit Office(ManagedVolume& all) : volume(all), manager(*this, all.options) {}
        void carry(const wire::BoxIdentity& box, raid::CommandTicket ticket,
                   const raid::EncodedOrder& command) override {
            if (is_held) volume.carry(box, ticket, command);
        }
        void create_part(const wire::BoxIdentity& box, raid::CommandTicket ticket,
                         const wire::ArraySuperblock& superblock) override {
            if (is_held) volume.create_part(box, ticket, superblock);
        }
        SteeringTag window_tag(const wire::BoxIdentity& box, std::uint32_t window,
                               wire::TransactionNumber transaction) override {
            return volume.window_tag(box, window, transaction);
        }
        void store(std::vector<raid::MetadataChange> changes) override {
            if (is_held) volume.store(std::move(changes));
        }
        void needs_spare(std::uint8_t place) override {
            if (is_held) volume.needs_spare(place);
        }
        void event(const raid::VolumeEvent& event) override {
            if (is_held) volume.event(event);
        }
        void deadline_changed() override {}

        ManagedVolume& volume;
        bool is_held = true;
        raid::VolumeManager manager;
    };

    void note_execution(const raid::EncodedOrder& what) {
        const auto transaction = what.command_block.transaction;
        if (wire::is_order(what.command_block.action)) {
            const auto header = decode<wire::ArrayOrderHeader>(what.parameters);
            if (header->to_prepare != 0) commands_of[transaction] = header->host_command;
        }
        const bool resolves = what.command_block.action == wire::ArrayAction::resolve;
        auto found = commands_of.find(transaction);
        if (found != commands_of.end() && found->second != 0 && (resolves || is_commit(what)))
            executions[found->second].insert(transaction);
    }
    static bool is_commit(const raid::EncodedOrder& order) {
        if (!wire::is_order(order.command_block.action)) return false;
        const auto header = decode<wire::ArrayOrderHeader>(order.parameters);
        return header && header->participants != 0 &&
               header->phase == static_cast<std::uint8_t>(raid::Phase::commit);
    }
    void start() {
        offices.push_back(std::make_unique<Office>(*this));
        manager = &offices.back()->manager;
        manager->note_time(now);
        raid::VolumeRecords records;
        std::optional<wire::ArrayVolume> volume;
        for (const auto& [name, record] : kept) {
            if (auto found = raid::parse_record<wire::ArrayVolume>(record)) volume = *found;
            records.take(record);
        }
        ASSERT_TRUE(volume);
        ASSERT_TRUE(manager->start(cluster, wire::Epoch{epoch}, *volume, records));
        if (epoch == 1)
            for (unsigned i = 0; i < boxes.size(); ++i) bring(i);
    }
    void announce(unsigned i) {
        auto address = address_of(i);
        address.epoch = wire::Epoch{epoch};
        const auto octets = weft::encoded(address);
        boxes[i]->box.receive(
            raid::CommandTicket{0xffff'ffff'0000'0000},
            {wire::ArrayAction::new_epoch, {}, static_cast<std::uint32_t>(octets.size()), {}},
            octets);
        while (boxes[i]->box.superblock().epoch != wire::Epoch{epoch} && agenda.step())
            ;
    }
    void listen(unsigned i) {
        boxes[i]->records = false;
        boxes[i]->on_data = [this, i](raid::CommandTicket ticket, const wire::ArrayAnswer& answer,
                                      ConstBuffer octets) {
            std::vector<std::byte> data(octets.begin(), octets.end());
            agenda.later([this, i, ticket, answer, data = std::move(data)] {
                const auto number = static_cast<std::uint64_t>(ticket);
                if (sessions[i].number != (number >> 32 & 0x7fff'ffff)) return;
                manager->answered(raid::CommandTicket{number & 0x8000'0000'ffff'ffff}, answer,
                                  data);
            });
        };
        boxes[i]->on_answer = [this, i](raid::CommandTicket ticket,
                                        const wire::ArrayAnswer& answer) {
            agenda.later([this, i, ticket, answer] {
                const auto number = static_cast<std::uint64_t>(ticket);
                if (sessions[i].number != (number >> 32 & 0x7fff'ffff)) return;
                manager->answered(raid::CommandTicket{number & 0x8000'0000'ffff'ffff}, answer);
            });
        };
    }
    /// Answers must not be taken for those of a later session, or to a later controller.
    static raid::CommandTicket in_session(raid::CommandTicket ticket, unsigned session) {
        return raid::CommandTicket{static_cast<std::uint64_t>(ticket) | std::uint64_t{session}
                                                                            << 32};
    }
    void bury(unsigned i) {
        if (!boxes[i]) return;
        boxes[i]->windows.vanish();
        boxes[i]->on_answer = nullptr;
        boxes[i]->on_data = nullptr;
        graves.push_back(std::move(boxes[i]));  // disks and peers may still answer it
    }
    void make_box(unsigned i, const wire::ArraySuperblock& superblock) {
        bury(i);
        boxes[i] = std::make_unique<TestBox>(agenda, tags, superblock);
        listen(i);
    }

    std::map<wire::TransactionNumber, std::uint64_t> commands_of;
    std::vector<std::unique_ptr<TestBox>> graves;
    std::vector<std::unique_ptr<Office>> offices;  ///< transfers of old ones may still end
};

/// All levels in turn.
inline raid::Level level_of(std::uint64_t seed) {
    if (seed % 3 == 0) return raid::Level::mirror;
    return seed % 3 == 1 ? raid::Level::raid5 : raid::Level::raid6;
}
inline std::uint8_t boxes_of(std::uint64_t seed) {
    return seed % 3 == 0 ? 3 : 5;
}

}  // namespace weft::test
