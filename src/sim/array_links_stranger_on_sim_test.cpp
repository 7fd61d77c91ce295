// SPDX-License-Identifier: Apache-2.0
// Strangers at the door of an array's party: what they say is well formed and their tags are right,
// and still they reach nothing.
#include "node/array_proof.hpp"
#include "support/array_party.hpp"
#include "support/rdma_fixture.hpp"

namespace weft::sim {
namespace {

using node::ArraySecret;
using node::Prover;
using test::ArrayParty;
using test::box_end;
using test::RdmaSide;
using test::secret_of;
using test::Told;
using verbs::Operation;

class ArrayStranger : public testing::Test {
protected:
    static constexpr std::uint64_t plenty = 10'000'000;

    void SetUp() override { ASSERT_TRUE(elm.links->know(oak, secret_of(9), std::nullopt)); }
    void run() { ASSERT_TRUE(world.run_until_quiet(plenty)); }
    wire::ArrayGreeting greeting(std::uint8_t fresh) const {
        return {.cluster = test::the_cluster,
                .epoch = test::the_epoch,
                .from = oak,
                .to = elm.end,
                .fresh = {fresh}};
    }
    template <class Header>
    static std::vector<std::byte> octets_of(const Header& header) {
        std::vector<std::byte> octets(wire_size<Header>());
        encode(header, octets);
        return octets;
    }
    /// Connects with that greeting, and runs only as long as it takes to be answered.
    wire::ArrayWelcome greet(RdmaSide& side, const wire::ArrayGreeting& with) {
        auto octets = octets_of(with);
        EXPECT_TRUE(side.receive(77, 8));
        EXPECT_TRUE(side.connect(elm.where(), {.private_data = octets}));
        for (std::uint64_t i = 0; i < plenty && side.record.told.empty() && world.step(); ++i) {
        }
        auto welcome = side.connection && side.record.told == Told{"established"}
                           ? decode<wire::ArrayWelcome>(side.connection->peer_private_data())
                           : Error{.code = Code::access_denied};
        EXPECT_TRUE(welcome);
        return welcome ? *welcome : wire::ArrayWelcome{};
    }
    void send_proof(RdmaSide& side, const Octets<32>& proof) {
        auto octets = octets_of(wire::ArrayProof{proof});
        std::ranges::copy(octets, side.memory.begin());
        ASSERT_TRUE(side.send(1, static_cast<std::uint32_t>(octets.size())));
    }
    /// Tries to read and to write elm's memory; says whether either worked.
    bool reaches(RdmaSide& side) {
        std::ranges::fill(std::span(side.memory).first(64), std::byte{0xee});
        std::ranges::fill(elm.memory, std::byte{0x42});
        (void)side.act(2, Operation::write, elm.region->remote(), 64);
        (void)side.act(3, Operation::read, elm.region->remote(4096), 64);
        run();
        return side.memory[0] == std::byte{0x42} || elm.memory[0] == std::byte{0xee};
    }

