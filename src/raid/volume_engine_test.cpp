// SPDX-License-Identifier: Apache-2.0
// The controller's engine with real boxes: requests of several hosts at once, whose answers come in
// an order that is drawn. Requests that touch the same rows go in the order they came, so what a
// read must find is what was written by those before it.
#include "raid/volume_engine.hpp"

#include <gtest/gtest.h>

#include <deque>

#include "raid/superblock.hpp"
#include "support/raid_cluster.hpp"
#include "support/seeds.hpp"

namespace weft::raid {
namespace {

using test::RaidCluster;

struct Controller final : RaidCluster, VolumeEngineOwner {
    struct Request final : HostRequest {
        std::vector<std::byte> bytes, expected;
        std::optional<Result<void>> outcome;
        void completed(Result<void> how) override {
            EXPECT_FALSE(outcome) << "completed twice";
            outcome = how;
        }
    };

    Controller(Level level, std::uint8_t box_count, std::uint64_t seed)
        : RaidCluster(*Layout::make(level, box_count, 8192), 6, seed),
          engine(*this, {.plan = {}, .own = {}, .windows = 4}),
          shadow(6 * layout.stripe_bytes()),
          queues(box_count) {
        volume = boxes[0]->box.superblock().volume;
        for (std::uint8_t i = 0; i < box_count; ++i)
            boxes[i]->on_answer = [this](CommandTicket ticket, const wire::ArrayAnswer& answer) {
                agenda.later([this, ticket, answer] { engine.answered(ticket, answer); });
            };
        EXPECT_TRUE(set_volume());
    }
    Result<void> set_volume() {
        return engine.set_volume(boxes[0]->box.superblock().cluster, wire::Epoch{1}, volume,
                                 health_of(volume));
    }

    void carry(BoxIndex box, CommandTicket ticket, const EncodedOrder& order) override {
        auto& queue = queues[number(box)];
        queue.push_back({ticket, order});
        agenda.later([this, box, &queue] {  // some order has come, and they come as they were sent
            auto [next, what] = std::move(queue.front());
            queue.pop_front();
            if (gone == number(box)) return;
            ++commands;
            boxes[number(box)]->box.receive(next, what.command_block, what.parameters);
        });
    }
    SteeringTag window_tag(BoxIndex box, std::uint32_t,
                           wire::TransactionNumber transaction) override {
        return RaidCluster::window_tag(number(box), static_cast<std::uint64_t>(transaction));
    }
    /// What management does: the box is removed, durably, before anything is answered without it.
    void in_trouble(const Trouble& trouble) override {
        // It knows of the change that we are about to hear of.
        if (trouble.answer && trouble.answer->outcome == wire::ArrayOutcome::other_generation)
            return;
        remove(trouble.peer ? *trouble.peer : trouble.reporter.value());
    }
    void remove(BoxIndex suspect) {
        auto& member = volume.members[number(suspect)];
        if (std::exchange(member.state, wire::ArrayMemberState::absent) ==
            wire::ArrayMemberState::absent)
            return;
        volume.generation = wire::Generation{static_cast<std::uint64_t>(volume.generation) + 1};
        agenda.later([this] {
            for (unsigned box = 0; box < boxes.size(); ++box) {
                if (volume.members[box].state != wire::ArrayMemberState::current) continue;
                auto address = weft::encoded(address_of(box));
                std::vector<std::byte> parameters(address.begin(), address.end());
                auto body = weft::encoded(volume);
                parameters.insert(parameters.end(), body.begin(), body.end());
                boxes[box]->box.receive(CommandTicket{1'000'000 + management++},
                                        {wire::ArrayAction::store_volume,
                                         {},
                                         static_cast<std::uint32_t>(parameters.size()),
                                         {}},
                                        parameters);
            }
            settling = true;
        });
    }
    void run() {
        for (;;) {
            agenda.run();
            if (!std::exchange(settling, false)) break;
            EXPECT_TRUE(set_volume());
        }
    }

