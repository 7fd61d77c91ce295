// SPDX-License-Identifier: Apache-2.0
// What is said to etcd and what it says, as its v3 API has it in JSON: keys and values in base64,
// numbers of 64 bits as text. All that is ours lies under one prefix: the office under one key, the
// records under a name each.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "raid/metadata_store.hpp"

namespace weft::store {

inline constexpr const char* etcd_range_path = "/v3/kv/range";
inline constexpr const char* etcd_transaction_path = "/v3/kv/txn";

/// The office as it stands in etcd. `candidate` is drawn at random by whoever won it: a change that
/// nobody has answered is known by it.
struct EtcdOffice {
    raid::MetadataOffice office;
    std::uint64_t candidate = 0;
    std::int64_t revision = 0;  ///< of etcd, when it was last changed; 0: it never was

    bool same_as(const EtcdOffice& other) const {
        return office.is_unchanged_since(other.office) && candidate == other.candidate;
    }
};

/// `prefix`: of all keys of this array, "weft/" for instance.
std::string etcd_ask_for_office(const std::string& prefix);
std::string etcd_ask_for_records(const std::string& prefix);
/// All or nothing, and only if the office is as it was at `at_revision`: it becomes `office`, and
/// the records change. If not, the office is answered as it is.
std::string etcd_ask_for_change(const std::string& prefix, std::int64_t at_revision,
                                const EtcdOffice& office,
                                const std::vector<raid::MetadataChange>& changes);

Result<EtcdOffice> parse_etcd_office(const std::string& body);
using EtcdRecords = std::vector<std::pair<std::string, std::vector<std::byte>>>;
Result<EtcdRecords> parse_etcd_records(const std::string& prefix, const std::string& body);

struct EtcdChange {
    bool made = false;
    std::int64_t revision = 0;  ///< if it was made: since then the office is so
    EtcdOffice office;          ///< if not: as it is
};
Result<EtcdChange> parse_etcd_change(const std::string& body);

/// What etcd says where it does not do it: a refusal that will be the same next time, and by which
/// nothing was changed; none if another member may know better.
std::optional<Error> parse_etcd_refusal(unsigned status, const std::string& body);

}  // namespace weft::store
