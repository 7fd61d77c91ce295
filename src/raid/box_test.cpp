// SPDX-License-Identifier: Apache-2.0
#include "raid/box.hpp"

#include <gtest/gtest.h>

#include "raid/order_work.hpp"
#include "raid/superblock_keeper.hpp"
#include "support/raid_cluster.hpp"
#include "support/seeds.hpp"

namespace weft::raid {
namespace {

using test::RaidCluster;
using wire::ArrayAction;
using wire::ArrayOutcome;

struct Volume : RaidCluster {
    Volume(Level level, std::uint8_t box_count, std::uint64_t seed)
        : RaidCluster(*Layout::make(level, box_count, 8192), 6, seed),
          shadow(6 * layout.stripe_bytes()) {}

    bool write(Range range, const Health& health, const PlanOptions& options) {
        std::vector<std::byte> host(range.length);
        for (auto& octet : host) octet = static_cast<std::byte>(agenda.random());
        tags[host_tag] = host;
        const bool done = carry_out(*plan_write(layout, health, range, options), ++transaction, 1);
        if (done)
            std::ranges::copy(host, shadow.begin() + static_cast<std::ptrdiff_t>(range.offset));
        return done;
    }
    bool reads_right(Range range, const Health& health, const PlanOptions& options) {
        std::vector<std::byte> host(range.length, std::byte{0xcd});
        tags[host_tag] = host;
        return carry_out(*plan_read(layout, health, range, options), ++transaction, 2) &&
               std::ranges::equal(host, std::span(shadow).subspan(range.offset, range.length));
    }
    Range draw() {
        const std::uint64_t slices = shadow.size() / slice_size, first = agenda.random() % slices;
        return {first * slice_size, (1 + agenda.random() % (slices - first)) * slice_size};
    }

