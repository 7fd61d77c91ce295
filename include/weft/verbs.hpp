// SPDX-License-Identifier: Apache-2.0
// RDMA as programmers meet it. Memory is registered and gets a steering tag. A queue pair is
// connected to another one somewhere else. Work is posted to it and goes on by itself; when a piece
// of work has ended, a completion says so. A peer who was told a tag may read or write that memory,
// within its rights, without anybody here lifting a finger.
//
// All of it runs on the thread that runs the World. Nothing here blocks. examples/hello_rdma.cpp
// shows the whole in sixty lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "weft/buffer.hpp"
#include "weft/registered_memory.hpp"
#include "weft/result.hpp"

namespace weft::verbs {

/// Some bytes of registered memory of our own.
struct LocalMemory {
    std::uint64_t address = 0;  ///< as the region counts: see Addressing
    std::uint32_t size = 0;
    SteeringTag tag{};
};

/// The beginning of some bytes of the peer's registered memory.
struct RemoteMemory {
    std::uint64_t address = 0;
    SteeringTag tag{};
};

enum class Operation : std::uint8_t {
    send,              ///< into the next receive the peer has posted
    send_invalidate,   ///< the same, and the peer's tag `invalidate` is valid no longer
    write,             ///< into the peer's memory; the peer is not told
    write_immediate,   ///< the same, and the peer's next receive completes with `immediate`
    read,              ///< from the peer's memory into ours, one piece
    read_invalidate,   ///< the same, and our own tag is valid no longer once it is filled
    compare_and_swap,  ///< on eight bytes of the peer's; what was there comes into our memory
    fetch_and_add,
    bind_window,       ///< opens part of a region under a window's tag
    fast_register,     ///< puts other memory under an allocated tag
    local_invalidate,  ///< our own tag `invalidate` is valid no longer
};

/// For bind_window: which part of which region the window shall show.
struct WindowBinding {
    SteeringTag window{};
    SteeringTag region{};
    std::uint64_t address = 0;  ///< as the region counts
    std::uint64_t size = 0;
    Rights rights{};
    Addressing addressing = Addressing::by_address;
};

/// For fast_register. The low octet of `tag` may be chosen anew each time, and should be.
struct FastRegistration {
    SteeringTag tag{};
    std::vector<Buffer> pieces;
    std::uint64_t address = 0;  ///< of the first byte, where offsets are addresses
    Rights rights{};
    Addressing addressing = Addressing::by_address;
};

/// Work for the send queue. What it points to may go as soon as post() has returned, but for the
/// memory the work is about: that stays the device's until the completion.
struct SendRequest {
    std::uint64_t id = 0;  ///< comes back in the completion
    Operation operation = Operation::send;
    bool signalled = true;   ///< false: no completion, unless it fails
    bool solicited = false;  ///< wakes a peer who waits for solicited completions only
    bool fenced = false;     ///< begins only after all reads before it have ended
    bool inlined = false;    ///< the bytes are copied now; tags are not looked at
    std::span<const LocalMemory> local{};
    RemoteMemory remote{};
    SteeringTag invalidate{};
    std::uint32_t immediate = 0;
    std::uint64_t operand = 0;  ///< what to add, or what to swap in
    std::uint64_t compare = 0;
    const WindowBinding* binding = nullptr;
    const FastRegistration* registration = nullptr;
};

struct ReceiveRequest {
    std::uint64_t id = 0;
    std::span<const LocalMemory> local{};
};

enum class Status : std::uint8_t {
    success,
    local_length,      ///< the message is longer than the receive it met
    local_operation,   ///< the request made no sense in its place
    local_protection,  ///< a tag of our own does not allow this
    window_binding,
    remote_access,     ///< the peer's tag does not allow this
    remote_operation,  ///< the peer could not do it
    remote_invalid,    ///< the peer found our message wrong
    flushed,           ///< not done: the connection ended before
};

enum class Ended : std::uint8_t { sent, received, received_immediate };

struct Completion {
    std::uint64_t id = 0;
    Status status = Status::success;
    Ended what = Ended::sent;
    Operation operation = Operation::send;  ///< of the work that ended, if it was sent
    bool solicited = false;
    std::uint32_t bytes = 0;                   ///< received, read or written
    std::uint32_t queue_pair = 0;              ///< its number
    std::uint32_t immediate = 0;               ///< with received_immediate
    std::optional<SteeringTag> invalidated{};  ///< of ours, by the peer
};

class CompletionQueue {
public:
    virtual ~CompletionQueue() = default;
    /// Takes the oldest completions, as many as there are and fit; returns how many.
    virtual std::size_t poll(std::span<Completion> into) = 0;
    enum class Wanted : std::uint8_t { any, solicited };
    /// Calls notify() once, when the next completion of that kind comes. Failures are solicited.
    virtual void arm(Wanted wanted) = 0;
    virtual std::size_t capacity() const = 0;
    virtual Result<void> resize(std::size_t capacity) = 0;
};

/// Receives that several queue pairs draw from.
class SharedReceiveQueue {
public:
    virtual ~SharedReceiveQueue() = default;
    virtual Result<void> post(const ReceiveRequest& request) = 0;
    /// Raises AsyncEvent::receives_low once, when fewer than `count` are left. 0: never.
    virtual Result<void> set_low_water(std::size_t count) = 0;
    virtual std::size_t posted() const = 0;
};

/// Registered memory. Destroying it deregisters without waiting: right where no connection can have
/// bytes of it under way, and otherwise see deregister().
class MemoryRegion {
public:
    virtual ~MemoryRegion() = default;
    virtual SteeringTag tag() const = 0;
    virtual std::uint64_t address() const = 0;  ///< of the first byte, as the region counts
    virtual std::uint64_t size() const = 0;
    /// From now on the tag opens nothing. `done` is called when no byte of the memory is lent to
    /// the network any more: now it may go. Refused while windows are bound to it.
    virtual Result<void> deregister(std::function<void()> done) = 0;
    /// Whether memory that the tag no longer opens, because it was invalidated, is still lent to
    /// the network: the last bytes a peer read of it may have to be sent again. A fast_register of
    /// the tag waits for the end of that.
    virtual bool is_still_lent() const = 0;
    /// Of a tag from allocate_tag(), what fast_register does, at once and without a queue pair: for
    /// memory that no connection in particular is about. `exhausted` while it is_still_lent().
    virtual Result<void> open(const FastRegistration& registration) = 0;
    /// Of a tag from allocate_tag(): one to open() it with, whose key it never had. None when it
    /// has had all 256 keys: allocate another. Who opens memory anew for each use takes these, so
    /// that a tag somebody still remembers opens nothing, and nobody can guess the next.
    virtual std::optional<SteeringTag> fresh_tag() = 0;
    /// What local_invalidate does. The tag opens nothing until it is opened again.
    virtual Result<void> close() = 0;
    /// Of a tag that is open, for an owner whose peers may be late: the memory is released as by
    /// close(), but Writes by the tag are taken and checked as before, and their bytes dropped.
    /// Whatever else uses the tag is refused. Until close(). `access_denied` if no peer may write.
    virtual Result<void> discard() = 0;

