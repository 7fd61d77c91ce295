// SPDX-License-Identifier: Apache-2.0
// One connection: two ends, each with an engine to call, and a pipe each way.
//
// Engines are only ever called from the schedule, in visits. A visit tells what there is to tell
// and moves bytes both ways until nothing moves. An engine that wants nothing is not asked again
// before wake(), so one that forgets to say it hangs here rather than, now and then, in service.
// After each call the end is looked at afresh, because the call may have destroyed the stream and
// the engine with it. The link itself stays: the network lets go of it in an event of its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/clockwork.hpp"
#include "sim/link_options.hpp"
#include "sim/pipe.hpp"
#include "weft/world.hpp"

namespace weft::sim {

enum class LinkId : std::uint64_t {};
enum class Side : std::uint8_t { connector, acceptor };
constexpr Side other(Side side) {
    return side == Side::connector ? Side::acceptor : Side::connector;
}

class Link : public std::enable_shared_from_this<Link> {
public:
    /// What a link tells the network that holds it. All are called from the schedule.
    struct Owner {
        std::function<void(Link&)> wants_acceptor;  ///< a connection was asked for: accept, refuse
        std::function<void(LinkId)> is_over;        ///< both ends have left
        std::function<void(Link&, Side, ConstBuffer)> sends;  ///< from that end, as it will arrive
        /// When bytes of that end have left the lines it shares with others.
        std::function<Instant(Link&, Side, Instant ready, std::size_t bytes)> shares;
    };

    Link(Clockwork& clockwork, LinkId id, const LinkOptions& options, Address address, Owner owner);

    LinkId id() const { return id_; }
    const Address& address() const { return address_; }

    /// The machine an end is on, by name. The acceptor's is a guess until it has accepted.
    std::string& machine(Side side) { return at(side).machine; }
    bool has_left(Side side) const { return at(side).stage == Stage::left; }

    std::unique_ptr<Stream> connect(StreamEngine& engine);
    std::unique_ptr<Stream> accept();
    void refuse();
    /// Nobody answers, as when the machine is dark: the question is kept until it is not.
    void leave_unanswered();

    // What a stream asks for its end.
    void drive(Side side, StreamEngine& engine);
    void wake(Side side);
    void abandon(Side side);
    std::string peer(Side side) const;
    Address address_of(Side side) const;
    std::size_t segment_size() const { return options_.segment_bytes; }

    // What can go wrong. None of these calls an engine before it returns.
    void reset();
    void half_open(Side gone);
    void partition(Side from) { at(from).outgoing.set_partitioned(true); }
    void heal();
    void clog(Duration extra_delay);
    /// One bit of what this end sends next arrives as another: TCP's checksum misses some.
    void corrupt(Side from) { at(from).corrupts_next = true; }
    /// The machine of this end lost its power: the end is never heard of again.
    void darken(Side side);
    /// It has power again, and answers questions about connections it knows nothing of.
    void lighten(Side side) { at(other(side)).outgoing.set_receiver_dark(false); }
    /// The program at this end stands still: its kernel takes bytes, and tells it of nothing.
    void hold(Side side) { at(side).held = true; }
    void release(Side side);

private:
    enum class Stage : std::uint8_t {
        absent,      ///< an acceptor nobody has asked yet
        connecting,  ///< waits for an answer
        answered,    ///< the answer is there, and the engine has not been told
        open,
        left
    };
    struct End {
        End(Clockwork& clockwork, const LinkOptions& options, Link& link, Side side);

        Stage stage;
        std::string machine;
        StreamEngine* engine = nullptr;
        Pipe outgoing;
        std::vector<std::byte> inbox;  ///< arrived; the first inbox_taken are the engine's already
        std::size_t inbox_taken = 0;
        bool wants_nothing = false;  ///< until wake()
        /// Sent, and still lent to us as a TCP needs it that may have to send again.
        std::vector<ConstBuffer> lent;
        std::vector<std::byte> lent_bytes;  ///< what must be there until the engine hears sent()
        Appointment acknowledgement;
        bool corrupts_next = false;  ///< of what is sent, one bit
        bool peer_said_goodbye = false;
        bool held = false;             ///< the program stands still
        std::optional<Error> failure;  ///< the engine is to be told
        Appointment visit;
        Appointment tick;

        ConstBuffer unread() const { return ConstBuffer(inbox).subspan(inbox_taken); }
    };

    End& at(Side side) { return side == Side::connector ? connector_ : acceptor_; }
    const End& at(Side side) const { return side == Side::connector ? connector_ : acceptor_; }
    std::uint64_t subject(Side side) const;

    void plan_visit(Side side, Instant when);
    void visit(Side side);
    bool receive(Side side);
    void took(Side side, std::size_t count);
    bool send(Side side);
    void settle(Side side);
    void tick(Side side);
    std::size_t draw_cut(std::size_t available);
    ConstBuffer gather_pending(End& end);
    void check_pending_again(End& end);
    void keep_lent(Side side, std::size_t count);
    void check_lent(const End& end) const;
    void acknowledge(Side side);

    void arrived(Side side, Piece piece);
    void bytes_arrived(Side side, ConstBuffer bytes);
    void gave_up(Side side);
    void lose_unread(Side side);
    void fail(Side side, Error error);
    Error reason_for_reset(Side side) const;
    void tell_closed(Side side, std::optional<Error> why);
    void mark_left(Side side);

    Clockwork& clockwork_;
    LinkId id_;
    LinkOptions options_;
    Address address_;
    Owner owner_;
    End connector_;
    End acceptor_;
    std::vector<std::byte> gathered_;  ///< reused by gather_pending()
    std::vector<ConstBuffer> gathered_from_;
};

/// The LinkId of a stream made by a simulated world.
LinkId link_of(const Stream& stream);

/// Whether it means the machine of whoever says it.
bool is_loopback(const Address& address);

/// "elm:3260", "[::1]:3260" or a path.
std::string to_text(const Address& address);

}  // namespace weft::sim
