// SPDX-License-Identifier: Apache-2.0
#include "verbs/completion_queue.hpp"

#include <algorithm>

namespace weft::verbs {

CompletionQueueObject::CompletionQueueObject(std::shared_ptr<DeviceCore> core, std::size_t capacity,
                                             std::function<void()> notify)
    : core_(std::move(core)), completions_(capacity) {
    if (notify) notify_ = std::make_shared<const std::function<void()>>(std::move(notify));
}

CompletionQueueObject::~CompletionQueueObject() {
    core_->forget_events_about(static_cast<const CompletionQueue*>(this));
}

std::size_t CompletionQueueObject::poll(std::span<Completion> into) {
    auto count = std::min(into.size(), completions_.size());
    for (std::size_t i = 0; i < count; ++i) {
        auto& oldest = completions_.front();
        into[i] = oldest.completion;
        if (oldest.unpolled) --*oldest.unpolled;
        completions_.pop_front();
    }
    return count;
}

void CompletionQueueObject::arm(Wanted wanted) {
    // Armed for any is armed for solicited ones too.
    if (armed_ != Wanted::any) armed_ = wanted;
}

Result<void> CompletionQueueObject::resize(std::size_t capacity) {
    if (capacity > limits::completions)
        return Error{.code = Code::out_of_range, .where = limits::completions};
    if (capacity < completions_.size() || capacity == 0)
        return Error{.code = Code::out_of_range,
                     .where = static_cast<std::uint32_t>(completions_.size())};
    Ring<Entry> larger(capacity);
    for (; !completions_.empty(); completions_.pop_front()) larger.push_back(completions_.front());
    completions_ = std::move(larger);
    return {};
}

bool CompletionQueueObject::push(const Completion& completion, std::uint32_t* unpolled) {
    if (completions_.full()) {
        if (!std::exchange(overflowed_, true))
            core_->raise({.kind = AsyncEvent::Kind::completions_overflowed,
                          .queue_pair = completion.queue_pair,
                          .completions = this});
        return false;
    }
    completions_.push_back({completion, unpolled});
    if (unpolled) ++*unpolled;
    bool solicited = completion.solicited || completion.status != Status::success;
    if (armed_ && notify_ && (*armed_ == Wanted::any || solicited)) {
        armed_.reset();
        core_->announcer->add(*this);
    }
    return true;
}

void CompletionQueueObject::forget(const std::uint32_t& unpolled) {
    for (std::size_t i = 0; i < completions_.size(); ++i)
        if (completions_[i].unpolled == &unpolled) completions_[i].unpolled = nullptr;
}

void CompletionQueueObject::announce() {
    auto notify = notify_;
    (*notify)();
}

}  // namespace weft::verbs
