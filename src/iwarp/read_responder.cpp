// SPDX-License-Identifier: Apache-2.0
#include "iwarp/read_responder.hpp"

#include <cstring>

#include "base/foreign_memory.hpp"
#include "iwarp/memory_faults.hpp"

namespace weft::iwarp {

std::uint64_t apply_atomic(const wire::AtomicRequest& request, std::uint64_t original) {
    if (request.operation == wire::AtomicOperation::compare_swap) {
        if (((original ^ request.compare) & request.compare_mask) != 0) return original;
        return (original & ~request.add_or_swap_mask) |
               (request.add_or_swap & request.add_or_swap_mask);
    }
    // A set bit of the mask is the top of a field, which keeps its carry. So the tops are added
    // without one, apart from the rest.
    auto tops = request.add_or_swap_mask;
    auto rest = (original & ~tops) + (request.add_or_swap & ~tops);
    return rest ^ ((original ^ request.add_or_swap) & tops);
}

ReadResponder::ReadResponder(MemoryTable& memory, Asker asker, std::size_t depth)
    : memory_(memory), asker_(asker), entries_(depth == 0 ? 1 : 2 * depth), depth_(depth) {}

Result<Message::Source> ReadResponder::source_of(const wire::ReadRequest& request) const {
    if (request.size == 0) return Message::Source{};  // not to be looked at
    auto bytes =
        memory_.resolve(request.source_tag, static_cast<std::uint64_t>(request.source_offset),
                        request.size, Rights::remote_read, asker_);
    if (!bytes) return access_fault(fault_of(bytes.error()));
    return Message::Source{*bytes, request.source_tag};
}

Result<void> ReadResponder::add_read(const Asked& asked) {
    if (full()) return fault(wire::UntaggedBufferError::no_buffer);
    if (auto source = source_of(asked.request); !source) return source.error();
    entries_.push_back({.asked = asked});
    return {};
}

Result<void> ReadResponder::add_atomic(const wire::AtomicRequest& request) {
    if (full()) return fault(wire::UntaggedBufferError::no_buffer);
    if (request.operation != wire::AtomicOperation::fetch_add &&
        request.operation != wire::AtomicOperation::compare_swap)
        return fault(wire::RemoteOperationError::catastrophic_for_stream);
    auto offset = static_cast<std::uint64_t>(request.remote_offset);
    auto bytes = memory_.resolve(request.remote_tag, offset, sizeof(std::uint64_t),
                                 Rights::remote_atomic, asker_);
    if (!bytes) return access_fault(fault_of(bytes.error()));
    auto place = bytes->front();
    if (offset % sizeof(std::uint64_t) != 0 || place.size() < sizeof(std::uint64_t))
        return fault(wire::RemoteOperationError::catastrophic_for_stream);
    std::uint64_t original = 0;
    bool changed = touch_foreign_memory([&] {
        std::memcpy(&original, place.data(), sizeof original);
        auto now = apply_atomic(request, original);
        std::memcpy(place.data(), &now, sizeof now);
    });
    if (!changed) return access_fault(MemoryFault::invalid_tag);

    auto& entry = entries_.push_back({.atomic = true});
    encode(wire::AtomicResponse{.request_identifier = request.request_identifier,
                                .original_value = original},
           entry.body);
    return {};
}

Result<std::optional<Message>> ReadResponder::next_message() {
    // As many may be with the sender as may wait: then there is room for both.
    if (begun_ == entries_.size() || begun_ == depth_) return std::optional<Message>{};
    auto& entry = entries_[begun_];
    Message message;
    if (entry.atomic) {
        message.opcode = wire::RdmapOpcode::atomic_response;
        body_piece_ = entry.body;
        source_ = {MemoryRange({&body_piece_, 1}, 0, entry.body.size()), {}};
    } else {
        const auto& request = entry.asked.request;
        WEFT_TRY(source_, source_of(request));
        message.opcode = wire::RdmapOpcode::read_response;
        message.tag = request.sink_tag;
        message.offset = static_cast<std::uint64_t>(request.sink_offset);
    }
    message.payload = {&source_, 1};
    ++begun_;
    return std::optional(message);
}

void ReadResponder::message_sent() {
    entries_.pop_front();
    --begun_;
}

}  // namespace weft::iwarp
