// SPDX-License-Identifier: Apache-2.0
#include "raid/request.hpp"

namespace weft::raid {

Request request_of(HostRequest& asked, const VolumeView& view) {
    Request taken;
    const bool writes = asked.operation == HostOperation::write;
    taken.kind = writes ? Admission::Kind::write : Admission::Kind::read;
    taken.use =
        taken.kind == Admission::Kind::write ? RowOrder::Use::exclusive : RowOrder::Use::shared;
    taken.host = &asked;
    taken.session = asked.session;
    taken.host_identity = asked.host_identity;
    taken.host_command = asked.command;
    if (asked.operation != HostOperation::flush) {
        taken.bands = bands_of(*view.layout, asked.range);
        taken.length = asked.range.length;
    }
    taken.recomputes_parity = asked.repeated && !view.has_journal();
    return taken;
}

Request request_of(UpkeepRequest& asked, const VolumeView& view) {
    const bool flush = asked.kind == UpkeepKind::flush;
    Request taken;
    taken.kind = Admission::Kind::upkeep;
    taken.use =
        flush || asked.kind == UpkeepKind::scrub ? RowOrder::Use::shared : RowOrder::Use::exclusive;
    taken.upkeep = &asked;
    if (!flush) {
        taken.length = view.layout->chunk_bytes();
        taken.bands.push_back({.stripe = asked.stripe,
                               .offset = 0,
                               .length = view.layout->chunk_bytes(),
                               .columns = 0,
                               .whole_stripe = true});
    }
    return taken;
}

}  // namespace weft::raid
