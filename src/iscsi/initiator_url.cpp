// SPDX-License-Identifier: Apache-2.0
#include "iscsi/initiator_url.hpp"

#include <charconv>

#include "iscsi/limits.hpp"
#include "wire/iscsi_header.hpp"
#include "wire/scsi_lun.hpp"

namespace weft::iscsi {

namespace {

constexpr Error malformed{.code = Code::malformed};
constexpr std::string_view plain_scheme = "iscsi://";
constexpr std::string_view rdma_scheme = "iser://";

template <class Number>
std::optional<Number> number_of(std::string_view text) {
    Number number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
}

/// Cuts `text` at the first `mark` and returns what lies behind it; none if there is no mark.
std::optional<std::string_view> cut(std::string_view& text, char mark) {
    const auto at = text.find(mark);
    if (at == text.npos) return std::nullopt;
    const std::string_view rest = text.substr(at + 1);
    text = text.substr(0, at);
    return rest;
}

Result<void> take_option(InitiatorUrl& url, std::string_view name) {
    const std::string_view value = cut(name, '=').value_or("");
    if (name == "iser") {
        if (!value.empty() && value != "login") return malformed;
        url.over_rdma = true;
        url.rdma_after_login = value == "login";
    } else if (name == "target_user" || name == "target_password") {
        if (!url.expected_of_target) url.expected_of_target.emplace();
        (name == "target_user" ? url.expected_of_target->name : url.expected_of_target->secret) =
            value;
    } else if (name == "header_digest" || name == "data_digest") {
        if (value != "crc32c" && value != "none") return malformed;
        (name == "header_digest" ? url.header_digest : url.data_digest) = value == "crc32c";
    } else {
        return Error{.code = Code::unsupported};
    }
    return {};
}

}  // namespace

bool looks_like_initiator_url(std::string_view text) {
    return text.starts_with(plain_scheme) || text.starts_with(rdma_scheme);
}

Result<Address> parse_portal(std::string_view text) {
    cut(text, ',');
    std::string_view port;
    std::string_view host = text;
    if (text.starts_with('[')) {
        const auto end = text.find(']');
        if (end == text.npos) return malformed;
        host = text.substr(1, end - 1);
        port = text.substr(end + 1);
        if (!port.empty() && !port.starts_with(':')) return malformed;
        if (!port.empty()) port = port.substr(1);
    } else {
        port = cut(host, ':').value_or("");
    }
    const auto number =
        port.empty() ? std::optional(wire::iscsi_port) : number_of<std::uint16_t>(port);
    if (host.empty() || !number || *number == 0) return malformed;
    return Address::tcp(std::string(host), *number);
}

Result<InitiatorUrl> parse_initiator_url(std::string_view text) {
    InitiatorUrl url;
    url.over_rdma = text.starts_with(rdma_scheme);
    if (!looks_like_initiator_url(text)) return malformed;
    text = text.substr(url.over_rdma ? rdma_scheme.size() : plain_scheme.size());
    if (auto options = cut(text, '?')) {
        std::optional<std::string_view> rest = options;
        while (rest) {
            std::string_view option = *rest;
            rest = cut(option, '&');
            if (auto taken = take_option(url, option); !taken) return taken.error();
        }
    }
    std::string_view authority = text;
    const auto path = cut(authority, '/');
    if (const auto at = authority.rfind('@'); at != authority.npos) {
        std::string_view user = authority.substr(0, at);
        authority = authority.substr(at + 1);
        const auto secret = cut(user, '%');
        url.credentials = {.name = std::string(user), .secret = std::string(secret.value_or(""))};
    }
    WEFT_TRY(url.address, parse_portal(authority));
    if (!path || path->empty()) return url;
    std::string_view target = *path;
    const auto unit_text = cut(target, '/');
    const auto unit = unit_text ? number_of<std::uint32_t>(*unit_text) : std::nullopt;
    if (target.empty() || target.size() > name_max || !unit || !wire::spell_logical_unit(*unit))
        return malformed;
    url.target_name = target;
    url.unit = *unit;
    return url;
}

}  // namespace weft::iscsi
