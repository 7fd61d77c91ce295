// SPDX-License-Identifier: Apache-2.0
#include "node/iscsi_disk.hpp"

namespace weft::node {

namespace {

wire::LogicalUnit unit_of(const iscsi::InitiatorUrl& url) {
    return *wire::spell_logical_unit(url.unit);  // the URL was checked when it was read
}

}  // namespace

IscsiDisk::IscsiDisk(World& world, IscsiTransport& transport, const IscsiInitiatorOptions& options,
                     std::function<void(Result<void>)> opened)
    : opened_(std::move(opened)),
      initiator_(world, transport, options,
                 {.up = [this] { up(); }, .gave_up = [this](Error why) { gave_up(why); }}),
      disk_(initiator_.session(), unit_of(options.url),
            options.url.over_rdma ? iscsi::initiator_rdma_transfer_unsaid
                                  : iscsi::initiator_transfer_max) {
    initiator_.begin();
}

void IscsiDisk::up() {
    disk_.session_up([this](Result<void> outcome) {
        if (outcome) initiator_.works();
        tell(outcome);
    });
}

void IscsiDisk::gave_up(Error why) {
    disk_.give_up(why);
    tell(why);
}

void IscsiDisk::tell(Result<void> outcome) {
    if (opened_) std::exchange(opened_, nullptr)(outcome);
}

}  // namespace weft::node
