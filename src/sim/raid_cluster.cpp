// SPDX-License-Identifier: Apache-2.0
#include "sim/raid_cluster.hpp"

#include <algorithm>

namespace weft::sim {

namespace {

/// Room for some twenty requests, so that it is full now and then.
constexpr std::uint64_t journal_bytes = raid::journal_ring_offset + 128 * wire::journal_block;
constexpr unsigned controller_place = 40;

}  // namespace

/// A manager, and who hears it. Of one that was replaced the store and hosts want to know nothing.
struct RaidCluster::Office final : raid::VolumeManagerOwner {
    explicit Office(RaidCluster& all)
        : cluster(all),
          number(all.epoch_),
          transfers(all.agenda_, all.tags),
          windows(all.tags, all.complaints_),
          manager(*this, options()) {}

    raid::VolumeManagerOptions options() {
        auto options = cluster.options_;
        options.own.windows = &windows;
        options.own.transfers = &transfers;
        return options;
    }

    bool is_held() const { return number == cluster.epoch_; }
    void carry(const wire::BoxIdentity& box, raid::CommandTicket ticket,
               const raid::EncodedOrder& command) override {
        if (is_alive) cluster.carry(*this, box, ticket, command);
    }
    void create_part(const wire::BoxIdentity& box, raid::CommandTicket ticket,
                     const wire::ArraySuperblock& superblock) override {
        if (is_alive && is_held()) cluster.create_part(*this, box, ticket, superblock);
    }
    SteeringTag window_tag(const wire::BoxIdentity& box, std::uint32_t,
                           wire::TransactionNumber transaction) override {
        const unsigned place =
            box == cluster.options_.own.identity ? controller_place : cluster.index_of(box);
        const auto turn = static_cast<std::uint64_t>(transaction) % 0x8000 + 0x8000 * (number % 16);
        return SteeringTag{static_cast<std::uint32_t>(0x10'0000 * (place + 1) + turn)};
    }
    void store(std::vector<raid::MetadataChange> changes) override {
        if (is_alive) cluster.store(*this, std::move(changes));
    }
    void needs_spare(std::uint8_t) override {}
    void event(const raid::VolumeEvent& event) override {
        if (is_held() && cluster.on_event) cluster.on_event(event);
    }
    void deadline_changed() override {}

    RaidCluster& cluster;
    std::uint64_t number;
    bool is_alive = true, storing = false;
    std::map<unsigned, std::uint64_t> sessions;  ///< by place
    RaidTransfers transfers;
    RaidWindows windows;
    raid::VolumeManager manager;
};

RaidCluster::RaidCluster(RaidAgenda& agenda, Complaints& complaints, const RaidHabits& habits,
                         RaidMutation mutation)
    : agenda_(agenda),
      complaints_(complaints),
      habits_(habits),
      mutation_(mutation),
      layout_(*raid::Layout::make(habits.level, habits.boxes, habits.chunk_bytes)) {
    options_.plan = habits.plan;
    options_.windows = RaidWindows::count;
    options_.own.identity.octets[0] = 200;
    options_.window_bytes = 1 << 20;
    options_.upkeep_bytes = 4096;
    options_.rebuild_save_stripes = 3;
    // Without a journal a write given up amid its commit leaves a hole: then it is not given up.
    if (habits.consistency == wire::ArrayConsistency::none)
        options_.stop_patience = std::chrono::hours(24 * 365);
    wire::ArraySuperblock superblock;
    superblock.cluster.octets[0] = 1;
    superblock.epoch = wire::Epoch{1};
    superblock.data_offset = 2 * wire::superblock_size;
    if (habits.consistency == wire::ArrayConsistency::journal) {
        superblock.journal_offset = superblock.data_offset;
        superblock.journal_length = journal_bytes;
        superblock.data_offset += superblock.journal_length;
    }
    superblock.data_length = habits.stripes * layout_.chunk_bytes();
    auto& volume = superblock.volume;
    volume.volume.octets[0] = 2;
    volume.generation = wire::Generation{1};
    volume.level = static_cast<std::uint8_t>(layout_.level());
    volume.boxes = layout_.boxes();
    volume.consistency = habits.consistency;
    volume.chunk_bytes = layout_.chunk_bytes();
    volume.stripes = habits.stripes;
    for (std::uint8_t i = 0; i < layout_.boxes(); ++i) {
        volume.members[i].box.octets[0] = static_cast<std::uint8_t>(10 + i);
        volume.members[i].state = wire::ArrayMemberState::current;
    }
    cluster_ = superblock.cluster;
    records_[raid::volume_record_name(volume.volume)] = raid::encode_record(volume);
    places_.resize(layout_.boxes());
    for (std::uint8_t i = 0; i < layout_.boxes(); ++i) {
        auto& place = places_[i];
        superblock.place = i;
        superblock.box = place.identity = volume.members[i].box;
        place.disk = std::make_unique<RaidDisk>(agenda_, raid::part_length(superblock));
        std::ranges::copy(raid::encode_superblock(superblock), place.disk->octets().begin());
        start_machine(i);
        place.machine->format();
        place.disk->make_stable();
        place.disk->lies = mutation == RaidMutation::flushes_do_nothing;
    }
    start_office();
    for (unsigned i = 0; i < boxes(); ++i) bring(i);
}

RaidCluster::~RaidCluster() = default;

void RaidCluster::start_machine(unsigned i) {
    auto& place = places_[i];
    const auto first = place.disk->octets().first(wire::superblock_size);
    const auto second = place.disk->octets().subspan(wire::superblock_size, wire::superblock_size);
    const auto known = raid::newest_superblock(first, second);
    if (!known) return complaints_.add("S17: a box has no superblock after its power went");
    if (place.machine) {
        place.machine->vanish();
        graves_.push_back(std::move(place.machine));
    }
    place.machine = std::make_unique<RaidMachine>(
        agenda_, tags, complaints_, *place.disk, *known, raid::copy_to_write(first, second) ^ 1,
        [this](raid::CommandTicket ticket, const wire::ArrayAnswer& answer, ConstBuffer data) {
            heard(ticket, answer, data);
        });
}

void RaidCluster::start_office() {
    offices_.push_back(std::make_unique<Office>(*this));
    manager_ = &offices_.back()->manager;
    raid::VolumeRecords records;
    std::optional<wire::ArrayVolume> volume;
    for (const auto& [name, record] : records_) {
        if (auto found = raid::parse_record<wire::ArrayVolume>(record)) volume = *found;
        if (auto found = raid::parse_record<wire::ArrayRebuildRecord>(record))
            records.rebuilds.push_back(*found);
        if (auto found = raid::parse_dirty_record(record)) records.dirty.push_back(*found);
    }
    const bool started = volume && manager_->start(cluster_, wire::Epoch{epoch_}, *volume, records);
    if (!started) complaints_.add("S17: the store has no volume to begin with");
}

unsigned RaidCluster::index_of(const wire::BoxIdentity& box) const {
    for (unsigned i = 0; i < boxes(); ++i)
        if (places_[i].identity == box) return i;
    return boxes();
}

// Commands and answers.

void RaidCluster::carry(Office& office, const wire::BoxIdentity& box, raid::CommandTicket ticket,
                        const raid::EncodedOrder& command) {
    const auto found = office.sessions.find(index_of(box));
    if (found == office.sessions.end()) return complaints_.add("a command for a box that is down");
    const auto number = found->second;
    const auto session = sessions_.find(number);
    if (session == sessions_.end()) return;  // went with the box's power, and it has not heard yet
    session->second.queue.push_back({ticket, command});
    agenda_.later([this, number] { deliver(number); });
}

void RaidCluster::deliver(std::uint64_t number) {
    const auto found = sessions_.find(number);
    if (found == sessions_.end() || found->second.queue.empty()) return;
    auto& [i, office, queue] = found->second;
    if (places_[i].held) return agenda_.later([this, number] { deliver(number); });
    auto command = std::move(queue.front());
    queue.pop_front();
    const auto carried = ++last_carried_;
    carried_[carried] = {number, command.ticket};
    if (is_swallowed(command.order))
        return heard(raid::CommandTicket{carried},
                     {.transaction = command.order.command_block.transaction}, {});
    if (mutation_ == RaidMutation::transfers_are_damaged && agenda_.random.chance(5))
        places_[i].machine->transfers.is_damaged = true;
    places_[i].machine->box.receive(raid::CommandTicket{carried}, command.order.command_block,
                                    command.order.parameters);
}

/// Commands that get lost on purpose, and that nobody misses.
bool RaidCluster::is_swallowed(const raid::EncodedOrder& order) const {
    if (mutation_ == RaidMutation::aborts_are_lost)
        return order.command_block.action == wire::ArrayAction::abort;
    if (mutation_ != RaidMutation::commits_are_lost) return false;
    if (!wire::is_order(order.command_block.action)) return false;
    const auto header = decode<wire::ArrayOrderHeader>(order.parameters);
    return header && header->phase == static_cast<std::uint8_t>(raid::Phase::commit) &&
           static_cast<std::uint64_t>(order.command_block.transaction) % 5 == 0;
}

void RaidCluster::forget_epoch(unsigned i) {
    auto octets = places_[i].disk->octets();
    for (std::size_t copy = 0; copy < 2; ++copy) {
        const auto image = octets.subspan(copy * wire::superblock_size, wire::superblock_size);
        auto known = raid::parse_superblock(image);
        if (!known) continue;
        known->epoch = wire::Epoch{1};
        std::ranges::copy(raid::encode_superblock(*known), image.begin());
    }
}

void RaidCluster::heard(raid::CommandTicket ticket, const wire::ArrayAnswer& answer,
                        ConstBuffer data) {
    const auto found = carried_.find(static_cast<std::uint64_t>(ticket));
    if (found == carried_.end()) return;
    const auto [number, own] = found->second;
    carried_.erase(found);
    std::vector<std::byte> told(data.begin(), data.end());
    if (mutation_ == RaidMutation::recall_finds_nothing && !told.empty())
        told = raid::encode_recall({});
    agenda_.later([this, to = number, of = own, answer, told = std::move(told)] {
        const auto session = sessions_.find(to);
        if (session == sessions_.end()) return;
        session->second.office->manager.answered(of, answer, told);
    });
}

void RaidCluster::create_part(Office& office, const wire::BoxIdentity& box,
                              raid::CommandTicket ticket, const wire::ArraySuperblock&) {
    // Boxes of this cluster have their parts from the beginning.
    const auto found = office.sessions.find(index_of(box));
    if (found == office.sessions.end()) return;
    agenda_.later([this, number = found->second, ticket] {
        const auto session = sessions_.find(number);
        if (session == sessions_.end()) return;
        session->second.office->manager.answered(ticket, {.outcome = wire::ArrayOutcome::no_space});
    });
}

void RaidCluster::store(Office& office, std::vector<raid::MetadataChange> changes) {
    if (std::exchange(office.storing, true)) complaints_.add("two changes of the store at once");
    agenda_.later([this, &office, changes = std::move(changes)] {
        if (!office.is_alive) return;
        office.storing = false;
        if (!office.is_held()) return office.manager.stored(Error{Code::access_denied});
        if (store_errors > 0) {
            --store_errors;
            return office.manager.stored(Error{Code::io_failed});
        }
        for (const auto& change : changes) {
            if (mutation_ == RaidMutation::membership_is_lost &&
                change.name.starts_with("volumes/"))
                continue;
            if (change.record)
                records_[change.name] = *change.record;
            else
                records_.erase(change.name);
        }
        office.manager.stored({});
    });
}

// What happens to boxes and controllers.

void RaidCluster::drop(unsigned i) {
    auto& place = places_[i];
    if (place.session == 0) return;
    sessions_.erase(std::exchange(place.session, 0));
    offices_.back()->sessions.erase(i);
    manager_->box_down(place.identity);
}

void RaidCluster::bring(unsigned i) {
    auto& place = places_[i];
    if (place.session != 0 || !place.machine) return;
    restart_if_failed(i);
    if (!obeys(i)) announce(i);
    place.session = ++last_session_;
    sessions_[place.session] = {i, offices_.back().get(), {}};
    offices_.back()->sessions[i] = place.session;
    const auto& known = box(i).superblock();
    manager_->box_up(place.identity, {.has_part = true,
                                      .generation = known.volume.generation,
                                      .data_length = known.data_length,
                                      .boot = place.boot});
}

/// Who takes office says so before anything else; boxes answer when it lasts. A disk that fails
/// just then is no reason to give up.
void RaidCluster::announce(unsigned i) {
    constexpr int tries = 3, patience = 100'000;
    for (int attempt = 0; attempt < tries && !obeys(i); ++attempt) {
        const auto& known = box(i).superblock();
        const wire::ArrayAddress address{known.cluster, known.volume.volume, known.box,
                                         known.volume.generation, wire::Epoch{epoch_}};
        const auto octets = encoded(address);
        const auto size = static_cast<std::uint32_t>(octets.size());
        box(i).receive(raid::CommandTicket{++last_carried_},
                       {wire::ArrayAction::new_epoch, {}, size, {}}, octets);
        for (int steps = 0; steps < patience && !obeys(i); ++steps)
            if (!agenda_.step() && !write_marks()) break;
    }
    if (!obeys(i)) complaints_.add("L2: a box does not obey its new controller");
}

bool RaidCluster::obeys(unsigned i) {
    return box(i).superblock().epoch >= wire::Epoch{epoch_};
}

void RaidCluster::cut_power(unsigned i) {
    drop(i);
    std::erase_if(sessions_, [&](const auto& each) { return each.second.place == i; });
    auto& place = places_[i];
    place.machine->vanish();
    place.disk->errors = 0;
    place.disk->power_cut();
    place.held = false;
    ++place.boot;
    if (mutation_ == RaidMutation::epoch_is_forgotten) forget_epoch(i);
    start_machine(i);
    place.machine->recover();
}

/// A journal that could not be written takes nothing any more, until somebody starts the box anew.
bool RaidCluster::has_lost_its_journal(unsigned i) const {
    const auto& machine = places_[i].machine;
    return machine && machine->journaled && machine->journaled->has_failed();
}

bool RaidCluster::restart_if_failed(unsigned i) {
    if (!has_lost_its_journal(i)) return false;
    places_[i].disk->errors = 0;
    cut_power(i);
    return true;
}

void RaidCluster::hold(unsigned i, bool held) {
    places_[i].held = held;
}

void RaidCluster::take_over(bool old_goes_on) {
    auto& before = *offices_.back();
    ++epoch_;
    before.is_alive = old_goes_on;
    if (!old_goes_on) {
        before.windows.vanish();
        before.transfers.vanish();
        for (const auto& [place, session] : before.sessions) sessions_.erase(session);
        before.sessions.clear();
    }
    std::vector<unsigned> there;
    for (unsigned i = 0; i < boxes(); ++i)
        if (std::exchange(places_[i].session, 0) != 0) there.push_back(i);
    start_office();
    for (unsigned i : there) {
        places_[i].held = false;
        bring(i);
    }
}

/// The shortest of all waits: until marks go to the disk that nothing else has taken along.
bool RaidCluster::write_marks() {
    for (auto& place : places_) {
        if (!place.machine->journaled || !place.machine->journaled->has_waiting_marks()) continue;
        place.machine->journaled->write_marks();
        return true;
    }
    return false;
}

bool RaidCluster::pass_time() {
    if (write_marks()) return true;
    const auto due = manager_->deadline();
    constexpr auto patience = std::chrono::hours(1);
    if (!due || *due > now_ + patience) return false;
    now_ = std::max(now_, *due);
    manager_->tick(now_);
    return true;
}

// Checks.

void RaidCluster::check_quiet() {
    for (auto& office : offices_)
        if (!office->is_held()) office->windows.vanish();
    for (unsigned i = 0; i < boxes(); ++i)
        if (places_[i].machine && box(i).open_windows() != 0)
            complaints_.add("S14: box " + std::to_string(i) + " has an open window left");
    for (const auto& [tag, memory] : tags)
        if (static_cast<std::uint32_t>(tag) < 0x8000'0000)
            complaints_.add("S14: a tag of a window is left");
}

void RaidCluster::check_parity() {
    if (habits_.consistency == wire::ArrayConsistency::journal) return;  // a scrub has looked
    const auto columns = layout_.boxes();
    std::vector<RaidMemory> expected;
    for (unsigned i = 0; i < columns; ++i) expected.emplace_back(layout_.chunk_bytes());
    for (std::uint64_t stripe = 0; stripe < habits_.stripes; ++stripe) {
        auto chunk = [&](raid::Column column) {
            const auto& known = box(raid::number(layout_.box_of(stripe, column))).superblock();
            return places_[raid::number(layout_.box_of(stripe, column))].disk->octets().subspan(
                known.data_offset + layout_.home_of(stripe), layout_.chunk_bytes());
        };
        for (raid::Column column = 0; column < columns; ++column)
            std::ranges::copy(chunk(layout_.level() == raid::Level::mirror ? 0 : column),
                              expected[column].all().begin());
        if (layout_.level() != raid::Level::mirror) {
            std::vector<ConstBuffer> data;
            for (raid::Column column = 0; column < layout_.data_columns(); ++column)
                data.push_back(expected[column].all());
            raid::encode_parity(
                data, expected[layout_.row_parity()].all(),
                layout_.has_diagonal() ? expected[layout_.diagonal_parity()].all() : Buffer{});
        }
        for (raid::Column column = 0; column < columns; ++column)
            if (!std::ranges::equal(chunk(column), expected[column].all()))
                complaints_.add("S5: column " + std::to_string(column) + " of stripe " +
                                std::to_string(stripe) + " is not what the code says");
    }
}

void RaidCluster::check_epochs() {
    for (auto& place : places_) {
        if (!place.machine) continue;
        const auto epoch = place.machine->box.superblock().epoch;
        if (epoch < place.obeyed) complaints_.add("S7: a box obeys a lower epoch than before");
        place.obeyed = epoch;
    }
}

void RaidCluster::check_assembly() {
    std::vector<wire::ArraySuperblock> found;
    for (auto& place : places_) {
        const auto known = raid::newest_superblock(
            place.disk->octets().first(wire::superblock_size),
            place.disk->octets().subspan(wire::superblock_size, wire::superblock_size));
        if (known) found.push_back(*known);
    }
    const auto assembled = raid::assemble(found);
    if (!assembled) return complaints_.add("S17: the boxes alone do not make a volume");
    if (!(assembled->volume == manager_->volume()))
        complaints_.add("S17: the boxes alone make another volume");
}

}  // namespace weft::sim
