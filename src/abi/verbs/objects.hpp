// SPDX-License-Identifier: Apache-2.0
// What stands behind the structs of <infiniband/verbs.h>. An application holds a pointer to the
// struct, whose fields it reads; the rest follows it in memory and is ours. Everything here is
// touched inside a Hold, but for what the headers' inline functions read by themselves, what is
// acknowledged (under the struct's own mutex), and what one thread has for a while: a batch of work
// from ibv_wr_start() on, a completion from ibv_start_poll() on.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "abi/engine.hpp"
#include "abi/interfaces.hpp"
#include "base/intrusive_queue.hpp"
#include "weft/rdma.hpp"

namespace weft::abi {

/// Made before a fork() of this process or after it?
struct Born {
    unsigned generation = Engine::generation();
    /// It is the parent's: it may be forgotten, and nothing else.
    bool is_inherited() const { return generation != Engine::generation(); }
    /// And whether its descriptors are to be closed then: not where the application has closed them
    /// all, us unasked.
    bool has_descriptors() const { return generation >= Engine::first_with_descriptors(); }
};

/// Why nothing can be done with a queue or queue pair; 0 if something can. It is the parent's, or
/// it is being destroyed and waits only for the events of it to be acknowledged: who has fetched
/// them may still name it.
template <class Object>
int why_unusable(const Object& object) {
    if (object.is_inherited()) return EIO;
    return object.engine_side ? 0 : EINVAL;
}

/// An RNIC that applications find in the device list. The first fields are as libibverbs' own
/// `verbs_device` has them: libmlx5 and libefa look at `ops` to see whose device it is.
struct RnicDevice {
    ibv_device face{};
    const void* ops = nullptr;
    int reference_count = 0;
    void* list_links[2] = {};
    void* sysfs = nullptr;
    std::uint64_t core_support = 0;

    Interface interface;
    int number = 0;  ///< in the order in which we first saw them
};
inline RnicDevice& of(ibv_device& face) {
    return reinterpret_cast<RnicDevice&>(face);
}

/// An opened RNIC. Applications know its last member.
struct Context {
    verbs_context table{};
    Born born;
    RnicDevice* device = nullptr;
    std::deque<ibv_async_event> events;  ///< behind face().async_fd, an eventfd that counts them
    unsigned users = 0;                  ///< objects that were made with it
    bool is_closed = false;              ///< by the application: it goes with the last of them

    ibv_context& face() { return table.context; }
};
inline Context& of(ibv_context& face) {
    return reinterpret_cast<Context&>(*verbs_get_ctx(&face));
}

/// Inside a Hold. The one process-wide context of the RNIC that has this address (in numbers): made
/// when it is first asked for, closed never. Null if no interface has the address, or if the system
/// refuses what the engine needs; errno says which. For librdmacm.
Context* shared_context(const std::string& address);
/// Inside a Hold. Those of all RNICs there are now, in the order of the device list.
Result<std::vector<Context*>> shared_contexts();

/// Of these a process has so many and no more.
enum class Kind : std::uint8_t {
    domain,
    region,
    window,
    completion_queue,
    shared_receive_queue,
    queue_pair,
    channel,
};
/// Whether one more of the kind is allowed.
bool has_room_for(Kind kind);

/// Keeps a context while a thread waits in it, also if the thread is cancelled. Made in the Hold in
/// which it was seen that there is something to wait for, unmade outside.
class Stay {
public:
    explicit Stay(Context& context);
    ~Stay();
    Stay(const Stay&) = delete;
    Stay& operator=(const Stay&) = delete;

private:
    Context& context_;
};

/// What is made with a context: counted, and the context stays until it is gone.
class Tenant {
public:
    Tenant(Context& context, Kind kind);
    ~Tenant();
    Tenant(const Tenant&) = delete;
    Tenant& operator=(const Tenant&) = delete;

private:
    Context& context_;
    const Kind kind_;
};

/// Keeps what it was made with from being destroyed: `users` of that is not 0.
class Use {
public:
    explicit Use(unsigned& users) : users_(users) { ++users_; }
    ~Use() { --users_; }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

private:
    unsigned& users_;
};

struct Domain : ibv_pd, Born, Tenant {
    explicit Domain(Context& home) : ibv_pd{&home.face(), 0}, Tenant(home, Kind::domain) {}

    std::shared_ptr<verbs::ProtectionDomain> engine_side;
    unsigned users = 0;  ///< regions, windows, queues: it cannot go before them
};

struct Region : ibv_mr, Born, Tenant {
    Region(Context& home, Domain& domain)
        : ibv_mr{}, Tenant(home, Kind::region), domain_use(std::in_place, domain.users) {
        context = &home.face();
        pd = &domain;
    }

    std::unique_ptr<verbs::MemoryRegion> engine_side;
    std::optional<Use> domain_use;
    unsigned access = 0;
    /// While it is being deregistered, and the network still has bytes of it.
    struct Return;
    std::shared_ptr<Return> returning;
};

struct Window : ibv_mw, Born, Tenant {
    Window(Context& home, Domain& domain)
        : ibv_mw{}, Tenant(home, Kind::window), domain_use(domain.users) {
        context = &home.face();
        pd = &domain;
    }

