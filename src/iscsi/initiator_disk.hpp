// SPDX-License-Identifier: Apache-2.0
// A logical unit of a target as a BlockDevice: reads, writes, flushes and the rest become SCSI
// commands of a session.
//
// Requests submitted before the unit is known wait, and so do those beyond what the session has
// under way. A request that SCSI limits to less than its length (zeroing, trimming) becomes several
// commands, one after another. Unit attentions are answered by asking again.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "block/request_queue.hpp"
#include "iscsi/command_fate.hpp"
#include "iscsi/unit_probe.hpp"
#include "weft/block_device.hpp"

namespace weft::iscsi {

class InitiatorDisk final : public BlockDevice {
public:
    /// `transfer_unsaid`: the longest transfer to a target that does not say what it takes.
    InitiatorDisk(InitiatorSession& session, wire::LogicalUnit unit, std::uint32_t transfer_unsaid);
    ~InitiatorDisk() override;

    /// To be called when the session is up. The first time it finds out what the unit is, later
    /// whether it still is the same, before anything else goes. If it is another, all that waits
    /// fails and so does all that comes.
    void session_up(std::function<void(Result<void>)> told);
    /// Nobody believes any more that the session comes back.
    void give_up(Error why);

    const UnitFacts& facts() const { return probe_->facts(); }

    BlockTraits traits() const override { return traits_; }
    void submit(BlockRequest& request) override;

private:
    class Flight final : public InitiatorCommand {
    public:
        InitiatorDisk* disk = nullptr;
        BlockRequest* request = nullptr;
        std::uint64_t handled = 0;  ///< octets of the request that are done
        std::uint64_t part = 0;     ///< octets the command under way is about
        bool flushing = false;      ///< the flush that makes a durable change durable
        unsigned attempts = 0;
        std::array<std::byte, 24> list{};  ///< UNMAP's parameter list with one descriptor
        Buffer piece;
        std::vector<std::byte> answer;  ///< of GET LBA STATUS

        void ended(const CommandEnd& end) override { disk->command_ended(*this, end); }
    };

    void take_facts();
    void launch_waiting();
    void launch(Flight& flight);
    void ask(Flight& flight);
    template <class Block>
    void send(Flight& flight, const Block& block, Effect effect);
    void ask_transfer(Flight& flight);
    void ask_flush(Flight& flight);
    void ask_unmap(Flight& flight);
    void ask_zeroes(Flight& flight);
    void ask_status(Flight& flight);
    void ask_prefetch(Flight& flight);
    void command_ended(Flight& flight, const CommandEnd& end);
    void part_done(Flight& flight, const CommandEnd& end);
    Result<void> read_status(Flight& flight, std::size_t size);
    void try_again(Flight& flight, const Fate& fate);
    void note_attention(wire::AdditionalSense additional);
    void complete(Flight& flight, Result<void> outcome);
    std::uint64_t blocks(std::uint64_t octets) const { return octets / traits_.minimum_block; }

    InitiatorSession& session_;
    wire::LogicalUnit unit_;
    std::uint32_t transfer_unsaid_;
    std::unique_ptr<UnitProbe> probe_;
    BlockTraits traits_;
    bool known_ = false;
    bool fua_ = false;
    std::optional<Error> gone_;  ///< why there will be nothing more
    std::vector<std::byte> zeroes_;
    Buffer zero_piece_;
    std::vector<std::unique_ptr<Flight>> flights_;
    std::vector<Flight*> free_;
    block::RequestQueue waiting_;
    bool launching_ = false;
    std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace weft::iscsi
