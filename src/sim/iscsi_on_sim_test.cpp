// SPDX-License-Identifier: Apache-2.0
// The production iSCSI target and initiator in a simulated world: links are reset, fall silent and
// clog while several writers are at work, over one connection or over several of one session.
//
// The initiator logs in again by itself, so every request ends well; a read gives what was last
// written there.
#include <gtest/gtest.h>

#include <chrono>
#include <deque>

#include "sim/durability_checker.hpp"
#include "sim/faults.hpp"
#include "support/remote_disk.hpp"
#include "support/seeds.hpp"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;
using test::TestRequest;

/// Writes and reads back, over and over, in a part of the disk of its own.
class Writer {
public:
    static constexpr std::uint64_t part = 32 * 1024;

    Writer(RemoteDisk& remote, std::uint64_t number) : remote_(remote), start_(number * part) {
        write();
    }
    void stop() { stopping_ = true; }
    bool idle() const { return !under_way_; }
    int rounds = 0;

private:
    void write() {
        auto& chance = remote_.world.chance();
        offset_ = start_ + chance.below(part / sector_bytes - 16) * sector_bytes;
        auto length = chance.between(1, 16) * sector_bytes;
        request_.emplace(BlockOperation::write, offset_, length);
        for (std::byte& octet : request_->octets)
            octet = static_cast<std::byte>(remote_.world.random());
        checker_.write_asked(offset_, request_->octets);
        submit([this] {
            checker_.write_answered(offset_, request_->length,
                                    DurabilityChecker::Lasting::until_crash, *request_->outcome);
            read();
        });
    }
    void read() {
        const auto length = request_->length;
        request_.emplace(BlockOperation::read, offset_, length);
        checker_.read_asked(offset_, length);
        submit([this] {
            auto wrong = checker_.read_answered(offset_, request_->octets, *request_->outcome);
            EXPECT_FALSE(wrong) << *wrong;
            ++rounds;
            under_way_ = !stopping_;
            if (under_way_) write();
        });
    }
    void submit(std::function<void()> then) {
        request_->then = [this, then] {
            EXPECT_TRUE(request_->succeeded()) << "a request failed";
            // Not from inside: the request is about to be made anew.
            remote_.world.host("oak").defer(then);
        };
        remote_.client->device().submit(*request_);
    }

    RemoteDisk& remote_;
    std::uint64_t start_, offset_ = 0;
    std::optional<TestRequest> request_;
    DurabilityChecker checker_;
    bool under_way_ = true, stopping_ = false;
};

TEST(IscsiInASimulatedWorld, ReadsBackWhatItWroteWhateverHappensToItsLinks) {
    std::uint64_t logins = 0, sent_again = 0;
    int rounds = 0;
    test::for_each_seed(20, [&](std::uint64_t seed) {
        const FaultPlan plan{.disk_errors = 0, .disk_hang = 0, .longest_outage = 300ms};
        RemoteDisk remote(seed, {.connections = 1 + seed % 3,
                                 .digests = seed % 2 == 0,
                                 .links = {.give_up_after = 500ms}});
        Faults faults(remote.world, plan);
        std::deque<Writer> writers;
        for (std::uint64_t number = 0; number < 8; ++number) writers.emplace_back(remote, number);
        faults.start(5s);
        remote.world.run_for(5s);
        for (auto& writer : writers) writer.stop();
        const Instant last_moment = remote.world.now() + 100s;
        auto all_idle = [&] { return std::ranges::all_of(writers, &Writer::idle); };
        while (!all_idle() && remote.world.now() < last_moment && remote.world.step()) continue;
        EXPECT_TRUE(all_idle()) << "a request never completed";
        remote.world.run_for(1ms);
        for (auto& writer : writers) rounds += writer.rounds;
        logins += remote.client->session().logins();
        sent_again += remote.client->session().sent_again();
    });
    if (!test::runs_all_seeds()) return;
    EXPECT_GT(rounds, 2000);
    EXPECT_GT(logins, 100u) << "the faults did reach it";
    EXPECT_GT(sent_again, 100u);
}

TEST(IscsiInASimulatedWorld, HasDamagedBytesSentAgain) {
    std::uint64_t logins = 0, damages = 0;
    test::for_each_seed(20, [&](std::uint64_t seed) {
        RemoteDisk remote(seed, {.connections = 1 + seed % 2,
                                 .digests = true,
                                 .links = {.cutting = Cutting::whole, .give_up_after = 500ms}});
        EXPECT_EQ(remote.client->session().terms().error_recovery_level, 1u);
        std::deque<Writer> writers;
        for (std::uint64_t number = 0; number < 8; ++number) writers.emplace_back(remote, number);
        auto& chance = remote.world.chance();
        for (int i = 0; i < 100; ++i) {
            remote.world.run_for(Duration(chance.below(20'000'000)));
            const auto links = remote.world.network().links();
            // A login has no digests: it is left alone.
            if (remote.client->session().connection_count() != 1 + seed % 2) continue;
            remote.world.network().corrupt(links[chance.below(links.size())],
                                           chance.below(2) == 0 ? Side::connector : Side::acceptor);
            ++damages;
        }
        for (auto& writer : writers) writer.stop();
        const Instant last_moment = remote.world.now() + 100s;
        auto all_idle = [&] { return std::ranges::all_of(writers, &Writer::idle); };
        while (!all_idle() && remote.world.now() < last_moment && remote.world.step()) continue;
        EXPECT_TRUE(all_idle()) << "a request never completed";
        remote.world.run_for(1ms);
        logins += remote.client->session().logins() - 1;
    });
    if (!test::runs_all_seeds()) return;
    EXPECT_GT(damages, 200u);
    EXPECT_LT(logins, damages * 3 / 4) << "damage to data costs no session";
}

}  // namespace
}  // namespace weft::sim
