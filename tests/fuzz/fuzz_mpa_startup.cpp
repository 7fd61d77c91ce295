// SPDX-License-Identifier: Apache-2.0
// Any octets as what a peer sends to open a connection. The first three say which side we are, what
// we wish for and how small the pieces are; the rest is the stream. However it is cut, it must end
// the same way, and what was agreed must keep to what the peer's frame says.
#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.hpp"
#include "iwarp/startup.hpp"

namespace weft::iwarp {
namespace {

struct Script {
    Role role = Role::initiator;
    bool accepts = true;
    Wishes wishes;
    ConstBuffer stream;
};

struct Ending {
    std::optional<StartupEvent> event;
    std::optional<Error> error;
    std::size_t taken = 0;
    Terms terms;
    std::vector<std::byte> said;

    bool operator==(const Ending&) const = default;
};

Startup begin(const Script& script) {
    auto made = script.role == Role::initiator ? Startup::initiate(script.wishes, {}, {})
                                               : Startup::respond(script.wishes, {});
    WEFT_CHECK(made);
    return std::move(*made);
}

void decide(const Script& script, Startup& startup) {
    // The private data goes back whence it came: it always fits.
    auto decided = script.accepts ? startup.accept(script.wishes, startup.peer_private_data(), {})
                                  : startup.reject(startup.peer_private_data(), {});
    WEFT_CHECK(decided);
}

void check_terms(const Startup& startup, const Wishes& wishes) {
    const auto& terms = startup.terms();
    WEFT_CHECK(terms.checksum || !wishes.checksum);
    WEFT_CHECK(terms.markers_in == wishes.markers);
    if (auto wanted = startup.peer_outbound_reads(); wanted && terms.role == Role::initiator)
        WEFT_CHECK(terms.inbound_reads >= *wanted);
    if (auto served = startup.peer_inbound_reads(); served && terms.ready != ReadyMessage::read)
        WEFT_CHECK(terms.outbound_reads <= *served);
    WEFT_CHECK(terms.inbound_reads <= std::max<unsigned>(wishes.inbound_reads_max, 1));
}

Ending play(const Script& script, std::size_t step) {
    Startup startup = begin(script);
    Ending ending;
    auto stream = script.stream;
    bool moved = true;
    auto note = [&](Result<std::optional<StartupEvent>> outcome) {
        WEFT_CHECK(!ending.event && !ending.error);
        if (!outcome)
            ending.error = outcome.error();
        else if (*outcome == StartupEvent::requested)
            decide(script, startup);
        else
            ending.event = *outcome;
    };
    while (moved && !ending.event && !ending.error) {
        moved = false;
        std::array<ConstBuffer, 1> pieces;
        if (startup.pending(pieces) > 0) {
            auto piece = pieces[0].first(std::min(pieces[0].size(), step));
            ending.said.insert(ending.said.end(), piece.begin(), piece.end());
            note(startup.sent(piece.size()));
            moved = true;
        }
        auto place = startup.want();
        WEFT_CHECK(place.size() <= wire::private_data_limit);
        auto count = std::min({place.size(), stream.size(), step});
        if (count == 0) continue;
        std::memcpy(place.data(), stream.data(), count);
        stream = stream.subspan(count);
        ending.taken += count;
        moved = true;
        note(startup.filled(count));
    }
    if (ending.error) ending.said.clear();  // how much was out by then depends on the pieces
    ending.terms = startup.terms();
    if (ending.event == StartupEvent::established) check_terms(startup, script.wishes);
    if (!ending.event && !ending.error)
        WEFT_CHECK(!startup.tick(Instant{} + script.wishes.patience));
    return ending;
}

}  // namespace
}  // namespace weft::iwarp

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace weft;
    using namespace weft::iwarp;
    if (size < 3) return 0;
    auto bit = [data](int octet, int number) { return (data[octet] >> number & 1) != 0; };
    Script script{.role = bit(0, 0) ? Role::responder : Role::initiator,
                  .accepts = !bit(0, 1),
                  .wishes = {.revision = static_cast<std::uint8_t>(bit(0, 2) ? 1 : 2),
                             .checksum = !bit(0, 3),
                             .markers = bit(0, 4),
                             .peer_to_peer = !bit(0, 5),
                             .ready_by_send = !bit(1, 0),
                             .ready_by_write = !bit(1, 1),
                             .ready_by_read = !bit(1, 2),
                             .show_ourselves = !bit(1, 3),
                             .inbound_reads = static_cast<std::uint16_t>(data[1] >> 4),
                             .outbound_reads = static_cast<std::uint16_t>(data[1] >> 4)},
                  .stream = std::as_bytes(std::span(data + 3, size - 3))};
    if (!check_wishes(script.role, script.wishes)) return 0;
    WEFT_CHECK(play(script, 1u + data[2]) == play(script, size));
    return 0;
}