    /// The whole, or a part, as work wants it.
    LocalMemory local(std::uint64_t offset, std::uint32_t bytes) const {
        return {address() + offset, bytes, tag()};
    }
    RemoteMemory remote(std::uint64_t offset = 0) const { return {address() + offset, tag()}; }
};

enum class WindowKind : std::uint8_t {
    by_domain,      ///< type 1: any queue pair of the domain may use it
    by_queue_pair,  ///< type 2: only the one that bound it
};

class MemoryWindow {
public:
    virtual ~MemoryWindow() = default;
    virtual SteeringTag tag() const = 0;
};

/// What belongs together: tags of one domain mean nothing to queue pairs of another.
class ProtectionDomain {
public:
    virtual ~ProtectionDomain() = default;
    virtual Result<std::unique_ptr<MemoryRegion>> register_memory(
        Buffer memory, Rights rights, Addressing addressing = Addressing::by_address) = 0;
    /// Several pieces as one region, whose offsets count from `address`.
    virtual Result<std::unique_ptr<MemoryRegion>> register_pieces(std::span<const Buffer> pieces,
                                                                  std::uint64_t address,
                                                                  Rights rights) = 0;
    /// A tag without memory, for fast_register.
    virtual Result<std::unique_ptr<MemoryRegion>> allocate_tag(std::size_t pieces_max) = 0;
    virtual Result<std::unique_ptr<MemoryWindow>> allocate_window(WindowKind kind) = 0;
};

/// The Terminate that ended a connection (RFC 5040 section 4.8): the fault, in the numbers that RFC
/// gives, and what is quoted of the message it was found in.
struct Termination {
    enum class From : std::uint8_t { us, peer } from{};
    enum class About : std::uint8_t { nothing, write, read, other } about{};
    std::uint8_t layer = 0, error_type = 0, error_code = 0;
    /// Of a Write where the segment at fault was to go, of a Read Request where it begins: memory
    /// of the side that found the fault.
    RemoteMemory target{};
    std::uint32_t size = 0;  ///< of a Read Request

