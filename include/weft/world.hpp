// SPDX-License-Identifier: Apache-2.0
// The outside: time, streams, disks, chance. There are two: linux::World and sim::World.
//
// The world drives, engines answer. An engine says where the next bytes belong and which bytes
// should go out; the world moves them, with readv and writev or with a copy in simulated time.
// Everything happens on one thread: the one that runs the world.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/block_device.hpp"
#include "weft/instant.hpp"
#include "weft/result.hpp"

namespace weft {

/// Where a stream can be reached: a TCP host and port, or a Unix socket's path.
struct Address {
    std::string host;  ///< name or number; IPv6 without brackets
    std::uint16_t port = 0;
    std::string path;  ///< not empty: a Unix socket, and host and port mean nothing

    static Address tcp(std::string host, std::uint16_t port) { return {std::move(host), port, {}}; }
    static Address unix_socket(std::string path) { return {{}, 0, std::move(path)}; }
    bool is_unix() const { return !path.empty(); }
    bool operator==(const Address&) const = default;
};

/// A protocol on a byte stream, as the world sees it. The world calls; the engine never blocks.
class StreamEngine {
public:
    /// A connection that was asked for is there. Not called for accepted ones.
    virtual void opened() {}

    /// Where the next bytes belong. Empty: do not read now; Stream::wake() says when to ask again.
    virtual Buffer want() = 0;
    /// `count` > 0 bytes were put at the front of want().
    virtual void filled(std::size_t count) = 0;

    /// Writes the next outgoing pieces into `pieces`, in order, and returns how many. They stay
    /// where they are, unchanged, until sent() has covered them or closed() was called: a world may
    /// send them again from there. Asking again before sent() gives the same bytes, and perhaps
    /// more; or, once the engine has failed, nothing. What it lent it leaves in place even then.
    virtual std::size_t pending(std::span<ConstBuffer> pieces) = 0;
    /// The first `count` bytes of pending() are gone and may be reused.
    virtual void sent(std::size_t count) = 0;

    /// Nothing more will be received: when pending() runs empty, the world closes the stream.
    virtual bool finished() const = 0;

    /// When tick() should be called; asked after every other call.
    virtual std::optional<Instant> deadline() const { return std::nullopt; }
    virtual void tick(Instant /*now*/) {}

    /// The stream is gone: the peer left, the network failed, or finished() was honoured (then
    /// `why` is empty). The world's last call to the engine. Destroying the Stream here is fine.
    virtual void closed(std::optional<Error> why) = 0;

protected:
    ~StreamEngine() = default;
};

/// How a stream's network is, as far as the system knows.
struct StreamCondition {
    Duration round_trip{};              ///< smoothed
    std::uint64_t segments_sent = 0;    ///< with those that were sent again
    std::uint64_t segments_resent = 0;  ///< because they, or their acknowledgement, were lost
};

/// The world's end of a connection. Destroying it closes at once; the engine hears nothing more.
/// It may be destroyed at any time, also from inside a call the world makes to its engine.
class Stream {
public:
    virtual ~Stream() = default;
    /// Begin calling `engine`. Streams that were accepted start so; connected ones have started.
    ///
    /// Once the stream is open it may be given another engine, so that a protocol can turn into
    /// another on the same connection; also from inside the filled(), sent() or tick() of the one
    /// before, which is called no more: not even closed(). Where the one ends the other begins, to
    /// the byte: what the one has not been given with filled() goes to the other, however far the
    /// world has read ahead. The one before must have nothing lent: all it offered in pending() is
    /// sent(). The new one does not hear opened().
    virtual void drive(StreamEngine& engine) = 0;
    /// The engine has something to send, or wants bytes again, or has finished. Cheap, and never
    /// calls the engine from inside: the world asks it soon after.
    virtual void wake() = 0;
    /// Who is at the other end, in words for a log line.
    virtual std::string peer() const = 0;

