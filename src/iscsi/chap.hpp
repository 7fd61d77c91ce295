// SPDX-License-Identifier: Apache-2.0
// CHAP (RFC 1994) as iSCSI uses it: hashes, binaries in text, and the two halves of an exchange.
//
// A response is the hash over the identifier, the secret and the challenge. Whoever challenged
// computes it too and compares, in a time that does not depend on where they differ. Two things a
// peer may not do: send our own challenge back to have us answer it (RFC 7143 section 9.2.1), and
// use a secret of less than 96 bits, which could be guessed from one listened-to exchange.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fixed_vector.hpp"
#include "iscsi/limits.hpp"
#include "weft/buffer.hpp"
#include "weft/result.hpp"

namespace weft::iscsi {

/// By the numbers IANA gave them, which is how CHAP_A names them.
enum class ChapAlgorithm : std::uint8_t { md5 = 5, sha1 = 6, sha256 = 7, sha3_256 = 8 };

/// All we know, strongest first.
inline constexpr std::array chap_algorithms{ChapAlgorithm::sha3_256, ChapAlgorithm::sha256,
                                            ChapAlgorithm::sha1, ChapAlgorithm::md5};
/// What an initiator offers if nobody says otherwise. Not SHA-256: to tgtd its number means SHA-1,
/// and it chooses that of all it is offered.
inline constexpr std::array chap_algorithms_offered{ChapAlgorithm::sha3_256, ChapAlgorithm::sha1,
                                                    ChapAlgorithm::md5};

/// Who somebody is, and what only the two of us know.
struct ChapCredentials {
    std::string name;
    std::string secret;

    bool operator==(const ChapCredentials&) const = default;
};

/// Whether a secret is long enough to be used.
constexpr bool long_enough(std::string_view secret) {
    return secret.size() >= chap_secret_min;
}

using ChapResponse = FixedVector<std::byte, 32>;

struct ChapChallenge {
    std::uint8_t identifier = 0;
    std::vector<std::byte> octets;
};

/// Unsupported: the crypto library of this machine does not offer the hash (MD5 may be forbidden).
Result<ChapResponse> chap_response(ChapAlgorithm algorithm, const ChapChallenge& challenge,
                                   std::string_view secret);
/// In constant time for a given size.
bool same_octets(ConstBuffer left, ConstBuffer right);

/// The algorithms named in a CHAP_A list that we know, in the peer's order.
std::vector<ChapAlgorithm> chap_algorithms_in(std::string_view list);
std::string chap_list(std::span<const ChapAlgorithm> algorithms);

/// "0x" and hexadecimal digits.
std::string binary_text(ConstBuffer octets);
/// From "0x…" or "0b…" (base64, RFC 4648). Refuses what is longer than `size_max` octets.
Result<std::vector<std::byte>> binary_of(std::string_view text, std::size_t size_max);

}  // namespace weft::iscsi
