// SPDX-License-Identifier: Apache-2.0
#include "iwarp/segment_cutter.hpp"

#include <limits>

namespace weft::iwarp {
namespace {

/// MPA pads an FPDU to this; it is best when only a message's last segment needs padding. Either
/// header fills a multiple of it together with the FPDU's length, so the payload decides.
constexpr std::size_t padding_unit = 4;
static_assert((2 + wire_size<wire::TaggedSegment>()) % padding_unit == 0);
static_assert((2 + wire_size<wire::UntaggedSegment>()) % padding_unit == 0);

std::size_t header_size(wire::RdmapOpcode opcode) {
    return wire::is_tagged(opcode) ? wire_size<wire::TaggedSegment>()
                                   : wire_size<wire::UntaggedSegment>();
}

void drop_back(SegmentPayload& payload, std::size_t count) {
    while (count > 0) {
        ConstBuffer& back = payload[payload.size() - 1];
        if (back.size() > count) {
            back = back.first(back.size() - count);
            return;
        }
        count -= back.size();
        payload.pop_back();
    }
}

}  // namespace

SegmentCutter::SegmentCutter(std::size_t segment_max) : segment_max_(segment_max) {
    WEFT_CHECK(segment_max >= wire::segment_header_limit + padding_unit);
}

void SegmentCutter::Cursor::enter_next() {
    while (here.empty() && !behind.empty()) {
        here = behind.front().bytes;
        behind = behind.subspan(1);
    }
}

void SegmentCutter::Cursor::advance(std::size_t count) {
    while (count > 0) {
        auto step = std::min(count, here.size());
        WEFT_CHECK(step > 0);
        here.drop_front(step);
        count -= step;
        enter_next();
    }
}

void SegmentCutter::begin(const Message& message) {
    WEFT_CHECK(done_);
    WEFT_CHECK(message.payload.size() <= ranges_per_message);
    std::uint64_t size = 0;
    for (const auto& source : message.payload) size += source.bytes.size();
    WEFT_CHECK(size <= std::numeric_limits<std::uint32_t>::max());

    done_ = false;
    message_ = message;
    cursor_ = {.behind = message.payload, .here = {}};
    cursor_.enter_next();
    offset_ = 0;
    left_ = static_cast<std::uint32_t>(size);
    if (!wire::is_tagged(message.opcode))
        message_number_ = ++last_numbers_[static_cast<std::size_t>(wire::queue_of(message.opcode))];
}

std::size_t SegmentCutter::next_payload_max() const {
    return std::min<std::size_t>(left_, segment_max_ - header_size(message_.opcode));
}

std::size_t SegmentCutter::cut(Buffer header, SegmentPayload& payload) {
    WEFT_CHECK(!done_);
    auto start = cursor_;
    auto size = gather(next_payload_max(), payload);
    if (auto excess = size % padding_unit; excess > 0 && size < left_) {
        drop_back(payload, excess);
        size -= excess;
        cursor_ = start;
        cursor_.advance(size);
    }
    done_ = size == left_;
    encode_header(header, done_);
    offset_ += static_cast<std::uint32_t>(size);
    left_ -= static_cast<std::uint32_t>(size);
    return header_size(message_.opcode);
}

/// Takes up to `most` octets of the payload, fewer if they lie in too many places.
std::size_t SegmentCutter::gather(std::size_t most, SegmentPayload& payload) {
    std::size_t size = 0;
    while (size < most && !payload.full()) {
        ConstBuffer piece = cursor_.here.front();
        piece = piece.first(std::min(piece.size(), most - size));
        WEFT_CHECK(!piece.empty());
        payload.push_back(piece);
        cursor_.advance(piece.size());
        size += piece.size();
    }
    return size;
}

void SegmentCutter::encode_header(Buffer header, bool last) const {
    if (wire::is_tagged(message_.opcode)) {
        encode(wire::TaggedSegment{.last = last,
                                   .opcode = message_.opcode,
                                   .steering_tag = message_.tag,
                                   .offset = wire::TaggedOffset{message_.offset + offset_}},
               header);
    } else {
        auto invalidate = wire::invalidates(message_.opcode) ? message_.tag : SteeringTag{};
        encode(wire::UntaggedSegment{.last = last,
                                     .opcode = message_.opcode,
                                     .invalidate = invalidate,
                                     .queue = wire::queue_of(message_.opcode),
                                     .message_number = message_number_,
                                     .message_offset = offset_},
               header);
    }
}

}  // namespace weft::iwarp
