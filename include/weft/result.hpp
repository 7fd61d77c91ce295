// SPDX-License-Identifier: Apache-2.0
// What an operation returns when it can fail: a value, or an Error. Never an exception.
//
// Its members have the names of C++23's std::expected: nothing new to learn. An Error converts
// by itself, so a refusal reads `return Error{.code = Code::truncated};`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

namespace weft {

/// What went wrong, in words a caller can act on. Add a value only if someone will switch on it.
enum class Code : std::uint16_t {
    truncated,      ///< the bytes ended before the message did
    malformed,      ///< the bytes break a rule of the protocol
    unsupported,    ///< legal, and not implemented here
    access_denied,  ///< the memory key or its rights do not allow this
    out_of_range,   ///< outside the region, the device or the window
    exhausted,      ///< a fixed limit was reached; try again later
    disconnected,   ///< the peer is gone
    timed_out,      ///< the peer is there and says nothing
    not_found,      ///< no such export, file or address
    io_failed,      ///< the disk or the network said no
};
inline constexpr std::size_t code_count = static_cast<std::size_t>(Code::io_failed) + 1;

/// Eight bytes, no allocation: fit for the data path. Prose is added where it is shown to people.
struct Error {
    Code code;
    std::uint16_t detail = 0;  ///< the protocol's own error code, or errno where it is Linux's
    std::uint32_t where = 0;   ///< byte offset, block or slot: what a log line would want

    bool operator==(const Error&) const = default;
};

template <class T>
class [[nodiscard]] Result {
public:
    constexpr Result(T value) : outcome_(std::in_place_index<0>, std::move(value)) {}
    constexpr Result(Error error) : outcome_(std::in_place_index<1>, error) {}

    constexpr bool has_value() const { return outcome_.index() == 0; }
    constexpr explicit operator bool() const { return has_value(); }
    constexpr T& operator*() & { return std::get<0>(outcome_); }
    constexpr const T& operator*() const& { return std::get<0>(outcome_); }
    constexpr T&& operator*() && { return std::get<0>(std::move(outcome_)); }
    constexpr T* operator->() { return &**this; }
    constexpr const T* operator->() const { return &**this; }
    constexpr Error error() const { return std::get<1>(outcome_); }

private:
    std::variant<T, Error> outcome_;
};

template <>
class [[nodiscard]] Result<void> {
public:
    constexpr Result() = default;
    constexpr Result(Error error) : error_(error) {}

    constexpr bool has_value() const { return !error_; }
    constexpr explicit operator bool() const { return has_value(); }
    constexpr Error error() const { return error_.value(); }

private:
    std::optional<Error> error_;
};

}  // namespace weft

/// The one macro of the house: leave the function with the error, or bind the value and go on.
#define WEFT_TRY(declaration, expression) WEFT_TRY_(declaration, expression, __LINE__)
#define WEFT_TRY_(declaration, expression, line) WEFT_TRY__(declaration, expression, line)
#define WEFT_TRY__(declaration, expression, line)     \
    auto attempt##line = (expression);                \
    if (!attempt##line) return attempt##line.error(); \
    declaration = std::move(*attempt##line)
