// SPDX-License-Identifier: Apache-2.0
// An array in memory that carries out plans: boxes with a disk and a window each, a controller with
// a window, a host with a buffer. It does what orders say, nothing more, and counts what moves.
//
// Boxes of one turn work in an order drawn from the seed: what depends on it is a mistake of the
// plan. Windows are filled with rubbish before each plan: what was not put there is not there.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/parity.hpp"
#include "raid/digest.hpp"
#include "raid/plan.hpp"
#include "raid/tally.hpp"
#include "support/raid_memory.hpp"

namespace weft::test {

class RaidArray {
public:
    RaidArray(const raid::Layout& layout, std::uint64_t stripes, std::uint64_t seed)
        : layout_(layout), stripes_(stripes), random_(seed) {
        for (unsigned box = 0; box < layout.boxes(); ++box)
            disks_.emplace_back(stripes * layout.chunk_bytes());
        shadow_.resize(stripes * layout.stripe_bytes());
    }

    std::mt19937_64& random() { return random_; }
    std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
    std::uint64_t capacity() const { return shadow_.size(); }
    std::uint64_t stripes() const { return stripes_; }
    const AlignedBytes& disk(unsigned box) const { return disks_[box]; }
    AlignedBytes& disk(unsigned box) { return disks_[box]; }
    const raid::Tally& seen() const { return seen_; }
    const std::vector<raid::Digest>& digests() const { return digests_; }
    /// What was prepared by the last plan: of each box its digest.
    std::vector<raid::Digest> preparations() const {
        std::vector<raid::Digest> all;
        for (const auto& [box, preparation] : prepared_) all.push_back(preparation.digest);
        return all;
    }
    /// All that the controller adds up of it: also of boxes that only lend a block.
    std::vector<raid::Digest> counted() const {
        auto all = preparations();
        all.insert(all.end(), digests_.begin(), digests_.end());
        return all;
    }
    /// Boxes whose preparation, from now on, is not what they were sent.
    raid::Mask damages = 0;

    /// New bytes for a range, in the host's memory and in the shadow.
    void draw(raid::Range range) {
        host_.resize(range.length);
        for (auto& octet : host_) octet = static_cast<std::byte>(random_());
        std::ranges::copy(host_, shadow_.begin() + static_cast<std::ptrdiff_t>(range.offset));
    }
    /// Whether the host has what the shadow says.
    bool host_has(raid::Range range) const {
        return std::equal(host_.begin(), host_.end(),
                          shadow_.begin() + static_cast<std::ptrdiff_t>(range.offset));
    }
    void expect_to_read(raid::Range range) { host_.assign(range.length, std::byte{0xcd}); }

    /// Fills a disk with rubbish: its box was lost, and another is in its place.
    void wipe(unsigned box) {
        for (auto& octet : disks_[box].all()) octet = static_cast<std::byte>(random_());
    }

    void carry_out(const raid::Plan& plan) {
        SCOPED_TRACE(to_text(plan));
        open_windows(plan);
        seen_ = {};
        digests_.clear();
        prepared_.clear();
        auto first = plan.orders.begin();
        while (first != plan.orders.end()) {
            auto last = std::find_if(first, plan.orders.end(), [&](const raid::Order& order) {
                return order.phase != first->phase || order.round != first->round;
            });
            carry_out_turn({first, last});
            first = last;
        }
    }

