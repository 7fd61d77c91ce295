// SPDX-License-Identifier: Apache-2.0
#include "cli/text.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <cmath>
#include <nlohmann/json.hpp>

namespace weft::cli {
namespace {

constexpr std::string_view units = "KMGTPE";

std::string lower(std::string_view text) {
    std::string result(text);
    std::ranges::transform(result, result.begin(), [](unsigned char letter) {
        return static_cast<char>(std::tolower(letter));
    });
    return result;
}

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
    Number value{};
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return {};
    return value;
}

/// The number as it is written, and what its unit multiplies it by. 0: that is none.
std::pair<std::string_view, double> size_parts(std::string_view text) {
    const auto digits = text.substr(0, text.find_first_not_of("0123456789."));
    const auto unit = lower(text.substr(digits.size()));
    if (unit.empty() || unit == "b") return {digits, 1};
    const auto power = lower(units).find(unit.front());
    const auto rest = std::string_view(unit).substr(1);
    if (power == std::string::npos || !(rest.empty() || rest == "b" || rest == "ib"))
        return {digits, 0};
    return {digits, std::ldexp(1.0, 10 * static_cast<int>(power + 1))};
}

bool is_plain(char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) ||
           std::string_view("-._~/").find(letter) != std::string_view::npos;
}

std::string percent_encoded(std::string_view text) {
    std::string result;
    for (char letter : text) {
        if (is_plain(letter))
            result += letter;
        else
            result += fmt::format("%{:02X}", static_cast<unsigned char>(letter));
    }
    return result;
}

std::optional<std::string> percent_decoded(std::string_view text) {
    std::string result;
    while (!text.empty()) {
        if (text.front() != '%') {
            result += text.front();
            text.remove_prefix(1);
            continue;
        }
        unsigned value = 0;
        if (text.size() < 3) return {};
        auto [end, error] = std::from_chars(text.data() + 1, text.data() + 3, value, 16);
        if (error != std::errc{} || end != text.data() + 3) return {};
        result += static_cast<char>(value);
        text.remove_prefix(3);
    }
    return result;
}

}  // namespace

std::optional<std::uint64_t> parse_size(std::string_view text) {
    const auto [digits, factor] = size_parts(text);
    if (factor == 0) return {};
    if (factor == 1)
        if (auto exact = parse_number<std::uint64_t>(digits)) return exact;
    const auto number = parse_number<double>(digits);
    if (!number) return {};
    const double bytes = *number * factor;
    if (bytes >= std::ldexp(1.0, 63) || bytes != std::floor(bytes)) return {};
    return static_cast<std::uint64_t>(bytes);
}

std::string why_no_size(std::string_view text) {
    const auto [digits, factor] = size_parts(text);
    // What has more digits than any number has is not read at all.
    const auto number = parse_number<double>(digits);
    const bool written_well = digits.find('.') == digits.rfind('.') && digits != ".";
    if (factor == 0 || digits.empty() || !written_well)
        return fmt::format("'{}' is not a size like 512M or 1G", show_foreign(text));
    if (!number || *number * factor >= std::ldexp(1.0, 63))
        return fmt::format("'{}' is too large: a size is less than 8 EiB", show_foreign(text));
    return fmt::format("'{}' is not a whole number of octets", show_foreign(text));
}

std::string show_size(std::uint64_t bytes) {
    if (bytes < 1024) return fmt::format("{} B", bytes);
    auto power = std::min<std::size_t>(units.size(), (63 - __builtin_clzll(bytes)) / 10);
    auto value = static_cast<double>(bytes) / std::ldexp(1.0, 10 * static_cast<int>(power));
    auto text = fmt::format("{:.1f}", value);
    if (text.ends_with(".0")) text.resize(text.size() - 2);
    return fmt::format("{} {}iB", text, units[power - 1]);
}

std::optional<Address> parse_tcp(std::string_view text) {
    auto colon = text.rfind(':');
    if (colon == std::string_view::npos) return {};
    auto port = parse_number<std::uint16_t>(text.substr(colon + 1));
    auto host = text.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']'))
        host = host.substr(1, host.size() - 2);
    else if (host.find(':') != std::string_view::npos)
        return {};
    if (!port || host.empty()) return {};
    return Address::tcp(std::string(host), *port);
}

std::string show_address(const Address& address) {
    if (address.is_unix()) return address.path;
    bool six = address.host.find(':') != std::string::npos;
    return six ? fmt::format("[{}]:{}", address.host, address.port)
               : fmt::format("{}:{}", address.host, address.port);
}

std::optional<NbdUri> parse_nbd_uri(std::string_view text) {
    constexpr std::string_view tcp = "nbd://", local = "nbd+unix://";
    NbdUri uri;
    if (text.starts_with(tcp)) {
        text.remove_prefix(tcp.size());
        auto slash = text.find('/');
        auto where = text.substr(0, slash);
        auto address = parse_tcp(where);
        if (!address) address = parse_tcp(fmt::format("{}:{}", where, nbd_port));
        auto name = percent_decoded(slash == std::string_view::npos ? "" : text.substr(slash + 1));
        if (!address || !name) return {};
        return NbdUri{*address, *name};
    }
    if (!text.starts_with(local)) return {};
    text.remove_prefix(local.size());
    constexpr std::string_view socket = "?socket=";
    auto query = text.find(socket);
    if (query == std::string_view::npos || (query > 0 && text.front() != '/')) return {};
    auto name = percent_decoded(query > 0 ? text.substr(1, query - 1) : "");
    auto path = percent_decoded(text.substr(query + socket.size()));
    if (!name || !path || path->empty()) return {};
    return NbdUri{Address::unix_socket(*path), *name};
}

std::string show_nbd_uri(const NbdUri& uri) {
    auto name = percent_encoded(uri.export_name);
    if (uri.address.is_unix())
        return fmt::format("nbd+unix:///{}?socket={}", name, percent_encoded(uri.address.path));
    return fmt::format("nbd://{}/{}", show_address(uri.address), name);
}

std::string show_foreign(std::string_view text) {
    constexpr std::size_t longest = 200;
    std::string shown(text.substr(0, longest));
    std::ranges::replace_if(
        shown, [](unsigned char letter) { return letter < ' ' || letter == 127; }, '?');
    return shown;
}

std::string show_json(const nlohmann::json& document) {
    return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void print_news(const std::string& line) {
    // A pipe polls as writable only while a line of this length surely fits.
    pollfd output{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
    if (::poll(&output, 1, 0) != 1 || !(output.revents & POLLOUT)) return;
    std::fputs((line.substr(0, PIPE_BUF - 1) + "\n").c_str(), stdout);
    std::fflush(stdout);
}

std::optional<Duration> parse_duration(std::string_view text) {
    const auto digits = text.substr(0, text.find_first_not_of("0123456789."));
    const auto unit = text.substr(digits.size());
    const auto number = parse_number<double>(digits);
    double scale = 0;
    if (unit == "ms") scale = 1e6;
    if (unit.empty() || unit == "s") scale = 1e9;
    if (unit == "m" || unit == "min") scale = 60e9;
    if (unit == "h") scale = 3600e9;
    const double nanoseconds = number.value_or(0) * scale;
    if (!number || scale == 0 || nanoseconds >= std::ldexp(1.0, 62)) return {};
    return Duration{std::llround(nanoseconds)};
}

std::string show_duration(double seconds) {
    if (seconds < 60) return fmt::format("{:.1f} s", seconds);
    auto whole = static_cast<std::uint64_t>(seconds + 0.5);
    if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
    return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

}  // namespace weft::cli
