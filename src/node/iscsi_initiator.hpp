// SPDX-License-Identifier: Apache-2.0
// An initiator's session in a world: opens its connections, tells it the time, begins it anew when
// it was lost, and follows a target that says it is elsewhere.
#pragma once

#include <array>
#include <functional>
#include <memory>

#include "iscsi/initiator_session.hpp"
#include "iscsi/initiator_url.hpp"
#include "weft/world.hpp"

namespace weft::node {

/// Makes connections of one kind: TCP, or RDMA.
class IscsiTransport {
public:
    virtual ~IscsiTransport() = default;
    /// The user hears opened() or lost() later, never from inside.
    virtual Result<std::unique_ptr<iscsi::InitiatorDatamover>> connect(
        const Address& address, iscsi::InitiatorDatamoverUser& user) = 0;
};

class IscsiTcpTransport final : public IscsiTransport {
public:
    explicit IscsiTcpTransport(World& world) : world_(world) {}
    Result<std::unique_ptr<iscsi::InitiatorDatamover>> connect(
        const Address& address, iscsi::InitiatorDatamoverUser& user) override;

private:
    World& world_;
};

struct IscsiInitiatorOptions {
    iscsi::InitiatorUrl url;
    std::string initiator_name;
    std::size_t connections = 1;
    bool discovery = false;
    /// By which the target knows the session: one with the same takes the place of the one before,
    /// which is ended first with all it had under way. None: a number by chance.
    std::optional<std::uint64_t> session_number{};
    bool send_writes_again = true;
    /// How long a command may take before it is aborted and its maker hears that time ran out.
    /// Zero: as long as it likes.
    Duration command_patience = iscsi::command_patience_usual;
    /// A target that has said nothing for so long is lost; after `ping_interval` it is pinged.
    Duration silence = iscsi::target_silence;
    Duration ping_interval = iscsi::target_silence / 2;
    /// How long a lost session is tried to be had again. Zero: not at all.
    Duration patience = std::chrono::seconds(120);
};

/// What an initiator asks for by default; its segments are long, since we place what comes.
iscsi::Wishes default_wishes(const iscsi::InitiatorUrl& url);

class IscsiInitiator final : private iscsi::InitiatorSessionUser {
public:
    struct Holder {
        std::function<void()> up;            ///< the session is there, for the first time or again
        std::function<void(Error)> gave_up;  ///< and will not be there again
    };

    /// The transport must outlive this.
    IscsiInitiator(World& world, IscsiTransport& transport, const IscsiInitiatorOptions& options,
                   Holder holder);
    ~IscsiInitiator();

    void begin();
    /// The session is of use: patience begins afresh when it is lost. Whoever never says so gives
    /// up a session that comes and goes.
    void works();
    /// Says goodbye when all is done; gave_up(disconnected) follows.
    void leave();
    iscsi::InitiatorSession& session() { return session_; }
    bool over() const { return over_; }
    /// Of the connections there are now: see InitiatorDatamover.
    std::uint64_t completions() const;

private:
    void connection_wanted(std::size_t index) override;
    void connection_unwanted(std::size_t index) override;
    void fill_with_chance(Buffer octets) override;
    Instant time() const override { return world_.now(); }
    void session_up() override;
    void session_down(Error why) override;
    void deadline_changed() override;

    void tick();
    void begin_again();
    void end(Error why);

    World& world_;
    IscsiTransport& transport_;
    Address first_address_;
    Address address_;
    Duration patience_;
    Holder holder_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
    std::array<std::unique_ptr<iscsi::InitiatorDatamover>, iscsi::initiator_connections_max>
        movers_;
    std::unique_ptr<Timer> timer_;
    std::unique_ptr<Timer> retry_timer_;
    bool ever_up_ = false;
    bool leaving_ = false;
    bool over_ = false;
    unsigned redirections_ = 0;
    std::optional<Instant> lost_at_;
    Duration pause_ = std::chrono::milliseconds(100);
    iscsi::InitiatorSession session_;
};

}  // namespace weft::node
