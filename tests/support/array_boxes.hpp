// SPDX-License-Identifier: Apache-2.0
// Whole boxes on simulated machines, a controller's sessions with them in the test's own hands, and
// a host with memory: orders go as they do in life.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/error_text.hpp"
#include "node/array_address.hpp"
#include "node/box_node.hpp"
#include "node/box_session.hpp"
#include "node/iscsi_iser_transport.hpp"
#include "sim/world.hpp"
#include "support/array_party.hpp"
#include "wire/array_host.hpp"
#include "wire/array_names.hpp"

namespace weft::test {

inline constexpr std::uint16_t box_port = 3260;

/// A box: its machine, its node, and the controller's session with it.
class TestBox {
public:
    TestBox(sim::World& the_world, std::string the_name, std::string the_machine,
            node::IscsiTransport& transport)
        : world(the_world),
          name(std::move(the_name)),
          machine(std::move(the_machine)),
          transport_(transport) {}

    node::BoxNode::Options options() const {
        return {.name = name,
                .folder = "/" + name,
                .size = size,
                .key = key,
                .windows = {.windows = 4, .bytes = 256u << 10}};
    }
    /// Why not, if it does not start.
    std::optional<std::string> try_start() {
        node = std::make_unique<node::BoxNode>(world.host(machine), options());
        node->on_event([this](const std::string& what) { news.push_back(what); });
        std::optional<std::optional<std::string>> told;
        node->start([&](std::optional<std::string> refusal) { told = std::move(refusal); });
        run_until([&] { return told.has_value(); });
        return *told;
    }
    void start() {
        const auto refusal = try_start();
        ASSERT_FALSE(refusal) << *refusal;
        ASSERT_TRUE(node->listen(Address::tcp(machine, box_port)));
        refusals = 0;
        session = std::make_unique<node::BoxSession>(
            world, transport_,
            node::BoxSession::Options{.addresses = {Address::tcp(machine, box_port)},
                                      .target_name = wire::box_target_name(name),
                                      .initiator_name = wire::controller_initiator_name,
                                      .key = controllers_key},
            node::BoxSession::Holder{.up = [] {}, .down = [this](Error) { ++refusals; }});
        run_until([&] { return session->is_up() || refusals > 0; });
    }
    /// In an orderly way.
    void stop() {
        session.reset();
        if (!node) return;
        node->stop();
        run_until([&] { return node->quiet(); });
        node.reset();
    }
    /// Nothing may be under way.
    void cut_power_at_rest() {
        session.reset();
        world.host(machine).power_cut();
        world.host(machine).power_on();
        stop();
    }
    /// At any time. What the box waits for then never comes, so that it cannot be taken apart: it
    /// stays, deaf and dumb, and so must the world.
    void cut_power_amid() {
        world.host(machine).power_cut();
        world.host(machine).power_on();
        session->drop({.code = Code::disconnected});
        run_until([&] { return !session->is_up(); });
        session.reset();
        static auto& left_behind = *new std::vector<node::BoxNode*>;  // known to the very end
        left_behind.push_back(node.release());
    }

    wire::ArrayAnswer send(const wire::ArrayCommandBlock& block,
                           const std::vector<std::byte>& parameters) {
        std::optional<wire::ArrayAnswer> answer;
        session->send(block, parameters, 0, [&](Result<node::BoxReply> reply) {
            EXPECT_TRUE(reply) << to_text(reply.error().code);
            answer = reply ? reply->answer : wire::ArrayAnswer{};
        });
        run_until([&] { return answer.has_value(); });
        return *answer;
    }
    template <class... Parts>
    wire::ArrayOutcome send(wire::ArrayAction action, const Parts&... parts) {
        std::vector<std::byte> parameters;
        auto append = [&](const auto& part) {
            const auto octets = encoded(part);
            parameters.insert(parameters.end(), octets.begin(), octets.end());
        };
        (append(parts), ...);
        return send({.action = action,
                     .parameter_length = static_cast<std::uint32_t>(parameters.size())},
                    parameters)
            .outcome;
    }
    /// What it says of itself.
    std::vector<std::byte> describe() {
        std::optional<std::vector<std::byte>> data;
        session->send({.action = wire::ArrayAction::describe_box}, {}, 64u << 10,
                      [&](Result<node::BoxReply> reply) {
                          EXPECT_TRUE(reply);
                          data.emplace();
                          if (reply) data->assign(reply->data.begin(), reply->data.end());
                      });
        run_until([&] { return data.has_value(); });
        return *data;
    }
    wire::ArrayBoxDescription description() {
        return *decode<wire::ArrayBoxDescription>(describe());
    }
    /// The tag of a window of its first part, as it was described, with this key.
    SteeringTag window_tag(std::uint32_t window, std::uint8_t octet) {
        const auto data = describe();
        const auto at = wire_size<wire::ArrayBoxDescription>() +
                        wire_size<wire::ArraySuperblock>() + window * 4;
        return SteeringTag{static_cast<std::uint32_t>(load_big_endian<4>(data.data() + at)) |
                           octet};
    }
    wire::BoxIdentity identity() const { return node->facts().box; }
    std::string part_path(const wire::VolumeIdentity& volume) const {
        return "/" + name + "/part-" + to_digits(volume);
    }

