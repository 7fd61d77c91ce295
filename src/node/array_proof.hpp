// SPDX-License-Identifier: Apache-2.0
// The proofs by which the two ends of an array's connection come to trust each other.
#pragma once

#include <span>

#include "wire/array_connection.hpp"

namespace weft::node {

/// What two parties know and never say.
using ArraySecret = Octets<32>;

/// HMAC (RFC 2104) with SHA-256 of some pieces, one after another.
Octets<32> hmac_sha256(ConstBuffer key, std::span<const ConstBuffer> pieces);

enum class Prover : std::uint8_t { accepting = 1, connecting = 2 };

/// Of all that was said before the proof, and who says it. The welcome's own proof does not count.
Octets<32> array_proof(const ArraySecret& secret, const wire::ArrayGreeting& greeting,
                       const wire::ArrayWelcome& welcome, Prover prover);

/// Takes as long whatever the first difference is.
bool is_same_proof(const Octets<32>& one, const Octets<32>& other);

}  // namespace weft::node
