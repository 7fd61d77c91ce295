// SPDX-License-Identifier: Apache-2.0
// One plan carried out as one transaction: from its first orders until no box has anything of it.
// A request that does not go through is not repaired but attempted anew: another plan, another
// transaction, and this object is gone.
//
// Orders of one turn go out together, and the next turn when all have answered. Until a turn writes
// to final locations nothing has changed, and a failure undoes what was staged. With a journal the
// write is decided when all participants have prepared and their digests agree: from then on it is
// committed whatever happens, and a box that does not acknowledge is told again until it does, or
// is no member any more. Without one, a commit whose answer is lost is sent again, too, where boxes
// know it again; one that fails leaves its rows to be written again.
#pragma once

#include <array>

#include "raid/command_book.hpp"
#include "raid/digest.hpp"
#include "raid/link_table.hpp"
#include "raid/own_work.hpp"

namespace weft::raid {

struct Request;
class Attempt;

enum class AttemptStage : std::uint8_t {
    staging,     ///< nothing has been written to a final location
    committing,  ///< boxes write, or have been told to
    unheard,     ///< nobody knows whether some of them have: they are told again
    closing,     ///< windows are being closed
    over,
};

enum class AttemptEvent : std::uint8_t {
    commits_sent,  ///< a turn that writes to final locations
    answers_lost,  ///< of such a turn, and of nothing else
    told_again,
    turns_over,  ///< all are done
    failed,      ///< an order of a turn was, and all of the turn have ended
    windows_closed,
};

struct AttemptStep {
    AttemptStage from{};
    AttemptEvent on{};
    AttemptStage to{};
};

// clang-format off
inline constexpr auto attempt_steps = [] {
    using enum AttemptStage;
    using enum AttemptEvent;
    return std::to_array<AttemptStep>({
        {staging,    commits_sent,   committing},
        {staging,    turns_over,     closing},
        {staging,    failed,         closing},
        {committing, commits_sent,   committing},
        {committing, answers_lost,   unheard},
        {committing, turns_over,     closing},
        {committing, failed,         closing},
        {unheard,    told_again,     committing},
        {unheard,    failed,         closing},
        {closing,    windows_closed, over},
    });
}();
// clang-format on

constexpr std::optional<AttemptStage> next_stage(AttemptStage from, AttemptEvent on) {
    for (const AttemptStep& step : attempt_steps)
        if (step.from == from && step.on == on) return step.to;
    return std::nullopt;
}

consteval bool attempts_reach_their_end() {
    constexpr std::size_t stages = 5;
    for (std::size_t from = 0; from < stages; ++from) {
        std::array<bool, stages> seen{};
        seen[from] = true;
        for (std::size_t round = 0; round < stages; ++round)
            for (const AttemptStep& step : attempt_steps)
                if (seen[static_cast<std::size_t>(step.from)])
                    seen[static_cast<std::size_t>(step.to)] = true;
        if (!seen[static_cast<std::size_t>(AttemptStage::over)]) return false;
    }
    return true;
}
consteval bool what_is_committed_is_never_staged_again() {
    for (const AttemptStep& step : attempt_steps)
        if (step.from != AttemptStage::staging && step.to == AttemptStage::staging) return false;
    return true;
}
static_assert(attempts_reach_their_end());
static_assert(what_is_committed_is_never_staged_again());

/// What becomes of the request of an attempt that has failed. Of several reasons the last of these
/// that applies counts.
enum class Then : std::uint8_t {
    plan_again,  ///< at once: the volume or what is known of it has changed
    repair,      ///< when what was found to be corrupt is restored
    wait,        ///< until the volume is set, or tried again
    refuse,      ///< with an error
};

struct AttemptFailure {
    Then then{};
    Error error{};  ///< of a refusal
};

class AttemptOwner {
public:
    /// An order of the attempt's plan goes to its box, or is done by the controller itself.
    virtual void send_order(Attempt& attempt, std::size_t order, SentCommand::Purpose purpose) = 0;
    /// A command without an order: abort, release or resolve.
    virtual void send_end(Attempt& attempt, BoxIndex box, wire::ArrayAction action,
                          SentCommand command) = 0;
    /// First of all, of every command that has ended.
    virtual void command_answered(Attempt& attempt, const SentCommand& command,
                                  const CommandAnswer& answer) = 0;
    /// An order was not done. It is for the owner to say by fail() what follows from that.
    virtual void order_failed(Attempt& attempt, const SentCommand& command,
                              const CommandAnswer& answer) = 0;
    /// A commit was not acknowledged, and will be sent again: whether later, when the owner says so
    /// by try_again(), or at once.
    virtual bool waits_to_tell_again(Attempt& attempt, const SentCommand& command,
                                     const CommandAnswer& answer) = 0;
    /// Whether this box still has to commit: it is a member.
    virtual bool still_counts(const Attempt& attempt, const Order& order) const = 0;
    /// Before another turn is sent; fail() if there is no sense in it any more.
    virtual void turn_ended(Attempt& attempt) = 0;
    /// All have prepared. False: what they have does not add up; fail() was called.
    virtual bool agrees(Attempt& attempt) = 0;
    /// From now on it counts, whatever happens.
    virtual void decided(Attempt& attempt) = 0;
    /// All orders are done; windows are not closed yet.
    virtual void carried_out(Attempt& attempt) = 0;
    virtual wire::BoxIdentity identity_at(BoxIndex place) const = 0;
    /// The transaction must be ended at a box that was lost, or did not end it.
    virtual void end_is_pending(const wire::BoxIdentity& box,
                                wire::TransactionNumber transaction) = 0;
    /// The last call: the owner destroys it.
    virtual void over(Attempt& attempt) = 0;

protected:
    ~AttemptOwner() = default;
};

class Attempt final : public CommandHolder {
public:
    enum class Purpose : std::uint8_t { serve, restore };  ///< the request, or a block it came upon

