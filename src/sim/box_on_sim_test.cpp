// SPDX-License-Identifier: Apache-2.0
// Whole boxes, with a controller's session and each other, in simulated worlds.
#include "node/box_node.hpp"

#include "support/array_boxes.hpp"
#include "support/seeds.hpp"

namespace weft::sim {
namespace {

using raid::Phase;
using raid::Verb;
using test::TestBox;
using wire::ArrayAction;
using wire::ArrayOutcome;

constexpr std::uint32_t block = 4096;

class BoxOnSim : public test::ArrayBoxes {
protected:
    /// Bytes nobody else has.
    void fill_host(std::size_t at, std::size_t size, unsigned seed) {
        for (std::size_t i = 0; i < size; ++i)
            host->memory[at + i] = static_cast<std::byte>((i * 7 + seed * 31 + i / 256) & 0xff);
    }
    std::vector<std::byte> of_host(std::size_t at, std::size_t size) const {
        return {host->memory.begin() + static_cast<std::ptrdiff_t>(at),
                host->memory.begin() + static_cast<std::ptrdiff_t>(at + size)};
    }
    static raid::Piece fetch(raid::Party from, std::uint64_t at, std::uint32_t slot,
                             std::uint32_t size) {
        return {.verb = Verb::fetch, .peer = from, .length = size, .slot = slot, .at = at};
    }
    static raid::Piece commit(std::uint32_t slot, std::uint64_t home, std::uint32_t size) {
        return {.verb = Verb::commit, .length = size, .slot = slot, .home = home};
    }
    /// From the host's memory to the disk of one box.
    void write(TestBox& box, std::uint64_t transaction, std::uint64_t home, std::uint32_t size) {
        ASSERT_EQ(
            order(box, transaction, Phase::stage, {fetch(raid::the_host, home, 0, size)}).outcome,
            ArrayOutcome::done);
        ASSERT_EQ(order(box, transaction, Phase::commit,
                        {commit(0, home, size), {.verb = Verb::flush}}, true)
                      .outcome,
                  ArrayOutcome::done);
    }
};

TEST_F(BoxOnSim, IsNobodysUntilAControllerComesAndThenItsAlone) {
    oak.start();
    auto said = oak.description();
    EXPECT_EQ(said.cluster, wire::ClusterIdentity{});
    EXPECT_EQ(raid::text_of_field(said.name), "oak");
    EXPECT_EQ(said.size, 64u << 20);
    EXPECT_EQ(said.free, 64u << 20);
    EXPECT_EQ(said.windows, 4);
    EXPECT_EQ(said.window_limit, 256u << 10);
    EXPECT_EQ(said.parts, 0);
    EXPECT_NE(said.box, wire::BoxIdentity{});

    auto nobody = address(oak);
    nobody.cluster = {};
    EXPECT_EQ(oak.send(ArrayAction::new_epoch, nobody), ArrayOutcome::malformed);
    EXPECT_EQ(oak.send(ArrayAction::meet_boxes, wire::ArrayPeerList{.address = address(oak)}),
              ArrayOutcome::wrong_cluster)
        << "whoever gives orders says first who he is";
    EXPECT_EQ(oak.send(ArrayAction::new_epoch, address(oak)), ArrayOutcome::done);
    said = oak.description();
    EXPECT_EQ(said.cluster, test::the_cluster);
    EXPECT_EQ(said.epoch, test::the_epoch);

    auto another = address(oak);
    another.cluster = {{9, 9}};
    another.epoch = wire::Epoch{99};
    EXPECT_EQ(oak.send(ArrayAction::new_epoch, another), ArrayOutcome::wrong_cluster);
    EXPECT_EQ(oak.send(ArrayAction::new_epoch, address(oak)), ArrayOutcome::other_epoch)
        << "an epoch begins once";
    auto astray = address(oak);
    astray.box = {{1}};
    astray.epoch = wire::Epoch{99};
    EXPECT_EQ(oak.send(ArrayAction::new_epoch, astray), ArrayOutcome::wrong_box);
    EXPECT_EQ(oak.description().epoch, test::the_epoch);
}

TEST_F(BoxOnSim, ObeysOnlyWhoKnowsTheKeyOfTheCluster) {
    oak.key = oak.controllers_key = "a key of 16 octets or more";
    oak.start();
    EXPECT_EQ(oak.refusals, 0);
    EXPECT_EQ(oak.send(ArrayAction::new_epoch, address(oak)), ArrayOutcome::done);
    elm.key = "a key of 16 octets or more";
    elm.controllers_key = "another key, just as long";
    elm.start();
    EXPECT_GT(elm.refusals, 0);
    ash.controllers_key = "a key of 16 octets or more";
    ash.start();
    EXPECT_GT(ash.refusals, 0) << "and the controller wants a box that knows it";
}

TEST_F(BoxOnSim, FetchesFromTheHostAndFromEachOther) {
    set_up();
    fill_host(0, 64 * block, 3);
    ASSERT_EQ(
        order(oak, 9, Phase::stage, {fetch(raid::the_host, 8 * block, 0, 16 * block)}).outcome,
        ArrayOutcome::done);
    const auto from_oak = raid::party(raid::BoxIndex{0});
    ASSERT_EQ(order(elm, 9, Phase::parity, {fetch(from_oak, 0, 0, 16 * block)}).outcome,
              ArrayOutcome::done);
    ASSERT_EQ(order(oak, 9, Phase::commit, {commit(0, 0, 16 * block)}, true).outcome,
              ArrayOutcome::done);
    ASSERT_EQ(order(elm, 9, Phase::commit, {commit(0, 3 * block, 16 * block)}, true).outcome,
              ArrayOutcome::done);
    EXPECT_EQ(home(oak, 0, 16 * block), of_host(8 * block, 16 * block));
    EXPECT_EQ(home(elm, 3 * block, 16 * block), of_host(8 * block, 16 * block));
    EXPECT_EQ(home(elm, 0, 3 * block), std::vector<std::byte>(3 * block)) << "and nothing else";

    // Back: from the disk of one straight into the host's memory.
    ASSERT_EQ(order(elm, 10, Phase::read,
                    {{.verb = Verb::send_home,
                      .peer = raid::the_host,
                      .length = 16 * block,
                      .home = 3 * block,
                      .at = 100 * block}},
                    true)
                  .outcome,
              ArrayOutcome::done);
    EXPECT_EQ(of_host(100 * block, 16 * block), of_host(8 * block, 16 * block));
}

TEST_F(BoxOnSim, OpensAWindowUnderTheTagOfItsOrderOnlyAndNotAfterwards) {
    set_up();
    fill_host(0, block, 5);
    const auto from_oak = raid::party(raid::BoxIndex{0});
    ASSERT_EQ(order(oak, 1, Phase::stage, {fetch(raid::the_host, 0, 0, block)}).outcome,
              ArrayOutcome::done);
    // The same window under another key: what it was called in another transaction.
    const auto refused = order(elm, 2, Phase::parity, {fetch(from_oak, 0, 0, block)});
    EXPECT_EQ(refused.outcome, ArrayOutcome::peer_refused);
    EXPECT_EQ(refused.party, 0);
    EXPECT_EQ(refused.piece, 1);
    EXPECT_EQ(order(oak, 1, Phase::commit, {commit(0, 0, block)}, true).outcome,
              ArrayOutcome::done);
    const auto late = order(elm, 1, Phase::parity, {fetch(from_oak, 0, 0, block)});
    EXPECT_EQ(late.outcome, ArrayOutcome::unknown_transaction)
        << "elm's own window is still the other transaction's";
    EXPECT_EQ(abort(elm, 2), ArrayOutcome::done);
    EXPECT_EQ(order(elm, 1, Phase::parity, {fetch(from_oak, 0, 0, block)}).outcome,
              ArrayOutcome::peer_refused)
        << "a window that is closed is nobody's to read";
}

TEST_F(BoxOnSim, TakesAWindowBackFromAPeerThatTakesNothing) {
    set_up();
    fill_host(0, 16 * block, 5);
    const auto from_oak = raid::party(raid::BoxIndex{0});
    ASSERT_EQ(order(oak, 1, Phase::stage, {fetch(raid::the_host, 0, 0, 16 * block)}).outcome,
              ArrayOutcome::done);
    ASSERT_EQ(order(elm, 1, Phase::parity, {fetch(from_oak, 0, 0, block)}).outcome,
              ArrayOutcome::done);
    // What oak sends does not arrive; nor, once it has been asked, that elm has hung up.
    const auto link = world.network().links().back();
    world.network().partition(link, Side::acceptor);
    auto later = world.make_timer([&] {
        world.network().partition(link, Side::connector);
        world.network().lose_from(elm.machine, oak.machine);
    });
    later->set(world.now() + std::chrono::seconds(1));
    EXPECT_EQ(order(elm, 1, Phase::parity, {fetch(from_oak, 0, 0, 16 * block)}).outcome,
              ArrayOutcome::peer_unreachable);
    EXPECT_EQ(abort(oak, 1), ArrayOutcome::done);
    const raid::Piece clear{.verb = Verb::clear, .length = block};
    EXPECT_EQ(order(oak, 2, Phase::stage, {clear}).outcome, ArrayOutcome::no_room);
    world.run_for(std::chrono::seconds(3));
    EXPECT_EQ(order(oak, 2, Phase::stage, {clear}).outcome, ArrayOutcome::done);
}

TEST_F(BoxOnSim, EndsTheSessionBeforeWhenItsControllerComesBack) {
    oak.start();
    const auto connections = [&] { return oak.node->server().connection_count(); };
    EXPECT_EQ(connections(), 1u);
    // The controller has lost the connection, and the box does not know.
    world.network().half_open(world.network().links().back(), Side::connector);
    oak.run_until([&] { return !oak.session->is_up(); });
    oak.run_until([&] { return oak.session->is_up(); });
    EXPECT_EQ(connections(), 1u) << "what the old one still had on its way is not obeyed any more";
}

TEST_F(BoxOnSim, RefusesAWindowTagThatIsAnothers) {
    set_up();
    raid::OrderEnvelope envelope{.address = address(oak, photos),
                                 .transaction = wire::TransactionNumber{1},
                                 .window = 1,
                                 .window_tag = oak.window_tag(0, 1),
                                 .window_length = block};
    const auto encoded = raid::encode_order(
        {.phase = Phase::stage, .pieces = {{.verb = Verb::clear, .length = block}}}, envelope, {});
    EXPECT_EQ(oak.send(encoded.command_block, encoded.parameters).outcome, ArrayOutcome::malformed);
}

TEST_F(BoxOnSim, KnowsItsPartsAgainAndWhatIsOnThem) {
    set_up();
    fill_host(0, 8 * block, 7);
    write(oak, 1, 0, 8 * block);
    const auto before = oak.describe();
    const auto expected = of_host(0, 8 * block);
    for (bool orderly : {true, false}) {
        orderly ? oak.stop() : oak.cut_power_at_rest();
        oak.start();
        auto said = *decode<wire::ArrayBoxDescription>(oak.describe());
        auto was = *decode<wire::ArrayBoxDescription>(before);
        EXPECT_NE(std::exchange(said.boot, was.boot), was.boot) << "its process is another";
        EXPECT_EQ(said, was);
        EXPECT_EQ(home(oak, 0, 8 * block), expected);
        auto first = decode<wire::ArraySuperblock>(
            ConstBuffer(oak.describe()).subspan(wire_size<wire::ArrayBoxDescription>()));
        ASSERT_TRUE(first);
        EXPECT_EQ(first->volume.volume, photos);
    }
    EXPECT_EQ(order(oak, 2, Phase::stage, {fetch(raid::the_host, 0, 0, block)}).outcome,
              ArrayOutcome::peer_refused)
        << "whom it may meet it has to be told again";
    introduce();
    EXPECT_EQ(abort(oak, 2), ArrayOutcome::done);
    write(oak, 3, 0, block);
}

TEST_F(BoxOnSim, ObeysNoControllerThatWasReplaced) {
    set_up();
    fill_host(0, block, 1);
    const auto old_address = address(oak, photos);
    ASSERT_EQ(order(oak, 1, Phase::stage, {fetch(raid::the_host, 0, 0, block)}).outcome,
              ArrayOutcome::done);
    epoch = wire::Epoch{6};
    ASSERT_EQ(oak.send(ArrayAction::new_epoch, address(oak)), ArrayOutcome::done);
    EXPECT_EQ(oak.node->links().links(), 0u) << "what the old one's orders had begun is cut off";
    EXPECT_EQ(order(oak, 1, Phase::commit, {commit(0, 0, block)}, true).outcome,
              ArrayOutcome::unknown_transaction)
        << "what was staged then is no more";
    EXPECT_EQ(oak.send(ArrayAction::delete_part, old_address), ArrayOutcome::other_epoch);
    epoch = test::the_epoch;
    EXPECT_EQ(order(oak, 2, Phase::stage, {fetch(raid::the_host, 0, 0, block)}).outcome,
              ArrayOutcome::other_epoch);
    EXPECT_EQ(create(oak, 0), ArrayOutcome::other_epoch);
    oak.stop();
    oak.start();
    EXPECT_EQ(oak.description().epoch, wire::Epoch{6});
}

TEST_F(BoxOnSim, TellsAPartOfAControllerThatItMissed) {
    set_up();
    // The power went between the box's own file and the part's superblock.
    auto facts = oak.node->facts();
    facts.epoch = wire::Epoch{9};
    oak.stop();
    bool done = false;
    world.host(oak.machine)
        .replace_file("/oak/box", node::encode_box_facts(facts),
                      [&](Result<void>) { done = true; });
    oak.run_until([&] { return done; });
    oak.start();
    epoch = wire::Epoch{9};
    EXPECT_EQ(oak.description().epoch, epoch);
    EXPECT_EQ(oak.send(ArrayAction::abort, address(oak, photos)), ArrayOutcome::done);
}

TEST_F(BoxOnSim, TellsAPartWhoseDiskFailedThenWhenItStartsAgainOrIsToldAgain) {
    set_up();
    auto& disk = world.disk(oak.part_path(photos));
    for (const bool starts_again : {true, false}) {
        epoch = wire::Epoch{starts_again ? 9u : 10u};
        disk.make_bad(0, 8192, BadFor::writes);
        EXPECT_EQ(oak.send(ArrayAction::new_epoch, address(oak)), ArrayOutcome::disk_failed);
        EXPECT_EQ(oak.send(ArrayAction::new_epoch, address(oak)), ArrayOutcome::disk_failed);
        disk.heal();
        EXPECT_EQ(oak.send(ArrayAction::abort, address(oak, photos)), ArrayOutcome::other_epoch);
        if (starts_again) {
            oak.stop();
            oak.start();
        } else {
            EXPECT_EQ(oak.send(ArrayAction::new_epoch, address(oak)), ArrayOutcome::done);
        }
        EXPECT_EQ(oak.send(ArrayAction::abort, address(oak, photos)), ArrayOutcome::done);
        EXPECT_EQ(oak.send(ArrayAction::new_epoch, address(oak)), ArrayOutcome::other_epoch);
    }
}

TEST_F(BoxOnSim, StartsThoughAPartCannotBeTold) {
    set_up();
    epoch = wire::Epoch{9};
    auto& disk = world.disk(oak.part_path(photos));
    disk.make_bad(0, 8192, BadFor::writes);
    EXPECT_EQ(oak.send(ArrayAction::new_epoch, address(oak)), ArrayOutcome::disk_failed);
    oak.stop();
    oak.start();
    EXPECT_EQ(oak.send(ArrayAction::abort, address(oak, photos)), ArrayOutcome::other_epoch);
    disk.heal();
    EXPECT_EQ(oak.send(ArrayAction::new_epoch, address(oak)), ArrayOutcome::done);
    EXPECT_EQ(oak.send(ArrayAction::abort, address(oak, photos)), ArrayOutcome::done);
}

TEST_F(BoxOnSim, HasNoMorePartsThanItHasRoomFor) {
    oak.size = 3u << 20;
    set_up();
    EXPECT_EQ(oak.description().free, 1u << 20);
    EXPECT_EQ(create(oak, 0), ArrayOutcome::already_there);
    auto more = superblock(oak, 0);
    auto where = address(oak, photos);
    where.volume = more.volume.volume = {{8, 8}};
    EXPECT_EQ(oak.send(ArrayAction::create_part, where, more), ArrayOutcome::no_space);
    more.data_length = UINT64_MAX;
    EXPECT_EQ(oak.send(ArrayAction::create_part, where, more), ArrayOutcome::no_space);
    EXPECT_EQ(oak.description().parts, 1);

    EXPECT_EQ(oak.send(ArrayAction::delete_part, where), ArrayOutcome::wrong_volume);
    EXPECT_EQ(oak.send(ArrayAction::delete_part, address(oak, photos)), ArrayOutcome::done);
    EXPECT_EQ(oak.description().free, 3u << 20);
    EXPECT_FALSE(world.disks().contains(oak.part_path(photos)));
    more.data_length = 1u << 20;
    EXPECT_EQ(oak.send(ArrayAction::create_part, where, more), ArrayOutcome::done);
    EXPECT_EQ(oak.description().parts, 1);
}

TEST_F(BoxOnSim, GrowsAPartAsFarAsItHasRoom) {
    oak.size = 4u << 20;
    set_up();
    auto grown = superblock(oak, 0).volume;
    auto where = address(oak, photos);
    grown.generation = wire::Generation{2};
    grown.stripes = 100;
    EXPECT_EQ(oak.send(ArrayAction::store_volume, where, grown), ArrayOutcome::out_of_range);
    EXPECT_EQ(oak.description().free, 2u << 20);
    grown.stripes = 32;
    ASSERT_EQ(oak.send(ArrayAction::store_volume, where, grown), ArrayOutcome::done);
    EXPECT_EQ(oak.description().free, 1u << 20);
    generation = wire::Generation{2};
    fill_host(0, 8 * block, 9);
    ASSERT_EQ(order(oak, 1, Phase::stage, {fetch(raid::the_host, 0, 0, 8 * block)}).outcome,
              ArrayOutcome::done);
    const std::uint64_t last = (2u << 20) - 8 * block;
    ASSERT_EQ(order(oak, 1, Phase::commit, {commit(0, last, 8 * block)}, true).outcome,
              ArrayOutcome::done);
    EXPECT_EQ(home(oak, last, 8 * block), of_host(0, 8 * block))
        << "where there was nothing before";
    oak.stop();
    oak.start();
    EXPECT_EQ(oak.description().free, 1u << 20);
}

TEST_F(BoxOnSim, RefusesSuperblocksThatAreNotItsOwn) {
    set_up();
    ASSERT_EQ(oak.send(ArrayAction::delete_part, address(oak, photos)), ArrayOutcome::done);
    auto refusal = [&](auto change) {
        auto made = superblock(oak, 0);
        change(made);
        return oak.send(ArrayAction::create_part, address(oak, photos), made);
    };
    EXPECT_EQ(refusal([&](auto& made) { made.cluster = {{1}}; }), ArrayOutcome::wrong_cluster);
    EXPECT_EQ(refusal([&](auto& made) { made.box = elm.identity(); }), ArrayOutcome::wrong_box);
    EXPECT_EQ(refusal([&](auto& made) { made.volume.volume = {}; }), ArrayOutcome::wrong_volume);
    EXPECT_EQ(refusal([&](auto& made) { made.epoch = wire::Epoch{1}; }), ArrayOutcome::other_epoch);
    EXPECT_EQ(refusal([&](auto& made) { made.place = 1; }), ArrayOutcome::malformed);
    EXPECT_EQ(refusal([&](auto& made) { made.volume.chunk_bytes = 3; }), ArrayOutcome::malformed);
    EXPECT_EQ(refusal([&](auto& made) { made.data_offset = 4096; }), ArrayOutcome::malformed);
    EXPECT_EQ(refusal([&](auto& made) { made.volume.stripes = 1000; }), ArrayOutcome::malformed);
    EXPECT_EQ(oak.description().free, 64u << 20);
    EXPECT_EQ(create(oak, 0), ArrayOutcome::done);
}

/// Whatever a command says, it is answered, and the box goes on as if it had not been.
TEST_F(BoxOnSim, AnswersNonsenseWithARefusal) {
    set_up();
    Random random(5);
    const auto good = encoded(address(oak, photos));
    for (int i = 0; i < 600; ++i) {
        std::vector<std::byte> parameters(random.below(300));
        for (auto& octet : parameters) octet = static_cast<std::byte>(random.below(256));
        if (i % 2 == 0 && parameters.size() >= good.size())
            std::ranges::copy(good, parameters.begin());
        const auto said = static_cast<std::uint32_t>(parameters.size() + (i % 7 == 0 ? 5 : 0));
        const auto action = static_cast<ArrayAction>(i % 64);
        if (action == ArrayAction::describe_box || action == ArrayAction::list_links) continue;
        // What needs no more than an address is no nonsense.
        if (parameters.size() == good.size()) continue;
        const auto answer = oak.send({.action = action,
                                      .transaction = wire::TransactionNumber{random.next()},
                                      .parameter_length = said},
                                     parameters);
        const bool ends = action == ArrayAction::abort || action == ArrayAction::release;
        if (!ends) {
            EXPECT_NE(answer.outcome, ArrayOutcome::done)
                << "action " << i % 64 << " with " << parameters.size() << " octets";
        }
    }
    EXPECT_EQ(oak.description().parts, 1);
    fill_host(0, block, 2);
    write(oak, 77, 0, block);
    EXPECT_EQ(home(oak, 0, block), of_host(0, block));
}

/// Of the failure table, docs/failures.md.
using FailureTableBox = BoxOnSim;
TEST_F(FailureTableBox, Case39_ABoxIsStartedWithAnothersFolderOrDisk_ItDoesNotStart) {
    set_up();
    const auto elms = elm.node->facts();
    for (auto* box : {&oak, &elm}) box->stop();

    auto lies = [&](const node::BoxFacts& facts) {
        bool done = false;
        world.host(elm.machine)
            .replace_file("/elm/box", node::encode_box_facts(facts),
                          [&](Result<void>) { done = true; });
        elm.run_until([&] { return done; });
        auto refusal = elm.try_start();
        elm.stop();
        return refusal.value_or("it started");
    };
    auto facts = elms;
    facts.name = "yew";
    EXPECT_EQ(lies(facts), "/elm: this is the folder of box yew, not of elm");
    facts = elms;
    facts.box = {{1, 2}};
    EXPECT_EQ(lies(facts), elm.part_path(photos) + ": this is a disk of another box (" +
                               to_digits(elms.box) + ")");
    facts = elms;
    facts.cluster = {{3}};
    EXPECT_EQ(lies(facts), elm.part_path(photos) + ": this is a disk of another cluster");
    facts = elms;
    facts.parts[0].volume = {{5}};
    EXPECT_EQ(lies(facts), "it started") << "without a disk that is not there";
    elm.size = 1u << 20;
    EXPECT_EQ(lies(elms), "/elm: its parts take 2097152 bytes, more than the size given");
    elm.size = 64u << 20;
    elm.start();
}

/// A box whose power goes while it is given a part.
class CutShort final : public BoxOnSim {
public:
    enum class Left : std::uint8_t { nothing, part };

