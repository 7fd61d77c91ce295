// SPDX-License-Identifier: Apache-2.0
// A world for one StreamEngine, in memory: hands it bytes, takes its bytes, and sleeps until woken
// as a real world would, so that an engine which forgets to wake its stream is caught.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>

#include "support/golden.hpp"
#include "weft/takes_ahead.hpp"
#include "weft/world.hpp"

namespace weft::test {

class EngineDriver {
public:
    explicit EngineDriver(StreamEngine& engine) : engine_(engine) {}

    /// How many of `count` > 0 bytes move at once; all of them unless set.
    std::function<std::size_t(std::size_t count)> cut = [](std::size_t count) { return count; };
    /// Whether the next bytes are offered as read ahead before they are brought where they belong;
    /// only for an engine that takes such.
    std::function<bool()> reads_ahead = [] { return false; };
    /// False: the peer does not read, so nothing the engine sends leaves.
    bool peer_listens = true;

    /// What the engine's holder is to call.
    void wake() { woken_ = may_want_ = true; }

    /// The peer sends; what the engine does not want yet waits.
    void receive(ConstBuffer octets) {
        if (unread() == 0) unread_.clear(), read_ = 0;
        unread_.insert(unread_.end(), octets.begin(), octets.end());
        run();
    }
    /// Moves bytes until nothing moves. Closes the stream when the engine has finished.
    void run() {
        woken_ = false;
        while (!closed_ && (move_in() || move_out())) {
        }
        if (!closed_ && engine_.finished() && pending_size() == 0) close(std::nullopt);
    }
    /// What a world does next: runs if it was woken. If not, there must be nothing to do.
    void run_if_woken() {
        if (woken_) return run();
        if (closed_) return;
        EXPECT_TRUE(!peer_listens || pending_size() == 0) << "bytes to send, and no wake";
        EXPECT_TRUE(unread() == 0 || engine_.want().empty()) << "bytes wanted, and no wake";
        EXPECT_FALSE(engine_.finished()) << "finished, and no wake";
    }
    void close(std::optional<Error> why) {
        closed_ = true;
        engine_.closed(why);
    }

    bool closed() const { return closed_; }
    std::size_t unread() const { return unread_.size() - read_; }
    /// All the engine has sent since this was last asked.
    Bytes take_sent() { return std::exchange(sent_, {}); }

private:
    bool move_in() {
        if (unread() == 0 || !may_want_) return false;
        if (reads_ahead()) {
            auto* ahead = dynamic_cast<TakesAhead*>(&engine_);
            auto taken = ahead->take_ahead({unread_.data() + read_, cut(unread())});
            read_ += taken;
            if (taken > 0) return true;
        }
        Buffer place = engine_.want();
        may_want_ = !place.empty();
        if (!may_want_) return false;
        auto count = cut(std::min(place.size(), unread()));
        std::memcpy(place.data(), unread_.data() + read_, count);
        read_ += count;
        engine_.filled(count);
        return true;
    }
    bool move_out() {
        auto size = peer_listens ? pending_size() : 0;
        if (size == 0) return false;
        std::array<ConstBuffer, 3> pieces;
        auto used = engine_.pending(pieces);
        auto count = cut(size);
        for (std::size_t left = count, i = 0; i < used && left > 0; ++i) {
            auto part = pieces[i].first(std::min(left, pieces[i].size()));
            sent_.insert(sent_.end(), part.begin(), part.end());
            left -= part.size();
        }
        engine_.sent(count);
        return true;
    }
    std::size_t pending_size() {
        std::array<ConstBuffer, 3> pieces;
        std::size_t size = 0;
        for (std::size_t i = 0, used = engine_.pending(pieces); i < used; ++i) {
            EXPECT_FALSE(pieces[i].empty()) << "an empty piece to send";
            size += pieces[i].size();
        }
        return size;
    }

    StreamEngine& engine_;
    Bytes unread_;  ///< what came, of which the engine has taken the first read_
    std::size_t read_ = 0;
    Bytes sent_;
    bool woken_ = false;
    bool may_want_ = true;  ///< false once it wanted nothing: only a wake lets the world ask again
    bool closed_ = false;
};

}  // namespace weft::test
