// SPDX-License-Identifier: Apache-2.0
// An export of some NBD server as a BlockDevice. The same contract drives it as drives the server.
//
// Requests submitted before the handshake is done wait; so do those beyond the number under way.
// Waiting costs no memory: they chain through the requests themselves. When the stream is lost,
// every request completes with Code::disconnected; when the server falls silent, with
// Code::timed_out.
//
// Makers and the holder are told last, when all else of a call is done: any of them may submit
// more, and whoever hears the last may destroy the client.
#pragma once

#include <functional>
#include <vector>

#include "base/ring.hpp"
#include "block/request_queue.hpp"
#include "nbd/client_handshake.hpp"
#include "nbd/coverage.hpp"
#include "weft/world.hpp"

namespace weft::nbd {

class Client final : public BlockDevice, public StreamEngine {
public:
    struct Holder {
        std::function<void()> wake;  ///< tell the stream to ask again
        /// Once: the handshake is done, or failed. Requests submitted before hear later than this.
        std::function<void(Result<void>)> opened;
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
    enum class Open : std::uint8_t { not_yet, to_tell, told };

    static constexpr unsigned cookie_index_bits = 32;
    /// A request under way. Its index is the low half of the cookie, `generation` the high half.
    struct Flight {
        BlockRequest* request = nullptr;
        std::uint32_t generation = 0;
        std::array<std::byte, wire_size<wire::nbd::RequestHeader>()> header{};
        bool header_only = true;  ///< no payload goes with it
        bool sent = false;
        bool answered = false;
        bool flush_follows = false;  ///< a durable change on a server that knows only flush
        bool finished = false;       ///< in done_: its maker is about to hear
        Coverage placed{};           ///< of a read: which of its bytes have a place to come to
        bool status_told = false;
        Result<void> outcome{};
    };
    /// An outcome for the maker of a request; if there is no request, for the holder.
    struct News {
        BlockRequest* request;
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
    void dispatch(Flight& flight, const wire::nbd::RequestHeader& header);
    std::uint64_t next_cookie(Flight& flight) const;
    Result<Flight*> find(std::uint64_t cookie);
    /// It has been sent and answered.
    void land(Flight& flight);
    void finish(Flight& flight);
    bool has_news() const;
    News take_news();
    /// The last thing every call from outside does.
    void tell();
    std::uint32_t index_of(const Flight& flight) const {
        return static_cast<std::uint32_t>(&flight - flights_.data());
    }
    bool idle() const { return free_.size() == flights_.size(); }
    bool owed_an_answer() const {
        return stage_ == Stage::handshake || free_.size() + done_.size() < flights_.size();
    }

    Holder holder_;
    Stage stage_ = Stage::handshake;
    ClientReceiver receiver_;
    ClientHandshake handshake_;
    Outbox outbox_;
    std::uint64_t signs_of_life_ = 1;  ///< bytes that moved, and waits that began
    std::uint64_t signs_at_check_ = 0;
    std::optional<Instant> next_check_;  ///< none before the first tick, which tells us the time
    bool goodbye_queued_ = false;
    Open open_ = Open::not_yet;
    bool telling_ = false;
    std::optional<Error> fault_;  ///< why it failed
    bool mute_ = false;  ///< dropped the server: what was lent stays, and nothing more is offered

    std::vector<Flight> flights_;
    std::vector<std::uint32_t> free_;
    Ring<std::uint32_t> to_send_;
    Ring<std::uint32_t> done_;  ///< flights whose makers have yet to hear
    std::size_t front_sent_ = 0;
    block::RequestQueue waiting_;

    wire::nbd::ChunkHeader chunk_;  ///< the one whose body or payload is arriving
    Flight* receiving_ = nullptr;
};

}  // namespace weft::nbd
