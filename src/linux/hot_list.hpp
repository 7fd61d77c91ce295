// SPDX-License-Identifier: Apache-2.0
// Those who have lately received, and so are likely to receive next. A program that polls tries
// them by reading: one call that either brings the bytes or says that there are none, where asking
// epoll first would make it two.
//
// The list is short, because every one on it costs a call per poll. Who received nothing for many
// polls leaves it, and who has waited longest makes room for a newcomer; both are heard of through
// epoll again. Items never change places, so the list may change while it is being tried.
#pragma once

#include <array>
#include <cstddef>

#include "linux/limits.hpp"

namespace weft::linux {

class HotItem {
public:
    HotItem() = default;
    HotItem(const HotItem&) = delete;
    HotItem& operator=(const HotItem&) = delete;

    /// Receives, if there is anything to receive.
    virtual void try_now() = 0;
    bool is_hot() const { return place_ != nullptr; }

protected:
    virtual ~HotItem() { cool_down(); }
    void cool_down() {
        if (place_) *place_ = nullptr;
        place_ = nullptr;
    }

private:
    friend class HotList;
    HotItem** place_ = nullptr;
    unsigned fruitless_tries_ = 0;
};

class HotList {
public:
    /// This one has just received.
    void add(HotItem& item) {
        item.fruitless_tries_ = 0;
        if (item.is_hot()) return;
        HotItem** place = &places_[0];
        for (auto& each : places_)
            if (*place && (!each || each->fruitless_tries_ > (*place)->fruitless_tries_))
                place = &each;
        if (*place) (*place)->cool_down();
        *place = &item;
        item.place_ = place;
    }

    /// Returns how many were tried.
    std::size_t try_all() {
        std::size_t tried = 0;
        for (auto& place : places_) {
            if (!place) continue;
            if (++place->fruitless_tries_ > limits::fruitless_tries_while_hot) {
                place->cool_down();
                continue;
            }
            ++tried;
            place->try_now();
        }
        return tried;
    }

private:
    std::array<HotItem*, limits::hot_connections> places_{};
};

}  // namespace weft::linux
