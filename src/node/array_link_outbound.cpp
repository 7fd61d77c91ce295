// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error_text.hpp"
#include "node/array_link.hpp"
#include "node/chance.hpp"

namespace weft::node {

using verbs::Operation;
using verbs::Status;

namespace {

/// Of an empty Read's id; the rest is the last transfer it is posted behind.
constexpr std::uint64_t confirms = 1ull << 63;
/// More under way tell nothing sooner: the next one then speaks for all that came meanwhile.
constexpr std::uint32_t confirmations_max = 8;
/// How often it is looked whether bytes move, in the time after which it matters.
constexpr int looks_per_patience = 8;

constexpr Duration stalled_after = std::chrono::seconds(1);
constexpr Duration slow_after = std::chrono::seconds(1);
constexpr std::uint32_t congested_per_mille = 10;
/// Of fewer the share that was sent again says little.
constexpr std::uint64_t segments_judged = 50;

}  // namespace

Result<void> OutboundLink::connect(const Address& where, wire::ArrayGreeting greeting,
                                   std::shared_ptr<verbs::ProtectionDomain> domain) {
    greeting.fresh = octets_of_chance<32>(world_);
    greeting_ = greeting;
    std::array<std::byte, wire_size<wire::ArrayGreeting>()> octets;
    encode(greeting_, octets);
    if (auto ready = prepare_link(std::move(domain), wire_size<wire::ArrayReady>()); !ready)
        return ready;
    timer_ = world_.make_timer([this] { look_at_the_clock(); });
    timer_->set(world_.now() + options_.patience);
    return RdmaEnd::connect(where, connect_options(octets));
}

void OutboundLink::started() {
    auto welcome = decode<wire::ArrayWelcome>(peer_private_data());
    if (!welcome) return cut("what answers there is not of an array");
    welcome_ = *welcome;
    if (!is_same_proof(welcome_.proof,
                       array_proof(secret_, greeting_, welcome_, Prover::accepting)))
        return cut("its proof is not one of who knows the secret");
    const wire::ArrayProof proof{array_proof(secret_, greeting_, welcome_, Prover::connecting)};
    std::array<std::byte, wire_size<wire::ArrayProof>()> octets;
    encode(proof, octets);
    if (auto sent = send_inline(octets); !sent) cut(to_text(sent.error()));
}

void OutboundLink::check_ready() {
    if (!decode<wire::ArrayReady>(received_->bytes))
        return cut("what answers there is not of an array");
    timer_->cancel();
    proved_ = true;
    moved_at_ = world_.now();
    owner_.proved(*this);
    post_what_may();
}

// -------------------------------------------------------------------------------------- posting

bool OutboundLink::has_room_for(const TransferJob& job) const {
    if (posted_.empty()) return true;
    return posted_.size() < options_.under_way_max && !job.goes_alone() &&
           !posted_.front().job.goes_alone();
}

void OutboundLink::post_what_may() {
    if (!proved_ || is_over()) return;
    auto& waiting = owner_.waiting();
    while (!waiting.empty() && has_room_for(waiting.front())) {
        const TransferJob job = waiting.front();
        if (auto done = post(job); !done) {
            const bool ends = done.error().code == Code::disconnected;
            if (ends || !posted_.empty()) break;  // the end will be told; or there is room later
            // Not from in here: whoever is told may do anything to us.
            world_.defer([job, why = done.error()] { job.transfer->completed(why); });
        }
        waiting.pop_front();
    }
    confirm_soon();
    watch();
}

Result<void> OutboundLink::post(const TransferJob& job) {
    const auto& transfer = *job.transfer;
    const bool fetches = job.way == Way::fetch;
    Posted posted{.job = job, .region = nullptr, .since = world_.now()};
    verbs::LocalMemory local{
        .address = reinterpret_cast<std::uintptr_t>(transfer.memory.data()),
        .size = static_cast<std::uint32_t>(transfer.memory.size()),
        .tag = own_memory,
    };
    if (fetches) {
        WEFT_TRY(local, sink_of(transfer.memory, posted));
    }
    const std::uint64_t serial = first_serial_ + posted_.size();
    auto done = queue_pair().post(verbs::SendRequest{
        .id = serial,
        .operation = fetches ? Operation::read : Operation::write,
        .signalled = fetches,
        .local = {&local, 1},
        .remote = {.address = transfer.peer.base + transfer.at, .tag = transfer.peer.tag}});
    if (!done) return done;
    posted_.push_back(std::move(posted));
    if (fetches) confirmed_up_to_ = serial;
    return {};
}

Result<verbs::LocalMemory> OutboundLink::sink_of(Buffer memory, Posted& posted) {
    for (auto& ready : owner_.ready_memory()) {
        const auto offset = memory.data() - ready.memory.data();
        if (offset < 0 || static_cast<std::size_t>(offset) + memory.size() > ready.memory.size())
            continue;
        return ready.region->local(static_cast<std::uint64_t>(offset),
                                   static_cast<std::uint32_t>(memory.size()));
    }
    WEFT_TRY(posted.region,
             domain_->register_memory(memory, Rights::local_write, Addressing::by_address));
    return posted.region->local(0, static_cast<std::uint32_t>(memory.size()));
}

/// When whoever is at it has asked for all it wants to: one answer then speaks for many Writes.
void OutboundLink::confirm_soon() {
    const std::uint64_t last = first_serial_ + posted_.size() - 1;
    if (confirming_ || last <= confirmed_up_to_) return;
    confirming_ = true;
    world_.defer([this, alive = std::weak_ptr(alive_)] {
        if (alive.expired()) return;
        confirming_ = false;
        if (!is_over()) confirm();
    });
}

/// An answer to a Read comes behind whatever was written before it, so a Read that is posted anyway
/// will do.
void OutboundLink::confirm() {
    const std::uint64_t last = first_serial_ + posted_.size() - 1;
    if (last <= confirmed_up_to_ || confirmations_ >= confirmations_max) return;
    const auto& peer = posted_.back().job.transfer->peer;
    auto done =
        queue_pair().post(verbs::SendRequest{.id = confirms | last,
                                             .operation = Operation::read,
                                             .remote = {.address = peer.base, .tag = peer.tag}});
    if (!done) return;
    confirmed_up_to_ = last;
    ++confirmations_;
}

// ----------------------------------------------------------------------------------------- ends

void OutboundLink::completed(const verbs::Completion& completion) {
    if (completion.status != Status::success) {
        // Else the end of the connection will be told, once our last word is out.
        const auto& said = termination();
        if (said && said->from == verbs::Termination::From::peer) cut(reason(std::nullopt));
        return;
    }
    if (completion.what != verbs::Ended::sent) return check_ready();
    if (completion.id == 0) return;  // our proof
    if (completion.id & confirms) --confirmations_;
    ended_through(completion.id & ~confirms);
}

void OutboundLink::ended_through(std::uint64_t serial) {
    std::vector<raid::PeerTransfer*> ended;
    auto& counters = owner_.counters();
    while (!posted_.empty() && first_serial_ <= serial) {
        const auto& [job, region, since] = posted_.front();
        ended.push_back(job.transfer);
        ++counters.done;
        (job.way == Way::send ? counters.octets_sent : counters.octets_received) +=
            job.transfer->memory.size();
        last_took_ = world_.now() - since;
        served_ = true;
        posted_.pop_front();
        ++first_serial_;
    }
    post_what_may();
    // Last, since whoever is told may do anything to us.
    for (auto* each : ended) each->completed({});
}

std::vector<TransferJob> OutboundLink::take_posted() {
    std::vector<TransferJob> jobs;
    for (auto& each : posted_) jobs.push_back(each.job);
    posted_.clear();
    return jobs;
}

void OutboundLink::ended(std::optional<Error> why, bool rejected) {
    cut(rejected ? "it does not want us" : reason(why));
}

// ------------------------------------------------------------------------------- whether it moves

void OutboundLink::watch() {
    if (watching_ || posted_.empty()) return;
    watching_ = true;
    moved_at_ = world_.now();
    timer_->set(world_.now() + options_.patience / looks_per_patience);
}

/// Whether any byte has moved, either way, since it was asked last.
bool OutboundLink::moves() {
    const auto moved = traffic();
    const auto octets = moved.octets_sent + moved.octets_received;
    if (std::exchange(octets_seen_, octets) == octets) return false;
    moved_at_ = world_.now();
    return true;
}

Duration OutboundLink::still_for() const {
    const auto moved = traffic();
    const bool moves = moved.octets_sent + moved.octets_received != octets_seen_;
    return posted_.empty() || moves ? Duration{} : world_.now() - moved_at_;
}

void OutboundLink::look_at_the_clock() {
    if (!proved_) return cut("it did not answer in time");
    watching_ = false;
    network_before_ = std::exchange(network_last_, condition());
    if (posted_.empty()) return;
    if (!moves() && world_.now() - moved_at_ >= options_.patience)
        return cut("it moved nothing for too long", End::stalled);
    watching_ = true;
    timer_->set(world_.now() + options_.patience / looks_per_patience);
}

std::uint32_t OutboundLink::resent_per_mille() const {
    const auto now = condition();
    const auto& before = network_before_ ? network_before_ : network_last_;
    if (!now) return 0;
    const auto sent = now->segments_sent - (before ? before->segments_sent : 0);
    const auto resent = now->segments_resent - (before ? before->segments_resent : 0);
    return sent < segments_judged ? 0 : static_cast<std::uint32_t>(resent * 1000 / sent);
}

void OutboundLink::describe(ArrayLinkFacts& facts) const {
    using State = ArrayLinkFacts::State;
    facts.state = State::connecting;
    if (!proved_) return;
    const auto now = world_.now();
    const auto moved = traffic();
    const bool moves = moved.octets_sent + moved.octets_received != octets_seen_;
    facts.local = RdmaEnd::facts().local;
    facts.remote = RdmaEnd::facts().remote;
    facts.under_way = static_cast<std::uint32_t>(posted_.size());
    facts.last_took = last_took_;
    facts.since_progress = moves ? Duration{} : now - moved_at_;
    facts.network = condition();
    facts.resent_per_mille = resent_per_mille();
    facts.state = State::idle;
    if (posted_.empty()) return;
    facts.oldest = now - posted_.front().since;
    facts.state = facts.since_progress >= stalled_after ? State::stalled
                  : facts.resent_per_mille >= congested_per_mille || facts.oldest >= slow_after
                      ? State::congested
                      : State::busy;
}

}  // namespace weft::node
