// SPDX-License-Identifier: Apache-2.0
// One socket and the engine it serves. The public Stream is a handle on it; the connection itself
// outlives its handle by one turn, so that an engine may drop its stream from inside any call.
//
// Receiving is readv(the wanted place, staging): payload lands where it belongs, and what follows
// it waits in staging, so that many small messages cost one call. Where the place is a header's,
// all of it goes by way of staging. Sending happens once per turn, after everything that might add
// to it: many replies go out in one sendmsg.
//
// epoll is used edge-triggered. The connection remembers what it knows (readable_, blocked_), and
// neither a pause in reading nor its end costs a call. While a program polls, those that lately
// received are read from without asking epoll.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "linux/event_loop.hpp"
#include "linux/lingering_sockets.hpp"
#include "linux/socket_address.hpp"
#include "weft/linux_world.hpp"
#include "weft/takes_ahead.hpp"

namespace weft::linux {

/// What all sockets of a world share.
struct SocketCommons {
    SocketCommons(EventLoop& the_loop, const LinuxWorldOptions& the_options)
        : loop(the_loop),
          options(the_options),
          staging(limits::staging_bytes),
          lingering(loop, staging) {}

    EventLoop& loop;
    LinuxWorldOptions options;
    /// Filled and emptied within one receive; never holds anything between two.
    std::vector<std::byte> staging;
    LingeringSockets lingering;
};

class Connection final : public DescriptorHandler,
                         public ReadyItem,
                         public HotItem,
                         public TimerEntry,
                         public LateFreed {
public:
    /// For the listener: a stream that waits for drive().
    static std::unique_ptr<Stream> accepted(SocketCommons& commons, Descriptor socket,
                                            const SocketAddress& peer);
    /// Tries the addresses one after the other. Refusals come as closed(), later.
    static std::unique_ptr<Stream> connecting(SocketCommons& commons,
                                              std::vector<SocketAddress> addresses,
                                              StreamEngine& engine,
                                              std::optional<SocketAddress> from);

    explicit Connection(SocketCommons& commons);
    ~Connection() override = default;

    void drive(StreamEngine& engine);
    void wake();
    const std::string& peer() const { return peer_; }
    const Address& local() const { return local_; }
    const Address& remote() const { return remote_; }
    std::size_t segment_size() const;
    std::optional<StreamCondition> condition() const;
    void set_traffic_class(std::uint8_t octet);
    /// The handle is gone: close, and call the engine no more.
    void abandon();

    void ready(std::uint32_t events) override;
    void serve() override;
    void try_now() override;
    void expired() override;

private:
    enum class Stage : std::uint8_t { waiting, connecting, open, closed };

    // connection.cpp: how it begins and ends, and its deadline.
    void use(StreamEngine& engine);
    void begin();
    void try_next_address();
    Result<void> bind_own_end();
    void mark_packets();
    void attempt_ended();
    void follow_deadline();
    void finish();
    void stop_watching();
    void close();
    void end(std::optional<Error> why);

    // connection_transfer.cpp: how bytes move.
    void receive();
    void discard();
    void end_broken();
    void end_failed(int number);
    Buffer staging_beside(Buffer place);
    std::size_t read_into(Buffer place, Buffer staging);
    ConstBuffer hand_out(ConstBuffer bytes);
    void take_leftover();
    void send();
    void block();

    SocketCommons& commons_;
    Descriptor socket_;
    Stage stage_ = Stage::waiting;
    StreamEngine* engine_ = nullptr;     ///< null before drive() and after the end
    TakesAhead* takes_ahead_ = nullptr;  ///< the same engine, if it is one

    std::uint32_t interest_ = 0;  ///< what epoll watches for
    bool readable_ = false;       ///< there may be something to read
    bool at_end_ = false;         ///< the peer sends no more: read on until told so
    bool broken_ = false;         ///< reset: not even what was sent before matters
    bool blocked_ = false;        ///< the kernel's send buffer is full
    bool serving_ = false;        ///< asking the engine anyway: wake() is no news

    unsigned short_staging_reads_left_ = 0;  ///< reads that are still amid long payloads
    std::vector<std::byte> leftover_;        ///< read, and not wanted yet
    std::size_t leftover_taken_ = 0;

    std::string peer_;
    Address local_, remote_;                ///< kept: a socket that was reset no longer knows them
    std::vector<SocketAddress> addresses_;  ///< while connecting: still to be tried, last first
    std::optional<SocketAddress> from_;     ///< the own end, where it was chosen
    std::optional<std::uint8_t> traffic_class_;
    Error last_failure_{.code = Code::io_failed};
};

}  // namespace weft::linux
