// SPDX-License-Identifier: Apache-2.0
// The iSER datamovers against peers that do as others do, or as nobody should: queue pairs in the
// test's own hands.
#include <gtest/gtest.h>

#include <chrono>

#include "support/iser_fixture.hpp"
#include "support/seeds.hpp"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;
using iscsi::DataOutcome;
using test::IserPair;
using test::numbered;
using test::RdmaSide;
using verbs::Operation;
using verbs::QueuePairState;

/// Sends octets that need not make sense.
void send_raw(RdmaSide& side, const std::vector<std::byte>& octets) {
    ASSERT_LE(octets.size(), 1024u);
    std::copy(octets.begin(), octets.end(), side.memory.begin());
    ASSERT_TRUE(side.send(1, static_cast<std::uint32_t>(octets.size())));
}

template <class Pdu>
std::vector<std::byte> message(const wire::IserControlHeader& advertised, const Pdu& pdu,
                               ConstBuffer data) {
    std::array<std::byte, wire::basic_header_size> header{};
    encode(pdu, header);
    std::vector<std::byte> octets(iscsi::iser::headers_size);
    iscsi::iser::write_headers(advertised, header, data.size(), octets);
    octets.insert(octets.end(), data.begin(), data.end());
    return octets;
}

/// An initiator made by hand: what it advertises is the second half of its memory.
class StrangeInitiator : public testing::Test {
protected:
    static constexpr std::size_t buffer_at = 2048;

    void SetUp() override {
        std::array<std::byte, 4> private_data{std::byte{0xc0}};  // as libiscsi has it
        ASSERT_TRUE(side.connect(pair.elm, {.private_data = private_data, .inbound_reads = 4}));
        pair.run_until([&] { return !side.record.told.empty(); });
        ASSERT_EQ(side.record.told, test::Told{"established"});
        ASSERT_TRUE(side.receive(9, 1000));
        auto bytes = numbered(2048, 1);
        std::copy(bytes.begin(), bytes.end(), side.memory.begin() + buffer_at);
    }
    wire::ScsiCommandPdu write(std::uint32_t length) {
        return {.final = true,
                .write = true,
                .task_tag = wire::InitiatorTaskTag{7},
                .expected_transfer_length = length};
    }
    wire::IserControlHeader advertised(std::uint64_t skip = 0) {
        return {.write_buffer_valid = true,
                .write_buffer = {side.region->tag(), wire::TaggedOffset{buffer_at + skip}}};
    }
    ConstBuffer buffer(std::size_t at, std::size_t size) {
        return ConstBuffer(side.memory).subspan(buffer_at + at, size);
    }
    void expect_written(std::size_t size) {
        EXPECT_EQ(pair.target.outcomes, std::vector{DataOutcome::complete});
        EXPECT_TRUE(std::equal(pair.target.memory.begin(), pair.target.memory.begin() + size,
                               side.memory.begin() + buffer_at));
        auto response = decode<wire::ScsiResponsePdu>(
            ConstBuffer(side.memory).subspan(1024 + wire::iser_header_size));
        ASSERT_TRUE(response);
        EXPECT_EQ(response->task_tag, wire::InitiatorTaskTag{7});
    }

    IserPair pair{1};
    std::unique_ptr<verbs::Device> device = verbs::make_device(pair.world.host("oak"), {});
    RdmaSide side{*device};
};

TEST_F(StrangeInitiator, IsAnsweredAboutWhatItMayDo) {
    auto reply = decode<wire::IserPrivateData>(side.connection->peer_private_data());
    ASSERT_TRUE(reply);
    EXPECT_TRUE(reply->send_with_invalidate_unsupported) << "as it said itself";
    EXPECT_EQ(side.connection->facts().inbound_reads, 4);
}

TEST_F(StrangeInitiator, AdvertisesWhatItDoesNotSendAlongAsLinuxDoes) {
    send_raw(side, message(advertised(500), write(2000), buffer(0, 500)));
    pair.run();
    expect_written(2000);
}

TEST_F(StrangeInitiator, SaysThatDataGoesAlongAndSendsNoneAsLibiscsiDoes) {
    auto octets = message(advertised(), write(2000), buffer(0, 500));
    octets.resize(iscsi::iser::headers_size);
    send_raw(side, octets);
    pair.run();
    expect_written(2000);
}

