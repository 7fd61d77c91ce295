// SPDX-License-Identifier: Apache-2.0
#include "raid/order_codec.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace weft::raid {
namespace {

constexpr std::size_t header_size = wire_size<wire::ArrayOrderHeader>();
constexpr std::size_t party_size = wire_size<wire::ArrayParty>();
constexpr std::size_t piece_size = wire_size<wire::ArrayPiece>();

constexpr bool uses_slot(Verb verb) {
    return verb != Verb::send_home && verb != Verb::digest && verb != Verb::flush &&
           verb != Verb::versions;
}
constexpr bool uses_other_slot(Verb verb) {
    return verb == Verb::combine || verb == Verb::solve_pair;
}
constexpr bool uses_home(Verb verb) {
    return verb == Verb::load || verb == Verb::send_home || verb == Verb::commit ||
           verb == Verb::digest || verb == Verb::prepare || verb == Verb::versions;
}

wire::ArrayPiece encode_piece(const Piece& piece, std::span<const PartyAccess> used) {
    std::uint8_t party = wire::no_array_party;
    if (is_transfer(piece.verb)) {
        auto found = std::ranges::find(used, piece.peer, &PartyAccess::party);
        party = static_cast<std::uint8_t>(found - used.begin());
    }
    return {.verb = static_cast<std::uint8_t>(piece.verb),
            .blend = static_cast<std::uint8_t>(piece.blend),
            .column = piece.column,
            .other_column = piece.other_column,
            .party = party,
            .length = piece.length,
            .slot = piece.slot,
            .home = piece.home,
            .at = piece.at};
}

Result<PartyAccess> decode_party(ConstBuffer octets) {
    WEFT_TRY(auto party, decode<wire::ArrayParty>(octets));
    if (party.kind > static_cast<std::uint8_t>(PartyKind::box) || party.box >= limits::boxes)
        return Error{Code::malformed};
    return PartyAccess{.party = {PartyKind{party.kind}, BoxIndex{party.box}},
                       .tag = party.tag,
                       .base = party.base,
                       .identity = party.identity};
}

Result<void> check_columns(const Piece& piece) {
    if (piece.blend == Blend::add_diagonal && piece.column >= data_columns_max)
        return Error{Code::malformed};
    const bool names_one = piece.verb == Verb::solve_diagonal || piece.verb == Verb::versions;
    if (names_one && piece.column >= data_columns_max) return Error{Code::malformed};
    if (piece.verb != Verb::solve_pair) return {};
    if (piece.column >= data_columns_max || piece.other_column >= data_columns_max ||
        piece.column == piece.other_column)
        return Error{Code::malformed};
    return {};
}

/// Slots that are worked on together may be the same, or apart, but not half over each other.
bool overlap(std::uint64_t a, std::uint64_t b, std::uint32_t length) {
    return a < b + length && b < a + length;
}

/// Nothing is set that means nothing.
bool is_prepare_word(const Piece& piece) {
    const Mask columns = columns_changed(piece);
    return counting_of(piece) <= uncounted && columns >> data_columns_max == 0 &&
           piece.at == prepare_word(counting_of(piece), columns, is_restoring(piece));
}

Result<void> check_ranges(const Piece& piece, std::uint32_t window, std::uint64_t home_length) {
    if (piece.length % slice_size != 0 || (piece.length == 0) != (piece.verb == Verb::flush))
        return Error{Code::malformed};
    if (piece.slot % slice_size != 0 || piece.home % slice_size != 0) return Error{Code::malformed};
    if (uses_slot(piece.verb) && !within(piece.slot, piece.length, window))
        return Error{Code::out_of_range};
    if (uses_other_slot(piece.verb)) {
        if (piece.at % slice_size != 0 || overlap(piece.slot, piece.at, piece.length))
            return Error{Code::malformed};
        if (!within(piece.at, piece.length, window)) return Error{Code::out_of_range};
    }
    if (piece.verb == Verb::versions && piece.length != slice_size) return Error{Code::malformed};
    if (piece.verb == Verb::prepare && !is_prepare_word(piece)) return Error{Code::malformed};
    if (uses_home(piece.verb) && !within(piece.home, piece.length, home_length))
        return Error{Code::out_of_range};
    return {};
}

Result<Piece> decode_piece(ConstBuffer octets, std::span<const PartyAccess> parties,
                           std::uint32_t window, std::uint64_t home_length) {
    WEFT_TRY(auto read, decode<wire::ArrayPiece>(octets));
    if (read.verb < static_cast<std::uint8_t>(Verb::fetch) ||
        read.verb > static_cast<std::uint8_t>(Verb::versions) ||
        read.blend > static_cast<std::uint8_t>(Blend::add_diagonal))
        return Error{Code::malformed};
    Piece piece{.verb = Verb{read.verb},
                .blend = Blend{read.blend},
                .column = read.column,
                .other_column = read.other_column,
                .peer = {},
                .length = read.length,
                .slot = read.slot,
                .home = read.home,
                .at = read.at};
    if (is_transfer(piece.verb)) {
        if (read.party >= parties.size()) return Error{Code::malformed};
        piece.peer = parties[read.party].party;
    } else if (read.party != wire::no_array_party) {
        return Error{Code::malformed};
    }
    if (auto good = check_columns(piece); !good) return good.error();
    if (auto good = check_ranges(piece, window, home_length); !good) return good.error();
    return piece;
}

/// What is only prepared can still be undone; so it must not have gone home. And what is prepared
/// must not change any more.
bool is_in_order(const Order& order, const Piece& next) {
    const bool prepares = order.prepares && order.phase != Phase::commit;
    if (next.verb == Verb::prepare) return prepares;
    if (next.verb == Verb::commit && prepares) return false;
    return order.pieces.empty() || order.pieces.back().verb != Verb::prepare;
}

Error at_piece(Error error, std::size_t piece) {
    error.where = static_cast<std::uint32_t>(piece + 1);
    return error;
}

Error in_front(Code code) {
    return {.code = code, .detail = 0, .where = 0};
}

}  // namespace

