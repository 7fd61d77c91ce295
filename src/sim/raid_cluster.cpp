// SPDX-License-Identifier: Apache-2.0
#include "sim/raid_cluster.hpp"

#include <algorithm>

#include "raid/volume_engine.hpp"

#include "sim/raid_office.hpp"

namespace weft::sim {

RaidCluster::RaidCluster(RaidAgenda& agenda, Complaints& complaints, const RaidHabits& habits,
                         RaidMutation mutation)
    : agenda_(agenda),
      complaints_(complaints),
      habits_(habits),
      mutation_(mutation),
      layout_(*raid::Layout::make(habits.level, habits.boxes, habits.chunk_bytes)) {
    options_.plan = habits.plan;
    options_.windows = RaidWindows::count;
    options_.own.identity = wire::identity_of(Office::own_session);
    options_.window_bytes = raid_window_bytes;
    options_.upkeep_bytes = 4096;
    options_.rebuild_save_stripes = 3;
    // Without a journal a write given up amid its commit leaves a hole: then it is not given up.
    if (habits.consistency == wire::ArrayConsistency::none)
        options_.request_patience = std::chrono::hours(24 * 365);
    wire::ArraySuperblock superblock;
    superblock.cluster.octets[0] = 1;
    superblock.epoch = wire::Epoch{1};
    superblock.data_length = home_bytes();
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
    places_.resize(layout_.boxes() + habits.spares);
    for (std::uint8_t i = 0; i < layout_.boxes(); ++i) {
        superblock.place = i;
        superblock.box = places_[i].identity = volume.members[i].box;
        made_part(i, superblock);
    }
    for (unsigned i = layout_.boxes(); i < machines(); ++i)
        places_[i].identity.octets[0] = static_cast<std::uint8_t>(10 + i);
    start_office();
    for (unsigned i = 0; i < machines(); ++i) bring(i);
    for (auto& place : places_) place.gone_at.reset();
}

/// Where things lie in a part of this cluster: closer together than on real disks.
wire::ArraySuperblock RaidCluster::laid_out(wire::ArraySuperblock superblock) const {
    superblock.data_offset = 2 * wire::superblock_size;
    superblock.journal_offset = superblock.journal_length = 0;
    if (habits_.consistency != wire::ArrayConsistency::journal) return superblock;
    superblock.journal_offset = superblock.data_offset;
    superblock.journal_length =
        raid::journal_ring_offset + habits_.journal_blocks * wire::journal_block;
    superblock.data_offset += superblock.journal_length;
    superblock.columns = layout_.data_columns();
    return superblock;
}

void RaidCluster::made_part(unsigned i, wire::ArraySuperblock superblock) {
    auto& place = places_[i];
    superblock = laid_out(superblock);
    place.disk = std::make_unique<RaidDisk>(agenda_, raid::part_length(superblock));
    place.disk->machine = &agenda_.world.host(name_of(i));
    const auto image = raid::encode_superblock(superblock);
    for (unsigned copy = 0; copy < 2; ++copy)
        std::ranges::copy(image,
                          place.disk->octets().subspan(copy * wire::superblock_size).begin());
    start_machine(i);
    place.machine->format();
    place.disk->make_stable();
    place.disk->fate = [this, i](std::uint64_t offset, std::size_t size) {
        return write_fate ? write_fate(i, offset, size) : RaidDisk::Fate{};
    };
    place.disk->lies = mutation_ == RaidMutation::flushes_do_nothing;
}

RaidCluster::~RaidCluster() = default;

void RaidCluster::start_machine(unsigned i) {
    auto& place = places_[i];
    const auto first = place.disk->octets().first(wire::superblock_size);
    const auto second = place.disk->octets().subspan(wire::superblock_size, wire::superblock_size);
    const auto known = raid::newest_superblock(first, second);
    if (!known) {
        // One copy rotten, and the other torn: its disk is as good as another one.
        const auto damaged = place.disk->damaged();
        if (damaged.empty() || *damaged.begin() >= 2 * wire::superblock_size)
            complaints_.add("S17: a box has no superblock after its power went");
        return wipe(i);
    }
    bury(i);
    place.machine = std::make_unique<RaidMachine>(
        agenda_, complaints_, name_of(i), *place.disk, *known,
        raid::copy_to_write(first, second) ^ 1,
        [this](raid::CommandTicket ticket, const wire::ArrayAnswer& answer, ConstBuffer data) {
            heard(ticket, answer, data);
        });
    listen_to(place.machine->station, place.machine->transfers);
}

raid::VolumeManager& RaidCluster::manager() {
    return offices_.back()->at_work();
}

void RaidCluster::start_office() {
    offices_.push_back(std::make_unique<Office>(*this));
    manager_ = &offices_.back()->manager;
    listen_to(offices_.back()->station, offices_.back()->transfers);
    raid::VolumeRecords records;
    const auto volume = stored_volume();
    for (const auto& [name, record] : records_) records.take(record);
    const bool started = volume && manager_->start(cluster_, wire::Epoch{epoch_}, *volume, records);
    if (!started) complaints_.add("S17: the store has no volume to begin with");
}

unsigned RaidCluster::index_of(const wire::BoxIdentity& box) const {
    for (unsigned i = 0; i < machines(); ++i)
        if (places_[i].identity == box) return i;
    return machines();
}

unsigned RaidCluster::machine_at(std::uint8_t place) const {
    return index_of(manager_->volume().members[place].box);
}

std::optional<std::uint8_t> RaidCluster::place_of(unsigned i) const {
    for (std::uint8_t place = 0; place < layout_.boxes(); ++place)
        if (machine_at(place) == i) return place;
    return std::nullopt;
}

// Commands and answers.

void RaidCluster::carry(Office& office, const wire::BoxIdentity& box, raid::CommandTicket ticket,
                        const raid::EncodedOrder& command) {
    const auto found = office.sessions.find(index_of(box));
    if (found == office.sessions.end()) return complaints_.add("a command for a box that is down");
    const auto number = found->second;
    const auto session = sessions_.find(number);
    if (session == sessions_.end()) return;  // went with the box's power, and it has not heard yet
    if (wire::is_order(command.command_block.action) && office.is_held())
        if (const auto header = decode<wire::ArrayOrderHeader>(command.parameters))
            carried_generation_ = std::max(carried_generation_, header->address.generation);
    session->second.queue.push_back({ticket, command});
    agenda_.later([this, number] { deliver(number); });
}

namespace {

bool fetches_from_a_box(const raid::EncodedOrder& order) {
    const auto parsed =
        raid::parse_order(order.command_block, order.parameters,
                          {.home_length = ~std::uint64_t{0}, .window_limit = ~std::uint32_t{0}});
    return parsed && std::ranges::any_of(parsed->order.pieces, [](const raid::Piece& piece) {
               return piece.verb == raid::Verb::fetch && piece.peer.kind == raid::PartyKind::box;
           });
}

}  // namespace

void RaidCluster::deliver(std::uint64_t number) {
    const auto found = sessions_.find(number);
    if (found == sessions_.end() || found->second.queue.empty()) return;
    auto& [i, office, queue] = found->second;
    if (is_paused(i))
        return agenda_.on(agenda_.world.host(name_of(i)), [this, number] { deliver(number); });
    if (const auto other = queue.front().forgets) {
        queue.pop_front();
        return forget_at(i, *other);
    }
    auto message = message_of(i, queue.front().order);
    if (!passes(message)) return parked_.push_back([this, number] { deliver(number); });
    auto command = std::move(queue.front());
    queue.pop_front();
    if (!places_[i].machine) {  // of a volume it has no part of
        carried_[++last_carried_] = {number, command.ticket, false, {}};
        return heard(raid::CommandTicket{last_carried_},
                     {.outcome = wire::ArrayOutcome::wrong_volume}, {});
    }
    const auto carried = ++last_carried_;
    message.command = nullptr;
    carried_[carried] = {number, command.ticket,
                         box(i).superblock().epoch > wire::Epoch{office->number}, message};
    if (is_swallowed(i, command.order)) {
        carried_[carried].is_late = false;  // nobody has obeyed
        return heard(raid::CommandTicket{carried},
                     {.transaction = command.order.command_block.transaction}, {});
    }
    tamper_with(i, *office, command.order);
    if (damages > 0 && is_audited(message.order) && fetches_from_a_box(command.order)) {
        --damages;
        places_[i].machine->transfers.damaged_key =
            raid::window_key(command.order.command_block.transaction);
    }
    places_[i].machine->box.receive(raid::CommandTicket{carried}, command.order.command_block,
                                    command.order.parameters);
}

/// In a volume that lacks nothing: what boxes fetch from each other is compared before it is
/// decided, of hosts' writes, and of what is made anew if that is not diagonals.
bool RaidCluster::is_audited(const wire::ArrayOrderHeader& header) const {
    const auto& volume = manager_->volume();
    const bool is_upkeep = header.host == wire::HostSession{};
    if (header.participants == 0 || (is_upkeep && layout_.has_diagonal()) ||
        header.phase != static_cast<std::uint8_t>(raid::Phase::parity) ||
        header.address.generation != volume.generation)
        return false;
    return std::ranges::all_of(
        std::span(volume.members).first(volume.boxes),
        [](const auto& member) { return member.state == wire::ArrayMemberState::current; });
}

void RaidCluster::heard(raid::CommandTicket ticket, const wire::ArrayAnswer& said,
                        ConstBuffer data) {
    const auto found = carried_.find(static_cast<std::uint64_t>(ticket));
    if (found == carried_.end()) return;
    Carried carried = found->second;
    carried_.erase(found);
    // What was to be damaged was this order's alone.
    if (const auto session = sessions_.find(carried.session); session != sessions_.end())
        if (const auto& machine = places_[session->second.place].machine)
            machine->transfers.damaged_key.reset();
    if (carried.is_late && said.outcome == wire::ArrayOutcome::done)
        complaints_.add("S7: a box obeys a controller whose time is over");
    if (said.outcome == wire::ArrayOutcome::no_room) ++back_pressed;
    if (mutation_ == RaidMutation::complaints_fence && raid::is_about_peer(said.outcome))
        fence(carried);
    auto answer = said;
    std::vector<std::byte> told(data.begin(), data.end());
    tamper_with(carried, answer, told);
    carried.message.is_answer = true;
    carried.message.outcome = answer.outcome;
    auto tell = [this, carried, answer, told = std::move(told)] {
        answered(carried, answer, told);
    };
    if (!passes(carried.message)) return parked_.push_back(std::move(tell));
    agenda_.later(std::move(tell));
}

void RaidCluster::answered(const Carried& carried, const wire::ArrayAnswer& answer,
                           std::vector<std::byte> data) {
    const auto session = sessions_.find(carried.session);
    if (session == sessions_.end()) return;
    auto& office = *session->second.office;
    agenda_.on(office.station.host(), [this, carried, answer, data = std::move(data)] {
        const auto still = sessions_.find(carried.session);
        if (still != sessions_.end())
            still->second.office->at_work().answered(carried.ticket, answer, data);
    });
}

void RaidCluster::submit_to(Office& office, raid::HostRequest& request) {
    if (is_passed_by(office, request))
        return agenda_.after(std::chrono::milliseconds(1),
                             [this, &office, &request] { submit_to(office, request); });
    if (mutation_ == RaidMutation::rebuilds_have_no_floor) stop_rebuilds();
    agenda_.on(office.station.host(), [&office, &request] { office.at_work().submit(request); });
}

void RaidCluster::let_go() {
    for (auto& each : std::exchange(parked_, {})) agenda_.later(std::move(each));
}

void RaidCluster::create_part(Office& office, const wire::BoxIdentity& box,
                              raid::CommandTicket ticket, const wire::ArraySuperblock& superblock) {
    const auto i = index_of(box);
    const auto found = office.sessions.find(i);
    if (found == office.sessions.end()) return;
    agenda_.later([this, i, number = found->second, ticket, superblock] {
        const auto session = sessions_.find(number);
        if (session == sessions_.end()) return;
        // Also a box without a part obeys nobody whose time is over.
        if (!session->second.office->is_held())
            return session->second.office->at_work().answered(
                ticket, {.outcome = wire::ArrayOutcome::other_epoch, .epoch = wire::Epoch{epoch_}});
        const bool is_full = parts_refused > 0 || places_[i].machine;
        if (parts_refused > 0) --parts_refused;
        places_[i].gone_at = agenda_.now();
        if (!is_full) made_part(i, superblock);
        if (!is_full) introduce(i);
        session->second.office->at_work().answered(
            ticket, {.outcome = is_full ? wire::ArrayOutcome::no_space : wire::ArrayOutcome::done});
    });
}

void RaidCluster::store(Office& office, std::vector<raid::MetadataChange> changes) {
    if (std::exchange(office.storing, true)) complaints_.add("two changes of the store at once");
    auto answer = [this, &office, changes = std::move(changes)] {
        if (!office.is_alive) return;
        office.storing = false;
        if (!office.is_held()) return office.at_work().stored(Error{Code::access_denied});
        if (store_errors > 0) {
            --store_errors;
            return office.at_work().stored(Error{Code::io_failed});
        }
        for (const auto& change : changes) {
            if (is_dropped(change)) continue;
            if (change.record)
                records_[change.name] = *change.record;
            else
                records_.erase(change.name);
        }
        check_checkpoints();
        office.at_work().stored({});
    };
    if (store_is_away) return parked_.push_back(std::move(answer));
    agenda_.later(
        [this, &office, answer = std::move(answer)] { agenda_.on(office.station.host(), answer); });
}

std::optional<wire::ArrayVolume> RaidCluster::stored_volume() const {
    for (const auto& [name, record] : records_)
        if (auto found = raid::parse_record<wire::ArrayVolume>(record)) return *found;
    return std::nullopt;
}

std::uint64_t RaidCluster::rebuild_mark(unsigned place) const {
    for (const auto& [name, record] : records_)
        if (auto found = raid::parse_record<wire::ArrayRebuildRecord>(record))
            if (found->place == place) return found->stripes;
    return 0;
}

}  // namespace weft::sim
