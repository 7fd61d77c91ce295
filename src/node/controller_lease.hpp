// SPDX-License-Identifier: Apache-2.0
// A controller's lease of its office: sought, renewed, lost or given back. The store is the arbiter
// (raid/metadata_store.hpp); this asks it at the right times, by the monotonic clock of its own
// world and by no other.
//
// Who holds office counts its lease from when it *sent* the last renewal that succeeded, and acts
// no more a fifth of the lease before its end. Who waits counts from when it *heard* of the last
// change. So the one has stopped before the other begins, however long messages take.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "raid/metadata_store.hpp"
#include "weft/world.hpp"

namespace weft::node {

class ControllerLease {
public:
    struct Options {
        /// Zero: none, and office ends when another asks for it.
        std::chrono::milliseconds lease = std::chrono::seconds(5);
        /// Waits for an office that another holds for as long as it does. If not, it is refused
        /// where the other lives.
        bool standby = false;
        /// An office that is free is left to others for so long: for one that has just stepped
        /// down.
        Duration modesty{};
    };
    enum class State : std::uint8_t { idle, seeking, in_office, deposed, resigned };
    struct Holder {
        /// Once: `access_denied` if another holds it, or what the store said.
        std::function<void(Result<wire::Epoch>)> won;
        /// While seeking, what it waits for: a sentence.
        std::function<void(const std::string&)> news;
        /// The lease has run out, and nobody may know better: nothing is to be done; or it may
        /// again.
        std::function<void(bool)> doubtful;
        std::function<void()> deposed;
    };

    /// The store must outlive this. Nothing is told from inside.
    ControllerLease(World& world, raid::MetadataStore& store, const Options& options,
                    Holder holder);
    ControllerLease(const ControllerLease&) = delete;
    ControllerLease& operator=(const ControllerLease&) = delete;
    /// When quiet().
    ~ControllerLease();

    /// `who`: for people who wait for this one.
    void seek(const std::string& who);
    /// In office, and sure of it at this moment.
    bool holds() const;
    /// How much longer it is sure of it, as boxes are told; 0: there is no lease.
    std::uint32_t remaining_ms() const;
    State state() const { return state_; }
    const Options& options() const { return options_; }
    /// Who held it when we last looked; of use while seeking.
    const raid::MetadataOffice& rival() const { return seen_; }

    /// For an election of the controller's own, while in office.
    void fill_in(raid::MetadataElection& election) const;
    /// It was won: office goes on under another epoch.
    void moved_to(wire::Epoch epoch, Instant asked);
    /// Somebody has heard that another is in office.
    void depose();
    /// Gives it back, or ceases to seek it; told once, soon, whatever the store says.
    void resign(std::function<void()> told);
    /// No request is at the store.
    bool quiet() const { return asked_ == 0; }

private:
    struct Look;
    struct Election;
    struct Renewal;

    Duration tenure() const { return options_.lease - options_.lease / 5; }
    void look();
    void looked(Result<void> outcome);
    void weigh(const raid::MetadataOffice& office);
    void stand(bool against_holder);
    void elected(Result<void> outcome);
    void renew();
    void renewed(Result<void> outcome);
    void timer_rang();
    void watch_doubt();
    void go_on_resigning();
    void fail(Error why);
    void say(const std::string& sentence);
    Duration pause() const;

    World& world_;
    raid::MetadataStore& store_;
    Options options_;
    Holder holder_;
    State state_ = State::idle;
    std::string who_;
    std::unique_ptr<Look> look_;
    std::unique_ptr<Election> election_;
    std::unique_ptr<Renewal> renewal_;
    std::size_t asked_ = 0;
    wire::Epoch epoch_{};
    Instant free_since_{};
    bool free_ = false;
    raid::MetadataOffice seen_;     ///< as last looked at
    std::optional<Instant> since_;  ///< it has stood still; none: never seen
    unsigned changes_ = 0;          ///< seen, of one holder
    Instant asked_at_{};            ///< of what is at the store
    Instant held_since_{};          ///< the last renewal that succeeded was sent
    bool doubtful_ = false;
    std::string said_;
    bool owes_ = false;  ///< the office, to be given back
    std::function<void()> resigned_;
    std::unique_ptr<Timer> timer_;        ///< the next look or renewal
    std::unique_ptr<Timer> doubt_timer_;  ///< the end of what is sure
};

}  // namespace weft::node