    /// The two ends in numbers, from opened() on (accepted: from the beginning), also when the
    /// stream is closed. A Unix socket without a path gives an empty address.
    virtual Address local() const = 0;
    virtual Address remote() const = 0;
    /// The most bytes that leave in one packet at present; 0 where there is no such thing, or
    /// nobody knows.
    virtual std::size_t segment_size() const = 0;
    /// None where the system does not say.
    virtual std::optional<StreamCondition> condition() const { return std::nullopt; }
    /// The octet of IP's header by which routers tell kinds of traffic apart, for the packets that
    /// leave from now on. A wish: where there are no packets, or it is not granted, nothing
    /// happens.
    virtual void set_traffic_class(std::uint8_t /*octet*/) {}
};

class Listener {
public:
    virtual ~Listener() = default;  ///< stops listening; accepted streams live on
    /// What it really listens on: a port asked for as 0 is known here.
    virtual Address address() const = 0;
};

class Timer {
public:
    virtual ~Timer() = default;
    virtual void set(Instant when) = 0;  ///< replaces an earlier time
    virtual void cancel() = 0;
};

struct DiskOptions {
    std::string path;
    bool read_only = false;
    bool direct = false;  ///< past the page cache (O_DIRECT)
};

class World {
public:
    virtual ~World() = default;

    virtual Instant now() const = 0;
    virtual Date date() const = 0;
    virtual std::uint64_t random() = 0;

    /// Calls `task` soon, from the world's own loop and not from inside the caller.
    virtual void defer(std::function<void()> task) = 0;
    virtual std::unique_ptr<Timer> make_timer(std::function<void()> task) = 0;

    using Accepted = std::function<void(std::unique_ptr<Stream>)>;
    virtual Result<std::unique_ptr<Listener>> listen(const Address& address, Accepted accepted) = 0;
    /// The engine hears opened() or closed() later, never from inside this call. `from`: the own
    /// end, where it matters; its port may be 0.
    virtual Result<std::unique_ptr<Stream>> connect(const Address& address, StreamEngine& engine,
                                                    const Address& from) = 0;
    Result<std::unique_ptr<Stream>> connect(const Address& address, StreamEngine& engine) {
        return connect(address, engine, {});
    }

    /// The addresses in numbers that a name stands for, in the order connect() tries them. Never
    /// none. May have to wait for a name server: names are for set-up.
    virtual Result<std::vector<Address>> resolve(const Address& address) = 0;

    virtual Result<std::unique_ptr<BlockDevice>> open_disk(const DiskOptions& options) = 0;

    // Disks that are made and removed while a program runs. A world may have none, and says
    // `unsupported`. `done` is called later, never from inside, when it is lasting or will not be;
    // one path is asked for one thing at a time. All must be done before the world ends.

    /// From then on there is a disk of at least this size to be opened under the path: a new one,
    /// empty, or the one there was, which keeps what it has. It has all its space, if that can be.
    virtual void provide_disk(const std::string& /*path*/, std::uint64_t /*size*/,
                              std::function<void(Result<void>)> done) {
        defer([done = std::move(done)] { done(Error{.code = Code::unsupported}); });
    }
    /// It is gone for good. Nobody may have it open. Not an error if there was none.
    virtual void remove_disk(const std::string& /*path*/, std::function<void(Result<void>)> done) {
        defer([done = std::move(done)] { done(Error{.code = Code::unsupported}); });
    }

    // Small files, read and replaced as a whole: what must be known again after a crash. A world
    // may have none, and says `unsupported`.

    /// `not_found`: there is no such file. Waits for the disk: for set-up.
    virtual Result<std::vector<std::byte>> read_file(const std::string& /*path*/) {
        return Error{.code = Code::unsupported};
    }
    /// Whatever happens, the file then has the old contents or the new, whole. `done` is called
    /// later, never from inside, when the new are on stable storage or will not be. Replacements
    /// happen in the order they were asked for; all must be done before the world ends.
    virtual void replace_file(const std::string& /*path*/, ConstBuffer /*contents*/,
                              std::function<void(Result<void>)> done) {
        defer([done = std::move(done)] { done(Error{.code = Code::unsupported}); });
    }
};

}  // namespace weft