    /// Parity by definition, from the shadow: what every disk must hold.
    void expect_disks_right(raid::Mask absent) const {
        for (std::uint64_t stripe = 0; stripe < stripes_; ++stripe) {
            auto columns = columns_of(stripe);
            for (unsigned box = 0; box < layout_.boxes(); ++box) {
                if (raid::contains(absent, box)) continue;
                auto column = layout_.column_of(stripe, raid::BoxIndex(box));
                auto have = disks_[box].all().subspan(stripe * layout_.chunk_bytes(),
                                                      layout_.chunk_bytes());
                ASSERT_TRUE(std::ranges::equal(have, columns[column].all()))
                    << "box " << box << ", stripe " << stripe << ", column " << int{column};
            }
        }
    }

private:
    std::vector<AlignedBytes> columns_of(std::uint64_t stripe) const {
        std::vector<AlignedBytes> columns(layout_.boxes(), AlignedBytes(layout_.chunk_bytes()));
        std::vector<ConstBuffer> data;
        for (unsigned j = 0; j < layout_.data_columns(); ++j) {
            auto at = stripe * layout_.stripe_bytes() + j * layout_.chunk_bytes();
            std::ranges::copy(ConstBuffer(shadow_).subspan(at, layout_.chunk_bytes()),
                              columns[j].all().begin());
            data.push_back(columns[j].all());
        }
        if (layout_.level() == raid::Level::mirror)
            for (auto& column : columns) column = columns[0];
        else
            raid::encode_parity(
                data, columns[layout_.row_parity()].all(),
                layout_.has_diagonal() ? columns[layout_.diagonal_parity()].all() : Buffer{});
        return columns;
    }

    void open_windows(const raid::Plan& plan) {
        windows_.clear();
        for (unsigned box = 0; box < layout_.boxes(); ++box)
            windows_.emplace_back(plan.box_windows[box]);
        windows_.emplace_back(plan.controller_window);
        for (auto& window : windows_)
            std::ranges::fill(window.all(), static_cast<std::byte>(random_()));
    }
    Buffer window(const raid::Party& party) {
        return windows_[party.kind == raid::PartyKind::box ? number(party.box) : layout_.boxes()]
            .all();
    }
    /// A run of a party's memory. Whatever lies outside is a mistake of the plan.
    Buffer memory(const raid::Party& party, std::uint64_t at, std::uint32_t length) {
        Buffer all = party.kind == raid::PartyKind::host ? Buffer(host_) : window(party);
        EXPECT_LE(at + length, all.size());
        return at + length <= all.size() ? all.subspan(at, length) : all.first(0);
    }

    void carry_out_turn(std::span<const raid::Order> orders) {
        std::map<raid::Party, std::vector<const raid::Order*>> waiting;
        for (const auto& order : orders) waiting[order.to].push_back(&order);
        std::vector<raid::Party> turn;
        for (const auto& [party, list] : waiting) turn.push_back(party);
        std::ranges::shuffle(turn, random_);
        for (const auto& party : turn)
            for (const auto* order : waiting[party]) carry_out(*order);
    }

    void carry_out(const raid::Order& order) {
        if (order.to.kind == raid::PartyKind::box) {
            ++seen_.controller.operations;
            ++seen_.boxes.operations;
        }
        raid::Digest digest;
        bool digested = false;
        const raid::Piece* last = nullptr;
        for (const auto& piece : order.pieces) {
            if (is_transfer(piece.verb)) {
                count_transfer(order.to, piece, last);
                last = &piece;
            }
            if (piece.verb == raid::Verb::digest) {
                digest.add(digest_of(home(order.to, piece), piece.blend, piece.column, piece.home));
                digested = true;
            } else {
                carry_out(order.to, piece);
            }
        }
        if (digested) digests_.push_back(digest);
        if (order.phase == raid::Phase::commit && order.pieces.empty()) commit_prepared(order.to);
    }

    struct Preparation {
        raid::Digest digest;
        std::vector<std::pair<std::uint64_t, AlignedBytes>> blocks;
    };
    void prepare(const raid::Party& who, const raid::Piece& piece) {
        AlignedBytes block(piece.length), change(piece.length);
        std::ranges::copy(memory(who, piece.slot, piece.length), block.all().begin());
        // One block of it: the same twice would go out of a sum.
        if (raid::contains(damages, number(who.box)) && !prepared_.contains(who))
            block.all()[0] ^= std::byte{1};
        change = block;
        if (counting_of(piece) == raid::as_change) {
            AlignedBytes old(piece.length);
            std::ranges::copy(home(who, piece), old.all().begin());
            xor_into(old.all(), change.all());
        }
        auto& mine = prepared_[who];
        if (counting_of(piece) != raid::uncounted)
            mine.digest.add(digest_of(change.all(), piece.blend, piece.column, piece.home));
        mine.blocks.emplace_back(piece.home, std::move(block));
    }
    void commit_prepared(const raid::Party& who) {
        for (const auto& [at, block] : prepared_[who].blocks)
            copy(block.all(), disks_[number(who.box)].all().subspan(at, block.all().size()));
    }

