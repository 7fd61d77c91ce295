// SPDX-License-Identifier: Apache-2.0
#include "node/controller_box.hpp"

#include "base/error_text.hpp"
#include "raid/superblock.hpp"
#include "raid/volume_status.hpp"
#include "wire/array_names.hpp"

namespace weft::node {

using wire::ArrayAction;
using wire::ArrayOutcome;

namespace {

constexpr std::size_t description_bytes = 256u << 10;

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
        WEFT_TRY(part.superblock, decode<wire::ArraySuperblock>(octets));
        for (std::size_t at = head; at < head + tags; at += tag_size)
            part.window_tags.push_back(
                SteeringTag{static_cast<std::uint32_t>(load_big_endian<4>(octets.data() + at))});
        octets = octets.subspan(head + tags);
        facts.parts[part.superblock.volume.volume] = std::move(part);
    }
    return facts;
}

ControllerBox::ControllerBox(World& world, IscsiTransport& transport, ControllerBoxOwner& owner,
                             std::string name, const Address& address,
                             std::optional<wire::BoxIdentity> identity)
    : world_(world),
      owner_(owner),
      name_(std::move(name)),
      address_(address),
      identity_(identity),
      link_(world, transport,
            {.address = address,
             .target_name = wire::box_target_name(name_),
             .initiator_name = wire::controller_initiator_name},
            {.up = [this] { session_up(); }, .down = [this](Error why) { session_down(why); }}) {}

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
    return SteeringTag{static_cast<std::uint32_t>(part->second.window_tags[window]) |
                       static_cast<std::uint32_t>(static_cast<std::uint64_t>(transaction) & 0xff)};
}

// ------------------------------------------------------------------------------------- commands

void ControllerBox::send(const raid::EncodedOrder& command, Told told) {
    link_.send(command.command_block, command.parameters, 0,
               [told = std::move(told)](Result<BoxReply> reply) {
                   told(reply ? std::optional(reply->answer) : std::nullopt);
               });
}

void ControllerBox::send(ArrayAction action, const wire::ArrayAddress& address,
                         std::span<const std::byte> rest, Told told) {
    raid::EncodedOrder command;
    const auto head = encoded(address);
    command.parameters.assign(head.begin(), head.end());
    command.parameters.insert(command.parameters.end(), rest.begin(), rest.end());
    command.command_block = {
        .action = action,
        .transaction = {},
        .parameter_length = static_cast<std::uint32_t>(command.parameters.size()),
        .control = {}};
    send(command, std::move(told));
}

void ControllerBox::describe(std::function<void(bool)> told) {
    const wire::ArrayCommandBlock block{.action = ArrayAction::describe_box,
                                        .transaction = {},
                                        .parameter_length = 0,
                                        .control = {}};
    link_.send(block, {}, description_bytes,
               [this, told = std::move(told)](Result<BoxReply> reply) {
                   if (!reply || reply->answer.outcome != ArrayOutcome::done) return told(false);
                   auto facts = parse_box_description(reply->data);
                   if (!facts) return told(false);
                   facts_ = std::move(*facts);
                   told(true);
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
    describe([this](bool well) {
        if (well) return described();
        if (link_.is_up()) refuse("it does not say what it is");
    });
}

/// The session stays: what is wrong may be put right at the box, and an empty one costs nothing.
void ControllerBox::refuse(const std::string& why) {
    trouble_ = why;
    owner_.box_down(*this, why);
}

void ControllerBox::described() {
    const auto& said = facts_->box;
    if (identity_ && said.box != *identity_)
        return refuse("another box answers there: its disk is not the one that was added");
    if (!identity_ && raid::text_of_field(said.name) != name_)
        return refuse("the box there is called " + raid::text_of_field(said.name));
    const bool blank = said.cluster == wire::ClusterIdentity{};
    if (!blank && (said.cluster != owner_.cluster() || said.epoch > owner_.epoch()) && joins())
        return;
    if (!blank && said.cluster != owner_.cluster()) return refuse("it belongs to another cluster");
    if (!blank && said.epoch > owner_.epoch())
        return refuse("it obeys a later controller than this one");
    identity_ = said.box;
    if (blank || said.epoch < owner_.epoch()) return set_epoch();
    introduce();
}

bool ControllerBox::joins() {
    return owner_.join(*this, facts_->box.cluster, facts_->box.epoch,
                       [this, session = session_](bool well) {
                           if (session != session_) return;
                           if (!well) return refuse("its cluster could not be joined");
                           described();
                       });
}

void ControllerBox::set_epoch() {
    send(ArrayAction::new_epoch, whole(), {},
         [this, session = session_](std::optional<wire::ArrayAnswer> answer) {
             if (session != session_ || !answer) return;
             if (answer->outcome == ArrayOutcome::done) return introduce();
             refuse("it does not obey: " + raid::to_text(answer->outcome));
         });
}

void ControllerBox::introduce() {
    const auto hosts = owner_.hosts_of(*this);
    introductions_ = 1 + hosts.size();
    introduced_well_ = true;
    meet([this, session = session_](bool well) {
        if (session == session_) finish(well);
    });
    for (const auto& host : hosts)
        admit(host, [this, session = session_](std::optional<wire::ArrayAnswer> answer) {
            if (session == session_) finish(answer && answer->outcome == ArrayOutcome::done);
        });
}

void ControllerBox::finish(bool well) {
    introduced_well_ = introduced_well_ && well;
    if (--introductions_ > 0) return;
    if (!link_.is_up()) return;
    if (!introduced_well_) return refuse("it does not take the list of whom it is to meet");
    up_ = true;
    trouble_.clear();
    owner_.box_up(*this);
}

void ControllerBox::session_down(Error why) {
    ++session_;
    up_ = false;
    trouble_ = "it cannot be reached: " + to_text(why);
    owner_.box_down(*this, trouble_);
}

}  // namespace weft::node
