// SPDX-License-Identifier: Apache-2.0
#include "wire/terminate.hpp"

#include <cstring>

namespace weft::wire {
namespace {

constexpr std::size_t segment_size_size = 2;

bool has_flags(const TerminateControl& control) {
    return control.segment_size_valid || control.segment_header_included ||
           control.read_request_included;
}

bool between(std::uint8_t value, auto first, auto last) {
    return value >= static_cast<std::uint8_t>(first) && value <= static_cast<std::uint8_t>(last);
}

bool rdmap_has_meaning(RdmapErrorType type, std::uint8_t code) {
    switch (type) {
        case RdmapErrorType::local_catastrophic:
            return true;  // it has no codes: any value will do
        case RdmapErrorType::remote_protection:
            using Protection = RemoteProtectionError;
            return between(code, Protection::invalid_steering_tag, Protection::offset_wraps) ||
                   code == static_cast<std::uint8_t>(Protection::cannot_invalidate) ||
                   code == static_cast<std::uint8_t>(Protection::unspecified);
        case RdmapErrorType::remote_operation:
            using Operation = RemoteOperationError;
            return between(code, Operation::invalid_version, Operation::cannot_invalidate) ||
                   code == static_cast<std::uint8_t>(Operation::unspecified);
    }
    return false;
}

bool ddp_has_meaning(DdpErrorType type, std::uint8_t code) {
    switch (type) {
        case DdpErrorType::local_catastrophic:
            return code == 0;
        case DdpErrorType::tagged_buffer:
            return between(code, TaggedBufferError::invalid_steering_tag,
                           TaggedBufferError::invalid_version);
        case DdpErrorType::untagged_buffer:
            return between(code, UntaggedBufferError::invalid_queue,
                           UntaggedBufferError::invalid_version);
    }
    return false;
}

Result<TerminateControl> decode_control(ConstBuffer octets, TerminateLayout layout) {
    if (layout == TerminateLayout::standard) return decode<TerminateControl>(octets);
    WEFT_TRY(auto swapped, decode<SiwTerminateControl>(octets));
    return swapped.control;
}

}  // namespace

bool has_meaning(const TerminateControl& control) {
    switch (control.layer) {
        case TerminateLayer::rdmap:
            return rdmap_has_meaning(RdmapErrorType{control.error_type}, control.error_code);
        case TerminateLayer::ddp:
            return ddp_has_meaning(DdpErrorType{control.error_type}, control.error_code);
        case TerminateLayer::mpa:
            return control.error_type == 0 && between(control.error_code, MpaError::connection_lost,
                                                      MpaError::no_matching_ready_message);
    }
    return false;
}

TerminateLayout guess_terminate_layout(ConstBuffer octets) {
    auto standard = decode_control(octets, TerminateLayout::standard);
    auto swapped = decode_control(octets, TerminateLayout::siw);
    if (!standard || !swapped || has_flags(*standard)) return TerminateLayout::standard;
    if (has_flags(*swapped)) return TerminateLayout::siw;
    return !has_meaning(*standard) && has_meaning(*swapped) ? TerminateLayout::siw
                                                            : TerminateLayout::standard;
}

Result<Terminate> decode_terminate(ConstBuffer octets, TerminateLayout layout) {
    const auto truncated =
        Error{.code = Code::truncated, .where = static_cast<std::uint32_t>(octets.size())};
    Terminate terminate;
    WEFT_TRY(terminate.control, decode_control(octets, layout));
    octets = octets.subspan(wire_size<TerminateControl>());
    if (terminate.control.segment_header_included) {
        if (octets.size() < segment_size_size + 1) return truncated;
        terminate.segment_size =
            static_cast<std::uint16_t>(load_big_endian<segment_size_size>(octets.data()));
        octets = octets.subspan(segment_size_size);
        auto header_size = segment_header_size(octets[0]);
        if (octets.size() < header_size) return truncated;
        terminate.segment_header = octets.first(header_size);
        octets = octets.subspan(header_size);
    }
    if (terminate.control.read_request_included) {
        if (octets.size() < wire_size<ReadRequest>()) return truncated;
        WEFT_TRY(terminate.read_request, decode<ReadRequest>(octets));
    }
    return terminate;
}

std::size_t encode_terminate(const Terminate& terminate, Buffer octets) {
    encode(terminate.control, octets);
    std::size_t at = wire_size<TerminateControl>();
    if (terminate.control.segment_header_included) {
        const auto header = terminate.segment_header;
        WEFT_CHECK(!header.empty() && header.size() == segment_header_size(header[0]));
        WEFT_CHECK(octets.size() >= at + segment_size_size + header.size());
        store_big_endian<segment_size_size>(terminate.segment_size, octets.data() + at);
        at += segment_size_size;
        std::memcpy(octets.data() + at, header.data(), header.size());
        at += header.size();
    }
    if (terminate.control.read_request_included) {
        encode(terminate.read_request, octets.subspan(at));
        at += wire_size<ReadRequest>();
    }
    return at;
}

}  // namespace weft::wire
