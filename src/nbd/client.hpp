// SPDX-License-Identifier: Apache-2.0
// An export of some NBD server as a BlockDevice. The same contract drives it as drives the server.
//
// Requests submitted before the handshake is done wait; so do those beyond the number under way.
// Waiting costs no memory: they chain through the requests themselves. When the stream is lost,
// every request completes with Code::disconnected; when the server falls silent, with
// Code::timed_out.
#pragma once

#include <functional>
#include <vector>

#include "base/ring.hpp"
#include "block/request_queue.hpp"
#include "nbd/client_handshake.hpp"
#include "weft/world.hpp"

namespace weft::nbd {

class Client final : public BlockDevice, public StreamEngine {
public:
    struct Holder {
        std::function<void()> wake;                ///< tell the stream to ask again
        std::function<void(Result<void>)> opened;  ///< once: the handshake is done, or failed
    };

    Client(std::string export_name, Holder holder);
    ~Client() override;

    BlockTraits traits() const override;
    void submit(BlockRequest& request) override;

    /// Say goodbye when all that is under way is answered. Later requests fail.
    void disconnect();

    const Agreement& agreement() const { return handshake_.agreement(); }
    const std::string& refusal() const { return handshake_.refusal(); }

    Buffer want() override;
    void filled(std::size_t count) override;
    std::size_t pending(std::span<ConstBuffer> pieces) override;
    void sent(std::size_t count) override;
    bool finished() const override;
    std::optional<Instant> deadline() const override;
    void tick(Instant now) override;
    void closed(std::optional<Error> why) override;

private:
    enum class Stage : std::uint8_t { handshake, running, leaving, failed };

    /// A request under way. Its index is the low half of the cookie, `generation` the high half.
    struct Flight {
        BlockRequest* request = nullptr;
        std::uint32_t generation = 0;
        std::array<std::byte, wire_size<wire::nbd::RequestHeader>()> header{};
        bool header_only = true;  ///< no payload goes with it
        bool sent = false;
        bool answered = false;
        std::uint64_t read_bytes = 0;  ///< of a read in chunks: what has been placed
        bool status_told = false;
        Result<void> outcome;
    };

    void fail(Error why);
    /// The server broke the protocol: it is told nothing more.
    void drop(Error why);
    /// We end the handshake, and say so if we may.
    void give_up(Error why);
    Result<void> take(const ClientReceiver::Event& event);
    Result<void> advance(Result<ClientHandshake::Next> next);
    Result<void> take_simple(const wire::nbd::SimpleReply& reply);
    Result<void> take_chunk(const wire::nbd::ChunkHeader& chunk);
    Result<void> take_body(ConstBuffer body);
    Result<void> take_error(ConstBuffer body);
    void note_error(wire::nbd::ErrorNumber error);
    Result<void> take_data_offset(ConstBuffer body);
    Result<void> take_hole(ConstBuffer body);
    Result<void> take_status(ConstBuffer body);
    Result<void> chunk_end();

    void launch_waiting();
    void launch(BlockRequest& request);
    Result<Flight*> find(std::uint64_t cookie);
    void retire(Flight& flight);
    bool idle() const { return free_.size() == flights_.size(); }
    bool owed_an_answer() const { return stage_ == Stage::handshake || !idle(); }

    Holder holder_;
    Stage stage_ = Stage::handshake;
    ClientReceiver receiver_;
    ClientHandshake handshake_;
    Outbox outbox_;
    std::uint64_t signs_of_life_ = 1;  ///< bytes that moved, and waits that began
    std::uint64_t signs_at_check_ = 0;
    Instant next_check_;  ///< in the past at first: the first tick tells us the time
    bool goodbye_queued_ = false;
    bool mute_ = false;  ///< dropped the server: what was lent stays, and nothing more is offered
    bool opened_told_ = false;

    std::vector<Flight> flights_;
    std::vector<std::uint32_t> free_;
    Ring<std::uint32_t> to_send_;
    std::size_t front_sent_ = 0;
    block::RequestQueue waiting_;

    wire::nbd::ChunkHeader chunk_;  ///< the one whose body or payload is arriving
    Flight* receiving_ = nullptr;
};

}  // namespace weft::nbd
