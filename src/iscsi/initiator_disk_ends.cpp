// SPDX-License-Identifier: Apache-2.0
// What becomes of an InitiatorDisk's commands: done, tried again, or failed.
#include <algorithm>

#include "block/admission.hpp"
#include "iscsi/command_fate.hpp"
#include "iscsi/initiator_disk.hpp"

namespace weft::iscsi {

void InitiatorDisk::command_ended(Flight& flight, const CommandEnd& end) {
    if (!end.delivered) return complete(flight, end.delivered);
    const Fate fate = fate_of(end);
    if (fate.key == wire::SenseKey::unit_attention) note_attention(fate.additional);
    switch (fate.kind) {
        case FateKind::done:
            return part_done(flight, end);
        case FateKind::again:
        case FateKind::later:
            return try_again(flight, fate);
        case FateKind::failed:
            break;
    }
    // A target without a cache to flush keeps nothing back, as far as anyone can tell.
    const bool flush = flight.flushing || flight.request->operation == BlockOperation::flush;
    if (flush && fate.error.code == Code::unsupported) {
        traits_.can_flush = false;
        return complete(flight, {});
    }
    complete(flight, fate.error);
}

void InitiatorDisk::try_again(Flight& flight, const Fate& fate) {
    // One that was begun and broken off has perhaps been done in part; after a later write to the
    // same place it must not be done again (initiator_command.hpp).
    const bool begun = fate.kind == FateKind::again && fate.key != wire::SenseKey::unit_attention;
    if (begun) flight.was_begun();
    const unsigned most = fate.kind == FateKind::later ? busy_attempts_max : command_attempts_max;
    if (++flight.attempts > most || (flight.perhaps_carried_out() && flight.overtaken()))
        return complete(flight, fate.error);
    if (fate.kind == FateKind::later) return session_.submit_later(flight);
    session_.submit_again(flight);
}

void InitiatorDisk::note_attention(wire::AdditionalSense additional) {
    const bool look = additional == wire::AdditionalSense::capacity_data_has_changed ||
                      additional == wire::AdditionalSense::medium_may_have_changed;
    if (!look || probe_->busy()) return;
    probe_->look_again([this](Result<void> outcome) {
        if (outcome) take_facts();
        if (!outcome && outcome.error().code == Code::access_denied) give_up(outcome.error());
    });
}

void InitiatorDisk::part_done(Flight& flight, const CommandEnd& end) {
    BlockRequest& request = *flight.request;
    if (flight.flushing) return complete(flight, {});
    const bool whole =
        end.residual == wire::Residual::none || !block::moves_data(request.operation);
    if (!whole || (request.operation == BlockOperation::read && end.placed != request.length))
        return complete(flight, Error{.code = Code::io_failed});
    if (request.operation == BlockOperation::status)
        return complete(flight, read_status(flight, static_cast<std::size_t>(end.placed)));
    flight.handled += flight.part;
    flight.attempts = 0;
    if (request.operation != BlockOperation::flush && flight.handled < request.length)
        return ask(flight);
    const bool forced = request.operation == BlockOperation::write && fua_;
    if (request.durable && block::changes_data(request.operation) && !forced) {
        flight.flushing = true;
        return ask(flight);
    }
    complete(flight, {});
}

Result<void> InitiatorDisk::read_status(Flight& flight, std::size_t size) {
    BlockRequest& request = *flight.request;
    const ConstBuffer answer = ConstBuffer(flight.answer).first(size);
    WEFT_TRY(const auto header, decode<wire::LbaStatusHeader>(answer));
    ConstBuffer rest = answer.subspan(wire_size<wire::LbaStatusHeader>());
    // The length counts four reserved octets of the header too.
    rest = rest.first(
        std::min<std::size_t>(rest.size(), std::max<std::uint32_t>(header.length_after, 4) - 4));
    std::uint64_t at = request.offset;
    const std::uint64_t end = request.offset + request.length;
    request.extent_count = 0;
    const bool zero = probe_->facts().unmapped_reads_zero;
    while (at < end && request.extent_count < request.extents.size()) {
        const auto descriptor = decode<wire::LbaStatusDescriptor>(rest);
        if (!descriptor) break;
        rest = rest.subspan(wire_size<wire::LbaStatusDescriptor>());
        const std::uint64_t first = descriptor->first_block * traits_.minimum_block;
        const std::uint64_t last =
            first + std::uint64_t{descriptor->block_count} * traits_.minimum_block;
        if (first > at || last <= at) break;  // a hole in the answer, or no progress
        const bool mapped = descriptor->provisioning == wire::Provisioning::mapped;
        request.extents[request.extent_count++] = {
            .length = std::min(last, end) - at,
            .hole = descriptor->provisioning == wire::Provisioning::deallocated,
            .zero = !mapped && zero};
        at = std::min(last, end);
    }
    if (request.extent_count == 0) return Error{.code = Code::malformed};
    return {};
}

void InitiatorDisk::complete(Flight& flight, Result<void> outcome) {
    BlockRequest& request = *std::exchange(flight.request, nullptr);
    free_.push_back(&flight);
    launch_waiting();
    request.completed(outcome);
}

}  // namespace weft::iscsi
