// SPDX-License-Identifier: Apache-2.0
// Where a controller keeps what must outlive it: records under names, changed together or not at
// all. A file on one machine is one, a cluster's store another; both take their time, so a change
// is a request that completes later. Whoever changes something says under which epoch it holds
// office, and is refused (`access_denied`) if the store knows of a higher one: the store is the
// arbiter.
//
// Who holds office does so for a lease's time, and moves a counter in the store as long as it
// lives. A candidate takes an office that is free, or one whose counter it has seen standing still
// for the whole lease by its own clock: clocks of two machines are never compared. The lease is for
// going on soon, and for reads; what keeps the past from changing anything is the epoch alone.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
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

/// The office as it stands.
struct MetadataOffice {
    wire::Epoch epoch{};  ///< of whoever won it last
    std::uint64_t renewals = 0;
    std::chrono::milliseconds lease{};  ///< 0: whoever wants it may have it
    std::string holder;                 ///< for people

    bool is_free() const { return lease == std::chrono::milliseconds{}; }
    /// Nobody has won or renewed it in between.
    bool is_unchanged_since(const MetadataOffice& seen) const {
        return epoch == seen.epoch && renewals == seen.renewals;
    }
};

/// Asks for office: the epoch is higher than any before it when it is won, and than `beyond`, which
/// boxes may know of and the store does not. `access_denied`: another holds it.
class MetadataElection {
public:
    static constexpr std::size_t holder_max = 100;

    wire::Epoch epoch{};
    wire::Epoch beyond{};
    /// Zero: it holds office until the next one asks.
    std::chrono::milliseconds lease{};
    std::string holder;  ///< at most so long; the store cuts off the rest
    /// What it has seen standing still for so long that it may be taken from its holder. None: only
    /// an office that is free, or held by who asks through this same store.
    std::optional<MetadataOffice> seen;

    virtual void completed(Result<void> outcome) = 0;

protected:
    ~MetadataElection() = default;
};

class MetadataLook {
public:
    MetadataOffice office;

    virtual void completed(Result<void> outcome) = 0;

protected:
    ~MetadataLook() = default;
};

/// Moves the counter; or gives the office back, so that nobody needs to wait for the lease.
/// `access_denied`: it is another's by now.
class MetadataRenewal {
public:
    wire::Epoch epoch{};
    bool releases = false;

    virtual void completed(Result<void> outcome) = 0;

protected:
    ~MetadataRenewal() = default;
};

/// One object is one candidate. Requests complete in the order they were made, but for renewals,
/// which do not wait in line.
class MetadataStore {
public:
    virtual ~MetadataStore() = default;
    virtual void look(MetadataLook& look) = 0;
    virtual void elect(MetadataElection& election) = 0;
    virtual void renew(MetadataRenewal& renewal) = 0;
    /// All there is; a controller reads once, when it takes office.
    virtual void read(MetadataReading& reading) = 0;
    virtual void commit(MetadataCommit& commit) = 0;
};

/// What an election comes to, the same for all stores: the office it would have, or why not.
/// `own`: the epoch this candidate won last.
inline Result<MetadataOffice> office_after(const MetadataOffice& now,
                                           const MetadataElection& election, wire::Epoch own) {
    const bool ours = now.epoch == own && now.epoch != wire::Epoch{};
    const bool lapsed = election.seen && now.is_unchanged_since(*election.seen);
    if (!now.is_free() && !ours && !lapsed) return Error{.code = Code::access_denied};
    const auto highest = std::max(now.epoch, election.beyond);
    // A store's numbers have a sign.
    if (static_cast<std::uint64_t>(highest) >= std::uint64_t{INT64_MAX})
        return Error{.code = Code::exhausted};
    return MetadataOffice{.epoch = wire::Epoch{static_cast<std::uint64_t>(highest) + 1},
                          .renewals = 0,
                          .lease = election.lease,
                          .holder = election.holder.substr(0, MetadataElection::holder_max)};
}

}  // namespace weft::raid
