// SPDX-License-Identifier: Apache-2.0
// Where ended work is reported. Bounded: a queue too small for what its queue pairs may report
// overflows, and then nobody can trust it any more.
#pragma once

#include "base/ring.hpp"
#include "verbs/device_core.hpp"

namespace weft::verbs {

class CompletionQueueObject final : public CompletionQueue, private Announced {
public:
    CompletionQueueObject(std::shared_ptr<DeviceCore> core, std::size_t capacity,
                          std::function<void()> notify);
    ~CompletionQueueObject() override;

    std::size_t poll(std::span<Completion> into) override;
    void arm(Wanted wanted) override;
    std::size_t capacity() const override { return completions_.capacity(); }
    Result<void> resize(std::size_t capacity) override;

    /// False if there is no room: the completion is lost. The application hears so the first time.
    /// `unpolled`, if there is one, is how many are here of somebody's: one more, until it is
    /// taken.
    bool push(const Completion& completion, std::uint32_t* unpolled);
    /// Who counts there is gone; its completions stay.
    void forget(const std::uint32_t& unpolled);
    std::size_t size() const { return completions_.size(); }
    bool is_of(const DeviceCore& core) const { return core_.get() == &core; }

private:
    struct Entry {
        Completion completion{};
        std::uint32_t* unpolled = nullptr;
    };
    void announce() override;

    std::shared_ptr<DeviceCore> core_;
    Ring<Entry> completions_;
    std::shared_ptr<const std::function<void()>> notify_;  ///< it may destroy this, and so goes on
    std::optional<Wanted> armed_;
    bool overflowed_ = false;
};

}  // namespace weft::verbs
