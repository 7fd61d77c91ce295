// SPDX-License-Identifier: Apache-2.0
#include "raid/tally.hpp"

namespace weft::raid {
namespace {

RoleTally& role(Tally& tally, const Party& party) {
    switch (party.kind) {
        case PartyKind::host:
            return tally.host;
        case PartyKind::controller:
            return tally.controller;
        default:
            return tally.boxes;
    }
}

/// Whether a transfer goes on where the one before it ended, at the same peer.
bool continues(const Piece* before, const Piece& piece) {
    return before && before->verb == piece.verb && before->peer == piece.peer &&
           before->at + before->length == piece.at;
}

void count(Tally& tally, const Order& order) {
    if (order.to.kind == PartyKind::box) {
        ++tally.controller.operations;  // the command
        ++tally.boxes.operations;       // the response
    }
    const Piece* last_transfer = nullptr;
    for (const Piece& piece : order.pieces) {
        if (piece.verb == Verb::load || piece.verb == Verb::send_home || piece.verb == Verb::digest)
            tally.disk_reads += piece.length;
        if (piece.verb == Verb::commit) tally.disk_writes += piece.length;
        if (piece.verb == Verb::prepare) tally.disk_writes += 2 * piece.length;  // and later home
        if (!is_transfer(piece.verb)) continue;
        if (!continues(last_transfer, piece)) ++role(tally, order.to).operations;
        last_transfer = &piece;
        role(tally, order.to).octets += piece.length;
        role(tally, piece.peer).octets += piece.length;
        tally.wire_octets += piece.length;
    }
}

}  // namespace

Tally tally_of_upkeep(const Plan& plan) {
    Tally tally;
    for (const auto& order : plan.orders) count(tally, order);
    return tally;
}

Tally tally_of_request(const Plan& plan) {
    Tally tally = tally_of_upkeep(plan);
    ++tally.host.operations;        // the command
    ++tally.controller.operations;  // the response
    return tally;
}

}  // namespace weft::raid
