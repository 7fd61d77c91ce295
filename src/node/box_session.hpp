// SPDX-License-Identifier: Apache-2.0
// A controller's session with one box: an iSCSI session whose only traffic is the vendor's command
// (wire/scsi_array.hpp). Commands reach the box in the order they are given. A session that is lost
// takes all its commands with it, none of which is ever sent again by itself: what became of them
// is for the volume to find out. Then a new one is begun, again and again, until this is destroyed;
// of a box in several networks over one after the other.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "node/iscsi_initiator.hpp"
#include "wire/scsi_array.hpp"

namespace weft::node {

/// What a box said to a command. The data is valid during the call only.
struct BoxReply {
    wire::ArrayAnswer answer{};
    ConstBuffer data{};
};

class BoxSession {
public:
    struct Holder {
        std::function<void()> up;
        /// All commands have been told by then. Told once at least, if the box is not there.
        std::function<void(Error)> down;
    };
    static constexpr Duration silence_usual = std::chrono::seconds(10);
    /// A box that says nothing else is pinged so often, and four times in a shorter silence.
    static constexpr Duration ping_interval_most = std::chrono::seconds(1);
    struct Options {
        std::vector<Address> addresses;  ///< in each network, the preferred first; one at least
        std::string target_name;
        std::string initiator_name;
        std::string key{};  ///< of the cluster; empty: nobody proves anything
        /// A box that has said nothing for so long is lost. One that answers pings is not, however
        /// long it takes for a command: it is slow, and its own disk is for it to watch.
        Duration silence = silence_usual;
    };
    using Told = std::function<void(Result<BoxReply>)>;

    static constexpr std::size_t commands_max = 4096;  ///< waiting or under way

    /// The transport must outlive this. Nothing is told from inside.
    BoxSession(World& world, IscsiTransport& transport, Options options, Holder holder);
    BoxSession(const BoxSession&) = delete;
    BoxSession& operator=(const BoxSession&) = delete;
    /// What was not told by then is told as disconnected.
    ~BoxSession();

    bool is_up() const { return up_; }
    /// For the next session, if this one is lost. Nothing happens if there are none.
    void reach_at(const std::vector<Address>& addresses);
    /// `room_in`: octets of Data-In that may come. `told` is called once, never from inside.
    void send(const wire::ArrayCommandBlock& block, std::vector<std::byte> parameters,
              std::size_t room_in, Told told);
    /// Ends the session and begins a new one: what the box says cannot be right.
    void drop(Error why);

private:
    class Command;

    void begin();
    void came_up();
    void gave_up(Error why);
    void retire(Command& command, Result<BoxReply> reply);

    World& world_;
    IscsiTransport& transport_;
    Options options_;
    Holder holder_;
    std::shared_ptr<IscsiInitiator> initiator_;
    std::list<std::unique_ptr<Command>> commands_;
    /// The same for every session: what the one before left on its way must not come to the box
    /// behind what the next one says.
    const std::uint64_t session_number_;
    std::unique_ptr<Timer> retry_;
    std::unique_ptr<Timer> unheard_;  ///< in one of several networks: the next is tried
    std::size_t at_ = 0;              ///< which of the addresses
    Duration pause_;
    bool up_ = false;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace weft::node
