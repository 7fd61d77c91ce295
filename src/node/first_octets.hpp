// SPDX-License-Identifier: Apache-2.0
// Tells apart what connections to one port speak, by the first octets they send: iSCSI over TCP,
// MPA, which opens an RDMA connection ("MPA ID Req Frame"), or JSON, by which people manage an
// array. Nothing is answered and nothing lost: what was read goes with the stream.
//
// Who connects and does not say enough in time is closed, and no more than so many are waited for
// at once.
#pragma once

#include <array>
#include <functional>
#include <list>
#include <memory>

#include "weft/world.hpp"

namespace weft::node {

enum class Spoken : std::uint8_t {
    mpa,
    iscsi,  ///< or whatever is none of the others: the iSCSI layer knows what to make of it
    json,   ///< the first octet is '{', which begins no Login Request
};

/// As if the world brought these octets now: before Stream::drive(), for an engine that takes over
/// a stream some of which was read already. False if it does not want them all.
bool feed(StreamEngine& engine, ConstBuffer octets);

class FirstOctets {
public:
    struct Options {
        std::size_t waiting_max = 1024;
        Duration patience = std::chrono::seconds(10);
    };
    /// Called from inside the stream, which may be given its engine there: see Stream::drive(). The
    /// octets are valid until it returns.
    using Told = std::function<void(std::unique_ptr<Stream>, Spoken, ConstBuffer read_already)>;

    FirstOctets(World& world, Options options, Told told)
        : world_(world), options_(options), told_(std::move(told)) {}
    FirstOctets(const FirstOctets&) = delete;
    FirstOctets& operator=(const FirstOctets&) = delete;

    /// Where too many wait, the one that has been silent longest is closed for it: or whoever
    /// opens connections and says nothing would keep everybody out.
    void add(std::unique_ptr<Stream> stream);
    /// Closes all that have not said enough.
    void clear() { waiting_.clear(); }
    std::size_t waiting() const { return waiting_.size(); }

private:
    class Reader final : public StreamEngine {
    public:
        Reader(FirstOctets& owner, Instant until) : owner_(owner), until_(until) {}

        Buffer want() override;
        void filled(std::size_t count) override;
        std::size_t pending(std::span<ConstBuffer>) override { return 0; }
        void sent(std::size_t) override {}
        bool finished() const override { return late_; }
        std::optional<Instant> deadline() const override { return until_; }
        void tick(Instant now) override { late_ = now >= until_; }
        void closed(std::optional<Error>) override { owner_.take(*this); }

        std::unique_ptr<Stream> stream;
        std::list<Reader>::iterator self;

    private:
        FirstOctets& owner_;
        Instant until_;
        bool late_ = false;
        std::array<std::byte, 16> octets_{};
        std::size_t have_ = 0;
    };

    std::list<Reader> take(Reader& reader);

    World& world_;
    Options options_;
    Told told_;
    std::list<Reader> waiting_;
};

}  // namespace weft::node
