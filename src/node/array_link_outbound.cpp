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

/// A Write that was among those of which one was refused.
bool done_alone(const OutboundLink::Job& job) {
    return job.way == OutboundLink::Way::send && job.attempts != 0;
}

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
    owner_.proved(*this);
    post_what_may();
}

bool OutboundLink::add(const Job& job) {
    if (waiting_.size() >= options_.waiting_max) return false;
    waiting_.push_back(job);
    post_what_may();
    return true;
}

void OutboundLink::post_what_may() {
    if (!proved_ || is_over()) return;
    while (!waiting_.empty() && posted_.size() < options_.under_way_max) {
        const Job job = waiting_.front();
        if (done_alone(job) && confirmations_ >= confirmations_max) break;
        if (auto done = post(job); !done) {
            const bool ends = done.error().code == Code::disconnected;
            if (ends || !posted_.empty()) break;  // the end will be told; or there is room later
            // Not from in here: whoever is told may do anything to us.
            world_.defer([job, why = done.error()] { job.transfer->completed(why); });
        }
        waiting_.pop_front();
        if (done_alone(job)) confirm();
    }
    confirm_soon();
    if (posted_.empty() || clock_set_) return;
    clock_set_ = true;
    timer_->set(posted_.front().since + options_.patience);
}

Result<void> OutboundLink::post(const Job& job) {
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
    const auto* covered = posted_.back().job.transfer;
    if (!covered) return;  // it was blamed, and the connection ends
    auto done = queue_pair().post(
        verbs::SendRequest{.id = confirms | last,
                           .operation = Operation::read,
                           .remote = {.address = covered->peer.base, .tag = covered->peer.tag}});
    if (!done) return;
    confirmed_up_to_ = last;
    ++confirmations_;
}

void OutboundLink::completed(const verbs::Completion& completion) {
    if (completion.what != verbs::Ended::sent) {
        if (completion.status == Status::success) check_ready();
        return;
    }
    if (completion.id == 0) return;  // our proof; if it failed, all does
    if (completion.status != Status::success) return blame(completion);
    if (completion.id & confirms) --confirmations_;
    ended_through(completion.id & ~confirms);
}

void OutboundLink::ended_through(std::uint64_t serial) {
    std::vector<raid::PeerTransfer*> ended;
    while (!posted_.empty() && first_serial_ <= serial) {
        if (auto* transfer = posted_.front().job.transfer) ended.push_back(transfer);
        posted_.pop_front();
        ++first_serial_;
    }
    post_what_may();
    // Last, since whoever is told may do anything to us.
    for (auto* each : ended) each->completed({});
}

/// The peer refused this one. The others it has nothing against: they are tried again elsewhere.
/// Where a Write is blamed or an empty Read, one of the Writes up to there is meant, since those
/// before it ended when they were sent; if there are several, the next connection tells which:
/// there each is confirmed by itself.
void OutboundLink::blame(const verbs::Completion& completion) {
    if (completion.status == Status::flushed) return;  // the end will be told too
    const std::uint64_t last = completion.id & ~confirms;
    const bool is_fetch = !(completion.id & confirms) && last >= first_serial_ &&
                          posted_[last - first_serial_].job.way == Way::fetch;
    std::vector<Job*> meant;
    for (std::uint64_t i = 0; i < posted_.size(); ++i) {
        auto& job = posted_[i].job;
        const auto serial = first_serial_ + i;
        const bool is_meant = is_fetch ? serial == last : serial <= last && job.way == Way::send;
        if (is_meant && job.transfer) meant.push_back(&job);
    }
    if (meant.size() != 1) return;
    std::exchange(meant[0]->transfer, nullptr)->completed(Error{.code = Code::access_denied});
}

std::vector<OutboundLink::Job> OutboundLink::take_jobs() {
    std::vector<Job> jobs;
    for (auto& each : posted_)
        if (each.job.transfer) jobs.push_back(each.job);
    for (auto& job : jobs) ++job.attempts;
    jobs.insert(jobs.end(), waiting_.begin(), waiting_.end());
    posted_.clear();
    waiting_.clear();
    return jobs;
}

void OutboundLink::look_at_the_clock() {
    if (!proved_) return cut("it did not answer in time");
    clock_set_ = false;
    if (posted_.empty()) return;
    const Instant due = posted_.front().since + options_.patience;
    if (world_.now() >= due) {
        hung_ = true;
        return cut("a transfer took too long");
    }
    clock_set_ = true;
    timer_->set(due);
}

void OutboundLink::ended(std::optional<Error> why, bool rejected) {
    cut(rejected ? "it does not want us" : why ? to_text(*why) : "the connection has ended");
}

void OutboundLink::cut(std::string why) {
    owner_.ended(*this, why);
}

}  // namespace weft::node
