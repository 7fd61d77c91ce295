// SPDX-License-Identifier: Apache-2.0
// The controller of an array: knows its boxes and volumes, keeps what must outlive it in a store,
// and serves the volumes to hosts. On one port it takes iSCSI (over TCP and iSER), the RDMA
// connections of boxes to its own memory, and what management sends. It sees no payload, but of
// initiators that know nothing of arrays.
//
// It holds office under a lease (node/controller_lease.hpp). As long as it is not sure of it, and
// when another has taken over, boxes are told nothing; a standby is a controller that still waits.
//
// Management is asked for in plain calls; a face turns words into them. Each tells once, later or
// from inside: nothing, or why not, a sentence. What was refused changed nothing.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "node/array_links.hpp"
#include "node/controller_lease.hpp"
#include "node/controller_records.hpp"
#include "node/controller_volume.hpp"
#include "node/event_book.hpp"
#include "node/iscsi_iser_transport.hpp"
#include "node/link_watch.hpp"
#include "node/round.hpp"

namespace weft::node {

class ControllerNode final : private ControllerOffice, private ControllerBoxOwner {
public:
    struct Options {
        Address listen;
        std::vector<Address> also_listen{};  ///< in further networks
        /// Where boxes reach this controller, for initiators that know nothing of arrays. None:
        /// where it listens; if that is all addresses, where each box sees it come from.
        std::optional<Address> reach{};
        raid::VolumeManagerOptions volume{};
        /// All data goes by way of this controller: for comparison, and where boxes and hosts
        /// cannot reach each other.
        bool in_band = false;
        IscsiServer::Options server{};
        ControllerLease::Options office{};
        std::string key{};  ///< of the cluster: boxes and this controller prove that they know it
        /// How long a box that is being added may take to answer.
        Duration add_patience = std::chrono::seconds(10);
        /// A box that has said nothing for so long is absent.
        Duration box_silence = BoxSession::silence_usual;
    };
    using Refusal = std::optional<std::string>;
    using Told = std::function<void(Refusal)>;

    /// The controller as a host: of initiators that know nothing of arrays, and in-band.
    static constexpr wire::HostSession own_session{1};
    static constexpr std::size_t boxes_max = 256;
    static constexpr std::size_t volumes_max = 256;
    static constexpr std::size_t hosts_max = 256;

    /// The store must outlive this.
    ControllerNode(World& world, raid::MetadataStore& store, Options options);
    ControllerNode(const ControllerNode&) = delete;
    ControllerNode& operator=(const ControllerNode&) = delete;
    /// Run the world until quiet() after stop().
    ~ControllerNode();

    /// Listens, takes office, and remembers; told when it serves. `access_denied`: another
    /// controller is in office. A standby waits until none is.
    void start(std::function<void(Result<Address>)> told);
    /// Of a start that failed: the record of the store for which it did, by its name. "": for none.
    const std::string& unreadable_record() const { return unreadable_; }
    /// Where it listens; from start() on.
    const Address& address() const { return address_; }
    /// While it waits: for what, a sentence.
    void on_waiting(std::function<void(const std::string&)> hear) { waiting_ = std::move(hear); }
    /// Another has taken office: this one has closed all sessions, and changes nothing any more.
    void on_deposed(std::function<void()> hear) { hear_deposed_ = std::move(hear); }
    void on_event(std::function<void(const ControllerEvent&)> hear) {
        events_.on_event(std::move(hear));
    }

