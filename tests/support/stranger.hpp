// SPDX-License-Identifier: Apache-2.0
// A peer that is none of Weft's queue pairs: says what it was told to say, first perhaps an MPA
// request, and reads what it is sent without a word.
#pragma once

#include <array>
#include <vector>

#include "iwarp/startup.hpp"
#include "weft/world.hpp"

namespace weft::test {

class Stranger final : public StreamEngine {
public:
    using Bytes = std::vector<std::byte>;

    explicit Stranger(Bytes words = {}) : words_(std::move(words)) {}
    /// What an initiator with these wishes begins with.
    static Bytes request(const iwarp::Wishes& wishes) {
        auto startup = *iwarp::Startup::initiate(wishes, {}, {});
        std::array<ConstBuffer, 1> pieces;
        startup.pending(pieces);
        return {pieces[0].begin(), pieces[0].end()};
    }

    bool is_closed = false;
    bool listens = true;
    std::size_t heard = 0;
    std::unique_ptr<Stream> stream;  ///< for the test's convenience

    void say(ConstBuffer more) {
        words_.insert(words_.end(), more.begin(), more.end());
        stream->wake();
    }

    Buffer want() override { return listens ? Buffer(room_) : Buffer(); }
    void filled(std::size_t count) override { heard += count; }
    std::size_t pending(std::span<ConstBuffer> pieces) override {
        if (said_ == words_.size()) return 0;
        pieces[0] = ConstBuffer(words_).subspan(said_);
        return 1;
    }
    void sent(std::size_t count) override { said_ += count; }
    bool finished() const override { return false; }
    void closed(std::optional<Error>) override { is_closed = true; }

private:
    Bytes words_;
    std::size_t said_ = 0;
    std::array<std::byte, 256> room_{};
};

}  // namespace weft::test
