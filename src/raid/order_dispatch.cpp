// SPDX-License-Identifier: Apache-2.0
#include "raid/order_dispatch.hpp"

#include <algorithm>

namespace weft::raid {

void OrderDispatch::send(Attempt& attempt, std::size_t index, SentCommand::Purpose purpose,
                         Instant now) {
    const Order& order = attempt.terms().plan.orders[index];
    count(order);
    SentCommand command{.holder = &attempt,
                        .purpose = purpose,
                        .to = order.to,
                        .box = {},
                        .order = index,
                        .closes = order.closes,
                        .since = now};
    if (order.to.kind == PartyKind::controller) return send_own(attempt, order, command);
    const BoxIndex box = order.to.box;
    command.box = view_.box_at(box);
    const auto encoded = encode_order(order, envelope_of(attempt, box), accesses_of(attempt));
    owner_.carry(box, book_.add(command), encoded);
}

void OrderDispatch::send_own(Attempt& attempt, const Order& order, SentCommand command) {
    const auto accesses = accesses_of(attempt);
    ReceivedOrder received{.order = order, .envelope = envelope_of(attempt, {}), .parties = {}};
    for (const Party& named : parties_of(order))
        received.parties.push_back(*std::ranges::find(accesses, named, &PartyAccess::party));
    command.closes = false;
    own_.start(*attempt.terms().own, book_.add(command), std::move(received));
}

void OrderDispatch::send_end(CommandHolder& holder, wire::TransactionNumber transaction,
                             BoxIndex box, wire::ArrayAction action, SentCommand command,
                             Instant now) {
    const auto parameters = encoded(address_of(box));
    ++counters_.orders;
    command.holder = &holder;
    command.box = view_.box_at(box);
    command.since = now;
    owner_.carry(box, book_.add(command),
                 {{.action = action,
                   .transaction = transaction,
                   .parameter_length = static_cast<std::uint32_t>(parameters.size()),
                   .control = {}},
                  {parameters.begin(), parameters.end()}});
}

wire::TransactionNumber OrderDispatch::settled() const {
    const auto lowest = ledger_.settled();
    const auto pending = owner_.lowest_pending_end();
    return pending ? std::min(lowest, *pending) : lowest;
}

void OrderDispatch::count(const Order& order) {
    const bool is_ours = order.to.kind == PartyKind::controller;
    if (!is_ours) ++counters_.orders;
    for (const Piece& piece : order.pieces)
        if (is_transfer(piece.verb) && (is_ours || piece.peer == the_controller))
            counters_.payload_octets += piece.length;
}

wire::ArrayAddress OrderDispatch::address_of(BoxIndex box) const {
    return {.cluster = view_.cluster,
            .volume = view_.volume.volume,
            .box = view_.box_at(box),
            .generation = view_.volume.generation,
            .epoch = view_.epoch};
}

OrderEnvelope OrderDispatch::envelope_of(const Attempt& attempt, BoxIndex box) const {
    const Request& request = attempt.request();
    const Plan& plan = attempt.terms().plan;
    // Of a request in parts the last speaks for all: that it was done says that all were.
    const bool last = request.done + request.part == request.length;
    return {
        .address = address_of(box),
        .transaction = attempt.terms().transaction,
        .host = request.session,
        .host_command = last ? request.host_command : 0,
        .participants = plan.participants,
        .window = attempt.terms().window,
        .window_tag = owner_.window_tag(box, attempt.terms().window, attempt.terms().transaction),
        .window_length = plan.box_windows[number(box)],
        .settled = settled(),
        .host_identity = last ? request.host_identity : wire::HostIdentity{},
        .lease_ms = 0,
        .to_prepare = plan.to_prepare[number(box)]};
}

std::vector<PartyAccess> OrderDispatch::accesses_of(const Attempt& attempt) const {
    const Request& request = attempt.request();
    const auto& terms = attempt.terms();
    std::vector<PartyAccess> accesses;
    if (request.host) {
        accesses.push_back(request.host->memory);
        accesses[0].party = the_host;
        accesses[0].base += request.done;
    }
    if (terms.own)
        accesses.push_back({.party = the_controller,
                            .tag = own_.tag(*terms.own),
                            .base = 0,
                            .identity = own_identity_});
    for (std::uint8_t place = 0; place < view_.layout->boxes(); ++place)
        accesses.push_back(
            {.party = party(BoxIndex{place}),
             .tag = owner_.window_tag(BoxIndex{place}, terms.window, terms.transaction),
             .base = 0,
             .identity = view_.volume.members[place].box});
    return accesses;
}

}  // namespace weft::raid
