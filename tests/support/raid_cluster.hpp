// SPDX-License-Identifier: Apache-2.0
// Boxes that are the real engine, on disks and a network that are queues: what is asked waits in
// one list, and a draw decides what is answered next. Memory is reached by steering tag and no
// other way.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "raid/box.hpp"
#include "raid/checked_disk.hpp"
#include "raid/plan.hpp"
#include "support/raid_memory.hpp"

namespace weft::test {

/// Things that will happen, in an order that is drawn.
class Agenda {
public:
    explicit Agenda(std::uint64_t seed) : random(seed) {}
    void later(std::function<void()> what) { waiting_.push_back(std::move(what)); }
    bool step() {
        if (waiting_.empty()) return false;
        std::swap(waiting_[random() % waiting_.size()], waiting_.back());
        auto next = std::move(waiting_.back());
        waiting_.pop_back();
        next();
        return true;
    }
    void run() {
        while (step())
            ;
    }

    std::mt19937_64 random;

private:
    std::vector<std::function<void()>> waiting_;
};

/// What is asked for waits here while it is held, and then goes the way of everything.
class Holdable {
public:
    explicit Holdable(Agenda& agenda) : agenda_(agenda) {}
    void let_go() {
        held = false;
        for (auto& each : std::exchange(waiting_, {})) agenda_.later(std::move(each));
    }
    bool held = false;

protected:
    void later(std::function<void()> what, bool is_held) {
        if (is_held) return waiting_.push_back(std::move(what));
        agenda_.later(std::move(what));
    }

private:
    Agenda& agenda_;
    std::vector<std::function<void()>> waiting_;
};

/// All memory that somebody may reach, by tag.
using TagTable = std::map<SteeringTag, Buffer>;

class SlowDisk final : public BlockDevice, public Holdable {
public:
    SlowDisk(Agenda& agenda, std::size_t size) : Holdable(agenda), octets(size) {}
    BlockTraits traits() const override { return {.size = octets.size(), .minimum_block = 4096}; }
    void submit(BlockRequest& request) override {
        if (answers_at_once) return request.completed(perform(request));
        later([this, &request] { request.completed(perform(request)); }, held);
    }

    void grow(std::uint64_t size) {
        AlignedBytes larger(size);
        std::ranges::copy(octets.all(), larger.all().begin());
        octets = larger;
    }

    AlignedBytes octets;
    AlignedBytes lasting{0};  ///< as of the last flush: what is left when the power goes
    bool broken = false;
    bool answers_at_once = false;
    std::optional<std::uint64_t> no_room_from;  ///< what is written behind it finds none
    /// And something was: until it is written, as a PatientFilter has it.
    std::optional<std::uint64_t> refused_at;
    int flushes = 0, durable_writes = 0;
    std::set<std::uint64_t> rotten;  ///< blocks that read as another checksum's, until written

private:
    Result<void> perform(BlockRequest& request) {
        if (broken) return Error{Code::io_failed};
        if (request.operation == BlockOperation::flush) {
            lasting = octets;
            return ++flushes, Result<void>{};
        }
        const bool needs_room = request.operation == BlockOperation::write && no_room_from &&
                                request.offset >= *no_room_from;
        if (needs_room) {
            if (!refused_at) refused_at = request.offset;
            return Error{Code::exhausted};
        }
        if (request.operation == BlockOperation::write && refused_at &&
            request.offset <= *refused_at && *refused_at - request.offset < request.length)
            refused_at.reset();
        std::uint64_t length = 0;
        for (Buffer part : request.memory) length += part.size();
        for (auto block = request.offset / 4096; block * 4096 < request.offset + length; ++block)
            if (request.operation == BlockOperation::write)
                rotten.erase(block);
            else if (rotten.contains(block))
                return raid::checksum_mismatch(block * 4096);
        auto at = octets.all().subspan(request.offset);
        for (Buffer part : request.memory) {
            if (request.operation == BlockOperation::write)
                std::ranges::copy(part, at.begin());
            else
                std::ranges::copy(at.first(part.size()), part.begin());
            at = at.subspan(part.size());
        }
        if (request.operation == BlockOperation::write && request.durable) make_lasting(request);
        return {};
    }
    void make_lasting(const BlockRequest& request) {
        ++durable_writes;
        if (lasting.size() < octets.size()) {  // nothing was, so far
            AlignedBytes larger(octets.size());
            std::ranges::copy(lasting.all(), larger.all().begin());
            lasting = larger;
        }
        std::ranges::copy(octets.all().subspan(request.offset, request.length),
                          lasting.all().subspan(request.offset).begin());
    }
};

class Network final : public raid::PeerTransfers, public Holdable {
public:
    Network(Agenda& agenda, TagTable& tags) : Holdable(agenda), tags_(tags) {}
    void fetch(raid::PeerTransfer& transfer) override { begin(transfer, true); }
    void send(raid::PeerTransfer& transfer) override { begin(transfer, false); }

