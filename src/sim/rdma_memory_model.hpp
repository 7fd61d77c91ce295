// SPDX-License-Identifier: Apache-2.0
// What one machine's memory should hold while others read and write it: plain bytes, kept apart
// from every RDMA engine.
//
// Whatever work is about is leased: nobody else touches it until its outcome is known. A leased
// byte may hold what it held before or what any work under way may put there; every other byte, of
// registered memory or not, must be just what was written to it last.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sim/random.hpp"
#include "weft/buffer.hpp"

namespace weft::sim {

using Bytes = std::vector<std::byte>;

/// What the checkers found wrong. Only the first few are kept: one mistake has many consequences.
class Complaints {
public:
    void add(std::string what) {
        if (all_.size() < kept) all_.push_back(std::move(what));
    }
    const std::vector<std::string>& all() const { return all_; }

private:
    static constexpr std::size_t kept = 8;
    std::vector<std::string> all_;
};

/// Some bytes of a machine's memory that lie together.
struct Stretch {
    std::size_t at = 0;
    std::size_t size = 0;
};
using Stretches = std::vector<Stretch>;
std::size_t size_of(const Stretches& stretches);
/// `size` bytes of them from `offset` on, which must be there.
Stretches part_of(const Stretches& stretches, std::size_t offset, std::size_t size);
bool overlap(const Stretches& one, const Stretches& other);

class MemoryModel;

class Lease {
public:
    Lease(MemoryModel& memory, Stretches stretches);
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    const Stretches& stretches() const { return stretches_; }
    std::size_t size() const { return versions_.front().size(); }
    /// What it will hold when all work noted so far is done.
    const Bytes& last_version() const { return versions_.back(); }

    /// Work is under way that makes it so, if it succeeds.
    void may_become(Bytes bytes) { versions_.push_back(std::move(bytes)); }
    /// All that is under way is done: it holds the last version, and nothing else.
    void settle(const char* why);
    /// All that is under way is done, in no known order: each byte is of one of its versions.
    void settle_for_any_since(const char* why);
    /// What is under way may be done in part: each byte is of one version or another.
    void settle_for_any(const char* why);
    /// Nobody can know what it holds.
    void settle_for_anything();
    /// The application has the memory back: nothing is expected of this lease any more.
    void end(const char* why);
    bool has_ended() const { return ended_; }

private:
    MemoryModel& memory_;
    Stretches stretches_;
    std::vector<Bytes> versions_;  ///< the first is what it held before
    bool ended_ = false;
};

class MemoryModel {
public:
    /// The memory is filled at random.
    MemoryModel(Buffer memory, std::string name, Random& random, Complaints& complaints);

    Buffer memory() const { return memory_; }
    /// None if some of it is leased already.
    std::shared_ptr<Lease> lease(const Stretches& stretches);
    Bytes expected(const Stretches& stretches) const;
    /// As the application itself would.
    void write(const Stretches& stretches, ConstBuffer bytes);
    Bytes random_bytes(std::size_t size);
    /// Ends all leases there.
    void end_leases(const Stretches& stretches, const char* why);
    /// Looks at every byte that is not leased.
    void check(const char* when);

private:
    friend class Lease;
    bool is_leased(std::size_t at) const;
    void complain(const char* why, std::size_t at, std::byte expected);

    Buffer memory_;
    std::string name_;
    Bytes expected_;
    Random& random_;
    Complaints& complaints_;
    std::set<Lease*> leases_;
};

}  // namespace weft::sim