    /// `join`: if the box is of another cluster, become that cluster's controller; as long as there
    /// are no volumes here. For one whose state is lost: its volumes are assembled next.
    void add_box(const std::string& name, const Address& address, bool join, Told told);
    void remove_box(const std::string& name, Told told);
    /// Removes the parts that no volume claims. `force`: also of volumes that could be assembled
    /// from what boxes have. Told with what is gone, also where that is not all of them.
    using Cleaned = std::function<void(Refusal, const std::vector<RemovedPart>&)>;
    void clean_box(const std::string& name, bool force, const Cleaned& told);
    struct VolumeWishes {
        std::string name;
        raid::Level level{};
        std::vector<std::string> boxes;
        std::uint32_t chunk_bytes = 128u << 10;
        std::uint64_t size = 0;  ///< 0: all the boxes have room for
        wire::ArrayConsistency consistency = wire::ArrayConsistency::journal;
        wire::ArrayTopology topology = wire::ArrayTopology::star;
    };
    void create_volume(const VolumeWishes& wishes, Told told);
    void delete_volume(const std::string& name, Told told);
    /// Put together from what boxes that are up say, where the store does not know it.
    /// `force`: also where boxes that are not here may know more of it.
    void assemble_volume(const std::string& name, bool force, Told told);
    void grow_volume(const std::string& name, std::uint64_t size, Told told);
    /// `member`: a place from 0, or the name of the box there.
    void fail_member(const std::string& volume, const std::string& member, Told told);
    void re_add_member(const std::string& volume, const std::string& member, Told told);
    void replace_member(const std::string& volume, const std::string& member,
                        const std::string& box, Told told);
    void add_spare(const std::string& box, Told told);
    void remove_spare(const std::string& box, Told told);
    void pause_rebuild(const std::string& volume, bool paused, Told told);
    void limit_rebuild(const std::string& volume, std::uint64_t octets_per_second, Told told);
    void scrub(const std::string& volume, bool repair, bool stop, Told told);

    std::vector<BoxReport> boxes() const;
    std::vector<VolumeReport> volumes() const;
    std::vector<HostReport> hosts() const;
    std::vector<SlowOperation> slow_operations() const;
    /// Over which data moves, as boxes and this controller say now. `volume`: of its boxes and
    /// hosts alone; empty: all.
    using ToldLinks = std::function<void(Refusal, const LinkReports&)>;
    void links(const std::string& volume, const ToldLinks& told);
    /// Those of controllers before this one, too, as far as they could keep them.
    const EventBook& events() const { return events_; }
    OfficeReport office() const;
    const Options& options() const { return options_; }
    /// It serves: standbys, and those that have stepped down, do not.
    bool in_office() const { return lease_.state() == ControllerLease::State::in_office; }
    wire::ClusterIdentity cluster() const override { return cluster_; }
    wire::Epoch epoch() const override { return epoch_; }
    bool may_act() const override { return lease_.holds(); }
    bool deposed() const { return deposed_; }

    void drain() { server_->drain(); }
    /// Closes every connection; when nothing of theirs is under way any more, gives office back.
    void stop();
    bool quiet() const {
        return server_->quiet() && commits_ == 0 && lease_.quiet() && !stepping_down_;
    }
    IscsiServer& server() { return *server_; }

private:
    class Commit;
    class Joining;
    struct Start;
    struct Adding;
    struct Creation;
    using BoxPair = std::pair<wire::BoxIdentity, wire::BoxIdentity>;

    // What volumes ask of the office.
    ControllerBox* find_box(const wire::BoxIdentity& box) override;
    void keep(std::vector<raid::MetadataChange> changes,
              std::function<void(Result<void>)> told) override;
    void make_part(ControllerBox& box, const wire::ArraySuperblock& superblock,
                   ControllerBox::Told told) override;
    void admit_host(const wire::VolumeIdentity& volume, wire::ArrayHostAdmission host,
                    std::function<void(std::optional<wire::ArrayHostAdmission>)> told) override;
    void dismiss_host(wire::HostSession host) override;
    void admit_hosts_at(ControllerBox& box, const wire::VolumeIdentity& volume) override;
    void dismiss_hosts_at(const wire::BoxIdentity& box,
                          const wire::VolumeIdentity& volume) override;
    void spare_wanted(ControllerVolume& volume, std::uint8_t place) override;
    void happened(const ControllerVolume& volume, const raid::VolumeEvent& event) override;

    // What boxes ask, and tell.
    std::vector<wire::ArrayPeer> peers_of(const ControllerBox& box) override;
    std::vector<wire::ArrayHostAdmission> hosts_of(const ControllerBox& box) override;
    void introduce(ControllerBox& box, std::function<void()> told) override;
    void box_up(ControllerBox& box) override;
    void box_down(ControllerBox& box, const std::string& why) override;
    bool join(const ControllerBox& box, wire::ClusterIdentity cluster, wire::Epoch epoch,
              std::function<void(bool)> told) override;

