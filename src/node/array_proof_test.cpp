// SPDX-License-Identifier: Apache-2.0
#include "node/array_proof.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string_view>
#include <vector>

namespace weft::node {
namespace {

std::vector<std::byte> from_hex(std::string_view digits) {
    std::vector<std::byte> octets;
    for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
        octets.push_back(
            static_cast<std::byte>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16)));
    return octets;
}

std::vector<std::byte> code_of(ConstBuffer key, std::span<const ConstBuffer> pieces) {
    auto code = hmac_sha256(key, pieces);
    auto octets = std::as_bytes(std::span(code));
    return {octets.begin(), octets.end()};
}

TEST(HmacSha256, IsWhatRfc4231Says) {
    const std::array<ConstBuffer, 1> hi{bytes_of("Hi There")};
    EXPECT_EQ(code_of(std::vector<std::byte>(20, std::byte{0x0b}), hi),
              from_hex("b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"));
    // In pieces, however they are cut.
    const std::array<ConstBuffer, 3> question{bytes_of("what do ya"), ConstBuffer{},
                                              bytes_of(" want for nothing?")};
    EXPECT_EQ(code_of(bytes_of("Jefe"), question),
              from_hex("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"));
}

TEST(ArrayProof, ChangesWithEverythingThatWasSaid) {
    const ArraySecret secret{1, 2, 3};
    const wire::ArrayGreeting greeting{
        .cluster = {{1}}, .epoch = wire::Epoch{2}, .from = {}, .to = {}, .fresh = {4}};
    const wire::ArrayWelcome welcome{.epoch = wire::Epoch{2}, .fresh = {5}, .proof = {}};
    const auto proof = array_proof(secret, greeting, welcome, Prover::accepting);
    EXPECT_TRUE(is_same_proof(proof, array_proof(secret, greeting, welcome, Prover::accepting)));

    EXPECT_FALSE(is_same_proof(proof, array_proof(secret, greeting, welcome, Prover::connecting)));
    EXPECT_FALSE(is_same_proof(proof, array_proof({9}, greeting, welcome, Prover::accepting)));
    auto greeted = greeting;
    greeted.fresh = {6};
    EXPECT_FALSE(is_same_proof(proof, array_proof(secret, greeted, welcome, Prover::accepting)));
    greeted = greeting;
    greeted.to.role = wire::ArrayRole::host;
    EXPECT_FALSE(is_same_proof(proof, array_proof(secret, greeted, welcome, Prover::accepting)));
    auto welcomed = welcome;
    welcomed.fresh = {7};
    EXPECT_FALSE(is_same_proof(proof, array_proof(secret, greeting, welcomed, Prover::accepting)));
    welcomed = welcome;
    welcomed.proof = {8};
    EXPECT_TRUE(is_same_proof(proof, array_proof(secret, greeting, welcomed, Prover::accepting)))
        << "the welcome's own proof is not part of what is proved";
}

}  // namespace
}  // namespace weft::node
