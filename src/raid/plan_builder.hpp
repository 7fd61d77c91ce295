// SPDX-License-Identifier: Apache-2.0
// Gathers pieces into orders, in one of two styles: one order per box and turn, or the paper's one
// per block. Whoever makes pieces says what they are for and need not know the style.
#pragma once

#include <list>
#include <map>
#include <tuple>

#include "raid/order.hpp"

namespace weft::raid {

enum class Style : std::uint8_t {
    vectored,  ///< one order per box and turn
    paper,     ///< one order per block, under the paper's names
};

struct Turn {
    Phase phase{};
    std::uint8_t round = 0;
};

/// What the paper would call the order a piece belongs to, and which of several it is. Pieces of
/// one label and one turn make one order.
struct Label {
    Command command{};
    std::uint64_t unit = 0;
    std::uint8_t place = 0;  ///< among the orders of its turn; those of one place stay as made
};

/// When a box with a journal makes lasting what it has staged.
enum class Preparing : std::uint8_t {
    with_last,  ///< by the last order before its commit: no order is added
    /// By an order of its own, in the turn after that: data is made lasting while parity is made
    /// from it. An order more, and one wait for a disk less.
    beside_others,
};

class PlanBuilder {
public:
    PlanBuilder(Style style, bool journal, Preparing preparing)
        : style_(style), journal_(journal), preparing_(preparing) {}

    /// Room in a party's window, which is the party's own until the request ends.
    std::uint32_t slot(Party party, std::uint32_t length);

    void add(Turn turn, Party to, Label label, const Piece& piece);

    /// `malformed` if an order would be longer than one may be.
    Result<Plan> finish();

private:
    void mark_last();
    Result<void> mark_prepares();
    void prepare_what_commits();
    Order& order_to_prepare(Order& last, std::list<Order>& added);

    using Key = std::tuple<Phase, std::uint8_t, Party, Command, std::uint64_t>;

    Style style_;
    bool journal_;
    Preparing preparing_;
    Plan plan_;
    std::map<Key, std::size_t> index_;  ///< of the order in plan_
    std::vector<std::uint8_t> places_;  ///< of the orders in plan_
};

}  // namespace weft::raid