TEST_F(StrangeInitiator, LetsDataFollowByItself) {
    for (bool early : {false, true}) {
        pair.target.withholds_places = early;
        pair.target.outcomes.clear();
        std::fill(pair.target.memory.begin(), pair.target.memory.end(), std::byte{});
        auto command = write(900);
        command.final = false;
        send_raw(side, message({}, command, buffer(0, 300)));
        pair.run();
        for (std::uint32_t i = 0; i < 2; ++i) {
            wire::DataOutPdu data{.final = i == 1,
                                  .task_tag = wire::InitiatorTaskTag{7},
                                  .transfer_tag = wire::TargetTransferTag::none,
                                  .data_number = i,
                                  .buffer_offset = 300 + i * 300};
            data.data_length = 300;
            send_raw(side, message({}, data, buffer(300 + i * 300, 300)));
            pair.run();
        }
        if (early) pair.target.give_places();
        pair.run();
        expect_written(900);
        ASSERT_TRUE(side.receive(9, 1000));
    }
}

TEST_F(StrangeInitiator, IsToldThatThereIsNothingToSendAgain) {
    send_raw(side, message({}, wire::SnackRequestPdu{}, {}));
    wire::DataOutPdu answer{.final = true,
                            .task_tag = wire::InitiatorTaskTag{7},
                            .transfer_tag = wire::TargetTransferTag{1}};
    pair.run();
    EXPECT_EQ(pair.target.refusals, std::vector{wire::RejectReason::protocol_error});
    pair.target.withholds_places = true;
    send_raw(side, message(advertised(), write(100), {}));
    pair.run();
    send_raw(side, message({}, answer, {}));
    pair.run();
    EXPECT_EQ(pair.target.refusals.size(), 2u) << "nor does anybody ask for data by R2T";
}

TEST_F(StrangeInitiator, LosesTheConnectionByNonsense) {
    send_raw(side, std::vector<std::byte>(60, std::byte{0x10}));
    pair.run();
    EXPECT_TRUE(pair.target.is_lost);
    EXPECT_EQ(pair.target.why->code, Code::truncated);
    EXPECT_EQ(side.state(), QueuePairState::failed);
}

TEST_F(StrangeInitiator, LosesTheConnectionByATagThatIsNone) {
    auto header = advertised();
    header.write_buffer.steering_tag = SteeringTag{0x12345678};
    send_raw(side, message(header, write(2000), {}));
    pair.run();
    EXPECT_TRUE(pair.target.is_lost);
    EXPECT_EQ(pair.target.memory, std::vector<std::byte>(pair.target.memory.size()));
    EXPECT_EQ(pair.iser_target->connections(), 1u) << "until its owner lets go of it";
}

/// Messages that begin well and go on by chance: the target bears or ends the connection.
TEST(StrangeInitiators, SayWhatChanceTellsThem) {
    test::for_each_seed(300, [](std::uint64_t seed) {
        IserPair pair(seed);
        auto device = verbs::make_device(pair.world.host("oak"), {});
        RdmaSide side(*device);
        ASSERT_TRUE(side.connect(pair.elm));
        pair.run_until([&] { return !side.record.told.empty(); });
        auto& random = pair.world.chance();
        for (int i = 0; i < 20 && side.state() == QueuePairState::running; ++i) {
            (void)side.receive(9, 1000);
            constexpr std::array opcodes{0x01, 0x05, 0x10, 0x00};
            wire::ScsiCommandPdu command{
                .final = random.chance(50),
                .read = random.chance(50),
                .write = random.chance(70),
                .task_tag = wire::InitiatorTaskTag(random.below(4)),
                .expected_transfer_length = static_cast<std::uint32_t>(random.below(3000))};
            wire::IserControlHeader header{
                .write_buffer_valid = random.chance(70),
                .read_buffer_valid = random.chance(70),
                .write_buffer = {side.region->tag(), wire::TaggedOffset{random.below(3000)}},
                .read_buffer = {side.region->tag(), wire::TaggedOffset{random.below(3000)}}};
            auto octets = message(header, command, numbered(random.below(500), 1));
            octets[wire::iser_header_size] = std::byte(opcodes[random.below(opcodes.size())]);
            auto changes = random.below(4);
            for (std::uint64_t each = 0; each < changes; ++each)
                octets[random.below(octets.size())] = std::byte(random.below(256));
            octets.resize(octets.size() - std::min<std::size_t>(octets.size(), random.below(20)));
            // The disk is no larger than what the commands of this test may name.
            std::fill_n(octets.begin() + 28 + 32, octets.size() > 66 ? 6 : 0, std::byte{});
            std::copy(octets.begin(), octets.end(), side.memory.begin());
            (void)side.send(1, static_cast<std::uint32_t>(octets.size()));
            pair.run();
        }
        side.connection.reset();
        pair.run();
        EXPECT_TRUE(pair.target.is_lost);
    });
}

