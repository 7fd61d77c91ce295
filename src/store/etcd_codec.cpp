// SPDX-License-Identifier: Apache-2.0
#include "store/etcd_codec.hpp"

#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "store/base64.hpp"

namespace weft::store {
namespace {

using nlohmann::json;

std::string office_key(const std::string& prefix) {
    return prefix + "office";
}
std::string records_in(const std::string& prefix) {
    return prefix + "records/";
}
/// The first key that is not one of the records': '0' comes behind '/'.
std::string records_end(const std::string& prefix) {
    return prefix + "records0";
}
constexpr Error bad{.code = Code::malformed};

json parsed(const std::string& text) {
    return json::parse(text, nullptr, false);
}

/// A member, or null.
json member(const json& object, const char* name) {
    auto found = object.is_object() ? object.find(name) : object.end();
    return object.is_object() && found != object.end() ? *found : json();
}

/// Numbers of 64 bits are text in etcd's answers; those that are 0 are left out.
Result<std::int64_t> number_of(const json& value) {
    if (value.is_null()) return std::int64_t{0};
    if (value.is_number_integer()) return value.get<std::int64_t>();
    if (!value.is_string()) return bad;
    const auto& text = value.get_ref<const std::string&>();
    std::int64_t number = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (fault != std::errc{} || end != text.data() + text.size()) return bad;
    return number;
}

Result<std::vector<std::byte>> octets_of(const json& value) {
    if (value.is_null()) return std::vector<std::byte>();  // what is empty is left out
    if (!value.is_string()) return bad;
    return from_base64(value.get_ref<const std::string&>());
}

std::string text_of(const std::vector<std::byte>& octets) {
    return {reinterpret_cast<const char*>(octets.data()), octets.size()};
}

std::string office_text(const EtcdOffice& at) {
    return json{{"epoch", static_cast<std::uint64_t>(at.office.epoch)},
                {"renewals", at.office.renewals},
                {"lease_ms", at.office.lease.count()},
                {"holder", at.office.holder},
                {"candidate", at.candidate}}
        .dump(-1, ' ', false, json::error_handler_t::replace);
}

/// The office among the answers to a range of one key.
Result<EtcdOffice> office_in(const json& range) {
    const auto found = member(range, "kvs");
    if (found.is_null()) return EtcdOffice{};
    if (!found.is_array() || found.size() > 1) return bad;
    if (found.empty()) return EtcdOffice{};
    WEFT_TRY(auto octets, octets_of(member(found[0], "value")));
    const auto said = parsed(text_of(octets));
    EtcdOffice office;
    WEFT_TRY(office.revision, number_of(member(found[0], "mod_revision")));
    for (const char* name : {"epoch", "renewals", "lease_ms", "candidate"})
        if (!member(said, name).is_number_unsigned()) return bad;
    if (!member(said, "holder").is_string()) return bad;
    office.office.epoch = wire::Epoch{said["epoch"].get<std::uint64_t>()};
    office.office.renewals = said["renewals"].get<std::uint64_t>();
    office.office.lease = std::chrono::milliseconds(said["lease_ms"].get<std::int64_t>());
    office.office.holder = said["holder"].get<std::string>();
    office.candidate = said["candidate"].get<std::uint64_t>();
    return office;
}

json range_of(const std::string& key) {
    return {{"key", to_base64(key)}};
}

}  // namespace

std::string etcd_ask_for_office(const std::string& prefix) {
    return range_of(office_key(prefix)).dump();
}

std::string etcd_ask_for_records(const std::string& prefix) {
    return json{{"key", to_base64(records_in(prefix))},
                {"range_end", to_base64(records_end(prefix))},
                {"sort_order", "ASCEND"},
                {"sort_target", "KEY"}}
        .dump();
}

std::string etcd_ask_for_change(const std::string& prefix, std::int64_t at_revision,
                                const EtcdOffice& office,
                                const std::vector<raid::MetadataChange>& changes) {
    auto put = [](const std::string& key, const auto& value) {
        return json{{"request_put", {{"key", to_base64(key)}, {"value", to_base64(value)}}}};
    };
    // etcd takes a key once in a transaction: the last word on a name counts.
    std::map<std::string, const raid::MetadataChange*> last;
    for (const auto& change : changes) last[change.name] = &change;
    json success = json::array({put(office_key(prefix), office_text(office))});
    for (const auto& [name, change] : last) {
        const auto key = records_in(prefix) + name;
        success.push_back(change->record ? put(key, *change->record)
                                         : json{{"request_delete_range", range_of(key)}});
    }
    return json{{"compare",
                 {{{"target", "MOD"},
                   {"result", "EQUAL"},
                   {"key", to_base64(office_key(prefix))},
                   {"mod_revision", std::to_string(at_revision)}}}},
                {"success", success},
                {"failure", {{{"request_range", range_of(office_key(prefix))}}}}}
        .dump();
}

Result<EtcdOffice> parse_etcd_office(const std::string& body) {
    const auto said = parsed(body);
    if (!member(said, "header").is_object()) return bad;
    return office_in(said);
}

Result<EtcdRecords> parse_etcd_records(const std::string& prefix, const std::string& body) {
    const auto said = parsed(body);
    if (!member(said, "header").is_object()) return bad;
    EtcdRecords records;
    const auto found = member(said, "kvs");
    if (!found.is_null() && !found.is_array()) return bad;
    for (const auto& each : found) {
        WEFT_TRY(auto key, octets_of(member(each, "key")));
        const auto name = text_of(key);
        if (!name.starts_with(records_in(prefix))) return bad;
        WEFT_TRY(auto value, octets_of(member(each, "value")));
        records.emplace_back(name.substr(records_in(prefix).size()), std::move(value));
    }
    return records;
}

Result<EtcdChange> parse_etcd_change(const std::string& body) {
    const auto said = parsed(body);
    const auto header = member(said, "header");
    if (!header.is_object()) return bad;
    EtcdChange change{.made = member(said, "succeeded") == true, .revision = 0, .office = {}};
    if (change.made) {
        WEFT_TRY(change.revision, number_of(member(header, "revision")));
        return change;
    }
    const auto responses = member(said, "responses");
    if (!responses.is_array() || responses.size() != 1) return bad;
    WEFT_TRY(change.office, office_in(member(responses[0], "response_range")));
    return change;
}

std::optional<Error> parse_etcd_refusal(unsigned status, const std::string& body) {
    // The codes of gRPC: 3 is an argument it will never take, 8 is want of space, or a message that
    // is too long.
    const auto code = member(parsed(body), "code");
    if (code == 3 || (code == 8 && body.find("larger than max") != std::string::npos))
        return Error{.code = Code::out_of_range, .where = status};
    if (code == 8) return Error{.code = Code::exhausted, .where = status};
    return std::nullopt;
}

}  // namespace weft::store
