// SPDX-License-Identifier: Apache-2.0
#include "raid/order.hpp"

namespace weft::raid {
namespace {

std::string name(const Party& party) {
    switch (party.kind) {
        case PartyKind::host:
            return "host";
        case PartyKind::controller:
            return "controller";
        case PartyKind::box:
            return "box " + std::to_string(number(party.box));
    }
    return "nobody";
}

/// 4096 as "4K" where it is a whole number of them: offsets are.
std::string size(std::uint64_t octets) {
    return octets % 1024 == 0 && octets != 0 ? std::to_string(octets / 1024) + "K"
                                             : std::to_string(octets);
}

std::string slot(std::uint64_t at) {
    return "slot " + size(at);
}
std::string home(const Piece& piece) {
    return "home " + size(piece.home);
}
std::string peer(const Piece& piece) {
    return name(piece.peer) + (piece.peer.kind == PartyKind::host ? " at " : " slot ") +
           size(piece.at);
}

/// "copy A to B", "add A to B", "add diagonal 3 of A to B".
std::string blended(const Piece& piece, const char* copying, const std::string& from) {
    std::string how = copying;
    if (piece.blend == Blend::add) how += " and add";
    if (piece.blend == Blend::add_diagonal)
        how += " and add diagonals of column " + std::to_string(piece.column);
    return how + " " + from + " -> " + slot(piece.slot);
}

std::string digested(const Piece& piece) {
    if (piece.blend == Blend::copy) return " for the row";
    if (piece.blend == Blend::add) return " for the diagonals";
    return " as column " + std::to_string(piece.column);
}

std::string of_columns(const Piece& piece) {
    std::string text;
    for (Column column = 0; column < data_columns_max; ++column)
        if (contains(columns_changed(piece), column))
            text += (text.empty() ? " of column " : " and ") + std::to_string(column);
    return text.empty() ? text : (is_restoring(piece) ? ", anew" : ", new") + text;
}

std::string to_text(const Piece& piece) {
    switch (piece.verb) {
        case Verb::fetch:
            return blended(piece, "fetch", peer(piece));
        case Verb::load:
            return blended(piece, "load", home(piece));
        case Verb::combine:
            return blended(piece, "take", slot(piece.at));
        case Verb::clear:
            return "clear " + slot(piece.slot);
        case Verb::solve_pair:
            return "solve columns " + std::to_string(piece.column) + ", " +
                   std::to_string(piece.other_column) + " in " + slot(piece.slot) + ", " +
                   slot(piece.at);
        case Verb::solve_diagonal:
            return "solve column " + std::to_string(piece.column) + " in " + slot(piece.slot);
        case Verb::send_home:
            return "send " + home(piece) + " -> " + peer(piece);
        case Verb::send_slot:
            return "send " + slot(piece.slot) + " -> " + peer(piece);
        case Verb::commit:
            return "write " + slot(piece.slot) + " -> " + home(piece);
        case Verb::digest:
            return "digest " + home(piece) + digested(piece);
        case Verb::flush:
            return "flush";
        case Verb::prepare:
            return "prepare " + slot(piece.slot) + " -> " + home(piece) + of_columns(piece) +
                   (counting_of(piece) == uncounted   ? ""
                    : counting_of(piece) == as_change ? ", digest the change" + digested(piece)
                                                      : ", digest it" + digested(piece));
        case Verb::versions:
            return "versions of " + home(piece) + " from column " + std::to_string(piece.column);
    }
    return "nothing";
}

std::string turn(const Order& order) {
    constexpr const char* names[] = {"read", "stage", "parity", "commit"};
    return std::string(names[static_cast<std::size_t>(order.phase)]) + " " +
           std::to_string(order.round);
}

}  // namespace

std::string to_text(Command command) {
    constexpr const char* names[command_count] = {"ORDER",
                                                  "PREP READ",
                                                  "PREP WRITE",
                                                  "READ NEW BLOCK",
                                                  "READ PARITY PART TMP",
                                                  "READ PARITY COMP TMP",
                                                  "READ PARITY PART BLOCK",
                                                  "READ PARITY COMP BLOCK",
                                                  "WRITE NEW DATA",
                                                  "XDWRITE",
                                                  "PRE-FETCH"};
    auto index = static_cast<std::size_t>(command);
    return index < command_count ? names[index] : "UNKNOWN";
}

std::string to_text(const Plan& plan) {
    std::string text, last;
    for (const auto& order : plan.orders) {
        if (auto now = turn(order); now != last) text += (last = now) + "\n";
        text += "  " + name(order.to) + ": " + to_text(order.command) +
                (order.prepares ? ", prepare" : "") + (order.closes ? ", close" : "") + "\n";
        for (const auto& piece : order.pieces)
            text += "    " + to_text(piece) + (piece.length == 0 ? "" : ", " + size(piece.length)) +
                    "\n";
    }
    text += "windows";
    bool any = false;
    for (std::size_t box = 0; box < plan.box_windows.size(); ++box) {
        if (plan.box_windows[box] == 0) continue;
        text +=
            (any ? ", box " : " box ") + std::to_string(box) + " " + size(plan.box_windows[box]);
        any = true;
    }
    if (plan.controller_window != 0) {
        text += (any ? ", controller " : " controller ") + size(plan.controller_window);
        any = true;
    }
    return text + (any ? "\n" : " none\n");
}

}  // namespace weft::raid
