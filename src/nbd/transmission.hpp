// SPDX-License-Identifier: Apache-2.0
// The server after the handshake: requests become BlockDevice calls, completions become replies.
//
// A request lives in a slot from its header until its reply has left; the slot is the BlockRequest
// and holds the reply's header, so serving a request allocates nothing. Payload lies in memory the
// device lends, or in a pooled buffer if it lends none. Replies go out in the order the device
// finishes them.
#pragma once

#include <functional>
#include <vector>

#include "base/ring.hpp"
#include "block/buffer_pool.hpp"
#include "nbd/export.hpp"
#include "nbd/handshake.hpp"
#include "nbd/server_receiver.hpp"
#include "nbd/statistics.hpp"

namespace weft::nbd {

class Transmission {
public:
    /// `wake` is called when there is something to send, or room for a request, and was not before.
    Transmission(const Export& offered, Dialect dialect, ServerReceiver& receiver,
                 block::BufferPool& pool, Statistics& statistics, std::function<void()> wake);
    Transmission(const Transmission&) = delete;
    Transmission& operator=(const Transmission&) = delete;
    ~Transmission();

    /// Room for another request.
    bool ready() const { return !free_.empty() && stalled_ == nullptr; }

    /// A request header came. Fails only if the connection cannot go on.
    Result<void> request(const wire::nbd::RequestHeader& header);
    /// The payload of the last write request is in place.
    void payload_end();

    std::size_t pending(std::span<ConstBuffer> pieces);
    void sent(std::size_t count);

    /// While a request waits for memory others hold.
    std::optional<Instant> deadline() const;
    void tick(Instant now);

    /// No more requests will come and no reply can leave: forget all that is not with the device.
    /// `wake` is called when the last that is has come back; not if quiet() holds already.
    void abandon();
    /// Nothing is with the device.
    bool quiet() const { return with_device_ == 0; }
    bool all_sent() const { return replies_.empty(); }
    /// A request waits for memory. Unlike other requests, it needs no further byte to be answered.
    bool stalled() const { return stalled_ != nullptr; }

private:
    struct Slot;
    enum class Memory : std::uint8_t { not_needed, provided, must_wait };

    std::optional<wire::nbd::ErrorNumber> refusal(const wire::nbd::RequestHeader& header) const;
    void describe_request(Slot& slot) const;
    Memory provide_memory(Slot& slot);
    void proceed(Slot& slot);
    void memory_came();
    void refuse(Slot& slot, wire::nbd::ErrorNumber error);
    void submit(Slot& slot);
    void submit_for_nobody(Slot& slot);
    void completed(Slot& slot, Result<void> outcome);
    void reply(Slot& slot);
    void reply_data(Slot& slot);
    void reply_status(Slot& slot);
    void reply_error(Slot& slot, wire::nbd::ErrorNumber error, const char* message);
    void enqueue(Slot& slot);
    void release(Slot& slot);

    const Export& export_;
    Dialect dialect_;
    ServerReceiver& receiver_;
    block::BufferPool& pool_;
    Statistics& statistics_;
    std::function<void()> wake_;
    block::BufferShare share_;

    std::vector<Slot> slots_;
    std::vector<Slot*> free_;
    Ring<Slot*> replies_;
    std::size_t front_sent_ = 0;  ///< bytes of the front reply that are gone
    Slot* receiving_ = nullptr;   ///< the write whose payload is arriving
    Slot* stalled_ = nullptr;     ///< waits for pooled memory; nothing is read meanwhile
    Instant patience_ends_;       ///< of stalled_; in the past at first: a tick tells us the time
    std::size_t with_device_ = 0;
    bool abandoned_ = false;
};

}  // namespace weft::nbd
