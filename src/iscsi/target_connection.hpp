// SPDX-License-Identifier: Apache-2.0
// One connection of an initiator, from login to logout: what is said on it. How it is carried, its
// datamover knows; what belongs to all connections of a session, the session does.
#pragma once

#include <functional>
#include <optional>

#include "iscsi/target_node.hpp"
#include "iscsi/target_text.hpp"

namespace weft::iscsi {

/// Where a connection comes from and where it arrived.
struct Origin {
    std::string peer;  ///< in words for a log line
    Address local{};
    Address remote{};
    bool rdma = false;  ///< by RDMA from the beginning: its datamover is iSER's
};

class TargetConnection final : public TargetDatamoverUser, private LoginPolicy {
public:
    /// What the connection needs of the one who holds it.
    struct Holder {
        std::function<void()> logged_in;  ///< the full feature phase has begun
        std::function<void()> gone;       ///< the mover is done: both may be destroyed, later
        /// Both sides want RDMA from now on, behind the login's last word: use() another mover when
        /// that has gone, with these terms. None: we do not want it, and say so.
        std::function<void(const ConnectionTerms&)> turn_to_rdma{};
    };

    TargetConnection(TargetNode& node, Origin origin, Holder holder);
    TargetConnection(const TargetConnection&) = delete;
    TargetConnection& operator=(const TargetConnection&) = delete;
    ~TargetConnection();

    /// What carries it. To be said before anything else, and again when the mover changes.
    void use(TargetDatamover& mover) { mover_ = &mover; }
    TargetDatamover& mover() { return *mover_; }

    std::uint16_t id() const { return login_ ? login_->name().connection_id : id_; }
    TargetSession* session() const { return session_; }
    const Origin& origin() const { return origin_; }
    bool logging_in() const { return stage_ == Stage::login; }
    /// Who logs in; none: that is over.
    const LoginName* login_name() const { return login_ ? &login_->name() : nullptr; }
    /// The terms, once logged in.
    const Terms& terms() const { return terms_; }
    std::optional<Error> fault() const { return fault_; }
    const std::string& initiator_name() const { return initiator_; }
    const std::string& target_name() const { return target_name_; }
    wire::LoginStatus login_status() const { return login_status_; }

    /// To be called about once a second.
    void tick(Instant now);
    /// Asks the initiator to log out, and closes if it does not.
    void ask_to_leave(Instant now);
    void close();
    void close_when_sent();

    // For the session and the node.
    /// A request other than a SCSI Command whose turn has come.
    void request(const ReceivedPdu& pdu);
    void tell_window();
    void try_seat();
    /// It is about to be closed: no further request is taken.
    void begin_leaving();

    // TargetDatamoverUser
    TargetMoverTask* command(const ReceivedPdu& pdu) override;
    void begin(TargetMoverTask& task) override;
    void control(const ReceivedPdu& pdu) override;
    TargetMoverTask* find_task(wire::InitiatorTaskTag tag) override;
    void data_taken(TargetMoverTask& task, DataOutcome outcome) override;
    void answered(TargetMoverTask& task) override;
    wire::TargetNumbers numbers(StatusCount count) override;
    void acknowledged(std::uint32_t expected_status_number) override;
    void refused(const ReceivedPdu& pdu, wire::RejectReason reason) override;
    void lost(std::optional<Error> why) override;

private:
    enum class Stage : std::uint8_t { login, full_feature, leaving, gone };
    class Management;

    // LoginPolicy
    LoginAdmission admit(const LoginName& name) override;
    std::optional<std::string> secret_of(const LoginName& name, std::string_view user) override;
    std::optional<ChapCredentials> own_credentials(const LoginName& name) override;
    void fill_with_chance(Buffer octets) override;
    std::optional<LoginSeat> seat(const LoginName& name, const Terms& terms) override;

    void login_goes_on(LoginTarget::State state);
    void send_login_response();
    void begin_full_feature();

    void ping(const ReceivedPdu& pdu);
    void manage(const ReceivedPdu& pdu);
    void text(const ReceivedPdu& pdu);
    void withdraw_what_waits(const wire::TaskManagementRequestPdu& request);
    void logout(const ReceivedPdu& pdu);
    void leave_session();
    void managed(Management& management, wire::TaskManagementResult result);
    void end_management(Management& management);
    std::optional<wire::TaskManagementResult> answer_without_unit(
        Management& management, const wire::TaskManagementRequestPdu& request);

    template <class Pdu>
    void send(const Pdu& pdu, ConstBuffer data, StatusCount count);

    TargetNode& node_;
    Origin origin_;
    Holder holder_;
    TargetDatamover* mover_ = nullptr;
    Stage stage_ = Stage::login;
    std::optional<Error> fault_;

    std::optional<LoginTarget> login_;
    Instant login_deadline_;
    std::optional<Instant> response_due_;  ///< a refusal that is held back
    wire::LoginStatus login_status_{};
    std::string initiator_, target_name_;

    TargetSession* session_ = nullptr;
    Terms terms_;
    std::uint16_t id_ = 0;
    std::uint32_t status_number_ = 0;
    std::optional<TextExchange> text_;
    std::vector<std::unique_ptr<Management>> managements_;

    bool heard_ = true;  ///< since the last tick
    Instant heard_at_;
    std::optional<Instant> pinged_at_;
    std::optional<Instant> leave_by_;
    std::optional<Instant> abandoned_since_;  ///< the initiator owes data of aborted commands
};

}  // namespace weft::iscsi
