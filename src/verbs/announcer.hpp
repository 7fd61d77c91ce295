// SPDX-License-Identifier: Apache-2.0
// Tells applications that something has happened, from the world's loop and never from inside the
// call that made it happen: they may then do what they like, also destroy who told them.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "weft/world.hpp"

namespace weft::verbs {

/// Something with news for an application.
class Announced {
public:
    virtual void announce() = 0;

protected:
    ~Announced() = default;
};

class Announcer {
public:
    explicit Announcer(World& world) : world_(world), self_(std::make_shared<Announcer*>(this)) {}
    ~Announcer() { *self_ = nullptr; }
    Announcer(const Announcer&) = delete;

    /// announce() is called soon, once however often this is.
    void add(Announced& one) {
        if (std::find(waiting_.begin(), waiting_.end(), &one) != waiting_.end()) return;
        waiting_.push_back(&one);
        if (scheduled_) return;
        scheduled_ = true;
        world_.defer([self = self_] {
            if (*self) (*self)->announce_all();
        });
    }
    /// It is going away.
    void forget(Announced& one) {
        std::replace(waiting_.begin(), waiting_.end(), &one, static_cast<Announced*>(nullptr));
    }

private:
    void announce_all() {
        scheduled_ = false;
        // What is added now waits for the next turn; who is forgotten now is not called.
        auto count = waiting_.size();
        auto self = self_;
        for (std::size_t i = 0; i < count; ++i) {
            auto* one = std::exchange(waiting_[i], nullptr);
            if (one) one->announce();
            if (!*self) return;  // the device is gone, and this with it
        }
        waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(count));
    }

    World& world_;
    std::shared_ptr<Announcer*> self_;
    std::vector<Announced*> waiting_;
    bool scheduled_ = false;
};

}  // namespace weft::verbs
