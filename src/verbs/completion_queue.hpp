// SPDX-License-Identifier: Apache-2.0
// Where ended work is reported. Bounded: a queue too small for what its queue pairs may report
// overflows, and then nobody can trust it any more.
#pragma once

#include "base/ring.hpp"
#include "verbs/announcer.hpp"
#include "weft/verbs.hpp"

namespace weft::verbs {

class CompletionQueueObject final : public CompletionQueue, private Announced {
public:
    CompletionQueueObject(std::shared_ptr<Announcer> announcer, std::size_t capacity,
                          std::function<void()> notify);
    ~CompletionQueueObject() override;

    std::size_t poll(std::span<Completion> into) override;
    void arm(Wanted wanted) override;
    std::size_t capacity() const override { return completions_.capacity(); }
    Result<void> resize(std::size_t capacity) override;

    /// False if there is no room: the completion is lost.
    bool push(const Completion& completion);
    std::size_t size() const { return completions_.size(); }

private:
    void announce() override { notify_(); }

    std::shared_ptr<Announcer> announcer_;
    Ring<Completion> completions_;
    std::function<void()> notify_;
    std::optional<Wanted> armed_;
};

}  // namespace weft::verbs
