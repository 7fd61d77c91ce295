// SPDX-License-Identifier: Apache-2.0
// The controller's half of a volume: takes hosts' requests, keeps those apart that touch the same
// rows, makes plans and sends their orders turn by turn. It never sees data. When a box fails amid
// a request it says so, undoes what was staged, and waits to be told what the volume is now; then
// the request is planned anew, from the host's memory.
#pragma once

#include <list>
#include <map>
#include <vector>

#include "raid/box.hpp"
#include "raid/plan.hpp"

namespace weft::raid {

enum class HostOperation : std::uint8_t { read, write, flush };

/// A request is its maker's, who keeps it until completed() is called.
class HostRequest {
public:
    HostOperation operation{};
    bool durable = false;  ///< of a write: outlives the power when it is answered
    Range range{};
    PartyAccess memory{};  ///< the host's
    wire::HostSession session{};
    std::uint64_t command = 0;
    /// Sent before, to a controller that did not answer: its parity may be half written, so it is
    /// made anew rather than changed.
    bool repeated = false;
    /// Boxes cannot reach this host: its data goes by way of the controller.
    bool in_band = false;
    /// Of a host that is the controller itself, in-band: its memory, reached by no tag.
    Buffer local{};

    /// Once; may be from inside submit().
    virtual void completed(Result<void> outcome) = 0;

protected:
    ~HostRequest() = default;
};

class VolumeEngineOwner {
public:
    virtual void carry(BoxIndex box, CommandTicket ticket, const EncodedOrder& order) = 0;
    /// Under which tag peers reach a box's window while this transaction uses it.
    virtual SteeringTag window_tag(BoxIndex box, std::uint32_t window,
                                   wire::TransactionNumber transaction) = 0;
    /// A request is stuck until set_volume() says what to do without this box, or with it again.
    virtual void box_failed(BoxIndex suspect, BoxIndex reporter, wire::ArrayOutcome why) = 0;

protected:
    ~VolumeEngineOwner() = default;
};

class VolumeEngine {
public:
    VolumeEngine(VolumeEngineOwner& owner, const PlanOptions& options, std::uint32_t windows);

    /// What the volume is from now on: at the start, and after every change of membership, which
    /// must be lasting by then. Requests that were stuck go on. Refuses what is no volume.
    Result<void> set_volume(wire::ClusterIdentity cluster, wire::Epoch epoch,
                            const wire::ArrayVolume& volume);
    void submit(HostRequest& request);
    void answered(CommandTicket ticket, const wire::ArrayAnswer& answer);
    /// Nothing more will come from this box: what it has not answered has failed.
    void lost(BoxIndex box);

    std::size_t requests() const { return runs_.size(); }

private:
    enum class Stage : std::uint8_t {
        waiting,  ///< for its rows, for a window, or for the volume to be put right
        running,  ///< a turn of orders is out
        ending,   ///< windows are being closed
    };
    struct Run {
        HostRequest* request = nullptr;  ///< none once it is answered
        Range range{};
        bool exclusive = false;
        Stage stage = Stage::waiting;
        bool stuck = false;   ///< until set_volume()
        bool failed = false;  ///< an order of this turn was
        Plan plan;
        std::size_t next = 0;  ///< the first order of the turn to come
        std::size_t unanswered = 0;
        Mask open = 0;  ///< boxes whose window is open
        std::uint32_t window = 0;
        wire::TransactionNumber transaction{};
        wire::Generation generation{};  ///< of the volume it was planned for
    };
    struct Sent {
        std::list<Run>::iterator run;
        BoxIndex box{};
        bool closes = false;
        std::vector<Party> parties;
    };
    using RunPlace = std::list<Run>::iterator;

    bool may_start(RunPlace run) const;
    void start_what_may();
    void start(RunPlace run);
    void send_turn(RunPlace run);
    void send_end(RunPlace run, wire::ArrayAction action);
    void turn_ended(RunPlace run);
    void answer_host(RunPlace run, Result<void> outcome);
    void order_failed(const Sent& sent, const wire::ArrayAnswer& answer);
    CommandTicket remember(RunPlace run, BoxIndex box, bool closes, std::vector<Party> parties);
    wire::ArrayAddress address_of(BoxIndex box) const;
    OrderEnvelope envelope_of(const Run& run, BoxIndex box);
    std::vector<PartyAccess> accesses_of(const Run& run);

    VolumeEngineOwner& owner_;
    PlanOptions options_;
    std::optional<Layout> layout_;
    Health health_;
    wire::ClusterIdentity cluster_{};
    wire::Epoch epoch_{};
    wire::ArrayVolume volume_{};
    std::list<Run> runs_;  ///< in the order they came
    std::map<CommandTicket, Sent> sent_;
    std::vector<std::uint32_t> free_windows_;
    std::uint64_t transactions_ = 0, tickets_ = 0;
    bool starting_ = false;
};

}  // namespace weft::raid