    ControllerBoxOwner& box_owner() { return *this; }
    ControllerBox::Access box_access() const {
        return {.key = options_.key, .silence = options_.box_silence};
    }
    std::uint32_t lease_ms() const override { return lease_.remaining_ms(); }
    void elected(Result<wire::Epoch> outcome);
    void doubted(bool doubtful);
    void go_on();
    void lost_office();
    void step_down_when_idle();
    void remembered(Result<void> outcome);
    Result<void> open();
    /// `served`, if it is there: called once, when the volume has started and its members are up,
    /// or its start has had its time.
    Result<void> add_volume(const wire::ArrayVolume& volume, const raid::VolumeRecords& records,
                            std::function<void()> served);
    void tell_started(const wire::VolumeIdentity& volume);
    void added(std::uint64_t number, Refusal refusal);
    void keep_box(std::uint64_t number);
    void look_who_is_there(std::uint64_t number, Error why);
    void joined(wire::ClusterIdentity cluster, wire::Epoch epoch,
                const std::function<void(bool)>& told);
    void make_volume(const VolumeWishes& wishes, Told told);
    void make_larger(const std::string& name, std::uint64_t size, const Told& told);
    Refusal plan_creation(const VolumeWishes& wishes, Creation& creation);
    void parts_created(const std::shared_ptr<Creation>& creation);
    /// As far as the box is up; what is left there is shown as unclaimed.
    void delete_part(const wire::BoxIdentity& identity, const wire::ArrayVolume& volume,
                     unsigned tries, std::function<void()> over);
    void take_apart(ControllerVolume& leaving, unsigned tries, const std::function<void()>& over);
    void later(Duration pause, std::function<void()> task);
    void look_at_spares();
    void give_spares(const std::set<wire::BoxIdentity>& answered);
    using WantedPlace = std::pair<wire::VolumeIdentity, std::uint8_t>;
    /// The box that shall have the place; none that is there can.
    std::optional<wire::BoxIdentity> spare_for(const ControllerVolume& volume,
                                               const wire::BoxIdentity& lost,
                                               const std::set<wire::BoxIdentity>& answered);
    /// `promised`: of its room, what is no longer to be had.
    bool can_take_place(const ControllerVolume& volume, const wire::BoxIdentity& box,
                        std::uint64_t promised) const;
    std::uint64_t promised_bytes(const ControllerBox& box) const;
    void give_spare(ControllerVolume& volume, std::uint8_t place, const wire::BoxIdentity& box);
    /// Boxes of one volume are to know each other; told when all that are up do.
    void acquaint(const wire::ArrayVolume& volume, std::function<void()> told);
    const ArraySecret& secret_of(const wire::BoxIdentity& one, const wire::BoxIdentity& other);
    ControllerBox* find_box(const std::string& name);
    ControllerVolume* find_volume(const std::string& name);
    std::optional<std::uint8_t> place_of(const ControllerVolume& volume, const std::string& member);
    std::string box_name(const wire::BoxIdentity& box) const;
    bool is_member(const wire::BoxIdentity& box) const;
    /// It has a place in the volume, whether it is there or not.
    bool claims(const wire::VolumeIdentity& volume, const wire::BoxIdentity& box) const;
    std::string name_of(const wire::VolumeIdentity& volume) const;
    bool could_assemble(const wire::VolumeIdentity& volume) const;
    using Unclaimed = std::map<wire::VolumeIdentity, RemovedPart>;
    Refusal find_unclaimed(const ControllerBox& box, bool force, Unclaimed& unclaimed) const;
    bool counts_on(const wire::VolumeIdentity& volume, const wire::BoxIdentity& box) const;
    /// A sentence with the numbers, if it does.
    static Refusal lacks_room(const ControllerBox& box, std::uint64_t octets);
    static std::uint64_t part_bytes(const wire::ArrayVolume& volume);
    static std::string too_small(const ControllerBox& box, wire::ArrayVolume volume,
                                 std::uint64_t stripes);
    static Refusal lacks_room_for_part(const ControllerBox& box, const ControllerVolume& volume);
    using PartsByVolume = std::map<wire::VolumeIdentity, std::vector<wire::ArraySuperblock>>;
    PartsByVolume parts_of(const std::string& name) const;
    std::string several_volumes(const std::string& name, const PartsByVolume& parts) const;
    using VolumeWork = std::function<Result<void>(ControllerVolume&)>;
    using MemberWork = std::function<Result<void>(ControllerVolume&, std::uint8_t)>;
    /// `unsupported`: why it is not done, and what would help, if it is refused as that.
    void with_volume(const std::string& volume, const Told& told, const VolumeWork& work,
                     const std::string& unsupported = {});
    void with_member(const std::string& volume, const std::string& member, const Told& told,
                     const MemberWork& work, const std::string& unsupported = {});
    void give_place(const std::string& volume, const std::string& member, const std::string& box,
                    const Told& told);
    void ask_for_links(std::function<void(LinkReports)> told);
    void watch_links();
    std::string name_of_end(const wire::ArrayConnectionEnd& end) const;
    std::set<std::string> parties_of(const std::string& volume) const;
    void note(const std::string& volume, const std::string& box, const std::string& what);
    void hear(const IscsiServer::Event& event);
    void forget_later(std::unique_ptr<ControllerBox> box);

