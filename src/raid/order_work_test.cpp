// SPDX-License-Identifier: Apache-2.0
// Orders made by chance, carried out while disk and peers answer in any order, against the same
// pieces done one after another.
#include "raid/order_work.hpp"

#include <gtest/gtest.h>

#include <random>

#include "base/parity.hpp"
#include "support/held_disk.hpp"
#include "support/raid_memory.hpp"

namespace weft::raid {
namespace {

using test::AlignedBytes;

constexpr std::uint32_t slice = 4096;
constexpr std::uint32_t places = 12;  // of a slice each: slots, home and the peer's memory

class PlainDisk final : public BlockDevice {
public:
    BlockTraits traits() const override { return {}; }
    void submit(BlockRequest& request) override {
        std::uint64_t at = request.offset;
        for (const Buffer& each : request.memory) {
            const Buffer here = octets.all().subspan(at, each.size());
            if (request.operation == BlockOperation::write)
                std::ranges::copy(each, here.begin());
            else
                std::ranges::copy(here, each.begin());
            at += each.size();
        }
        request.completed({});
    }

    AlignedBytes octets{std::size_t{places} * slice};
};

/// A peer that answers when the test says so.
class HeldPeer final : public PeerTransfers {
public:
    void fetch(PeerTransfer& transfer) override { held.push_back({&transfer, true}); }
    void send(PeerTransfer& transfer) override { held.push_back({&transfer, false}); }
    void let_go(std::size_t index) {
        const auto [transfer, fetches] = take(index);
        const Buffer theirs = memory.all().subspan(transfer->at, transfer->memory.size());
        if (fetches)
            std::ranges::copy(theirs, transfer->memory.begin());
        else
            std::ranges::copy(transfer->memory, theirs.begin());
        transfer->completed({});
    }
    void refuse(std::size_t index) {
        take(index).first->completed(Error{.code = Code::access_denied});
    }

    std::vector<std::pair<PeerTransfer*, bool>> held;
    AlignedBytes memory{std::size_t{places} * slice};

private:
    std::pair<PeerTransfer*, bool> take(std::size_t index) {
        const auto taken = held.at(index);
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(index));
        return taken;
    }
};

struct OneOrder : testing::Test, OrderWorkOwner {
    void order_ended(OrderWork&, const OrderResult& result) override { ended = result; }

    void begin(std::vector<Piece> pieces) {
        ReceivedOrder received;
        received.order.pieces = std::move(pieces);
        received.parties.push_back({.party = the_host, .tag = {}, .base = 0, .identity = {}});
        OrderWorkOwner& owner = *this;
        work.emplace(owner, std::move(received),
                     OrderWork::Place{.disk = disk,
                                      .data_offset = 0,
                                      .peers = peer,
                                      .window = window.all(),
                                      .landing = landing.all()});
        work->start();
    }
    bool let_one_go(std::size_t chosen) {
        const std::size_t count = disk.held.size() + peer.held.size();
        if (count == 0) return false;
        chosen %= count;
        if (chosen < disk.held.size())
            disk.let_go(chosen);
        else
            peer.let_go(chosen - disk.held.size());
        return true;
    }
    static void fill(Buffer memory, std::mt19937& chance) {
        for (auto& octet : memory) octet = static_cast<std::byte>(chance());
    }

