// SPDX-License-Identifier: Apache-2.0
#include "wire/iscsi_text.hpp"

#include <algorithm>

#include "base/bytes.hpp"

namespace weft::wire {

namespace {

constexpr bool allowed_in_key(char letter) {
    const bool alphanumeric = (letter >= 'a' && letter <= 'z') ||
                              (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9');
    // '#' belongs to the keys of extensions, such as X#NodeArchitecture.
    return alphanumeric || std::string_view(".-+@_#").find(letter) != std::string_view::npos;
}

constexpr bool good_key(std::string_view key) {
    return !key.empty() && key.size() <= max_text_key && std::ranges::all_of(key, allowed_in_key);
}

}  // namespace

Result<std::optional<TextPair>> TextPairs::next() {
    const std::string_view text = text_of(text_);
    at_ = std::min(text.find_first_not_of('\0', at_), text.size());
    if (at_ == text.size()) return std::optional<TextPair>{};

    const auto where = static_cast<std::uint32_t>(at_);
    const auto end = text.find('\0', at_);
    if (end == text.npos) return Error{.code = Code::truncated, .where = where};
    const std::string_view pair = text.substr(at_, end - at_);
    const auto equals = pair.find('=');
    if (equals == pair.npos || !good_key(pair.substr(0, equals)))
        return Error{.code = Code::malformed, .where = where};
    at_ = end + 1;
    return std::optional(TextPair{.key = pair.substr(0, equals), .value = pair.substr(equals + 1)});
}

Result<void> TextWriter::add(std::string_view key, std::string_view value) {
    if (!good_key(key) || value.find('\0') != value.npos) return Error{.code = Code::malformed};
    const std::size_t needed = key.size() + 1 + value.size() + 1;
    if (needed > buffer_.size() - size_)
        return Error{.code = Code::exhausted, .where = static_cast<std::uint32_t>(size_)};
    auto put = [this](std::string_view text) {
        std::ranges::copy(bytes_of(text), buffer_.begin() + static_cast<std::ptrdiff_t>(size_));
        size_ += text.size();
    };
    put(key);
    put("=");
    put(value);
    put(std::string_view("\0", 1));
    return {};
}

}  // namespace weft::wire