    raid::RoleTally& role(const raid::Party& party) {
        return party.kind == raid::PartyKind::host         ? seen_.host
               : party.kind == raid::PartyKind::controller ? seen_.controller
                                                           : seen_.boxes;
    }
    void count_transfer(const raid::Party& who, const raid::Piece& piece,
                        const raid::Piece* before) {
        seen_.wire_octets += piece.length;
        role(who).octets += piece.length;
        role(piece.peer).octets += piece.length;
        EXPECT_NE(who, piece.peer) << "a transfer to itself";
        const bool goes_on = before && before->verb == piece.verb && before->peer == piece.peer &&
                             before->at + before->length == piece.at;
        if (!goes_on) ++role(who).operations;
    }

    Buffer home(const raid::Party& who, const raid::Piece& piece) {
        EXPECT_EQ(who.kind, raid::PartyKind::box);
        Buffer all = disks_[number(who.box)].all();
        EXPECT_LE(piece.home + piece.length, all.size());
        return all.subspan(piece.home, piece.length);
    }

    static void blend(const raid::Piece& piece, ConstBuffer from, Buffer into) {
        // A host's memory need not be aligned as ISA-L wants it.
        AlignedBytes copy(from.size());
        std::ranges::copy(from, copy.all().begin());
        switch (piece.blend) {
            case raid::Blend::copy:
                std::ranges::copy(from, into.begin());
                break;
            case raid::Blend::add:
                xor_into(copy.all(), into);
                break;
            case raid::Blend::add_diagonal:
                raid::add_diagonal(piece.column, copy.all(), into);
                break;
        }
    }

    void carry_out(const raid::Party& who, const raid::Piece& piece) {
        auto slot = [&] { return memory(who, piece.slot, piece.length); };
        switch (piece.verb) {
            case raid::Verb::fetch:
                return blend(piece, memory(piece.peer, piece.at, piece.length), slot());
            case raid::Verb::load:
                return blend(piece, home(who, piece), slot());
            case raid::Verb::combine:
                return blend(piece, memory(who, piece.at, piece.length), slot());
            case raid::Verb::clear:
                return std::ranges::fill(slot(), std::byte{0}), void();
            case raid::Verb::solve_pair:
                return raid::solve_pair(piece.column, piece.other_column, slot(),
                                        memory(who, piece.at, piece.length));
            case raid::Verb::solve_diagonal:
                return raid::solve_from_diagonal(piece.column, slot());
            case raid::Verb::send_home:
                return copy(home(who, piece), memory(piece.peer, piece.at, piece.length));
            case raid::Verb::send_slot:
                return copy(slot(), memory(piece.peer, piece.at, piece.length));
            case raid::Verb::commit:
                return copy(slot(), home(who, piece));
            case raid::Verb::prepare:
                return prepare(who, piece);
            case raid::Verb::digest:
            case raid::Verb::flush:
            case raid::Verb::versions:
                return;
        }
    }
    static void copy(ConstBuffer from, Buffer to) { std::ranges::copy(from, to.begin()); }

    raid::Layout layout_;
    std::uint64_t stripes_;
    std::mt19937_64 random_;
    std::vector<AlignedBytes> disks_;
    std::vector<AlignedBytes> windows_;  ///< of the boxes, then of the controller
    std::vector<std::byte> host_;
    std::vector<std::byte> shadow_;
    std::vector<raid::Digest> digests_;
    std::map<raid::Party, Preparation> prepared_;
    raid::Tally seen_;
};

}  // namespace weft::test