    void run_until(const std::function<bool()>& done) {
        for (std::uint64_t i = 0; i < 10'000'000 && !done() && world.step(); ++i) {
        }
        ASSERT_TRUE(done());
    }

    sim::World& world;
    std::string name, machine;
    std::uint64_t size = 64u << 20;
    std::string key{}, controllers_key{};
    std::unique_ptr<node::BoxNode> node;
    std::unique_ptr<node::BoxSession> session;
    std::vector<std::string> news;
    int refusals = 0;  ///< and losses, of the controller's session

private:
    node::IscsiTransport& transport_;
};

/// Three boxes of one cluster.
class ArrayBoxes : public testing::Test {
protected:
    static constexpr wire::VolumeIdentity photos{{7, 7}};
    static constexpr std::uint64_t data_length = 1u << 20;

    ~ArrayBoxes() override {
        for (auto* box : {&oak, &elm, &ash}) box->stop();
    }

    wire::ArrayAddress address(const TestBox& box, const wire::VolumeIdentity& volume = {}) const {
        return {.cluster = the_cluster,
                .volume = volume,
                .box = box.identity(),
                .generation = volume == wire::VolumeIdentity{} ? wire::Generation{} : generation,
                .epoch = epoch};
    }
    wire::ArraySuperblock superblock(const TestBox& box, std::uint8_t place) const {
        wire::ArraySuperblock made{.cluster = the_cluster,
                                   .box = box.identity(),
                                   .place = place,
                                   .epoch = epoch,
                                   .data_offset = 1u << 20,
                                   .data_length = data_length,
                                   .volume = {.volume = photos,
                                              .generation = generation,
                                              .level = 5,
                                              .boxes = 3,
                                              .chunk_bytes = 64u << 10,
                                              .stripes = data_length / (64u << 10)}};
        made.volume.name = {'p', 'h', 'o', 't', 'o', 's'};
        made.volume.consistency = consistency;
        if (consistency == wire::ArrayConsistency::journal) {
            made.journal_offset = 1u << 20;
            made.journal_length = 1u << 20;
            made.data_offset = 2u << 20;
            made.columns = 2;
        }
        std::uint8_t i = 0;
        for (const auto* each : {&oak, &elm, &ash})
            made.volume.members[i++] = {.box = each->identity(),
                                        .state = wire::ArrayMemberState::current};
        return made;
    }
    wire::ArrayOutcome create(TestBox& box, std::uint8_t place) {
        return box.send(wire::ArrayAction::create_part, address(box, photos),
                        superblock(box, place));
    }
    /// All three started, taken over, introduced, and with a part each.
    void set_up() {
        for (auto* box : {&oak, &elm, &ash}) box->start();
        for (auto* box : {&oak, &elm, &ash})
            ASSERT_EQ(box->send(wire::ArrayAction::new_epoch, address(*box)),
                      wire::ArrayOutcome::done);
        std::uint8_t place = 0;
        for (auto* box : {&oak, &elm, &ash})
            ASSERT_EQ(create(*box, place++), wire::ArrayOutcome::done);
        introduce();
    }
    /// What is not kept, and has to be said again when a box comes back.
    void introduce() {
        for (auto* box : {&oak, &elm, &ash}) {
            ASSERT_EQ(box->send(wire::ArrayAction::meet_boxes,
                                wire::ArrayPeerList{.address = address(*box), .count = 3},
                                peer(oak, 0), peer(elm, 1), peer(ash, 2)),
                      wire::ArrayOutcome::done);
            ASSERT_EQ(box->send(wire::ArrayAction::admit_host,
                                wire::ArrayHostAdmission{
                                    .address = address(*box),
                                    .host = host_session,
                                    .port = ArrayParty::port,
                                    .network_address = *node::network_address_of(host_machine),
                                    .secret = node::secret_for(secret_of(0x77),
                                                               wire::box_end(box->identity()))}),
                      wire::ArrayOutcome::done);
        }
    }
    static wire::ArrayPeer peer(const TestBox& box, std::uint8_t place) {
        return {.box = box.identity(),
                .place = place,
                .port = box_port,
                .address = *node::network_address_of(box.machine),
                .secret = secret_of(0x42)};
    }

