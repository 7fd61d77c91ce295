// SPDX-License-Identifier: Apache-2.0
// Takes an NBD client's bytes: flags, options, then requests with the payload of writes.
//
// After a write request it wants nothing until it is told where the payload belongs: only the one
// who knows the device can say, and then the bytes go straight there.
#pragma once

#include <array>
#include <optional>
#include <variant>
#include <vector>

#include "base/stream_receiver.hpp"
#include "nbd/limits.hpp"
#include "wire/nbd.hpp"

namespace weft::nbd {

struct ReceivedOption {
    wire::nbd::Option option{};
    ConstBuffer data;      ///< valid until the next filled()
    bool too_big = false;  ///< the data were longer than option_bytes_max and are not here
};

/// The payload of the last write request is where it was to go, or was discarded.
struct PayloadEnd {};

class ServerReceiver {
public:
    using Event =
        std::variant<wire::nbd::ClientFlags, ReceivedOption, wire::nbd::RequestHeader, PayloadEnd>;

    ServerReceiver();
    ServerReceiver(const ServerReceiver&) = delete;
    ServerReceiver& operator=(const ServerReceiver&) = delete;

    Buffer want() { return part_.subspan(have_); }
    Result<std::optional<Event>> filled(std::size_t count);

    /// The option just reported ends the handshake: requests follow.
    void begin_transmission();
    /// Where the payload of the write request just reported belongs; exactly as long as it is.
    void place_payload(Buffer place);
    /// The payload of the write request just reported has no place: read and forget it.
    void discard_payload(std::uint64_t size);

    /// What comes next is a request's header.
    bool at_request() const { return stage_ == Stage::request; }

private:
    enum class Stage : std::uint8_t {
        client_flags,
        option_header,
        option_data,
        option_skip,
        request,
        payload_unplaced,
        payload,
        payload_skip,
    };

    void begin(Stage stage, Buffer part) { stage_ = stage, part_ = part, have_ = 0; }
    void begin_scratch(Stage stage, std::size_t size) {
        begin(stage, Buffer(scratch_).first(size));
    }
    void begin_option();
    void begin_request();
    void begin_skip(Stage stage, std::uint64_t size);

    Result<std::optional<Event>> end_client_flags();
    Result<std::optional<Event>> end_option_header();
    Result<std::optional<Event>> end_request();
    std::optional<Event> end_skip();

    std::array<std::byte, 4096> scratch_;  ///< headers, and where skipped bytes go
    std::vector<std::byte> option_data_;
    Buffer part_;           ///< the part being received
    std::size_t have_ = 0;  ///< how much of it has come
    std::uint64_t skip_left_ = 0;
    wire::nbd::OptionHeader option_;
    Stage stage_{};
};
static_assert(StreamReceiver<ServerReceiver>);

}  // namespace weft::nbd