    std::optional<wire::BoxIdentity> out_of_reach;
    bool reaches_no_box = false;
    bool reaches_no_host = false;
    bool holds_for_hosts = false;  ///< what goes to or comes from hosts

private:
    void begin(raid::PeerTransfer& transfer, bool fetches) {
        const bool is_host = transfer.peer.party.kind == raid::PartyKind::host;
        auto carry_out = [this, &transfer, fetches] {
            if (transfer.peer.party.kind == raid::PartyKind::host && reaches_no_host)
                return transfer.completed(Error{Code::disconnected});
            if (transfer.peer.party.kind == raid::PartyKind::box &&
                (reaches_no_box || transfer.peer.identity == out_of_reach))
                return transfer.completed(Error{Code::disconnected});
            auto found = tags_.find(transfer.peer.tag);
            const auto at = transfer.peer.base + transfer.at;
            if (found == tags_.end() || !within(at, transfer.memory.size(), found->second.size()))
                return transfer.completed(Error{Code::access_denied});
            auto there = found->second.subspan(at, transfer.memory.size());
            if (fetches)
                std::ranges::copy(there, transfer.memory.begin());
            else
                std::ranges::copy(transfer.memory, there.begin());
            transfer.completed({});
        };
        later(carry_out, held || (is_host && holds_for_hosts));
    }
    TagTable& tags_;
};

class Windows final : public raid::StagingMemory {
public:
    static constexpr std::uint32_t of_a_box = 4;
    Windows(TagTable& tags, std::uint32_t windows)
        : tags_(tags),
          memory_(windows, AlignedBytes(0)),
          landings_(windows, AlignedBytes(0)),
          open_tags_(windows) {}
    std::uint32_t windows() const override { return static_cast<std::uint32_t>(open_tags_.size()); }
    std::uint32_t window_limit() const override { return 1 << 20; }
    Result<Buffer> open(std::uint32_t window, SteeringTag tag, std::uint32_t length) override {
        if (refusals > 0) return --refusals, Error{Code::exhausted};
        EXPECT_EQ(tags_.count(tag), 0u);
        memory_[window] = AlignedBytes(length);
        open_tags_[window] = tag;
        return tags_[tag] = memory_[window].all();
    }
    void close(std::uint32_t window) override { tags_.erase(open_tags_[window]); }
    Buffer landing(std::uint32_t window) override {
        if (landings_[window].size() == 0) landings_[window] = AlignedBytes(landing_size);
        return landings_[window].all();
    }
    /// The machine is off: nobody reaches any of it.
    void vanish() {
        for (auto tag : open_tags_) tags_.erase(tag);
    }
    int refusals = 0;  ///< so many of the next to open are refused

private:
    TagTable& tags_;
    std::vector<AlignedBytes> memory_, landings_;
    std::vector<SteeringTag> open_tags_;
};

class TestBox final : private raid::BoxOwner {
public:
    TestBox(Agenda& agenda, TagTable& tags, const wire::ArraySuperblock& superblock)
        : disk(agenda, raid::part_length(superblock)),
          network(agenda, tags),
          windows(tags, Windows::of_a_box),
          journaled(raid::has_journal(superblock)
                        ? std::make_unique<raid::JournaledDisk>(disk, superblock,
                                                                raid::JournaledDisk::Options{})
                        : nullptr),
          box(*this, disk, windows, network, superblock, 0, journaled.get()) {}

    /// With a journal, before any order: on a disk that is new, or after a power cut.
    void format() { begin(&raid::JournaledDisk::format); }
    void recover() { begin(&raid::JournaledDisk::recover); }

