// SPDX-License-Identifier: Apache-2.0
// A volume at its controller: joins the manager of its life (raid/volume_manager.hpp) with the
// boxes, the store and the clock, and serves it as an iSCSI target. Hosts of the array speak the
// vendor's command there and move their data to and from the boxes themselves; whoever else logs in
// finds an ordinary disk.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <set>

#include "node/array_links.hpp"
#include "node/box_windows.hpp"
#include "node/controller_box.hpp"
#include "node/controller_report.hpp"
#include "node/host_releases.hpp"
#include "node/iscsi_server.hpp"
#include "node/volume_disk.hpp"
#include "node/volume_roster.hpp"
#include "raid/volume_manager.hpp"
#include "scsi/vendor_commands.hpp"
#include "wire/array_host.hpp"

namespace weft::node {

class ControllerVolume;

/// What a volume needs of the controller as a whole.
class ControllerOffice {
public:
    virtual wire::ClusterIdentity cluster() const = 0;
    virtual wire::Epoch epoch() const = 0;
    /// It is in office, and sure of it at this moment.
    virtual bool may_act() const = 0;
    virtual ControllerBox* find_box(const wire::BoxIdentity& box) = 0;
    /// Told later, never from inside.
    virtual void keep(std::vector<raid::MetadataChange> changes,
                      std::function<void(Result<void>)> told) = 0;
    /// Makes the part and introduces the box to the others of its volume, and them to it.
    virtual void make_part(ControllerBox& box, const wire::ArraySuperblock& superblock,
                           ControllerBox::Told told) = 0;
    /// Gives the host its session number and secret, and tells the boxes its volume counts on, as
    /// far as they are up. None: there are too many hosts.
    virtual void admit_host(const wire::VolumeIdentity& volume, wire::ArrayHostAdmission host,
                            std::function<void(std::optional<wire::ArrayHostAdmission>)> told) = 0;
    virtual void dismiss_host(wire::HostSession host) = 0;
    /// The volume is about to count on this box: it hears of the volume's hosts before whatever it
    /// is told next.
    virtual void admit_hosts_at(ControllerBox& box, const wire::VolumeIdentity& volume) = 0;
    /// The volume counts on it no more, and if it is up its hosts are nothing to it.
    virtual void dismiss_hosts_at(const wire::BoxIdentity& box,
                                  const wire::VolumeIdentity& volume) = 0;
    virtual void spare_wanted(ControllerVolume& volume, std::uint8_t place) = 0;
    virtual void happened(const ControllerVolume& volume, const raid::VolumeEvent& event) = 0;

protected:
    ~ControllerOffice() = default;
};

class ControllerVolume final : private raid::VolumeManagerOwner, private scsi::VendorCommands {
public:
    struct Surroundings {
        World& world;
        ControllerOffice& office;
        IscsiServer& server;
        /// As which host boxes reach the controller's own memory, if they do.
        wire::HostSession self{};
        ArrayLinks* links = nullptr;
        /// All data goes by way of the controller.
        bool in_band = false;
        /// Windows whose volume is gone: the links have their memory registered as long as they
        /// live. The next volume takes them.
        std::vector<std::unique_ptr<BoxWindows>>* spare_windows = nullptr;
    };
    static constexpr std::size_t host_commands_max = 1024;
    /// Of one initiator name, the volume's own limit: no host takes the places of all others.
    static constexpr std::size_t sessions_per_host_max = 32;
    static constexpr std::size_t slow_kept = 128;
    static constexpr Duration slow = std::chrono::milliseconds(500);

    ControllerVolume(const Surroundings& around, const raid::VolumeManagerOptions& options,
                     const wire::ArrayVolume& volume);
    /// After remove() has told, or when the server is gone.
    ~ControllerVolume();

    /// `malformed`: it cannot be served under its name, or is no volume.
    Result<void> start(const raid::VolumeRecords& records);
    /// No longer served; `gone`: nobody uses it any more, and it may be destroyed.
    void remove(std::function<void()> gone);
    /// From now on nothing is kept of it; or again.
    void keep_nothing(bool nothing) { keeps_nothing_ = nothing; }

    const std::string& name() const { return name_; }
    const wire::VolumeIdentity& identity() const { return identity_; }
    /// For whatever it is told: it knows the time by then.
    raid::VolumeManager& manager() {
        manager_.note_time(around_.world.now());
        return manager_;
    }
    const raid::VolumeManager& manager() const { return manager_; }

    void box_up(const ControllerBox& box);
    void box_down(const wire::BoxIdentity& box);

