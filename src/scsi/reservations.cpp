// SPDX-License-Identifier: Apache-2.0
#include "scsi/reservations.hpp"

#include <algorithm>

#include "base/crc32c.hpp"
#include "wire/scsi_stored_reservations.hpp"

namespace weft::scsi {

using namespace wire;

bool is_all_registrants(ReservationType type) {
    return type == ReservationType::write_exclusive_all_registrants ||
           type == ReservationType::exclusive_access_all_registrants;
}

bool is_registrants_only(ReservationType type) {
    return type == ReservationType::write_exclusive_registrants_only ||
           type == ReservationType::exclusive_access_registrants_only;
}

namespace {

bool is_known(ReservationType type) {
    switch (type) {
        case ReservationType::write_exclusive:
        case ReservationType::exclusive_access:
            return true;
        default:
            return is_all_registrants(type) || is_registrants_only(type);
    }
}

bool leaves_reads(ReservationType type) {
    return type == ReservationType::write_exclusive ||
           type == ReservationType::write_exclusive_registrants_only ||
           type == ReservationType::write_exclusive_all_registrants;
}

}  // namespace

bool Registration::covers(const NexusName& other) const {
    if (all_target_ports)
        return name.initiator == other.initiator &&
               name.session_identifier == other.session_identifier;
    return name == other;
}

Registration* Reservations::find(const NexusName& name) {
    auto found = std::ranges::find_if(registrations_,
                                      [&](const Registration& one) { return one.covers(name); });
    return found == registrations_.end() ? nullptr : &*found;
}

const Registration* Reservations::of(const NexusName& name) const {
    return const_cast<Reservations*>(this)->find(name);
}

bool Reservations::holds(const NexusName& name) const {
    if (!reserved()) return false;
    const auto* registration = of(name);
    if (registration == nullptr) return false;
    return is_all_registrants(type_) || registration->name == holder_;
}

ReservationKey Reservations::holder_key() const {
    if (!reserved() || is_all_registrants(type_)) return ReservationKey::none;
    const auto* registration = of(*holder_);
    return registration == nullptr ? ReservationKey::none : registration->key;
}

bool Reservations::allows(const NexusName& name, Reach reach) const {
    if (!reserved() || reach == Reach::anything || reach == Reach::facts || reach == Reach::own)
        return true;
    if (holds(name)) return true;
    if (is_registrants_only(type_) && of(name) != nullptr) return true;
    return reach == Reach::reads && leaves_reads(type_);
}

ReserveOutcome Reservations::perform(ReserveOutAction action, ReservationType type,
                                     const ReserveOutParameters& parameters, const NexusName& who,
                                     Notices& notices) {
    if (action == ReserveOutAction::register_key ||
        action == ReserveOutAction::register_and_ignore_existing_key)
        return enroll(parameters, who, action != ReserveOutAction::register_key, notices);

    const auto* own = of(who);
    if (own == nullptr || own->key != parameters.key) return ReserveOutcome::conflict;
    switch (action) {
        case ReserveOutAction::reserve:
            return reserve(type, who);
        case ReserveOutAction::release:
            return release(type, who, notices);
        case ReserveOutAction::clear:
            for (const auto& one : registrations_)
                if (!one.covers(who))
                    notices.push_back({one.name, AdditionalSense::reservations_preempted});
            registrations_.clear();
            free_reservation();
            ++generation_;
            return ReserveOutcome::done;
        case ReserveOutAction::preempt:
        case ReserveOutAction::preempt_and_abort:
            return preempt(action, type, parameters, who, notices);
        default:
            return ReserveOutcome::invalid_field;
    }
}

ReserveOutcome Reservations::enroll(const ReserveOutParameters& parameters, const NexusName& who,
                                    bool ignore_old, Notices& notices) {
    if (parameters.specify_initiator_ports) return ReserveOutcome::invalid_parameter;
    auto* own = find(who);
    if (!ignore_old) {
        auto old = own == nullptr ? ReservationKey::none : own->key;
        if (parameters.key != old) return ReserveOutcome::conflict;
    }
    const auto key = parameters.service_action_key;
    if (key == ReservationKey::none) {
        if (own != nullptr) unregister(own->name, notices);
    } else if (own != nullptr) {
        own->key = key;
        own->all_target_ports = parameters.all_target_ports;
    } else {
        if (registrations_.size() == registrations_max) return ReserveOutcome::no_room;
        registrations_.push_back({who, key, parameters.all_target_ports});
    }
    persists_ = parameters.persist_through_power_loss;
    ++generation_;
    return ReserveOutcome::done;
}

/// The last holder who goes takes the reservation with him.
void Reservations::unregister(const NexusName& who, Notices& notices) {
    const bool held = holds(who);
    std::erase_if(registrations_, [&](const Registration& one) { return one.name == who; });
    if (!held) return;
    if (is_all_registrants(type_)) {
        if (registrations_.empty()) free_reservation();
        return;
    }
    if (is_registrants_only(type_))
        for (const auto& one : registrations_)
            notices.push_back({one.name, AdditionalSense::reservations_released});
    free_reservation();
}

void Reservations::free_reservation() {
    type_ = ReservationType::none;
    holder_.reset();
}

ReserveOutcome Reservations::reserve(ReservationType type, const NexusName& who) {
    if (!is_known(type)) return ReserveOutcome::invalid_field;
    if (reserved())
        return holds(who) && type == type_ ? ReserveOutcome::done : ReserveOutcome::conflict;
    type_ = type;
    holder_ = of(who)->name;
    return ReserveOutcome::done;
}

ReserveOutcome Reservations::release(ReservationType type, const NexusName& who, Notices& notices) {
    if (!holds(who)) return ReserveOutcome::done;
    if (type != type_) return ReserveOutcome::invalid_release;
    if (is_registrants_only(type_) || is_all_registrants(type_))
        for (const auto& one : registrations_)
            if (!one.covers(who))
                notices.push_back({one.name, AdditionalSense::reservations_released});
    free_reservation();
    return ReserveOutcome::done;
}

ReserveOutcome Reservations::preempt(ReserveOutAction action, ReservationType type,
                                     const ReserveOutParameters& parameters, const NexusName& who,
                                     Notices& notices) {
    const auto victim = parameters.service_action_key;
    const bool abort = action == ReserveOutAction::preempt_and_abort;
    const bool all_hold = reserved() && is_all_registrants(type_);
    const bool takes_over =
        reserved() && (all_hold ? victim == ReservationKey::none : victim == holder_key());
    if (takes_over && !is_known(type)) return ReserveOutcome::invalid_field;
    if (!takes_over && victim == ReservationKey::none) return ReserveOutcome::invalid_parameter;
    const bool everybody = all_hold && victim == ReservationKey::none;
    auto meant = [&](const Registration& one) { return everybody || one.key == victim; };
    if (!takes_over && std::ranges::none_of(registrations_, meant)) return ReserveOutcome::conflict;

    const bool changes_type = takes_over && type != type_;
    std::vector<Registration> stay;
    for (const auto& one : registrations_) {
        const bool self = one.covers(who);
        if (meant(one) && abort) notices.push_back({one.name, AdditionalSense::none, true});
        if (meant(one) && !self)
            notices.push_back({one.name, AdditionalSense::registrations_preempted});
        else
            stay.push_back(one);
    }
    registrations_ = std::move(stay);
    if (takes_over) {
        if (changes_type)
            for (const auto& one : registrations_)
                if (!one.covers(who))
                    notices.push_back({one.name, AdditionalSense::reservations_released});
        type_ = type;
        holder_ = of(who)->name;
    }
    ++generation_;
    return ReserveOutcome::done;
}

ReserveOutcome Reservations::move(const RegisterAndMoveParameters& parameters, const NexusName& who,
                                  const NexusName& to) {
    const auto* own = of(who);
    if (own == nullptr || own->key != parameters.key) return ReserveOutcome::conflict;
    if (!holds(who)) return ReserveOutcome::conflict;
    if (is_all_registrants(type_)) return ReserveOutcome::conflict;
    if (parameters.service_action_key == ReservationKey::none || own->covers(to))
        return ReserveOutcome::invalid_parameter;
    if (auto* theirs = find(to)) {
        theirs->key = parameters.service_action_key;
    } else {
        if (registrations_.size() == registrations_max) return ReserveOutcome::no_room;
        registrations_.push_back({to, parameters.service_action_key, false});
    }
    holder_ = of(to)->name;
    if (parameters.unregister)
        std::erase_if(registrations_, [&](const Registration& one) { return one.covers(who); });
    persists_ = parameters.persist_through_power_loss;
    ++generation_;
    return ReserveOutcome::done;
}

std::vector<std::byte> Reservations::stored() const {
    std::vector<std::byte> octets;
    auto append = [&](ConstBuffer more) { octets.insert(octets.end(), more.begin(), more.end()); };
    StoredReservations header{.generation = generation_};
    if (persists_) {
        header.type = type_;
        header.count = static_cast<std::uint16_t>(registrations_.size());
        for (std::size_t i = 0; i < registrations_.size(); ++i)
            if (registrations_[i].name == holder_) header.holder = static_cast<std::uint16_t>(i);
    }
    append(encoded(header));
    for (std::size_t i = 0; i < header.count; ++i) {
        const auto& one = registrations_[i];
        StoredRegistration record{
            .key = one.key,
            .portal_group = one.name.portal_group,
            .relative_port = one.name.relative_port,
            .all_target_ports = one.all_target_ports,
            .name_length = static_cast<std::uint16_t>(one.name.initiator.size())};
        std::ranges::copy(one.name.session_identifier, record.session_identifier.begin());
        append(encoded(record));
        append(bytes_of(one.name.initiator));
    }
    append(encoded(StoredChecksum{crc32c(octets)}));
    return octets;
}

Result<void> Reservations::restore(ConstBuffer octets) {
    constexpr auto trailer = wire_size<StoredChecksum>();
    WEFT_TRY(const auto header, decode<StoredReservations>(octets));
    if (octets.size() < wire_size<StoredReservations>() + trailer)
        return Error{.code = Code::truncated};
    auto body = octets.first(octets.size() - trailer);
    WEFT_TRY(const auto checksum, decode<StoredChecksum>(octets.subspan(body.size())));
    if (checksum.crc32c != crc32c(body) || header.count > registrations_max)
        return Error{.code = Code::malformed};
    Reservations found;
    found.persists_ = true;
    auto rest = body.subspan(wire_size<StoredReservations>());
    for (std::size_t i = 0; i < header.count; ++i) {
        WEFT_TRY(const auto record, decode<StoredRegistration>(rest));
        rest = rest.subspan(wire_size<StoredRegistration>());
        if (record.name_length > rest.size()) return Error{.code = Code::truncated};
        Registration one{.key = record.key, .all_target_ports = record.all_target_ports};
        one.name.initiator = text_of(rest.first(record.name_length));
        std::ranges::copy(record.session_identifier, one.name.session_identifier.begin());
        one.name.portal_group = record.portal_group;
        one.name.relative_port = record.relative_port;
        found.registrations_.push_back(one);
        rest = rest.subspan(record.name_length);
    }
    if (is_known(header.type) && header.holder < header.count) {
        found.type_ = header.type;
        found.holder_ = found.registrations_[header.holder].name;
    } else if (is_all_registrants(header.type) && header.count > 0) {
        found.type_ = header.type;
        found.holder_ = found.registrations_.front().name;
    }
    found.persists_ = header.count > 0;
    *this = std::move(found);
    return {};
}

}  // namespace weft::scsi
