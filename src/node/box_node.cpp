// SPDX-License-Identifier: Apache-2.0
// How a box starts, and where commands go.
#include "node/box_node.hpp"

#include "base/error_text.hpp"
#include "node/array_address.hpp"
#include "node/array_link_report.hpp"
#include "node/chance.hpp"
#include "node/cluster_key.hpp"
#include "wire/array_host.hpp"
#include "wire/array_names.hpp"

namespace weft::node {
namespace {

constexpr std::uint32_t unit_number = 0;
constexpr std::size_t peers_of_a_box_max = 255;  ///< of all its volumes: what a list can count

raid::CommandTicket ticket_of(scsi::VendorCall& call) {
    return raid::CommandTicket{reinterpret_cast<std::uintptr_t>(&call)};
}

}  // namespace

BoxNode::BoxNode(World& world, Options options)
    : world_(world),
      options_(std::move(options)),
      server_(world, options_.server),
      boot_(world.random() | 2) {  // neither 0 nor 1, which mean something else
    if (auto* device = server_.rdma_device())
        links_ = std::make_unique<ArrayLinks>(world, *device, options_.links);
    server_.on_rdma_request([this](std::unique_ptr<verbs::ConnectionRequest>& request) {
        if (ArrayLinks::is_greeting(request->private_data())) links_->take(std::move(request));
    });
}

BoxNode::~BoxNode() {
    *alive_ = false;
}

// ------------------------------------------------------------------------------------- starting

void BoxNode::refuse_to_start(std::string why) {
    world_.defer([told = std::exchange(started_, nullptr), why = std::move(why)] { told(why); });
}

void BoxNode::start(Started told) {
    started_ = std::move(told);
    if (!links_) return refuse_to_start("there is no memory for RDMA");
    if (auto refusal = wire::refusal_of_box_name(options_.name))
        return refuse_to_start(*std::move(refusal));
    const auto octets = world_.read_file(facts_path());
    if (!octets && octets.error().code == Code::not_found) return become_somebody();
    if (!octets) return refuse_to_start(facts_path() + ": " + to_text(octets.error()));
    if (auto refusal = take_facts(*octets)) return refuse_to_start(*std::move(refusal));
    remove_begun_parts(0);
}

std::optional<std::string> BoxNode::take_facts(ConstBuffer octets) {
    const auto facts = parse_box_facts(octets);
    if (!facts) return facts_path() + ": this is not a box's file, or it is damaged";
    if (facts->name != options_.name)
        return options_.folder + ": this is the folder of box " + facts->name + ", not of " +
               options_.name;
    if (facts->taken() > options_.size)
        return options_.folder + ": its parts take " + std::to_string(facts->taken()) +
               " bytes, more than the size given";
    facts_ = *facts;
    return std::nullopt;
}

void BoxNode::become_somebody() {
    facts_ = {.box = {}, .cluster = {}, .epoch = {}, .name = options_.name, .parts = {}};
    facts_.box.octets = octets_of_chance<16>(world_);
    save([this](Result<void> saved) {
        if (!saved) return refuse_to_start(facts_path() + ": " + to_text(saved.error()));
        start_serving();
    });
}

/// Whatever was not yet there, or no more, when the box last stopped.
void BoxNode::remove_begun_parts(std::size_t from) {
    while (from < facts_.parts.size() && !facts_.parts[from].begun) ++from;
    if (from == facts_.parts.size()) return load_parts();
    take_back(facts_.parts[from].volume, [this, from](Result<void> removed) {
        if (!removed) return remove_begun_parts(from + 1);
        save([this, from](Result<void> saved) {
            if (!saved) return refuse_to_start(facts_path() + ": " + to_text(saved.error()));
            remove_begun_parts(from);
        });
    });
}

void BoxNode::load_parts() {
    if (loaded_ == facts_.parts.size()) return catch_up_parts();
    load_part(facts_.parts[loaded_]);
}

void BoxNode::load_part(const wire::ArrayBoxPart& entry) {
    const auto path = path_of(entry);
    if (entry.begun) return leave_out_part(LeftOut::kept, "it was to be removed, and cannot be");
    auto disk = world_.open_disk({.path = path});
    if (!disk)
        return leave_out_part(
            disk.error().code == Code::not_found ? LeftOut::damaged : LeftOut::kept,
            to_text(disk.error()));
    making_ = make_part_on(std::move(*disk));
    making_->on_full([this, path, part = making_.get(), alive = alive_](bool full) {
        tell_room(path, full);
        if (full)
            world_.defer([this, part, alive] {
                if (*alive) wait_for_room(part);
            });
    });
    making_->load([this, path, volume = entry.volume, alive = alive_](Result<void> read) {
        // A disk may answer from inside, and the next part is not to be read from there.
        world_.defer([this, path, volume, read, alive] {
            if (!*alive) return;
            auto late = std::ranges::find(waiting_, volume, &Waiting::volume);
            if (late == waiting_.end()) return part_read(std::move(making_), path, read);
            auto part = std::move(late->part);
            waiting_.erase(late);
            part_read_late(std::move(part), volume, read);
        });
    });
}

void BoxNode::part_read(std::unique_ptr<BoxPart> part, const std::string& path, Result<void> read) {
    // A program that is newer wrote it, and knows more than to throw it away.
    if (!read && read.error().code == Code::unsupported)
        return refuse_to_start(path + ": its superblock is whole, and not understood");
    if (!read && read.error().code != Code::not_found)
        return leave_out_part(LeftOut::kept, to_text(read.error()));
    if (!read) return leave_out_part(LeftOut::damaged, "no superblock on it is whole");
    // First: what is another's is not to be replaced, however short it is.
    if (auto refusal = judge(*part, facts_.parts[loaded_]))
        return refuse_to_start(path + ": " + *refusal);
    if (part->size() < raid::part_length(part->superblock()))
        return leave_out_part(LeftOut::damaged, "the disk is shorter than its superblock says");
    // What it had been told may be nowhere now: neither its blocks nor what it recalls count.
    if (part->has_damaged_journal())
        return leave_out_part(LeftOut::damaged, "its journal is damaged");
    auto windows = take_windows();
    if (!windows) return refuse_to_start(path + ": there is no memory for its windows");
    take_part(std::move(part), std::move(*windows));
    ++loaded_;
    load_parts();
}

void BoxNode::take_part(std::unique_ptr<BoxPart> part, std::unique_ptr<BoxWindows> windows) {
    const auto path = path_of(part->volume());
    watch_disk(*part, path);
    facts_.find(part->volume())->size = part->size();
    facts_.epoch = std::max(facts_.epoch, part->superblock().epoch);
    part->start(std::move(windows), *links_);
    if (part->has_lost_its_journal())
        tell(path + ": its journal cannot be used; the part will be taken for lost");
    left_out_.erase(part->volume());
    parts_.push_back(std::move(part));
}

/// What its journal has to bring home finds no room. The others are not to wait for it, nor who
/// wants to know what became of this box.
void BoxNode::wait_for_room(const BoxPart* part) {
    if (making_.get() != part || loaded_ == facts_.parts.size()) return;
    waiting_.push_back({facts_.parts[loaded_].volume, std::move(making_)});
    leave_out_part(LeftOut::kept, "it waits for room");
}

/// There was room at last. Whoever is in office asks again what this box has, and tells the part of
/// itself.
void BoxNode::part_read_late(std::unique_ptr<BoxPart> part, const wire::VolumeIdentity& volume,
                             Result<void> read) {
    if (stopping_) return;
    const auto path = path_of(volume);
    if (!read) return tell(path + ": " + to_text(read.error()));
    if (auto refusal = judge(*part, *facts_.find(volume))) return tell(path + ": " + *refusal);
    if (part->size() < raid::part_length(part->superblock()))
        return tell(path + ": the disk is shorter than its superblock says");
    if (part->has_damaged_journal()) {
        left_out_[volume] = LeftOut::damaged;
        tell(path + ": its journal is damaged");
        return server_.hang_up_all();
    }
    auto windows = take_windows();
    if (!windows) return tell(path + ": there is no memory for its windows");
    take_part(std::move(part), std::move(*windows));
    tell(path + ": this part is served from now on");
    server_.hang_up_all();
}

/// One part is not to keep the others from being served. Its volume takes the box for one that has
/// lost its disk, and makes it a new part if it can do without the old one; but not where the old
/// one may be whole. That waits for the next start, or for a person to give it up.
void BoxNode::leave_out_part(LeftOut how, const std::string& why) {
    const auto& entry = facts_.parts[loaded_];
    tell(path_of(entry) + ": " + why + "; the box starts without this part" +
         (how == LeftOut::kept ? ", and keeps it as it is" : ""));
    left_out_[entry.volume] = how;
    ++loaded_;
    world_.defer([this, alive = alive_] {
        if (*alive) load_parts();
    });
}

/// The power may have gone when the box knew of a new controller, and not yet all of its parts.
void BoxNode::catch_up_parts() {
    tell_parts_of_epoch([this](Outcome outcome) {
        // It obeys nobody then, until it could be told; the others are served.
        if (outcome != Outcome::done) tell("the disk of a part cannot be written to");
        start_serving();
    });
}

std::optional<std::string> BoxNode::judge(const BoxPart& part,
                                          const wire::ArrayBoxPart& entry) const {
    const auto& superblock = part.superblock();
    if (superblock.box != facts_.box)
        return "this is a disk of another box (" + to_digits(superblock.box) + ")";
    if (superblock.cluster != facts_.cluster) return "this is a disk of another cluster";
    if (superblock.volume.volume != entry.volume) return "this is a disk of another volume";
    return std::nullopt;
}

void BoxNode::start_serving() {
    if (stopping_) return refuse_to_start("it was told to stop");
    links_->appear_as(wire::box_end(facts_.box), std::nullopt);
    links_->set_office(facts_.cluster, facts_.epoch);
    links_->on_event([this](const ArrayLinks::Event& event) {
        if (event.kind == ArrayLinks::Event::Kind::refused ||
            event.kind == ArrayLinks::Event::Kind::failed)
            tell("a connection for transfers did not come about: " + event.why);
    });
    // Whoever is refused comes again, and often: that is told now and then.
    server_.on_event([this, again = Instant{}](const IscsiServer::Event& event) mutable {
        const auto refusal = IscsiServer::refusal_in(event);
        if (!refusal || world_.now() < again) return;
        again = world_.now() + IscsiServer::refusal_pause;
        tell(*refusal);
    });
    const auto target = wire::box_target_name(facts_.name);
    iscsi::TargetRules rules{.alias = "box " + facts_.name};
    if (!options_.key.empty()) {
        rules.users = {controller_credentials(options_.key)};
        rules.own = box_credentials(options_.key);
    }
    const auto offered = server_.add_target(target, std::move(rules));
    const auto added =
        !offered
            ? offered
            : server_.add_unit(target, unit_number, no_medium_,
                               {.product = "box", .vendor_commands = this, .has_medium = false});
    if (!added) return refuse_to_start("the target cannot be offered: " + to_text(added.error()));
    world_.defer([told = std::exchange(started_, nullptr)] { told(std::nullopt); });
}

Result<Address> BoxNode::listen(const Address& address) {
    auto listening = server_.listen(address);
    if (listening && !is_every_address(listening->host) &&
        networks_.size() < wire::array_networks_max)
        networks_.push_back(network_end_of(*listening));
    return listening;
}

void BoxNode::stop() {
    stopping_ = true;
    server_.stop();
    for (const auto& part : parts_) part->give_up_waiting();
    if (making_) making_->give_up_waiting();
    for (const auto& each : waiting_) each.part->give_up_waiting();
    if (links_) links_->cut_all();
}

bool BoxNode::quiet() const {
    const bool idle =
        std::ranges::all_of(parts_, [](const auto& part) { return part->idle(); }) && !making_;
    return idle && waiting_.empty() && changes_.empty() && !saving_ && server_.quiet();
}

std::uint64_t BoxNode::free_bytes() const {
    const auto left = size_left();
    const auto room = options_.room ? options_.room() : std::nullopt;
    // Not the last of it: what the box and the file system note of parts needs some, too.
    constexpr std::uint64_t margin = 1 << 20;
    return room ? std::min(left, *room - std::min(*room, margin + *room / 64)) : left;
}

Result<std::unique_ptr<BoxWindows>> BoxNode::take_windows() {
    if (spare_windows_.empty()) return BoxWindows::make(*links_, options_.windows);
    auto windows = std::move(spare_windows_.back());
    spare_windows_.pop_back();
    return windows;
}

// ------------------------------------------------------------------------------------- commands

Result<BoxNode::Command> BoxNode::parse(Call& call) {
    Command command{.parameters = call.parameters()};
    WEFT_TRY(command.block, decode<wire::ArrayCommandBlock>(call.command_block()));
    if (command.block.parameter_length != command.parameters.size())
        return Error{.code = Code::malformed};
    if (command.block.action == wire::ArrayAction::describe_box ||
        command.block.action == wire::ArrayAction::list_links)
        return command;
    if (is_order(command.block.action)) {
        WEFT_TRY(const auto header, decode<wire::ArrayOrderHeader>(command.parameters));
        command.address = header.address;
        return command;
    }
    WEFT_TRY(command.address, decode<wire::ArrayAddress>(command.parameters));
    return command;
}

void BoxNode::receive(Call& call) {
    const auto command = parse(call);
    if (!command) return answer(call, Outcome::malformed);
    const bool whole = command->address.volume == wire::VolumeIdentity{};
    switch (command->block.action) {
        case wire::ArrayAction::describe_box:
            return describe(call);
        case wire::ArrayAction::list_links:
            return call.answer(wire::ScsiStatus::good,
                               encoded(wire::ArrayAnswer{.epoch = facts_.epoch}),
                               encode_links(links_->facts()));
        case wire::ArrayAction::new_epoch:
        case wire::ArrayAction::create_part:
        case wire::ArrayAction::delete_part:
            return change(call);
        case wire::ArrayAction::meet_boxes:
        case wire::ArrayAction::admit_host:
        case wire::ArrayAction::dismiss_host:
            if (whole) return take_peers(call, *command);
            break;
        case wire::ArrayAction::store_volume:
            if (room_wanted(*command)) return change(call);
            break;
        default:
            break;
    }
    give_to_part(call, *command);
}

void BoxNode::give_to_part(Call& call, const Command& command) {
    if (auto* part = find_part(command.address.volume)) {
        return part->receive(ticket_of(call), command.block, command.parameters);
    }
    const auto outcome = check(command.address);
    answer(call, outcome == Outcome::done ? Outcome::wrong_volume : outcome);
}

BoxPart* BoxNode::find_part(const wire::VolumeIdentity& volume) {
    for (auto& part : parts_)
        if (part->volume() == volume) return part.get();
    return nullptr;
}

/// What is about the box as a whole has no generation.
wire::ArrayOutcome BoxNode::check(const wire::ArrayAddress& address) const {
    if (address.cluster != facts_.cluster || facts_.is_blank()) return Outcome::wrong_cluster;
    if (address.box != facts_.box) return Outcome::wrong_box;
    if (address.epoch != facts_.epoch) return Outcome::other_epoch;
    return Outcome::done;
}

void BoxNode::answer(Call& call, Outcome outcome) {
    const auto said = encoded(wire::ArrayAnswer{.outcome = outcome, .epoch = facts_.epoch});
    call.answer(
        outcome == Outcome::done ? wire::ScsiStatus::good : wire::ScsiStatus::check_condition, said,
        {});
}

void BoxNode::describe(Call& call) {
    const std::uint16_t windows = options_.windows.windows;
    constexpr std::size_t head = wire_size<wire::ArrayBoxDescription>(),
                          superblock = wire_size<wire::ArraySuperblock>(),
                          left_out = wire_size<wire::ArrayLeftOutPart>(),
                          network = wire_size<wire::ArrayNetworkEnd>();
    std::vector<std::byte> data(head + parts_.size() * (superblock + windows * 4u) +
                                left_out_.size() * left_out + networks_.size() * network);
    wire::ArrayBoxDescription description{.box = facts_.box,
                                          .cluster = facts_.cluster,
                                          .epoch = facts_.epoch,
                                          .boot = boot_,
                                          .size = options_.size,
                                          .free = free_bytes(),
                                          .window_limit = options_.windows.bytes,
                                          .windows = windows,
                                          .parts = static_cast<std::uint16_t>(parts_.size()),
                                          .left_out = static_cast<std::uint16_t>(left_out_.size()),
                                          .networks = static_cast<std::uint8_t>(networks_.size())};
    WEFT_CHECK(raid::set_field(description.name, facts_.name));
    Buffer rest(data);
    encode(description, rest);
    rest = rest.subspan(head);
    for (const auto& part : parts_) {
        encode(part->superblock(), rest);
        rest = rest.subspan(superblock);
        for (std::uint32_t window = 0; window < windows; ++window) {
            store_big_endian<4>(static_cast<std::uint32_t>(part->windows().tag_of(window)),
                                rest.data());
            rest = rest.subspan(4);
        }
    }
    for (const auto& [volume, how] : left_out_) {
        encode(wire::ArrayLeftOutPart{.volume = volume,
                                      .size = facts_.find(volume)->size,
                                      .damaged = how == LeftOut::damaged},
               rest);
        rest = rest.subspan(left_out);
    }
    for (const auto& end : networks_) {
        encode(end, rest);
        rest = rest.subspan(network);
    }
    const auto said = encoded(wire::ArrayAnswer{.epoch = facts_.epoch});
    call.answer(wire::ScsiStatus::good, said, data);
}

void BoxNode::take_peers(Call& call, const Command& command) {
    if (const auto outcome = check(command.address); outcome != Outcome::done)
        return answer(call, outcome);
    if (command.block.action == wire::ArrayAction::meet_boxes) {
        const auto boxes = raid::parse_peers(command.parameters, peers_of_a_box_max);
        if (!boxes) return answer(call, Outcome::malformed);
        for (const auto& before : std::exchange(met_, {}))
            if (std::ranges::find(*boxes, before, &wire::ArrayPeer::box) == boxes->end())
                links_->forget(wire::box_end(before));
        return answer(call, know(*boxes) ? Outcome::done : Outcome::no_room);
    }
    auto host = decode<wire::ArrayHostAdmission>(command.parameters);
    if (!host || command.parameters.size() != wire_size<wire::ArrayHostAdmission>())
        return answer(call, Outcome::malformed);
    // Of the controller itself, where it has many addresses and does not know which of them.
    if (host->network_address == Octets<16>{})
        if (auto from = server_.origin_of(call.sender()))
            host->network_address = network_address_of(from->host).value_or(Octets<16>{});
    if (command.block.action == wire::ArrayAction::admit_host)
        return answer(call, know(*host) ? Outcome::done : Outcome::no_room);
    dismiss(host->host);
    answer(call, Outcome::done);
}

void BoxNode::part_answered(BoxPart& /*part*/, raid::CommandTicket ticket,
                            const wire::ArrayAnswer& said, ConstBuffer data) {
    if (ticket == epoch_ticket) return part_told_of_epoch(said.outcome);
    auto& call = *reinterpret_cast<Call*>(static_cast<std::uintptr_t>(ticket));
    call.answer(
        said.outcome == Outcome::done ? wire::ScsiStatus::good : wire::ScsiStatus::check_condition,
        encoded(said), data);
}

bool BoxNode::know(std::span<const wire::ArrayPeer> boxes) {
    // One that is in several networks stands there once for each.
    std::map<wire::BoxIdentity, std::vector<Address>> places;
    for (const auto& peer : boxes) places[peer.box].push_back(address_of(peer.address, peer.port));
    bool all = true;
    for (const auto& peer : boxes) {
        auto found = places.extract(peer.box);
        if (peer.box == facts_.box || found.empty()) continue;
        const auto known =
            links_->know(wire::box_end(peer.box), peer.secret, std::move(found.mapped()));
        if (known) met_.insert(peer.box);
        all = all && known.has_value();
    }
    return all;
}

bool BoxNode::know(const wire::ArrayHostAdmission& host) {
    return links_
        ->know(wire::host_end(host.host), host.secret, address_of(host.network_address, host.port))
        .has_value();
}

void BoxNode::meet(std::span<const wire::ArrayPeer> boxes) {
    if (!know(boxes)) tell("there are too many boxes to meet");
}

void BoxNode::admit(const wire::ArrayHostAdmission& host) {
    if (!know(host)) tell("there are too many hosts to admit");
}

void BoxNode::dismiss(wire::HostSession host) {
    links_->forget(wire::host_end(host));
}

}  // namespace weft::node