    World& world_;
    raid::MetadataStore& store_;
    Options options_;
    IscsiIserTransport transport_;
    std::unique_ptr<IscsiServer> server_;
    std::vector<std::unique_ptr<BoxWindows>> spare_windows_;  ///< outlive the links
    std::unique_ptr<ArrayLinks> links_;
    std::shared_ptr<Start> start_;
    std::string unreadable_;
    wire::ClusterIdentity cluster_{};
    wire::Epoch epoch_{};
    Octets<16> controller_{};
    ControllerLease lease_;
    Address address_;
    std::unique_ptr<Timer> step_down_timer_;
    std::optional<Instant> step_down_until_;
    bool stepping_down_ = false;
    bool deposed_ = false;
    bool joining_ = false;
    std::map<wire::BoxIdentity, wire::ArrayBoxRecord> box_records_;
    std::map<wire::BoxIdentity, std::unique_ptr<ControllerBox>> boxes_;
    std::map<std::uint64_t, std::shared_ptr<Adding>> adding_;
    std::uint64_t adding_number_ = 0;
    std::map<std::string, std::string> troubles_;  ///< of boxes that are down: the fact last told
    std::set<wire::BoxIdentity> spares_;
    std::map<wire::VolumeIdentity, std::unique_ptr<ControllerVolume>> volumes_;
    std::vector<std::unique_ptr<ControllerVolume>> leaving_;  ///< deleted, and not yet idle
    std::vector<std::shared_ptr<std::unique_ptr<Timer>>> timers_;
    std::set<std::string> names_taken_;  ///< by volumes that are being made
    std::map<wire::VolumeIdentity, std::function<void()>> starting_;  ///< who waits for a start
    std::set<WantedPlace> spares_wanted_;
    /// Boxes that were spares, by the lost box of which they have taken a place: they get its
    /// places in other volumes, too.
    std::map<wire::BoxIdentity, wire::BoxIdentity> stand_ins_;
    std::map<WantedPlace, wire::BoxIdentity> promised_;  ///< places given whose part is to come
    std::map<wire::BoxIdentity, std::set<wire::BoxIdentity>> acquaintances_;
    std::map<BoxPair, ArraySecret> secrets_;
    struct Admitted {
        wire::ArrayHostAdmission host;               ///< with the secret of the session itself
        std::optional<wire::VolumeIdentity> volume;  ///< none: all of them
    };
    static wire::ArrayHostAdmission admission_for(const ControllerBox& box,
                                                  wire::ArrayHostAdmission host);
    std::map<wire::HostSession, Admitted> admitted_;
    std::uint32_t sessions_ = 0;
    std::size_t commits_ = 0;
    Instant next_refusal_{};  ///< is not told of before
    EventBook events_;
    LinkWatch link_watch_;
    std::unique_ptr<Timer> link_timer_;
    std::function<void(const std::string&)> waiting_;
    std::function<void()> hear_deposed_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace weft::node