TEST_F(StrangeInitiator, IsGivenNoMoreThanItsShareOfTheReceives) {
    pair.target.withholds_places = true;
    auto command = write(60000);
    command.final = false;
    send_raw(side, message({}, command, buffer(0, 4)));
    pair.run();
    std::uint32_t sent = 0;
    for (; !pair.target.is_lost && sent < 2000; ++sent) {
        wire::DataOutPdu data{.task_tag = command.task_tag,
                              .transfer_tag = wire::TargetTransferTag::none,
                              .data_number = sent,
                              .buffer_offset = 4 + sent * 4};
        data.data_length = 4;
        send_raw(side, message({}, data, buffer(0, 4)));
        pair.run();
        side.poll();
    }
    EXPECT_TRUE(pair.target.is_lost);
    EXPECT_LE(sent, iscsi::iser::receives_held_max);
}

/// It asks for writes and never hears that its memory is to be read for them.
class DeafInitiator : public StrangeInitiator {
protected:
    void SetUp() override {
        StrangeInitiator::SetUp();
        pair.target.answers_abandoned = false;
        link = pair.world.network().links().at(0);
        pair.world.network().partition(link, Side::acceptor);
    }
    /// A write arrives, and its data is asked for.
    iscsi::TargetMoverTask& begin_write(std::uint32_t tag) {
        auto command = write(1000);
        command.task_tag = wire::InitiatorTaskTag{tag};
        send_raw(side, message(advertised(), command, {}));
        pair.world.run_for(10ms);
        side.poll();
        auto* task = pair.target.find_task(command.task_tag);
        EXPECT_TRUE(task);
        return *task;
    }

    LinkId link{};
};

TEST_F(DeafInitiator, MayAbortAsManyWritesAsItLikes) {
    std::uint32_t tag = 100;
    for (; tag < 105; ++tag) begin_write(tag);  // one more than it lets be read at a time
    for (; tag < 105 + 3 * pair.terms.tasks_max && !pair.target.is_lost; ++tag) {
        auto before = pair.target.outcomes.size();
        pair.target.mover->abandon(begin_write(tag));
        EXPECT_EQ(pair.target.outcomes.size(), before + 1);
    }
    EXPECT_FALSE(pair.target.is_lost);
}

TEST_F(DeafInitiator, IsKnownToOweWhatWasAskedFor) {
    auto& task = begin_write(1);
    EXPECT_FALSE(pair.target.mover->awaits_abandoned_data());
    pair.target.mover->abandon(task);
    EXPECT_TRUE(pair.target.outcomes.empty()) << "its memory is still where the data would go";
    EXPECT_TRUE(pair.target.mover->awaits_abandoned_data());
    pair.world.network().heal(link);
    pair.run();
    EXPECT_EQ(pair.target.outcomes, std::vector{DataOutcome::abandoned});
    EXPECT_FALSE(pair.target.mover->awaits_abandoned_data());
}

TEST_F(DeafInitiator, CannotWriteWhereItsDataBelongedOnceItHasLoggedOut) {
    begin_write(1);
    pair.target.mover->close_when_sent();
    pair.run_until([&] { return pair.target.is_lost; });
    ASSERT_TRUE(pair.target.is_lost);
    // The memory is the disk's again, and the connection lives on for a farewell.
    pair.world.network().heal(link);
    pair.run();
    EXPECT_EQ(std::count(pair.target.memory.begin(), pair.target.memory.end(), std::byte{}),
              std::ssize(pair.target.memory));
}

/// A target made by hand, that goes on when it should have ended.
class StrangeTarget : public testing::Test {
protected:
    void SetUp() override {
        pair.listener.reset();
        device = verbs::make_device(pair.world.host("elm"), {});
        side = std::make_unique<RdmaSide>(*device);
        listener = std::move(
            *device->listen(pair.elm, [this](std::unique_ptr<verbs::ConnectionRequest> request) {
                auto flags = decode<wire::IserPrivateData>(request->private_data());
                ASSERT_TRUE(flags);
                EXPECT_FALSE(flags->send_with_invalidate_unsupported);
                ASSERT_TRUE(side->accept(*request));
            }));
        pair.connect();
        ASSERT_TRUE(side->receive(1, 1000));
    }
    /// What the command in the receive advertises.
    wire::IserControlHeader advertised() {
        return *decode<wire::IserControlHeader>(ConstBuffer(side->memory).subspan(1024));
    }
    void write(const wire::AdvertisedBuffer& to, std::uint32_t size) {
        std::fill(side->memory.begin(), side->memory.begin() + size, std::byte{0x55});
        ASSERT_TRUE(side->act(2, Operation::write,
                              {static_cast<std::uint64_t>(to.base_offset), to.steering_tag}, size));
        pair.run();
    }
    void respond(std::optional<SteeringTag> invalidate) {
        wire::ScsiResponsePdu response{.task_tag = wire::InitiatorTaskTag{1},
                                       .numbers = {.status_number = 1}};
        auto octets = message({}, response, {});
        std::copy(octets.begin(), octets.end(), side->memory.begin());
        std::array local{side->region->local(0, static_cast<std::uint32_t>(octets.size()))};
        ASSERT_TRUE(side->queue_pair->post(verbs::SendRequest{
            .id = 3,
            .operation = invalidate ? Operation::send_invalidate : Operation::send,
            .local = local,
            .invalidate = invalidate.value_or(SteeringTag{})}));
        pair.run();
    }

