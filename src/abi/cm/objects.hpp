// SPDX-License-Identifier: Apache-2.0
// What stands behind the structs of <rdma/rdma_cma.h>. As with libibverbs', an application holds a
// pointer to the struct, and the rest is ours. Everything here is touched inside a Hold, but for
// the fields of an identifier that is bound or resolved: as with sockets, one thread does that.
//
// The engine's news arrive inside a Hold and become events of a channel. An identifier that goes
// takes its connection along, so nobody speaks for it any more, and then its events that wait; what
// the application has of its events it must have acknowledged before.
#pragma once

#include <pthread.h>
#include <rdma/rdma_cma.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

#include "abi/cm/connection_news.hpp"
#include "abi/engine.hpp"
#include "abi/refusals.hpp"
#include "abi/verbs/objects.hpp"
#include "linux/descriptor.hpp"
#include "weft/rdma.hpp"

namespace weft::abi {

struct Identifier;

struct Event : rdma_cm_event {
    Identifier* counted_by = nullptr;        ///< who cannot go before it is acknowledged
    std::unique_ptr<Identifier> newcomer{};  ///< of a request, until the application takes it
    std::vector<std::byte> told{};           ///< the peer's private data

    Event(Identifier& whose, rdma_cm_event_type kind, int what_status);
    void tell(ConstBuffer private_data);
};

/// Its descriptor is an eventfd that counts the events. It blocks or not as the application likes.
struct EventChannel : rdma_event_channel, Born {
    EventChannel() : rdma_event_channel{-1} {}
    ~EventChannel();
    EventChannel(const EventChannel&) = delete;
    /// Nothing is told here any more. Closes the descriptor, unless somebody waits for it.
    void fall_silent();

    std::deque<std::unique_ptr<Event>> events;
    std::unordered_set<Identifier*> identifiers;  ///< that report here
    unsigned readers = 0;                         ///< threads that wait for an event
    bool is_destroyed = false;
};

/// How far an identifier has come.
enum class Stage : std::uint8_t {
    idle,
    bound,
    address_resolved,
    route_resolved,
    listening,
    requested,  ///< by a peer, and not answered yet
    connecting,
    accepted,  ///< and the peer has not shown itself yet
    connected,
    over,
};

struct Identifier : rdma_cm_id, Born {
    Identifier(void* its_context, rdma_port_space space, ibv_qp_type type);
    /// Inside a Hold: ends what it has begun, and what waits to be told about it is told nobody.
    ~Identifier();
    Identifier(const Identifier&) = delete;

    EventChannel* reports_to() { return static_cast<EventChannel*>(channel); }
    /// Inside a Hold. Instead of what was to be called before.
    void call_later(Duration delay, std::function<void()> task);

    Stage stage = Stage::idle;
    bool is_synchronous = false;  ///< has a channel of its own, and its calls wait for the outcome
    bool one_family = false;      ///< RDMA_OPTION_ID_AFONLY
    std::optional<std::uint8_t> traffic_class;  ///< RDMA_OPTION_ID_TOS
    unsigned requests_waiting = 0;              ///< that the application has not taken yet
    unsigned requests_max = 0;

    std::uint32_t events_delivered = 0;
    // Outside a Hold, under the mutex: all that were delivered, before it can go.
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    std::uint32_t events_acknowledged = 0;

    linux::Descriptor reserved_port;  ///< bound, so that nobody else gets it before we use it
    std::unique_ptr<weft::Listener> listener;
    std::unique_ptr<verbs::ConnectionRequest> request;
    ConnectionNews news{*this};
    std::unique_ptr<verbs::Connection> connection;
    bool end_is_asked = false;   ///< by the application
    bool end_is_untold = false;  ///< there is an end, and it has not been reported
    unsigned refusals = 0;       ///< of this connection, so far
    bool is_between_attempts = false;
    std::unique_ptr<Timer> timer;

    std::uint32_t queue_pair = 0;         ///< the number of the one that is connected
    std::uint32_t queue_pair_resets = 0;  ///< of it, before that
    std::uint16_t inbound_reads = 0, outbound_reads = 0;

    std::vector<std::byte> private_data;                ///< to connect with
    std::optional<ibv_qp_init_attr> queue_pair_wishes;  ///< of rdma_create_ep()
};

inline Identifier& of(rdma_cm_id& face) {
    return static_cast<Identifier&>(face);
}
inline EventChannel& of(rdma_event_channel& face) {
    return static_cast<EventChannel&>(face);
}

// Inside a Hold.
void report(Identifier& whose, rdma_cm_event_type kind, int status);
void report(std::unique_ptr<Event> event);
/// Ends what it has begun. Nothing more is told about it, and what waits to be is forgotten.
void silence(Identifier& one);

/// What waits in its channel to be told about it.
std::deque<std::unique_ptr<Event>> take_events_of(Identifier& one);
/// Null, and errno, where the system refuses what it needs.
std::unique_ptr<EventChannel> make_channel();
/// Makes it synchronous. False, and errno, where the system refuses.
bool give_own_channel(Identifier& one);
/// Destroys a channel, as far as can be while threads may wait there.
void bury(EventChannel& channel);
/// Moves what it has to report, and what it will have.
void report_to(Identifier& one, EventChannel* channel);
/// The queue pair as the application knows it, if it is still there and has not been reset since.
QueuePair* queue_pair_of(Identifier& one);

// Outside a Hold.
inline bool is_inherited(rdma_cm_id& id) {
    Hold hold;
    return of(id).is_inherited();
}
/// As rdma_create_id(), with any type of queue pair.
int make_identifier(rdma_event_channel* channel, rdma_cm_id** id, void* context,
                    rdma_port_space space, ibv_qp_type type);
/// Of a synchronous identifier: waits for its next event, and fails as that does.
int complete(Identifier& one);
/// What failed, as librdmacm's functions report it; 0 for an event that tells of no failure.
int failure_told_by(const rdma_cm_event& event);
/// The event that a synchronous identifier shows, instead of the one it has shown.
void show(Identifier& one, rdma_cm_event* event);

}  // namespace weft::abi
