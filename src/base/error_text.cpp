// SPDX-License-Identifier: Apache-2.0
#include "base/error_text.hpp"

#include <cstring>

namespace weft {

const char* to_text(Code code) {
    switch (code) {
        case Code::truncated:
            return "the bytes ended before the message did";
        case Code::malformed:
            return "the bytes break a rule of the protocol";
        case Code::unsupported:
            return "this is legal but not supported here";
        case Code::access_denied:
            return "access is not allowed";
        case Code::out_of_range:
            return "this lies outside the device";
        case Code::exhausted:
            return "a limit was reached";
        case Code::disconnected:
            return "the other side is gone";
        case Code::timed_out:
            return "the other side did not answer in time";
        case Code::not_found:
            return "there is no such thing";
        case Code::io_failed:
            return "the disk or the network failed";
    }
    return "an unknown error";
}

std::string to_text(Error error) {
    std::string text = to_text(error.code);
    // The outside reports errno in `detail`; for the other codes it belongs to a protocol.
    bool from_system = error.code == Code::io_failed || error.code == Code::not_found ||
                       error.code == Code::access_denied || error.code == Code::exhausted;
    // An engine's own number may come with one of them: then the system has no words for it.
    const char* words =
        from_system && error.detail != 0 ? ::strerrordesc_np(error.detail) : nullptr;
    if (words) text = words;
    return text;
}

}  // namespace weft
