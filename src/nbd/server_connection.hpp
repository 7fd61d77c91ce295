// SPDX-License-Identifier: Apache-2.0
// One client of an NBD server: a StreamEngine from greeting to goodbye.
//
// It receives with a ServerReceiver, haggles with a Handshake and serves with a Transmission; this
// class only passes things between them and knows when the stream is over.
#pragma once

#include <functional>
#include <optional>

#include "nbd/transmission.hpp"
#include "weft/world.hpp"

namespace weft::nbd {

class ServerConnection final : public StreamEngine {
public:
    /// What the connection needs of the one who holds it.
    struct Holder {
        std::function<void()> wake;  ///< tell the stream to ask again
        std::function<void()> gone;  ///< the stream is closed and the device is done with us
    };

    ServerConnection(const Exports& exports, block::BufferPool& pool, Statistics& statistics,
                     Instant accepted_at, Holder holder);

    Buffer want() override;
    void filled(std::size_t count) override;
    std::size_t pending(std::span<ConstBuffer> pieces) override;
    void sent(std::size_t count) override;
    bool finished() const override;
    std::optional<Instant> deadline() const override;
    void tick(Instant now) override;
    void closed(std::optional<Error> why) override;

    /// Take no further request; answer those under way, then close.
    void dismiss();

    /// It has not chosen an export yet.
    bool shaking_hands() const { return stage_ == Stage::handshake; }
    /// Why the client was dropped, if it was.
    std::optional<Error> fault() const { return fault_; }
    /// The export it chose, once it has.
    const Export* chosen() const { return transmission_ ? &handshake_.chosen() : nullptr; }

private:
    enum class Stage : std::uint8_t { handshake, transmission, leaving, failed, closed };

    void fail(Error why);
    Result<void> take(const ServerReceiver::Event& event);
    Result<void> take_option(const ReceivedOption& option);
    Result<void> take_request(const wire::nbd::RequestHeader& header);
    void device_or_room_changed();

    Holder holder_;
    block::BufferPool& pool_;
    Statistics& statistics_;
    Instant handshake_deadline_;
    Stage stage_ = Stage::handshake;
    ServerReceiver receiver_;
    Outbox outbox_;
    Handshake handshake_;
    std::optional<Transmission> transmission_;
    std::optional<Error> fault_;
};

}  // namespace weft::nbd
