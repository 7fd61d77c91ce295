// SPDX-License-Identifier: Apache-2.0
// What the store has of a volume besides the volume itself.
#pragma once

#include "raid/dirty_record.hpp"
#include "raid/executed_record.hpp"

namespace weft::raid {

struct VolumeRecords {
    std::vector<wire::ArrayRebuildRecord> rebuilds;
    std::vector<DirtyRecord> dirty;
    std::vector<ExecutedCommands::Note> executed;

    /// If it is one of these.
    void take(ConstBuffer record) {
        if (auto found = parse_record<wire::ArrayRebuildRecord>(record)) rebuilds.push_back(*found);
        if (auto found = parse_dirty_record(record)) dirty.push_back(*found);
        if (auto found = parse_executed_record(record)) executed = std::move(found->notes);
    }
};

}  // namespace weft::raid