    PlainDisk medium;
    test::HeldDisk disk{medium};
    HeldPeer peer;
    AlignedBytes window{std::size_t{places} * slice}, landing{std::size_t{4} * slice};
    std::optional<OrderWork> work;
    std::optional<OrderResult> ended;
};

Piece some_piece(std::mt19937& chance) {
    static constexpr std::array verbs{Verb::fetch,     Verb::load,      Verb::combine, Verb::clear,
                                      Verb::send_home, Verb::send_slot, Verb::commit,  Verb::digest,
                                      Verb::flush,     Verb::solve_pair};
    Piece piece{.verb = verbs[chance() % verbs.size()], .blend = {}, .peer = the_host};
    if (piece.verb == Verb::flush) return piece;
    const auto slices = static_cast<std::uint32_t>(1 + chance() % 3);
    piece.length = slices * slice;
    const auto somewhere = [&] {
        return static_cast<std::uint32_t>(chance() % (places - slices + 1)) * slice;
    };
    piece.slot = somewhere();
    piece.home = somewhere();
    piece.at = somewhere();
    const bool blends = piece.verb == Verb::fetch || piece.verb == Verb::load ||
                        piece.verb == Verb::combine || piece.verb == Verb::digest;
    if (blends) piece.blend = static_cast<Blend>(chance() % 3);
    if (piece.verb == Verb::digest && piece.blend == Blend::copy) piece.blend = Blend::add;
    piece.column = static_cast<Column>(chance() % 8);
    piece.other_column = static_cast<Column>(piece.column + 1);
    const auto apart = [&] {
        return piece.slot + piece.length <= piece.at || piece.at + piece.length <= piece.slot;
    };
    const bool two_slots = piece.verb == Verb::combine || piece.verb == Verb::solve_pair;
    while (two_slots && !apart()) piece.at = somewhere(), piece.slot = somewhere();
    return piece;
}

/// One after another: what an order means.
struct Model {
    AlignedBytes window, home, peer;
    Digest digest{};