    IserPair pair{1};
    std::unique_ptr<verbs::Device> device;
    std::unique_ptr<RdmaSide> side;
    std::unique_ptr<Listener> listener;
};

TEST_F(StrangeTarget, CannotWriteOnceTheResponseHasGone) {
    auto& read = pair.initiator.read(0, 512);
    pair.run();
    auto buffer = advertised().read_buffer;
    write(buffer, 512);
    respond(buffer.steering_tag);
    ASSERT_TRUE(read.is_retired);
    EXPECT_EQ(read.in, std::vector<std::byte>(512, std::byte{0x55}));
    std::fill(read.in.begin(), read.in.end(), std::byte{});
    write(buffer, 512);
    pair.run();
    EXPECT_EQ(read.in, std::vector<std::byte>(512)) << "not one byte";
    EXPECT_EQ(side->state(), QueuePairState::failed) << "by a Terminate";
    EXPECT_TRUE(pair.initiator.is_lost);
}

TEST_F(StrangeTarget, CannotWriteOnceTheInitiatorHasTakenTheTagBack) {
    auto& read = pair.initiator.read(0, 512);
    pair.run();
    auto buffer = advertised().read_buffer;
    respond(std::nullopt);
    ASSERT_TRUE(read.is_retired);
    write(buffer, 512);
    pair.run();
    EXPECT_EQ(read.in, std::vector<std::byte>(512)) << "not one byte";
    EXPECT_EQ(side->state(), QueuePairState::failed);
    EXPECT_TRUE(pair.initiator.is_lost);
}

TEST_F(StrangeTarget, CannotReadOnceTheTagIsClosed) {
    auto& command = pair.initiator.write(0, numbered(20'000, 1));
    pair.run();
    auto buffer = advertised().write_buffer;
    respond(buffer.steering_tag);
    ASSERT_TRUE(command.is_retired);
    ASSERT_TRUE(side->act(4, Operation::read,
                          {static_cast<std::uint64_t>(buffer.base_offset), buffer.steering_tag},
                          64));
    pair.run();
    EXPECT_EQ(side->state(), QueuePairState::failed);
}

TEST_F(StrangeTarget, MeetsAnotherKeyEachTime) {
    std::vector<SteeringTag> tags;
    for (std::uint32_t i = 0; i < 3; ++i) {
        pair.initiator.read(0, 512);
        pair.run();
        auto tag = advertised().read_buffer.steering_tag;
        EXPECT_EQ(std::count(tags.begin(), tags.end(), tag), 0);
        tags.push_back(tag);
        wire::ScsiResponsePdu response{.task_tag = wire::InitiatorTaskTag{i + 1},
                                       .numbers = {.status_number = i + 1}};
        auto octets = message({}, response, {});
        std::copy(octets.begin(), octets.end(), side->memory.begin());
        std::array local{side->region->local(0, static_cast<std::uint32_t>(octets.size()))};
        ASSERT_TRUE(side->queue_pair->post(verbs::SendRequest{
            .id = 3, .operation = Operation::send_invalidate, .local = local, .invalidate = tag}));
        ASSERT_TRUE(side->receive(1, 1000));
        pair.run();
    }
    EXPECT_EQ(static_cast<std::uint32_t>(tags[0]) >> 8, static_cast<std::uint32_t>(tags[2]) >> 8);
}

TEST_F(StrangeTarget, LosesTheConnectionByInvalidatingWhatIsNotTheCommands) {
    auto& first = pair.initiator.read(0, 512);
    pair.run();
    ASSERT_TRUE(side->receive(1, 1000));
    pair.initiator.read(0, 512);
    pair.run();
    respond(advertised().read_buffer.steering_tag);  // of the second, in the first's response
    EXPECT_TRUE(pair.initiator.is_lost);
    EXPECT_EQ(pair.initiator.why->code, Code::access_denied);
    EXPECT_FALSE(first.is_answered);
}

TEST_F(StrangeTarget, LosesTheConnectionByDataPdus) {
    pair.initiator.read(0, 512);
    pair.run();
    auto octets = message({}, wire::DataInPdu{.final = true, .numbers = {.status_number = 1}},
                          numbered(8, 1));
    send_raw(*side, octets);
    pair.run();
    EXPECT_TRUE(pair.initiator.is_lost);
}

}  // namespace
}  // namespace weft::sim