    std::vector<HostReport> hosts() const;
    /// One of them has a session with us at this moment.
    bool has_host_here() const;
    /// Fills in what is counted.
    void count(VolumeReport& report) const;
    std::vector<SlowOperation> slow_operations() const;

private:
    /// That a box does not reach a host, until it is known whether the host has gone.
    struct HeldCutOff {
        raid::VolumeEvent event;
        std::set<wire::HostSession> hosts;  ///< of which requests were under way
    };
    /// A host's request, from its command to its answer; or longer, if nobody waits for that.
    class HostCommand final : public raid::HostRequest {
    public:
        HostCommand(ControllerVolume& owner, scsi::VendorCall& asked, Instant now)
            : call(&asked), since(now), owner_(owner) {}
        void completed(Result<void> outcome) override { owner_.over(*this, outcome); }

        scsi::VendorCall* call;  ///< none: nobody hears it
        Instant since;
        std::uint32_t heard = 0;  ///< of who comes and goes

    private:
        ControllerVolume& owner_;
    };
    struct Host {
        std::string name;
        wire::HostIdentity identity{};  ///< the same in all its sessions
        wire::ArrayHostAdmission admission{};
        std::string initiator;  ///< iSCSI name of the session it said hello in
        std::array<std::uint8_t, 6> session_identifier{};
        std::uint32_t roster = 0;  ///< as of when boxes first heard of it
        HostReleases releases{};
        std::uint64_t requests = 0;
        std::optional<Instant> lost_at{};  ///< its session was first seen to be over

        bool is(const scsi::NexusName& sender) const {
            return initiator == sender.initiator && session_identifier == sender.session_identifier;
        }
    };

    void carry(const wire::BoxIdentity& box, raid::CommandTicket ticket,
               const raid::EncodedOrder& command) override;
    void create_part(const wire::BoxIdentity& box, raid::CommandTicket ticket,
                     const wire::ArraySuperblock& superblock) override;
    SteeringTag window_tag(const wire::BoxIdentity& box, std::uint32_t window,
                           wire::TransactionNumber transaction) override;
    void store(std::vector<raid::MetadataChange> changes) override;
    void needs_spare(std::uint8_t place) override;
    void event(const raid::VolumeEvent& event) override;
    void deadline_changed() override;
    bool is_host_here(wire::HostSession session) const override;
    void writers_gone(wire::HostSession session, std::uint64_t command) override;

    void receive(scsi::VendorCall& call) override;
    void forget(scsi::VendorCall& call) override;
    void hello(scsi::VendorCall& call);
    void welcome(std::uint64_t ticket, Host host,
                 std::optional<wire::ArrayHostAdmission> admission);
    void transfer(scsi::VendorCall& call, const wire::HostCommandBlock& block);
    void over(HostCommand& command, Result<void> outcome);
    void dismiss(wire::HostSession session);
    void look_after_hosts();
    bool is_here(const Host& host) const;
    bool has_room_for(const std::string& initiator);
    void hold_cut_off(const raid::VolumeEvent& event);
    void tell_cut_offs();
    void follow_members();
    SlowOperation report(const HostCommand& command, bool under_way) const;
    void note_slow(SlowOperation operation);
    void name_boxes(SlowOperation& operation) const;
    void watch();
    void look_for_silent_boxes();
    void answer(scsi::VendorCall& call, wire::HostOutcome outcome, std::uint64_t command);
    /// The same, with all that the host has not heard of who comes and goes.
    void answer(HostCommand& command, wire::HostOutcome outcome);

    Surroundings around_;
    std::string name_;
    wire::VolumeIdentity identity_;
    wire::ArrayVolume first_;  ///< as it was when it was made or read
    std::unique_ptr<BoxWindows>
        windows_;  ///< the controller's own, for data that goes by way of it
    raid::VolumeManager manager_;
    VolumeDisk disk_;
    std::unique_ptr<Timer> timer_;
    std::unique_ptr<Timer> host_timer_;
    std::unique_ptr<Timer> watch_timer_;
    std::unique_ptr<Timer> cut_off_timer_;
    std::vector<HeldCutOff> cut_offs_;  ///< one for each box at most
    bool watching_ = false;
    std::set<wire::BoxIdentity> silent_;  ///< people were told
    VolumeRoster roster_;
    std::map<wire::HostSession, Host> hosts_;
    std::map<std::uint64_t, scsi::VendorCall*> greetings_;  ///< under way; null: nobody hears it
    std::uint64_t greeting_ = 0;
    bool keeps_nothing_ = false;
    std::uint64_t requests_ = 0, orders_ = 0, payload_octets_ = 0;  ///< of hosts
    std::list<std::unique_ptr<HostCommand>> commands_;
    std::list<SlowOperation> slow_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace weft::node
