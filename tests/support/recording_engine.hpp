// SPDX-License-Identifier: Apache-2.0
// A StreamEngine without a protocol: it sends what it is told, keeps what it hears, and fails the
// test when a world breaks the contract: a call after closed(), more bytes than there was room for.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "weft/world.hpp"

namespace weft::test {

class RecordingEngine : public StreamEngine {
public:
    virtual ~RecordingEngine() = default;

    // What it does.
    /// Add to it, then wake the stream. It never moves: a world may hold on to what it was lent.
    std::vector<std::byte> outgoing = with_room(1u << 20);
    std::size_t room = 4096;  ///< 0: it does not want to read now
    bool finish = false;
    std::optional<Instant> wanted_tick;

    // What it heard.
    std::vector<std::byte> received;
    std::size_t sent_count = 0;
    int opened_count = 0;
    int closed_count = 0;
    std::optional<Error> why;
    std::vector<Instant> ticks;

    // Called last in the call of that name, so the engine may be destroyed there.
    std::function<void()> on_opened, on_filled, on_sent, on_tick, on_closed;

    void opened() override {
        expect_alive("opened");
        EXPECT_EQ(++opened_count, 1);
        call(on_opened);
    }
    Buffer want() override {
        expect_alive("want");
        place_.resize(room);
        return place_;
    }
    void filled(std::size_t count) override {
        expect_alive("filled");
        ASSERT_GT(count, 0u);
        ASSERT_LE(count, place_.size());
        received.insert(received.end(), place_.begin(), place_.begin() + count);
        call(on_filled);
    }
    std::size_t pending(std::span<ConstBuffer> pieces) override {
        expect_alive("pending");
        // In two pieces where there is room for them, so that both ways are seen.
        ConstBuffer left = ConstBuffer(outgoing).subspan(sent_count);
        if (left.empty() || pieces.empty()) return 0;
        pieces[0] = left.first((left.size() + 1) / 2);
        if (pieces.size() == 1 || left.size() == 1) return 1;
        pieces[1] = left.subspan(pieces[0].size());
        return 2;
    }
    void sent(std::size_t count) override {
        expect_alive("sent");
        ASSERT_LE(count, outgoing.size() - sent_count);
        sent_count += count;
        call(on_sent);
    }
    bool finished() const override {
        expect_alive("finished");
        return finish;
    }
    std::optional<Instant> deadline() const override {
        expect_alive("deadline");
        return wanted_tick;
    }
    void tick(Instant now) override {
        expect_alive("tick");
        EXPECT_TRUE(wanted_tick && *wanted_tick <= now);
        wanted_tick.reset();
        ticks.push_back(now);
        call(on_tick);
    }
    void closed(std::optional<Error> reason) override {
        expect_alive("closed");
        ++closed_count;
        why = reason;
        call(on_closed);
    }

    void say(ConstBuffer bytes) {
        EXPECT_LE(outgoing.size() + bytes.size(), outgoing.capacity());
        outgoing.insert(outgoing.end(), bytes.begin(), bytes.end());
    }

private:
    static std::vector<std::byte> with_room(std::size_t size) {
        std::vector<std::byte> octets;
        octets.reserve(size);
        return octets;
    }
    void expect_alive(const char* call) const {
        EXPECT_EQ(closed_count, 0) << call << "() was called after closed()";
    }
    static void call(const std::function<void()>& hook) {
        // A copy, because the hook may destroy the engine that holds it.
        if (auto copy = hook) copy();
    }

    std::vector<std::byte> place_;
};

}  // namespace weft::test
