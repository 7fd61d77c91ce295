// SPDX-License-Identifier: Apache-2.0
// Reads that a box was late with, and that the others were asked for instead. What the late box
// still does of one is a record of its own: it keeps the window at that box and nowhere else.
// Should that box be done first after all, the read is served by it.
//
// When the host is answered the box is told to release the transaction, and nobody waits for that.
// But it may still write into the host's memory, or into the controller's window: that memory stays
// reachable, and is used for nothing else, until the box has confirmed the end of the transaction,
// or cannot reach it any more.
#pragma once

#include <list>
#include <map>

#include "raid/command_book.hpp"
#include "raid/own_work.hpp"
#include "raid/request.hpp"
#include "raid/window_pool.hpp"

namespace weft::raid {

enum class SupersededStage : std::uint8_t {
    reading,      ///< it may yet be done first
    releasing,    ///< the late boxes were told to let it be
    unconfirmed,  ///< all have answered or were lost; some of them may still write
};

class SupersededReads;

class SupersededRead final : public CommandHolder {
public:
    SupersededRead(SupersededReads& all, Attempt& attempt, Mask late, bool sufficient);
    void command_ended(const SentCommand& command, const CommandAnswer& answer) override;

private:
    friend class SupersededReads;

    SupersededReads& all_;
    SupersededStage stage_ = SupersededStage::reading;
    Request* request_;  ///< that could still do with it; none: nobody could
    const Arrival arrival_;
    const wire::HostSession session_;
    const std::uint64_t host_command_;
    const std::uint32_t window_;
    const wire::TransactionNumber transaction_;
    const std::uint64_t part_;  ///< octets, from where the request was then
    const std::uint64_t done_before_;
    const bool in_band_;
    bool sufficient_;  ///< with it the request's part is done
    std::optional<OwnWindow> own_;
    std::size_t unanswered_;
    Mask open_;                                          ///< boxes whose window is open
    std::map<std::uint8_t, wire::BoxIdentity> writers_;  ///< boxes that may still write, by place
    bool host_is_told_ = false;                          ///< that they may
};

class SupersededReadsOwner {
public:
    virtual void send_release(SupersededRead& read, wire::TransactionNumber transaction,
                              BoxIndex box) = 0;
    virtual void late_box_answered(const SentCommand& command) = 0;
    /// The request's part is done: whoever else was asked for it need not go on.
    virtual void brought(Request& request, std::uint64_t octets) = 0;
    virtual void end_is_pending(const wire::BoxIdentity& box,
                                wire::TransactionNumber transaction) = 0;
    /// A window that it held is free: at boxes, or of the controller.
    virtual void windows_released() = 0;
    virtual wire::BoxIdentity identity_at(BoxIndex place) const = 0;
    virtual void writers_gone(wire::HostSession session, std::uint64_t command) = 0;

protected:
    ~SupersededReadsOwner() = default;
};

class SupersededReads {
public:
    SupersededReads(SupersededReadsOwner& owner, CommandBook& book, WindowPool& windows,
                    OwnWork& own)
        : owner_(owner), book_(book), windows_(windows), own_(own) {}

    /// All that this attempt waits for is late, by these boxes. The attempt ends.
    void supersede(Attempt& attempt, Mask late);
    /// The request has this part of what it wanted, or will not get it.
    void let_go(Arrival request);
    /// It is about to be answered: whether a box may still write into its host's memory. If so,
    /// writers_gone() follows.
    bool leaves_writers(Arrival request);
    /// Nothing more will come from this box. What it may have open there is returned.
    std::vector<wire::TransactionNumber> box_lost(Mask places, const wire::BoxIdentity& box);
    /// This box has ended whatever it had begun before, or is cut off from all memory.
    void cannot_write(const wire::BoxIdentity& box);
    /// Those that may still write for somebody.
    std::vector<wire::BoxIdentity> writers() const;
    /// Boxes that have not released theirs.
    Mask boxes() const;
    std::size_t size() const { return reads_.size(); }

private:
    friend class SupersededRead;

    void release(SupersededRead& read);
    void answered(SupersededRead& read);
    void settle(SupersededRead& read);
    void confirmed(SupersededRead& read, std::uint8_t place);

    SupersededReadsOwner& owner_;
    CommandBook& book_;
    WindowPool& windows_;
    OwnWork& own_;
    std::list<SupersededRead> reads_;
};

}  // namespace weft::raid
