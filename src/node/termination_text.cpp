// SPDX-License-Identifier: Apache-2.0
#include "node/termination_text.hpp"

#include <array>
#include <cstdio>

#include "wire/terminate.hpp"

namespace weft::node {
namespace {

const char* words_of(wire::RemoteProtectionError code) {
    switch (code) {
        case wire::RemoteProtectionError::invalid_steering_tag:
            return "invalid steering tag";
        case wire::RemoteProtectionError::out_of_bounds:
            return "outside the memory of steering tag";
        case wire::RemoteProtectionError::access_rights:
            return "no such right under steering tag";
        case wire::RemoteProtectionError::wrong_stream:
            return "another connection's steering tag";
        case wire::RemoteProtectionError::offset_wraps:
            return "offset too large for steering tag";
        case wire::RemoteProtectionError::cannot_invalidate:
            return "cannot invalidate steering tag";
        case wire::RemoteProtectionError::unspecified:
            break;
    }
    return "access violation at steering tag";
}

const char* words_of(wire::TaggedBufferError code) {
    using Protection = wire::RemoteProtectionError;
    switch (code) {
        case wire::TaggedBufferError::invalid_steering_tag:
            return words_of(Protection::invalid_steering_tag);
        case wire::TaggedBufferError::out_of_bounds:
            return words_of(Protection::out_of_bounds);
        case wire::TaggedBufferError::wrong_stream:
            return words_of(Protection::wrong_stream);
        case wire::TaggedBufferError::offset_wraps:
            return words_of(Protection::offset_wraps);
        case wire::TaggedBufferError::invalid_version:
            return "unknown DDP version at steering tag";
    }
    return words_of(Protection::unspecified);
}

const char* words_of(wire::MpaError code) {
    switch (code) {
        case wire::MpaError::connection_lost:
            return "its stream was lost";
        case wire::MpaError::checksum:
            return "a checksum was wrong";
        case wire::MpaError::framing:
            return "the framing was wrong";
        default:
            return "the start of the connection was wrong";
    }
}

const char* fault_of(const verbs::Termination& said) {
    switch (wire::TerminateLayer{said.layer}) {
        case wire::TerminateLayer::mpa:
            return words_of(wire::MpaError{said.error_code});
        case wire::TerminateLayer::ddp:
            if (said.is_protection()) return words_of(wire::TaggedBufferError{said.error_code});
            return said.error_type == 0 ? "a fault of its own" : "a message had no place to go";
        case wire::TerminateLayer::rdmap:
            if (said.is_protection()) return words_of(wire::RemoteProtectionError{said.error_code});
            return said.error_type == 0 ? "a fault of its own" : "a message made no sense";
    }
    return "a fault that no RFC knows";
}

std::string target_of(const verbs::Termination& said) {
    std::array<char, 96> text{};
    std::snprintf(text.data(), text.size(), " 0x%08x (RDMA %s, offset %llu)",
                  static_cast<unsigned>(said.target.tag),
                  said.about == verbs::Termination::About::read ? "Read" : "Write",
                  static_cast<unsigned long long>(said.target.address));
    return text.data();
}

}  // namespace

std::string to_text(const verbs::Termination& said) {
    const bool by_peer = said.from == verbs::Termination::From::peer;
    const bool shows = said.is_protection() && (said.about == verbs::Termination::About::write ||
                                                said.about == verbs::Termination::About::read);
    return std::string(by_peer ? "the peer" : "this side") +
           " terminated the connection: " + fault_of(said) + (shows ? target_of(said) : "");
}

}  // namespace weft::node
