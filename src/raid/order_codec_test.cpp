// SPDX-License-Identifier: Apache-2.0
#include "raid/order_codec.hpp"

#include <gtest/gtest.h>

#include "raid/plan.hpp"
#include "support/golden.hpp"

namespace weft::raid {
namespace {

constexpr OrderBounds bounds{.home_length = 1 << 20, .window_limit = 4 << 20};

struct Golden {
    wire::ArrayCommandBlock block;
    std::vector<std::byte> parameters;
};
Golden golden_order() {
    static const auto octets = test::golden("raid/order.hex");
    auto block = decode<wire::ArrayCommandBlock>(octets);
    return {*block, {octets.begin() + 16, octets.end()}};
}

TEST(OrderCodec, ReadsAndWritesTheGoldenOrder) {
    auto golden = golden_order();
    auto received = parse_order(golden.block, golden.parameters, bounds);
    ASSERT_TRUE(received);
    EXPECT_EQ(received->order.phase, Phase::parity);
    EXPECT_TRUE(received->order.prepares);
    ASSERT_EQ(received->order.pieces.size(), 3u);
    EXPECT_EQ(received->order.pieces[1].peer, party(BoxIndex{3}));
    EXPECT_EQ(received->order.pieces[1].blend, Blend::add_diagonal);
    auto again = encode_order(received->order, received->envelope, received->parties);
    EXPECT_EQ(again.command_block, golden.block);
    EXPECT_EQ(test::to_hex(again.parameters), test::to_hex(golden.parameters));
}

TEST(OrderCodec, StampsTheLeaseIntoAnOrderAndIntoNothingElse) {
    auto golden = golden_order();
    auto before = parse_order(golden.block, golden.parameters, bounds);
    stamp_lease(golden.block, golden.parameters, 1234);
    auto after = parse_order(golden.block, golden.parameters, bounds);
    ASSERT_TRUE(before && after);
    EXPECT_EQ(after->envelope.lease_ms, 1234u);
    after->envelope.lease_ms = before->envelope.lease_ms;
    EXPECT_EQ(after->envelope, before->envelope);
    EXPECT_EQ(after->order, before->order);
    std::vector<std::byte> address(wire_size<wire::ArrayAddress>());
    stamp_lease({.action = wire::ArrayAction::new_epoch}, address, 1234);
    EXPECT_EQ(address, std::vector<std::byte>(address.size()));
}

std::vector<PartyAccess> everybody(std::uint8_t boxes) {
    std::vector<PartyAccess> list{{the_host, SteeringTag{7}, 4096, {}},
                                  {the_controller, SteeringTag{8}, 0, {}}};
    for (std::uint8_t box = 0; box < boxes; ++box)
        list.push_back({party(BoxIndex{box}), SteeringTag{100u + box}, 1ull << 40, {}});
    return list;
}

TEST(OrderCodec, CarriesEveryOrderOfEveryPlan) {
    Health two;
    two.lose(BoxIndex{1}), two.lose(BoxIndex{4});
    auto layout = *Layout::make(Level::raid6, 8, 8192);
    std::size_t orders = 0;
    for (auto style : {Style::vectored, Style::paper})
        for (auto path : {DataPath::third_party, DataPath::in_band})
            for (std::uint64_t slices = 1; slices < 60; slices += 7)
                for (const auto& health : {Health{}, two})
                    for (auto plan_of : {plan_read, plan_write}) {
                        auto plan = *plan_of(layout, health, {4096, slices * 4096},
                                             {.path = path, .style = style});
                        for (const auto& order : plan.orders) {
                            if (order.to.kind != PartyKind::box) continue;
                            OrderEnvelope envelope;
                            envelope.window_length = plan.box_windows[number(order.to.box)];
                            auto encoded = encode_order(order, envelope, everybody(8));
                            auto received =
                                parse_order(encoded.command_block, encoded.parameters, bounds);
                            ASSERT_TRUE(received);
                            received->order.to = order.to;
                            ASSERT_EQ(received->order, order);
                            ASSERT_EQ(received->envelope, envelope);
                            ++orders;
                        }
                    }
    EXPECT_GT(orders, 500u);
}

TEST(OrderCodec, RefusesEveryTruncation) {
    auto golden = golden_order();
    for (std::size_t size = 0; size < golden.parameters.size(); ++size) {
        auto part = ConstBuffer(golden.parameters).first(size);
        EXPECT_FALSE(parse_order(golden.block, part, bounds));
        auto block = golden.block;
        block.parameter_length = static_cast<std::uint32_t>(size);
        EXPECT_EQ(parse_order(block, part, bounds).error().code, Code::truncated) << size;
    }
}

/// The golden order with one octet changed, counted from the start of the parameter list.
Result<ReceivedOrder> with_octet(std::size_t at, std::uint8_t value) {
    auto golden = golden_order();
    golden.parameters[at] = static_cast<std::byte>(value);
    return parse_order(golden.block, golden.parameters, bounds);
}

TEST(OrderCodec, RefusesWhatABoxCouldNotDo) {
    constexpr std::size_t parties = 144, pieces = parties + 64, second = pieces + 32,
                          third = second + 32;
    struct Case {
        const char* what;
        std::size_t at;
        std::uint8_t value;
        Code code;
        std::uint32_t where;
    };
    const Case cases[] = {
        {"another key", 0, 'X', Code::malformed, 0},
        {"a phase there is none of", 104, 4, Code::malformed, 0},
        {"a window larger than there is", 100, 0xff, Code::exhausted, 0},
        {"a party of no kind", parties, 3, Code::malformed, 0},
        {"a box no volume has", parties + 33, 18, Code::malformed, 0},
        {"a verb there is none of", pieces, 13, Code::malformed, 1},
        {"no verb", pieces, 0, Code::malformed, 1},
        {"a blend there is none of", pieces + 1, 3, Code::malformed, 1},
        {"a party that is not in the list", pieces + 4, 2, Code::malformed, 1},
        {"a fetch from nobody", pieces + 4, 0xff, Code::malformed, 1},
        {"a length of half a slice", pieces + 10, 0x08, Code::malformed, 1},
        {"a flush of something", pieces, 11, Code::malformed, 1},
        {"a slot beyond the window", pieces + 14, 0x20, Code::out_of_range, 1},
        {"a slot that is no slice", pieces + 15, 1, Code::malformed, 1},
        {"a column no code has", second + 2, 16, Code::malformed, 2},
        {"a home beyond the disk", third + 19, 1, Code::out_of_range, 3},
        {"a home that is no slice", third + 23, 8, Code::malformed, 3},
        {"a party where there is none", third + 4, 0, Code::malformed, 3},
    };
    for (const auto& wrong : cases) {
        auto received = with_octet(wrong.at, wrong.value);
        ASSERT_FALSE(received) << wrong.what;
        EXPECT_EQ(received.error().code, wrong.code) << wrong.what;
        EXPECT_EQ(received.error().where, wrong.where) << wrong.what;
    }
}

Result<ReceivedOrder> with_pieces(Phase phase, bool prepares, const std::vector<Piece>& pieces) {
    OrderEnvelope envelope;
    envelope.window_length = 8192;
    Order order{.phase = phase, .prepares = prepares, .pieces = pieces};
    auto encoded = encode_order(order, envelope, {});
    return parse_order(encoded.command_block, encoded.parameters, bounds);
}

TEST(OrderCodec, TakesWhatIsToBePreparedAtTheEndOfWhatPrepares) {
    const Piece clear{.verb = Verb::clear, .length = 4096};
    const Piece prepare{.verb = Verb::prepare, .length = 4096, .home = 8192, .at = as_change};
    EXPECT_TRUE(with_pieces(Phase::stage, true, {clear, prepare, prepare}));
    EXPECT_FALSE(with_pieces(Phase::stage, true, {prepare, clear})) << "it would change after";
    EXPECT_FALSE(with_pieces(Phase::stage, false, {prepare})) << "an order that prepares nothing";
    EXPECT_FALSE(with_pieces(Phase::commit, true, {prepare})) << "it is decided already";
    auto wrong = prepare;
    wrong.at = 3;
    EXPECT_FALSE(with_pieces(Phase::stage, true, {wrong})) << "digested in no known way";
    wrong.at = prepare_word(as_new, 0xffff, true);
    EXPECT_TRUE(with_pieces(Phase::stage, true, {wrong})) << "all columns, made anew";
    wrong.at = prepare_word(as_new, 0x1'0000, false);
    EXPECT_FALSE(with_pieces(Phase::stage, true, {wrong})) << "a column no volume has";
    for (const std::uint64_t bit : {3, 7, 40, 63}) {
        wrong.at = as_new | std::uint64_t{1} << bit;
        EXPECT_FALSE(with_pieces(Phase::stage, true, {wrong})) << "bit " << bit;
    }
    wrong = prepare;
    wrong.home = 1 << 20;
    EXPECT_EQ(with_pieces(Phase::stage, true, {wrong}).error().code, Code::out_of_range);
    wrong = prepare;
    wrong.slot = 8192;
    EXPECT_EQ(with_pieces(Phase::stage, true, {wrong}).error().code, Code::out_of_range);
    EXPECT_TRUE(with_pieces(Phase::commit, false, {})) << "of what was prepared, all is known";
    EXPECT_FALSE(with_pieces(Phase::stage, false, {}));
}

TEST(OrderCodec, TakesAQuestionForVersionsOfOneSlice) {
    const Piece asked{.verb = Verb::versions, .column = 8, .length = 4096, .home = 8192};
    const auto received = with_pieces(Phase::read, false, {asked});
    ASSERT_TRUE(received);
    EXPECT_EQ(received->order.pieces.front(), asked);
    auto wrong = asked;
    wrong.length = 8192;
    EXPECT_FALSE(with_pieces(Phase::read, false, {wrong})) << "an answer has room for one";
    wrong = asked;
    wrong.column = data_columns_max;
    EXPECT_FALSE(with_pieces(Phase::read, false, {wrong}));
    wrong = asked;
    wrong.home = 1 << 20;
    EXPECT_EQ(with_pieces(Phase::read, false, {wrong}).error().code, Code::out_of_range);
}

TEST(OrderCodec, RefusesAListThatIsNotAsLongAsItSays) {
    auto golden = golden_order();
    golden.parameters.push_back(std::byte{0});
    EXPECT_FALSE(parse_order(golden.block, golden.parameters, bounds));
    golden.block.parameter_length += 1;
    EXPECT_FALSE(parse_order(golden.block, golden.parameters, bounds));
    golden = golden_order();
    golden.block.action = wire::ArrayAction::abort;
    EXPECT_FALSE(parse_order(golden.block, golden.parameters, bounds));
}

// Whatever is taken lies within its bounds: the executor relies on it.
TEST(OrderCodec, TakesNothingOutOfBoundsWhateverOctetIsChanged) {
    auto golden = golden_order();
    for (std::size_t at = 0; at < golden.parameters.size(); ++at) {
        for (unsigned value = 0; value < 256; ++value) {
            auto received = with_octet(at, static_cast<std::uint8_t>(value));
            if (!received) continue;
            const auto window = received->envelope.window_length;
            for (const auto& piece : received->order.pieces) {
                ASSERT_TRUE(within(piece.slot, piece.length, window));
                const bool at_home = piece.verb == Verb::load || piece.verb == Verb::commit;
                if (at_home) {
                    ASSERT_TRUE(within(piece.home, piece.length, bounds.home_length));
                }
            }
        }
    }
}

}  // namespace
}  // namespace weft::raid
