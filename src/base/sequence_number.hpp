// SPDX-License-Identifier: Apache-2.0
// Numbers that count for ever in a fixed width and wrap: TCP's sequence numbers, iSCSI's CmdSN.
// One is before another if it lies at most half the circle behind it (RFC 1982).
#pragma once

#include <cstdint>
#include <type_traits>

namespace weft {

template <class Word>
class SequenceNumber {
    static_assert(std::is_unsigned_v<Word>);

public:
    constexpr SequenceNumber() = default;
    constexpr explicit SequenceNumber(Word value) : value_(value) {}

    constexpr Word value() const { return value_; }
    constexpr bool operator==(const SequenceNumber&) const = default;

    constexpr SequenceNumber operator+(Word steps) const {
        return SequenceNumber(static_cast<Word>(value_ + steps));
    }
    constexpr SequenceNumber& operator++() {
        ++value_;
        return *this;
    }
    /// How far this is ahead of `earlier`; huge if it is behind.
    constexpr Word operator-(SequenceNumber earlier) const {
        return static_cast<Word>(value_ - earlier.value_);
    }
    constexpr bool operator<(SequenceNumber other) const {
        return value_ != other.value_ && static_cast<Word>(other.value_ - value_) <= half;
    }
    constexpr bool operator<=(SequenceNumber other) const { return !(other < *this); }
    constexpr bool operator>(SequenceNumber other) const { return other < *this; }
    constexpr bool operator>=(SequenceNumber other) const { return !(*this < other); }

private:
    static constexpr Word half = static_cast<Word>(~Word{0}) >> 1;
    Word value_ = 0;
};

using SequenceNumber32 = SequenceNumber<std::uint32_t>;

}  // namespace weft
