// SPDX-License-Identifier: Apache-2.0
// All requests a volume has, from submission until nothing of them is left: which have their rows,
// which may start, what keeps the others, and which have been failing for too long.
#pragma once

#include <map>
#include <vector>

#include "raid/request.hpp"

namespace weft::raid {

class RequestQueue {
public:
    struct Options {
        std::uint32_t windows = 16;
        unsigned upkeep_percent = 20;
        std::size_t host_requests = 128;  ///< of one session
        Duration patience = std::chrono::seconds(60);
    };

    explicit RequestQueue(const Options& options)
        : options_(options),
          admission_({.windows = options.windows, .upkeep_percent = options.upkeep_percent}) {}

    bool has_room_for(const HostRequest& request) const;
    Request& add(Request request);
    /// Which starts now; none if no window is free for any.
    Request* next();
    /// It has an attempt, which has a window.
    void started(Request& request);
    /// Its attempt is over, and the window is free. It competes again, unless it is held or erased.
    void attempt_ended(Request& request);
    void hold(Request& request, Hold why);
    /// All that were held for this reason compete again. Returns whether there were any.
    bool release(Hold why);
    void release(Request& request);
    /// What is decided keeps its rows until all have committed; all others when they are answered.
    void give_rows_back(Request& request);
    /// Its session may have another instead: it is about to be answered.
    void uncount(Request& request);
    void erase(Request& request);

    /// No attempt has gone through for it; or one has.
    void note_failing(Request& request, Instant now);
    void note_not_failing(Request& request);
    /// When the first has been failing for as long as requests wait.
    std::optional<Instant> patience_ends() const { return patience_ends_; }
    /// Those that have by now.
    std::vector<Request*> overdue(Instant now);

    std::map<Arrival, Request>& all() { return requests_; }
    const std::map<Arrival, Request>& all() const { return requests_; }
    std::size_t of_hosts() const { return of_hosts_; }

    bool is_decided(wire::TransactionNumber transaction) const;
    bool is_under_way(wire::TransactionNumber transaction) const;
    /// Of hosts, that have not begun or must begin again.
    std::size_t writes_waiting() const;
    /// What is being written now, or will be written again.
    std::vector<Band> bands_under_way() const;

private:
    void reconsider(Request& request);

    const Options options_;
    RowOrder rows_;
    Admission admission_;
    std::map<Arrival, Request> requests_;  ///< in the order they came
    Arrival arrivals_ = 0;
    std::map<wire::HostSession, std::size_t> of_session_;
    std::size_t of_hosts_ = 0;
    std::size_t lacking_windows_ = 0;
    std::size_t failing_ = 0;
    std::optional<Instant> patience_ends_;
};

}  // namespace weft::raid
