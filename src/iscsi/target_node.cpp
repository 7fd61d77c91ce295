// SPDX-License-Identifier: Apache-2.0
#include "iscsi/target_node.hpp"

#include <algorithm>

#include "iscsi/target_connection.hpp"

namespace weft::iscsi {

Wishes usual_target_wishes() {
    Wishes wishes;
    wishes.terms.target_segment_max = segment_bytes;
    wishes.terms.max_connections = connections_per_session_max;
    wishes.terms.initial_r2t = false;
    wishes.terms.immediate_data = true;
    wishes.terms.max_burst = burst_bytes;
    wishes.terms.first_burst = first_burst_bytes;
    wishes.terms.time_to_wait = 2;
    wishes.terms.time_to_retain = 0;  // without recovery level 2 there is nothing to retain
    wishes.terms.max_outstanding_r2t = outstanding_requests_bound;
    wishes.terms.error_recovery_level = 1;
    return wishes;
}

namespace {

bool has_iscsi_form(std::string_view name) {
    if (name.size() > name_max) return false;
    return name.starts_with("iqn.") || name.starts_with("eui.") || name.starts_with("naa.");
}

bool secrets_fit(const TargetRules& rules) {
    for (const auto& user : rules.users) {
        if (!long_enough(user.secret)) return false;
        // One secret for both directions would let anybody have us answer our own challenge.
        if (rules.own && rules.own->secret == user.secret) return false;
    }
    return !rules.own || long_enough(rules.own->secret);
}

/// As TargetAddress has it: IPv6 in brackets.
std::string portal_text(const Address& address, std::uint16_t group) {
    const bool numeric6 = address.host.find(':') != std::string::npos;
    return (numeric6 ? "[" + address.host + "]" : address.host) + ":" +
           std::to_string(address.port) + "," + std::to_string(group);
}

CommandWindow window_of(TargetSession& session) {
    return {.expected = session.expected_command_number(), .last = session.max_command_number()};
}

bool is_wildcard(const Address& address) {
    return address.host.empty() || address.host == "0.0.0.0" || address.host == "::";
}

}  // namespace

TargetNode::TargetNode(Options options) : options_(std::move(options)) {}

TargetNode::~TargetNode() {
    *alive_ = false;
    WEFT_CHECK(sessions_.empty());
}

Result<OfferedTarget*> TargetNode::offer(std::string name, scsi::Target& device,
                                         TargetRules rules) {
    if (targets_.size() >= targets_max) return Error{.code = Code::exhausted};
    if (!has_iscsi_form(name) || find(name) != nullptr || !secrets_fit(rules))
        return Error{.code = Code::malformed};
    targets_.push_back({.name = std::move(name), .device = &device, .rules = std::move(rules)});
    return &targets_.back();
}

Result<void> TargetNode::withdraw(std::string_view name, std::function<void()> gone) {
    auto* target = find(name);
    if (target == nullptr) return Error{.code = Code::not_found};
    target->withdrawn = true;
    target->gone = std::move(gone);
    for (auto& session : sessions_)
        if (session->target() == target) session->close();
    if (target->sessions > 0) return {};
    auto told = std::move(target->gone);
    targets_.remove_if([&](auto& each) { return &each == target; });
    if (told) told();
    return {};
}

OfferedTarget* TargetNode::find(std::string_view name) {
    for (auto& target : targets_)
        if (!target.withdrawn && target.name == name) return &target;
    return nullptr;
}

void TargetNode::add_portal(Portal portal) {
    if (portals_.size() < portals_max) portals_.push_back(std::move(portal));
}

void TargetNode::close_all() {
    for (auto& session : sessions_) session->close();
}

bool TargetNode::admits(const TargetRules& rules, const std::string& initiator) {
    const auto& names = rules.initiators;
    return names.empty() || std::find(names.begin(), names.end(), initiator) != names.end();
}

const TargetRules* TargetNode::rules_for(const LoginName& name) {
    if (name.session_type == SessionType::discovery) return &options_.discovery;
    auto* target = find(name.target_name);
    return target ? &target->rules : nullptr;
}

LoginAdmission TargetNode::admit(const LoginName& name) {
    LoginAdmission admission{.wishes = options_.wishes};
    // First: what there will be is not known yet, or no more.
    if (refusing_) {
        admission.status = wire::LoginStatus::service_unavailable;
        return admission;
    }
    const auto* rules = rules_for(name);
    if (rules == nullptr) {
        admission.status = wire::LoginStatus::not_found;
        return admission;
    }
    if (!admits(*rules, name.initiator_name)) {
        // Whoever may not use a target does not learn that it exists.
        admission.status = name.session_type == SessionType::discovery
                               ? wire::LoginStatus::authorization_failure
                               : wire::LoginStatus::not_found;
        return admission;
    }
    if (!rules->moved_to.empty()) {
        admission.status = rules->moved_for_good ? wire::LoginStatus::target_moved_permanently
                                                 : wire::LoginStatus::target_moved_temporarily;
        admission.target_address = rules->moved_to;
        return admission;
    }
    if (auto* target = find(name.target_name)) admission.portal_group_tag = target->portal_group;
    admission.target_alias = rules->alias;
    admission.authentication_required = !rules->users.empty();
    if (auto* session = name.target_session_handle != 0 ? find_session(name) : nullptr) {
        admission.session_terms = session->terms();
        admission.session_window = window_of(*session);
    }
    return admission;
}

TargetSession* TargetNode::find_session(std::uint16_t handle) {
    for (auto& session : sessions_)
        if (session->handle() == handle) return session.get();
    return nullptr;
}

TargetSession* TargetNode::find_session(const LoginName& name) {
    for (auto& session : sessions_) {
        const auto& other = session->name();
        if (other.initiator_name == name.initiator_name && other.target_name == name.target_name &&
            other.initiator_session_id == name.initiator_session_id &&
            other.session_type == name.session_type)
            return session.get();
    }
    return nullptr;
}

std::optional<LoginSeat> TargetNode::seat(const LoginName& name, const Terms& terms,
                                          TargetConnection& connection) {
    if (name.target_session_handle != 0) return seat_in_session(name, connection);
    auto* old = find_session(name);
    if (old == nullptr || name.session_type == SessionType::discovery)
        return seat_in_new_session(name, terms);
    // Session reinstatement (section 6.3.5): the old one ends first, its tasks included.
    waiting_.push_back(&connection);
    old->close();
    return std::nullopt;
}

std::optional<LoginSeat> TargetNode::seat_in_session(const LoginName& name,
                                                     TargetConnection& connection) {
    auto* session = find_session(name);
    if (session == nullptr || session->handle() != name.target_session_handle || session->ending())
        return LoginSeat{.status = wire::LoginStatus::session_does_not_exist};
    // Connection reinstatement: the same, for one connection.
    auto* old = session->find(name.connection_id);
    if (old != nullptr || session->has_orphans()) {
        waiting_.push_back(&connection);
        if (old != nullptr) old->close();
        return std::nullopt;
    }
    if (session->connections().size() >= session->terms().max_connections)
        return LoginSeat{.status = wire::LoginStatus::too_many_connections};
    return LoginSeat{.target_session_handle = session->handle(),
                     .session_window = window_of(*session)};
}

LoginSeat TargetNode::seat_in_new_session(const LoginName& name, const Terms& terms) {
    const auto own = std::ranges::count_if(sessions_, [&](const auto& each) {
        return each->name().initiator_name == name.initiator_name &&
               each->name().target_name == name.target_name;
    });
    if (sessions_.size() >= options_.sessions ||
        static_cast<std::size_t>(own) >= options_.sessions_per_initiator)
        return {.status = wire::LoginStatus::out_of_resources};
    OfferedTarget* target = nullptr;
    scsi::Nexus* nexus = nullptr;
    if (name.session_type == SessionType::normal) {
        target = find(name.target_name);
        if (target == nullptr) return {.status = wire::LoginStatus::target_removed};
        auto joined = target->device->join({.initiator = name.initiator_name,
                                            .session_identifier = name.initiator_session_id,
                                            .portal_group = target->portal_group});
        if (!joined) return {.status = wire::LoginStatus::out_of_resources};
        nexus = *joined;
        ++target->sessions;
    }
    sessions_.push_back(
        std::make_unique<TargetSession>(*this, name, terms, target, nexus, new_handle()));
    return {.target_session_handle = sessions_.back()->handle()};
}

std::uint16_t TargetNode::new_handle() {
    do ++last_handle_;
    while (last_handle_ == 0 || find_session(last_handle_) != nullptr);
    return last_handle_;
}

void TargetNode::forget(TargetConnection& connection) {
    if (std::erase(waiting_, &connection) == 0) return;
    // It will not take the place that was kept for it.
    auto* session = find_session(connection.login_name()->target_session_handle);
    if (session != nullptr && session->connections().empty()) session->close();
}

bool TargetNode::awaits_seat_in(const TargetSession& session) const {
    return std::ranges::any_of(waiting_, [&](auto* connection) {
        return connection->login_name()->target_session_handle == session.handle();
    });
}

void TargetNode::session_gone(TargetSession& session) {
    // We are called from inside it.
    options_.defer([this, &session, alive = alive_] {
        if (*alive) erase(session);
    });
}

void TargetNode::erase(TargetSession& session) {
    auto* target = session.target();
    sessions_.remove_if([&](auto& each) { return each.get() == &session; });
    if (target != nullptr && --target->sessions == 0 && target->withdrawn) {
        auto told = std::move(target->gone);
        targets_.remove_if([&](auto& each) { return &each == target; });
        if (told) told();
    }
    try_seats();
}

void TargetNode::connection_left() {
    options_.defer([this, alive = alive_] {
        if (*alive) try_seats();
    });
}

void TargetNode::try_seats() {
    for (auto* connection : std::exchange(waiting_, {})) connection->try_seat();
}

void TargetNode::describe_targets(const LoginName& asker, std::string_view only,
                                  const Address& local, TextQueue& out) {
    for (const auto& target : targets_) {
        if (target.withdrawn || !admits(target.rules, asker.initiator_name)) continue;
        if (!only.empty() && target.name != only) continue;
        out.add("TargetName", target.name);
        for (const auto& portal : portals_) {
            auto address = portal.address;
            if (is_wildcard(address)) address.host = local.host;
            out.add("TargetAddress", portal_text(address, portal.group));
        }
    }
}

Duration TargetNode::delay_after_guess(const std::string& from) {
    if (guesses_.size() >= guessers_max && !guesses_.contains(from)) guesses_.clear();
    auto times = guesses_[from]++;
    auto delay = guess_delay * (1 << std::min(times, 3u));
    return std::min<Duration>(delay, guess_delay_max);
}

}  // namespace weft::iscsi