    struct Terms {
        Plan plan;
        Purpose purpose{};
        bool in_band = false;
        Avoided detour;  ///< in-band only to go around these links; empty: for itself
        bool journaled = false;
        bool repeats_commits = false;  ///< boxes know a commit again that comes twice
        std::uint32_t window = 0;
        wire::TransactionNumber transaction{};
        wire::Generation generation{};  ///< of the volume it was planned for
        std::optional<OwnWindow> own;
        Mask around = 0;  ///< boxes the plan does without, though they are there
        Instant began{};
    };

    Attempt(AttemptOwner& owner, Request& request, Terms terms)
        : owner_(owner), request_(request), terms_(std::move(terms)) {}
    Attempt(const Attempt&) = delete;
    Attempt& operator=(const Attempt&) = delete;

    void begin();
    void command_ended(const SentCommand& command, const CommandAnswer& answer) override;
    Attempt* as_attempt() override { return this; }
    /// Ends as soon as what is out has been answered. What was decided cannot.
    void fail(Then then, Error error = {});
    /// The same, and nothing is wrong with what is staged: the request is served without it.
    void stop_unneeded();
    /// What is to be waited for has come: commits are sent again, a failure is planned again.
    void try_again();
    /// The same, for good: nobody waits for it any more. What is decided is not affected.
    void give_up(Error why);
    /// This box is gone. What is staged there will be no more.
    void box_lost(Mask places, bool commits_are_repeated);
    /// Somebody else has its commands from now on, and these boxes: it ends at once.
    void superseded(Mask late);
    /// The controller's window is somebody else's to close.
    std::optional<OwnWindow> take_own_window() { return std::exchange(terms_.own, std::nullopt); }
    void keep_digest(const wire::ArrayAnswer& answer) {
        digests_.push_back({.row = answer.row_digest, .diagonals = answer.diagonal_digests});
    }

    Request& request() { return request_; }
    const Request& request() const { return request_; }
    const Terms& terms() const { return terms_; }
    const Order& order(const SentCommand& command) const {
        return terms_.plan.orders[command.order];
    }
    AttemptStage stage() const { return stage_; }
    bool is_decided() const { return decided_; }
    bool is_working() const {
        return stage_ == AttemptStage::staging || stage_ == AttemptStage::committing;
    }
    const std::optional<AttemptFailure>& failure() const { return failure_; }
    /// Boxes that were to write to final locations and did not say that they had.
    Mask uncommitted() const { return uncommitted_; }
    std::span<const Digest> digests() const { return digests_; }
    std::size_t unanswered() const { return unanswered_; }
    Mask open() const { return open_; }
    bool has_turns_left() const { return next_ < terms_.plan.orders.size(); }
    /// Of the turn that comes next.
    Phase next_phase() const { return terms_.plan.orders[next_].phase; }
    /// Whether it repeats this if its answer is lost.
    bool repeats(const SentCommand& command) const;

private:
    void step(AttemptEvent event);
    bool commits(const Order& order) const;
    void send_turn();
    void turn_ended();
    void commits_ended();
    void tell_again();
    void complete();
    void close();
    void finish();

    AttemptOwner& owner_;
    Request& request_;
    Terms terms_;
    AttemptStage stage_ = AttemptStage::staging;
    std::size_t next_ = 0;  ///< the first order of the turn to come
    std::size_t unanswered_ = 0;
    Mask open_ = 0;  ///< boxes whose window is open
    bool decided_ = false;
    std::vector<std::size_t> unheard_;  ///< commits that are to be sent again
    bool waits_to_tell_again_ = false;
    bool undone_ = true;  ///< if it fails: what it has staged is to be undone
    Mask uncommitted_ = 0;
    std::vector<Digest> digests_;
    std::optional<AttemptFailure> failure_;
};

}  // namespace weft::raid
