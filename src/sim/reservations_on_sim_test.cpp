// SPDX-License-Identifier: Apache-2.0
// Persistent reservations that outlive their target: the file they are kept in, on a machine whose
// power fails, and the whole way from an initiator's command to the next target of that name.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/bytes.hpp"
#include "block/heap_memory.hpp"
#include "block/memory_disk.hpp"
#include "node/iscsi_initiator.hpp"
#include "node/iscsi_server.hpp"
#include "node/reservation_file.hpp"
#include "scsi/reservations.hpp"
#include "sim/world.hpp"
#include "support/seeds.hpp"
#include "wire/scsi.hpp"

namespace weft::sim {
namespace {

using node::ReservationFile;

constexpr std::uint64_t plenty = 1'000'000;  // events
constexpr const char* target_name = "iqn.2026-11.io.weft:disk";

/// The reservations of a unit at which one initiator has registered with this key.
std::vector<std::byte> registered(std::uint64_t key) {
    scsi::Reservations reservations;
    scsi::Reservations::Notices notices;
    reservations.perform(
        wire::ReserveOutAction::register_key, {},
        {.service_action_key = wire::ReservationKey{key}, .persist_through_power_loss = true},
        {.initiator = "iqn.2026-11.io.weft:oak"}, notices);
    return reservations.stored();
}

std::uint64_t key_of(ConstBuffer stored) {
    scsi::Reservations reservations;
    EXPECT_TRUE(reservations.restore(stored));
    return static_cast<std::uint64_t>(reservations.registrations().at(0).key);
}

TEST(ReservationFile, IsNamedAfterItsTargetAndLeadsNowhereElse) {
    EXPECT_EQ(ReservationFile::path_for("state", target_name),
              "state/iqn.2026-11.io.weft:disk.reservations");
    EXPECT_EQ(ReservationFile::path_for("state", "iqn.x/../y\xc3\xa4"),
              "state/iqn.x%2F..%2Fy%C3%A4.reservations");
}

TEST(ReservationFile, HasWhatWasSavedOrWasBeingSavedWhenThePowerFailed) {
    int new_ones = 0, old_ones = 0;
    test::for_each_seed(200, [&](std::uint64_t seed) {
        World world(seed);
        auto& elm = world.host("elm");
        std::uint64_t asked = 0, done = 0;
        {
            auto file = std::move(*ReservationFile::open(elm, "kept"));
            EXPECT_EQ(file->load("one").error().code, Code::not_found);
            file->save("two", registered(4711), [](Result<void>) {});
            for (int i = 0; i < 10; ++i) {
                ++asked;
                file->save("one", registered(asked), [&done, asked](Result<void> how) {
                    EXPECT_TRUE(how);
                    done = asked;
                });
                world.run_for(std::chrono::microseconds(world.chance().below(20'000)));
            }
            elm.power_cut();
        }
        elm.power_on();
        auto file = ReservationFile::open(elm, "kept");
        ASSERT_TRUE(file) << "never in pieces";
        auto kept = (*file)->load("one");
        const std::uint64_t key = kept ? key_of(*kept) : 0;
        EXPECT_GE(key, done);
        EXPECT_LE(key, std::min(done + 1, asked));
        (key == done ? old_ones : new_ones) += 1;
        if (kept) {
            EXPECT_EQ(key_of(*(*file)->load("two")), 4711u);
        }
        EXPECT_TRUE(world.run_until_quiet(plenty));
    });
    if (!test::runs_all_seeds()) return;
    EXPECT_GT(new_ones, 10);
    EXPECT_GT(old_ones, 10);
}

TEST(ReservationFile, IsRefusedWhereverItIsDamaged) {
    World world(1);
    {
        auto file = std::move(*ReservationFile::open(world, "kept"));
        file->save("one", registered(1), [](Result<void>) {});
        EXPECT_TRUE(world.run_until_quiet(plenty));
    }
    const auto good = *world.read_file("kept");
    auto opens = [&](ConstBuffer contents) {
        world.replace_file("kept", contents, [](Result<void>) {});
        EXPECT_TRUE(world.run_until_quiet(plenty));
        return ReservationFile::open(world, "kept").has_value();
    };
    for (std::size_t i = 0; i < good.size(); ++i) {
        auto damaged = good;
        damaged[i] ^= std::byte{4};
        EXPECT_FALSE(opens(damaged)) << i;
        EXPECT_FALSE(opens(ConstBuffer(good).first(i))) << i;
    }
    EXPECT_TRUE(opens(good));
}

/// Any command, and how it ended.
class AnyCommand final : public iscsi::InitiatorCommand {
public:
    template <class Block>
    AnyCommand(const Block& block, std::vector<std::byte> out, std::size_t in)
        : octets_(std::move(out)) {
        prepare(wire::LogicalUnit::first, encoded(block), iscsi::Effect::once);
        const bool writes = !octets_.empty();
        if (!writes) octets_.resize(in);
        piece_ = octets_;
        const auto size = static_cast<std::uint32_t>(octets_.size());
        if (size > 0) writes ? set_data_out({&piece_, 1}, size) : set_data_in({&piece_, 1}, size);
    }
    std::optional<wire::ScsiStatus> status;
    ConstBuffer octets() const { return octets_; }
    void ended(const iscsi::CommandEnd& end) override {
        EXPECT_TRUE(end.delivered);
        status = end.status;
    }

private:
    std::vector<std::byte> octets_;
    Buffer piece_;
};

class KeptReservations : public testing::Test {
protected:
    KeptReservations() { EXPECT_TRUE(serve("state")); }
    ~KeptReservations() override { stop(); }

    Result<void> serve(const std::string& folder) {
        node::IscsiServer::Options options;
        options.state_folder = folder;
        server = std::make_unique<node::IscsiServer>(world.host("elm"), options);
        if (auto added = server->add_target(target_name, {}); !added) return added;
        EXPECT_TRUE(server->add_unit(target_name, 0, disk, {}));
        EXPECT_TRUE(server->listen(Address::tcp("elm", 3260)));
        return {};
    }
    void stop() {
        if (!server) return;
        server->stop();
        EXPECT_TRUE(world.run_until_quiet(plenty));
        EXPECT_TRUE(server->quiet());
        server.reset();
    }
    /// Logs in as somebody and runs commands.
    void as(const std::string& machine, std::vector<AnyCommand*> commands) {
        node::IscsiTcpTransport transport(world.host(machine));
        node::IscsiInitiatorOptions options;
        options.url.address = Address::tcp("elm", 3260);
        options.url.target_name = target_name;
        options.initiator_name = "iqn.2026-11.io.weft:" + machine;
        bool up = false;
        node::IscsiInitiator initiator(world.host(machine), transport, options,
                                       {.up = [&] { up = true; }, .gave_up = [](Error) {}});
        initiator.begin();
        while (!up && world.step()) continue;
        // The first command of a session hears that it is one.
        for (int i = 0; i < 4; ++i) {
            AnyCommand ready(wire::TestUnitReady{}, {}, 0);
            run(initiator.session(), ready);
        }
        for (auto* command : commands) run(initiator.session(), *command);
        initiator.leave();
        while (!initiator.over() && world.step()) continue;
    }
    void run(iscsi::InitiatorSession& session, AnyCommand& command) {
        session.submit(command);
        while (!command.status && world.step()) continue;
        ASSERT_TRUE(command.status);
    }
    static AnyCommand change(wire::ReserveOutAction action, wire::ReserveOutParameters parameters,
                             wire::ReservationType type = {}) {
        const auto list = encoded(parameters);
        return {wire::PersistentReserveOut{.action = action, .type = type, .parameter_length = 24},
                {list.begin(), list.end()},
                0};
    }
    static AnyCommand enroll(std::uint64_t key, bool persist) {
        return change(wire::ReserveOutAction::register_and_ignore_existing_key,
                      {.service_action_key = wire::ReservationKey{key},
                       .persist_through_power_loss = persist});
    }

    World world{1};
    block::MemoryDisk disk{std::make_unique<block::HeapMemory>(64 * 1024), 64 * 1024};
    std::unique_ptr<node::IscsiServer> server;
};

TEST_F(KeptReservations, AreThereAgainWhenTheTargetIs) {
    auto registers = enroll(0x1234, true);
    auto reserves = change(wire::ReserveOutAction::reserve, {.key = wire::ReservationKey{0x1234}},
                           wire::ReservationType::write_exclusive);
    as("oak", {&registers, &reserves});
    EXPECT_EQ(registers.status, wire::ScsiStatus::good);
    EXPECT_EQ(reserves.status, wire::ScsiStatus::good);
    EXPECT_TRUE(world.run_until_quiet(plenty));
    // The power fails; the machine comes back and serves the same.
    world.host("elm").power_cut();
    world.host("elm").power_on();
    stop();
    ASSERT_TRUE(serve("state"));
    AnyCommand keys(wire::PersistentReserveIn{.action = wire::ReserveInAction::read_keys,
                                              .allocation_length = 16},
                    {}, 16);
    AnyCommand write(wire::Write10{.block_address = 0, .block_count = 1},
                     std::vector<std::byte>(512), 0);
    as("ash", {&keys, &write});
    EXPECT_EQ(load_big_endian<4>(keys.octets().data()), 0u) << "generations count from power on";
    EXPECT_EQ(load_big_endian<8>(keys.octets().data() + 8), 0x1234u);
    EXPECT_EQ(write.status, wire::ScsiStatus::reservation_conflict);
}

TEST_F(KeptReservations, AreForgottenIfNobodyAskedForThemToPersist) {
    auto persistent = enroll(0x1234, true), fleeting = enroll(0x1234, false);
    as("oak", {&persistent, &fleeting});
    stop();
    ASSERT_TRUE(serve("state"));
    AnyCommand keys(wire::PersistentReserveIn{.action = wire::ReserveInAction::read_keys,
                                              .allocation_length = 8},
                    {}, 8);
    as("ash", {&keys});
    EXPECT_EQ(load_big_endian<4>(keys.octets().data() + 4), 0u) << "nobody has a key";
}

TEST_F(KeptReservations, AreNotPromisedWhereNothingIsKept) {
    stop();
    ASSERT_TRUE(serve(""));
    auto persistent = enroll(0x1234, true), fleeting = enroll(0x1234, false);
    as("oak", {&persistent, &fleeting});
    EXPECT_EQ(persistent.status, wire::ScsiStatus::check_condition);
    EXPECT_EQ(fleeting.status, wire::ScsiStatus::good);
}

TEST_F(KeptReservations, StopATargetWhenTheyCannotBeRead) {
    auto registers = enroll(0x1234, true);
    as("oak", {&registers});
    stop();
    const auto path = ReservationFile::path_for("state", target_name);
    auto octets = *world.host("elm").read_file(path);
    octets.pop_back();
    world.host("elm").replace_file(path, octets, [](Result<void>) {});
    EXPECT_TRUE(world.run_until_quiet(plenty));
    auto served = serve("state");
    ASSERT_FALSE(served);
    EXPECT_EQ(served.error().code, Code::io_failed);
}

}  // namespace
}  // namespace weft::sim
