// SPDX-License-Identifier: Apache-2.0
// Tells applications that something has happened, from the world's loop and never from inside the
// call that made it happen: they may then do what they like, also destroy who told them.
#pragma once

#include <memory>

#include "verbs/waiting_list.hpp"
#include "weft/world.hpp"

namespace weft::verbs {

/// Something with news for an application. Destroyed, it has none.
class Announced : public Waiting {
public:
    /// May destroy this.
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
        waiting_.add(one);
        if (scheduled_) return;
        scheduled_ = true;
        world_.defer([self = self_] {
            if (*self) (*self)->announce_all();
        });
    }

private:
    void announce_all() {
        scheduled_ = false;
        // What is added now waits for the next turn. Any call may be the last: of one of these, or
        // of the device and this with it.
        WaitingList<Announced> turn;
        turn.take_all(waiting_);
        while (!turn.empty()) turn.pop_front().announce();
    }

    World& world_;
    std::shared_ptr<Announcer*> self_;
    WaitingList<Announced> waiting_;
    bool scheduled_ = false;
};

}  // namespace weft::verbs
