// SPDX-License-Identifier: Apache-2.0
// The iSER datamovers over real sockets, told apart from plain iSCSI by their first octets.
#include <gtest/gtest.h>

#include <chrono>

#include "iscsi/iser_initiator.hpp"
#include "iscsi/iser_initiator_mover.hpp"
#include "iscsi/iser_target.hpp"
#include "node/first_octets.hpp"
#include "support/iser_ends.hpp"
#include "weft/linux_world.hpp"

namespace weft::cli {
namespace {

using test::MemoryCommand;

std::vector<std::byte> numbered(std::size_t size, unsigned from) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i)
        bytes[i] = static_cast<std::byte>(from + i * 7 + i / 251);
    return bytes;
}

class IserOnLinux : public testing::TestWithParam<bool> {
protected:
    void SetUp() override {
        world = std::move(*open_linux_world({}));
        limit = world->make_timer([this] {
            ADD_FAILURE() << "this took too long";
            world->stop();
        });
        limit->set(world->now() + std::chrono::seconds(60));
        iser_target = std::move(*iscsi::IserTarget::make(
            *world, {.checksums = GetParam()},
            [this](std::unique_ptr<verbs::ConnectionRequest> request) {
                auto made = iser_target->accept(std::move(request), target);
                ASSERT_TRUE(made);
                target.mover = std::move(*made);
                target.mover->begin_full_feature(terms);
            }));
        iser_initiator = std::make_unique<iscsi::IserInitiator>(
            *world, iscsi::IserInitiator::Options{.tasks_max = 64});
        first = std::make_unique<node::FirstOctets>(
            *world, node::FirstOctets::Options{},
            [this](std::unique_ptr<Stream> stream, node::Spoken spoken, ConstBuffer read_already) {
                ASSERT_EQ(spoken, node::Spoken::mpa);
                ASSERT_TRUE(iser_target->respond(std::move(stream), read_already));
            });
        listener = std::move(*world->listen(
            Address::tcp("127.0.0.1", 0),
            [this](std::unique_ptr<Stream> stream) { first->add(std::move(stream)); }));
        auto made = iser_initiator->connect(listener->address(), initiator);
        ASSERT_TRUE(made);
        initiator.mover = std::move(*made);
        initiator.mover->begin_full_feature(terms);
        world->run_until([this] { return initiator.is_open; });
        ASSERT_TRUE(initiator.is_open);
        initiator.piece_size = 8192;
    }
    void TearDown() override {
        initiator.mover.reset();
        target.mover.reset();
    }
    std::uint64_t completions() {
        return static_cast<iscsi::IserInitiatorMover&>(*initiator.mover).completions();
    }

    std::unique_ptr<LinuxWorld> world;
    std::unique_ptr<Timer> limit;
    iscsi::ConnectionTerms terms{.tasks_max = 64};
    test::MemoryTarget target{8u << 20};
    test::MemoryInitiator initiator;
    std::unique_ptr<iscsi::IserTarget> iser_target;
    std::unique_ptr<iscsi::IserInitiator> iser_initiator;
    std::unique_ptr<node::FirstOctets> first;
    std::unique_ptr<Listener> listener;
};

TEST_P(IserOnLinux, MovesEveryByteForOneCompletionACommand) {
    std::vector<std::byte> model = target.memory;
    constexpr std::size_t slice = 256u << 10, slices = 32, enough = 600;
    std::size_t started = 0, wrong = 0;
    std::array<std::size_t, 8> sizes{1, 512, 4096, 8192, 8193, 65536, 200'000, slice};
    // Each slice has one command at a time, a write and then a read of the same.
    auto begin = [&](std::size_t at, bool read) {
        auto size = sizes[started++ / 2 % sizes.size()];
        read ? initiator.read(at * slice, size)
             : initiator.write(at * slice, numbered(size, static_cast<unsigned>(started)));
    };
    initiator.on_retired = [&](MemoryCommand& command) {
        auto at = model.begin() + static_cast<std::ptrdiff_t>(command.offset);
        std::copy(command.out.begin(), command.out.end(), at);
        wrong += !std::equal(command.in.begin(), command.in.end(), at);
        if (started < enough) begin(command.offset / slice, !command.out.empty());
    };
    auto before = completions();
    for (std::size_t i = 0; i < slices; ++i) begin(i, false);
    world->run_until([&] { return initiator.retirements == started || initiator.is_lost; });
    EXPECT_FALSE(initiator.is_lost);
    EXPECT_GE(started, enough);
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(target.memory, model);
    EXPECT_EQ(completions() - before, started);
}

TEST_P(IserOnLinux, HearsOfTheOthersEnd) {
    initiator.write(0, numbered(100'000, 1));
    target.mover->close();
    world->run_until([&] { return initiator.is_lost && target.is_lost; });
    EXPECT_TRUE(initiator.is_lost && target.is_lost);
}

INSTANTIATE_TEST_SUITE_P(Loopback, IserOnLinux, testing::Bool(),
                         [](const auto& with) { return with.param ? "WithChecksums" : "Plain"; });

}  // namespace
}  // namespace weft::cli
