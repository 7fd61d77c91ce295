// SPDX-License-Identifier: Apache-2.0
#include "raid/in_doubt.hpp"

#include <algorithm>

namespace weft::raid {
namespace {

using wire::ArrayTransactionState;

Knowledge knowledge(const Recalled& recalled, wire::TransactionNumber transaction) {
    auto found =
        std::ranges::find(recalled.transactions, transaction, &wire::ArrayRecalled::transaction);
    if (found == recalled.transactions.end()) return Knowledge::nothing;
    switch (found->state) {
        case ArrayTransactionState::prepared:
            return Knowledge::prepared;
        case ArrayTransactionState::committed:
            return Knowledge::committed;
        case ArrayTransactionState::aborted:
            return Knowledge::aborted;
    }
    return Knowledge::nothing;
}

/// All that is known of what it is. A box that only heard that it is over knows nothing of that.
Resolution described(wire::TransactionNumber transaction,
                     const std::map<std::uint8_t, Recalled>& recalled) {
    Resolution resolution{.transaction = transaction, .home = ~std::uint64_t{0}};
    for (const auto& [place, box] : recalled) {
        for (const auto& record : box.transactions) {
            if (record.transaction != transaction || record.participants == 0) continue;
            resolution.participants |= record.participants;
            resolution.restores = record.restores;
            resolution.host_identity = record.host_identity;
            resolution.host_command = record.host_command;
            resolution.home = std::min(resolution.home, record.home);
            resolution.home_end = std::max(resolution.home_end, record.home + record.length);
        }
    }
    return resolution;
}

/// Whether these have prepared the same, as far as they say.
bool are_alike(wire::TransactionNumber transaction, Mask copies,
               const std::map<std::uint8_t, Recalled>& recalled) {
    std::uint32_t sum = 0;
    for (const auto& [place, box] : recalled) {
        if (!contains(copies, place)) continue;
        for (const auto& record : box.transactions) {
            if (record.transaction != transaction || record.sum == 0) continue;
            if (sum != 0 && sum != record.sum) return false;
            sum = record.sum;
        }
    }
    return true;
}

}  // namespace

bool is_committed(std::span<const Knowledge> survivors) {
    auto knows = [&](Knowledge what) {
        return std::ranges::find(survivors, what) != survivors.end();
    };
    if (knows(Knowledge::committed)) return true;
    return !survivors.empty() && !knows(Knowledge::aborted) && !knows(Knowledge::nothing);
}

std::vector<Resolution> resolve(Mask members, const std::map<std::uint8_t, Recalled>& recalled,
                                Mask copies) {
    std::vector<wire::TransactionNumber> all;
    for (const auto& [place, box] : recalled)
        for (const auto& record : box.transactions) all.push_back(record.transaction);
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    std::vector<Resolution> resolutions;
    for (auto transaction : all) {
        Resolution resolution = described(transaction, recalled);
        std::vector<Knowledge> survivors;
        for (const auto& [place, box] : recalled) {
            if (!contains(members & resolution.participants, place)) continue;
            survivors.push_back(knowledge(box, transaction));
            if (survivors.back() == Knowledge::prepared) resolution.to_tell |= only(place);
        }
        const bool was_decided =
            std::ranges::find(survivors, Knowledge::committed) != survivors.end();
        const bool may_be = !resolution.restores && are_alike(transaction, copies, recalled);
        resolution.commits = was_decided || (may_be && is_committed(survivors));
        resolutions.push_back(resolution);
    }
    return resolutions;
}

}  // namespace weft::raid
