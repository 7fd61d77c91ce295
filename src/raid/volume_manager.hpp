// SPDX-License-Identifier: Apache-2.0
// A volume as it lives at its controller: the engine that serves hosts, and around it all that
// lasts and heals. It is told which boxes are there, what they answer and what the store has kept;
// it says what to send, what to keep and what has happened.
//
// Of its membership one thing holds always: no request is answered under a membership that is not
// lasting, in the store and on the boxes. So a box that is lost stops the requests that need it
// until the volume without it is kept; a box more than the code can do without is never counted
// out, the volume waits for it.
#pragma once

#include <memory>
#include <span>

#include "raid/metadata_store.hpp"
#include "raid/volume_engine.hpp"
#include "raid/volume_records.hpp"
#include "raid/volume_status.hpp"
#include "weft/instant.hpp"

namespace weft::raid {

class VolumeManagerOwner {
public:
    /// To a box that is up. answered() follows, or lost(), or box_down(); not from inside. Commands
    /// to one box must come there in the order they are given. The answer to `recall` has data.
    virtual void carry(const wire::BoxIdentity& box, CommandTicket ticket,
                       const EncodedOrder& command) = 0;
    /// Makes a part of this volume on a box that is up and has none: `create_part`, and whatever
    /// meetings with the other boxes and hosts it needs before orders reach it. The same follows.
    virtual void create_part(const wire::BoxIdentity& box, CommandTicket ticket,
                             const wire::ArraySuperblock& superblock) = 0;
    /// Under which tag peers reach a box's window while this transaction uses it.
    virtual SteeringTag window_tag(const wire::BoxIdentity& box, std::uint32_t window,
                                   wire::TransactionNumber transaction) = 0;
    /// Keeps all of these or none, under the epoch of office; stored() follows, not from inside.
    /// There is never more than one.
    virtual void store(std::vector<MetadataChange> changes) = 0;
    /// A place has been without its box for so long that another should have it. Answered by
    /// replace(), now or later, or not at all.
    virtual void needs_spare(std::uint8_t place) = 0;
    virtual void event(const VolumeEvent& event) = 0;
    /// Whether this host is there, as far as its own session tells: what boxes do not reach is then
    /// tried by another way, or again, and not given up.
    virtual bool is_host_here(wire::HostSession) const { return true; }
    /// Of a request that ended with `leaves_writers`: every box has confirmed that it writes no
    /// more for it, or is cut off from its host.
    virtual void writers_gone(wire::HostSession, std::uint64_t /*command*/) {}
    /// Something may have to be done sooner than deadline() said before.
    virtual void deadline_changed() = 0;

protected:
    ~VolumeManagerOwner() = default;
};

struct VolumeManagerOptions {
    PlanOptions plan{};
    OwnSide own{};
    std::uint32_t windows = 16;  ///< every box has at least so many for this volume
    std::uint32_t window_bytes = 2 << 20;
    std::uint32_t upkeep_bytes = 128 << 10;  ///< of a chunk, in one turn of a rebuild or scrub
    std::uint8_t upkeep_depth = 4;           ///< stripes under way at a time
    unsigned rebuild_share = 20;             ///< percent of what is started, while upkeep has work
    std::size_t host_requests = 128;         ///< of one host, under way or waiting
    Duration start_patience = std::chrono::seconds(10);  ///< boxes may take so long to come
    /// A request waits so long for boxes, or for an attempt that goes through, before it fails.
    Duration request_patience = std::chrono::seconds(60);
    /// A box that does not reach the controller's memory for so long has failed.
    Duration box_silence = std::chrono::seconds(10);
    Duration spare_patience = std::chrono::seconds(30);  ///< a lost box may take so long to return
    Duration flush_interval = std::chrono::seconds(5);   ///< bounds what a returned box lacks
    Duration intent_rest = std::chrono::seconds(30);     ///< where nothing is written, before it is
                                                         ///< no longer in question
    std::uint64_t rebuild_save_stripes = 256;            ///< between two lasting marks
    HedgeOptions hedge{};                                ///< of reads that a box is late for
};

/// What a box's own superblock says of this volume.
struct BoxStanding {
    bool has_part = false;
    wire::Generation generation{};
    std::uint64_t data_length = 0;
    std::uint64_t boot = 0;  ///< another whenever its process has begun anew; 0: not known
};

/// Lives until what it began has ended: commands may be lost, transfers of its own must complete.
class VolumeManager {
public:
    VolumeManager(VolumeManagerOwner& owner, const VolumeManagerOptions& options);
    ~VolumeManager();
    VolumeManager(const VolumeManager&) = delete;
    VolumeManager& operator=(const VolumeManager&) = delete;

    /// Once, with what the store has; a new volume is in the store and on its boxes by then.
    Result<void> start(wire::ClusterIdentity cluster, wire::Epoch epoch,
                       const wire::ArrayVolume& volume, const VolumeRecords& records);

    /// A box obeys our epoch, has met its peers and takes commands. Boxes that are no members may
    /// be told of too, and nothing is done with them until they get a place.
    void box_up(const wire::BoxIdentity& box, const BoxStanding& standing);
    /// What it has not answered it never will.
    void box_down(const wire::BoxIdentity& box);
    void answered(CommandTicket ticket, const wire::ArrayAnswer& answer);
    /// Of one that asks for data: `recall`.
    void answered(CommandTicket ticket, const wire::ArrayAnswer& answer, ConstBuffer data_in);
    /// This command will not be answered, though its box is up.
    void lost(CommandTicket ticket);
    void stored(Result<void> outcome);

    /// `exhausted` when too many are waiting, `out_of_range`, `malformed`; `io_failed` while the
    /// volume is given up.
    void submit(HostRequest& request);

    /// The time, before whatever else is told: how soon boxes answer is known by it.
    void note_time(Instant now);
    /// Nothing need be done before then; none: nothing waits for time to pass.
    std::optional<Instant> deadline() const;
    void tick(Instant now);

    // Management. Refusals change nothing: `not_found` for a place that is none, `unsupported` for
    // what its state does not allow, `io_failed` if the volume could not do without.
    Result<void> fail(std::uint8_t place);
    Result<void> re_add(std::uint8_t place);
    /// Another box takes the place of one that is absent (or is failed by this): rebuilt in full.
    Result<void> replace(std::uint8_t place, const wire::BoxIdentity& box);
    Result<void> pause_rebuild(bool paused);
    Result<void> limit_rebuild(std::uint64_t octets_per_second);
    Result<void> scrub(bool repair);
    Result<void> stop_scrub();
    /// More stripes, on boxes that have room for them.
    Result<void> grow(std::uint64_t stripes);

    VolumeStatus status() const;
    const wire::ArrayVolume& volume() const;
    /// Octets hosts may use.
    std::uint64_t size() const;

private:
    class Life;
    std::unique_ptr<Life> life_;
};

}  // namespace weft::raid
