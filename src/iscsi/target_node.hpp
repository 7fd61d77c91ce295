// SPDX-License-Identifier: Apache-2.0
// An iSCSI target node: the targets it offers, who may use them, and the sessions that do. Pure:
// connections are brought to it by whoever listens, with a datamover of whatever kind.
//
// Targets come and go while it runs. A withdrawn target takes no login; its sessions are closed,
// and when the last task has come back its owner is told.
#pragma once

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "iscsi/target_session.hpp"
#include "weft/world.hpp"

namespace weft::iscsi {

class TargetConnection;

/// Who may use a target, and how it is introduced.
struct TargetRules {
    std::string alias{};
    /// Names that may log in; none listed: everybody.
    std::vector<std::string> initiators{};
    /// Who can prove himself by CHAP; none listed: nobody has to.
    std::vector<ChapCredentials> users{};
    /// What the target proves itself with, to those who ask.
    std::optional<ChapCredentials> own{};
    /// Where it has moved to: host[:port]. Logins are sent there.
    std::string moved_to{};
    bool moved_for_good = false;
    bool operator==(const TargetRules&) const = default;
};

struct OfferedTarget {
    std::string name;
    scsi::Target* device = nullptr;
    TargetRules rules{};
    std::uint16_t portal_group = 1;

    // The node's own.
    bool withdrawn = false;
    std::size_t sessions = 0;
    std::function<void()> gone{};
};

/// Where connections are taken: told to those who discover.
struct Portal {
    Address address;
    std::uint16_t group = 1;
};

/// What has happened, for the people who run it.
struct TargetStatistics {
    std::uint64_t logins = 0;
    std::uint64_t logins_refused = 0;
    std::uint64_t commands = 0;
    std::uint64_t failed = 0;  ///< of those, with another status than good
    std::uint64_t managements = 0;
    std::uint64_t rejects = 0;  ///< PDUs refused
    std::uint64_t bytes_read = 0;
    std::uint64_t bytes_written = 0;
};

/// Terms we offer and settle for, unless told otherwise.
Wishes usual_target_wishes();

class TargetNode {
public:
    struct Options {
        Wishes wishes = usual_target_wishes();
        /// Who may discover: the same rules as for a target.
        TargetRules discovery{};
        std::size_t sessions = sessions_max;
        std::size_t sessions_per_initiator = sessions_max;  ///< of one name, with one target
        std::function<Instant()> now;
        /// Calls the function soon, and not from inside.
        std::function<void(std::function<void()>)> defer;
        std::function<void(Buffer)> chance;  ///< fills with octets nobody can foresee
    };

    explicit TargetNode(Options options);
    TargetNode(const TargetNode&) = delete;
    TargetNode& operator=(const TargetNode&) = delete;
    /// No session may be left: close() and wait until quiet().
    ~TargetNode();

    /// `malformed`: no iSCSI name, the name is taken, or a secret is too short; `exhausted`.
    Result<OfferedTarget*> offer(std::string name, scsi::Target& device, TargetRules rules);
    /// `gone`: no session uses it any more.
    Result<void> withdraw(std::string_view name, std::function<void()> gone);
    OfferedTarget* find(std::string_view name);
    const std::list<OfferedTarget>& targets() const { return targets_; }
    void add_portal(Portal portal);
    const std::vector<Portal>& portals() const { return portals_; }

    /// Takes no login from now on.
    void refuse_logins() { refusing_ = true; }
    void take_logins() { refusing_ = false; }
    void close_all();
    bool quiet() const { return sessions_.empty(); }
    const std::list<std::unique_ptr<TargetSession>>& sessions() const { return sessions_; }
    TargetStatistics& statistics() { return statistics_; }
    const Options& options() const { return options_; }
    Instant now() const { return options_.now(); }

    // For the connections.
    LoginAdmission admit(const LoginName& name);
    const TargetRules* rules_for(const LoginName& name);
    /// None: an old session is being closed; the connection is asked to try again.
    std::optional<LoginSeat> seat(const LoginName& name, const Terms& terms,
                                  TargetConnection& connection);
    /// It does not wait for a seat any more.
    void forget(TargetConnection& connection);
    TargetSession* find_session(std::uint16_t handle);
    void session_gone(TargetSession& session);
    /// A session lives on with fewer connections: somebody may wait for the place.
    /// A login waits for the place of a connection of this session.
    bool awaits_seat_in(const TargetSession& session) const;
    void connection_left();
    /// The records of a SendTargets answer that this initiator may see.
    void describe_targets(const LoginName& asker, std::string_view only, const Address& local,
                          TextQueue& out);
    /// How long somebody from there who failed to prove himself must wait for the answer.
    Duration delay_after_guess(const std::string& from);
    void proved(const std::string& from) { guesses_.erase(from); }

private:
    TargetSession* find_session(const LoginName& name);
    std::optional<LoginSeat> seat_in_session(const LoginName& name, TargetConnection& connection);
    LoginSeat seat_in_new_session(const LoginName& name, const Terms& terms);
    std::uint16_t new_handle();
    void erase(TargetSession& session);
    void try_seats();
    static bool admits(const TargetRules& rules, const std::string& initiator);

    Options options_;
    std::list<OfferedTarget> targets_;
    std::vector<Portal> portals_;
    std::list<std::unique_ptr<TargetSession>> sessions_;
    std::vector<TargetConnection*> waiting_;
    std::map<std::string, unsigned> guesses_;
    TargetStatistics statistics_;
    std::uint16_t last_handle_ = 0;
    bool refusing_ = false;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace weft::iscsi
