// SPDX-License-Identifier: Apache-2.0
#include "raid/recall.hpp"

#include "raid/limits.hpp"
#include "wire/array_journal.hpp"

namespace weft::raid {
namespace {

constexpr std::size_t head_size = wire_size<wire::ArrayRecallHead>();
constexpr std::size_t transaction_size = wire_size<wire::ArrayRecalled>();
constexpr std::size_t note_size = wire_size<wire::ArrayExecutedNote>();

}  // namespace

std::vector<std::byte> encode_recall(const Recalled& recalled) {
    std::vector<std::byte> octets(head_size + recalled.transactions.size() * transaction_size +
                                  recalled.notes.size() * note_size);
    Buffer rest(octets);
    encode(wire::ArrayRecallHead{.settled = recalled.settled,
                                 .transactions =
                                     static_cast<std::uint32_t>(recalled.transactions.size()),
                                 .notes = static_cast<std::uint32_t>(recalled.notes.size())},
           rest);
    rest = rest.subspan(head_size);
    for (const auto& transaction : recalled.transactions) {
        encode(transaction, rest);
        rest = rest.subspan(transaction_size);
    }
    for (const auto& note : recalled.notes) {
        encode(note, rest);
        rest = rest.subspan(note_size);
    }
    return octets;
}

Result<Recalled> parse_recall(ConstBuffer octets) {
    WEFT_TRY(const auto head, decode<wire::ArrayRecallHead>(octets));
    if (head.transactions > 2 * limits::journal_transactions ||
        head.notes > wire::journal_notes_max)
        return Error{.code = Code::malformed};
    const std::size_t size =
        head_size + head.transactions * transaction_size + head.notes * note_size;
    if (octets.size() < size) return Error{.code = Code::truncated};
    if (octets.size() > size) return Error{.code = Code::malformed};
    Recalled recalled{.settled = head.settled, .transactions = {}, .notes = {}};
    ConstBuffer rest = octets.subspan(head_size);
    for (std::uint32_t i = 0; i < head.transactions; ++i, rest = rest.subspan(transaction_size)) {
        WEFT_TRY(const auto transaction, decode<wire::ArrayRecalled>(rest));
        if (transaction.state < wire::ArrayTransactionState::prepared ||
            transaction.state > wire::ArrayTransactionState::aborted)
            return Error{.code = Code::malformed};
        recalled.transactions.push_back(transaction);
    }
    for (std::uint32_t i = 0; i < head.notes; ++i, rest = rest.subspan(note_size)) {
        WEFT_TRY(const auto note, decode<wire::ArrayExecutedNote>(rest));
        recalled.notes.push_back(note);
    }
    return recalled;
}

}  // namespace weft::raid
