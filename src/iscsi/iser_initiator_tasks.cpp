// SPDX-License-Identifier: Apache-2.0
// Commands of the initiator's iSER datamover: their tags, their Sends, and how they retire.
#include <algorithm>
#include <array>

#include "base/check.hpp"
#include "block/scatter.hpp"
#include "iscsi/iser_initiator_mover.hpp"
#include "iscsi/iser_memory.hpp"

namespace weft::iscsi {
namespace {

/// Where offsets of an advertised buffer begin. Not our addresses, which are nobody's business, and
/// not zero, which not every target takes for an address.
constexpr std::uint64_t buffer_base = 0x10000;

verbs::SendRequest registration_of(const verbs::FastRegistration& registration) {
    return {.operation = verbs::Operation::fast_register,
            .signalled = false,
            .registration = &registration};
}

}  // namespace

/// None if all are in use.
IserInitiatorMover::SendBuffer* IserInitiatorMover::free_buffer() {
    bool oldest_is_free =
        !buffers_.empty() && buffers_.front().free_after <= queue_pair_->sends_ended();
    if (oldest_is_free) {
        buffers_.push_back(std::move(buffers_.front()));
        buffers_.pop_front();
    } else if (buffers_.size() < iser::initiator_send_buffers) {
        buffers_.emplace_back().octets.resize(iser::receive_bytes);
    } else {
        return nullptr;
    }
    buffers_.back().free_after = UINT64_MAX;  // until it is known
    return &buffers_.back();
}

bool IserInitiatorMover::post(std::span<const verbs::SendRequest> requests) {
    if (!queue_pair_->check(requests)) return false;
    for (auto& request : requests) WEFT_CHECK(queue_pair_->post(request));
    posted_ += requests.size();
    return true;
}

/// So much waits to end that room may run out: then somebody must be told when there is some again.
bool IserInitiatorMover::queue_is_crowded() const {
    return posted_ - queue_pair_->sends_ended() > sends_max_ / 2;
}

void IserInitiatorMover::send(const ControlPdu& pdu) {
    if (over_ || leaving_ || fault_) return;
    auto* buffer = free_buffer();
    // Whoever has so many on their way may not say more; a target that takes none is as good as
    // gone.
    if (!buffer || pdu.data.size() > iser::data_segment_max)
        return fail({.code = Code::exhausted, .where = iser::initiator_send_buffers});
    auto size = iser::write_headers({}, pdu.header, pdu.data.size(), buffer->octets);
    store_big_endian<4>(
        user_.expected_status_number(),
        buffer->octets.data() + wire::iser_header_size + wire::expected_status_number_at);
    std::copy(pdu.data.begin(), pdu.data.end(),
              buffer->octets.begin() + static_cast<std::ptrdiff_t>(size));
    post_control(size + pdu.data.size(), *buffer);
}

void IserInitiatorMover::post_control(std::size_t size, SendBuffer& buffer) {
    std::array local{own(ConstBuffer(buffer.octets).first(size))};
    verbs::SendRequest request{.id = id_of(Kind::control, 0), .solicited = true, .local = local};
    if (!post({&request, 1})) return fail({.code = Code::exhausted});
    buffer.free_after = posted_;
    ++controls_unsent_;
}

void IserInitiatorMover::start(InitiatorMoverTask& task) {
    WEFT_CHECK(task.slot < slots_.size() || over_);
    if (over_) return;
    auto& slot = slots_[task.slot];
    WEFT_CHECK(slot.task == nullptr);
    slot.task = &task;
    slot.is_over = false;
    if (slot.waits) return;  // for the one before, which was abandoned
    if (waiting_.empty() && try_start(slot)) return;
    slot.waits = true;
    waiting_.push_back(&slot);
}

bool IserInitiatorMover::open_tag(Tag& tag, std::span<const Buffer> pieces, Rights rights,
                                  verbs::FastRegistration& registration) {
    if (!tag.region) {
        auto made = domain_->allocate_tag(iser::pieces_max);
        if (!made) return false;
        tag.region = std::move(*made);
        tag.value = tag.region->tag();
    }
    registration.tag = with_next_key(tag.value);
    registration.pieces.assign(pieces.begin(), pieces.end());
    registration.address = buffer_base;
    registration.rights = rights;
    return pieces.size() <= iser::pieces_max;
}

/// False: there is no room in the queue now.
bool IserInitiatorMover::try_start(Slot& slot) {
    auto& task = *slot.task;
    auto out_size = block::total_size(task.data_out), in_size = block::total_size(task.data_in);
    // Short data goes with the command, if all of it fits: that saves a round trip. Of longer data
    // a part would save nothing, and would have to be copied.
    auto along_max = std::min({terms_.send_segment_max, terms_.first_burst_max,
                               static_cast<std::uint32_t>(iser::data_segment_max)});
    bool goes_along = terms_.immediate_data && out_size > 0 && out_size <= along_max;
    auto* buffer = goes_along ? free_buffer() : nullptr;
    bool has_out = out_size > 0 && !buffer, has_in = in_size > 0;

    std::array<verbs::SendRequest, 3> requests{};
    std::size_t count = 0;
    bool good = true;
    if (has_in) {
        good &= open_tag(slot.in, task.data_in, Rights::local_write | Rights::remote_write,
                         in_registration_);
        requests[count++] = registration_of(in_registration_);
    }
    if (has_out) {
        good &= open_tag(slot.out, task.data_out, Rights::remote_read, out_registration_);
        requests[count++] = registration_of(out_registration_);
    }
    if (!good) return fail({.code = Code::out_of_range, .where = iser::pieces_max}), true;

    wire::IserControlHeader advertised{.write_buffer_valid = has_out, .read_buffer_valid = has_in};
    if (has_out) advertised.write_buffer = {out_registration_.tag, wire::TaggedOffset{buffer_base}};
    if (has_in) advertised.read_buffer = {in_registration_.tag, wire::TaggedOffset{buffer_base}};
    std::array<std::byte, iser::headers_size + iser::additional_headers_max> short_octets{};
    Buffer octets = buffer ? Buffer(buffer->octets) : Buffer(short_octets);
    octets = octets.first(compose(task, advertised, buffer ? out_size : 0, octets));
    std::array local{own(octets)};
    requests[count++] = {.id = id_of(Kind::command, task.slot),
                         .signalled = queue_is_crowded(),
                         .solicited = true,
                         .inlined = buffer == nullptr,
                         .local = local};
    bool posted = post(std::span(requests).first(count));
    if (buffer) buffer->free_after = posted ? posted_ : 0;
    if (!posted) return false;
    if (has_in) slot.in.value = in_registration_.tag, slot.in.open = true;
    if (has_out) slot.out.value = out_registration_.tag, slot.out.open = true;
    return true;
}

std::size_t IserInitiatorMover::compose(const InitiatorMoverTask& task,
                                        const wire::IserControlHeader& advertised,
                                        std::size_t along, Buffer to) {
    auto command = task.command;
    command.final = true;  // no Data-Out follows: the target reads what it wants
    command.numbers.expected_status_number = user_.expected_status_number();
    command.additional_header_words = static_cast<std::uint8_t>(task.additional_headers.size() / 4);
    std::array<std::byte, wire::basic_header_size> header{};
    encode(command, header);
    auto size = iser::write_headers(advertised, header, along, to);
    WEFT_CHECK(task.additional_headers.size() <= iser::additional_headers_max);
    std::copy(task.additional_headers.begin(), task.additional_headers.end(),
              to.begin() + static_cast<std::ptrdiff_t>(size));
    size += task.additional_headers.size();
    if (along > 0)
        block::copy_out(block::ScatterCursor(task.data_out, 0, along), to.subspan(size, along));
    return size + along;
}

void IserInitiatorMover::abandon(InitiatorMoverTask& task) {
    if (over_ || task.slot >= slots_.size()) return;
    auto& slot = slots_[task.slot];
    if (slot.task != &task || slot.is_over) return;
    slot.is_over = true;
    settle(slot);
}

void IserInitiatorMover::settle(Slot& slot) {
    if (!settling_.empty() || !try_settle(slot)) settling_.push_back(&slot);
}

/// Takes back what is still open, then retires. False: there is no room in the queue now.
bool IserInitiatorMover::try_settle(Slot& slot) {
    std::array<verbs::SendRequest, 3> requests{};
    std::size_t count = 0;
    auto invalidate = [&](const Tag& tag) {
        requests[count++] = {.operation = verbs::Operation::local_invalidate,
                             .signalled = false,
                             .invalidate = tag.value};
    };
    if (slot.in.open) invalidate(slot.in);
    if (slot.out.open) {
        invalidate(slot.out);
    } else if (slot.out.region && slot.out.region->is_still_lent()) {
        // The network may have to send again what the target has read already: a registration of
        // nothing waits for the end of that.
        out_registration_.tag = slot.out.value = with_next_key(slot.out.value);
        out_registration_.pieces.clear();
        requests[count++] = registration_of(out_registration_);
        invalidate(slot.out);
    }
    if (count == 0) return retire(slot), true;
    requests[count - 1].signalled = true;
    requests[count - 1].id = id_of(Kind::invalidation, slot.task->slot);
    if (!post(std::span(requests).first(count))) return false;
    slot.in.open = slot.out.open = false;
    return true;
}

void IserInitiatorMover::retire(Slot& slot) {
    // Invalidated just now, it may still be lent.
    if (slot.out.region && slot.out.region->is_still_lent()) return settle(slot);
    user_.retired(*std::exchange(slot.task, nullptr));
}

void IserInitiatorMover::pump() {
    auto alive = alive_;
    while (*alive && !over_ && !settling_.empty() && try_settle(*settling_.front()))
        if (*alive && !over_) settling_.pop_front();
    while (*alive && !over_ && !waiting_.empty()) {
        auto& slot = *waiting_.front();
        if (slot.task && !slot.is_over && !try_start(slot)) break;
        slot.waits = false;
        waiting_.pop_front();
    }
    if (*alive && !over_) leave_if_sent();
}

}  // namespace weft::iscsi
