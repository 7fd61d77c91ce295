// SPDX-License-Identifier: Apache-2.0
// The verbs under a stream: a queue pair, its completions, and the memory both sides write to.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "abi/sockets/carrier.hpp"
#include "abi/sockets/settings.hpp"
#include "abi/sockets/stream.hpp"

namespace weft::abi::sockets {

/// A descriptor whose events are asked for, never waited for: waiting is done with the descriptor.
/// False with errno.
bool set_nonblocking(int descriptor);

/// Memory of our own, known to the device.
class RegisteredMemory {
public:
    /// False with errno where the device refuses.
    bool allocate(ibv_pd* domain, std::size_t bytes, int access);
    ~RegisteredMemory();

    Buffer bytes() { return bytes_; }
    ibv_mr* operator->() const { return region_; }

private:
    std::vector<std::byte> bytes_;
    ibv_mr* region_ = nullptr;
};

class Endpoint final : Carrier {
public:
    /// Gives the identifier, which has a device, a queue pair. Null with errno if it cannot. The
    /// sizes that came of it replace those asked for.
    static std::unique_ptr<Endpoint> make(rdma_cm_id& id, Settings& settings);
    ~Endpoint();

    Stream& stream() { return *stream_; }
    ibv_pd* domain() const { return id_.pd; }
    std::size_t inline_bytes() const { return inline_bytes_; }

    /// Takes what completions there are and does what follows from them.
    void digest();
    /// Makes the descriptor readable at the next completion. False if that was asked for before.
    bool arm();
    /// Readable, once armed, when there is something to digest.
    int descriptor() const { return channel_->fd; }
    /// What has made the descriptor readable is taken off it, and it must be armed again. False if
    /// there was nothing.
    bool disarm();

    Endpoint(rdma_cm_id& id) : id_(id) {}

private:
    bool make_queues(Settings& settings);
    bool make_memory(const Settings& settings);
    bool post_receives(std::span<const std::uint32_t> slots);
    void digest(const ibv_wc& completion);

    bool say(Message message, Receipt receipt) override;
    bool write_and_say(std::span<const ConstBuffer> pieces, const Window& to, Message message,
                       Receipt receipt) override;
    bool write(std::span<const ConstBuffer> pieces, const Window& to, Receipt receipt) override;

    rdma_cm_id& id_;
    ibv_comp_channel* channel_ = nullptr;
    ibv_cq* completions_ = nullptr;
    bool has_queue_pair_ = false;
    bool is_armed_ = false;
    unsigned events_taken_ = 0;  ///< and not acknowledged
    std::size_t inline_bytes_ = 0;

    RegisteredMemory send_ring_, receive_ring_, slots_;
    RegisteredMemory inbox_;              ///< four octets for each receive
    std::vector<std::uint32_t> emptied_;  ///< places in it whose receives are to be posted again
    std::unique_ptr<Stream> stream_;
};

}  // namespace weft::abi::sockets
