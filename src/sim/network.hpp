// SPDX-License-Identifier: Apache-2.0
// Who listens where, and every connection there is; what can go wrong with them, by name.
//
// Machines are known by name only. A TCP address reaches the listener that was given the same
// host, or one on the machine of that name that listens on all addresses. Loopback addresses and
// Unix sockets reach listeners on the caller's own machine.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/clockwork.hpp"
#include "sim/line.hpp"
#include "sim/link.hpp"
#include "sim/link_options.hpp"
#include "weft/world.hpp"

namespace weft::sim {

class Network {
public:
    explicit Network(Clockwork& clockwork) : clockwork_(clockwork) {}
    Network(const Network&) = delete;
    Network& operator=(const Network&) = delete;

    /// For connections made from now on; the second for those to one address only.
    void set_options(const LinkOptions& options) { default_options_ = options; }
    void set_options(const Address& address, const LinkOptions& options);

    void add_machine(const std::string& name) { machines_.insert(name); }
    /// A name stands for itself, if it is a machine's or somebody listens there.
    Result<std::vector<Address>> resolve(const Address& address) const;

    Result<std::unique_ptr<Listener>> listen(const std::string& machine, Address address,
                                             World::Accepted accepted);
    Result<std::unique_ptr<Stream>> connect(const std::string& machine, const Address& address,
                                            StreamEngine& engine);

    /// The connections with at least one end there, oldest first.
    std::vector<LinkId> links() const;

    /// The machine that began it; empty if it is over.
    std::string connector_of(LinkId link);
    /// The one whose connecting end has this address.
    std::optional<LinkId> find(const Address& connector) const;

    /// Some octets on their way. Those of one link and end follow each other without a gap.
    struct Sending {
        LinkId link;
        Side from;
        const std::string& sender;    ///< the machine of that end
        const std::string& receiver;  ///< and of the other
        ConstBuffer octets;
    };
    /// Sees everything that any machine sends from now on: for checkers.
    void watch(std::function<void(const Sending&)> watcher) { watcher_ = std::move(watcher); }

    // What can go wrong. A link that is already over is left alone.

    /// Both ends hear `disconnected`; what was on its way is lost.
    void reset(LinkId link);
    /// One end hears `disconnected`; the other hears nothing. If it sends, it hears `timed_out`
    /// after LinkOptions::give_up_after; if it only waits, it waits until its own deadline.
    void half_open(LinkId link, Side gone);
    /// Nothing that one end sends arrives before heal(). Bytes are not lost unless the sender
    /// gives up first.
    void partition(LinkId link, Side from);
    void heal(LinkId link);
    /// Everything sent from now on takes longer, until it is clogged by zero.
    void clog(LinkId link, Duration extra_delay);
    /// One bit of what `from` sends next arrives as another, and nobody is told.
    void corrupt(LinkId link, Side from);

    /// These two machines no longer reach each other, though all others reach both: connections
    /// between them are reset, and none is made before unite().
    void separate(const std::string& one, const std::string& other);
    void unite(const std::string& one, const std::string& other);

    /// The same one way: what `from` begins does not come to `to`, and no more what it has begun.
    void cut_off(const std::string& from, const std::string& to);
    void reach_again(const std::string& from, const std::string& to) { cut_off_.erase({from, to}); }

    /// From now on all that a machine sends and receives goes over lines of this kind: one for all
    /// it sends, and one for all it receives.
    void set_lines(const std::string& machine, const LineOptions& options);
    /// Octets that had to be sent again, since they found a queue full or were lost.
    std::uint64_t octets_sent_again() const { return sent_again_; }

    /// The programs of a machine stand still, as after SIGSTOP: its kernel goes on to take bytes,
    /// and connections, and its peers cannot tell it from a slow one.
    void pause(const std::string& machine);
    void resume(const std::string& machine);
    /// Nothing of connections to this address arrives before regain(), either way, and new ones are
    /// not answered: a network is lost. Other addresses of that machine are not concerned.
    void lose(const std::string& host);
    void regain(const std::string& host);
    /// The same for connections from this machine only, before regain_all().
    void lose_from(const std::string& machine, const std::string& host);
    void regain_all();

    /// The machine's listeners and connections are gone without a word, and nobody answers there.
    void power_cut(const std::string& machine);
    /// The same for the others. What is left of the machine's program hears that its connections
    /// are gone, and reaches nobody: so that it can be taken apart.
    void go_dark(const std::string& machine);
    /// It answers again, though only to say that it knows nothing of earlier connections.
    void power_on(const std::string& machine);

private:
    class Registration;
    struct ListenerRecord {
        std::string machine;
        Address address;
        World::Accepted accepted;
    };
    using ListenerId = std::uint64_t;

    Link* find(LinkId link);
    const LinkOptions& options_for(const Address& address) const;
    ListenerRecord* find_listener(const std::string& from_machine, const Address& address);
    void answer(Link& link);
    Instant pass(Link& link, Side from, Instant ready, std::size_t bytes);
    bool is_taken(const std::string& machine, const Address& address) const;

    Clockwork& clockwork_;
    std::function<void(const Sending&)> watcher_;
    LinkOptions default_options_;
    std::vector<std::pair<Address, LinkOptions>> options_;
    std::map<LinkId, std::shared_ptr<Link>> links_;
    std::map<ListenerId, std::shared_ptr<ListenerRecord>> listeners_;
    std::set<std::string> machines_;
    std::set<std::string> dark_machines_;
    bool is_lost(Link& link) const;
    std::set<std::string> lost_hosts_;
    std::set<std::pair<std::string, std::string>> lost_from_;
    std::set<std::pair<std::string, std::string>> separated_;  ///< the lesser name first
    std::set<std::pair<std::string, std::string>> cut_off_;    ///< who, from whom
    struct Lines {
        Line out, in;
    };
    std::map<std::string, Lines> lines_;
    std::uint64_t sent_again_ = 0;
    struct Accepting {
        World::Accepted accepted;
        std::unique_ptr<Stream> stream;
    };
    std::map<std::string, std::vector<Accepting>> paused_;  ///< and who has connected meanwhile
    std::uint64_t last_link_ = 0;
    ListenerId last_listener_ = 0;
    std::uint16_t last_free_port_ = 49151;  // the next is the first that is free for such use
};

}  // namespace weft::sim
