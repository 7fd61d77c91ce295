// SPDX-License-Identifier: Apache-2.0
#include "iwarp/fpdu_receiver.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "base/foreign_memory.hpp"
#include "iwarp/fault.hpp"

namespace weft::iwarp {
namespace {

constexpr std::size_t length_size = wire_size<wire::FpduLength>();
constexpr std::size_t tagged_start = length_size + wire_size<wire::TaggedSegment>();
constexpr std::size_t untagged_start = length_size + wire_size<wire::UntaggedSegment>();
static_assert(wire::marked_size(0, wire::fpdu_size(UINT16_MAX)) <= FpduBuffers::largest);

std::size_t ulpdu_size_at(ConstBuffer octets) {
    return load_big_endian<length_size>(octets.data());
}

}  // namespace

FpduReceiver::FpduReceiver(SegmentSink& sink, FpduBuffers& buffers, FpduBufferWaiter& waiter,
                           const FpduReceiverOptions& options)
    : sink_(sink),
      buffers_(buffers),
      waiter_(waiter),
      checksum_(options.checksum),
      markers_(options.markers),
      verified_first_(options.markers ||
                      (options.checksum && options.placement == Placement::verified)) {
    begin_fpdu();
}

FpduReceiver::~FpduReceiver() {
    buffers_.forget(waiter_);
    drop_buffer();
}

std::size_t FpduReceiver::first_part_size() const {
    // Every FPDU has at least a tagged header. With markers only the length is sure to be whole.
    if (markers_) return wire::marked_size(stream_position_, length_size);
    return tagged_start;
}

void FpduReceiver::begin_fpdu() {
    segment_ = {};
    crc_ = {};
    begin(Stage::start, Buffer(scratch_).first(first_part_size()));
}

Buffer FpduReceiver::want() {
    if (stage_ == Stage::payload) {
        auto place = sink_.place();
        memory_gone_ = place.empty();  // filled() will say so: these bytes belong nowhere any more
        // The header stays at the front of the scratch, for a Terminate to quote.
        if (memory_gone_) place = Buffer(scratch_).subspan(untagged_start);
        return part_ = place.first(std::min(place.size(), payload_left_));
    }
    if (stage_ == Stage::stalled) return {};
    if (part_.empty()) begin_whole();
    return part_.subspan(have_);
}

Result<void> FpduReceiver::filled(std::size_t count) {
    WEFT_CHECK(count > 0);
    octet_count_ += count;
    if (stage_ == Stage::payload) {
        if (memory_gone_) return sink_.memory_gone();
        if (checksum_) add_to_checksum(part_.first(count));
        sink_.placed(count);
        payload_left_ -= count;
        if (payload_left_ == 0) begin_payload_or_trailer();
        return {};
    }
    have_ += count;
    WEFT_CHECK(have_ <= part_.size());
    if (stage_ == Stage::start && !begins_with_room_for_header())
        return fault(wire::MpaError::framing);
    return have_ == part_.size() ? advance() : Result<void>{};
}

/// An FPDU too short for the header of a segment has fewer octets than are waited for here, and
/// its sender may send no more: what its length says is looked at as soon as it is there.
bool FpduReceiver::begins_with_room_for_header() const {
    const auto length = length_octets();
    const auto has_length = part_.data() + have_ >= length.data() + length.size();
    return !has_length || ulpdu_size_at(length) >= wire_size<wire::TaggedSegment>();
}

/// Of the FPDU that begins; there may be a marker before them.
ConstBuffer FpduReceiver::length_octets() const {
    return markers_ ? part_.last(length_size) : part_.first(length_size);
}

/// Octets in registered memory. If they are gone since, the checksum is wrong, and that is true.
void FpduReceiver::add_to_checksum(ConstBuffer placed) {
    (void)touch_foreign_memory([&] { crc_.add(placed); });
}

Result<void> FpduReceiver::advance() {
    switch (stage_) {
        case Stage::start:
            if (verified_first_) {
                auto plain = wire::fpdu_size(ulpdu_size_at(length_octets()));
                fpdu_size_ = markers_ ? wire::marked_size(stream_position_, plain) : plain;
                begin(Stage::whole, {});  // its buffer is taken when want() is asked
                return {};
            }
            segment_.ulpdu_size = ulpdu_size_at(part_);
            if (wire::segment_header_size(part_[length_size]) > wire_size<wire::TaggedSegment>()) {
                stage_ = Stage::untagged_rest;
                part_ = Buffer(scratch_).first(untagged_start);
                return {};
            }
            return read_header(part_);
        case Stage::untagged_rest:
            return read_header(part_);
        case Stage::trailer:
            return end_trailer();
        case Stage::whole:
            return end_whole();
        case Stage::payload:
        case Stage::stalled:
            break;
    }
    WEFT_CHECK(false);
    return {};
}

Result<std::size_t> FpduReceiver::take_whole(ConstBuffer bytes) {
    constexpr std::size_t nothing = 0;
    static_assert(untagged_start <= wire::fpdu_size(wire_size<wire::TaggedSegment>()));
    // Placed eagerly, a payload is there before its checksum is looked at, whatever comes of it.
    bool is_eager = checksum_ && !verified_first_;
    if (stage_ != Stage::start || have_ > 0 || markers_ || is_eager) return nothing;
    if (bytes.size() < untagged_start) return nothing;
    auto ulpdu_size = ulpdu_size_at(bytes);
    auto size = wire::fpdu_size(ulpdu_size);
    if (ulpdu_size < wire_size<wire::TaggedSegment>() || size > bytes.size()) return nothing;
    auto fpdu = bytes.first(size);
    if (checksum_ && !wire::fpdu_is_intact(fpdu)) return fault(wire::MpaError::checksum);

    // The header to where it is quoted from, if it comes to that.
    std::memcpy(scratch_.data(), fpdu.data(), untagged_start);
    segment_.ulpdu_size = ulpdu_size;
    if (auto known = know_header(Buffer(scratch_).subspan(length_size)); !known)
        return known.error();
    WEFT_TRY(auto readiness, sink_.begin(segment_));
    if (readiness == Readiness::not_yet) {
        // It will be asked again when the FPDU has come by want(), and may wait there.
        segment_ = {};
        return nothing;
    }
    octet_count_ += size;
    auto payload = fpdu.subspan(length_size + segment_.header_octets.size());
    if (auto placed = copy_into_place(payload.first(segment_.payload_size)); !placed)
        return placed.error();
    if (auto ended = end_fpdu(); !ended) return ended.error();
    return size;
}

Result<void> FpduReceiver::read_header(ConstBuffer octets) {
    if (!verified_first_ && checksum_) crc_.add(octets);
    if (auto known = know_header(octets.subspan(length_size)); !known) return known;
    return offer_segment();
}

/// What the octets of a header say; behind them there may be others.
Result<void> FpduReceiver::know_header(ConstBuffer header) {
    auto header_size = wire::segment_header_size(header.front());
    if (segment_.ulpdu_size < header_size) return fault(wire::MpaError::framing);
    segment_.header_octets = header.first(header_size);
    segment_.payload_size = segment_.ulpdu_size - header_size;
    auto decoded = wire::decode_segment(header.first(header_size));
    if (!decoded) {
        if (decoded.error().where == 1) return fault(wire::RemoteOperationError::invalid_version);
        bool tagged = header_size == wire_size<wire::TaggedSegment>();
        return tagged ? fault(wire::TaggedBufferError::invalid_version)
                      : fault(wire::UntaggedBufferError::invalid_version);
    }
    segment_.header = *decoded;
    return {};
}

Result<void> FpduReceiver::offer_segment() {
    WEFT_TRY(auto readiness, sink_.begin(segment_));
    if (readiness == Readiness::not_yet) {
        stage_ = Stage::stalled;
        return {};
    }
    if (verified_first_) return place_from_buffer();
    payload_left_ = segment_.payload_size;
    begin_payload_or_trailer();
    return {};
}

Result<void> FpduReceiver::resume() {
    if (stage_ != Stage::stalled) return {};
    // Its end may make the owner post the next receive, and that is not for this segment.
    stage_ = verified_first_ ? Stage::whole : Stage::untagged_rest;
    return offer_segment();
}

void FpduReceiver::begin_payload_or_trailer() {
    if (payload_left_ > 0) {
        begin(Stage::payload, {});
        return;
    }
    // The header's octets stay at the front of the scratch, for a Terminate to quote.
    auto size = wire::fpdu_trailer_size(segment_.ulpdu_size);
    begin(Stage::trailer, Buffer(scratch_).subspan(untagged_start, size));
}

Result<void> FpduReceiver::end_trailer() {
    if (checksum_) {
        crc_.add(part_.first(part_.size() - wire::fpdu_checksum_size));
        if (crc_.value() != wire::fpdu_checksum(part_)) return fault(wire::MpaError::checksum);
    }
    return end_fpdu();
}

void FpduReceiver::begin_whole() {
    auto first = first_part_size();
    if (fpdu_size_ <= scratch_.size()) {
        part_ = Buffer(scratch_).first(fpdu_size_);
    } else {
        lent_ = buffers_.take(fpdu_size_, waiter_);
        if (lent_.empty()) return;
        std::memcpy(lent_.data(), scratch_.data(), first);
        part_ = lent_.first(fpdu_size_);
    }
    have_ = first;
}

Result<void> FpduReceiver::end_whole() {
    if (checksum_ && !wire::fpdu_is_intact(part_)) return fault(wire::MpaError::checksum);
    Buffer plain = part_;
    if (markers_) {
        auto size = wire::remove_markers(part_, stream_position_, part_);
        if (!size) return fault(wire::MpaError::framing);
        plain = part_.first(*size);
        stream_position_ += fpdu_size_;
    }
    segment_.ulpdu_size = ulpdu_size_at(plain);
    return read_header(plain);
}

Result<void> FpduReceiver::place_from_buffer() {
    auto header_end = segment_.header_octets.data() + segment_.header_octets.size();
    if (auto copied = copy_into_place({header_end, segment_.payload_size}); !copied) return copied;
    return end_fpdu();
}

Result<void> FpduReceiver::copy_into_place(ConstBuffer payload) {
    while (!payload.empty()) {
        auto place = sink_.place();
        if (place.empty()) return sink_.memory_gone();
        auto count = std::min(place.size(), payload.size());
        if (!touch_foreign_memory([&] { std::memcpy(place.data(), payload.data(), count); }))
            return sink_.memory_gone();
        sink_.placed(count);
        payload = payload.subspan(count);
    }
    return {};
}

Result<void> FpduReceiver::end_fpdu() {
    auto ended = sink_.end(segment_);
    // After a failure the octets are still quoted: the buffer goes with the receiver.
    if (!ended) return ended;
    ++fpdu_count_;
    drop_buffer();
    begin_fpdu();
    return {};
}

void FpduReceiver::drop_buffer() {
    if (!lent_.empty()) buffers_.give_back(lent_);
    lent_ = {};
}

}  // namespace weft::iwarp