    void blend(const Piece& piece, AlignedBytes from) {
        const Buffer into = window.all().subspan(piece.slot, piece.length);
        if (piece.blend == Blend::copy) std::ranges::copy(from.all(), into.begin());
        if (piece.blend == Blend::add) xor_into(from.all(), into);
        if (piece.blend == Blend::add_diagonal) add_diagonal(piece.column, from.all(), into);
    }
    static AlignedBytes part(AlignedBytes& of, std::uint64_t at, std::size_t length) {
        AlignedBytes copied(length);
        std::ranges::copy(of.all().subspan(at, length), copied.all().begin());
        return copied;
    }
    void carry_out(const Piece& piece) {
        const Buffer slot = window.all().subspan(piece.slot, piece.length);
        const auto at_home = [&] { return part(home, piece.home, piece.length); };
        switch (piece.verb) {
            case Verb::fetch:
                return blend(piece, part(peer, piece.at, piece.length));
            case Verb::load:
                return blend(piece, at_home());
            case Verb::combine:
                return blend(piece, part(window, piece.at, piece.length));
            case Verb::clear:
                std::ranges::fill(slot, std::byte{0});
                return;
            case Verb::solve_pair:
                return raid::solve_pair(piece.column, piece.other_column, slot,
                                        window.all().subspan(piece.at, piece.length));
            case Verb::send_home:
                std::ranges::copy(at_home().all(), peer.all().subspan(piece.at).begin());
                return;
            case Verb::send_slot:
                std::ranges::copy(slot, peer.all().subspan(piece.at).begin());
                return;
            case Verb::commit:
                std::ranges::copy(slot, home.all().subspan(piece.home).begin());
                return;
            case Verb::digest:
                return digest.add(
                    digest_of(at_home().all(), piece.blend, piece.column, piece.home));
            default:
                return;
        }
    }
};

class OrdersByChance : public OneOrder, public testing::WithParamInterface<unsigned> {};

TEST_P(OrdersByChance, EndAsOnePieceAfterAnother) {
    std::mt19937 chance(GetParam());
    for (int round = 0; round < 40; ++round) {
        ended.reset();
        fill(window.all(), chance);
        fill(peer.memory.all(), chance);
        fill(medium.octets.all(), chance);
        Model model{.window = window, .home = medium.octets, .peer = peer.memory};
        std::vector<Piece> pieces(1 + chance() % 24);
        for (auto& piece : pieces) piece = some_piece(chance);
        // A peer's memory is written and read in one order by nobody: which comes first is open.
        const bool sends = chance() % 2 == 0;
        std::erase_if(pieces, [&](const Piece& piece) {
            const bool is_send = piece.verb == Verb::send_home || piece.verb == Verb::send_slot;
            return sends ? piece.verb == Verb::fetch : is_send;
        });
        std::uint64_t sent_to = 0;
        for (auto& piece : pieces) {
            const bool is_send = piece.verb == Verb::send_home || piece.verb == Verb::send_slot;
            if (!is_send) continue;
            piece.length = slice;
            piece.at = sent_to++ % places * slice;
        }
        std::erase_if(pieces, [&, seen = std::uint64_t{0}](const Piece& piece) mutable {
            const bool is_send = piece.verb == Verb::send_home || piece.verb == Verb::send_slot;
            return is_send && ++seen > places;
        });
        if (pieces.empty()) continue;
        for (const auto& piece : pieces) model.carry_out(piece);
        begin(pieces);
        while (let_one_go(chance())) {
        }
        ASSERT_TRUE(ended);
        EXPECT_EQ(ended->outcome, wire::ArrayOutcome::done);
        EXPECT_EQ(ended->digest.row, model.digest.row);
        EXPECT_EQ(ended->digest.diagonals, model.digest.diagonals);
        ASSERT_EQ(window, model.window) << "round " << round;
        ASSERT_EQ(peer.memory, model.peer) << "round " << round;
        ASSERT_EQ(medium.octets, model.home) << "round " << round;
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, OrdersByChance, testing::Range(1u, 26u));

TEST_F(OneOrder, FetchesBlocksOfManyStripesTogether) {
    std::vector<Piece> pieces;
    for (std::uint32_t i = 0; i < 4; ++i)
        pieces.push_back({.verb = Verb::fetch,
                          .peer = the_host,
                          .length = slice,
                          .slot = i * slice,
                          .at = std::uint64_t{i} * 2 * slice});
    begin(pieces);
    EXPECT_EQ(peer.held.size(), 4u);
    while (let_one_go(3)) {
    }
    EXPECT_TRUE(ended);
}

TEST_F(OneOrder, WritesWhatAdjoinsAtHomeInOneRequest) {
    std::vector<Piece> pieces;
    for (std::uint32_t i = 0; i < 4; ++i)
        pieces.push_back({.verb = Verb::commit,
                          .length = slice,
                          .slot = (3 - i) * slice,
                          .home = std::uint64_t{i} * slice});
    begin(pieces);
    ASSERT_EQ(disk.held.size(), 1u);
    EXPECT_EQ(disk.held[0]->length, 4 * slice);
    EXPECT_EQ(disk.held[0]->memory.size(), 4u);
    while (let_one_go(0)) {
    }
    EXPECT_TRUE(ended);
}

TEST_F(OneOrder, NamesTheFirstPieceThatFailedAndEndsWithWhatIsUnderWay) {
    std::vector<Piece> pieces(3, {.verb = Verb::fetch, .peer = the_host, .length = slice});
    for (std::uint32_t i = 0; i < 3; ++i) pieces[i].slot = i * slice;
    pieces.push_back({.verb = Verb::commit, .length = slice, .slot = 0, .home = 0});
    begin(pieces);
    ASSERT_EQ(peer.held.size(), 3u);
    peer.refuse(1);
    EXPECT_FALSE(ended);
    while (let_one_go(0)) {
    }
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->outcome, wire::ArrayOutcome::peer_refused);
    EXPECT_EQ(ended->piece, 2);
    EXPECT_EQ(ended->party, 0);
}

TEST_F(OneOrder, BeginsNothingMoreOnceItIsToStop) {
    std::vector<Piece> pieces{{.verb = Verb::fetch, .peer = the_host, .length = slice, .slot = 0},
                              {.verb = Verb::commit, .length = slice, .slot = 0, .home = 0}};
    begin(pieces);
    work->stop();
    while (let_one_go(0)) {
    }
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->outcome, wire::ArrayOutcome::unknown_transaction);
}

}  // namespace
}  // namespace weft::raid
