// SPDX-License-Identifier: Apache-2.0
// A volume of an array as its host sees it: a BlockDevice whose bytes never pass the controller.
// Every request's memory is registered under a tag of its own for as long as the request lives; the
// controller is told the tag, has boxes read or write there, and answers.
//
// When the session with the controller is lost, nothing is: what was not answered is asked for
// again in the next one, under the same command number and the same tag. A write then happens twice
// at worst, with the same bytes. What overlaps it was under way at the same time, and whoever asked
// for both was promised no order.
//
// A read may be answered while a box that was late for it can still write: it was served by others.
// Its memory is given back at once, and its tag kept, for what is still written there to go
// nowhere; a closed tag would end the connection, and all other transfers of that box. The tag is
// closed when the controller says that every box has confirmed, or when the session ends in which
// boxes were given it, for then all connections that were made under it are cut.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include "block/request_queue.hpp"
#include "iscsi/initiator_session.hpp"
#include "weft/rdma.hpp"
#include "wire/array_host.hpp"

namespace weft::node {

class HostDisk final : public BlockDevice {
public:
    static constexpr std::uint32_t block_size = 4096;
    struct Options {
        std::size_t under_way_max = 64;  ///< commands
        /// How long there may be no session before what waits fails.
        Duration patience = std::chrono::seconds(120);
        /// How long a box may keep memory of a request that has ended, by taking nothing of it.
        Duration lent_patience = std::chrono::seconds(5);
        /// Tags of reads that have ended, kept for boxes that are late. Beyond, each one more keeps
        /// a command from being used again.
        std::size_t kept_max = 256;
        /// How long commands may be kept so. Then the session is begun anew, which ends all that. A
        /// box confirms or is given up sooner.
        Duration kept_patience = std::chrono::seconds(20);
    };
    struct Holder {
        /// The session is over, and another must be begun with the same controller: it has
        /// forgotten us, or too much of ours is kept for the old one.
        std::function<void()> hello_again;
        /// Whoever still has bytes of the memory under this tag shall have them no longer.
        std::function<void(SteeringTag)> take_back;
        /// A box may not come any more, or again. Told before any request ends that knew of it.
        std::function<void(const wire::HostNews&)> heard;
    };

    HostDisk(World& world, std::shared_ptr<verbs::ProtectionDomain> domain, const Options& options,
             Holder holder);
    ~HostDisk() override;

    /// The controller has welcomed us: what waits goes. The session stays until lost() is called.
    void welcomed(iscsi::InitiatorSession& session, const wire::HostWelcome& welcome);
    /// The session is not to be used any more, and has let go of all commands or will.
    void lost();
    /// There will be no session again.
    void give_up(Error why);

    BlockTraits traits() const override;
    void submit(BlockRequest& request) override;

    std::uint64_t repeated() const { return repeated_count_; }
    /// Tags that are open to late boxes though their reads have ended.
    std::size_t kept() const { return kept_.size(); }
    bool idle() const { return wholes_.empty() && waiting_.empty(); }

private:
    /// A request, of which some parts may be under way.
    struct Whole {
        BlockRequest* request = nullptr;
        std::uint64_t begun = 0;  ///< octets for which there is or was a part
        std::size_t parts = 0;    ///< under way
        bool flushes = false;     ///< and its one part is not begun yet
        std::optional<Error> failure;
    };
    using WholePlace = std::list<Whole>::iterator;

    class Flight final : public iscsi::InitiatorCommand {
    public:
        explicit Flight(HostDisk& disk) : disk_(disk) {}
        void ended(const iscsi::CommandEnd& end) override { disk_.command_ended(*this, end); }

        std::unique_ptr<verbs::MemoryRegion> region;  ///< a tag; opened for each request
        std::uint8_t key = 0;
        WholePlace whole;
        wire::HostAction action{};
        wire::HostTransfer transfer{};
        std::array<std::byte, wire_size<wire::HostTransfer>()> parameters{};
        Buffer parameter_piece{};
        Instant since{};
        bool leaves_writers = false;  ///< the last answer said so

    private:
        HostDisk& disk_;
    };
    struct KeptTag {
        std::uint64_t command = 0;
        std::unique_ptr<verbs::MemoryRegion> region;  ///< discards what is written
        Instant since{};
    };

    static bool has_rest(const Whole& whole) {
        return !whole.failure && (whole.flushes || whole.begun < whole.request->length);
    }
    void launch_what_may();
    bool launch_next_part();
    /// `unsupported` if the memory is in too many pieces to make a block.
    Result<void> open_memory(Flight& flight);
    Result<void> open_tag(Flight& flight, std::vector<Buffer> pieces);
    bool keep_tag(Flight& flight);
    bool has_room_to_keep() const { return kept_.size() < options_.kept_max + blocked_.size(); }
    void close_tag_of(std::uint64_t command);
    void close_all_tags();
    void kept_too_long();
    Result<void> renew(Flight& flight);
    void set_free(Flight& flight);
    void send(Flight& flight);
    void command_ended(Flight& flight, const iscsi::CommandEnd& end);
    void hear(ConstBuffer descriptors);
    void answered(Flight& flight, const wire::HostAnswer& answer);
    void ask_later(Flight& flight);
    void later_has_come();
    void finish(Flight& flight, Result<void> outcome);
    void part_ended(Flight& flight, Result<void> outcome);
    void lent_too_long();
    void fail_all(Error why);
    void note_size(std::uint64_t size);

    World& world_;
    std::shared_ptr<verbs::ProtectionDomain> domain_;
    Options options_;
    Holder holder_;
    iscsi::InitiatorSession* session_ = nullptr;
    wire::HostSession number_{};
    std::uint32_t heard_ = 0;  ///< the number of the last news
    std::uint64_t size_ = 0;
    std::uint32_t request_limit_ = 0;
    std::uint64_t commands_ = 0;
    std::uint64_t repeated_count_ = 0;
    std::vector<std::unique_ptr<Flight>> flights_;
    std::vector<Flight*> free_;
    std::map<std::uint64_t, Flight*> again_;  ///< to be sent once more, by command number
    std::vector<Flight*> later_;              ///< the same, after a pause
    std::vector<Flight*> lent_;               ///< have ended, but for their memory
    std::list<KeptTag> kept_;                 ///< the oldest first
    std::vector<Flight*> blocked_;            ///< have ended, and too many tags are kept
    std::uint32_t released_ = 0;              ///< the number of the last release
    std::unique_ptr<Timer> kept_timer_;
    std::unique_ptr<Timer> lent_timer_;
    std::unique_ptr<Timer> pause_timer_;
    Duration pause_;
    std::unique_ptr<Timer> patience_timer_;
    std::optional<Error> gone_;
    std::list<Whole> wholes_;
    block::RequestQueue waiting_;
    bool launching_ = false;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace weft::node
