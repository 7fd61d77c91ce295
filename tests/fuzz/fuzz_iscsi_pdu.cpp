// SPDX-License-Identifier: Apache-2.0
// Any octets as a stream of iSCSI PDUs. The first says which digests hold and how small the pieces
// are. However the stream is cut, the same events come and the same memory results.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "iscsi/pdu_receiver.hpp"

namespace weft::iscsi {
namespace {

struct Outcome {
    std::string events;
    std::vector<std::byte> memory;

    bool operator==(const Outcome&) const = default;
};

void note(std::string& events, ConstBuffer octets) {
    for (std::byte octet : octets) events += static_cast<char>(octet);
    events += '/';
}

Outcome receive(ConstBuffer stream, Digests digests, std::size_t step) {
    PduReceiver receiver(300);
    receiver.use_digests(digests);
    receiver.limit_data_length(2000);
    Outcome outcome{{}, std::vector<std::byte>(2100)};
    std::vector<Buffer> places;
    unsigned turn = 0;
    while (!stream.empty()) {
        if (receiver.waits_for_place()) {
            const std::size_t size = receiver.data_length();
            if (++turn % 3 == 0) {
                receiver.discard();
            } else if (turn % 3 == 1 && receiver.can_collect(size)) {
                receiver.collect();
            } else {
                const Buffer all(outcome.memory);
                places = {all.first(1 + size / 3), all.subspan(50 + size / 3, size)};
                receiver.place(places, 1);
            }
        }
        const Buffer place = receiver.want();
        const std::size_t count = std::min({place.size(), stream.size(), step});
        if (count == 0) break;
        std::memcpy(place.data(), stream.data(), count);
        stream = stream.subspan(count);
        const auto event = receiver.filled(count);
        if (!event) {
            outcome.events += "error";
            break;
        }
        if (!*event) continue;
        if (const auto* header = std::get_if<PduHeader>(&**event)) {
            note(outcome.events, header->octets);
            note(outcome.events, header->additional);
        } else if (const auto* data = std::get_if<PduData>(&**event)) {
            outcome.events += data->digest_good ? "good" : "bad";
            note(outcome.events, data->collected);
        } else {
            outcome.events += "header digest";
        }
    }
    return outcome;
}

}  // namespace
}  // namespace weft::iscsi

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace weft;
    if (size == 0) return 0;
    const auto input = std::as_bytes(std::span(data, size)).subspan(1);
    const iscsi::Digests digests{(data[0] & 1) != 0, (data[0] & 2) != 0};
    const auto whole = iscsi::receive(input, digests, ~std::size_t{0});
    const auto cut = iscsi::receive(input, digests, 1 + (data[0] >> 2));
    WEFT_CHECK(whole == cut);
    return 0;
}