std::vector<Party> parties_of(const Order& order) {
    std::vector<Party> used;
    for (const Piece& piece : order.pieces)
        if (is_transfer(piece.verb) && std::ranges::find(used, piece.peer) == used.end())
            used.push_back(piece.peer);
    return used;
}

EncodedOrder encode_order(const Order& order, const OrderEnvelope& envelope,
                          std::span<const PartyAccess> accesses) {
    std::vector<PartyAccess> parties;
    for (const Party& named : parties_of(order)) {
        auto access = std::ranges::find(accesses, named, &PartyAccess::party);
        WEFT_CHECK(access != accesses.end());
        parties.push_back(*access);
    }
    WEFT_CHECK(parties.size() <= limits::parties_per_order);
    WEFT_CHECK(order.pieces.size() <= limits::pieces_per_order);
    EncodedOrder encoded;
    encoded.parameters.resize(header_size + parties.size() * party_size +
                              order.pieces.size() * piece_size);
    Buffer rest(encoded.parameters);
    auto put = [&](const auto& header) {
        encode(header, rest);
        rest = rest.subspan(wire_size<std::remove_cvref_t<decltype(header)>>());
    };
    put(wire::ArrayOrderHeader{.address = envelope.address,
                               .host = envelope.host,
                               .host_command = envelope.host_command,
                               .participants = envelope.participants,
                               .window = envelope.window,
                               .window_tag = envelope.window_tag,
                               .window_length = envelope.window_length,
                               .phase = static_cast<std::uint8_t>(order.phase),
                               .round = order.round,
                               .closes = order.closes,
                               .prepares = order.prepares,
                               .party_count = static_cast<std::uint8_t>(parties.size()),
                               .piece_count = static_cast<std::uint16_t>(order.pieces.size()),
                               .settled = envelope.settled,
                               .host_identity = envelope.host_identity,
                               .lease_ms = envelope.lease_ms,
                               .to_prepare = envelope.to_prepare});
    for (const auto& access : parties)
        put(wire::ArrayParty{.kind = static_cast<std::uint8_t>(access.party.kind),
                             .box = number(access.party.box),
                             .tag = access.tag,
                             .base = access.base,
                             .identity = access.identity});
    for (const auto& piece : order.pieces) put(encode_piece(piece, parties));
    encoded.command_block = {
        .action = wire::ArrayAction{static_cast<std::uint8_t>(order.command)},
        .transaction = envelope.transaction,
        .parameter_length = static_cast<std::uint32_t>(encoded.parameters.size()),
        .control = {}};
    return encoded;
}

