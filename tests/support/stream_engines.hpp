// SPDX-License-Identifier: Apache-2.0
// Engines to try a world's streams with: one sends a known pattern and checks what comes back,
// one echoes. Both ask for odd sizes, so that bytes are cut where no protocol would cut them.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "weft/world.hpp"

namespace weft::test {

/// An endless stream of bytes that can be lent and checked piecewise.
class Pattern {
public:
    explicit Pattern(unsigned seed) : block_(period) {
        std::mt19937 random(seed);
        for (auto& octet : block_) octet = static_cast<std::byte>(random());
    }
    ConstBuffer at(std::uint64_t offset, std::size_t most) const {
        auto start = static_cast<std::size_t>(offset % period);
        return ConstBuffer(block_).subspan(start, std::min(most, period - start));
    }
    bool matches(std::uint64_t offset, ConstBuffer bytes) const {
        while (!bytes.empty()) {
            auto expected = at(offset, bytes.size());
            if (std::memcmp(expected.data(), bytes.data(), expected.size()) != 0) return false;
            offset += expected.size();
            bytes = bytes.subspan(expected.size());
        }
        return true;
    }

private:
    static constexpr std::size_t period = 1'048'573;  // a prime: shares no boundary with anything
    std::vector<std::byte> block_;
};

/// What every engine of a test remembers.
class TestEngine : public StreamEngine {
public:
    std::unique_ptr<Stream> stream;
    bool was_opened = false;
    bool was_closed = false;
    std::optional<Error> why;

    void opened() override { was_opened = true; }
    void closed(std::optional<Error> reason) override {
        was_closed = true;
        why = reason;
    }
    bool finished() const override { return false; }
    Buffer want() override { return {}; }
    void filled(std::size_t) override {}
    std::size_t pending(std::span<ConstBuffer>) override { return 0; }
    void sent(std::size_t) override {}

    virtual ~TestEngine() = default;
};

/// Sends back whatever comes, out of a buffer of its own that may run full.
class Echo : public TestEngine {
public:
    Echo(std::size_t capacity, unsigned seed) : room_(capacity), random_(seed) {}

    std::uint64_t pauses = 0;  ///< how often it wanted nothing

    Buffer want() override {
        auto free = room_.size() - used_;
        if (free == 0) {
            ++pauses;
            paused_ = true;
            return {};
        }
        auto end = (first_ + used_) % room_.size();
        auto run = std::min(free, room_.size() - end);
        // Once said, a place stays the same until filled: others may ask twice.
        if (want_ == 0 || want_ > run) want_ = 1 + random_() % run;
        return Buffer(room_).subspan(end, want_);
    }
    void filled(std::size_t count) override {
        used_ += count;
        want_ = 0;
    }
    std::size_t pending(std::span<ConstBuffer> pieces) override {
        std::size_t count = 0, at = first_, left = used_;
        while (left > 0 && count < pieces.size()) {
            auto run = std::min({left, room_.size() - at, std::size_t{997}});
            pieces[count++] = ConstBuffer(room_).subspan(at, run);
            at = (at + run) % room_.size();
            left -= run;
        }
        return count;
    }
    void sent(std::size_t count) override {
        first_ = (first_ + count) % room_.size();
        used_ -= count;
        if (std::exchange(paused_, false)) stream->wake();
    }

private:
    std::vector<std::byte> room_;
    std::size_t first_ = 0, used_ = 0, want_ = 0;
    bool paused_ = false;
    std::mt19937 random_;
};

/// Sends `total` bytes of a pattern and finishes when all of them have come back.
class Checker : public TestEngine {
public:
    Checker(const Pattern& pattern, std::uint64_t total, std::size_t most_at_once, unsigned seed)
        : pattern_(pattern), total_(total), place_(most_at_once), random_(seed) {}

    std::uint64_t received = 0;
    std::uint64_t gone = 0;
    bool all_matched = true;

    Buffer want() override {
        if (want_ == 0) want_ = 1 + random_() % place_.size();
        return Buffer(place_).first(want_);
    }
    void filled(std::size_t count) override {
        all_matched &= pattern_.matches(received, ConstBuffer(place_).first(count));
        received += count;
        want_ = 0;
    }
    std::size_t pending(std::span<ConstBuffer> pieces) override {
        std::size_t count = 0;
        auto at = gone;
        while (at < total_ && count < pieces.size()) {
            auto most = std::min<std::uint64_t>(total_ - at, place_.size());
            pieces[count] = pattern_.at(at, static_cast<std::size_t>(most));
            at += pieces[count++].size();
        }
        return count;
    }
    void sent(std::size_t count) override { gone += count; }
    bool finished() const override { return received == total_; }

private:
    const Pattern& pattern_;
    std::uint64_t total_;
    std::vector<std::byte> place_;
    std::size_t want_ = 0;
    std::mt19937 random_;
};

}  // namespace weft::test
