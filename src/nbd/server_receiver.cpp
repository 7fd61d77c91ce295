// SPDX-License-Identifier: Apache-2.0
#include "nbd/server_receiver.hpp"

#include <algorithm>

namespace weft::nbd {

using namespace wire::nbd;

ServerReceiver::ServerReceiver() {
    begin_scratch(Stage::client_flags, wire_size<ClientFlags>());
}

void ServerReceiver::begin_option() {
    begin_scratch(Stage::option_header, wire_size<OptionHeader>());
}
void ServerReceiver::begin_request() {
    begin_scratch(Stage::request, wire_size<RequestHeader>());
}

void ServerReceiver::begin_skip(Stage stage, std::uint64_t size) {
    skip_left_ = size;
    begin_scratch(stage, std::min<std::uint64_t>(size, scratch_.size()));
}

void ServerReceiver::begin_transmission() {
    option_data_ = {};
    begin_request();
}

void ServerReceiver::place_payload(Buffer place) {
    WEFT_CHECK(stage_ == Stage::payload_unplaced && !place.empty());
    begin(Stage::payload, place);
}

void ServerReceiver::discard_payload(std::uint64_t size) {
    WEFT_CHECK(stage_ == Stage::payload_unplaced && size > 0);
    begin_skip(Stage::payload_skip, size);
}

Result<std::optional<ServerReceiver::Event>> ServerReceiver::filled(std::size_t count) {
    WEFT_CHECK(count > 0 && count <= part_.size() - have_);
    have_ += count;
    if (have_ < part_.size()) return std::optional<Event>{};
    switch (stage_) {
        case Stage::client_flags:
            return end_client_flags();
        case Stage::option_header:
            return end_option_header();
        case Stage::option_data:
            begin_option();
            return std::optional<Event>(ReceivedOption{option_.option, option_data_, false});
        case Stage::request:
            return end_request();
        case Stage::payload:
            begin_request();
            return std::optional<Event>(PayloadEnd{});
        case Stage::option_skip:
        case Stage::payload_skip:
            return end_skip();
        case Stage::payload_unplaced:
            break;
    }
    WEFT_CHECK(false);
}

Result<std::optional<ServerReceiver::Event>> ServerReceiver::end_client_flags() {
    WEFT_TRY(auto flags, decode<ClientFlags>(part_));
    begin_option();
    return std::optional<Event>(flags);
}

Result<std::optional<ServerReceiver::Event>> ServerReceiver::end_option_header() {
    WEFT_TRY(option_, decode<OptionHeader>(part_));
    if (option_.length > option_skip_max) return Error{.code = Code::out_of_range};
    if (option_.length > option_bytes_max) {
        begin_skip(Stage::option_skip, option_.length);
        return std::optional<Event>{};
    }
    option_data_.resize(option_.length);
    if (option_.length > 0) {
        begin(Stage::option_data, option_data_);
        return std::optional<Event>{};
    }
    begin_option();
    return std::optional<Event>(ReceivedOption{option_.option, {}, false});
}

Result<std::optional<ServerReceiver::Event>> ServerReceiver::end_request() {
    WEFT_TRY(auto request, decode<RequestHeader>(part_));
    if (request.command == Command::write && request.length > 0)
        begin(Stage::payload_unplaced, {});
    else
        begin_request();
    return std::optional<Event>(request);
}

std::optional<ServerReceiver::Event> ServerReceiver::end_skip() {
    skip_left_ -= part_.size();
    if (skip_left_ > 0) {
        begin_skip(stage_, skip_left_);
        return std::nullopt;
    }
    if (stage_ == Stage::option_skip) {
        begin_option();
        return ReceivedOption{option_.option, {}, true};
    }
    begin_request();
    return PayloadEnd{};
}

}  // namespace weft::nbd
