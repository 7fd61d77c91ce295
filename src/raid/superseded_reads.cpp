// SPDX-License-Identifier: Apache-2.0
#include "raid/superseded_reads.hpp"

#include <algorithm>
#include <bit>

namespace weft::raid {

SupersededRead::SupersededRead(SupersededReads& all, Attempt& attempt, Mask late, bool sufficient)
    : all_(all),
      request_(&attempt.request()),
      arrival_(request_->arrival),
      session_(request_->session),
      host_command_(request_->host_command),
      window_(attempt.terms().window),
      transaction_(attempt.terms().transaction),
      part_(request_->part),
      done_before_(request_->done),
      in_band_(attempt.terms().in_band),
      sufficient_(sufficient),
      own_(attempt.take_own_window()),
      unanswered_(attempt.unanswered()),
      open_(attempt.open() & late) {
    for (std::uint8_t place = 0; place < limits::boxes; ++place)
        if (contains(late, place)) writers_[place] = all.owner_.identity_at(BoxIndex{place});
    if (own_) all.own_.abandon(*own_);
}

void SupersededRead::command_ended(const SentCommand& command, const CommandAnswer& answer) {
    const bool ends = command.purpose == SentCommand::Purpose::end;
    const auto place = command.place();
    if (ends || (is_done(answer) && command.closes)) open_ &= ~only(place);
    if (is_done(answer) && (ends || command.closes)) all_.confirmed(*this, place);
    if (!ends && is_done(answer)) all_.owner_.late_box_answered(command);
    if (!ends && !is_done(answer)) sufficient_ = false;
    if (--unanswered_ == 0) all_.answered(*this);
}

void SupersededReads::supersede(Attempt& attempt, Mask late) {
    const bool sufficient = !attempt.has_turns_left() && !attempt.failure();
    SupersededRead& read = reads_.emplace_back(*this, attempt, late, sufficient);
    book_.pass_on(attempt, read);
    windows_.keep(read.window_, read.transaction_, read.open_);
    attempt.superseded(late);
}

/// All that was under way of it has ended.
void SupersededReads::answered(SupersededRead& read) {
    if (read.request_ && read.sufficient_ && read.request_->done == read.done_before_)
        owner_.brought(*std::exchange(read.request_, nullptr), read.part_);  // first after all
    if (read.open_ != 0 && read.stage_ == SupersededStage::reading) return release(read);
    read.stage_ = SupersededStage::unconfirmed;
    read.request_ = nullptr;
    windows_.keep(read.window_, read.transaction_, 0);
    owner_.windows_released();
    settle(read);
}

void SupersededReads::release(SupersededRead& read) {
    read.request_ = nullptr;
    read.stage_ = SupersededStage::releasing;
    // They are open until it is answered: nobody takes the window by the same key before.
    const Mask boxes = read.open_;
    read.unanswered_ += static_cast<std::size_t>(std::popcount(boxes));
    for (std::uint8_t place = 0; place < limits::boxes; ++place)
        if (contains(boxes, place)) owner_.send_release(read, read.transaction_, BoxIndex{place});
}

void SupersededReads::confirmed(SupersededRead& read, std::uint8_t place) {
    read.writers_.erase(place);
}

/// The read is over if nobody is left who could write for it.
void SupersededReads::settle(SupersededRead& read) {
    if (!read.writers_.empty() || read.stage_ != SupersededStage::unconfirmed) return;
    if (read.own_) {
        own_.close(*read.own_);
        owner_.windows_released();
    }
    const bool tells = read.host_is_told_;
    const auto arrival = read.arrival_;
    const auto session = read.session_;
    const auto command = read.host_command_;
    reads_.remove_if([&](const SupersededRead& each) { return &each == &read; });
    // A request may have superseded several.
    const bool is_last = std::ranges::none_of(reads_, [&](const SupersededRead& each) {
        return each.host_is_told_ && each.arrival_ == arrival;
    });
    if (tells && is_last) owner_.writers_gone(session, command);
}

void SupersededReads::let_go(Arrival request) {
    for (auto next = reads_.begin(); next != reads_.end();) {
        SupersededRead& read = *next++;  // it may end from inside
        if (read.arrival_ != request) continue;
        read.request_ = nullptr;
        if (read.stage_ == SupersededStage::reading && read.open_ != 0) release(read);
    }
}

bool SupersededReads::leaves_writers(Arrival request) {
    bool leaves = false;
    for (SupersededRead& read : reads_)
        if (read.arrival_ == request && !read.in_band_ && !read.writers_.empty())
            leaves = read.host_is_told_ = true;
    return leaves;
}

std::vector<wire::TransactionNumber> SupersededReads::box_lost(Mask places,
                                                               const wire::BoxIdentity& box) {
    std::vector<wire::TransactionNumber> left_open;
    for (SupersededRead& read : reads_) {
        if ((read.open_ & places) == 0) continue;
        read.open_ &= ~places;
        windows_.keep(read.window_, read.transaction_, read.open_);
        owner_.end_is_pending(box, read.transaction_);
        left_open.push_back(read.transaction_);
    }
    return left_open;
}

void SupersededReads::cannot_write(const wire::BoxIdentity& box) {
    for (auto next = reads_.begin(); next != reads_.end();) {
        SupersededRead& read = *next++;
        std::erase_if(read.writers_, [&](const auto& writer) { return writer.second == box; });
        settle(read);
    }
}

std::vector<wire::BoxIdentity> SupersededReads::writers() const {
    std::vector<wire::BoxIdentity> all;
    for (const SupersededRead& read : reads_)
        for (const auto& [place, box] : read.writers_) all.push_back(box);
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

Mask SupersededReads::boxes() const {
    Mask boxes = 0;
    for (const SupersededRead& read : reads_) boxes |= read.open_;
    return boxes;
}

}  // namespace weft::raid