    std::vector<std::byte> shadow;
    std::uint64_t transaction = 0;
};

TEST(Box, CarriesOutPlansWithItsPeers) {
    test::for_each_seed(24, [](std::uint64_t seed) {
        const Level level = seed % 3 == 0   ? Level::mirror
                            : seed % 3 == 1 ? Level::raid5
                                            : Level::raid6;
        Volume volume(level, level == Level::mirror ? 3 : 6, seed);
        Health lost;
        lost.lose(BoxIndex{static_cast<std::uint8_t>(seed % 3)});
        for (auto topology : {Topology::star, Topology::binary_tree})
            for (auto style : {Style::vectored, Style::paper})
                for (const auto& health : {Health{}, lost}) {
                    PlanOptions options{.topology = topology, .style = style};
                    ASSERT_TRUE(volume.write(volume.draw(), health, options));
                    ASSERT_TRUE(volume.reads_right(volume.draw(), health, options));
                    if (health.whole()) continue;
                    for (std::uint64_t stripe = 0; stripe < 6; ++stripe)
                        ASSERT_TRUE(volume.carry_out(
                            *plan_rebuild(volume.layout, health, health.absent_at(0),
                                          {stripe, 0, 8192}, options),
                            ++volume.transaction, 0));
                    ASSERT_TRUE(volume.reads_right({0, volume.shadow.size()}, {}, options));
                }
        for (const auto& box : volume.boxes) EXPECT_EQ(box->box.open_windows(), 0u);
        EXPECT_EQ(volume.tags.size(), 1u)
            << "only the host's memory can be reached when all is done";
    });
}

TEST(Box, GivesDigestsForAScrub) {
    Volume volume(Level::raid6, 6, 1);
    ASSERT_TRUE(volume.write({0, volume.shadow.size()}, {}, {}));
    auto digests = [&] {
        auto plan = *plan_scrub(volume.layout, {}, {2, 0, 8192}, {});
        std::vector<CommandTicket> tickets;
        std::vector<Digest> list;
        ++volume.transaction;
        for (const auto& order : plan.orders)
            tickets.push_back(volume.tell(number(order.to.box),
                                          volume.encoded(plan, order, volume.transaction, 0)));
        volume.agenda.run();
        for (std::size_t i = 0; i < plan.orders.size(); ++i) {
            auto answer = volume.boxes[number(plan.orders[i].to.box)]->answers[tickets[i]];
            list.push_back({answer.row_digest, answer.diagonal_digests});
        }
        volume.release(volume.transaction);
        return list;
    };
    EXPECT_TRUE(digests_agree(volume.layout, digests()));
    volume.boxes[3]->disk.octets.all()[2 * wire::superblock_size + 2 * 8192 + 5] ^= std::byte{1};
    EXPECT_FALSE(digests_agree(volume.layout, digests()));
}

/// A flush, which needs nothing staged, under an address that is changed first.
ArrayOutcome flush_under(Volume& volume, const std::function<void(wire::ArrayAddress&)>& wrong) {
    auto plan = *plan_flush(volume.layout, {});
    OrderEnvelope envelope{.address = volume.address_of(0),
                           .transaction = wire::TransactionNumber{++volume.transaction}};
    wrong(envelope.address);
    auto ticket = volume.tell(0, encode_order(plan.orders[0], envelope, {}));
    volume.agenda.run();
    auto outcome = volume.outcome(0, ticket);
    volume.release(volume.transaction);
    return outcome;
}

TEST(Box, RefusesWhatIsNotMeantForItAndWhatIsOld) {
    Volume volume(Level::raid5, 3, 1);
    EXPECT_EQ(flush_under(volume, [](auto&) {}), ArrayOutcome::done);
    EXPECT_EQ(volume.boxes[0]->disk.flushes, 1);
    EXPECT_EQ(flush_under(volume, [](auto& a) { a.cluster.octets[5] = 1; }),
              ArrayOutcome::wrong_cluster);
    EXPECT_EQ(flush_under(volume, [](auto& a) { a.volume.octets[5] = 1; }),
              ArrayOutcome::wrong_volume);
    EXPECT_EQ(flush_under(volume, [](auto& a) { a.box.octets[5] = 1; }), ArrayOutcome::wrong_box);
    EXPECT_EQ(flush_under(volume, [](auto& a) { a.generation = wire::Generation{0}; }),
              ArrayOutcome::other_generation);
    EXPECT_EQ(flush_under(volume, [](auto& a) { a.epoch = wire::Epoch{0}; }),
              ArrayOutcome::other_epoch);
    EXPECT_EQ(flush_under(volume, [](auto& a) { a.epoch = wire::Epoch{2}; }),
              ArrayOutcome::other_epoch);
    EXPECT_EQ(volume.boxes[0]->disk.flushes, 1) << "nothing of what was refused was done";
}

TEST(Box, ObeysNoControllerOfThePast) {
    Volume volume(Level::raid5, 3, 1);
    auto announced = volume.address_of(0), old = announced;
    announced.epoch = wire::Epoch{5};
    auto ticket = volume.tell(0, ArrayAction::new_epoch, 0, encoded(announced));
    // Not yet on the disk, and the old controller's word counts no more.
    auto late = volume.tell(0, ArrayAction::release, 9, encoded(old));
    EXPECT_EQ(volume.outcome(0, late), ArrayOutcome::other_epoch);
    volume.agenda.run();
    EXPECT_EQ(volume.outcome(0, ticket), ArrayOutcome::done);
    auto& disk = volume.boxes[0]->disk;
    for (std::size_t copy = 0; copy < 2; ++copy) {
        const auto on_disk = parse_superblock(disk.octets.all().subspan(copy * 4096, 4096));
        ASSERT_TRUE(on_disk) << copy;
        EXPECT_EQ(on_disk->epoch, wire::Epoch{5})
            << "after a restart it must still be so, whichever copy has rotted meanwhile";
    }
    EXPECT_EQ(disk.flushes, 2) << "one copy after the other, so that one is always whole";
    for (std::uint64_t epoch : {1u, 4u, 5u}) {
        announced.epoch = wire::Epoch{epoch};
        ticket = volume.tell(0, ArrayAction::new_epoch, 0, encoded(announced));
        EXPECT_EQ(volume.outcome(0, ticket), ArrayOutcome::other_epoch);
    }
}

/// A volume with a write of which one box has staged what it fetched.
struct StagedWrite {
    StagedWrite() {
        volume.tags[RaidCluster::host_tag] = host;
        const Order& stage = plan.orders[0];
        volume.tell(number(stage.to.box), volume.encoded(plan, stage, 1, 0));
        volume.agenda.run();
    }
    Volume volume{Level::raid5, 3, 7};
    std::vector<std::byte> host = std::vector<std::byte>(4096, std::byte{0x55});
    Plan plan = *plan_write(volume.layout, {}, {0, 4096}, {});
};

TEST(Box, ObeysNoControllerOfThePastIfItsDiskFailsWhenTheNextIsAnnounced) {
    StagedWrite staged;
    auto& [volume, host, plan] = staged;
    const auto& stage = plan.orders[0];
    const unsigned box = number(stage.to.box);
    auto announced = volume.address_of(box);
    announced.epoch = wire::Epoch{2};
    volume.boxes[box]->disk.broken = true;
    auto ticket = volume.tell(box, ArrayAction::new_epoch, 0, encoded(announced));
    volume.agenda.run();
    EXPECT_EQ(volume.outcome(box, ticket), ArrayOutcome::disk_failed);
    volume.boxes[box]->disk.broken = false;
    EXPECT_EQ(volume.boxes[box]->box.open_windows(), 0u);
    ticket = volume.tell(box, volume.encoded(plan, stage, 1, 0));
    volume.agenda.run();
    EXPECT_EQ(volume.outcome(box, ticket), ArrayOutcome::other_epoch)
        << "what was staged is gone: whatever comes next of it would find zeroes";
    ticket = volume.tell(box, ArrayAction::new_epoch, 0, encoded(announced));
    volume.agenda.run();
    EXPECT_EQ(volume.outcome(box, ticket), ArrayOutcome::done) << "it may be announced again";
}

TEST(Box, ForgetsWhatAnOldControllerStaged) {
    StagedWrite staged;
    auto& [volume, host, plan] = staged;
    const auto& stage = plan.orders[0];
    const unsigned box = number(stage.to.box);
    EXPECT_EQ(volume.boxes[box]->box.open_windows(), 1u);
    const auto commit = std::ranges::find_if(plan.orders, [&](const Order& order) {
        return order.phase == Phase::commit && order.to == stage.to;
    });
    auto announced = volume.address_of(box);
    announced.epoch = wire::Epoch{2};
    volume.tell(box, ArrayAction::new_epoch, 0, encoded(announced));
    volume.agenda.run();
    EXPECT_EQ(volume.boxes[box]->box.open_windows(), 0u);
    EXPECT_EQ(volume.tags.size(), 1u) << "and no peer can read it";
    auto ticket = volume.tell(box, volume.encoded(plan, *commit, 1, 0));
    EXPECT_EQ(volume.outcome(box, ticket), ArrayOutcome::unknown_transaction);
}

CommandTicket tell_volume(Volume& volume, const wire::ArrayVolume& told) {
    auto address = encoded(volume.address_of(0));
    std::vector<std::byte> parameters(address.begin(), address.end());
    auto body = encoded(told);
    parameters.insert(parameters.end(), body.begin(), body.end());
    return volume.tell(0, ArrayAction::store_volume, 0, parameters);
}

TEST(Box, KeepsTheVolumeItIsToldOfBeforeItAnswers) {
    Volume volume(Level::raid5, 3, 1);
    auto next = volume.boxes[0]->box.superblock().volume;
    next.generation = wire::Generation{2};
    next.members[2].state = wire::ArrayMemberState::absent;
    auto store = [&](const wire::ArrayVolume& told) {
        const auto ticket = tell_volume(volume, told);
        volume.agenda.run();
        return volume.outcome(0, ticket);
    };
    auto wrong = next;
    wrong.generation = wire::Generation{1};
    EXPECT_EQ(store(wrong), ArrayOutcome::other_generation);
    wrong = next;
    wrong.volume.octets[3] = 9;
    EXPECT_EQ(store(wrong), ArrayOutcome::wrong_volume);
    wrong = next;
    wrong.members[0].box.octets[3] = 9;
    EXPECT_EQ(store(wrong), ArrayOutcome::wrong_box);
    wrong = next;
    wrong.stripes = 7;
    EXPECT_EQ(store(wrong), ArrayOutcome::out_of_range);
    EXPECT_EQ(store(next), ArrayOutcome::done);
    auto& octets = volume.boxes[0]->disk.octets;
    EXPECT_EQ(newest_superblock(octets.all().first(4096), octets.all().subspan(4096, 4096))->volume,
              next);
    volume.boxes[0]->disk.broken = true;
    next.generation = wire::Generation{3};
    EXPECT_EQ(store(next), ArrayOutcome::disk_failed);
    EXPECT_EQ(volume.boxes[0]->box.superblock().volume.generation, wire::Generation{2});
}

/// It may take long where the disk is full, and controllers that hear nothing begin anew.
TEST(Box, IsToldTheVolumeAgainWhileItKeepsIt) {
    Volume volume(Level::raid5, 3, 1);
    auto told_of = [&](std::uint64_t generation) {
        auto next = volume.boxes[0]->box.superblock().volume;
        next.generation = wire::Generation{generation};
        return tell_volume(volume, next);
    };
    const auto first = told_of(3), again = told_of(3), older = told_of(2);
    const auto superseded = told_of(4), last = told_of(5), repeated = told_of(5);
    EXPECT_TRUE(volume.boxes[0]->answers.contains(older)) << "which is refused at once";
    EXPECT_FALSE(volume.boxes[0]->answers.contains(again));
    volume.agenda.run();
    EXPECT_EQ(volume.outcome(0, older), ArrayOutcome::other_generation);
    EXPECT_EQ(volume.outcome(0, superseded), ArrayOutcome::other_generation);
    for (const auto ticket : {first, again, last, repeated})
        EXPECT_EQ(volume.outcome(0, ticket), ArrayOutcome::done);
    EXPECT_EQ(volume.boxes[0]->box.superblock().volume.generation, wire::Generation{5});
    EXPECT_TRUE(volume.boxes[0]->box.idle());
}

TEST(Box, SaysWhoFailed) {
    Volume volume(Level::raid5, 3, 1);
    auto plan = *plan_write(volume.layout, {}, {0, 4096}, {});
    volume.tags.clear();  // the host is gone
    auto ticket =
        volume.tell(number(plan.orders[0].to.box), volume.encoded(plan, plan.orders[0], 1, 0));
    volume.agenda.run();
    auto answer = volume.boxes[number(plan.orders[0].to.box)]->answers[ticket];
    EXPECT_EQ(answer.outcome, ArrayOutcome::peer_refused);
    EXPECT_EQ(answer.party, 0);
    EXPECT_EQ(answer.piece, 1);
    volume.release(1);

    volume.boxes[2]->disk.broken = true;
    Health health;
    EXPECT_FALSE(volume.write({0, 16384}, health, {}));
    health.lose(BoxIndex{2});
    EXPECT_TRUE(volume.write({0, 16384}, health, {}));
    EXPECT_TRUE(volume.reads_right({0, 16384}, health, {}));
}

TEST(Box, EndsARequestByItselfWithTheOrderThatSaysSo) {
    Volume volume(Level::raid5, 5, 3);
    std::vector<std::byte> host(65536);
    volume.tags[RaidCluster::host_tag] = host;
    for (auto plan_of : {plan_read, plan_write}) {
        auto plan = *plan_of(volume.layout, {}, {4096, 65536}, {});
        ++volume.transaction;
        for (const auto& order : plan.orders) {
            volume.tell(number(order.to.box), volume.encoded(plan, order, volume.transaction, 0));
            volume.agenda.run();
        }
        for (const auto& box : volume.boxes) EXPECT_EQ(box->box.open_windows(), 0u);
    }
}

TEST(Box, EndsARequestThatIsUnderWay) {
    Volume volume(Level::raid5, 3, 3);
    std::vector<std::byte> host(8192);
    volume.tags[RaidCluster::host_tag] = host;
    auto plan = *plan_write(volume.layout, {}, {0, 8192}, {});
    const unsigned box = number(plan.orders[0].to.box);
    auto first = volume.tell(box, volume.encoded(plan, plan.orders[0], 1, 0));
    auto second = volume.tell(box, volume.encoded(plan, plan.orders[0], 1, 0));
    auto abort = volume.tell(box, ArrayAction::abort, 1, encoded(volume.address_of(box)));
    EXPECT_EQ(volume.boxes[box]->answers.size(), 0u) << "a transfer is under way in its memory";
    volume.agenda.run();
    EXPECT_EQ(volume.outcome(box, first), ArrayOutcome::unknown_transaction) << "stopped amid it";
    EXPECT_EQ(volume.outcome(box, second), ArrayOutcome::unknown_transaction);
    EXPECT_EQ(volume.outcome(box, abort), ArrayOutcome::done);
    EXPECT_EQ(volume.boxes[box]->box.open_windows(), 0u);
}

TEST(Box, LetsItsOwnerMeetPeers) {
    Volume volume(Level::raid5, 3, 1);
    auto put = [](std::vector<std::byte>& to, const auto& header) {
        auto octets = encoded(header);
        to.insert(to.end(), octets.begin(), octets.end());
    };
    std::vector<std::byte> list, host;
    put(list, wire::ArrayPeerList{.address = volume.address_of(0), .count = 1});
    put(list, wire::ArrayPeer{.place = 1, .port = 3260});
    put(host,
        wire::ArrayHostAdmission{.address = volume.address_of(0), .host = wire::HostSession{77}});
    auto tell = [&](ArrayAction action, ConstBuffer parameters) {
        return volume.outcome(0, volume.tell(0, action, 0, parameters));
    };
    EXPECT_EQ(tell(ArrayAction::meet_boxes, list), ArrayOutcome::done);
    ASSERT_EQ(volume.boxes[0]->met.size(), 1u);
    EXPECT_EQ(volume.boxes[0]->met[0].port, 3260);
    EXPECT_EQ(tell(ArrayAction::admit_host, host), ArrayOutcome::done);
    EXPECT_EQ(volume.boxes[0]->admitted.size(), 1u);
    EXPECT_EQ(tell(ArrayAction::dismiss_host, host), ArrayOutcome::done);
    EXPECT_EQ(volume.boxes[0]->dismissed.size(), 1u);
    list.pop_back();
    EXPECT_EQ(tell(ArrayAction::meet_boxes, list), ArrayOutcome::malformed);
    EXPECT_EQ(tell(ArrayAction{0x7f}, host), ArrayOutcome::malformed);
    EXPECT_EQ(tell(ArrayAction::abort, {}), ArrayOutcome::malformed);
}

/// A box amid a commit of several blocks, whose disk takes its time.
struct SlowCommit : Volume {
    explicit SlowCommit(std::uint64_t seed) : Volume(Level::mirror, 2, seed) {
        std::vector<Piece> pieces;
        for (std::uint32_t i = 0; i < 6; ++i)
            pieces.push_back(
                {.verb = Verb::commit, .length = 4096, .slot = i * 4096, .home = i * 8192});
        auto send = [&](Phase phase, std::vector<Piece> what) {
            const Order order{.to = party(BoxIndex{0}), .phase = phase, .pieces = std::move(what)};
            OrderEnvelope envelope{.address = address_of(0),
                                   .transaction = wire::TransactionNumber{7},
                                   .window = 1,
                                   .window_tag = window_tag(0, 7),
                                   .window_length = 6 * 4096};
            tell(0, encode_order(order, envelope, {}));
        };
        send(Phase::stage, {{.verb = Verb::clear, .length = 6 * 4096}});
        agenda.run();
        std::ranges::fill(tags[window_tag(0, 7)], std::byte{0xee});
        send(Phase::commit, std::move(pieces));
        for (auto steps = seed % 7; steps > 0; --steps) agenda.step();
    }
    /// What is written on the disk between now and when all is quiet.
    void expect_nothing_is_written_once(CommandTicket ticket) {
        while (boxes[0]->answers.count(ticket) == 0 && agenda.step())
            ;
        ASSERT_EQ(outcome(0, ticket), ArrayOutcome::done);
        const auto before = boxes[0]->disk.octets;
        agenda.run();
        EXPECT_TRUE(before == boxes[0]->disk.octets) << "a write of the past";
        EXPECT_EQ(boxes[0]->box.open_windows(), 0u);
    }
};

TEST(Box, HasEndedWhatTheOldControllerBeganWhenItObeysTheNew) {
    test::for_each_seed(40, [](std::uint64_t seed) {
        SlowCommit volume(seed);
        auto announced = volume.address_of(0);
        announced.epoch = wire::Epoch{5};
        auto ticket = volume.tell(0, ArrayAction::new_epoch, 0, encoded(announced));
        volume.expect_nothing_is_written_once(ticket);
    });
}

TEST(Box, HasEndedARequestHoweverOftenItIsAborted) {
    test::for_each_seed(40, [](std::uint64_t seed) {
        SlowCommit volume(seed);
        auto first = volume.tell(0, ArrayAction::abort, 7, encoded(volume.address_of(0)));
        auto second = volume.tell(0, ArrayAction::abort, 7, encoded(volume.address_of(0)));
        volume.expect_nothing_is_written_once(second);
        EXPECT_EQ(volume.outcome(0, first), ArrayOutcome::done);
    });
}

}  // namespace
}  // namespace weft::raid
