// SPDX-License-Identifier: Apache-2.0
// A controller's records in one SQLite file: changed together or not at all, and on stable storage
// when a change is told as done (write-ahead log, synchronous=FULL). The log is moved into the file
// after each, so that a copy of the file alone has them all. SQLite waits for the disk, so it is
// called on a thread of the file engine's, one request after another.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>

#include "raid/metadata_store.hpp"
#include "weft/linux_world.hpp"

namespace weft::store {

/// More would mean that a controller does not wait for what it asked: it hears `exhausted`.
inline constexpr std::size_t requests_max = 1024;

class SqliteStore final : public raid::MetadataStore {
public:
    /// Makes the file if there is none. Waits for the disk: for set-up. `malformed`: it is a file
    /// of something else, which is left as it is.
    static Result<std::unique_ptr<SqliteStore>> open(LinuxWorld& world, const std::string& path);
    SqliteStore(const SqliteStore&) = delete;
    SqliteStore& operator=(const SqliteStore&) = delete;
    /// Every request must have completed.
    ~SqliteStore() override;

    void look(raid::MetadataLook& look) override;
    void elect(raid::MetadataElection& election) override;
    void renew(raid::MetadataRenewal& renewal) override;
    void read(raid::MetadataReading& reading) override;
    void commit(raid::MetadataCommit& commit) override;

    bool quiet() const { return waiting_.empty(); }

private:
    class Database;
    struct Request {
        std::function<Result<void>(Database&)> work;  ///< on the thread
        std::function<void(Result<void>)> told;
        Result<void> outcome{};
        bool first = false;  ///< it goes before all that only wait
    };

    SqliteStore(LinuxWorld& world, std::unique_ptr<Database> database);
    void add(Request request);
    void begin();

    LinuxWorld& world_;
    std::unique_ptr<Database> database_;  ///< the thread's while a request is under way
    std::list<Request> waiting_;          ///< the first is under way
    wire::Epoch own_{};                   ///< won by this candidate last
};

}  // namespace weft::store
