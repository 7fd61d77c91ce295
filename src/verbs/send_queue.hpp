// SPDX-License-Identifier: Apache-2.0
// Posted work, from post() to its completion.
//
// Work begins in the order it was posted and completes in that order too, although it does not end
// in it: a Send has ended when TCP has taken it, a Read when its answer is here. So a slot whose
// work has ended waits until all before it have. And a completion that nobody has polled counts as
// a slot that is taken: who posts for as long as there is room cannot fill more of its completion
// queue than the send queue is long.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "base/ring.hpp"
#include "iwarp/memory_table.hpp"
#include "iwarp/message.hpp"
#include "iwarp/outstanding_reads.hpp"
#include "iwarp/session_owner.hpp"
#include "iwarp/terms.hpp"
#include "verbs/limits.hpp"
#include "weft/verbs.hpp"
#include "wire/rdmap.hpp"

namespace weft::verbs {

struct SendQueueOptions {
    std::uint32_t capacity = 0;
    std::uint32_t pieces = 0;
    std::uint32_t inline_bytes = 0;
    bool sends_own_memory = false;
};

/// What the peer found wrong with our work, if it did.
struct Blame {
    Status status = Status::flushed;
    iwarp::Quoted about{};
};

/// By which work is judged that will only be flushed: there is no peer any more that could mind.
inline constexpr iwarp::Terms terms_of_the_ended{.outbound_reads = 1, .peer = iwarp::Peer::weft};

class SendQueue {
public:
    SendQueue(const SendQueueOptions& options, iwarp::MemoryTable& memory, iwarp::Asker asker);

    /// Refuses what cannot be: too many pieces or bytes, no room, a kind the peer does not know.
    Result<void> check(const SendRequest& request, const iwarp::Terms& terms) const;
    /// Takes what passes the check.
    Result<void> post(const SendRequest& request, const iwarp::Terms& terms);
    std::size_t room() const { return slots_.size() - (end_ - first_) - unpolled_; }
    /// Completions that wait to be polled: counted by the queue that has them.
    std::uint32_t& unpolled() { return unpolled_; }
    /// After flush(): takes what passes the check, to be completed as flushed in its turn.
    Result<void> post_flushed(const SendRequest& request);
    /// How much work has ended, and all before it, ever.
    std::uint64_t ended() const { return first_; }
    bool empty() const { return first_ == end_; }
    bool has_unbegun() const { return next_ != end_; }
    /// Whether a fast registration has found its tag's former memory still lent: ask again when
    /// that is released.
    bool waits_for_memory() const { return waits_for_memory_; }

    /// The next message that may go; local work on the way is done. Failed work stops the queue:
    /// see has_failed().
    std::optional<iwarp::Message> next_message(iwarp::OutstandingReads& reads);
    void message_sent();
    void read_ended();
    /// The memory for its answer was gone: it ends with local_protection.
    void read_failed();
    /// Work that failed by our own fault: it has been completed with its status, and the connection
    /// cannot go on.
    bool has_failed() const { return failed_; }

    /// The oldest work that has ended, if all before it have.
    std::optional<Completion> next_completion();
    /// All work that has not ended is flushed. What the peer blames, or the oldest that had begun
    /// if that is not known, gets its status; and behind that nothing is said to have gone well,
    /// for the peer has heard no more. What the sender has messages of is completed only when these
    /// are sent: until then its memory is lent.
    void flush(const Blame& blame);
    /// The stream is gone: nothing is lent any more.
    void stream_gone();
    /// Forgets the flushed: for a queue pair that is used again.
    void reset();

private:
    enum class Stage : std::uint8_t {
        posted,
        under_way,
        leaving,  ///< flushed, but the sender still has messages of it
        ended,
    };
    struct Slot {
        std::uint64_t id = 0;
        Operation operation{};
        Stage stage{};
        Status status{};
        bool signalled = false, solicited = false, fenced = false, inlined = false;
        bool written = false;  ///< write_immediate: the first half has begun
        std::uint32_t piece_count = 0;
        std::uint32_t bytes = 0;
        RemoteMemory remote{};
        SteeringTag invalidate{};
        std::uint32_t immediate = 0;
        std::uint32_t message_number = 0;  ///< of its untagged message, in that one's queue
        std::uint64_t operand = 0, compare = 0;
    };
    /// A message with the sender: what it points to.
    struct UnderWay {
        std::uint64_t number = 0;  ///< of the slot
        bool ends_work = false;    ///< no other message of it follows, nor does an answer
        std::uint32_t source_count = 0;
        std::array<std::byte, wire_size<wire::AtomicRequest>()> body{};
        Buffer piece;  ///< the body, or the inlined bytes
    };

    Slot& slot(std::uint64_t number) { return slots_[number % slots_.size()]; }
    LocalMemory* pieces_of(std::uint64_t number);
    std::byte* inlined_of(std::uint64_t number);
    bool begin_local(Slot& work);
    std::optional<iwarp::Message> begin_message(Slot& work, iwarp::OutstandingReads& reads);
    UnderWay& begin_under_way(bool ends_work);
    UnderWay& under_way(std::uint64_t at) { return under_way_[at % under_way_.size()]; }
    iwarp::Message with_body(iwarp::Message message, UnderWay& entry, std::size_t size);
    bool gather(Slot& work, UnderWay& entry);
    bool gather(const LocalMemory& piece, UnderWay& entry);
    void add_source(UnderWay& entry, const iwarp::Message::Source& source);
    std::span<const iwarp::Message::Source> sources_of(const UnderWay& entry) const;
    iwarp::Message begin_read(Slot& work, iwarp::OutstandingReads& reads);
    iwarp::Message begin_atomic(Slot& work, iwarp::OutstandingReads& reads);
    iwarp::Message begin_immediate(Slot& work);
    std::optional<iwarp::Message> stop(Slot& work, Status status);
    bool is_quoted(std::uint64_t number, const iwarp::Quoted& about);
    std::uint64_t find_guilty(const iwarp::Quoted& about);
    bool sink_allows(std::uint64_t number, std::uint32_t size) const;

    iwarp::MemoryTable& memory_;
    const iwarp::Asker asker_;
    const SendQueueOptions options_;
    std::vector<Slot> slots_;
    std::vector<LocalMemory> pieces_;  ///< so many for each slot
    std::vector<std::byte> inlined_;
    /// One for each slot, used again and again: whoever registers with every command allocates
    /// nothing once the longest list of pieces has been seen.
    std::vector<FastRegistration> registrations_;
    std::vector<WindowBinding> bindings_;          ///< likewise
    std::vector<UnderWay> under_way_;              ///< a ring
    std::vector<iwarp::Message::Source> sources_;  ///< so many for each of them
    std::vector<Buffer> plain_;                    ///< what those of our own memory point to
    std::uint64_t under_way_first_ = 0, under_way_end_ = 0;
    std::uint32_t sends_begun_ = 0, requests_begun_ = 0;  ///< untagged messages, by their queue
    Ring<std::uint64_t> awaited_;  ///< slots whose answers have not come, in order
    std::uint64_t first_ = 0;      ///< the oldest slot; numbers count up for ever
    std::uint64_t next_ = 0;       ///< the first whose work has not begun
    std::uint64_t end_ = 0;
    std::uint32_t unpolled_ = 0;
    bool failed_ = false;
    bool waits_for_memory_ = false;
};

}  // namespace weft::verbs