    /// The answers so far, by ticket.
    std::map<raid::CommandTicket, wire::ArrayAnswer> answers;
    std::map<raid::CommandTicket, std::vector<std::byte>> data;  ///< of those that had any
    bool records = true;
    /// Called with every answer, if set.
    std::function<void(raid::CommandTicket, const wire::ArrayAnswer&)> on_answer;
    std::function<void(raid::CommandTicket, const wire::ArrayAnswer&, ConstBuffer)> on_data;
    std::vector<wire::ArrayPeer> met;
    std::vector<wire::HostSession> admitted, dismissed;
    std::uint64_t room = 0;  ///< the disk may grow to
    SlowDisk disk;

private:
    void answer(raid::CommandTicket ticket, const wire::ArrayAnswer& answer) override {
        const bool first = !records || answers.emplace(ticket, answer).second;
        EXPECT_TRUE(first) << "answered twice";
        if (on_answer) on_answer(ticket, answer);
    }
    void answer_with_data(raid::CommandTicket ticket, const wire::ArrayAnswer& said,
                          ConstBuffer octets) override {
        if (records) data[ticket].assign(octets.begin(), octets.end());
        if (on_data) return on_data(ticket, said, octets);
        answer(ticket, said);
    }
    void begin(void (raid::JournaledDisk::*how)(raid::Told)) {
        if (!journaled) return;
        disk.answers_at_once = true;
        bool well = false;
        ((*journaled).*how)([&](Result<void> outcome) { well = outcome.has_value(); });
        EXPECT_TRUE(well) << "the journal is of no use";
        disk.answers_at_once = false;
    }
    void meet(std::span<const wire::ArrayPeer> boxes) override {
        met.assign(boxes.begin(), boxes.end());
    }
    void admit(const wire::ArrayHostAdmission& host) override { admitted.push_back(host.host); }
    void dismiss(wire::HostSession host) override { dismissed.push_back(host); }
    bool disk_is_full() const override { return disk.refused_at.has_value(); }
    Result<void> make_room(std::uint64_t octets) override {
        if (octets > room) return Error{Code::exhausted};
        disk.grow(octets);
        return {};
    }

public:
    Network network;
    Windows windows;
    std::unique_ptr<raid::JournaledDisk> journaled;
    raid::Box box;
};

/// A volume of such boxes, and a host with memory under a tag.
class RaidCluster {
public:
    RaidCluster(const raid::Layout& shape, std::uint64_t stripes, std::uint64_t seed,
                wire::ArrayConsistency consistency = wire::ArrayConsistency::none)
        : layout(shape), agenda(seed) {
        wire::ArraySuperblock superblock;
        superblock.cluster.octets[0] = 1;
        superblock.epoch = wire::Epoch{1};
        superblock.data_length = stripes * layout.chunk_bytes();
        auto& volume = superblock.volume;
        volume.consistency = consistency;
        volume.volume.octets[0] = 2;
        volume.generation = wire::Generation{1};
        volume.level = static_cast<std::uint8_t>(layout.level());
        volume.boxes = layout.boxes();
        volume.chunk_bytes = layout.chunk_bytes();
        volume.stripes = stripes;
        lay_out(superblock);
        for (std::uint8_t i = 0; i < layout.boxes(); ++i) {
            volume.members[i].box.octets[0] = static_cast<std::uint8_t>(10 + i);
            volume.members[i].state = wire::ArrayMemberState::current;
        }
        for (std::uint8_t i = 0; i < layout.boxes(); ++i) {
            superblock.place = i;
            superblock.box = volume.members[i].box;
            boxes.push_back(std::make_unique<TestBox>(agenda, tags, superblock));
            boxes.back()->format();
        }
    }

    /// Small: data right behind the superblocks, or behind a journal of some twenty requests.
    static void lay_out(wire::ArraySuperblock& superblock) {
        const bool journal = superblock.volume.consistency == wire::ArrayConsistency::journal;
        superblock.data_offset = 2 * wire::superblock_size;
        superblock.journal_offset = journal ? superblock.data_offset : 0;
        superblock.journal_length = journal ? journal_bytes : 0;
        const auto layout = raid::layout_of(superblock.volume);
        superblock.columns = journal && layout ? layout->data_columns() : std::uint8_t{0};
        superblock.data_offset += superblock.journal_length;
    }
    static constexpr std::uint64_t journal_bytes =
        raid::journal_ring_offset + 128 * wire::journal_block;