    void TestBody() override {}
    Left give_a_part_for(Duration time) {
        for (auto* box : {&oak, &elm, &ash}) box->start();
        EXPECT_EQ(oak.send(ArrayAction::new_epoch, address(oak)), ArrayOutcome::done);
        std::vector<std::byte> parameters;
        for (const auto& octet : encoded(address(oak, photos))) parameters.push_back(octet);
        for (const auto& octet : encoded(superblock(oak, 0))) parameters.push_back(octet);
        bool answered = false;
        oak.session->send({.action = ArrayAction::create_part,
                           .parameter_length = static_cast<std::uint32_t>(parameters.size())},
                          parameters, 0, [&](Result<node::BoxReply> reply) {
                              answered = reply && reply->answer.outcome == ArrayOutcome::done;
                          });
        world.run_for(time);
        const bool was_answered = answered;
        oak.cut_power_amid();
        oak.start();
        const auto said = oak.description();
        if (was_answered) {
            EXPECT_EQ(said.parts, 1);
        }
        EXPECT_EQ(said.free, said.parts == 1 ? 62u << 20 : 64u << 20);
        EXPECT_EQ(create(oak, 0),
                  said.parts == 1 ? ArrayOutcome::already_there : ArrayOutcome::done);
        EXPECT_EQ(oak.description().parts, 1);
        return said.parts == 1 ? Left::part : Left::nothing;
    }
};

TEST(BoxOnSimProperty, HasAPartWhollyOrNotAtAllWheneverThePowerGoes) {
    int whole = 0, nothing = 0;
    test::for_each_seed(30, [&](std::uint64_t seed) {
        static auto& left_behind = *new std::vector<CutShort*>;  // see cut_power_amid()
        left_behind.push_back(new CutShort);
        const auto left = left_behind.back()->give_a_part_for(std::chrono::milliseconds(2 * seed));
        ++(left == CutShort::Left::part ? whole : nothing);
    });
    EXPECT_GT(whole, 0);
    EXPECT_GT(nothing, 0);
}

}  // namespace
}  // namespace weft::sim
