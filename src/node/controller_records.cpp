// SPDX-License-Identifier: Apache-2.0
#include "node/controller_records.hpp"

#include "node/event_book.hpp"
#include "raid/records.hpp"
#include "raid/superblock.hpp"

namespace weft::node {
namespace {

Result<void> take(ControllerRecords& known, const std::string& name, ConstBuffer body) {
    if (name == cluster_record_name) {
        WEFT_TRY(auto cluster, raid::parse_record<wire::ArrayClusterRecord>(body));
        known.cluster = cluster;
    } else if (name.starts_with("boxes/")) {
        WEFT_TRY(auto box, raid::parse_record<wire::ArrayBoxRecord>(body));
        known.boxes[box.box] = box;
    } else if (name.starts_with("spares/")) {
        WEFT_TRY(auto spare, raid::parse_record<wire::ArraySpareRecord>(body));
        known.spares.insert(spare.box);
    } else if (name.starts_with("volumes/")) {
        WEFT_TRY(auto volume, raid::parse_record<wire::ArrayVolume>(body));
        WEFT_TRY([[maybe_unused]] auto layout, raid::layout_of(volume));
        known.volumes[volume.volume] = volume;
    } else if (name.starts_with("rebuilds/")) {
        WEFT_TRY(auto rebuild, raid::parse_record<wire::ArrayRebuildRecord>(body));
        known.of_volumes[rebuild.volume].rebuilds.push_back(rebuild);
    } else if (name.starts_with("dirty/")) {
        WEFT_TRY(auto dirty, raid::parse_dirty_record(body));
        known.of_volumes[dirty.volume].dirty.push_back(dirty);
    } else if (name.starts_with("executed/")) {
        WEFT_TRY(auto executed, raid::parse_executed_record(body));
        known.of_volumes[executed.volume].executed = std::move(executed.notes);
    } else if (name.starts_with(EventBook::record_prefix)) {
        // Nobody is contradicted by who does not know what once happened.
        if (auto event = raid::parse_record<wire::ArrayEventRecord>(body))
            known.events.push_back(*event);
    } else {
        return Error{.code = Code::malformed};
    }
    return {};
}

}  // namespace

std::string box_record_name(const wire::BoxIdentity& box) {
    return "boxes/" + to_digits(box);
}
std::string spare_record_name(const wire::BoxIdentity& box) {
    return "spares/" + to_digits(box);
}

Result<ControllerRecords> read_controller_records(NamedRecords records) {
    ControllerRecords known;
    std::uint32_t number = 0;
    for (const auto& [name, body] : records) {
        ++number;
        if (!take(known, name, body)) return Error{.code = Code::malformed, .where = number};
    }
    return known;
}

}  // namespace weft::node