    wire::ArrayAnswer order(TestBox& box, std::uint64_t transaction, raid::Phase phase,
                            const std::vector<raid::Piece>& pieces, bool closes = false) {
        raid::OrderEnvelope envelope{.address = address(box, photos),
                                     .transaction = wire::TransactionNumber{transaction},
                                     .host = host_session,
                                     .window = 1,
                                     .window_tag = tag(box, transaction),
                                     .window_length = 128u << 10};
        std::vector<raid::PartyAccess> accesses{{.party = raid::the_host,
                                                 .tag = host->region->tag(),
                                                 .base = 0,
                                                 .identity = wire::identity_of(host_session)}};
        std::uint8_t place = 0;
        for (auto* each : {&oak, &elm, &ash})
            accesses.push_back({.party = raid::party(raid::BoxIndex{place++}),
                                .tag = tag(*each, transaction),
                                .base = 0,
                                .identity = each->node ? each->identity() : wire::BoxIdentity{}});
        for (const auto& piece : pieces)
            if (piece.verb == raid::Verb::prepare) envelope.to_prepare += piece.length;
        const auto encoded = raid::encode_order({.phase = phase,
                                                 .prepares = envelope.to_prepare != 0,
                                                 .closes = closes,
                                                 .pieces = pieces},
                                                envelope, accesses);
        return box.send(encoded.command_block, encoded.parameters);
    }
    /// Ends a transaction, whatever of it there is.
    wire::ArrayOutcome abort(TestBox& box, std::uint64_t transaction) {
        const auto where = encoded(address(box, photos));
        return box
            .send({.action = wire::ArrayAction::abort,
                   .transaction = wire::TransactionNumber{transaction},
                   .parameter_length = where.size()},
                  {where.begin(), where.end()})
            .outcome;
    }
    SteeringTag tag(TestBox& box, std::uint64_t transaction) {
        if (!box.session || !box.session->is_up()) return SteeringTag{0x1200};
        return box.window_tag(1, static_cast<std::uint8_t>(transaction));
    }
    std::vector<std::byte> home(const TestBox& box, std::uint64_t at, std::size_t size) {
        std::vector<std::byte> octets(size);
        world.disk(box.part_path(photos)).peek((1u << 20) + at, octets);
        return octets;
    }

    static constexpr const char* host_machine = "10.0.0.50";
    static constexpr wire::HostSession host_session{0x1234};
    sim::World world{11};
    wire::Epoch epoch = the_epoch;
    wire::Generation generation{1};
    wire::ArrayConsistency consistency{};
    node::IscsiIserTransport transport{world, {}};
    TestBox oak{world, "oak", "10.0.0.1", transport};
    TestBox elm{world, "elm", "10.0.0.2", transport};
    TestBox ash{world, "ash", "10.0.0.3", transport};
    std::unique_ptr<ArrayParty> host = make_host();

private:
    std::unique_ptr<ArrayParty> make_host() {
        auto made = std::make_unique<ArrayParty>(
            world, host_machine,
            wire::ArrayConnectionEnd{.role = wire::ArrayRole::host,
                                     .identity = wire::identity_of(host_session)},
            node::ArrayLinks::Options{});
        made->links->disappear(made->end);
        made->links->appear_as(made->end, secret_of(0x77));
        return made;
    }
};

}  // namespace weft::test
