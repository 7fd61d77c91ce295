// SPDX-License-Identifier: Apache-2.0
// Another machine's disk, reached by iSCSI: a session, its connections and the logical unit, kept
// together.
#pragma once

#include <functional>
#include <memory>

#include "iscsi/initiator_disk.hpp"
#include "node/iscsi_initiator.hpp"

namespace weft::node {

class IscsiDisk {
public:
    /// `opened` is called once: device() is ready, or why not. Requests may be submitted before
    /// that; they wait. When the session is lost they wait until it is there again, and fail when
    /// the patience has run out. The transport must outlive the disk.
    IscsiDisk(World& world, IscsiTransport& transport, const IscsiInitiatorOptions& options,
              std::function<void(Result<void>)> opened);

    iscsi::InitiatorDisk& device() { return disk_; }
    iscsi::InitiatorSession& session() { return initiator_.session(); }
    std::uint64_t completions() const { return initiator_.completions(); }

    /// Say goodbye when all that is under way is answered.
    void disconnect() { initiator_.leave(); }
    bool finished() const { return initiator_.over(); }

private:
    void up();
    void gave_up(Error why);
    void tell(Result<void> outcome);

    std::function<void(Result<void>)> opened_;
    IscsiInitiator initiator_;
    iscsi::InitiatorDisk disk_;
};

}  // namespace weft::node
