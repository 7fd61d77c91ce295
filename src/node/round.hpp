// SPDX-License-Identifier: Apache-2.0
// Several things that are asked for at once, and what follows when the last has been answered.
#pragma once

#include <functional>
#include <memory>

namespace weft::node {

class Round : public std::enable_shared_from_this<Round> {
public:
    /// `over` is called once: from inside the last step, or end() if there was none.
    static std::shared_ptr<Round> make(std::function<void()> over) {
        return std::shared_ptr<Round>(new Round(std::move(over)));
    }
    /// To be called once, when that thing is answered.
    std::function<void()> step() {
        ++waiting_;
        return [self = shared_from_this()] { self->end(); };
    }
    /// All has been asked for.
    void end() {
        if (--waiting_ == 0) over_();
    }

private:
    explicit Round(std::function<void()> over) : over_(std::move(over)) {}

    std::size_t waiting_ = 1;
    std::function<void()> over_;
};

}  // namespace weft::node
