// SPDX-License-Identifier: Apache-2.0
// Answers the peer's RDMA Reads and atomics, in the order they came (RFC 5040, RFC 7306).
//
// An entry lives from the request to the last octet of its answer. As many may wait as were agreed
// on with the peer, who may not ask for more. One whose answer has begun to go out does not count:
// the peer may have all of it, and ask for the next, before our own TCP is done with it.
#pragma once

#include <array>
#include <optional>

#include "base/ring.hpp"
#include "iwarp/memory_table.hpp"
#include "iwarp/message.hpp"
#include "wire/rdmap.hpp"

namespace weft::iwarp {

class ReadResponder {
public:
    ReadResponder(MemoryTable& memory, Asker asker, std::size_t depth);

    bool full() const { return entries_.size() - begun_ >= depth_; }
    bool idle() const { return entries_.empty(); }

    /// A read the peer asks for, and the number of the message that does.
    struct Asked {
        wire::ReadRequest request;
        std::uint32_t message_number = 0;
    };
    /// Refuses (with the fault to report) what the peer may not read.
    Result<void> add_read(const Asked& asked);
    /// Does it at once; only the answer waits its turn.
    Result<void> add_atomic(const wire::AtomicRequest& request);

    /// The next answer, if there is one. An error if its memory was taken away in the meantime:
    /// then next_read() is what was asked for.
    Result<std::optional<Message>> next_message();
    const Asked& next_read() { return entries_[begun_].asked; }
    void message_sent();

private:
    struct Entry {
        bool atomic = false;
        Asked asked{};                                                    ///< a read
        std::array<std::byte, wire_size<wire::AtomicResponse>()> body{};  ///< an atomic's answer
    };
    Result<Message::Source> source_of(const wire::ReadRequest& request) const;

    MemoryTable& memory_;
    Asker asker_;
    Ring<Entry> entries_;
    std::size_t depth_;
    std::size_t begun_ = 0;  ///< the first so many are with the sender
    Buffer body_piece_;      ///< of the one that is being cut
    Message::Source source_;
};

/// What RFC 7306 section 5.1 makes of eight octets.
std::uint64_t apply_atomic(const wire::AtomicRequest& request, std::uint64_t original);

}  // namespace weft::iwarp
