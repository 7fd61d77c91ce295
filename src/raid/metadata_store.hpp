// SPDX-License-Identifier: Apache-2.0
// Where a controller keeps what must outlive it: records under names, changed together or not at
// all. A file on one machine is one, a cluster's store another; both take their time, so a change
// is a request that completes later. Whoever changes something says under which epoch it holds
// office, and is refused (`access_denied`) if the store knows of a higher one: the store is the
// arbiter.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wire/array_identity.hpp"

namespace weft::raid {

/// Names are paths: "cluster", "volumes/<identity>", "boxes/<identity>",
/// "rebuilds/<identity>/<place>", "dirty/<identity>/<place>", "dirty/<identity>/intent".
struct MetadataChange {
    std::string name;
    std::optional<std::vector<std::byte>> record;  ///< none: the name is forgotten
};

class MetadataCommit {
public:
    wire::Epoch epoch{};
    std::vector<MetadataChange> changes;

    /// Called exactly once; all changes are lasting, or none was made.
    virtual void completed(Result<void> outcome) = 0;

protected:
    ~MetadataCommit() = default;
};

class MetadataReading {
public:
    std::vector<std::pair<std::string, std::vector<std::byte>>> records;  ///< sorted by name

    /// Called exactly once.
    virtual void completed(Result<void> outcome) = 0;

protected:
    ~MetadataReading() = default;
};

/// Asks for office: the epoch is higher than any before it when it is won, and than `beyond`, which
/// boxes may know of and the store does not.
class MetadataElection {
public:
    wire::Epoch epoch{};
    wire::Epoch beyond{};

    virtual void completed(Result<void> outcome) = 0;

protected:
    ~MetadataElection() = default;
};

class MetadataStore {
public:
    virtual ~MetadataStore() = default;
    virtual void elect(MetadataElection& election) = 0;
    /// All there is; a controller reads once, when it takes office.
    virtual void read(MetadataReading& reading) = 0;
    virtual void commit(MetadataCommit& commit) = 0;
};

}  // namespace weft::raid
