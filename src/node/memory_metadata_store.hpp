// SPDX-License-Identifier: Apache-2.0
// A controller's store in memory: for simulated clusters, and for trying things out. The records
// are somebody else's, so that they outlive a controller that is switched off, and several
// controllers can have them in common.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "raid/metadata_store.hpp"
#include "weft/world.hpp"

namespace weft::node {

struct MemoryRecords {
    std::map<std::string, std::vector<std::byte>> records;
    raid::MetadataOffice office;
};

class MemoryMetadataStore final : public raid::MetadataStore {
public:
    MemoryMetadataStore(World& world, MemoryRecords& records) : world_(world), records_(records) {}
    ~MemoryMetadataStore() override { *alive_ = false; }

    /// As if the network between this candidate and the store were cut: nothing is heard or done.
    void set_reachable(bool reachable) { reachable_ = reachable; }

    void look(raid::MetadataLook& look) override {
        answer(look, [this, &look]() -> Result<void> {
            look.office = records_.office;
            return {};
        });
    }
    void elect(raid::MetadataElection& election) override {
        answer(election, [this, &election]() -> Result<void> {
            WEFT_TRY(records_.office, raid::office_after(records_.office, election, own_));
            election.epoch = own_ = records_.office.epoch;
            return {};
        });
    }
    void renew(raid::MetadataRenewal& renewal) override {
        answer(renewal, [this, &renewal]() -> Result<void> {
            if (renewal.epoch != records_.office.epoch) return Error{.code = Code::access_denied};
            ++records_.office.renewals;
            if (renewal.releases) records_.office.lease = {};
            return {};
        });
    }
    void read(raid::MetadataReading& reading) override {
        answer(reading, [this, &reading]() -> Result<void> {
            reading.records.assign(records_.records.begin(), records_.records.end());
            return {};
        });
    }
    void commit(raid::MetadataCommit& commit) override {
        answer(commit, [this, &commit]() -> Result<void> {
            if (commit.epoch != records_.office.epoch) return Error{.code = Code::access_denied};
            for (const auto& change : commit.changes) {
                if (change.record)
                    records_.records[change.name] = *change.record;
                else
                    records_.records.erase(change.name);
            }
            return {};
        });
    }

private:
    /// Done now, told later.
    void answer(auto& request, auto work) {
        const auto outcome = reachable_ ? work() : Result<void>(Error{.code = Code::disconnected});
        world_.defer([alive = alive_, &request, outcome] {
            if (*alive) request.completed(outcome);
        });
    }

    World& world_;
    MemoryRecords& records_;
    wire::Epoch own_{};
    bool reachable_ = true;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace weft::node
