// SPDX-License-Identifier: Apache-2.0
#include "node/host_disk.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "block/admission.hpp"
#include "iscsi/command_fate.hpp"

namespace weft::node {

namespace {

constexpr std::size_t pieces_max = 1024;  ///< of one command's memory
constexpr Duration first_pause = std::chrono::milliseconds(10);
constexpr Duration longest_pause = std::chrono::milliseconds(500);
/// Longer requests are the servers' to cut; this much one of them may be.
constexpr std::uint32_t transfer_max = 32u << 20;

/// The part of a scatter list from `offset` on: `length` octets, or less where the pieces are too
/// many.
std::vector<Buffer> pieces_of(std::span<const Buffer> memory, std::uint64_t offset,
                              std::uint64_t length) {
    std::vector<Buffer> pieces;
    for (auto piece : memory) {
        if (offset >= piece.size()) {
            offset -= piece.size();
            continue;
        }
        piece = piece.subspan(offset);
        offset = 0;
        piece = piece.first(std::min<std::uint64_t>(piece.size(), length));
        if (length == 0 || pieces.size() == pieces_max) break;
        pieces.push_back(piece);
        length -= piece.size();
    }
    return pieces;
}

std::uint64_t total_size(const std::vector<Buffer>& pieces) {
    std::uint64_t size = 0;
    for (auto& piece : pieces) size += piece.size();
    return size;
}

/// Shortens the list to that many octets.
void shorten(std::vector<Buffer>& pieces, std::uint64_t to) {
    for (auto size = total_size(pieces); size > to;) {
        auto excess = std::min<std::uint64_t>(size - to, pieces.back().size());
        pieces.back() = pieces.back().first(pieces.back().size() - excess);
        if (pieces.back().empty()) pieces.pop_back();
        size -= excess;
    }
}

}  // namespace

HostDisk::HostDisk(World& world, std::shared_ptr<verbs::ProtectionDomain> domain,
                   const Options& options, Holder holder)
    : world_(world),
      domain_(std::move(domain)),
      options_(options),
      holder_(std::move(holder)),
      kept_timer_(world.make_timer([this] { kept_too_long(); })),
      lent_timer_(world.make_timer([this] { lent_too_long(); })),
      pause_timer_(world.make_timer([this] { later_has_come(); })),
      pause_(first_pause),
      patience_timer_(world.make_timer([this] { give_up({.code = Code::timed_out}); })) {
    for (std::size_t i = 0; i < options_.under_way_max; ++i) {
        flights_.push_back(std::make_unique<Flight>(*this));
        free_.push_back(flights_.back().get());
    }
}

HostDisk::~HostDisk() {
    *alive_ = false;
}

BlockTraits HostDisk::traits() const {
    BlockTraits traits;
    traits.size = size_;
    traits.minimum_block = block_size;
    traits.preferred_block = block_size;
    traits.maximum_transfer = transfer_max;
    return traits;
}

void HostDisk::welcomed(iscsi::InitiatorSession& session, const wire::HostWelcome& welcome) {
    session_ = &session;
    number_ = welcome.session;
    heard_ = welcome.roster;
    released_ = 0;
    close_all_tags();  // those who might write by them are cut off already
    request_limit_ = std::max(welcome.request_limit / block_size, 1u) * block_size;
    gone_.reset();
    patience_timer_->cancel();
    note_size(welcome.size);
    launch_what_may();
}

void HostDisk::lost() {
    if (!std::exchange(session_, nullptr)) return;
    patience_timer_->set(world_.now() + options_.patience);
}

void HostDisk::give_up(Error why) {
    session_ = nullptr;
    gone_ = why;
    fail_all(why);
}

void HostDisk::note_size(std::uint64_t size) {
    if (size == size_) return;
    size_ = size;
    announce_size(size);
}

void HostDisk::submit(BlockRequest& request) {
    if (auto refusal = block::refusal_of(request, traits())) return request.completed(*refusal);
    if (gone_) return request.completed(*gone_);
    const bool moves = block::moves_data(request.operation);
    if (request.operation != BlockOperation::flush && (!moves || request.length == 0))
        return request.completed({});
    waiting_.push_back(request);
    launch_what_may();
}

void HostDisk::launch_what_may() {
    if (std::exchange(launching_, true)) return;
    while (session_ && !again_.empty()) {
        auto* flight = again_.begin()->second;
        again_.erase(again_.begin());
        ++repeated_count_;
        flight->transfer.repeated = true;
        send(*flight);
    }
    while (session_ && !free_.empty() && launch_next_part()) {
    }
    launching_ = false;
}

bool HostDisk::launch_next_part() {
    if (wholes_.empty() || !has_rest(wholes_.back())) {
        if (waiting_.empty()) return false;
        Whole next;
        next.request = &waiting_.pop_front();
        next.flushes = next.request->operation == BlockOperation::flush;
        wholes_.push_back(next);
    }
    auto whole = std::prev(wholes_.end());
    auto& request = *whole->request;
    auto& flight = *free_.back();
    free_.pop_back();
    flight.whole = whole;
    flight.since = world_.now();
    flight.transfer = {.session = number_,
                       .command = ++commands_,
                       .offset = request.offset + whole->begun,
                       .length = 0,
                       .tag = {},
                       .base = 0,
                       .durable = request.durable,
                       .repeated = false,
                       .heard = 0,
                       .released = 0};
    flight.leaves_writers = false;
    ++whole->parts;
    if (whole->flushes) {
        flight.action = wire::HostAction::flush;
        whole->flushes = false;
        whole->begun = request.length;  // which means nothing
        send(flight);
        return true;
    }
    flight.action = request.operation == BlockOperation::read ? wire::HostAction::read
                                                              : wire::HostAction::write;
    if (auto opened = open_memory(flight); !opened)
        part_ended(flight, opened.error());
    else
        send(flight);
    return true;
}

Result<void> HostDisk::open_memory(Flight& flight) {
    auto& whole = *flight.whole;
    auto& request = *whole.request;
    const auto length = std::min<std::uint64_t>(request.length - whole.begun, request_limit_);
    auto pieces = pieces_of(request.memory, whole.begun, length);
    shorten(pieces, total_size(pieces) / block_size * block_size);
    if (pieces.empty()) return Error{.code = Code::unsupported};
    const auto size = static_cast<std::uint32_t>(total_size(pieces));
    if (auto opened = open_tag(flight, std::move(pieces)); !opened) return opened;
    flight.transfer.length = size;
    whole.begun += size;
    return {};
}

Result<void> HostDisk::open_tag(Flight& flight, std::vector<Buffer> pieces) {
    // Another key each time, and another index when the keys have come round: a tag that somebody
    // still remembers opens nothing for as long as there are indices.
    if (!flight.region || flight.key == 0xff) {
        WEFT_TRY(flight.region, domain_->allocate_tag(pieces_max));
    }
    const auto index = static_cast<std::uint32_t>(flight.region->tag()) & ~0xffu;
    const SteeringTag tag{index | ++flight.key};
    const bool reads = flight.action == wire::HostAction::read;
    flight.transfer.tag = tag;
    return flight.region->open(
        {.tag = tag,
         .pieces = std::move(pieces),
         .address = 0,
         .rights = reads ? Rights::local_write | Rights::remote_write : Rights::remote_read,
         .addressing = Addressing::from_zero});
}

void HostDisk::send(Flight& flight) {
    flight.transfer.session = number_;
    flight.transfer.heard = heard_;
    flight.transfer.released = released_;
    encode(flight.transfer, flight.parameters);
    const auto block = encoded(wire::HostCommandBlock{
        .action = flight.action,
        .command = flight.transfer.command,
        .parameter_length = static_cast<std::uint32_t>(flight.parameters.size()),
        .control = {}});
    // By itself a session sends nothing of this again: what we say then depends on the session.
    flight.prepare(wire::LogicalUnit{}, block, iscsi::Effect::once);
    flight.parameter_piece = flight.parameters;
    flight.set_data_out({&flight.parameter_piece, 1},
                        static_cast<std::uint32_t>(flight.parameters.size()));
    session_->submit(flight);
}

void HostDisk::command_ended(Flight& flight, const iscsi::CommandEnd& end) {
    if (!end.delivered) {
        if (gone_) return finish(flight, *gone_);
        if (session_ && !session_->up()) lost();
        again_.emplace(flight.transfer.command, &flight);
        return launch_what_may();  // where it was this command's fault, and not the session's
    }
    constexpr std::size_t head = wire_size<wire::DescriptorSense>();
    if (end.sense.size() > head)
        if (auto answer = decode<wire::HostAnswer>(end.sense.subspan(head));
            answer && answer->command == flight.transfer.command) {
            if (flight.transfer.session == number_)
                hear(end.sense.subspan(head + wire_size<wire::HostAnswer>()));
            return answered(flight, *answer);
        }
    const auto fate = iscsi::fate_of(end);
    const bool passes = fate.kind == iscsi::FateKind::again || fate.kind == iscsi::FateKind::later;
    if (passes) return ask_later(flight);
    // GOOD without a word of ours is none of our controller's answers either.
    finish(flight,
           fate.kind == iscsi::FateKind::done ? Error{.code = Code::malformed} : fate.error);
}

/// Every answer tells all that was new when its command was sent.
void HostDisk::hear(ConstBuffer descriptors) {
    while (!descriptors.empty()) {
        if (const auto news = decode<wire::HostNews>(descriptors)) {
            descriptors = descriptors.subspan(wire_size<wire::HostNews>());
            if (news->number <= heard_) continue;
            heard_ = news->number;
            holder_.heard(*news);
        } else if (const auto release = decode<wire::HostRelease>(descriptors)) {
            descriptors = descriptors.subspan(wire_size<wire::HostRelease>());
            if (release->number != (released_ + 1) % wire::host_release_numbers) continue;
            released_ = release->number;
            close_tag_of(release->command);
        } else {
            return;
        }
    }
}

void HostDisk::answered(Flight& flight, const wire::HostAnswer& answer) {
    using wire::HostOutcome;
    flight.leaves_writers = answer.leaves_writers && flight.action == wire::HostAction::read;
    switch (answer.outcome) {
        case HostOutcome::done:
            pause_ = first_pause;
            if (answer.size != 0) note_size(answer.size);
            return finish(flight, {});
        case HostOutcome::unknown_session:
            again_.emplace(flight.transfer.command, &flight);
            if (!session_) return;
            lost();
            return holder_.hello_again();
        case HostOutcome::later:
        case HostOutcome::host_unreachable:
            return ask_later(flight);
        case HostOutcome::out_of_range:
            return finish(flight, Error{.code = Code::out_of_range});
        case HostOutcome::malformed:
        case HostOutcome::failed:
            break;
    }
    finish(flight, Error{.code = Code::io_failed});
}

void HostDisk::ask_later(Flight& flight) {
    if (world_.now() - flight.since >= options_.patience)
        return finish(flight, Error{.code = Code::timed_out});
    if (later_.empty()) {
        pause_timer_->set(world_.now() + pause_);
        pause_ = std::min(pause_ * 2, longest_pause);
    }
    later_.push_back(&flight);
}

void HostDisk::later_has_come() {
    for (auto* flight : std::exchange(later_, {})) {
        const auto renewed = flight->leaves_writers ? renew(*flight) : Result<void>();
        if (renewed)
            again_.emplace(flight->transfer.command, flight);
        else if (renewed.error().code == Code::exhausted)
            ask_later(*flight);
        else
            finish(*flight, renewed.error());
    }
    launch_what_may();
}

/// The tag closes first. Where the network still has bytes of the memory, its owner waits.
void HostDisk::finish(Flight& flight, Result<void> outcome) {
    if (flight.action == wire::HostAction::flush || !flight.region || keep_tag(flight))
        return part_ended(flight, outcome);
    (void)flight.region->close();  // a box that has the tag might have invalidated it
    if (!flight.region->is_still_lent()) return part_ended(flight, outcome);
    if (lent_.empty()) lent_timer_->set(world_.now() + options_.lent_patience);
    lent_.push_back(&flight);
    auto freed = flight.region->deregister([this, alive = alive_, &flight, outcome] {
        if (!*alive) return;
        std::erase(lent_, &flight);
        flight.region.reset();
        part_ended(flight, outcome);
    });
    WEFT_CHECK(freed);
}

// ------------------------------------------------- reads that have ended before a late box has

/// Where boxes may still write by the flight's tag: from now on to nowhere, and the flight gets
/// another. False: nobody can reach it any more.
bool HostDisk::keep_tag(Flight& flight) {
    // Whoever knew of it in a session before this one has been cut off.
    if (!flight.leaves_writers || flight.transfer.session != number_) return false;
    flight.leaves_writers = false;
    if (flight.region->is_still_lent() || !flight.region->discard()) return false;
    kept_.push_back({.command = flight.transfer.command,
                     .region = std::move(flight.region),
                     .since = world_.now()});
    return true;
}

/// Another command and another tag for what is asked for again: late boxes know the old ones.
Result<void> HostDisk::renew(Flight& flight) {
    if (!has_room_to_keep()) {
        kept_timer_->set(kept_.front().since + options_.kept_patience);
        return Error{.code = Code::exhausted};
    }
    if (!keep_tag(flight)) flight.region.reset();
    const auto& request = *flight.whole->request;
    flight.transfer.command = ++commands_;
    return open_tag(flight, pieces_of(request.memory, flight.transfer.offset - request.offset,
                                      flight.transfer.length));
}

void HostDisk::set_free(Flight& flight) {
    const bool too_many = kept_.size() > options_.kept_max + blocked_.size();
    if (!too_many) return free_.push_back(&flight);
    blocked_.push_back(&flight);
    kept_timer_->set(kept_.front().since + options_.kept_patience);
}

void HostDisk::close_tag_of(std::uint64_t command) {
    const auto found = std::ranges::find(kept_, command, &KeptTag::command);
    if (found == kept_.end()) return;
    kept_.erase(found);
    if (blocked_.empty()) return;
    free_.push_back(blocked_.back());
    blocked_.pop_back();
    world_.defer([this, alive = alive_] {
        if (*alive) launch_what_may();
    });
}

void HostDisk::close_all_tags() {
    kept_.clear();
    free_.insert(free_.end(), blocked_.begin(), blocked_.end());
    blocked_.clear();
}

/// The controller has not said that any of them may be closed, and commands wait for it. In another
/// session nobody can reach them.
void HostDisk::kept_too_long() {
    const bool waits = !blocked_.empty() || (!has_room_to_keep() && !later_.empty());
    if (!waits) return;
    const auto due = kept_.front().since + options_.kept_patience;
    if (world_.now() < due) return kept_timer_->set(due);
    kept_timer_->set(world_.now() + options_.kept_patience);
    if (!session_) return;
    lost();
    holder_.hello_again();
}

void HostDisk::lent_too_long() {
    for (auto* flight : lent_) holder_.take_back(flight->transfer.tag);
    if (!lent_.empty()) lent_timer_->set(world_.now() + options_.lent_patience);
}

void HostDisk::part_ended(Flight& flight, Result<void> outcome) {
    auto whole = flight.whole;
    set_free(flight);
    if (!outcome && !whole->failure) whole->failure = outcome.error();
    --whole->parts;
    BlockRequest* complete = nullptr;
    std::optional<Error> failure;
    if (whole->parts == 0 && !has_rest(*whole)) {
        complete = whole->request;
        failure = whole->failure;
        wholes_.erase(whole);
    }
    launch_what_may();
    if (!complete) return;
    if (failure)
        complete->completed(*failure);
    else
        complete->completed({});
}

void HostDisk::fail_all(Error why) {
    auto alive = alive_;
    std::vector<BlockRequest*> ended;
    for (auto whole = wholes_.begin(); whole != wholes_.end();) {
        auto here = whole++;
        if (!has_rest(*here)) continue;
        here->failure = why;  // what is not begun needs no part any more
        if (here->parts > 0) continue;
        ended.push_back(here->request);
        wholes_.erase(here);
    }
    while (!waiting_.empty()) ended.push_back(&waiting_.pop_front());
    std::vector<Flight*> flights = std::exchange(later_, {});
    for (auto& [number, flight] : std::exchange(again_, {})) flights.push_back(flight);
    for (auto* flight : flights) {
        if (!*alive) break;
        // Nobody knows what boxes still do of it.
        flight->leaves_writers = flight->action == wire::HostAction::read;
        finish(*flight, why);
    }
    for (auto* request : ended) request->completed(why);
}

}  // namespace weft::node
