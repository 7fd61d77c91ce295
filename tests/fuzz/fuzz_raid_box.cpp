// SPDX-License-Identifier: Apache-2.0
// Any octets as a controller's commands to a box, with a disk and peers that answer when the octets
// say so, once without a journal and once with one. Every command is answered once; windows are
// opened and closed in turn; nothing is written but the box's data, its superblocks and its
// journal; and a new epoch ends whatever was begun.
#include <algorithm>
#include <array>
#include <map>

#include "base/check.hpp"
#include "block/heap_memory.hpp"
#include "block/memory_disk.hpp"
#include "fuzz/slow_disk.hpp"
#include "raid/box.hpp"
#include "support/raid_memory.hpp"

namespace weft::fuzz {
namespace {

constexpr std::size_t commands_max = 200;  // what follows finds nothing new, and only takes time
constexpr std::uint64_t data_length = 128u << 10;
constexpr std::uint64_t superblocks = 2 * wire::superblock_size, guard_end = 64u << 10;
constexpr std::uint64_t journal_length = raid::journal_ring_offset + 32 * wire::journal_block;

/// Windows of which each is opened and closed in turn, or somebody is wrong.
class Windows final : public raid::StagingMemory {
public:
    std::uint32_t windows() const override { return 2; }
    std::uint32_t window_limit() const override { return 64u << 10; }
    Result<Buffer> open(std::uint32_t window, SteeringTag tag, std::uint32_t length) override {
        WEFT_CHECK(!open_.at(window) && length <= window_limit());
        // As in life: the index is the window's, the key is the transaction's.
        if (static_cast<std::uint32_t>(tag) >> 8 == 0xbad) return Error{.code = Code::malformed};
        open_[window] = true;
        memory_[window] = test::AlignedBytes(length);  // exactly so long, for what looks beyond
        return memory_[window].all();
    }
    void close(std::uint32_t window) override {
        WEFT_CHECK(open_.at(window));
        open_[window] = false;
        memory_[window] = test::AlignedBytes(1);
    }
    Buffer landing(std::uint32_t window) override { return landings_.at(window).all(); }
    bool is_any_open() const { return std::ranges::find(open_, true) != open_.end(); }

private:
    std::array<bool, 2> open_{};
    std::vector<test::AlignedBytes> memory_{2, test::AlignedBytes(1)};
    std::vector<test::AlignedBytes> landings_{2, test::AlignedBytes(landing_size)};
};

class Peers final : public raid::PeerTransfers {
public:
    void fetch(raid::PeerTransfer& transfer) override {
        std::ranges::fill(transfer.memory, std::byte{0x5a});
        held_.push_back(&transfer);
    }
    void send(raid::PeerTransfer& transfer) override { held_.push_back(&transfer); }
    bool answer(Result<void> how) {
        if (held_.empty()) return false;
        auto& transfer = *held_.front();
        held_.erase(held_.begin());
        transfer.completed(how);
        return true;
    }

private:
    std::vector<raid::PeerTransfer*> held_;
};

wire::ArraySuperblock the_superblock(bool with_journal) {
    wire::ArraySuperblock made{.cluster = {{1}},
                               .box = {{2}},
                               .epoch = wire::Epoch{1},
                               .data_offset = guard_end + (with_journal ? journal_length : 0),
                               .data_length = data_length,
                               .journal_offset = with_journal ? guard_end : 0,
                               .journal_length = with_journal ? journal_length : 0,
                               .volume = {.volume = {{3}},
                                          .generation = wire::Generation{1},
                                          .level = 5,
                                          .boxes = 3,
                                          .chunk_bytes = 16u << 10,
                                          .stripes = 8}};
    for (std::uint8_t i = 0; i < 3; ++i)
        made.volume.members[i] = {.box = {{static_cast<std::uint8_t>(2 + i)}},
                                  .state = wire::ArrayMemberState::current};
    return made;
}

class Run final : private raid::BoxOwner {
public:
    Run(ConstBuffer program, bool with_journal)
        : program_(program), superblock_(the_superblock(with_journal)) {
        auto between = memory_.lend(BlockOperation::write, superblocks, guard_end - superblocks);
        std::ranges::fill(between, std::byte{0xc3});
        if (!with_journal) return;
        journaled_->format([](Result<void> outcome) { WEFT_CHECK(outcome.has_value()); });
        settle();
    }

