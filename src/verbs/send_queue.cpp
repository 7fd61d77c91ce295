// SPDX-License-Identifier: Apache-2.0
#include "verbs/send_queue.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "iwarp/memory_fault.hpp"
#include "verbs/local_pieces.hpp"
#include "wire/rdmap.hpp"

namespace weft::verbs {

using iwarp::Message;
using iwarp::OutstandingRead;
using wire::RdmapOpcode;

namespace {

bool is_local(Operation operation) {
    return operation >= Operation::bind_window;
}
bool is_atomic(Operation operation) {
    return operation == Operation::compare_and_swap || operation == Operation::fetch_and_add;
}
bool is_read(Operation operation) {
    return operation == Operation::read || operation == Operation::read_invalidate;
}
bool awaits_answer(Operation operation) {
    return is_read(operation) || is_atomic(operation);
}
/// Whether RFC 7306 is needed, which only we are known to speak.
bool is_extension(Operation operation) {
    return is_atomic(operation) || operation == Operation::write_immediate;
}

RdmapOpcode send_opcode(Operation operation, bool solicited) {
    if (operation == Operation::send_invalidate)
        return solicited ? RdmapOpcode::send_solicited_invalidate : RdmapOpcode::send_invalidate;
    return solicited ? RdmapOpcode::send_solicited : RdmapOpcode::send;
}

// What a Terminate quotes of our messages.

bool has_number(const iwarp::Quoted& about, wire::QueueNumber queue, std::uint32_t number) {
    auto* header = about.header ? std::get_if<wire::UntaggedSegment>(&*about.header) : nullptr;
    return header && number > 0 && header->queue == queue && header->message_number == number;
}
bool is_within(const iwarp::Quoted& about, const RemoteMemory& target, std::uint32_t size) {
    auto* header = about.header ? std::get_if<wire::TaggedSegment>(&*about.header) : nullptr;
    if (!header || header->opcode != RdmapOpcode::write || header->steering_tag != target.tag)
        return false;
    // No segment but an empty one begins at the end. Offsets may run past the last of them all.
    auto into = static_cast<std::uint64_t>(header->offset) - target.address;
    return into < size || into == 0;
}
bool is_of(const wire::ReadRequest& request, const auto& work, const LocalMemory* sink) {
    return static_cast<std::uint64_t>(request.source_offset) == work.remote.address &&
           request.size == work.bytes &&
           (work.bytes == 0 || (request.sink_tag == sink->tag &&
                                static_cast<std::uint64_t>(request.sink_offset) == sink->address));
}

}  // namespace

SendQueue::SendQueue(const SendQueueOptions& options, iwarp::MemoryTable& memory,
                     iwarp::Asker asker)
    : memory_(memory),
      asker_(asker),
      options_(options),
      slots_(options.capacity),
      pieces_(std::size_t{options.capacity} * options.pieces),
      inlined_(std::size_t{options.capacity} * options.inline_bytes),
      registrations_(options.capacity),
      bindings_(options.capacity),
      under_way_(std::min<std::size_t>(options.capacity + 1, limits::messages_under_way)),
      sources_(under_way_.size() * std::max(options.pieces, 1u)),
      plain_(options.sends_own_memory ? sources_.size() : 0),
      awaited_(options.capacity) {}

LocalMemory* SendQueue::pieces_of(std::uint64_t number) {
    return pieces_.data() + number % slots_.size() * options_.pieces;
}
std::byte* SendQueue::inlined_of(std::uint64_t number) {
    return inlined_.data() + number % slots_.size() * options_.inline_bytes;
}

Result<void> SendQueue::check(const SendRequest& request, const iwarp::Terms& terms) const {
    auto bytes = total_size(request.local);
    if (room() == 0)
        return Error{.code = Code::exhausted, .where = static_cast<std::uint32_t>(slots_.size())};
    if (is_extension(request.operation) && terms.peer != iwarp::Peer::weft)
        return Error{.code = Code::unsupported};
    if (awaits_answer(request.operation) && terms.outbound_reads == 0)
        return Error{.code = Code::unsupported};  // it would wait for its turn for ever
    if (request.local.size() > options_.pieces)
        return Error{.code = Code::out_of_range, .where = options_.pieces};
    if (bytes > limits::message_bytes)
        return Error{.code = Code::out_of_range, .where = limits::message_bytes};
    // The peer's answer names one place: that is all a Read Request has room for.
    if (is_read(request.operation) && request.local.size() > 1)
        return Error{.code = Code::out_of_range, .where = 1};
    if (is_atomic(request.operation) &&
        (request.local.size() != 1 || bytes != sizeof(std::uint64_t)))
        return Error{.code = Code::malformed};
    if (request.inlined && (bytes > options_.inline_bytes || awaits_answer(request.operation)))
        return Error{.code = Code::out_of_range, .where = options_.inline_bytes};
    bool complete = request.operation == Operation::bind_window ? request.binding != nullptr
                    : request.operation == Operation::fast_register
                        ? request.registration != nullptr
                        : true;
    if (!complete) return Error{.code = Code::malformed};
    return {};
}

Result<void> SendQueue::post(const SendRequest& request, const iwarp::Terms& terms) {
    if (auto good = check(request, terms); !good) return good;

    Slot& work = slot(end_);
    work = {.id = request.id,
            .operation = request.operation,
            .signalled = request.signalled,
            .solicited = request.solicited,
            .fenced = request.fenced,
            .inlined = request.inlined,
            .bytes = static_cast<std::uint32_t>(total_size(request.local)),
            .remote = request.remote,
            .invalidate = request.invalidate,
            .immediate = request.immediate,
            .operand = request.operand,
            .compare = request.compare};
    if (request.binding) bindings_[end_ % slots_.size()] = *request.binding;
    if (request.registration) registrations_[end_ % slots_.size()] = *request.registration;
    if (request.inlined) {
        auto* to = inlined_of(end_);
        for (auto& piece : request.local) {
            if (piece.size == 0) continue;
            std::memcpy(to, reinterpret_cast<const std::byte*>(piece.address), piece.size);
            to += piece.size;
        }
    } else {
        std::copy(request.local.begin(), request.local.end(), pieces_of(end_));
        work.piece_count = static_cast<std::uint32_t>(request.local.size());
    }
    ++end_;
    return {};
}

Result<void> SendQueue::post_flushed(const SendRequest& request) {
    if (auto good = check(request, terms_of_the_ended); !good) return good;
    slot(end_) = {.id = request.id,
                  .operation = request.operation,
                  .stage = Stage::ended,
                  .status = Status::flushed};
    next_ = ++end_;
    return {};
}

std::optional<Message> SendQueue::next_message(iwarp::OutstandingReads& reads) {
    while (next_ != end_ && !failed_) {
        Slot& work = slot(next_);
        if (work.fenced && !reads.empty()) return std::nullopt;
        if (!is_local(work.operation)) return begin_message(work, reads);
        if (!begin_local(work)) return std::nullopt;
        ++next_;
    }
    return std::nullopt;
}

bool SendQueue::begin_local(Slot& work) {
    Result<void> done;
    if (work.operation == Operation::bind_window) {
        auto bound = memory_.bind(bindings_[next_ % slots_.size()], asker_);
        if (!bound) done = bound.error();
    } else if (work.operation == Operation::fast_register) {
        done = memory_.fast_register(registrations_[next_ % slots_.size()], asker_);
    } else {
        done = memory_.invalidate(work.invalidate, asker_);
    }
    waits_for_memory_ = !done && iwarp::fault_of(done.error()) == iwarp::MemoryFault::still_lent;
    if (waits_for_memory_) return false;
    work.stage = Stage::ended;
    if (done) return true;
    stop(work, work.operation == Operation::bind_window ? Status::window_binding
                                                        : Status::local_operation);
    return false;
}

std::optional<Message> SendQueue::begin_message(Slot& work, iwarp::OutstandingReads& reads) {
    if (under_way_end_ - under_way_first_ == under_way_.size()) return std::nullopt;
    if (awaits_answer(work.operation)) {
        if (reads.full()) return std::nullopt;
        if (!sink_allows(next_, work.bytes)) return stop(work, Status::local_protection);
        return is_atomic(work.operation) ? begin_atomic(work, reads) : begin_read(work, reads);
    }
    if (work.written) return begin_immediate(work);

    bool whole = work.operation != Operation::write_immediate;
    auto& entry = begin_under_way(whole);
    if (!gather(work, entry)) {
        --under_way_end_;
        return stop(work, Status::local_protection);
    }
    work.stage = Stage::under_way;
    work.written = true;
    if (whole) ++next_;
    if (work.operation == Operation::write || work.operation == Operation::write_immediate)
        return Message{.opcode = RdmapOpcode::write,
                       .tag = work.remote.tag,
                       .offset = work.remote.address,
                       .payload = sources_of(entry)};
    work.message_number = ++sends_begun_;
    return Message{
        .opcode = send_opcode(work.operation, work.solicited),
        .tag = work.operation == Operation::send_invalidate ? work.invalidate : SteeringTag{},
        .payload = sources_of(entry)};
}

SendQueue::UnderWay& SendQueue::begin_under_way(bool ends_work) {
    auto& entry = under_way(under_way_end_++);
    entry.number = next_;
    entry.ends_work = ends_work;
    entry.source_count = 0;
    return entry;
}

void SendQueue::add_source(UnderWay& entry, const Message::Source& source) {
    auto each = sources_.size() / under_way_.size();
    auto index = static_cast<std::size_t>(&entry - under_way_.data());
    sources_[index * each + entry.source_count++] = source;
}

std::span<const Message::Source> SendQueue::sources_of(const UnderWay& entry) const {
    auto each = sources_.size() / under_way_.size();
    auto index = static_cast<std::size_t>(&entry - under_way_.data());
    return std::span(sources_).subspan(index * each, entry.source_count);
}

Message SendQueue::with_body(Message message, UnderWay& entry, std::size_t size) {
    entry.piece = Buffer(entry.body).first(size);
    add_source(entry, {iwarp::MemoryRange({&entry.piece, 1}, 0, size), {}});
    message.payload = sources_of(entry);
    return message;
}

/// Finds the bytes to send. False if a tag of our own does not allow it.
bool SendQueue::gather(Slot& work, UnderWay& entry) {
    if (work.inlined) {
        entry.piece = {inlined_of(next_), work.bytes};
        if (work.bytes > 0)
            add_source(entry, {iwarp::MemoryRange({&entry.piece, 1}, 0, work.bytes), {}});
        return true;
    }
    for (std::uint32_t i = 0; i < work.piece_count; ++i) {
        auto& piece = pieces_of(next_)[i];
        if (piece.size > 0 && !gather(piece, entry)) return false;
    }
    return true;
}

bool SendQueue::gather(const LocalMemory& piece, UnderWay& entry) {
    if (piece.tag == own_memory && options_.sends_own_memory) {
        auto index = static_cast<std::size_t>(&entry - under_way_.data());
        auto each = sources_.size() / under_way_.size();
        auto& plain = plain_[index * each + entry.source_count];
        plain = {reinterpret_cast<std::byte*>(piece.address), piece.size};
        add_source(entry, {iwarp::MemoryRange({&plain, 1}, 0, piece.size), {}});
        return true;
    }
    auto bytes = memory_.resolve(piece.tag, piece.address, piece.size, Rights::local_read, asker_);
    if (bytes) add_source(entry, {*bytes, piece.tag});
    return bytes.has_value();
}

bool SendQueue::sink_allows(std::uint64_t number, std::uint32_t size) const {
    if (size == 0) return true;
    auto& piece = pieces_[number % slots_.size() * options_.pieces];
    return memory_.resolve(piece.tag, piece.address, size, Rights::local_write, asker_).has_value();
}

Message SendQueue::begin_read(Slot& work, iwarp::OutstandingReads& reads) {
    // A read of nothing needs no memory; but some RNICs refuse a tag of 0 unseen.
    LocalMemory sink{.tag = SteeringTag{1}};
    if (work.piece_count > 0) sink = pieces_of(next_)[0];
    auto source_tag = work.remote.tag == SteeringTag{} ? SteeringTag{1} : work.remote.tag;
    auto& entry = begin_under_way(false);
    encode(wire::ReadRequest{.sink_tag = sink.tag,
                             .sink_offset = wire::TaggedOffset{sink.address},
                             .size = work.bytes,
                             .source_tag = source_tag,
                             .source_offset = wire::TaggedOffset{work.remote.address}},
           entry.body);
    reads.push({.kind = OutstandingRead::Kind::read,
                .sink_tag = sink.tag,
                .sink_offset = sink.address,
                .size = work.bytes});
    work.message_number = ++requests_begun_;
    awaited_.push_back(next_++);
    work.stage = Stage::under_way;
    return with_body({.opcode = RdmapOpcode::read_request}, entry, wire_size<wire::ReadRequest>());
}

Message SendQueue::begin_atomic(Slot& work, iwarp::OutstandingReads& reads) {
    bool swap = work.operation == Operation::compare_and_swap;
    auto& sink = pieces_of(next_)[0];
    auto identifier = static_cast<std::uint32_t>(next_);
    auto& entry = begin_under_way(false);
    encode(wire::AtomicRequest{.operation = swap ? wire::AtomicOperation::compare_swap
                                                 : wire::AtomicOperation::fetch_add,
                               .request_identifier = identifier,
                               .remote_tag = work.remote.tag,
                               .remote_offset = wire::TaggedOffset{work.remote.address},
                               .add_or_swap = work.operand,
                               .add_or_swap_mask = swap ? ~0ull : 0,
                               .compare = swap ? work.compare : 0},
           entry.body);
    reads.push({.kind = OutstandingRead::Kind::atomic,
                .sink_tag = sink.tag,
                .sink_offset = sink.address,
                .request_identifier = identifier});
    work.message_number = ++requests_begun_;
    awaited_.push_back(next_++);
    work.stage = Stage::under_way;
    return with_body({.opcode = RdmapOpcode::atomic_request}, entry,
                     wire_size<wire::AtomicRequest>());
}

Message SendQueue::begin_immediate(Slot& work) {
    auto& entry = begin_under_way(true);
    entry.body = {};
    store_big_endian<4>(work.immediate, entry.body.data());
    work.message_number = ++sends_begun_;
    ++next_;
    return with_body({.opcode = work.solicited ? RdmapOpcode::immediate_data_solicited
                                               : RdmapOpcode::immediate_data},
                     entry, wire_size<wire::ImmediateData>());
}

std::optional<Message> SendQueue::stop(Slot& work, Status status) {
    work.stage = Stage::ended;
    work.status = status;
    failed_ = true;
    return std::nullopt;
}

void SendQueue::message_sent() {
    WEFT_CHECK(under_way_first_ != under_way_end_);
    auto& entry = under_way(under_way_first_++);
    // The answer to a read may have come before this, and its slot be another's by now.
    if (entry.number < first_) return;
    Slot& work = slot(entry.number);
    bool is_last =
        under_way_first_ == under_way_end_ || under_way(under_way_first_).number != entry.number;
    if (entry.ends_work || (work.stage == Stage::leaving && is_last)) work.stage = Stage::ended;
}

void SendQueue::read_ended() {
    Slot& work = slot(awaited_.front());
    if (work.operation == Operation::read_invalidate && work.piece_count > 0)
        if (!memory_.invalidate(pieces_of(awaited_.front())[0].tag, asker_))
            stop(work, Status::local_protection);
    awaited_.pop_front();
    work.stage = Stage::ended;
}

void SendQueue::read_failed() {
    stop(slot(awaited_.front()), Status::local_protection);
    awaited_.pop_front();
}

std::optional<Completion> SendQueue::next_completion() {
    while (first_ != end_) {
        Slot& work = slot(first_);
        if (work.stage != Stage::ended) return std::nullopt;
        ++first_;
        if (!work.signalled && work.status == Status::success) continue;
        return Completion{.id = work.id,
                          .status = work.status,
                          .what = Ended::sent,
                          .operation = work.operation,
                          .bytes = work.bytes};
    }
    return std::nullopt;
}

bool SendQueue::is_quoted(std::uint64_t number, const iwarp::Quoted& about) {
    Slot& work = slot(number);
    if (work.stage == Stage::posted) return false;
    if (awaits_answer(work.operation)) {
        if (work.stage == Stage::ended) return false;  // it was answered
        // The request itself says more than its number, and siw gets the number wrong where it
        // finds the fault when about to answer.
        if (auto& request = about.read_request)
            return is_read(work.operation) && is_of(*request, work, pieces_of(number));
        return has_number(about, wire::QueueNumber::read_request, work.message_number);
    }
    bool is_write =
        work.operation == Operation::write || work.operation == Operation::write_immediate;
    if (is_write && is_within(about, work.remote, work.bytes)) return true;
    return has_number(about, wire::QueueNumber::send, work.message_number);
}

std::uint64_t SendQueue::find_guilty(const iwarp::Quoted& about) {
    for (auto number = first_; number != end_; ++number)
        if (is_quoted(number, about)) return number;
    for (auto number = first_; number != end_; ++number)
        if (slot(number).stage == Stage::under_way) return number;
    return end_;
}

void SendQueue::flush(const Blame& blame) {
    auto guilty = blame.status == Status::flushed ? end_ : find_guilty(blame.about);
    for (auto at = under_way_first_; at != under_way_end_; ++at) {
        auto number = under_way(at).number;
        if (number >= first_ && slot(number).stage == Stage::under_way)
            slot(number).stage = Stage::leaving;
    }
    for (auto number = first_; number != end_; ++number) {
        Slot& work = slot(number);
        bool went_well = work.stage == Stage::ended && number < guilty;
        if (number == guilty)
            work.status = blame.status;
        else if (!went_well && work.status == Status::success)
            work.status = Status::flushed;
        if (work.stage != Stage::leaving) work.stage = Stage::ended;
    }
    next_ = end_;
    awaited_.clear();
    waits_for_memory_ = false;
}

void SendQueue::stream_gone() {
    for (auto number = first_; number != end_; ++number)
        if (slot(number).stage == Stage::leaving) slot(number).stage = Stage::ended;
    under_way_first_ = under_way_end_;
}

void SendQueue::reset() {
    first_ = next_ = end_;
    awaited_.clear();
    sends_begun_ = requests_begun_ = 0;
    failed_ = false;
}

}  // namespace weft::verbs