    wire::ArrayAddress address_of(unsigned box) const {
        const auto& known = boxes[box]->box.superblock();
        return {known.cluster, known.volume.volume, known.box, known.volume.generation,
                known.epoch};
    }

    static SteeringTag window_tag(unsigned box, std::uint64_t transaction) {
        return SteeringTag{static_cast<std::uint32_t>(0x1000 * (box + 1) + transaction % 0x1000)};
    }

    raid::CommandTicket tell(unsigned box, const raid::EncodedOrder& order) {
        raid::CommandTicket ticket{next_ticket_++};
        boxes[box]->box.receive(ticket, order.command_block, order.parameters);
        return ticket;
    }
    raid::CommandTicket tell(unsigned box, wire::ArrayAction action, std::uint64_t transaction,
                             ConstBuffer parameters) {
        return tell(box, {{action,
                           wire::TransactionNumber{transaction},
                           static_cast<std::uint32_t>(parameters.size()),
                           {}},
                          {parameters.begin(), parameters.end()}});
    }
    wire::ArrayOutcome outcome(unsigned box, raid::CommandTicket ticket) {
        EXPECT_EQ(boxes[box]->answers.count(ticket), 1u) << "not answered";
        return boxes[box]->answers[ticket].outcome;
    }

    /// The order as it goes to its box.
    raid::EncodedOrder encoded(const raid::Plan& plan, const raid::Order& order,
                               std::uint64_t transaction, std::uint32_t window) {
        std::vector<raid::PartyAccess> accesses{{raid::the_host, host_tag, 0, {}},
                                                {raid::the_controller, controller_tag, 0, {}}};
        for (std::uint8_t i = 0; i < layout.boxes(); ++i)
            accesses.push_back({raid::party(raid::BoxIndex{i}), window_tag(i, transaction), 0,
                                boxes[i]->box.superblock().box});
        const unsigned box = number(order.to.box);
        raid::OrderEnvelope envelope{.address = address_of(box),
                                     .transaction = wire::TransactionNumber{transaction},
                                     .participants = plan.participants,
                                     .window = window,
                                     .window_tag = window_tag(box, transaction),
                                     .window_length = plan.box_windows[box]};
        for (const auto& each : plan.orders)
            for (const auto& piece : each.pieces)
                if (each.to == order.to && piece.verb == raid::Verb::prepare)
                    envelope.to_prepare += piece.length;
        return encode_order(order, envelope, accesses);
    }

    /// Carries out a plan between boxes and host; false at the first order that is not done.
    bool carry_out(const raid::Plan& plan, std::uint64_t transaction, std::uint32_t window) {
        auto first = plan.orders.begin();
        bool good = true;
        while (good && first != plan.orders.end()) {
            std::vector<std::pair<unsigned, raid::CommandTicket>> asked;
            auto order = first;
            for (; order != plan.orders.end() && order->phase == first->phase &&
                   order->round == first->round;
                 ++order) {
                const unsigned box = number(order->to.box);
                asked.emplace_back(box, tell(box, encoded(plan, *order, transaction, window)));
            }
            agenda.run();
            for (auto [box, ticket] : asked)
                good = outcome(box, ticket) == wire::ArrayOutcome::done && good;
            first = order;
        }
        release(transaction);
        return good;
    }
    void release(std::uint64_t transaction) {
        for (unsigned box = 0; box < boxes.size(); ++box) {
            auto ticket =
                tell(box, wire::ArrayAction::release, transaction, weft::encoded(address_of(box)));
            agenda.run();
            EXPECT_EQ(outcome(box, ticket), wire::ArrayOutcome::done);
        }
    }

    raid::Layout layout;
    Agenda agenda;
    TagTable tags;
    std::vector<std::unique_ptr<TestBox>> boxes;
    static constexpr SteeringTag host_tag{0x777}, controller_tag{0x888};

private:
    std::uint64_t next_ticket_ = 1;
};

}  // namespace weft::test