    World world{3};
    std::unique_ptr<verbs::Device> device = verbs::make_device(world.host("stranger"), {});
    const wire::ArrayConnectionEnd oak = box_end(1);
    ArrayParty elm{world, "elm", box_end(2), {}};
};

TEST_F(ArrayStranger, ReachesMemoryIfItKnowsTheSecret) {
    RdmaSide side(*device);
    auto said = greeting(1);
    auto welcome = greet(side, said);
    EXPECT_TRUE(node::is_same_proof(
        welcome.proof, node::array_proof(secret_of(9), said, welcome, Prover::accepting)));
    send_proof(side, node::array_proof(secret_of(9), said, welcome, Prover::connecting));
    run();
    EXPECT_EQ(elm.links->links(), 1u);
    EXPECT_TRUE(reaches(side)) << "or the tests below prove nothing";
}

TEST_F(ArrayStranger, ReachesNothingBeforeItsProof) {
    RdmaSide side(*device);
    greet(side, greeting(1));
    EXPECT_FALSE(reaches(side));
    EXPECT_EQ(elm.links->unproved(), 0u) << "it was cut for trying";
}

TEST_F(ArrayStranger, ReachesNothingWithAWrongProofNorRightBehindIt) {
    for (bool waits : {true, false}) {
        RdmaSide side(*device);
        auto said = greeting(1);
        auto welcome = greet(side, said);
        send_proof(side, node::array_proof(secret_of(8), said, welcome, Prover::connecting));
        if (waits) run();
        EXPECT_EQ(elm.links->links(), 0u);
        EXPECT_FALSE(reaches(side));
    }
}

TEST_F(ArrayStranger, CannotSendElmsOwnProofBack) {
    RdmaSide side(*device);
    auto welcome = greet(side, greeting(1));
    send_proof(side, welcome.proof);
    run();
    EXPECT_EQ(elm.links->links(), 0u);
    EXPECT_FALSE(reaches(side));
    EXPECT_EQ(elm.last_reason(), "its proof is not one of who knows the secret");
}

TEST_F(ArrayStranger, CannotSayAgainWhatItHeardAnotherSay) {
    auto said = greeting(1);
    Octets<32> proof;
    {
        RdmaSide side(*device);
        auto welcome = greet(side, said);
        proof = node::array_proof(secret_of(9), said, welcome, Prover::connecting);
        send_proof(side, proof);
        run();
        ASSERT_EQ(elm.links->links(), 1u);
    }
    run();
    ASSERT_EQ(elm.links->links(), 0u);
    RdmaSide side(*device);
    greet(side, said);
    send_proof(side, proof);
    run();
    EXPECT_EQ(elm.links->links(), 0u);
    EXPECT_FALSE(reaches(side));
}

TEST_F(ArrayStranger, DoesNotCutThePeerWhoseNameItTakes) {
    RdmaSide good(*device), bad(*device);
    auto said = greeting(1);
    auto welcome = greet(good, said);
    send_proof(good, node::array_proof(secret_of(9), said, welcome, Prover::connecting));
    run();
    greet(bad, greeting(2));
    send_proof(bad, {});
    run();
    EXPECT_EQ(elm.links->links(), 1u);
    EXPECT_TRUE(reaches(good));

    // Whoever proves to be that peer does: it began anew.
    RdmaSide again(*device);
    said = greeting(3);
    welcome = greet(again, said);
    send_proof(again, node::array_proof(secret_of(9), said, welcome, Prover::connecting));
    run();
    EXPECT_EQ(elm.links->links(), 1u);
    EXPECT_TRUE(reaches(again));
}

TEST_F(ArrayStranger, IsLeftWhenItSaysNothingMore) {
    RdmaSide side(*device);
    greet(side, greeting(1));
    EXPECT_EQ(elm.links->unproved(), 1u);
    run();
    EXPECT_EQ(elm.links->unproved(), 0u);
    EXPECT_EQ(elm.last_reason(), "its proof did not come in time");
}

TEST_F(ArrayStranger, CannotKeepOthersOutByComingOften) {
    std::vector<std::unique_ptr<RdmaSide>> crowd;
    const std::size_t many = node::ArrayLinks::Options{}.unproved_max;
    for (std::size_t i = 0; i < many; ++i) {
        crowd.push_back(std::make_unique<RdmaSide>(*device));
        greet(*crowd.back(), greeting(static_cast<std::uint8_t>(i)));
    }
    RdmaSide good(*device);
    auto said = greeting(200);
    auto welcome = greet(good, said);
    EXPECT_EQ(elm.links->unproved(), many);
    send_proof(good, node::array_proof(secret_of(9), said, welcome, Prover::connecting));
    run();
    EXPECT_EQ(elm.links->unproved(), 0u);
    EXPECT_TRUE(reaches(good));
}

TEST_F(ArrayStranger, IsTurnedAwayIfItDoesNotGreet) {
    RdmaSide side(*device);
    auto octets = octets_of(greeting(1));
    octets[0] = std::byte{0};
    EXPECT_FALSE(node::ArrayLinks::is_greeting(octets));
    EXPECT_TRUE(node::ArrayLinks::is_greeting(octets_of(greeting(1))));
    ASSERT_TRUE(side.connect(elm.where(), {.private_data = octets}));
    run();
    EXPECT_NE(side.record.told, Told{"established"});
    EXPECT_EQ(elm.last_reason(), "it does not greet as parties do");
}

}  // namespace
}  // namespace weft::sim
