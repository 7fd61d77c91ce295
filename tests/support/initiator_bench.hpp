// SPDX-License-Identifier: Apache-2.0
// An initiator's session and disk against a model of a target, cut off at any moment.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "iscsi/initiator_disk.hpp"
#include "support/iscsi_unit_model.hpp"
#include "support/test_request.hpp"

namespace weft::iscsi {

using test::TestRequest;
using test::UnitModel;

/// A disk, its session, a target, and time in hand.
class InitiatorBench final : public InitiatorSessionUser {
public:
    explicit InitiatorBench(std::uint32_t seed, std::size_t connections = 1,
                            std::size_t blocks = 64)
        : unit(blocks),
          chance(seed),
          session(options(connections), *this),
          held_disk(std::make_unique<InitiatorDisk>(session, wire::LogicalUnit::first, 1u << 20)),
          disk(*held_disk) {
        policy.admission.wishes.terms.max_connections = 4;
    }
    ~InitiatorBench() {
        if (held_disk) disk.give_up({.code = Code::disconnected});
        while (!session.down()) {
            session.leave();
            cut();
            step();
        }
        if (held_disk) disk.give_up({.code = Code::disconnected});
    }
    static SessionOptions options(std::size_t connections) {
        SessionOptions options;
        options.initiator_name = "iqn.host";
        options.target_name = "iqn.disk";
        options.connections = connections;
        options.wishes.terms.max_connections = 4;
        options.command_patience = std::chrono::seconds(20);
        return options;
    }

    void open() {
        session.begin();
        run();
        ASSERT_TRUE(opened && *opened);
    }
    bool step() {
        const std::size_t first = chance() % movers.size();
        for (std::size_t i = 0; i < movers.size(); ++i) {
            auto& mover = movers[(first + i) % movers.size()];
            if (mover && mover->step(chance)) return true;
        }
        return false;
    }
    void run() {
        while (step()) continue;
        // Never from inside.
        for (auto index : std::exchange(refused, {}))
            session.attach_failed(index, {.code = Code::disconnected});
        while (step()) continue;
    }
    void cut() {
        for (auto& mover : movers)
            if (mover && !mover->lost()) mover->cut();
    }
    void pass(Duration span) {
        now = now + span;
        session.tick(now);
        run();
    }

    void connection_wanted(std::size_t index) override {
        if (index >= refuse_from) return refused.push_back(index);
        movers[index] =
            std::make_unique<test::ModelMover>(unit, policy, count, session.connection(index));
        session.attach(index, *movers[index]);
    }
    void connection_unwanted(std::size_t index) override {
        graveyard.push_back(std::move(movers[index]));
    }
    void fill_with_chance(Buffer octets) override { std::ranges::fill(octets, std::byte{1}); }
    Instant time() const override { return now; }
    void session_up() override {
        ++ups;
        if (held_disk) disk.session_up([this](Result<void> outcome) { opened = outcome; });
    }
    void session_down(Error why) override {
        ++downs;
        why_down = why;
    }
    void deadline_changed() override {}

    UnitModel unit;
    test::OpenPolicy policy;
    test::CommandCount count;
    std::mt19937 chance;
    std::array<std::unique_ptr<test::ModelMover>, initiator_connections_max> movers;
    std::vector<std::unique_ptr<test::ModelMover>> graveyard;
    std::optional<Result<void>> opened;
    std::size_t refuse_from = initiator_connections_max;  ///< connections that are not to be had
    std::vector<std::size_t> refused;
    int ups = 0, downs = 0;
    Error why_down{.code = Code::malformed};
    Instant now{};
    InitiatorSession session;
    std::unique_ptr<InitiatorDisk> held_disk;
    InitiatorDisk& disk;
};

inline TestRequest& filled(TestRequest& request, unsigned value) {
    std::ranges::fill(request.octets, static_cast<std::byte>(value));
    return request;
}

}  // namespace weft::iscsi
