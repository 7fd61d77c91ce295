// SPDX-License-Identifier: Apache-2.0
// Two machines of a simulated world with iSER between them: datamovers on both sides, or a queue
// pair in the test's own hands on one.
#pragma once

#include <cstring>

#include "iscsi/iser_initiator.hpp"
#include "iscsi/iser_initiator_mover.hpp"
#include "iscsi/iser_target.hpp"
#include "node/first_octets.hpp"
#include "sim/world.hpp"
#include "support/iser_ends.hpp"
#include "support/rdma_fixture.hpp"

namespace weft::test {

inline std::vector<std::byte> numbered(std::size_t size, unsigned from) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i)
        bytes[i] = static_cast<std::byte>(from + i * 7 + i / 251);
    return bytes;
}

class IserPair {
public:
    explicit IserPair(std::uint64_t seed, iscsi::IserTarget::Options options = {},
                      unsigned kept_lent_percent = 20)
        : world(seed) {
        world.network().set_options({.kept_lent_percent = kept_lent_percent});
        iser_target = std::move(*iscsi::IserTarget::make(
            world.host("elm"), options, [this](std::unique_ptr<verbs::ConnectionRequest> request) {
                auto made = iser_target->accept(std::move(request), target);
                ASSERT_TRUE(made);
                target.mover = std::move(*made);
                target.mover->begin_full_feature(terms);
            }));
        listener = std::move(*world.host("elm").listen(elm, [this](std::unique_ptr<Stream> stream) {
            first.add(std::move(stream));
        }));
    }
    void connect() {
        auto made = iser_initiator.connect(elm, initiator);
        ASSERT_TRUE(made);
        initiator.mover = std::move(*made);
        initiator.mover->begin_full_feature(terms);
        run_until([this] { return initiator.is_open; });
        ASSERT_TRUE(initiator.is_open);
    }
    void run() { ASSERT_TRUE(world.run_until_quiet(plenty)); }
    void run_until(const std::function<bool()>& done) {
        for (std::uint64_t i = 0; i < plenty && !done() && world.step(); ++i) {
        }
    }
    std::uint64_t completions() {
        return static_cast<iscsi::IserInitiatorMover&>(*initiator.mover).completions();
    }

    static constexpr std::uint64_t plenty = 20'000'000;  ///< of events
    const Address elm = Address::tcp("elm", 3260);
    sim::World world;
    iscsi::ConnectionTerms terms{.tasks_max = 64};
    MemoryTarget target{1u << 20};
    MemoryInitiator initiator;
    std::unique_ptr<iscsi::IserTarget> iser_target;
    iscsi::IserInitiator iser_initiator{world.host("oak"), {.tasks_max = 64}};
    node::FirstOctets first{
        world.host("elm"),
        {},
        [this](std::unique_ptr<Stream> stream, node::Spoken spoken, ConstBuffer read_already) {
            EXPECT_EQ(spoken, node::Spoken::mpa);
            EXPECT_TRUE(iser_target->respond(std::move(stream), read_already));
        }};
    std::unique_ptr<Listener> listener;

    ~IserPair() {
        // The datamovers before what made them.
        initiator.mover.reset();
        target.mover.reset();
    }
};

}  // namespace weft::test
