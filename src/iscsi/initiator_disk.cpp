// SPDX-License-Identifier: Apache-2.0
#include "iscsi/initiator_disk.hpp"

#include <algorithm>

#include "block/admission.hpp"
#include "iscsi/command_fate.hpp"
#include "wire/scsi_block_commands.hpp"

namespace weft::iscsi {

InitiatorDisk::InitiatorDisk(InitiatorSession& session, wire::LogicalUnit unit,
                             std::uint32_t transfer_unsaid)
    : session_(session),
      unit_(unit),
      transfer_unsaid_(transfer_unsaid),
      probe_(std::make_unique<UnitProbe>(session, unit)) {
    for (std::size_t i = 0; i < initiator_commands_max; ++i) {
        Flight& flight = *flights_.emplace_back(std::make_unique<Flight>());
        flight.disk = this;
        free_.push_back(&flight);
    }
}

InitiatorDisk::~InitiatorDisk() {
    WEFT_CHECK(free_.size() == flights_.size() && waiting_.empty());
    UnitProbe::leave(std::move(probe_));
}

void InitiatorDisk::session_up(std::function<void(Result<void>)> told) {
    // Nothing goes before it is known that this is still the same disk.
    if (known_) session_.hold(true);
    if (probe_->busy()) return;  // it began in the session before and goes on by itself
    auto heard = [this, told = std::move(told)](Result<void> outcome) {
        if (outcome) take_facts();
        if (!outcome && (!known_ || outcome.error().code == Code::access_denied))
            gone_ = outcome.error();
        // What it is could not be found out: perhaps in another session.
        if (!outcome && !gone_) return session_.drop(outcome.error());
        // Whoever hears a last completion, or this, may drop the disk.
        const std::weak_ptr<char> alive = alive_;
        auto& session = session_;
        // Before the rest may go: if it is another disk, nothing may.
        if (gone_) give_up(*gone_);
        session.hold(false);
        told(outcome);
        if (!alive.expired()) launch_waiting();
    };
    if (!known_) return probe_->explore(heard);
    probe_->look_again(heard);
}

void InitiatorDisk::take_facts() {
    const UnitFacts& facts = probe_->facts();
    const std::uint64_t size = facts.block_count * facts.block_bytes;
    const bool grown = known_ && size != traits_.size;
    const auto& limits = facts.limits;
    std::uint64_t longest = transfer_unsaid_;
    if (limits && limits->max_transfer > 0)
        longest = std::min<std::uint64_t>(initiator_transfer_max,
                                          std::uint64_t{limits->max_transfer} * facts.block_bytes);
    traits_.size = size;
    traits_.minimum_block = facts.block_bytes;
    traits_.preferred_block = std::max(
        4096u, facts.block_bytes << std::min<unsigned>(facts.blocks_per_physical_exponent, 8));
    traits_.maximum_transfer = static_cast<std::uint32_t>(round_down(longest, facts.block_bytes));
    traits_.read_only = facts.write_protected;
    traits_.rotational = facts.rotation_rate.value_or(1) > 1;
    const auto& thin = facts.provisioning;
    traits_.can_trim = facts.provisioning_management && thin && thin->unmap;
    traits_.can_write_zeroes = true;
    traits_.can_report_status = facts.provisioning_management;
    fua_ = facts.can_force_unit_access;
    zeroes_.assign(facts.block_bytes, std::byte{});
    zero_piece_ = zeroes_;
    known_ = true;
    if (grown) announce_size(size);
}

void InitiatorDisk::give_up(Error why) {
    gone_ = why;
    const std::weak_ptr<char> alive = alive_;
    session_.give_up(why);
    if (!alive.expired()) launch_waiting();
}

void InitiatorDisk::submit(BlockRequest& request) {
    waiting_.push_back(request);
    launch_waiting();
}

void InitiatorDisk::launch_waiting() {
    // A refusal completes a request at once, whose maker may submit the next.
    if (launching_) return;
    launching_ = true;
    while ((known_ || gone_) && !waiting_.empty() && !free_.empty()) {
        Flight& flight = *free_.back();
        free_.pop_back();
        flight.request = &waiting_.pop_front();
        flight.handled = 0;
        flight.attempts = 0;
        flight.flushing = false;
        const bool last = waiting_.empty();
        if (last) launching_ = false;
        launch(flight);
        if (last) return;  // it may have been answered, and the disk dropped
    }
    launching_ = false;
}

void InitiatorDisk::launch(Flight& flight) {
    if (gone_) return complete(flight, *gone_);
    if (auto refused = block::refusal_of(*flight.request, traits_))
        return complete(flight, *refused);
    const bool needs_range = flight.request->operation != BlockOperation::flush;
    if (needs_range && flight.request->length == 0) return complete(flight, {});
    ask(flight);
}

void InitiatorDisk::ask(Flight& flight) {
    if (flight.flushing) return ask_flush(flight);
    switch (flight.request->operation) {
        case BlockOperation::read:
        case BlockOperation::write:
            return ask_transfer(flight);
        case BlockOperation::flush:
            return ask_flush(flight);
        case BlockOperation::trim:
            return ask_unmap(flight);
        case BlockOperation::write_zeroes:
            return ask_zeroes(flight);
        case BlockOperation::prefetch:
            return ask_prefetch(flight);
        case BlockOperation::status:
            return ask_status(flight);
    }
}

template <class Block>
void InitiatorDisk::send(Flight& flight, const Block& block, Effect effect) {
    std::array<std::byte, wire_size<Block>()> octets{};
    encode(block, octets);
    flight.prepare(unit_, octets, effect);
    flight.offset = flight.request->offset + flight.handled;
    flight.length = flight.part;
}

void InitiatorDisk::ask_transfer(Flight& flight) {
    const BlockRequest& request = *flight.request;
    const auto size = static_cast<std::uint32_t>(request.length);
    flight.part = request.length;
    if (request.operation == BlockOperation::read) {
        send(flight,
             wire::Read16{.block_address = blocks(request.offset),
                          .block_count = static_cast<std::uint32_t>(blocks(size))},
             Effect::reads);
        flight.set_data_in(request.memory, size);
    } else {
        send(flight,
             wire::Write16{.flags = {.force_unit_access = request.durable && fua_},
                           .block_address = blocks(request.offset),
                           .block_count = static_cast<std::uint32_t>(blocks(size))},
             Effect::replaces);
        flight.set_data_out(request.memory, size);
    }
    session_.submit(flight);
}

void InitiatorDisk::ask_flush(Flight& flight) {
    flight.part = 0;
    send(flight, wire::SynchronizeCache10{}, Effect::reads);
    session_.submit(flight);
}

void InitiatorDisk::ask_unmap(Flight& flight) {
    const BlockRequest& request = *flight.request;
    const auto& limits = probe_->facts().limits;
    const std::uint64_t most =
        limits && limits->max_unmap_blocks > 0 ? limits->max_unmap_blocks : 0xffffffff;
    const std::uint64_t count = std::min(blocks(request.length - flight.handled), most);
    flight.part = count * traits_.minimum_block;
    send(flight, wire::Unmap{.parameter_length = static_cast<std::uint16_t>(flight.list.size())},
         Effect::replaces);
    encode(wire::UnmapListHeader{.length_after = 22, .descriptors_length = 16}, flight.list);
    encode(wire::UnmapDescriptor{.first_block = blocks(request.offset + flight.handled),
                                 .block_count = static_cast<std::uint32_t>(count)},
           Buffer(flight.list).subspan(wire_size<wire::UnmapListHeader>()));
    flight.piece = flight.list;
    flight.set_data_out({&flight.piece, 1}, static_cast<std::uint32_t>(flight.list.size()));
    session_.submit(flight);
}

void InitiatorDisk::ask_zeroes(Flight& flight) {
    const BlockRequest& request = *flight.request;
    const UnitFacts& facts = probe_->facts();
    std::uint64_t most = initiator_zero_blocks_max;
    if (facts.limits && facts.limits->max_write_same > 0)
        most = std::min(most, facts.limits->max_write_same);
    const std::uint64_t count = std::min(blocks(request.length - flight.handled), most);
    const bool may_unmap = !request.keep_space && facts.unmapped_reads_zero && facts.provisioning &&
                           facts.provisioning->write_same_16;
    flight.part = count * traits_.minimum_block;
    send(flight,
         wire::WriteSame16{.flags = {.unmap = may_unmap},
                           .block_address = blocks(request.offset + flight.handled),
                           .block_count = static_cast<std::uint32_t>(count)},
         Effect::replaces);
    flight.set_data_out({&zero_piece_, 1}, traits_.minimum_block);
    session_.submit(flight);
}

void InitiatorDisk::ask_prefetch(Flight& flight) {
    const BlockRequest& request = *flight.request;
    const std::uint64_t count = std::min(blocks(request.length), std::uint64_t{0xffff});
    flight.part = request.length;
    send(flight,
         wire::Prefetch16{.flags = {.immediate = true},
                          .block_address = blocks(request.offset),
                          .block_count = static_cast<std::uint32_t>(count)},
         Effect::reads);
    session_.submit(flight);
}

void InitiatorDisk::ask_status(Flight& flight) {
    flight.answer.resize(wire_size<wire::LbaStatusHeader>() +
                         initiator_extents_max * wire_size<wire::LbaStatusDescriptor>());
    const auto size = static_cast<std::uint32_t>(flight.answer.size());
    flight.part = flight.request->length;
    send(flight,
         wire::GetLbaStatus{.first_block = blocks(flight.request->offset),
                            .allocation_length = size},
         Effect::reads);
    flight.piece = flight.answer;
    flight.set_data_in({&flight.piece, 1}, size);
    session_.submit(flight);
}

}  // namespace weft::iscsi
