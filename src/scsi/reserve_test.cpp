// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "scsi/reservation_store.hpp"
#include "scsi/transport_identifier.hpp"
#include "support/scsi_bench.hpp"

namespace weft::scsi {
namespace {

using namespace wire;
using test::BenchTask;
using test::filled;
using test::OctetVector;

constexpr auto key_1 = ReservationKey{0x1111};
constexpr auto key_2 = ReservationKey{0x2222};

/// Keeps what it is given when the test lets it.
struct HeldStore final : ReservationStore {
    Result<std::vector<std::byte>> load(std::string_view unit) override {
        auto found = kept.find(std::string(unit));
        if (found == kept.end()) return Error{.code = Code::not_found};
        return found->second;
    }
    void save(std::string_view unit, ConstBuffer state,
              std::function<void(Result<void>)> done) override {
        kept[std::string(unit)] = {state.begin(), state.end()};
        if (holding)
            waiting = std::move(done);
        else if (failing)
            done(Error{.code = Code::io_failed});
        else
            done({});
    }
    std::map<std::string, std::vector<std::byte>> kept;
    std::function<void(Result<void>)> waiting;
    bool failing = false;
    bool holding = false;
};

struct Reserving : test::ScsiBench {
    std::unique_ptr<BenchTask> act(Nexus& nexus, ReserveOutAction action, ReservationKey key,
                                   ReservationKey other = {}, ReservationType type = {},
                                   bool persist = false) {
        auto list = encoded(ReserveOutParameters{
            .key = key, .service_action_key = other, .persist_through_power_loss = persist});
        return run(nexus,
                   PersistentReserveOut{.action = action, .type = type, .parameter_length = 24},
                   OctetVector(list.begin(), list.end()));
    }
    std::unique_ptr<BenchTask> enroll(Nexus& nexus, ReservationKey key) {
        return act(nexus, ReserveOutAction::register_and_ignore_existing_key, {}, key);
    }
    std::unique_ptr<BenchTask> ask(ReserveInAction action, std::uint16_t length = 16384) {
        return run(PersistentReserveIn{.action = action, .allocation_length = length});
    }
    /// Begins to register a key that is to persist.
    void begin_to_enroll(BenchTask& task, Nexus& nexus, ReservationKey key) {
        auto list = encoded(
            ReserveOutParameters{.service_action_key = key, .persist_through_power_loss = true});
        task.to_send.assign(list.begin(), list.end());
        execute(task, nexus,
                PersistentReserveOut{.action = ReserveOutAction::register_and_ignore_existing_key,
                                     .parameter_length = 24});
    }
    bool can_read(Nexus& nexus) {
        auto task = run(nexus, Read10{.block_count = 1});
        EXPECT_TRUE(task->good() || task->conflict());
        return task->good();
    }
    bool can_write(Nexus& nexus) {
        auto task = run(nexus, Write10{.block_count = 1}, filled(512, 1));
        EXPECT_TRUE(task->good() || task->conflict());
        return task->good();
    }
};

TEST_F(Reserving, OldWayKeepsEverybodyElseOut) {
    set_up();
    EXPECT_TRUE(run(Reserve6{})->good());
    EXPECT_TRUE(run(Reserve10{})->good()) << "again is fine";
    EXPECT_TRUE(run(*second, Reserve6{})->conflict());
    EXPECT_TRUE(run(*second, Release6{})->good()) << "and does nothing";
    auto sense = ModeSense6{.page = ModePageCode::all_pages, .allocation_length = 255};
    EXPECT_TRUE(run(sense)->good());
    EXPECT_TRUE(run(*second, sense)->conflict());
    EXPECT_TRUE(run(*second, TestUnitReady{})->conflict());
    EXPECT_FALSE(can_read(*second));
    EXPECT_TRUE(run(*second, Inquiry{.allocation_length = 36})->good());
    EXPECT_TRUE(run(*second, ReportLuns{.allocation_length = 64})->good());
    EXPECT_TRUE(run(*second, PersistentReserveIn{.allocation_length = 64})->conflict());
    EXPECT_TRUE(enroll(*first, key_1)->conflict());
    EXPECT_TRUE(run(Release10{})->good());
    EXPECT_TRUE(run(*second, Reserve6{})->good());
    EXPECT_EQ(run(Reserve10{.third_party = true})->code(), 0x52400u);
}

TEST_F(Reserving, OldWayEndsWithTheSession) {
    set_up();
    EXPECT_TRUE(run(*second, Reserve6{})->good());
    leave(*second);
    EXPECT_TRUE(run(Reserve6{})->good());
}

TEST_F(Reserving, OldWayDoesNothingForWhoIsRegistered) {
    set_up();
    EXPECT_TRUE(enroll(*first, key_1)->good());
    EXPECT_TRUE(run(Reserve6{})->good());
    EXPECT_TRUE(run(*second, Reserve6{})->conflict());
    EXPECT_TRUE(can_read(*second)) << "nothing was reserved";
}

TEST_F(Reserving, KeysAreReadAsFarAsThereIsRoom) {
    set_up();
    enroll(*first, key_1);
    enroll(*second, key_2);
    auto keys = ask(ReserveInAction::read_keys);
    const auto header = *decode<ReserveInHeader>(keys->data);
    EXPECT_EQ(header.generation, 2u);
    EXPECT_EQ(header.length_after, 16u);
    ASSERT_EQ(keys->data.size(), 24u);
    EXPECT_EQ(load_big_endian<8>(keys->data.data() + 8), 0x1111u);
    auto cut = ask(ReserveInAction::read_keys, 8);
    EXPECT_EQ(cut->data.size(), 8u);
    EXPECT_EQ(decode<ReserveInHeader>(cut->data)->length_after, 16u) << "of the whole list";
}

TEST_F(Reserving, KnowsFourReportsAndNoMore) {
    set_up();
    for (std::uint8_t action = 0; action < 0x20; ++action)
        EXPECT_EQ(ask(ReserveInAction{action})->good(), action < 4) << int{action};
    auto told = ask(ReserveInAction::report_capabilities);
    EXPECT_EQ(told->data.size(), 8u);
    const auto abilities = *decode<ReservationCapabilities>(told->data);
    EXPECT_TRUE(abilities.type_mask_valid && abilities.exclusive_access_all_registrants);
    EXPECT_FALSE(abilities.persist_through_power_loss) << "there is no store";
    for (std::uint8_t action = 8; action < 0x20; ++action)
        EXPECT_EQ(act(*first, ReserveOutAction{action}, {})->code(), 0x52400u);
}

TEST_F(Reserving, FullStatusNamesEverybody) {
    set_up();
    enroll(*first, key_1);
    enroll(*second, key_2);
    act(*second, ReserveOutAction::reserve, key_2, {}, ReservationType::write_exclusive);
    auto told = ask(ReserveInAction::read_full_status);
    ASSERT_TRUE(told->good());
    EXPECT_EQ(decode<ReserveInHeader>(told->data)->length_after, told->data.size() - 8);
    auto rest = ConstBuffer(told->data).subspan(8);
    const auto one = *decode<FullStatusDescriptor>(rest);
    EXPECT_EQ(one.key, key_1);
    EXPECT_FALSE(one.holder);
    EXPECT_EQ(named_by(rest.subspan(24))->initiator, first->name().initiator);
    rest = rest.subspan(24 + one.transport_identifier_length);
    const auto other = *decode<FullStatusDescriptor>(rest);
    EXPECT_EQ(other.key, key_2);
    EXPECT_TRUE(other.holder);
    EXPECT_EQ(other.type, ReservationType::write_exclusive);
}

TEST_F(Reserving, HoldsOffWhatItsTypeHoldsOff) {
    set_up();
    enroll(*first, key_1);
    enroll(*second, key_2);
    EXPECT_TRUE(act(*first, ReserveOutAction::reserve, key_1, {}, ReservationType::write_exclusive)
                    ->good());
    auto told = *decode<ReservationDescriptor>(
        ConstBuffer(ask(ReserveInAction::read_reservation)->data).subspan(8));
    EXPECT_EQ(told.key, key_1);
    EXPECT_EQ(told.type, ReservationType::write_exclusive);
    EXPECT_TRUE(can_read(*second) && can_write(*first));
    EXPECT_FALSE(can_write(*second));
    EXPECT_TRUE(run(*second, TestUnitReady{})->good());
    EXPECT_TRUE(run(*second, ReadCapacity10{})->good());
    EXPECT_TRUE(run(*second, StartStopUnit{.start = true})->conflict());
    EXPECT_TRUE(
        act(*second, ReserveOutAction::reserve, key_2, {}, ReservationType::exclusive_access)
            ->conflict());
    EXPECT_EQ(act(*first, ReserveOutAction::release, key_1, {}, ReservationType::exclusive_access)
                  ->code(),
              0x52604u);
    EXPECT_TRUE(act(*first, ReserveOutAction::release, key_1, {}, ReservationType::write_exclusive)
                    ->good());
    EXPECT_TRUE(can_write(*second));
}

TEST_F(Reserving, TellsOthersAndNotWhoDidIt) {
    set_up();
    enroll(*first, key_1);
    enroll(*second, key_2);
    act(*first, ReserveOutAction::reserve, key_1, {},
        ReservationType::write_exclusive_registrants_only);
    EXPECT_TRUE(act(*first, ReserveOutAction::register_key, key_1)->good());
    EXPECT_TRUE(run(TestUnitReady{})->good());
    EXPECT_EQ(run(*second, TestUnitReady{})->code(), 0x62a04u);
    EXPECT_TRUE(act(*first, ReserveOutAction::register_key, key_2, key_1)->conflict());
}

TEST_F(Reserving, SurvivesTheSessionOfItsHolder) {
    set_up();
    enroll(*second, key_2);
    act(*second, ReserveOutAction::reserve, key_2, {}, ReservationType::write_exclusive);
    leave(*second);
    EXPECT_FALSE(can_write(*first));
    second = &join("iqn.2026-11.io.weft:bob", 2);
    clear_attentions(*second);
    EXPECT_TRUE(can_write(*second));
}

TEST_F(Reserving, PreemptAndAbortEndsTheVictimsTasks) {
    set_up(disk, {});
    enroll(*first, key_1);
    enroll(*second, key_2);
    BenchTask victim;
    victim.accepted_in = 512;
    execute(victim, *second, Read10{.block_count = 1});
    EXPECT_TRUE(act(*first, ReserveOutAction::preempt_and_abort, key_1, key_2,
                    ReservationType::write_exclusive)
                    ->good());
    disk.let_all_go();
    EXPECT_EQ(victim.heard.end, TaskEnd::aborted);
    EXPECT_EQ(run(*second, TestUnitReady{})->code(), 0x62a05u);
}

TEST_F(Reserving, MovesToAnotherPort) {
    set_up();
    enroll(*first, key_1);
    act(*first, ReserveOutAction::reserve, key_1, {}, ReservationType::exclusive_access);
    auto identifier = transport_identifier(second->name());
    auto list = encoded(RegisterAndMoveParameters{
        .key = key_1,
        .service_action_key = key_2,
        .unregister = true,
        .relative_target_port = 1,
        .transport_identifier_length = static_cast<std::uint32_t>(identifier.size())});
    OctetVector parameters(list.begin(), list.end());
    parameters.insert(parameters.end(), identifier.begin(), identifier.end());
    EXPECT_TRUE(
        run(PersistentReserveOut{.action = ReserveOutAction::register_and_move,
                                 .parameter_length = static_cast<std::uint32_t>(parameters.size())},
            parameters)
            ->good());
    EXPECT_TRUE(can_write(*second));
    EXPECT_FALSE(can_read(*first));
}

TEST_F(Reserving, IsOnStableStorageBeforeItIsAnswered) {
    HeldStore store;
    set_up({.seed = "photos", .reservations = &store});
    EXPECT_TRUE(enroll(*first, key_1)->good());
    EXPECT_TRUE(store.kept.empty()) << "nobody wanted it to persist";
    store.holding = true;
    BenchTask task;
    begin_to_enroll(task, *first, key_1);
    EXPECT_FALSE(task.done());
    EXPECT_EQ(store.kept.size(), 1u);
    store.waiting({});
    EXPECT_TRUE(task.good());
    store.holding = false;
    act(*first, ReserveOutAction::reserve, key_1, {}, ReservationType::write_exclusive);
    // The power goes; the same disk comes back elsewhere.
    tear_down();
    set_up({.seed = "photos", .reservations = &store});
    EXPECT_TRUE(can_write(*first));
    EXPECT_FALSE(can_write(*second));
    EXPECT_EQ(
        act(*second, ReserveOutAction::register_and_ignore_existing_key, {}, {}, {}, true)->good(),
        true);
}

TEST_F(Reserving, RefusesMalformedRequests) {
    set_up();
    EXPECT_EQ(run(PersistentReserveOut{.parameter_length = 23}, filled(23, 0))->code(), 0x51a00u);
    EXPECT_EQ(run(PersistentReserveOut{.parameter_length = 24}, filled(10, 0))->code(), 0x51a00u);
    EXPECT_EQ(act(*first, ReserveOutAction::register_and_ignore_existing_key, {}, key_1, {}, true)
                  ->code(),
              0x52600u)
        << "without a store nothing can persist";
    enroll(*first, key_1);
    EXPECT_EQ(act(*first, ReserveOutAction::reserve, key_1, {}, ReservationType{2})->code(),
              0x52400u);
    auto list =
        encoded(ReserveOutParameters{.service_action_key = key_2, .specify_initiator_ports = true});
    EXPECT_EQ(run(PersistentReserveOut{.action = ReserveOutAction::register_and_ignore_existing_key,
                                       .parameter_length = 24},
                  OctetVector(list.begin(), list.end()))
                  ->code(),
              0x52600u);
}

TEST_F(Reserving, ChangesNothingIfItCannotBeKept) {
    HeldStore store;
    set_up({.reservations = &store});
    act(*first, ReserveOutAction::register_and_ignore_existing_key, {}, key_1, {}, true);
    act(*second, ReserveOutAction::register_and_ignore_existing_key, {}, key_2, {}, true);
    act(*first, ReserveOutAction::reserve, key_1, {}, ReservationType::write_exclusive);
    const auto before = ask(ReserveInAction::read_full_status)->data;
    store.failing = true;
    EXPECT_EQ(act(*second, ReserveOutAction::preempt_and_abort, key_2, key_1,
                  ReservationType::exclusive_access)
                  ->code(),
              0x55504u);
    EXPECT_EQ(ask(ReserveInAction::read_full_status)->data, before) << "no attention either";
    EXPECT_TRUE(can_write(*first));
    EXPECT_FALSE(can_write(*second));
}

TEST_F(Reserving, HappensOneAfterTheOtherThoughKeepingThemTakesTime) {
    HeldStore store;
    set_up({.reservations = &store});
    store.holding = true;
    BenchTask one, two, three;
    begin_to_enroll(one, *first, key_1);
    begin_to_enroll(two, *second, key_2);
    begin_to_enroll(three, *second, ReservationKey{3});
    EXPECT_EQ(ask(ReserveInAction::read_keys)->data.size(), 8u) << "none is kept yet";
    target->abort(two);
    EXPECT_EQ(two.heard.end, TaskEnd::aborted);
    auto let_go = [&] { std::exchange(store.waiting, nullptr)({}); };
    let_go();
    EXPECT_TRUE(one.good());
    EXPECT_FALSE(three.done());
    ASSERT_TRUE(store.waiting);
    let_go();
    EXPECT_TRUE(three.good());
    EXPECT_EQ(ask(ReserveInAction::read_keys)->data.size(), 24u);
}

TEST_F(Reserving, ThatIsKeptHappenedThoughItsTaskWasAborted) {
    HeldStore store;
    set_up({.reservations = &store});
    store.holding = true;
    BenchTask task;
    begin_to_enroll(task, *first, key_1);
    target->abort(task);
    EXPECT_FALSE(task.done());
    store.waiting({});
    EXPECT_EQ(task.heard.end, TaskEnd::aborted);
    EXPECT_EQ(ask(ReserveInAction::read_keys)->data.size(), 16u);
}

}  // namespace
}  // namespace weft::scsi
