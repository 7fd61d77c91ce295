// SPDX-License-Identifier: Apache-2.0
#include "node/cluster_key.hpp"

#include "base/bytes.hpp"
#include "node/array_proof.hpp"

namespace weft::node {
namespace {

/// Not the key itself, which has other uses: whoever learns this has learnt nothing else.
iscsi::ChapCredentials made_of(std::string_view key, std::string_view name) {
    const ConstBuffer piece = bytes_of(name);
    constexpr const char* digits = "0123456789abcdef";
    iscsi::ChapCredentials made{.name = std::string(name), .secret = {}};
    for (auto octet : hmac_sha256(bytes_of(key), {&piece, 1})) {
        made.secret += digits[octet >> 4];
        made.secret += digits[octet & 15];
    }
    return made;
}

}  // namespace

iscsi::ChapCredentials controller_credentials(std::string_view key) {
    return made_of(key, "weft-controller");
}

iscsi::ChapCredentials box_credentials(std::string_view key) {
    return made_of(key, "weft-box");
}

}  // namespace weft::node
