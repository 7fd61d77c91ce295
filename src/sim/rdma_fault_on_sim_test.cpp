// SPDX-License-Identifier: Apache-2.0
// What a peer may not do: each attempt ends its own connection, and nothing else is touched.
#include "support/rdma_fixture.hpp"

namespace weft::sim {
namespace {

using test::RdmaSide;
using test::Told;
using verbs::AsyncEvent;
using verbs::Operation;
using verbs::QueuePairState;
using verbs::RemoteMemory;

struct Attempt {
    const char* name;
    Operation operation;
    /// What the intruder names, of the memory of its own peer or of the bystander's.
    std::function<RemoteMemory(RdmaSide& own, RdmaSide& bystander)> target;
    Rights rights = test::every_right;  ///< of its own peer's memory
};

void PrintTo(const Attempt& attempt, std::ostream* out) {
    *out << attempt.name;
}

SteeringTag other_key(SteeringTag tag) {
    return SteeringTag{static_cast<std::uint32_t>(tag) ^ 1};
}
RemoteMemory own(RdmaSide& own, RdmaSide&) {
    return own.region->remote();
}
RemoteMemory behind_the_end(RdmaSide& own, RdmaSide&) {
    return own.region->remote(RdmaSide::memory_size - 7);
}
RemoteMemory around_the_end(RdmaSide& own, RdmaSide&) {
    return {~0ull - 3, own.region->tag()};
}
RemoteMemory of_another_key(RdmaSide& own, RdmaSide&) {
    return {0, other_key(own.region->tag())};
}
RemoteMemory of_another_domain(RdmaSide&, RdmaSide& bystander) {
    return bystander.region->remote();
}
RemoteMemory of_nobody(RdmaSide&, RdmaSide&) {
    return {0, SteeringTag{0x7fffff00}};
}

/// Both sides know what the Terminate said: whose work it was, though that may have ended long ago.
void expect_quoted(RdmaSide& intruder, RdmaSide& victim, Operation operation,
                   const RemoteMemory& target) {
    using verbs::Termination;
    const auto &heard = intruder.queue_pair->termination(),
               &said = victim.queue_pair->termination();
    ASSERT_TRUE(heard && said);
    EXPECT_EQ(heard->from, Termination::From::peer);
    EXPECT_EQ(said->from, Termination::From::us);
    for (const auto* each : {&*heard, &*said}) {
        EXPECT_TRUE(each->is_protection());
        const bool is_write = operation == Operation::write, is_read = operation == Operation::read;
        EXPECT_EQ(each->about, is_write  ? Termination::About::write
                               : is_read ? Termination::About::read
                                         : Termination::About::other);
        if (!is_write && !is_read) continue;
        EXPECT_EQ(each->target.tag, target.tag);
        EXPECT_EQ(each->target.address, target.address);
        EXPECT_EQ(each->size, is_read ? 8u : 0u);
    }
}

class RdmaFault : public test::RdmaTest, public testing::WithParamInterface<Attempt> {};

TEST_P(RdmaFault, EndsItsOwnConnectionAndNothingElse) {
    RdmaSide intruder(*here), victim(*there), friendly(*here), bystander(*there);
    auto& attempt = GetParam();
    victim.region = std::move(
        *victim.domain->register_memory(victim.memory, attempt.rights, Addressing::from_zero));
    std::ranges::fill(intruder.memory, std::byte{0xee});
    join(friendly, bystander);
    join(intruder, victim);
    ASSERT_TRUE(victim.receive(1));
    auto target = attempt.target(victim, bystander);
    ASSERT_TRUE(intruder.act(1, attempt.operation, target));
    ASSERT_TRUE(intruder.act(2, Operation::read, victim.region->remote(64)));
    run();

    EXPECT_EQ(intruder.state(), QueuePairState::failed);
    EXPECT_EQ(victim.state(), QueuePairState::failed);
    EXPECT_EQ(intruder.record.told, (Told{"established", "disconnected"}));
    EXPECT_EQ(victim.record.told, (Told{"established", "disconnected"}));
    EXPECT_EQ(victim.ends(), "1:flushed");
    EXPECT_EQ(count(events_there, AsyncEvent::Kind::access_violation), 1u);
    EXPECT_EQ(events_there.size(), 1u);
    bool awaits = attempt.operation != Operation::write;
    EXPECT_EQ(intruder.ends(), awaits ? "1:remote_access 2:flushed" : "1:success 2:remote_access")
        << "a write has ended when TCP has it";
    expect_quoted(intruder, victim, attempt.operation, target);
    EXPECT_FALSE(friendly.queue_pair->termination());
    for (auto byte : victim.memory) ASSERT_EQ(byte, std::byte{});
    for (auto byte : bystander.memory) ASSERT_EQ(byte, std::byte{});
    for (auto byte : intruder.memory) ASSERT_EQ(byte, std::byte{0xee});

    ASSERT_TRUE(bystander.receive(1));
    ASSERT_TRUE(friendly.act(1, Operation::write, bystander.region->remote()));
    ASSERT_TRUE(friendly.send(2));
    run();
    EXPECT_EQ(friendly.ends(), "1:success 2:success");
    EXPECT_EQ(bystander.ends(), "1:success");
    EXPECT_EQ(bystander.state(), QueuePairState::running);
}

INSTANTIATE_TEST_SUITE_P(
    Attempts, RdmaFault,
    testing::Values(Attempt{"write_without_right", Operation::write, own,
                            Rights::local_write | Rights::remote_read},
                    Attempt{"read_without_right", Operation::read, own,
                            Rights::local_write | Rights::remote_write},
                    Attempt{"atomic_without_right", Operation::fetch_and_add, own,
                            Rights::local_write | Rights::remote_write | Rights::remote_read},
                    Attempt{"write_behind_the_end", Operation::write, behind_the_end},
                    Attempt{"read_behind_the_end", Operation::read, behind_the_end},
                    Attempt{"atomic_behind_the_end", Operation::compare_and_swap, behind_the_end},
                    Attempt{"write_around_the_end", Operation::write, around_the_end},
                    Attempt{"read_around_the_end", Operation::read, around_the_end},
                    Attempt{"write_of_another_key", Operation::write, of_another_key},
                    Attempt{"read_of_another_key", Operation::read, of_another_key},
                    Attempt{"atomic_of_another_key", Operation::fetch_and_add, of_another_key},
                    Attempt{"write_of_another_domain", Operation::write, of_another_domain},
                    Attempt{"read_of_another_domain", Operation::read, of_another_domain},
                    Attempt{"atomic_of_another_domain", Operation::compare_and_swap,
                            of_another_domain},
                    Attempt{"write_of_nobody", Operation::write, of_nobody},
                    Attempt{"read_of_nobody", Operation::read, of_nobody}),
    [](auto& each) { return each.param.name; });

}  // namespace
}  // namespace weft::sim
