// SPDX-License-Identifier: Apache-2.0
#include "raid/request_queue.hpp"

#include <algorithm>

namespace weft::raid {
namespace {

/// A session may always have so many requests, however many others have.
constexpr std::size_t requests_always = 16;

std::uint64_t octets_moved_by(const Plan& plan) {
    std::uint64_t octets = 0;
    for (const Order& order : plan.orders)
        for (const Piece& piece : order.pieces)
            if (is_transfer(piece.verb) || piece.verb == Verb::load || piece.verb == Verb::commit ||
                piece.verb == Verb::prepare || piece.verb == Verb::digest)
                octets += piece.length;
    return octets;
}

}  // namespace

bool RequestQueue::has_room_for(const HostRequest& request) const {
    const auto found = of_session_.find(request.session);
    const std::size_t own = found == of_session_.end() ? 0 : found->second;
    // Initiators that know nothing of arrays have one session among them all.
    const bool is_one_host = request.host_identity != wire::HostIdentity{};
    if (is_one_host && own >= options_.host_requests) return false;
    return requests_.size() < limits::requests || own < requests_always;
}

Request& RequestQueue::add(Request taken) {
    taken.arrival = ++arrivals_;
    if (taken.is_host()) {
        ++of_hosts_;
        ++of_session_[taken.session];
    }
    const auto rank = taken.is_host() ? RowOrder::Rank::host : RowOrder::Rank::upkeep;
    const auto wait_now = rows_.add(taken.arrival, taken.bands, taken.use, rank);
    Request& request = requests_.emplace(taken.arrival, std::move(taken)).first->second;
    for (auto arrival : wait_now) reconsider(requests_.at(arrival));
    reconsider(request);
    return request;
}

Request* RequestQueue::next() {
    const auto next = admission_.next();
    return next ? &requests_.at(*next) : nullptr;
}

/// Whether it may start when there is a window for it.
void RequestQueue::reconsider(Request& request) {
    const bool may = !request.attempt && request.hold == Hold::none && !request.is_answered() &&
                     rows_.has_rows(request.arrival);
    if (may)
        admission_.add(request.arrival, request.kind, request.session);
    else
        admission_.remove(request.arrival);
}

void RequestQueue::started(Request& request) {
    rows_.begin(request.arrival);
    const Plan& plan = request.attempt->terms().plan;
    admission_.started(request.arrival, octets_moved_by(plan), plan.orders.size());
}

void RequestQueue::attempt_ended(Request& request) {
    admission_.ended(request.kind);
    reconsider(request);
}

void RequestQueue::hold(Request& request, Hold why) {
    if (why == Hold::window) ++lacking_windows_;
    request.hold = why;
    reconsider(request);
}

bool RequestQueue::release(Hold why) {
    if (why == Hold::window && lacking_windows_ == 0) return false;
    bool some = false;
    for (auto& [arrival, request] : requests_) {
        if (request.hold != why) continue;
        release(request);
        some = true;
    }
    return some;
}

void RequestQueue::release(Request& request) {
    if (request.hold == Hold::window) --lacking_windows_;
    request.hold = Hold::none;
    reconsider(request);
}

/// Whoever hears its answer may ask for more, and must not find it here again.
void RequestQueue::give_rows_back(Request& request) {
    admission_.remove(request.arrival);
    for (auto freed : rows_.remove(request.arrival)) reconsider(requests_.at(freed));
}

void RequestQueue::uncount(Request& request) {
    if (!request.is_host() || !std::exchange(request.is_counted, false)) return;
    if (--of_session_[request.session] == 0) of_session_.erase(request.session);
}

void RequestQueue::erase(Request& request) {
    if (request.is_host()) --of_hosts_;
    uncount(request);
    if (request.hold == Hold::window) --lacking_windows_;
    note_not_failing(request);
    give_rows_back(request);
    requests_.erase(request.arrival);
}

void RequestQueue::note_failing(Request& request, Instant now) {
    if (!request.failing_since) {
        request.failing_since = now;
        ++failing_;
    }
    const Instant ends = *request.failing_since + options_.patience;
    if (!patience_ends_ || ends < *patience_ends_) patience_ends_ = ends;
}

void RequestQueue::note_not_failing(Request& request) {
    if (!request.failing_since) return;
    request.failing_since.reset();
    if (--failing_ == 0) patience_ends_.reset();
}

std::vector<Request*> RequestQueue::overdue(Instant now) {
    std::vector<Request*> found;
    if (!patience_ends_ || now < *patience_ends_) return found;
    patience_ends_.reset();
    for (auto& [arrival, request] : requests_) {
        if (!request.failing_since || request.is_answered()) continue;
        if (now - *request.failing_since >= options_.patience)
            found.push_back(&request);
        else
            note_failing(request, now);
    }
    return found;
}

bool RequestQueue::is_decided(wire::TransactionNumber transaction) const {
    return std::ranges::any_of(requests_, [&](const auto& each) {
        const auto& attempt = each.second.attempt;
        return attempt && attempt->is_decided() && attempt->terms().transaction == transaction;
    });
}

bool RequestQueue::is_under_way(wire::TransactionNumber transaction) const {
    return std::ranges::any_of(requests_, [&](const auto& each) {
        const auto& attempt = each.second.attempt;
        return attempt && attempt->terms().transaction == transaction;
    });
}

std::size_t RequestQueue::writes_waiting() const {
    return static_cast<std::size_t>(std::ranges::count_if(requests_, [](const auto& each) {
        const Request& request = each.second;
        return request.host && request.kind == Admission::Kind::write && !request.attempt;
    }));
}

std::vector<Band> RequestQueue::bands_under_way() const {
    std::vector<Band> bands;
    for (const auto& [arrival, request] : requests_)
        if (request.is_host() && request.use == RowOrder::Use::exclusive && request.is_begun)
            bands.insert(bands.end(), request.bands.begin(), request.bands.end());
    return bands;
}

}  // namespace weft::raid