    void all() {
        while (!program_.empty() && sent_ < commands_max) step();
        settle();
        WEFT_CHECK(answered_ == sent_);
        auto last = address();
        WEFT_CHECK(last.epoch != wire::Epoch{UINT64_MAX} || box_.idle());
        if (last.epoch == wire::Epoch{UINT64_MAX}) return;
        last.epoch = wire::Epoch{UINT64_MAX};
        const auto octets = encoded(last);
        receive({.action = wire::ArrayAction::new_epoch,
                 .parameter_length = static_cast<std::uint32_t>(octets.size())},
                octets);
        settle();
        WEFT_CHECK(answered_ == sent_ && box_.idle() && box_.open_windows() == 0);
        WEFT_CHECK(!windows_.is_any_open());
        auto between = memory_.lend(BlockOperation::read, superblocks, guard_end - superblocks);
        WEFT_CHECK(std::ranges::count(between, std::byte{0xc3}) ==
                   static_cast<std::ptrdiff_t>(between.size()));
    }

private:
    std::uint8_t next() {
        if (program_.empty()) return 0;
        const auto octet = std::to_integer<std::uint8_t>(program_[0]);
        program_ = program_.subspan(1);
        return octet;
    }

    void step() {
        switch (next() % 8) {
            case 4:
                disk_.answer();
                return;
            case 5:
                peers_.answer({});
                return;
            case 6:
                peers_.answer(
                    Error{.code = next() % 2 == 0 ? Code::disconnected : Code::access_denied});
                return;
            case 7:
                return settle();
            default:
                return send();
        }
    }

    wire::ArrayAddress address() const {
        const auto& known = box_.superblock();
        return {.cluster = known.cluster,
                .volume = known.volume.volume,
                .box = known.box,
                .generation = known.volume.generation,
                .epoch = known.epoch};
    }

    void send() {
        enum Flag : std::uint8_t { with_address = 1, wrong_length = 2, later_epoch = 4 };
        wire::ArrayCommandBlock block{.action = static_cast<wire::ArrayAction>(next()),
                                      .transaction = wire::TransactionNumber{next()}};
        const auto flags = next();
        const std::size_t asked = next() * 4u;
        const auto taken = program_.first(std::min(asked, program_.size()));
        program_ = program_.subspan(taken.size());
        std::vector<std::byte> parameters(taken.begin(), taken.end());
        auto where = address();
        if ((flags & later_epoch) != 0)
            where.epoch = wire::Epoch{static_cast<std::uint64_t>(where.epoch) + 1};
        if ((flags & with_address) != 0) put_address(block.action, where, parameters);
        block.parameter_length =
            static_cast<std::uint32_t>(parameters.size() + ((flags & wrong_length) != 0 ? 1 : 0));
        receive(block, parameters);
    }

    /// So that what comes behind is looked at, too.
    static void put_address(wire::ArrayAction action, const wire::ArrayAddress& where,
                            std::vector<std::byte>& parameters) {
        const std::size_t at = is_order(action) ? 8 : 0;
        const auto octets = encoded(where);
        if (parameters.size() < at + octets.size()) return;
        std::ranges::copy(octets, parameters.begin() + static_cast<std::ptrdiff_t>(at));
        if (at > 0) store_big_endian<4>(0x57'4f'52'32, parameters.data());
    }

    void receive(const wire::ArrayCommandBlock& block, ConstBuffer parameters) {
        box_.receive(raid::CommandTicket{++sent_}, block, parameters);
    }

    void settle() {
        while (disk_.answer() || peers_.answer({})) {
        }
    }

    void answer(raid::CommandTicket ticket, const wire::ArrayAnswer& answer) override {
        const auto number = static_cast<std::uint64_t>(ticket);
        WEFT_CHECK(number > 0 && number <= sent_ && ++answers_[number] == 1);
        // What is said must be what can be read back.
        WEFT_CHECK(decode<wire::ArrayAnswer>(encoded(answer)).has_value());
        ++answered_;
    }
    void meet(std::span<const wire::ArrayPeer>) override {}
    void admit(const wire::ArrayHostAdmission&) override {}
    void dismiss(wire::HostSession) override {}

    ConstBuffer program_;
    wire::ArraySuperblock superblock_;
    block::MemoryDisk memory_{std::make_unique<block::HeapMemory>(raid::part_length(superblock_)),
                              raid::part_length(superblock_)};
    SlowDisk disk_{memory_};
    Windows windows_;
    Peers peers_;
    std::unique_ptr<raid::JournaledDisk> journaled_{
        raid::has_journal(superblock_) ? std::make_unique<raid::JournaledDisk>(
                                             disk_, superblock_, raid::JournaledDisk::Options{})
                                       : nullptr};
    raid::Box box_{*this, disk_, windows_, peers_, superblock_, 0, journaled_.get()};
    std::uint64_t sent_ = 0, answered_ = 0;
    std::map<std::uint64_t, int> answers_;
};

}  // namespace
}  // namespace weft::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const weft::ConstBuffer program(reinterpret_cast<const std::byte*>(data), size);
    for (bool with_journal : {false, true}) weft::fuzz::Run(program, with_journal).all();
    return 0;
}
