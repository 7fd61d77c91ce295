// SPDX-License-Identifier: Apache-2.0
#include "node/array_proof.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <vector>

#include "base/check.hpp"

namespace weft::node {

Octets<32> hmac_sha256(ConstBuffer key, std::span<const ConstBuffer> pieces) {
    std::vector<std::byte> joined;  // a few hundred octets, once for each connection
    for (auto& piece : pieces) joined.insert(joined.end(), piece.begin(), piece.end());
    Octets<32> code{};
    unsigned size = 0;
    auto* made = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                      reinterpret_cast<const unsigned char*>(joined.data()), joined.size(),
                      code.data(), &size);
    WEFT_CHECK(made != nullptr && size == code.size());
    return code;
}

ArraySecret secret_for(const ArraySecret& session, const wire::ArrayConnectionEnd& party) {
    const auto octets = encoded(party);
    const ConstBuffer piece(octets);
    return hmac_sha256(std::as_bytes(std::span(session)), {&piece, 1});
}

Octets<32> array_proof(const ArraySecret& secret, const wire::ArrayGreeting& greeting,
                       const wire::ArrayWelcome& welcome, Prover prover) {
    std::array<std::byte, wire_size<wire::ArrayGreeting>()> greeted;
    encode(greeting, greeted);
    wire::ArrayWelcome unproved = welcome;
    unproved.proof = {};
    std::array<std::byte, wire_size<wire::ArrayWelcome>()> welcomed;
    encode(unproved, welcomed);
    const std::array who{static_cast<std::byte>(prover)};
    const std::array<ConstBuffer, 3> pieces{ConstBuffer(greeted), ConstBuffer(welcomed),
                                            ConstBuffer(who)};
    return hmac_sha256(std::as_bytes(std::span(secret)), pieces);
}

bool is_same_proof(const Octets<32>& one, const Octets<32>& other) {
    return CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

}  // namespace weft::node
