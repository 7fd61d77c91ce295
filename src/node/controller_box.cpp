// SPDX-License-Identifier: Apache-2.0
#include "node/controller_box.hpp"

#include <algorithm>

#include "base/error_text.hpp"
#include "node/array_address.hpp"
#include "node/array_link_report.hpp"
#include "raid/staging.hpp"
#include "raid/superblock.hpp"
#include "raid/volume_status.hpp"
#include "wire/array_names.hpp"

namespace weft::node {

using wire::ArrayAction;
using wire::ArrayOutcome;

namespace {

constexpr std::size_t description_bytes = 256u << 10;
constexpr std::size_t recall_bytes = 256u << 10;
constexpr Duration ask_again_after = std::chrono::seconds(5);

}  // namespace

Result<BoxDescription> parse_box_description(ConstBuffer octets) {
    BoxDescription facts;
    WEFT_TRY(facts.box, decode<wire::ArrayBoxDescription>(octets));
    octets = octets.subspan(wire_size<wire::ArrayBoxDescription>());
    constexpr std::size_t tag_size = sizeof(SteeringTag);
    const std::size_t tags = facts.box.windows * tag_size;
    for (std::uint32_t i = 0; i < facts.box.parts; ++i) {
        BoxDescription::Part part;
        constexpr std::size_t head = wire_size<wire::ArraySuperblock>();
        if (octets.size() < head + tags) return Error{.code = Code::truncated};
        // What it says of its parts is checked as if it were read from a disk.
        WEFT_TRY(auto said, decode<wire::ArraySuperblock>(octets));
        WEFT_TRY(part.superblock, raid::parse_superblock(raid::encode_superblock(said)));
        if (said.box != facts.box.box) return Error{.code = Code::malformed};
        for (std::size_t at = head; at < head + tags; at += tag_size)
            part.window_tags.push_back(
                SteeringTag{static_cast<std::uint32_t>(load_big_endian<4>(octets.data() + at))});
        octets = octets.subspan(head + tags);
        facts.parts[part.superblock.volume.volume] = std::move(part);
    }
    for (std::uint32_t i = 0; i < facts.box.left_out; ++i) {
        WEFT_TRY(const auto part, decode<wire::ArrayLeftOutPart>(octets));
        octets = octets.subspan(wire_size<wire::ArrayLeftOutPart>());
        facts.left_out[part.volume] = part;
    }
    for (std::uint32_t i = 0; i < facts.box.networks; ++i) {
        WEFT_TRY(const auto end, decode<wire::ArrayNetworkEnd>(octets));
        octets = octets.subspan(wire_size<wire::ArrayNetworkEnd>());
        if (i < wire::array_networks_max) facts.networks.push_back(end);
    }
    return facts;
}

ControllerBox::ControllerBox(World& world, IscsiTransport& transport, ControllerBoxOwner& owner,
                             std::string name, const std::vector<Address>& addresses,
                             const Access& access, std::optional<wire::BoxIdentity> identity)
    : world_(world),
      owner_(owner),
      name_(std::move(name)),
      address_(addresses.front()),
      identity_(identity),
      ask_again_(world.make_timer([this] {
          if (link_.is_up() && !up_) session_up();
      })),
      link_(world, transport,
            {.addresses = addresses,
             .target_name = wire::box_target_name(name_),
             .initiator_name = wire::controller_initiator_name,
             .key = access.key,
             .silence = access.silence},
            {.up = [this] { session_up(); }, .down = [this](Error why) { session_down(why); }}) {}

ControllerBox::~ControllerBox() {
    *alive_ = false;
    tell_held({.code = Code::disconnected});
}

std::vector<wire::ArrayNetworkEnd> ControllerBox::networks() {
    if (!network_address_)
        if (auto numbers = world_.resolve(address_))
            network_address_ = network_address_of(numbers->front().host);
    std::vector<wire::ArrayNetworkEnd> ends;
    if (network_address_) ends.push_back({.address = *network_address_, .port = address_.port});
    if (!facts_) return ends;
    for (const auto& end : facts_->networks)
        if (end.address != Octets<16>{} && std::ranges::find(ends, end) == ends.end())
            ends.push_back(end);
    return ends;
}

std::string ControllerBox::places_text(std::size_t room) {
    auto text = written(address_);
    auto ends = networks();
    for (std::size_t i = 1; i < ends.size(); ++i) {
        const auto more = "," + written(address_of(ends[i]));
        if (text.size() + more.size() < room) text += more;
    }
    return text;
}

wire::ArrayAddress ControllerBox::whole() const {
    return {.cluster = owner_.cluster(),
            .volume = {},
            .box = identity_.value_or(wire::BoxIdentity{}),
            .generation = {},
            .epoch = owner_.epoch()};
}

SteeringTag ControllerBox::window_tag(const wire::VolumeIdentity& volume, std::uint32_t window,
                                      wire::TransactionNumber transaction) const {
    if (!facts_) return {};
    auto part = facts_->parts.find(volume);
    if (part == facts_->parts.end() || window >= part->second.window_tags.size()) return {};
    return raid::tag_in(part->second.window_tags[window], transaction);
}

// ------------------------------------------------------------------------------------- commands

void ControllerBox::pass(const wire::ArrayCommandBlock& block, std::vector<std::byte> parameters,
                         std::size_t room_in, BoxSession::Told told) {
    if (owner_.may_act()) {
        // As late as can be: it says how much longer this is so.
        raid::stamp_lease(block, parameters, owner_.lease_ms());
        return link_.send(block, std::move(parameters), room_in, std::move(told));
    }
    if (held_.size() < BoxSession::commands_max)
        return held_.push_back({block, std::move(parameters), room_in, std::move(told)});
    link_.drop({.code = Code::exhausted});
    world_.defer([told = std::move(told)] { told(Error{.code = Code::exhausted}); });
}

void ControllerBox::go_on() {
    for (auto& each : std::exchange(held_, {}))
        pass(each.block, std::move(each.parameters), each.room_in, std::move(each.told));
}

void ControllerBox::tell_held(Error why) {
    for (auto& each : std::exchange(held_, {})) each.told(why);
}

void ControllerBox::send(const raid::EncodedOrder& command, Told told) {
    pass(command.command_block, command.parameters, 0,
         [told = std::move(told)](Result<BoxReply> reply) {
             told(reply ? std::optional(reply->answer) : std::nullopt);
         });
}

void ControllerBox::send(ArrayAction action, const wire::ArrayAddress& address,
                         std::span<const std::byte> rest, Told told) {
    raid::EncodedOrder command;
    const auto head = encoded(address);
    command.parameters.resize(head.size() + rest.size());
    std::ranges::copy(rest, std::ranges::copy(head, command.parameters.begin()).out);
    command.command_block = {
        .action = action,
        .transaction = {},
        .parameter_length = static_cast<std::uint32_t>(command.parameters.size()),
        .control = {}};
    send(command, std::move(told));
}

void ControllerBox::ask(const raid::EncodedOrder& command, ToldData told) {
    pass(command.command_block, command.parameters, recall_bytes,
         [told = std::move(told)](Result<BoxReply> reply) {
             if (!reply) return told(std::nullopt, {});
             told(reply->answer, reply->data);
         });
}

void ControllerBox::describe(std::function<void(bool)> told) {
    const wire::ArrayCommandBlock block{.action = ArrayAction::describe_box,
                                        .transaction = {},
                                        .parameter_length = 0,
                                        .control = {}};
    pass(block, {}, description_bytes, [this, told = std::move(told)](Result<BoxReply> reply) {
        if (!reply || reply->answer.outcome != ArrayOutcome::done) return told(false);
        auto facts = parse_box_description(reply->data);
        if (!facts) return told(false);
        facts_ = std::move(*facts);
        told(true);
    });
}

void ControllerBox::list_links(ToldLinks told) {
    const wire::ArrayCommandBlock block{
        .action = ArrayAction::list_links, .transaction = {}, .parameter_length = 0, .control = {}};
    pass(block, {}, link_list_bytes_max, [told = std::move(told)](Result<BoxReply> reply) {
        if (!reply || reply->answer.outcome != ArrayOutcome::done) return told(std::nullopt);
        auto links = parse_links(reply->data);
        told(links ? std::optional(std::move(*links)) : std::nullopt);
    });
}

void ControllerBox::meet(std::function<void(bool)> told) {
    const auto peers = owner_.peers_of(*this);
    const wire::ArrayPeerList list{.address = whole(),
                                   .count = static_cast<std::uint8_t>(peers.size())};
    raid::EncodedOrder command;
    const auto head = encoded(list);
    command.parameters.assign(head.begin(), head.end());
    for (const auto& peer : peers) {
        const auto octets = encoded(peer);
        command.parameters.insert(command.parameters.end(), octets.begin(), octets.end());
    }
    command.command_block = {
        .action = ArrayAction::meet_boxes,
        .transaction = {},
        .parameter_length = static_cast<std::uint32_t>(command.parameters.size()),
        .control = {}};
    send(command, [told = std::move(told)](std::optional<wire::ArrayAnswer> answer) {
        told(answer && answer->outcome == ArrayOutcome::done);
    });
}

void ControllerBox::admit(wire::ArrayHostAdmission host, Told told) {
    host.address = whole();
    const auto octets = encoded(host);
    send({.command_block = {.action = ArrayAction::admit_host,
                            .transaction = {},
                            .parameter_length = static_cast<std::uint32_t>(octets.size()),
                            .control = {}},
          .parameters = {octets.begin(), octets.end()}},
         std::move(told));
}

void ControllerBox::dismiss(wire::HostSession host) {
    wire::ArrayHostAdmission dismissal{
        .address = whole(), .host = host, .port = 0, .network_address = {}, .secret = {}};
    const auto octets = encoded(dismissal);
    send({.command_block = {.action = ArrayAction::dismiss_host,
                            .transaction = {},
                            .parameter_length = static_cast<std::uint32_t>(octets.size()),
                            .control = {}},
          .parameters = {octets.begin(), octets.end()}},
         [](std::optional<wire::ArrayAnswer>) {});
}

// ------------------------------------------------------------------------------------ coming up

void ControllerBox::session_up() {
    ++session_;
    unreached_.reset();
    describe([this](bool well) {
        if (well) return described();
        if (link_.is_up()) refuse("it does not say what it is");
    });
}

/// What is wrong may be put right at the box, or pass: it is asked again.
void ControllerBox::refuse(const std::string& why) {
    trouble_ = why;
    met_ = false;
    ask_again_->set(world_.now() + ask_again_after);
    owner_.box_down(*this, why);
}

void ControllerBox::described() {
    const auto& said = facts_->box;
    std::vector<Address> elsewhere;
    for (const auto& end : networks()) elsewhere.push_back(address_of(end));
    if (!elsewhere.empty()) elsewhere.front() = address_;
    link_.reach_at(elsewhere);
    if (identity_ && said.box != *identity_)
        return refuse(
            "another box answers there: its disk is not the one that was added; to use it, start "
            "it "
            "with another --name, add that, and give it the places of this one by member replace");
    if (!identity_ && raid::text_of_field(said.name) != name_)
        return refuse("the box there is called " + raid::text_of_field(said.name));
    const bool blank = said.cluster == wire::ClusterIdentity{};
    if (!blank && (said.cluster != owner_.cluster() || said.epoch > owner_.epoch()) && joins())
        return;
    if (!blank && said.cluster != owner_.cluster()) return refuse("it belongs to another cluster");
    if (!blank && said.epoch > owner_.epoch())
        return refuse("it obeys a later controller than this one");
    identity_ = said.box;
    const bool all_obey = std::ranges::all_of(facts_->parts, [&](const auto& each) {
        return each.second.superblock.epoch >= owner_.epoch();
    });
    if (blank || said.epoch < owner_.epoch() || !all_obey) return set_epoch();
    introduce();
}

bool ControllerBox::joins() {
    return owner_.join(*this, facts_->box.cluster, facts_->box.epoch,
                       [this, session = session_, alive = alive_](bool well) {
                           if (!*alive || session != session_) return;
                           if (!well) return refuse("its cluster could not be joined");
                           described();
                       });
}

void ControllerBox::set_epoch() {
    send(
        ArrayAction::new_epoch, whole(), {},
        [this, session = session_](std::optional<wire::ArrayAnswer> answer) {
            if (session != session_ || !answer) return;
            if (answer->outcome == ArrayOutcome::done) return introduce();
            // Told before, too: a part of it obeys nobody, which its volume will find. The others
            // are not to suffer for it.
            if (answer->outcome == ArrayOutcome::disk_failed && facts_->box.epoch == owner_.epoch())
                return introduce();
            refuse("it does not obey: " + raid::to_text(answer->outcome));
        });
}

/// Others hear of it as it hears of them: from now on they may reach each other.
void ControllerBox::introduce() {
    met_ = true;
    const auto dismissed = std::exchange(told_hosts_, owner_.hosts_of(*this));
    told_peers_ = owner_.peers_of(*this);
    introductions_ = 2 + told_hosts_.size();
    introduced_well_ = true;
    for (const auto& host : dismissed)
        if (std::ranges::find(told_hosts_, host) == told_hosts_.end()) dismiss(host.host);
    meet([this, session = session_](bool well) {
        if (session == session_) finish(well);
    });
    for (const auto& host : told_hosts_)
        admit(host, [this, session = session_](std::optional<wire::ArrayAnswer> answer) {
            if (session == session_) finish(answer && answer->outcome == ArrayOutcome::done);
        });
    owner_.introduce(*this, [this, session = session_, alive = alive_] {
        if (*alive && session == session_) finish(true);
    });
}

void ControllerBox::finish(bool well) {
    introduced_well_ = introduced_well_ && well;
    if (--introductions_ > 0) return;
    if (!link_.is_up()) return;
    if (!introduced_well_) return refuse("it does not take the list of whom it is to meet");
    // Somebody has come or gone meanwhile, and only those that are up were told.
    if (told_hosts_ != owner_.hosts_of(*this) || told_peers_ != owner_.peers_of(*this))
        return introduce();
    up_ = true;
    trouble_.clear();
    owner_.box_up(*this);
}

void ControllerBox::session_down(Error why) {
    ++session_;
    up_ = met_ = false;
    told_hosts_.clear();
    tell_held(why);
    unreached_ = why;
    trouble_ = "it cannot be reached: " + to_text(why);
    owner_.box_down(*this, trouble_);
}

}  // namespace weft::node
