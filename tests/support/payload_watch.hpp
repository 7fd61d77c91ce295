// SPDX-License-Identifier: Apache-2.0
// Whose wires the data of a test goes over: memory is filled with a mark that nothing else holds,
// and everything that machines send each other is searched for it.
//
// The mark comes every 16 octets, so that whatever a protocol cuts out of such memory, 31 octets of
// it hold a whole one. Streams are cut anywhere, so the search goes on over the cuts.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "sim/network.hpp"

namespace weft::test {

inline constexpr std::string_view payload_mark = "<<weft payload>>";
static_assert(payload_mark.size() == 16);

/// `size` is a multiple of the mark's.
inline std::vector<std::byte> marked_octets(std::size_t size) {
    std::vector<std::byte> octets;
    octets.reserve(size);
    const auto mark = bytes_of(payload_mark);
    while (octets.size() < size) octets.insert(octets.end(), mark.begin(), mark.end());
    return octets;
}

class PayloadWatch {
public:
    explicit PayloadWatch(sim::Network& network) : network_(network) {
        network_.watch([this](const sim::Network::Sending& sending) { see(sending); });
    }
    ~PayloadWatch() { network_.watch(nullptr); }
    PayloadWatch(const PayloadWatch&) = delete;
    PayloadWatch& operator=(const PayloadWatch&) = delete;

    struct Seen {
        std::uint64_t octets = 0;  ///< of all kinds, sent or received
        std::uint64_t marks = 0;
    };
    Seen of(const std::string& machine) const {
        const auto found = machines_.find(machine);
        return found == machines_.end() ? Seen{} : found->second;
    }

private:
    void see(const sim::Network::Sending& sending) {
        auto& text = unfinished_[{sending.link, sending.from}];
        text += text_of(sending.octets);
        std::uint64_t marks = 0;
        std::size_t searched = 0;
        for (auto at = text.find(payload_mark); at != std::string::npos;
             at = text.find(payload_mark, searched)) {
            ++marks;
            searched = at + payload_mark.size();
        }
        const auto cut = text.size() - std::min(text.size(), payload_mark.size() - 1);
        text.erase(0, std::max(searched, cut));
        for (const auto* machine : {&sending.sender, &sending.receiver}) {
            auto& seen = machines_[*machine];
            seen.octets += sending.octets.size();
            seen.marks += marks;
        }
    }

    sim::Network& network_;
    std::map<std::string, Seen> machines_;
    /// Of each direction of a link: the end of what was sent, shorter than a mark.
    std::map<std::pair<sim::LinkId, sim::Side>, std::string> unfinished_;
};

}  // namespace weft::test
