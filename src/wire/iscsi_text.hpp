// SPDX-License-Identifier: Apache-2.0
// The text of Login and Text PDUs: key=value pairs, each ended by one null octet (RFC 7143 section
// 6.1). What a key means and which value wins is negotiation, and not known here.
//
// A pair may span PDUs with the continue bit: join their data segments before taking them apart.
#pragma once

#include <optional>
#include <string_view>

#include "weft/buffer.hpp"
#include "weft/result.hpp"

namespace weft::wire {

inline constexpr std::size_t max_text_key = 63;
/// "If not otherwise specified"; names of authentication and long binaries may be longer.
inline constexpr std::size_t max_text_value = 255;

/// Points into the text it was taken from.
struct TextPair {
    std::string_view key;
    std::string_view value;

    bool operator==(const TextPair&) const = default;
};

/// Takes a text apart, in order. Refused as malformed, with the offset: no '=', an empty key, one
/// above 63 characters or with a character RFC 7143 does not allow; as truncated: no null at the
/// end. An empty pair (null upon null) is skipped, since some peers count padding into the length.
class TextPairs {
public:
    explicit TextPairs(ConstBuffer text) : text_(text) {}

    /// The next pair, nothing at the end, or an error that repeats for ever.
    Result<std::optional<TextPair>> next();

private:
    ConstBuffer text_{};
    std::size_t at_ = 0;
};

/// Puts pairs into a buffer it does not own. A pair is written whole or not at all.
class TextWriter {
public:
    explicit TextWriter(Buffer buffer) : buffer_(buffer) {}

    /// Refuses a pair that would not be read back as it is (malformed) or has no room (exhausted).
    Result<void> add(std::string_view key, std::string_view value);

    std::size_t size() const { return size_; }
    ConstBuffer written() const { return buffer_.first(size_); }

private:
    Buffer buffer_;
    std::size_t size_ = 0;
};

}  // namespace weft::wire
