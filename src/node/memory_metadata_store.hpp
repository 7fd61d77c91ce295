// SPDX-License-Identifier: Apache-2.0
// A controller's store in memory: for simulated clusters, and for trying things out. The records
// are somebody else's, so that they outlive a controller that is switched off.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "raid/metadata_store.hpp"
#include "weft/world.hpp"

namespace weft::node {

struct MemoryRecords {
    std::map<std::string, std::vector<std::byte>> records;
    wire::Epoch epoch{};  ///< of whoever won office last
};

class MemoryMetadataStore final : public raid::MetadataStore {
public:
    MemoryMetadataStore(World& world, MemoryRecords& records) : world_(world), records_(records) {}
    ~MemoryMetadataStore() override { *alive_ = false; }

    void elect(raid::MetadataElection& election) override {
        const auto highest = std::max(records_.epoch, election.beyond);
        records_.epoch = wire::Epoch{static_cast<std::uint64_t>(highest) + 1};
        election.epoch = records_.epoch;
        later([&election] { election.completed({}); });
    }
    void read(raid::MetadataReading& reading) override {
        reading.records.assign(records_.records.begin(), records_.records.end());
        later([&reading] { reading.completed({}); });
    }
    void commit(raid::MetadataCommit& commit) override {
        if (commit.epoch != records_.epoch)
            return later([&commit] { commit.completed(Error{.code = Code::access_denied}); });
        for (const auto& change : commit.changes) {
            if (change.record)
                records_.records[change.name] = *change.record;
            else
                records_.records.erase(change.name);
        }
        later([&commit] { commit.completed({}); });
    }

private:
    void later(std::function<void()> task) {
        world_.defer([alive = alive_, task = std::move(task)] {
            if (*alive) task();
        });
    }

    World& world_;
    MemoryRecords& records_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace weft::node
