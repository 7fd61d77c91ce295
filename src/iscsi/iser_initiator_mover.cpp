// SPDX-License-Identifier: Apache-2.0
// The connection of the initiator's iSER datamover, and what comes in over it.
#include "iscsi/iser_initiator_mover.hpp"

#include <algorithm>
#include <array>

#include "base/check.hpp"
#include "block/scatter.hpp"
#include "wire/iscsi_segments.hpp"

namespace weft::iscsi {

Result<std::unique_ptr<IserInitiatorMover>> IserInitiatorMover::make(World& world,
                                                                     verbs::Device& device,
                                                                     std::uint32_t tasks_max,
                                                                     bool checksums,
                                                                     InitiatorDatamoverUser& user) {
    auto made = std::make_unique<IserInitiatorMover>(world, device, user);
    made->checksums_ = checksums;
    if (auto good = made->set_up(tasks_max); !good) return good.error();
    return made;
}

Result<void> IserInitiatorMover::set_up(std::uint32_t tasks_max) {
    // Each command may have two registrations, a Send and two invalidations in the queue.
    sends_max_ = tasks_max * 8 + 64;
    auto receives = static_cast<std::uint32_t>(tasks_max + iser::initiator_receives_more);
    domain_ = device_.make_domain();  // its own: nobody else's connection can use its tags
    WEFT_TRY(completions_,
             device_.make_completion_queue(sends_max_ + receives, [this] { poll(); }));
    WEFT_TRY(queue_pair_, device_.make_queue_pair(
                              {.domain = domain_,
                               .send_completions = completions_,
                               .receive_completions = completions_,
                               .sends = sends_max_,
                               .receives = receives,
                               .pieces = 1,
                               .inline_bytes = iser::headers_size + iser::additional_headers_max,
                               .sends_own_memory = true}));
    receives_ = std::make_unique<iser::Receives>(
        domain_, iser::receive_bytes, receives,
        [this](const verbs::ReceiveRequest& request) { return queue_pair_->post(request); });
    completions_->arm(verbs::CompletionQueue::Wanted::any);
    // All at once: some targets speak again right behind the last Login Response.
    return receives_->add(receives);
}

IserInitiatorMover::~IserInitiatorMover() {
    *alive_ = false;
    connection_.reset();
}

verbs::ConnectOptions IserInitiatorMover::connect_options() const {
    return {.inbound_reads = iser::reads_served, .outbound_reads = 1, .checksums = checksums_};
}

Result<void> IserInitiatorMover::connect(const Address& address) {
    rdma_first_ = true;
    std::array<std::byte, wire_size<wire::IserPrivateData>()> data{};
    encode(wire::IserPrivateData{.zero_based_addresses_unsupported = true}, data);
    auto options = connect_options();
    options.private_data = data;
    WEFT_TRY(connection_, device_.connect(address, *queue_pair_, options, *this));
    return {};
}

Result<void> IserInitiatorMover::connect_over(std::unique_ptr<Stream> stream) {
    rdma_first_ = false;
    WEFT_TRY(connection_,
             device_.connect_over(std::move(stream), *queue_pair_, connect_options(), *this));
    return {};
}

void IserInitiatorMover::begin_full_feature(const ConnectionTerms& terms) {
    WEFT_CHECK(slots_.empty());
    terms_ = terms;
    slots_ = std::vector<Slot>(terms.tasks_max);
    waiting_ = Ring<Slot*>(std::max(terms.tasks_max, 1u));
    settling_ = Ring<Slot*>(std::max(terms.tasks_max, 1u));
    for (auto* each : {&in_registration_, &out_registration_})
        each->pieces.reserve(iser::pieces_max);
}

void IserInitiatorMover::established() {
    hello_awaited_ = !rdma_first_ && terms_.hello_required;
    if (!hello_awaited_) return user_.opened();
    auto& buffer = *free_buffer();
    encode(wire::IserHello{.inbound_reads = connection_->facts().inbound_reads}, buffer.octets);
    post_control(wire::iser_header_size, buffer);
}

void IserInitiatorMover::poll() {
    auto alive = alive_;
    std::array<verbs::Completion, 64> completions;
    while (auto count = completions_->poll(completions)) {
        completions_seen_ += count;
        for (auto& each : std::span(completions).first(count)) {
            if (each.what != verbs::Ended::sent)
                received(each);
            else if (each.status == verbs::Status::success && !over_) {
                if (static_cast<Kind>(each.id >> 32) == Kind::control) --controls_unsent_;
                if (static_cast<Kind>(each.id >> 32) == Kind::invalidation)
                    retire(slots_[static_cast<std::size_t>(each.id & 0xffff'ffff)]);
            }
            if (!*alive) return;
        }
    }
    if (!over_) pump();
    if (!*alive) return;
    completions_->arm(verbs::CompletionQueue::Wanted::any);
}

void IserInitiatorMover::received(const verbs::Completion& completion) {
    if (completion.status != verbs::Status::success || over_ || leaving_ || fault_) return;
    auto& receive = receives_->filled(completion);
    auto alive = alive_;
    handle(receive);
    if (*alive && !over_) receives_->give_back(receive);
}

void IserInitiatorMover::handle(iser::Receive& receive) {
    if (hello_awaited_) return take_hello_reply(receive);
    auto message = iser::read_message(receive.octets());
    if (!message) return fail(message.error());
    auto& basic = message->pdu.basic;
    bool peeks =
        basic.opcode == wire::IscsiOpcode::nop_in && basic.task_tag == wire::InitiatorTaskTag::none;
    user_.heard(iser::target_numbers(message->pdu.header),
                peeks ? StatusCount::peeks : StatusCount::counts);
    switch (basic.opcode) {
        case wire::IscsiOpcode::scsi_response:
            return responded(*message, receive);
        case wire::IscsiOpcode::data_in:
        case wire::IscsiOpcode::ready_to_transfer:
            return fail({.code = Code::malformed});  // such data and requests have other ways here
        default:
            // Only a response has a tag to take back.
            if (receive.invalidated) return fail({.code = Code::access_denied});
            user_.control(message->pdu);
    }
}

void IserInitiatorMover::take_hello_reply(iser::Receive& receive) {
    auto reply = decode<wire::IserHelloReply>(receive.octets());
    if (!reply || reply->rejected) return fail({.code = Code::unsupported});
    hello_awaited_ = false;
    user_.opened();
}

void IserInitiatorMover::responded(const iser::Message& message, const iser::Receive& receive) {
    auto response = decode<wire::ScsiResponsePdu>(message.pdu.header);
    if (!response) return fail(response.error());
    auto* task = user_.find_task(response->task_tag);
    bool is_known = task && task->slot < slots_.size() && slots_[task->slot].task == task &&
                    !slots_[task->slot].is_over;
    if (!is_known) {
        if (receive.invalidated) fail({.code = Code::access_denied});
        return;
    }
    auto& slot = slots_[task->slot];
    if (receive.invalidated && !note_invalidation(slot, *receive.invalidated))
        return fail({.code = Code::access_denied});
    auto sense = wire::split_sense_segment(message.pdu.data);
    if (!sense) return fail(sense.error());
    bool both = task->command.read && task->command.write;
    auto residual = both ? response->read_residual : response->residual;
    auto missing = residual == wire::Residual::underflow
                       ? (both ? response->read_residual_count : response->residual_count)
                       : 0;
    auto room = block::total_size(task->data_in);
    slot.is_over = true;
    auto alive = alive_;
    user_.responded(*task, {.response = *response,
                            .sense = sense->sense,
                            .placed = room - std::min<std::uint64_t>(room, missing)});
    if (*alive && !over_) settle(slot);
}

/// Whether it is a tag of this very command's.
bool IserInitiatorMover::note_invalidation(Slot& slot, SteeringTag tag) {
    for (auto* each : {&slot.in, &slot.out})
        if (each->open && each->value == tag) {
            each->open = false;
            return true;
        }
    return false;
}

void IserInitiatorMover::close_when_sent() {
    leaving_ = true;
    leave_if_sent();
}

void IserInitiatorMover::leave_if_sent() {
    if (!leaving_ || over_ || controls_unsent_ > 0 || !connection_ || farewell_) return;
    farewell_ = world_.make_timer([this] {
        // Whoever hears of the end may destroy us, and the timer, which must not be inside then.
        world_.defer([this, alive = alive_] {
            if (*alive) hang_up();
        });
    });
    farewell_->set(world_.now() + iser::farewell_delay);
}

void IserInitiatorMover::hang_up() {
    if (!over_ && connection_) connection_->disconnect();
}

void IserInitiatorMover::close() {
    if (over_) return;
    leaving_ = true;
    connection_.reset();
    world_.defer([this, alive = alive_] {
        if (*alive) end(std::nullopt);
    });
}

void IserInitiatorMover::fail(Error why) {
    if (fault_ || over_) return;
    fault_ = why;
    queue_pair_->fail();
}

void IserInitiatorMover::disconnected() {
    if (fault_) return end(fault_);
    end(leaving_ ? std::nullopt : std::optional(Error{.code = Code::disconnected}));
}

void IserInitiatorMover::end(std::optional<Error> why) {
    if (std::exchange(over_, true)) return;
    connection_.reset();  // nothing is lent any more, and nothing comes in
    slots_.clear();       // nor does a tag open anything
    user_.lost(why);      // may destroy this
}

}  // namespace weft::iscsi
