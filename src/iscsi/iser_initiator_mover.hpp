// SPDX-License-Identifier: Apache-2.0
// The initiator's datamover over iSER (RFC 7145). A command's memory is put under a tag of its own,
// with another key each time, and the tag goes with the command; the target moves the data. When
// the response comes its Send has taken the tag back, and a command has cost one completion: the
// one of that receive. Nothing that is sent is signalled.
//
// A tag the target did not take back is taken back here before the task retires, and that costs one
// completion more. What was sent from is known to be free by counting (QueuePair::sends_ended).
#pragma once

#include <deque>
#include <vector>

#include "base/ring.hpp"
#include "iscsi/iser_message.hpp"
#include "iscsi/iser_receives.hpp"
#include "weft/rdma.hpp"

namespace weft::iscsi {

class IserInitiatorMover final : public InitiatorDatamover, private verbs::ConnectionEvents {
public:
    static Result<std::unique_ptr<IserInitiatorMover>> make(World& world, verbs::Device& device,
                                                            std::uint32_t tasks_max, bool checksums,
                                                            InitiatorDatamoverUser& user);
    IserInitiatorMover(World& world, verbs::Device& device, InitiatorDatamoverUser& user)
        : world_(world), device_(device), user_(user) {}
    IserInitiatorMover(const IserInitiatorMover&) = delete;
    IserInitiatorMover& operator=(const IserInitiatorMover&) = delete;
    ~IserInitiatorMover() override;

    Result<void> connect(const Address& address);
    Result<void> connect_over(std::unique_ptr<Stream> stream);

    // InitiatorDatamover
    void begin_full_feature(const ConnectionTerms& terms) override;
    void send(const ControlPdu& pdu) override;
    void start(InitiatorMoverTask& task) override;
    void abandon(InitiatorMoverTask& task) override;
    void close_when_sent() override;
    void close() override;
    std::uint64_t completions() const override { return completions_seen_; }

private:
    enum class Kind : std::uint8_t { control, command, invalidation };
    struct Tag {
        std::unique_ptr<verbs::MemoryRegion> region;  ///< made when first needed
        SteeringTag value{};                          ///< its key moves on with every use
        bool open = false;
    };
    struct Slot {
        InitiatorMoverTask* task = nullptr;
        Tag in, out;
        bool waits = false;    ///< it is among those to be started
        bool is_over = false;  ///< answered or abandoned: only its tags are left
    };
    struct SendBuffer {
        std::vector<std::byte> octets;
        std::uint64_t free_after = 0;  ///< sends ended
    };

    // verbs::ConnectionEvents
    void established() override;
    void rejected() override { end(Error{.code = Code::access_denied}); }
    void failed(Error why) override { end(why); }
    void disconnected() override;

    Result<void> set_up(std::uint32_t tasks_max);
    verbs::ConnectOptions connect_options() const;
    void poll();
    void received(const verbs::Completion& completion);
    void handle(iser::Receive& receive);
    void take_hello_reply(iser::Receive& receive);
    void responded(const iser::Message& message, const iser::Receive& receive);
    bool note_invalidation(Slot& slot, SteeringTag tag);

    bool try_start(Slot& slot);
    bool open_tag(Tag& tag, std::span<const Buffer> pieces, Rights rights,
                  verbs::FastRegistration& registration);
    std::size_t compose(const InitiatorMoverTask& task, const wire::IserControlHeader& advertised,
                        std::size_t along, Buffer to);
    SendBuffer* free_buffer();
    void settle(Slot& slot);
    bool try_settle(Slot& slot);
    void retire(Slot& slot);
    void pump();
    bool queue_is_crowded() const;
    bool post(std::span<const verbs::SendRequest> requests);
    void post_control(std::size_t size, SendBuffer& buffer);
    void leave_if_sent();
    void hang_up();
    void fail(Error why);
    void end(std::optional<Error> why);
    static std::uint64_t id_of(Kind kind, std::size_t index) {
        return static_cast<std::uint64_t>(kind) << 32 | index;
    }

    World& world_;
    verbs::Device& device_;
    InitiatorDatamoverUser& user_;
    bool checksums_ = false;
    std::shared_ptr<verbs::ProtectionDomain> domain_;
    std::shared_ptr<verbs::CompletionQueue> completions_;
    std::unique_ptr<verbs::QueuePair> queue_pair_;
    std::unique_ptr<iser::Receives> receives_;
    std::unique_ptr<verbs::Connection> connection_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
    std::uint32_t sends_max_ = 0;

    bool rdma_first_ = true;
    ConnectionTerms terms_;
    bool hello_awaited_ = false;
    bool leaving_ = false;
    std::unique_ptr<Timer> farewell_;  ///< set when all is said
    bool over_ = false;
    std::optional<Error> fault_;

    std::vector<Slot> slots_;
    Ring<Slot*> waiting_{1};          ///< to be started
    Ring<Slot*> settling_{1};         ///< to have their tags taken back
    std::deque<SendBuffer> buffers_;  ///< the one used longest ago first
    verbs::FastRegistration in_registration_, out_registration_;
    std::uint64_t posted_ = 0;
    std::size_t controls_unsent_ = 0;
    std::uint64_t completions_seen_ = 0;
};

}  // namespace weft::iscsi
