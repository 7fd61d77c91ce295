// SPDX-License-Identifier: Apache-2.0
// As much of HTTP/1.1 (RFC 9112) as it takes to ask a server something and hear its answer: one
// request at a time on a connection, with a body of known length; answers with a length, in chunks,
// or until the connection ends. Pure: the bytes come and go by others' hands.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "weft/buffer.hpp"
#include "weft/result.hpp"

namespace weft::store {

std::string http_post(const std::string& host, const std::string& path, const std::string& body);

/// Reads one answer, however it is cut.
class HttpAnswerReader {
public:
    static constexpr std::size_t head_max = 16u << 10;
    static constexpr std::size_t body_max = 64u << 20;

    /// True: the answer is complete, and nothing may follow before the next request. `malformed`,
    /// also for octets behind its end; `exhausted` if it is too long.
    Result<bool> take(std::string_view octets);
    /// The connection has ended: whether that completes the answer.
    bool ends_with_connection() const { return stage_ == Stage::rest; }

    unsigned status() const { return status_; }
    const std::string& body() const { return body_; }
    /// The server takes another request on this connection.
    bool stays_open() const { return stays_open_; }

private:
    enum class Stage : std::uint8_t {
        head,
        length,
        chunk_size,
        chunk,
        chunk_end,
        trailer,
        rest,
        over
    };

    Result<bool> step();
    Result<void> read_head(std::string_view head);
    Result<void> read_field(std::string_view line);
    Result<bool> begin_chunk();
    /// The next line without its end, if it is there whole.
    std::optional<std::string> take_line();

    Stage stage_ = Stage::head;
    std::string incoming_;
    std::string body_;
    std::size_t left_ = 0;  ///< of the body or the chunk
    std::optional<std::size_t> length_;
    bool chunked_ = false;
    bool stays_open_ = true;
    unsigned status_ = 0;
};

}  // namespace weft::store
