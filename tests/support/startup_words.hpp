// SPDX-License-Identifier: Apache-2.0
// Short words for tests of MPA's opening: frames, and what comes of hearing them in every way.
#pragma once

#include <gtest/gtest.h>

#include "base/bytes.hpp"
#include "iwarp/fault.hpp"
#include "iwarp/startup.hpp"
#include "support/deliver.hpp"
#include "support/golden.hpp"

namespace weft::test::startups {

using iwarp::fault;
using iwarp::Startup;
using iwarp::StartupEvent;
using iwarp::Wishes;
using wire::MpaError;

inline constexpr Instant start{1'000};
inline constexpr Wishes as_siw{.checksum = false,
                               .peer_to_peer = false,
                               .show_ourselves = false,
                               .inbound_reads = 1,
                               .outbound_reads = 1};
inline constexpr Wishes old{.revision = 1, .checksum = false, .show_ourselves = false};

inline Bytes request(std::string_view rest) {
    return join({bytes_of("MPA ID Req Frame"), from_hex(rest)});
}
inline Bytes reply(std::string_view rest) {
    return join({bytes_of("MPA ID Rep Frame"), from_hex(rest)});
}

inline Startup initiator(const Wishes& wishes, ConstBuffer private_data = {}) {
    auto made = Startup::initiate(wishes, private_data, start);
    EXPECT_TRUE(made);
    return std::move(*made);
}
inline Startup responder(const Wishes& wishes = {}) {
    auto made = Startup::respond(wishes, start);
    EXPECT_TRUE(made);
    return std::move(*made);
}

inline Bytes pending(Startup& startup) {
    std::array<ConstBuffer, 3> pieces;
    auto count = startup.pending(pieces);
    EXPECT_LE(count, 1u);
    return count == 0 ? Bytes{} : Bytes(pieces[0].begin(), pieces[0].end());
}
/// That many octets are sent, and nothing is wrong with that.
inline std::optional<StartupEvent> sent(Startup& startup, std::size_t count) {
    auto event = startup.sent(count);
    EXPECT_TRUE(event);
    return event ? *event : std::nullopt;
}
inline std::optional<StartupEvent> send_all(Startup& startup) {
    return sent(startup, pending(startup).size());
}

struct Heard {
    std::optional<StartupEvent> event;
    std::optional<Error> error;
    std::size_t taken = 0;

    bool operator==(const Heard&) const = default;
};
inline Heard hear(Startup& startup, ConstBuffer stream, std::size_t step) {
    Heard heard;
    heard.taken = test::deliver(startup, stream, step, [&](auto outcome) {
        EXPECT_FALSE(heard.event || heard.error) << "something came after the end";
        if (!outcome)
            heard.error = outcome.error();
        else
            heard.event = *outcome;
    });
    return heard;
}

/// Delivers the stream in pieces of every size; all must end the same way. `make` makes the
/// Startup, `look` looks at it afterwards.
template <class Make, class Look>
void hear_in_every_way(Make make, ConstBuffer stream, const Heard& expected, Look look) {
    for (std::size_t step = 1; step <= stream.size(); ++step) {
        SCOPED_TRACE("in pieces of " + std::to_string(step));
        Startup startup = make();
        EXPECT_EQ(hear(startup, stream, step), expected);
        EXPECT_TRUE(startup.want().empty());
        look(startup);
    }
}

inline Heard refused(Code code, MpaError why, std::uint32_t where, std::size_t taken) {
    return {.event = {},
            .error = Error{.code = code, .detail = fault(why).detail, .where = where},
            .taken = taken};
}
inline Heard malformed(std::uint32_t where, std::size_t taken) {
    return refused(Code::malformed, MpaError::invalid_startup_frame, where, taken);
}

}  // namespace weft::test::startups
