// SPDX-License-Identifier: Apache-2.0
#include "scsi/reservations.hpp"

#include <gtest/gtest.h>

namespace weft::scsi {
namespace {

using namespace wire;
using enum ReserveOutAction;

const NexusName alice{.initiator = "iqn.a", .session_identifier = {0, 0, 0, 0, 0, 1}};
const NexusName bob{.initiator = "iqn.b", .session_identifier = {0, 0, 0, 0, 0, 2}};
const NexusName carol{.initiator = "iqn.c", .session_identifier = {0, 0, 0, 0, 0, 3}};
constexpr auto key_a = ReservationKey{0xa};
constexpr auto key_b = ReservationKey{0xb};
constexpr auto key_c = ReservationKey{0xc};
constexpr ReservationType all_types[] = {ReservationType::write_exclusive,
                                         ReservationType::exclusive_access,
                                         ReservationType::write_exclusive_registrants_only,
                                         ReservationType::exclusive_access_registrants_only,
                                         ReservationType::write_exclusive_all_registrants,
                                         ReservationType::exclusive_access_all_registrants};

struct Persistent : testing::Test {
    ReserveOutcome act(ReserveOutAction action, const NexusName& who, ReservationKey key,
                       ReservationKey other = {}, ReservationType type = {}) {
        notices.clear();
        return reservations.perform(action, type, {.key = key, .service_action_key = other}, who,
                                    notices);
    }
    void enroll_all() {
        ASSERT_EQ(act(register_key, alice, {}, key_a), ReserveOutcome::done);
        ASSERT_EQ(act(register_key, bob, {}, key_b), ReserveOutcome::done);
    }
    bool told(const NexusName& who, AdditionalSense what) const {
        for (const auto& one : notices)
            if (one.who == who && one.what == what) return true;
        return false;
    }
    Reservations reservations;
    Reservations::Notices notices;
};

TEST_F(Persistent, ReservationKeepsOthersOutAsItsTypeSays) {
    struct Row {
        ReservationType type;
        bool registered_reads, registered_writes, stranger_reads, stranger_writes;
    };
    constexpr Row rows[] = {
        {ReservationType::write_exclusive, true, false, true, false},
        {ReservationType::exclusive_access, false, false, false, false},
        {ReservationType::write_exclusive_registrants_only, true, true, true, false},
        {ReservationType::exclusive_access_registrants_only, true, true, false, false},
        {ReservationType::write_exclusive_all_registrants, true, true, true, false},
        {ReservationType::exclusive_access_all_registrants, true, true, false, false}};
    for (const auto& row : rows) {
        SCOPED_TRACE(static_cast<int>(row.type));
        reservations = {};
        enroll_all();
        ASSERT_EQ(act(reserve, alice, key_a, {}, row.type), ReserveOutcome::done);
        EXPECT_TRUE(reservations.allows(alice, Reach::writes));
        EXPECT_EQ(reservations.allows(bob, Reach::reads), row.registered_reads);
        EXPECT_EQ(reservations.allows(bob, Reach::writes), row.registered_writes);
        EXPECT_EQ(reservations.allows(carol, Reach::reads), row.stranger_reads);
        EXPECT_EQ(reservations.allows(carol, Reach::writes), row.stranger_writes);
        EXPECT_TRUE(reservations.allows(carol, Reach::facts));
    }
}

TEST_F(Persistent, KeyMustBeKnownToBeChanged) {
    enroll_all();
    EXPECT_EQ(reservations.generation(), 2u);
    EXPECT_EQ(act(register_key, alice, key_b, key_c), ReserveOutcome::conflict);
    EXPECT_EQ(act(register_and_ignore_existing_key, alice, {}, key_c), ReserveOutcome::done);
    EXPECT_EQ(reservations.of(alice)->key, key_c);
    EXPECT_EQ(reservations.generation(), 3u);
    EXPECT_EQ(act(reserve, alice, key_a, {}, ReservationType::write_exclusive),
              ReserveOutcome::conflict);
    EXPECT_EQ(act(reserve, carol, {}, {}, ReservationType::write_exclusive),
              ReserveOutcome::conflict);
}

TEST_F(Persistent, ReservationEndsWithItsHolderUnlessAllHoldIt) {
    for (auto type : all_types) {
        SCOPED_TRACE(static_cast<int>(type));
        reservations = {};
        enroll_all();
        ASSERT_EQ(act(reserve, alice, key_a, {}, type), ReserveOutcome::done);
        EXPECT_EQ(reservations.holder_key(),
                  is_all_registrants(type) ? ReservationKey::none : key_a);
        ASSERT_EQ(act(register_key, alice, key_a, {}), ReserveOutcome::done);
        EXPECT_EQ(reservations.reserved(), is_all_registrants(type));
        EXPECT_EQ(told(bob, AdditionalSense::reservations_released), is_registrants_only(type));
        EXPECT_FALSE(told(alice, AdditionalSense::reservations_released))
            << "who does it needs not be told";
        if (!is_all_registrants(type)) continue;
        EXPECT_EQ(act(release, bob, key_b, {}, type), ReserveOutcome::done);
        EXPECT_FALSE(reservations.reserved());
    }
}

TEST_F(Persistent, ReleaseMustNameTheType) {
    enroll_all();
    act(reserve, alice, key_a, {}, ReservationType::write_exclusive);
    EXPECT_EQ(act(release, bob, key_b, {}, ReservationType::write_exclusive), ReserveOutcome::done);
    EXPECT_TRUE(reservations.reserved()) << "it was not his to release";
    EXPECT_EQ(act(release, alice, key_a, {}, ReservationType::exclusive_access),
              ReserveOutcome::invalid_release);
    EXPECT_EQ(act(release, alice, key_a, {}, ReservationType::write_exclusive),
              ReserveOutcome::done);
    EXPECT_FALSE(reservations.reserved());
}

TEST_F(Persistent, ClearEndsEverythingAndTellsOthers) {
    enroll_all();
    act(reserve, alice, key_a, {}, ReservationType::exclusive_access);
    ASSERT_EQ(act(clear, alice, key_a), ReserveOutcome::done);
    EXPECT_TRUE(reservations.empty());
    EXPECT_FALSE(reservations.reserved());
    EXPECT_EQ(reservations.generation(), 3u) << "counted once for the clear, not for the reserve";
    EXPECT_TRUE(told(bob, AdditionalSense::reservations_preempted));
    EXPECT_FALSE(told(alice, AdditionalSense::reservations_preempted));
}

TEST_F(Persistent, PreemptTakesRegistrationAndReservation) {
    enroll_all();
    act(reserve, alice, key_a, {}, ReservationType::write_exclusive);
    ASSERT_EQ(act(preempt_and_abort, bob, key_b, key_a, ReservationType::exclusive_access),
              ReserveOutcome::done);
    EXPECT_EQ(reservations.of(alice), nullptr);
    EXPECT_TRUE(reservations.holds(bob));
    EXPECT_EQ(reservations.type(), ReservationType::exclusive_access);
    EXPECT_TRUE(told(alice, AdditionalSense::registrations_preempted));
    EXPECT_TRUE(std::ranges::any_of(
        notices, [](const Notice& one) { return one.who == alice && one.abort_tasks; }));
    EXPECT_EQ(act(preempt, bob, key_b, key_c, ReservationType::exclusive_access),
              ReserveOutcome::conflict)
        << "nobody has that key";
}

TEST_F(Persistent, PreemptWithoutReservationOnlyUnregisters) {
    enroll_all();
    ASSERT_EQ(act(preempt, bob, key_b, key_a, ReservationType::exclusive_access),
              ReserveOutcome::done);
    EXPECT_EQ(reservations.registrations().size(), 1u);
    EXPECT_FALSE(reservations.reserved());
    EXPECT_EQ(reservations.generation(), 3u);
}

TEST_F(Persistent, RegistrationForAllPortsCountsAtEachOfThem) {
    ASSERT_EQ(reservations.perform(register_key, {},
                                   {.service_action_key = key_a, .all_target_ports = true}, alice,
                                   notices),
              ReserveOutcome::done);
    auto elsewhere = alice;
    elsewhere.portal_group = 2;
    elsewhere.relative_port = 7;
    EXPECT_NE(reservations.of(elsewhere), nullptr);
    EXPECT_EQ(reservations.of(bob), nullptr);
}

TEST_F(Persistent, ReservationMovesToAnother) {
    enroll_all();
    act(reserve, alice, key_a, {}, ReservationType::write_exclusive);
    EXPECT_EQ(reservations.move({.key = key_a, .service_action_key = key_c, .unregister = true},
                                alice, carol),
              ReserveOutcome::done);
    EXPECT_TRUE(reservations.holds(carol));
    EXPECT_EQ(reservations.of(alice), nullptr);
}

TEST_F(Persistent, StateComesBackFromStorageOnlyIfItWasToPersist) {
    enroll_all();
    act(reserve, alice, key_a, {}, ReservationType::write_exclusive_registrants_only);
    Reservations other;
    ASSERT_TRUE(other.restore(reservations.stored()));
    EXPECT_TRUE(other.empty()) << "nobody asked for it to persist";
    reservations.perform(register_and_ignore_existing_key, {},
                         {.service_action_key = key_a, .persist_through_power_loss = true}, alice,
                         notices);
    auto octets = reservations.stored();
    ASSERT_TRUE(other.restore(octets));
    EXPECT_EQ(other.registrations(), reservations.registrations());
    EXPECT_TRUE(other.holds(alice));
    EXPECT_EQ(other.type(), ReservationType::write_exclusive_registrants_only);
    EXPECT_EQ(other.generation(), 0u) << "it counts from power on, whatever persists";
    for (std::size_t i = 0; i < octets.size(); ++i) {
        auto broken = octets;
        broken[i] ^= std::byte{0x10};
        EXPECT_FALSE(other.restore(broken)) << i;
    }
    EXPECT_FALSE(other.restore(ConstBuffer(octets).first(octets.size() - 1)));
}

TEST_F(Persistent, RegistrationsAreBounded) {
    for (std::size_t i = 0; i < registrations_max; ++i)
        ASSERT_EQ(act(register_key, {.initiator = "iqn." + std::to_string(i)}, {}, key_a),
                  ReserveOutcome::done);
    EXPECT_EQ(act(register_key, alice, {}, key_a), ReserveOutcome::no_room);
}

}  // namespace
}  // namespace weft::scsi
