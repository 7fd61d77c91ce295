// SPDX-License-Identifier: Apache-2.0
#include "iscsi/chap.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <charconv>

#include "base/bytes.hpp"

namespace weft::iscsi {

namespace {

const EVP_MD* hash_of(ChapAlgorithm algorithm) {
    switch (algorithm) {
        case ChapAlgorithm::md5:
            return EVP_md5();
        case ChapAlgorithm::sha1:
            return EVP_sha1();
        case ChapAlgorithm::sha256:
            return EVP_sha256();
        case ChapAlgorithm::sha3_256:
            return EVP_sha3_256();
    }
    return nullptr;
}

std::optional<unsigned> hexadecimal_digit(char letter) {
    if (letter >= '0' && letter <= '9') return letter - '0';
    if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
    if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
    return std::nullopt;
}

std::optional<unsigned> base64_digit(char letter) {
    if (letter >= 'A' && letter <= 'Z') return letter - 'A';
    if (letter >= 'a' && letter <= 'z') return letter - 'a' + 26;
    if (letter >= '0' && letter <= '9') return letter - '0' + 52;
    if (letter == '+') return 62;
    if (letter == '/') return 63;
    return std::nullopt;
}

constexpr Error malformed{.code = Code::malformed};

/// Joins digits of `width` bits each into octets.
template <class Digit>
Result<std::vector<std::byte>> joined(std::string_view digits, unsigned width, Digit digit_of) {
    std::vector<std::byte> octets;
    octets.reserve(digits.size() * width / 8);
    unsigned word = 0;
    unsigned bits = 0;
    for (char letter : digits) {
        const auto digit = digit_of(letter);
        if (!digit) return malformed;
        word = (word << width | *digit) & 0xffff;
        bits += width;
        if (bits < 8) continue;
        bits -= 8;
        octets.push_back(static_cast<std::byte>(word >> bits));
    }
    // A digit that adds no whole octet is one too many; what is left over says nothing.
    if (bits >= width || (word & ((1u << bits) - 1)) != 0) return malformed;
    return octets;
}

}  // namespace

Result<ChapResponse> chap_response(ChapAlgorithm algorithm, const ChapChallenge& challenge,
                                   std::string_view secret) {
    std::vector<std::byte> input{static_cast<std::byte>(challenge.identifier)};
    const ConstBuffer secret_octets = bytes_of(secret);
    input.insert(input.end(), secret_octets.begin(), secret_octets.end());
    input.insert(input.end(), challenge.octets.begin(), challenge.octets.end());

    std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
    unsigned size = 0;
    const bool done = EVP_Digest(input.data(), input.size(), hash.data(), &size, hash_of(algorithm),
                                 nullptr) == 1;
    OPENSSL_cleanse(input.data(), input.size());
    if (!done || size > ChapResponse::capacity()) return Error{.code = Code::unsupported};
    ChapResponse response;
    for (unsigned i = 0; i < size; ++i) response.push_back(static_cast<std::byte>(hash[i]));
    return response;
}

bool same_octets(ConstBuffer left, ConstBuffer right) {
    return left.size() == right.size() &&
           CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

std::vector<ChapAlgorithm> chap_algorithms_in(std::string_view list) {
    std::vector<ChapAlgorithm> known;
    while (!list.empty()) {
        const auto comma = list.find(',');
        const std::string_view word = list.substr(0, comma);
        unsigned number = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
        if (error == std::errc{} && end == word.data() + word.size())
            for (ChapAlgorithm algorithm : chap_algorithms)
                if (static_cast<unsigned>(algorithm) == number) known.push_back(algorithm);
        list = comma == list.npos ? std::string_view{} : list.substr(comma + 1);
    }
    return known;
}

std::string chap_list(std::span<const ChapAlgorithm> algorithms) {
    std::string list;
    for (ChapAlgorithm algorithm : algorithms)
        list.append(list.empty() ? "" : ",")
            .append(std::to_string(static_cast<unsigned>(algorithm)));
    return list;
}

std::string binary_text(ConstBuffer octets) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text = "0x";
    for (std::byte octet : octets) {
        text += digits[std::to_integer<std::size_t>(octet >> 4)];
        text += digits[std::to_integer<std::size_t>(octet & std::byte{15})];
    }
    return text;
}

Result<std::vector<std::byte>> binary_of(std::string_view text, std::size_t size_max) {
    if (text.size() < 2 || text[0] != '0') return malformed;
    std::string_view digits = text.substr(2);
    // Checked before anything is made of it: four digits of base64 are three octets.
    if (digits.size() > 2 * size_max + 2) return Error{.code = Code::exhausted};
    Result<std::vector<std::byte>> octets = malformed;
    if (text[1] == 'x' || text[1] == 'X') {
        if (digits.size() % 2 != 0) return malformed;
        octets = joined(digits, 4, hexadecimal_digit);
    } else if (text[1] == 'b' || text[1] == 'B') {
        if (digits.size() % 4 == 0 && digits.ends_with('=')) digits.remove_suffix(1);
        if (digits.size() % 4 == 3 && digits.ends_with('=')) digits.remove_suffix(1);
        octets = joined(digits, 6, base64_digit);
    }
    if (octets && octets->size() > size_max) return Error{.code = Code::exhausted};
    return octets;
}

}  // namespace weft::iscsi
