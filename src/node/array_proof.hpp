// SPDX-License-Identifier: Apache-2.0
// The proofs by which the two ends of an array's connection come to trust each other.
#pragma once

#include <span>

#include "wire/array_connection.hpp"

namespace weft::node {

/// What two parties know and never say.
using ArraySecret = Octets<32>;

/// What one party knows of the secret of a host's session: only its owner can tell for anybody, so
/// whoever is no longer let in cannot come under the name of another.
ArraySecret secret_for(const ArraySecret& session, const wire::ArrayConnectionEnd& party);

/// HMAC (RFC 2104) with SHA-256 of some pieces, one after another.
Octets<32> hmac_sha256(ConstBuffer key, std::span<const ConstBuffer> pieces);

enum class Prover : std::uint8_t { accepting = 1, connecting = 2 };

/// Of all that was said before the proof, and who says it. The welcome's own proof does not count.
Octets<32> array_proof(const ArraySecret& secret, const wire::ArrayGreeting& greeting,
                       const wire::ArrayWelcome& welcome, Prover prover);

/// Takes as long whatever the first difference is.
bool is_same_proof(const Octets<32>& one, const Octets<32>& other);

}  // namespace weft::node