    /// A steering tag did not allow what the message asked of it.
    bool is_protection() const { return (layer == 0 || layer == 1) && error_type == 1; }
};

enum class QueuePairState : std::uint8_t { idle, running, closing, terminating, failed };

class QueuePair {
public:
    virtual ~QueuePair() = default;
    virtual std::uint32_t number() const = 0;
    virtual QueuePairState state() const = 0;
    virtual Result<void> post(const SendRequest& request) = 0;
    virtual Result<void> post(const ReceiveRequest& request) = 0;
    /// How much of the work posted to the send queue has ended, and all before it, since the queue
    /// pair was made: what unsignalled work was about is free once this has come to count it.
    virtual std::uint64_t sends_ended() const = 0;
    /// The peer's Writes of this connection that are here whole and brought something: no
    /// completion tells of them.
    virtual std::uint64_t writes_received() const = 0;
    /// Whether anything is posted that can still complete: a send, or a receive, own or shared.
    virtual bool expects_completions() const = 0;
    /// Whether all of them would be taken, were they posted now one after the other.
    virtual Result<void> check(std::span<const SendRequest> requests) const = 0;
    /// Everything posted completes as flushed, what the network has bytes of when it is done with
    /// them; and nothing more is taken. The connection ends.
    virtual void fail() = 0;
    /// If bytes of that memory are lent to the network here, the connection ends at once and
    /// without a last word, and they are back: for an owner who cannot wait any longer for a peer
    /// that takes nothing. Whether it was so.
    virtual bool give_back(SteeringTag tag) = 0;
    /// What the peer may do here at most, whatever its tags open; at first everything.
    virtual void limit_peer(Rights rights) = 0;
    /// The Terminate, sent or received, that ended its connection; none if that ended otherwise.
    /// Until it is connected again. Known before any work is flushed for it.
    virtual const std::optional<Termination>& termination() const = 0;
    /// From failed to idle: to be connected again. Completions not polled yet stay where they are.
    virtual Result<void> reset() = 0;
};

struct QueuePairOptions {
    std::shared_ptr<ProtectionDomain> domain{};
    std::shared_ptr<CompletionQueue> send_completions{};
    std::shared_ptr<CompletionQueue> receive_completions{};
    std::shared_ptr<SharedReceiveQueue> shared_receives{};  ///< or none, and it has its own
    std::uint32_t sends = 128;
    std::uint32_t receives = 128;
    std::uint32_t pieces = 4;  ///< of memory, per request
    std::uint32_t inline_bytes = 64;
    /// Whether pieces to be sent may have the tag `own_memory`: for who is trusted with all of this
    /// process. They are not held: whoever lends them keeps them until the completion.
    bool sends_own_memory = false;
};

/// What happened to no request in particular.
struct AsyncEvent {
    enum class Kind : std::uint8_t {
        queue_pair_failed,       ///< the connection broke, or the peer found fault with us
        access_violation,        ///< the peer asked for what it may not have
        request_violation,       ///< the peer's message made no sense
        completions_overflowed,  ///< a completion queue was too small; its queue pairs fail
        receives_low,            ///< a shared receive queue fell below its mark
        last_receive_reached,    ///< a failed queue pair will take no more from the shared queue
    } kind{};
    std::uint32_t queue_pair = 0;  ///< its number, where it is about one
    const SharedReceiveQueue* receives = nullptr;
    const CompletionQueue* completions = nullptr;
};

}  // namespace weft::verbs
