// SPDX-License-Identifier: Apache-2.0
// An iSCSI target in a world: listens, accepts, keeps the connections, and owns the targets whose
// units are other people's block devices. Targets and units come and go while it runs.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "block/buffer_pool.hpp"
#include "iscsi/iser_target.hpp"
#include "iscsi/target_connection.hpp"
#include "iscsi/tcp_target_mover.hpp"
#include "node/first_octets.hpp"
#include "scsi/target.hpp"
#include "weft/world.hpp"

namespace weft::node {

class IscsiServer {
public:
    struct Options {
        std::size_t connections_max = 1024;
        /// What one machine may have of them, by its address; and the sessions with one target that
        /// one initiator may have, by its name.
        std::size_t connections_per_host_max = 1024;
        /// Payload held for all initiators together; devices that lend their memory need none.
        std::size_t buffer_bytes = 1u << 30;
        std::size_t idle_buffer_bytes = 64u << 20;
        iscsi::Wishes wishes = iscsi::usual_target_wishes();
        iscsi::TargetRules discovery{};  ///< who may ask which targets there are
        /// RDMA on the same ports: for those who begin with it, and those who turn to it.
        bool iser = true;
        iscsi::IserTarget::Options iser_options{};
        /// A folder for what must outlive us: persistent reservations. Empty: they end with us.
        std::string state_folder{};
        /// Takes connections that begin with '{', and what was read of them. None: they are taken
        /// for iSCSI, which knows what to make of them.
        std::function<void(std::unique_ptr<Stream>, ConstBuffer read_already)> json{};
    };
    struct Event {
        enum class Kind : std::uint8_t { connected, logged_in, left, refused } kind;
        std::string peer;
        std::string initiator{};       ///< once it has said so
        std::string target{};          ///< empty: discovery
        wire::LoginStatus status{};    ///< left: how its login ended
        std::optional<Error> fault{};  ///< left: why it was dropped, if it was
        std::string why{};             ///< refused: a sentence
    };

    /// Between two sentences that tell people of a refusal.
    static constexpr Duration refusal_pause = std::chrono::seconds(60);
    /// That somebody was kept out because too much was open already, a sentence; or none.
    static std::optional<std::string> refusal_in(const Event& event);

    IscsiServer(World& world, Options options);
    IscsiServer(const IscsiServer&) = delete;
    IscsiServer& operator=(const IscsiServer&) = delete;
    /// Run the world until quiet() after stop().
    ~IscsiServer();

    /// `io_failed`: what is kept of its reservations cannot be read, and must not be forgotten.
    Result<void> add_target(const std::string& name, iscsi::TargetRules rules);
    /// Its sessions are closed; `gone`: its devices are not used any more.
    Result<void> remove_target(const std::string& name, std::function<void()> gone);
    /// The device must outlive the unit.
    Result<void> add_unit(const std::string& target, std::uint32_t number, BlockDevice& device,
                          scsi::UnitOptions options);
    Result<void> remove_unit(const std::string& target, std::uint32_t number,
                             std::function<void()> gone);
    Result<Address> listen(const Address& address);
    void on_event(std::function<void(const Event&)> hear) { hear_ = std::move(hear); }

    /// Shown every request for a connection by RDMA before iSER is; who wants it takes it away.
    using RdmaTaker = std::function<void(std::unique_ptr<verbs::ConnectionRequest>& request)>;
    void on_rdma_request(RdmaTaker taker) { rdma_taker_ = std::move(taker); }
    /// At which those requests are; none if RDMA is not served.
    verbs::Device* rdma_device() { return iser_ ? &iser_->device() : nullptr; }

    /// Closes every connection; who comes again is taken.
    void hang_up_all();
    /// Stops listening, and asks every initiator to log out; those who do not are left.
    void drain();
    /// Stops listening and closes every connection at once.
    void stop();
    /// No connection and no session is left, and no device is in use.
    bool quiet() const;
    /// Where a session of ours comes from, as long as it has a connection.
    std::optional<Address> origin_of(const scsi::Nexus& nexus) const;

    iscsi::TargetNode& node() { return node_; }
    std::size_t connection_count() const { return connections_.size(); }
    const iscsi::TargetStatistics& statistics() { return node_.statistics(); }
    std::uint64_t accepted_count() const { return accepted_; }

private:
    struct Connection;
    struct Target;
    using Place = std::list<Connection>::iterator;

    void accepted(std::unique_ptr<Stream> stream);
    bool has_room(const Address& remote, const std::string& peer);
    Place add_connection(iscsi::Origin origin);
    void begin_tcp(std::unique_ptr<Stream> stream, ConstBuffer read_already);
    void begin_iser(std::unique_ptr<verbs::ConnectionRequest> request);
    void turn_to_rdma(Place which, const iscsi::ConnectionTerms& terms);
    void gone(Place which);
    void tick();
    void leave_target(Target& target);
    void call_later(Duration when, std::function<void()> task);
    Target* find(const std::string& name);
    void tell(const Event& event) {
        if (hear_) hear_(event);
    }

    World& world_;
    Options options_;
    block::BufferPool pool_;
    iscsi::TargetNode node_;
    std::list<Target> targets_;
    std::function<void(const Event&)> hear_;
    RdmaTaker rdma_taker_;
    std::vector<std::unique_ptr<Listener>> listeners_;
    std::unique_ptr<iscsi::IserTarget> iser_;  ///< outlives the connections; none: TCP only
    std::list<Connection> connections_;
    FirstOctets first_octets_;
    std::unique_ptr<Timer> timer_;
    std::vector<std::shared_ptr<std::unique_ptr<Timer>>> timers_;  ///< the units'
    std::uint64_t accepted_ = 0;
    bool stopping_ = false;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace weft::node