    std::unique_ptr<verbs::MemoryWindow> engine_side;
    Use domain_use;
};

struct CompletionQueue;

/// Its descriptor is an eventfd that counts the events; who reads one off takes the oldest.
struct CompletionChannel : ibv_comp_channel, Born, Tenant {
    explicit CompletionChannel(Context& home)
        : ibv_comp_channel{&home.face(), -1, 0}, Tenant(home, Kind::channel) {}

    IntrusiveQueue<CompletionQueue> with_events;
    unsigned readers = 0;            ///< threads that wait for its events
    bool is_destroyed = false;       ///< by the application: it goes with the last of them
    bool reader_waits_here = false;  ///< in ibv_get_cq_event(), and so drives the engine itself
    unsigned found_ready = 0;        ///< events in a row that it did not have to wait for
    bool reader_looks = false;       ///< at the network, in this Hold: it need not be woken
    unsigned uncounted = 0;          ///< events that the descriptor does not count yet
    std::uint64_t writes_seen = 0;   ///< of peers, when a reader last began to wait
};

struct CompletionQueue : ibv_cq_ex, Born, Tenant {
    explicit CompletionQueue(Context& home);
    ~CompletionQueue();

    std::shared_ptr<verbs::CompletionQueue> engine_side;
    unsigned users = 0;  ///< queue pairs
    bool is_armed = false;
    bool is_awaited_elsewhere = false;   ///< armed, and the engine was told
    std::uint32_t events_waiting = 0;    ///< in the channel
    std::uint32_t events_delivered = 0;  ///< to be acknowledged before it can go
    std::uint32_t async_events_delivered = 0;
    verbs::Completion current{};  ///< what the readers of ibv_cq_ex read, and whose turn that is:
    std::optional<pthread_mutex_t> turn;  ///< none where the application has one thread for it
    CompletionQueue* next = nullptr;      ///< in the channel, while it has events there

    ibv_cq* face() { return reinterpret_cast<ibv_cq*>(static_cast<ibv_cq_ex*>(this)); }
};

struct SharedReceiveQueue : ibv_srq, Born, Tenant {
    SharedReceiveQueue(Context& home, Domain& domain);
    ~SharedReceiveQueue();

    std::shared_ptr<verbs::SharedReceiveQueue> engine_side;
    Use domain_use;
    ibv_srq_attr limits{};
    unsigned users = 0;
    std::uint32_t events_delivered = 0;
};

/// Some work on its way to the send queue in the ibv_wr_* style: from wr_start to wr_complete.
struct WorkBuilder;

struct QueuePair : ibv_qp_ex, Born, Tenant {
    QueuePair(Context& home, Domain& domain, CompletionQueue& sends, CompletionQueue& receives,
              SharedReceiveQueue* shared);
    ~QueuePair();

    std::unique_ptr<verbs::QueuePair> engine_side;
    Use domain_use, send_use, receive_use;
    std::optional<Use> shared_use;
    ibv_qp_cap limits{};
    bool all_signalled = false;
    unsigned access = 0;                       ///< as ibv_modify_qp() set it, for ibv_query_qp()
    std::uint8_t reads_out = 0, reads_in = 0;  ///< likewise, or as the connection has them
    bool ends_as_asked = false;  ///< ibv_modify_qp() has ended it, and nobody need be told
    bool is_resetting = false;   ///< it does, and nothing at all is told
    std::uint32_t resets = 0;    ///< what connections of before say is not about it any more
    std::uint32_t events_delivered = 0;
    std::unique_ptr<WorkBuilder, void (*)(WorkBuilder*)> builder{nullptr, nullptr};

    ibv_qp* face() { return &qp_base; }
};

inline Domain& of(ibv_pd& face) {
    return static_cast<Domain&>(face);
}
inline Region& of(ibv_mr& face) {
    return static_cast<Region&>(face);
}
inline Window& of(ibv_mw& face) {
    return static_cast<Window&>(face);
}
inline CompletionChannel& of(ibv_comp_channel& face) {
    return static_cast<CompletionChannel&>(face);
}
inline CompletionQueue& of(ibv_cq& face) {
    return static_cast<CompletionQueue&>(reinterpret_cast<ibv_cq_ex&>(face));
}
inline SharedReceiveQueue& of(ibv_srq& face) {
    return static_cast<SharedReceiveQueue&>(face);
}
inline QueuePair& of(ibv_qp& face) {
    return static_cast<QueuePair&>(reinterpret_cast<ibv_qp_ex&>(face));
}

/// The connection manager's part of a queue pair's life, inside a Hold: the states an application
/// sees follow from the connection's. `state` is what ibv_query_qp() says and ibv_qp::state holds.
void set_state(QueuePair& queue_pair, ibv_qp_state state);

/// An Error as the libraries report it.
int errno_of(const Error& error);

}  // namespace weft::abi
