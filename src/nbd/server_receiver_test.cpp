// SPDX-License-Identifier: Apache-2.0
#include "nbd/server_receiver.hpp"

#include <gtest/gtest.h>

#include <random>

#include "support/deliver.hpp"
#include "support/nbd_messages.hpp"

namespace weft::nbd {
namespace {

using namespace wire::nbd;
using test::Bytes;

/// What a receiver reported, in words, and the payload it placed.
struct Heard {
    std::vector<std::string> events;
    Bytes payload;
    std::optional<Code> refused;
    std::size_t taken = 0;

    bool operator==(const Heard&) const = default;
};

/// Drives a receiver as a connection would: GO begins transmission, writes to odd offsets have no
/// place, the others go to the end of `payload`.
class Listener {
public:
    Heard listen(ConstBuffer stream, const std::function<std::size_t()>& step) {
        heard_.payload.resize(1 << 16);
        std::size_t at = 0;
        while (at < stream.size() && !heard_.refused) {
            auto piece = stream.subspan(at, std::min(step(), stream.size() - at));
            auto taken = test::deliver(receiver_, piece, piece.size(), [&](auto outcome) {
                if (!outcome)
                    heard_.refused = outcome.error().code;
                else if (*outcome)
                    std::visit([&](const auto& event) { hear(event); }, **outcome);
            });
            at += taken;
            if (taken < piece.size()) break;
        }
        heard_.taken = at;
        return heard_;
    }

private:
    void note(std::string words) { heard_.events.push_back(std::move(words)); }
    void hear(const ClientFlags& flags) { note(to_text(flags)); }
    void hear(const ReceivedOption& option) {
        note("option " + std::to_string(static_cast<int>(option.option)) + " " +
             test::to_hex(option.data) + (option.too_big ? " too big" : ""));
        if (option.option == Option::go) receiver_.begin_transmission();
    }
    void hear(const RequestHeader& request) {
        note(to_text(request));
        if (request.command != Command::write || request.length == 0) {
            EXPECT_TRUE(receiver_.at_request());
            return;
        }
        EXPECT_FALSE(receiver_.at_request());
        EXPECT_TRUE(receiver_.want().empty()) << "nobody has said where the payload belongs";
        if (request.offset % 2 != 0) return receiver_.discard_payload(request.length);
        receiver_.place_payload(Buffer(heard_.payload).subspan(placed_, request.length));
        placed_ += request.length;
    }
    void hear(const PayloadEnd&) {
        EXPECT_TRUE(receiver_.at_request());
        note("payload");
    }

    ServerReceiver receiver_;
    Heard heard_;
    std::size_t placed_ = 0;
};

Heard listen(ConstBuffer stream, std::size_t step) {
    return Listener().listen(stream, [&] { return step; });
}

/// However a stream is cut, the same is heard.
void hears_the_same(ConstBuffer stream, const Heard& expected) {
    for (std::size_t step = 1; step <= 64; ++step) {
        SCOPED_TRACE("step " + std::to_string(step));
        ASSERT_TRUE(listen(stream, step) == expected);
    }
    for (std::uint32_t seed = 1; seed <= 50; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        std::mt19937 chance(seed);
        auto random_step = [&] { return 1 + chance() % (chance() % 4 == 0 ? 5000 : 40); };
        ASSERT_TRUE(Listener().listen(stream, random_step) == expected);
    }
}

Bytes request(Command command, std::uint64_t offset, ConstBuffer payload) {
    auto length = static_cast<std::uint32_t>(payload.size());
    RequestHeader header{.command = command, .cookie = 9, .offset = offset, .length = length};
    return test::join({encoded(header), payload});
}

TEST(ServerReceiver, HearsTheSameHoweverTheStreamIsCut) {
    Bytes ramp(10'000);
    for (std::size_t i = 0; i < ramp.size(); ++i) ramp[i] = static_cast<std::byte>(i / 7);
    auto stream = test::join(
        {test::from_hex("00000001"), test::option(Option::list, {}),
         test::option(Option{77}, test::from_hex("010203")),
         test::option(Option::info, Bytes(option_bytes_max)),
         test::option(Option::info, Bytes(option_bytes_max + 1)),
         test::option(Option::go, test::info_question("disk", {})), request(Command::flush, 0, {}),
         request(Command::write, 0, ramp), request(Command::write, 1, Bytes(5000)),
         request(Command::write, 2, {}), request(Command::write, 4, Buffer(ramp).first(1)),
         request(Command::read, 0, {})});
    auto expected = listen(stream, stream.size());
    EXPECT_EQ(expected.refused, std::nullopt);
    EXPECT_EQ(expected.taken, stream.size());
    EXPECT_EQ(expected.events.size(), 15u);
    EXPECT_EQ(expected.events[1], "option 3 ");
    EXPECT_EQ(expected.events[2], "option 77 01 02 03");
    EXPECT_EQ(expected.events[4], "option 6  too big");
    EXPECT_EQ(expected.events[8], "payload");
    EXPECT_TRUE(std::equal(ramp.begin(), ramp.end(), expected.payload.begin()));
    EXPECT_EQ(expected.payload[ramp.size()], ramp[0]);
    hears_the_same(stream, expected);
}

TEST(ServerReceiver, HearsARecordedSessionOfQemuIo) {
    auto stream = test::golden("nbd/session_qemu_io.client.hex");
    auto expected = listen(stream, stream.size());
    EXPECT_EQ(expected.refused, std::nullopt);
    EXPECT_EQ(expected.taken, stream.size());
    EXPECT_EQ(expected.events.size(), 1u + 3 + 13 + 2) << "flags, options, requests, payloads";
    hears_the_same(stream, expected);
}

TEST(ServerReceiver, RefusesAWrongMagicHoweverItIsCut) {
    auto good = test::join({test::from_hex("00000003"), test::option(Option::list, {})});
    auto option = test::join({good, Bytes(40)});
    EXPECT_EQ(listen(option, 99).refused, Code::malformed);
    hears_the_same(option, listen(option, 1));

    auto request_too = test::join({good, test::option(Option::go, {}), Bytes(40)});
    EXPECT_EQ(listen(request_too, 99).refused, Code::malformed);
    hears_the_same(request_too, listen(request_too, 1));
}

TEST(ServerReceiver, RefusesAnOptionTooLongToReadAway) {
    auto stream = test::join({test::from_hex("00000003"),
                              encoded(OptionHeader{Option::go, option_skip_max + 1}), Bytes(9)});
    auto expected = listen(stream, 99);
    EXPECT_EQ(expected.refused, Code::out_of_range);
    EXPECT_EQ(expected.taken, 20u);
    hears_the_same(stream, expected);
}

}  // namespace
}  // namespace weft::nbd