void stamp_lease(const wire::ArrayCommandBlock& block, Buffer parameters, std::uint32_t lease_ms) {
    constexpr std::size_t behind_it = 4;  // the header's last field
    if (!wire::is_order(block.action)) return;
    WEFT_CHECK(parameters.size() >= header_size);
    store_big_endian<4>(lease_ms, parameters.data() + header_size - behind_it - 4);
}

Result<ReceivedOrder> parse_order(const wire::ArrayCommandBlock& block, ConstBuffer parameters,
                                  const OrderBounds& bounds) {
    if (!wire::is_order(block.action)) return in_front(Code::malformed);
    if (parameters.size() < header_size) return in_front(Code::truncated);
    auto header = decode<wire::ArrayOrderHeader>(parameters);
    if (!header) return in_front(header.error().code);
    const std::size_t size =
        header_size + header->party_count * party_size + header->piece_count * piece_size;
    if (block.parameter_length != parameters.size()) return in_front(Code::malformed);
    if (parameters.size() < size) return in_front(Code::truncated);
    // What was prepared is committed without saying again what it is.
    const bool only_commits = header->phase == static_cast<std::uint8_t>(Phase::commit);
    if (parameters.size() > size || (header->piece_count == 0 && !only_commits) ||
        header->piece_count > limits::pieces_per_order ||
        header->party_count > limits::parties_per_order ||
        header->phase > static_cast<std::uint8_t>(Phase::commit) ||
        header->window_length % slice_size != 0)
        return in_front(Code::malformed);
    if (header->window_length > bounds.window_limit) return in_front(Code::exhausted);

    ReceivedOrder received{.order = {.to = {},
                                     .phase = Phase{header->phase},
                                     .round = header->round,
                                     .command = Command{static_cast<std::uint8_t>(block.action)},
                                     .prepares = header->prepares,
                                     .closes = header->closes,
                                     .pieces = {}},
                           .envelope = {.address = header->address,
                                        .transaction = block.transaction,
                                        .host = header->host,
                                        .host_command = header->host_command,
                                        .participants = header->participants,
                                        .window = header->window,
                                        .window_tag = header->window_tag,
                                        .window_length = header->window_length,
                                        .settled = header->settled,
                                        .host_identity = header->host_identity,
                                        .lease_ms = header->lease_ms,
                                        .to_prepare = header->to_prepare},
                           .parties = {}};
    ConstBuffer rest = parameters.subspan(header_size);
    for (std::size_t i = 0; i < header->party_count; ++i, rest = rest.subspan(party_size)) {
        auto party = decode_party(rest);
        if (!party) return in_front(party.error().code);
        if (std::ranges::count(received.parties, party->party, &PartyAccess::party) != 0)
            return in_front(Code::malformed);
        received.parties.push_back(*party);
    }
    for (std::size_t i = 0; i < header->piece_count; ++i, rest = rest.subspan(piece_size)) {
        auto piece =
            decode_piece(rest, received.parties, header->window_length, bounds.home_length);
        if (!piece) return at_piece(piece.error(), i);
        if (!is_in_order(received.order, *piece)) return at_piece(Error{Code::malformed}, i);
        received.order.pieces.push_back(*piece);
    }
    return received;
}

}  // namespace weft::raid