    Request& submit(HostOperation operation, Range range) {
        auto& request = *requests.emplace_back(std::make_unique<Request>());
        request.operation = operation;
        request.range = range;
        request.bytes.resize(range.length);
        auto kept = std::span(shadow).subspan(range.offset, range.length);
        if (operation == HostOperation::write) {
            for (auto& octet : request.bytes) octet = static_cast<std::byte>(agenda.random());
            std::ranges::copy(request.bytes, kept.begin());
        }
        request.expected.assign(kept.begin(), kept.end());
        const SteeringTag tag{static_cast<std::uint32_t>(0x10'0000 + requests.size())};
        tags[tag] = request.bytes;
        request.memory.tag = tag;
        engine.submit(request);
        return request;
    }
    Range draw() {
        const std::uint64_t slices = shadow.size() / slice_size, first = agenda.random() % slices;
        const std::uint64_t most = std::min<std::uint64_t>(slices - first, 12);
        return {first * slice_size, (1 + agenda.random() % most) * slice_size};
    }
    void submit_randomly(int count) {
        for (int i = 0; i < count; ++i) {
            const bool write = agenda.random() % 2;  // drawn first, whatever the compiler
            submit(write ? HostOperation::write : HostOperation::read, draw());
            for (auto steps = agenda.random() % 30; steps > 0; --steps) agenda.step();
        }
    }
    void expect_all_right() {
        for (const auto& request : requests) {
            ASSERT_TRUE(request->outcome && *request->outcome);
            ASSERT_EQ(request->bytes, request->expected);
        }
        EXPECT_EQ(engine.requests(), 0u);
    }

    VolumeEngine engine;
    wire::ArrayVolume volume;
    std::vector<std::byte> shadow;
    std::vector<std::unique_ptr<Request>> requests;
    std::vector<std::deque<std::pair<CommandTicket, EncodedOrder>>> queues;
    unsigned gone = ~0u;
    unsigned commands = 0;
    std::uint64_t management = 0;
    bool settling = false;
};

TEST(VolumeEngine, ServesRequestsAsIfOneAfterAnother) {
    test::for_each_seed(30, [](std::uint64_t seed) {
        Controller controller(seed % 2 ? Level::raid5 : Level::raid6, 5, seed);
        controller.submit_randomly(40);
        controller.run();
        controller.expect_all_right();
        for (const auto& box : controller.boxes) EXPECT_EQ(box->box.open_windows(), 0u);
    });
}

TEST(VolumeEngine, GoesOnWhenABoxFailsAmidEverything) {
    test::for_each_seed(30, [](std::uint64_t seed) {
        Controller controller(seed % 2 ? Level::raid5 : Level::raid6, 5, seed);
        controller.submit_randomly(10);
        controller.boxes[seed % 5]->disk.broken = true;
        controller.submit_randomly(20);
        controller.run();
        controller.expect_all_right();
    });
}

TEST(VolumeEngine, GoesOnWhenABoxIsNoMore) {
    test::for_each_seed(30, [](std::uint64_t seed) {
        Controller controller(seed % 2 ? Level::raid5 : Level::raid6, 5, seed);
        controller.submit_randomly(10);
        controller.gone = static_cast<unsigned>(seed % 5);
        const BoxIndex gone{static_cast<std::uint8_t>(seed % 5)};
        controller.submit_randomly(10);
        controller.agenda.run();
        controller.remove(gone);
        const auto identity = controller.volume.members[number(gone)].box;
        controller.engine.lost(identity);
        controller.run();
        controller.engine.lost(identity);  // what was sent to it before the news
        controller.run();
        controller.expect_all_right();
    });
}

TEST(VolumeEngine, SendsNoMoreThanThePlanSays) {
    Controller controller(Level::raid5, 5, 1);
    controller.submit(HostOperation::read, {0, 4096});
    controller.run();
    EXPECT_EQ(controller.commands, 1u);
    controller.submit(HostOperation::write, {0, 4096});
    controller.run();
    EXPECT_EQ(controller.commands, 1u + 5u) << "two to stage, one for parity, two to commit";
    controller.submit(HostOperation::flush, {0, 0});
    controller.run();
    EXPECT_EQ(controller.commands, 6u + 5u);
    controller.expect_all_right();
}

TEST(VolumeEngine, RefusesWhatIsNotThere) {
    Controller controller(Level::raid5, 5, 1);
    const auto capacity = controller.shadow.size();
    auto refused = [&](Range range) {
        Controller::Request request;
        request.range = range;
        controller.engine.submit(request);
        return request.outcome->error().code;
    };
    EXPECT_EQ(refused({capacity, 4096}), Code::out_of_range);
    EXPECT_EQ(refused({capacity - 4096, 8192}), Code::out_of_range);
    EXPECT_EQ(refused({0, 100}), Code::malformed);
    for (std::size_t member : {0u, 1u})
        controller.volume.members[member].state = wire::ArrayMemberState::absent;
    ASSERT_TRUE(controller.set_volume());
    EXPECT_EQ(refused({0, 4096}), Code::io_failed) << "two of five are lost";
    controller.volume.level = 9;
    EXPECT_FALSE(controller.set_volume());
}

}  // namespace
}  // namespace weft::raid
