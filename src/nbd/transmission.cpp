// SPDX-License-Identifier: Apache-2.0
#include "nbd/transmission.hpp"

#include <algorithm>

#include "base/error_text.hpp"
#include "block/admission.hpp"

namespace weft::nbd {

using namespace wire::nbd;

struct Transmission::Slot final : BlockRequest {
    Transmission* owner = nullptr;
    RequestHeader header;
    std::optional<ErrorNumber> refused;  ///< known before the payload came
    Buffer place;                        ///< where payload lies: lent or pooled
    bool pooled = false;
    std::uint8_t reply_size = 0;
    std::array<std::byte, wire_size<ChunkHeader>() + wire_size<DataOffset>()> reply_header;
    ConstBuffer reply_payload;

    void completed(Result<void> outcome) override { owner->completed(*this, outcome); }
    std::size_t reply_total() const { return reply_size + reply_payload.size(); }
};

namespace {

/// A status reply is worked out and encoded in one pooled buffer: extents first, octets behind.
constexpr std::size_t extents_bytes = extents_max * sizeof(Extent);
constexpr std::size_t status_bytes =
    extents_bytes + wire_size<MetaContextId>() + extents_max * wire_size<StatusDescriptor>();

ErrorNumber number_of(Code code, const BlockRequest& request) {
    switch (code) {
        case Code::access_denied:
            return ErrorNumber::not_permitted;
        case Code::exhausted:
            return ErrorNumber::no_space;
        case Code::unsupported:
            // The protocol keeps this one for zeroing that was to be fast or not at all.
            return request.fast_only ? ErrorNumber::not_supported : ErrorNumber::invalid;
        case Code::out_of_range:
        case Code::malformed:
            return ErrorNumber::invalid;
        default:
            return ErrorNumber::io;
    }
}

const char* sentence(ErrorNumber error) {
    switch (error) {
        case ErrorNumber::not_permitted:
            return "this export is read-only";
        case ErrorNumber::no_space:
            return "the request reaches beyond the end of the export";
        case ErrorNumber::no_memory:
            return "other clients hold the server's memory; try again, or ask for less";
        default:
            return "the request's command, flags, offset or length are not valid";
    }
}

constexpr std::uint16_t flags_allowed(Command command, bool structured) {
    switch (command) {
        case Command::read:
            return structured ? flag_durable | flag_do_not_fragment : flag_durable;
        case Command::write_zeroes:
            return flag_durable | flag_no_hole | flag_fast_zero;
        case Command::block_status:
            return flag_durable | flag_one_extent;
        default:
            return flag_durable;
    }
}

bool changes_data(Command command) {
    return command == Command::write || command == Command::trim ||
           command == Command::write_zeroes;
}

std::optional<BlockOperation> operation_of(Command command) {
    switch (command) {
        case Command::read:
            return BlockOperation::read;
        case Command::write:
            return BlockOperation::write;
        case Command::flush:
            return BlockOperation::flush;
        case Command::trim:
            return BlockOperation::trim;
        case Command::cache:
            return BlockOperation::prefetch;
        case Command::write_zeroes:
            return BlockOperation::write_zeroes;
        case Command::block_status:
            return BlockOperation::status;
        default:
            return std::nullopt;
    }
}

}  // namespace

Transmission::Transmission(const Export& offered, Dialect dialect, ServerReceiver& receiver,
                           block::BufferPool& pool, Statistics& statistics,
                           std::function<void()> wake)
    : export_(offered),
      dialect_(dialect),
      receiver_(receiver),
      pool_(pool),
      statistics_(statistics),
      wake_(std::move(wake)),
      share_(pool, [this] { memory_came(); }),
      slots_(requests_in_flight_max),
      replies_(requests_in_flight_max) {
    for (auto& slot : slots_) {
        slot.owner = this;
        free_.push_back(&slot);
    }
}

Transmission::~Transmission() {
    WEFT_CHECK(quiet());
    for (auto& slot : slots_)
        if (slot.pooled) share_.give_back(slot.place);
}

Result<void> Transmission::request(const RequestHeader& header) {
    WEFT_CHECK(ready());
    bool has_payload = header.command == Command::write && header.length > 0;
    if (has_payload && header.length > refused_payload_max)
        return Error{.code = Code::out_of_range};
    Slot& slot = *free_.back();
    free_.pop_back();
    slot.header = header;
    slot.refused = refusal(header);
    if (slot.refused) {
        refuse(slot, *slot.refused);
        return {};
    }
    describe_request(slot);
    proceed(slot);
    return {};
}

/// Answers a request that will not be carried out, if need be when its payload has been read.
void Transmission::refuse(Slot& slot, ErrorNumber error) {
    slot.refused = error;
    bool has_payload = slot.header.command == Command::write && slot.header.length > 0;
    if (!has_payload) return reply_error(slot, error, sentence(error));
    receiving_ = &slot;
    receiver_.discard_payload(slot.header.length);
}

std::optional<ErrorNumber> Transmission::refusal(const RequestHeader& header) const {
    auto operation = operation_of(header.command);
    if (!operation) return ErrorNumber::invalid;
    if (header.flags & ~flags_allowed(header.command, dialect_.structured_replies))
        return ErrorNumber::invalid;
    auto traits = export_.device->traits();
    traits.read_only |= export_.read_only;
    traits.maximum_transfer = block_sizes(traits).maximum;
    traits.can_report_status = dialect_.allocation_status;
    if (operation == BlockOperation::status && header.length == 0) return ErrorNumber::invalid;
    auto refused = block::refusal_of(*operation, header.offset, header.length, traits);
    if (!refused) return std::nullopt;
    if (refused->code == Code::access_denied) return ErrorNumber::not_permitted;
    bool fills_space = header.command == Command::write || header.command == Command::write_zeroes;
    bool beyond_the_end = !within(header.offset, header.length, traits.size);
    return fills_space && beyond_the_end ? ErrorNumber::no_space : ErrorNumber::invalid;
}

void Transmission::describe_request(Slot& slot) const {
    slot.operation = *operation_of(slot.header.command);
    slot.offset = slot.header.offset;
    slot.length = slot.header.length;
    if (slot.operation == BlockOperation::flush) slot.offset = slot.length = 0;
    slot.durable = (slot.header.flags & flag_durable) && changes_data(slot.header.command);
    slot.keep_space = (slot.header.flags & flag_no_hole) != 0;
    slot.fast_only = (slot.header.flags & flag_fast_zero) != 0;
    slot.memory = {};
    slot.extents = {};
    slot.extent_count = 0;
}

/// Gives the request the memory it needs, or says that it must wait for some.
Transmission::Memory Transmission::provide_memory(Slot& slot) {
    std::size_t size = 0;
    switch (slot.operation) {
        case BlockOperation::read:
        case BlockOperation::write:
            size = slot.header.length;
            break;
        case BlockOperation::status:
            size = status_bytes;
            break;
        default:
            break;
    }
    if (size == 0) return Memory::not_needed;
    if (slot.operation != BlockOperation::status)
        slot.place = export_.device->lend(slot.operation, slot.offset, size);
    if (slot.place.empty()) {
        auto held = share_.held_bytes();
        if (held > 0 && held + size > payload_bytes_max) return Memory::must_wait;
        slot.place = share_.take(size);
        if (slot.place.empty()) return Memory::must_wait;
        slot.pooled = true;
    }
    if (slot.operation == BlockOperation::status) {
        auto count = slot.header.flags & flag_one_extent ? 1 : extents_max;
        slot.extents = {reinterpret_cast<Extent*>(slot.place.data()), count};
    } else {
        slot.memory = {&slot.place, 1};
    }
    return Memory::provided;
}

void Transmission::proceed(Slot& slot) {
    stalled_ = nullptr;
    switch (provide_memory(slot)) {
        case Memory::must_wait:
            stalled_ = &slot;
            patience_ends_ = {};
            return;
        case Memory::not_needed:
            submit(slot);
            return;
        case Memory::provided:
            break;
    }
    if (slot.operation != BlockOperation::write) return submit(slot);
    receiving_ = &slot;
    receiver_.place_payload(slot.place);
}

/// Others gave memory back. This is no call of our stream's, so it must be woken.
void Transmission::memory_came() {
    proceed(*stalled_);
    wake_();
}

std::optional<Instant> Transmission::deadline() const {
    if (!share_.waiting()) return std::nullopt;
    return patience_ends_;
}

void Transmission::tick(Instant now) {
    if (!share_.waiting() || now < patience_ends_) return;
    if (patience_ends_ == Instant{}) {
        patience_ends_ = now + memory_patience;
        return;
    }
    share_.stop_waiting();
    refuse(*std::exchange(stalled_, nullptr), ErrorNumber::no_memory);
    wake_();
}

void Transmission::payload_end() {
    WEFT_CHECK(receiving_ != nullptr);
    Slot& slot = *std::exchange(receiving_, nullptr);
    if (slot.refused)
        reply_error(slot, *slot.refused, sentence(*slot.refused));
    else
        submit(slot);
}

void Transmission::submit(Slot& slot) {
    ++with_device_;
    export_.device->submit(slot);
}

void Transmission::completed(Slot& slot, Result<void> outcome) {
    --with_device_;
    if (abandoned_) {
        release(slot);
        pool_.serve_waiting();
        if (quiet()) wake_();
        return;
    }
    // A device without a cache has nothing to prefetch, which is no failure: it was only a hint.
    bool idle_hint = slot.operation == BlockOperation::prefetch && !outcome &&
                     outcome.error().code == Code::unsupported;
    if (outcome || idle_hint)
        reply(slot);
    else
        reply_error(slot, number_of(outcome.error().code, slot), to_text(outcome.error().code));
}

void Transmission::reply(Slot& slot) {
    if (slot.operation == BlockOperation::read) {
        statistics_.bytes_read += slot.length;
        return reply_data(slot);
    }
    if (slot.operation == BlockOperation::status) return reply_status(slot);
    if (slot.operation == BlockOperation::write) statistics_.bytes_written += slot.length;
    encode(SimpleReply{ErrorNumber::none, slot.header.cookie}, slot.reply_header);
    slot.reply_size = wire_size<SimpleReply>();
    enqueue(slot);
}

void Transmission::reply_data(Slot& slot) {
    slot.reply_payload = slot.place;
    if (!dialect_.structured_replies) {
        encode(SimpleReply{ErrorNumber::none, slot.header.cookie}, slot.reply_header);
        slot.reply_size = wire_size<SimpleReply>();
    } else if (slot.place.empty()) {
        encode(ChunkHeader{true, ChunkType::none, slot.header.cookie, 0}, slot.reply_header);
        slot.reply_size = wire_size<ChunkHeader>();
    } else {
        auto length = static_cast<std::uint32_t>(wire_size<DataOffset>() + slot.place.size());
        encode(ChunkHeader{true, ChunkType::offset_data, slot.header.cookie, length},
               slot.reply_header);
        encode(DataOffset{slot.header.offset},
               Buffer(slot.reply_header).subspan(wire_size<ChunkHeader>()));
        slot.reply_size = static_cast<std::uint8_t>(slot.reply_header.size());
    }
    enqueue(slot);
}

void Transmission::reply_status(Slot& slot) {
    if (slot.extent_count == 0)
        return reply_error(slot, ErrorNumber::io, "the device does not know its allocation");
    Buffer octets = slot.place.subspan(extents_bytes);
    encode(MetaContextId{Handshake::allocation_context_id}, octets);
    std::size_t size = wire_size<MetaContextId>();
    for (const auto& extent : slot.extents.first(slot.extent_count)) {
        encode(
            StatusDescriptor{static_cast<std::uint32_t>(extent.length), extent.zero, extent.hole},
            octets.subspan(size));
        size += wire_size<StatusDescriptor>();
    }
    slot.reply_payload = octets.first(size);
    encode(ChunkHeader{true, ChunkType::block_status, slot.header.cookie,
                       static_cast<std::uint32_t>(size)},
           slot.reply_header);
    slot.reply_size = wire_size<ChunkHeader>();
    enqueue(slot);
}

void Transmission::reply_error(Slot& slot, ErrorNumber error, const char* message) {
    ++statistics_.refused;
    slot.reply_payload = {};
    if (dialect_.structured_replies) {
        auto text = bytes_of(message);
        auto length = static_cast<std::uint32_t>(wire_size<ChunkError>() + text.size());
        encode(ChunkHeader{true, ChunkType::error, slot.header.cookie, length}, slot.reply_header);
        encode(ChunkError{error, static_cast<std::uint16_t>(text.size())},
               Buffer(slot.reply_header).subspan(wire_size<ChunkHeader>()));
        slot.reply_size = wire_size<ChunkHeader>() + wire_size<ChunkError>();
        slot.reply_payload = text;
    } else {
        encode(SimpleReply{error, slot.header.cookie}, slot.reply_header);
        slot.reply_size = wire_size<SimpleReply>();
    }
    enqueue(slot);
}

void Transmission::enqueue(Slot& slot) {
    ++statistics_.requests;
    replies_.push_back(&slot);
    if (replies_.size() == 1) wake_();
}

std::size_t Transmission::pending(std::span<ConstBuffer> pieces) {
    std::size_t count = 0;
    std::size_t skip = front_sent_;
    for (std::size_t i = 0; i < replies_.size(); ++i) {
        const Slot& slot = *replies_[i];
        for (ConstBuffer piece :
             {ConstBuffer(slot.reply_header).first(slot.reply_size), slot.reply_payload}) {
            auto gone = std::min(skip, piece.size());
            skip -= gone;
            if (gone == piece.size()) continue;
            if (count == pieces.size()) return count;
            pieces[count++] = piece.subspan(gone);
        }
    }
    return count;
}

void Transmission::sent(std::size_t count) {
    bool was_ready = ready();
    front_sent_ += count;
    while (!replies_.empty() && front_sent_ >= replies_.front()->reply_total()) {
        Slot& slot = *replies_.front();
        front_sent_ -= slot.reply_total();
        replies_.pop_front();
        release(slot);
    }
    WEFT_CHECK(!replies_.empty() || front_sent_ == 0);
    // In the pool's queue we have a place, and are told; else it was our own bound that we met.
    if (stalled_ != nullptr && !share_.waiting()) proceed(*stalled_);
    pool_.serve_waiting();
    if (!was_ready) wake_();
}

void Transmission::release(Slot& slot) {
    if (slot.pooled) share_.give_back(slot.place);
    slot.pooled = false;
    slot.place = {};
    slot.reply_payload = {};
    free_.push_back(&slot);
}

void Transmission::abandon() {
    abandoned_ = true;
    share_.stop_waiting();
    while (!replies_.empty()) {
        Slot& slot = *replies_.front();
        replies_.pop_front();
        release(slot);
    }
    front_sent_ = 0;
    if (auto* slot = std::exchange(stalled_, nullptr)) release(*slot);
    if (auto* slot = std::exchange(receiving_, nullptr)) {
        bool lent = !slot->refused && !slot->pooled;
        if (lent)
            submit_for_nobody(*slot);
        else
            release(*slot);
    }
    pool_.serve_waiting();
}

/// Bytes that came into lent memory are on the device already: it must hear of the write.
void Transmission::submit_for_nobody(Slot& slot) {
    ++with_device_;  // if it answers at once, the caller still learns from quiet(), not twice
    submit(slot);
    --with_device_;
}

}  // namespace weft::nbd
