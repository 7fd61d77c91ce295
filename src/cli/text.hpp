// SPDX-License-Identifier: Apache-2.0
// How people write sizes and addresses, and how we write them back.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "weft/world.hpp"

namespace weft::cli {

/// "512", "64k", "1G", "1.5T", "1GiB": powers of 1024. Nothing if it is not a size.
std::optional<std::uint64_t> parse_size(std::string_view text);
/// Of what parse_size() does not take, a sentence: it is none, too large, or not of whole octets.
std::string why_no_size(std::string_view text);
/// The largest unit that leaves a short number: "1 GiB", "1.5 TiB", "513 B".
std::string show_size(std::uint64_t bytes);

/// "127.0.0.1:10809", "[::1]:10809", "host:0". Nothing if the port is missing or not a port.
std::optional<Address> parse_tcp(std::string_view text);
std::string show_address(const Address& address);

/// Where an NBD export is, as a URI that libnbd's and qemu's tools understand.
struct NbdUri {
    Address address;
    std::string export_name;
};
inline constexpr std::uint16_t nbd_port = 10809;
std::optional<NbdUri> parse_nbd_uri(std::string_view text);
std::string show_nbd_uri(const NbdUri& uri);

/// Somebody else's words, fit for a terminal: one line, without control characters, not endless.
std::string show_foreign(std::string_view text);

/// A JSON document as text; octets that are not UTF-8 are replaced, as JSON cannot hold them.
std::string show_json(const nlohmann::json& document);

/// Prints a line about something that happened, unless that would block: nobody who stops reading
/// our output may stop us.
void print_news(const std::string& line);

/// "500ms", "10s", "1.5", "2m", "1h"; without a unit: seconds. Nothing if it is no duration.
std::optional<Duration> parse_duration(std::string_view text);
/// A duration for people: "0.4 s", "3 min 20 s".
std::string show_duration(double seconds);

}  // namespace weft::cli
