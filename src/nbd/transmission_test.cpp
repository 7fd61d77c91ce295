// SPDX-License-Identifier: Apache-2.0
// What the server does with each request: what the device is asked, what the client is told.
#include "nbd/transmission.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "support/nbd_server_talk.hpp"

namespace weft::nbd {
namespace {

using namespace wire::nbd;
using test::Bytes;

constexpr std::uint64_t far = std::numeric_limits<std::uint64_t>::max();

class TransmissionTest : public test::NbdServerTalk {
protected:
    static Bytes octets(std::size_t size, int value) {
        return Bytes(size, static_cast<std::byte>(value));
    }
    RequestHeader flagged(RequestHeader request, unsigned flags) {
        request.flags = static_cast<std::uint16_t>(flags);
        return request;
    }
    ErrorNumber error_of_write(const RequestHeader& request) {
        say_write(request, octets(request.length, 0xee));
        auto heard = reply();
        EXPECT_EQ(heard.cookie, request.cookie);
        return heard.error;
    }
    /// Sends a request the device holds, gives it to `look`, and returns the error told.
    template <class Look>
    ErrorNumber while_held(const RequestHeader& request, Look look) {
        disk.holding = true;
        say_request(request);
        EXPECT_EQ(disk.held.size(), 1u);
        if (!disk.held.empty()) look(*disk.held.front());
        disk.let_all_go();
        disk.holding = false;
        return reply().error;
    }
};

TEST_F(TransmissionTest, ReadsAndWritesInEitherSpeech) {
    for (auto speech : {Speech::simple, Speech::structured}) {
        SCOPED_TRACE(static_cast<int>(speech));
        if (connection) driver->close(std::nullopt), gone = 0;
        begin(speech, "disk");
        int value = speech == Speech::simple ? 0x11 : 0x22;
        say_write(header(Command::write, 4095, 3), octets(3, value));
        EXPECT_EQ(reply().error, ErrorNumber::none);
        auto read = reply_to(header(Command::read, 4094, 5));
        EXPECT_EQ(read.structured, speech == Speech::structured);
        EXPECT_EQ(read.error, ErrorNumber::none);
        Bytes expected = octets(5, value);
        expected.front() = expected.back() = std::byte{0};
        EXPECT_EQ(read.data, expected);
    }
    EXPECT_EQ(statistics.connections, 2u);
    EXPECT_EQ(statistics.requests, 4u);
    EXPECT_EQ(statistics.bytes_written, 6u);
    EXPECT_EQ(statistics.bytes_read, 10u);
    EXPECT_EQ(statistics.refused, 0u);
}

TEST_F(TransmissionTest, ReachesTheLastByte) {
    begin(Speech::structured, "disk");
    say_write(header(Command::write, disk_size - 1, 1), octets(1, 0x77));
    EXPECT_EQ(reply().error, ErrorNumber::none);
    EXPECT_EQ(reply_to(header(Command::read, disk_size - 2, 2)).data, test::from_hex("0077"));
}

TEST_F(TransmissionTest, AnswersRequestsForNothing) {
    for (auto speech : {Speech::simple, Speech::structured}) {
        if (connection) driver->close(std::nullopt), gone = 0;
        begin(speech, "disk");
        for (auto command :
             {Command::read, Command::write, Command::trim, Command::write_zeroes, Command::cache})
            for (std::uint64_t offset : {std::uint64_t{0}, disk_size})
                EXPECT_EQ(error_of(header(command, offset, 0)), ErrorNumber::none);
        EXPECT_EQ(error_of(header(Command::block_status, 0, 0)), ErrorNumber::invalid);
    }
}

TEST_F(TransmissionTest, TellsTheDeviceWhatMustBeDurable) {
    begin(Speech::structured, "disk");
    for (auto command : {Command::trim, Command::write_zeroes, Command::read, Command::cache,
                         Command::block_status, Command::flush}) {
        bool changes = command == Command::trim || command == Command::write_zeroes;
        auto request = header(command, 0, command == Command::flush ? 0 : 4096);
        auto look = [&](BlockRequest& held) { EXPECT_EQ(held.durable, changes); };
        EXPECT_EQ(while_held(flagged(request, flag_durable), look), ErrorNumber::none);
        auto plain = [&](BlockRequest& held) { EXPECT_FALSE(held.durable); };
        EXPECT_EQ(while_held(request, plain), ErrorNumber::none);
    }
    disk.holding = true;
    say_write(flagged(header(Command::write, 0, 1), flag_durable), octets(1, 1));
    EXPECT_TRUE(disk.held.at(0)->durable);
    disk.let_all_go();
    EXPECT_EQ(reply().error, ErrorNumber::none);
}

TEST_F(TransmissionTest, FlushesTheWholeDeviceWhateverRangeIsNamed) {
    begin(Speech::simple, "archive");
    auto look = [](BlockRequest& held) {
        EXPECT_EQ(held.operation, BlockOperation::flush);
        EXPECT_EQ(held.offset, 0u);
        EXPECT_EQ(held.length, 0u);
    };
    EXPECT_EQ(while_held(header(Command::flush, 0, 0), look), ErrorNumber::none);
    EXPECT_EQ(while_held(header(Command::flush, far, 77), look), ErrorNumber::none);
}

TEST_F(TransmissionTest, PassesTheFlagsOfZeroing) {
    begin(Speech::simple, "disk");
    for (unsigned flags : {0u, flag_no_hole + 0u, flag_fast_zero + 0u,
                           flag_no_hole + 0u + flag_fast_zero + flag_durable}) {
        auto look = [&](BlockRequest& held) {
            EXPECT_EQ(held.operation, BlockOperation::write_zeroes);
            EXPECT_EQ(held.keep_space, (flags & flag_no_hole) != 0);
            EXPECT_EQ(held.fast_only, (flags & flag_fast_zero) != 0);
        };
        auto request = flagged(header(Command::write_zeroes, 10, 4096), flags);
        EXPECT_EQ(while_held(request, look), ErrorNumber::none);
    }
    EXPECT_EQ(memory.allocated_bytes(), 8192u) << "the second and fourth kept their space";
}

TEST_F(TransmissionTest, TrimsAndPrefetches) {
    begin(Speech::simple, "disk");
    EXPECT_EQ(error_of_write(header(Command::write, 0, 8192)), ErrorNumber::none);
    EXPECT_EQ(error_of(header(Command::trim, 0, 4096)), ErrorNumber::none);
    EXPECT_EQ(memory.allocated_bytes(), 4096u);
    auto look = [](BlockRequest& held) { EXPECT_EQ(held.operation, BlockOperation::prefetch); };
    EXPECT_EQ(while_held(header(Command::cache, 5, 7), look), ErrorNumber::none);
}

TEST_F(TransmissionTest, TellsAllocation) {
    begin(Speech::structured, "disk");
    EXPECT_EQ(error_of_write(header(Command::write, 4096, 4096)), ErrorNumber::none);
    auto status = reply_to(header(Command::block_status, 0, 16384));
    std::vector<StatusDescriptor> expected{
        {4096, true, true}, {4096, false, false}, {8192, true, true}};
    EXPECT_EQ(status.extents, expected);

    auto one = flagged(header(Command::block_status, 100, 16384), flag_one_extent);
    EXPECT_EQ(reply_to(one).extents, (std::vector<StatusDescriptor>{{3996, true, true}}));
}

TEST_F(TransmissionTest, TellsNoMoreExtentsThanItsBound) {
    static block::MemoryDisk large(std::make_unique<block::HeapMemory>(2048 * 4096), 2048 * 4096);
    ASSERT_TRUE(exports.add({"large", "", &large, false}).has_value());
    for (std::uint64_t i = 0; i < 2048; i += 2) large.lend(BlockOperation::write, i * 4096, 1);
    begin(Speech::structured, "large");
    auto status = reply_to(header(Command::block_status, 0, 2048 * 4096));
    ASSERT_EQ(status.extents.size(), extents_max);
    EXPECT_EQ(status.extents.back(), (StatusDescriptor{4096, true, true}));
}

TEST_F(TransmissionTest, TellsStatusOnlyToThoseWhoAgreedOnIt) {
    begin(Speech::simple, "disk");
    EXPECT_EQ(error_of(header(Command::block_status, 0, 4096)), ErrorNumber::invalid);
}

TEST_F(TransmissionTest, DoesNotInventAStatusTheDeviceDidNotGive) {
    begin(Speech::structured, "disk");
    disk.holding = true;
    say_request(header(Command::block_status, 0, 4096));
    auto& request = *disk.held.at(0);
    disk.held.clear();
    request.completed({});  // and no extent
    EXPECT_EQ(reply().error, ErrorNumber::io);
}

TEST_F(TransmissionTest, ChangesNothingOnAReadOnlyExport) {
    for (bool by_device : {false, true}) {
        if (connection) driver->close(std::nullopt), gone = 0;
        disk.shown.read_only = by_device;
        begin(Speech::structured, by_device ? "disk" : "archive");
        EXPECT_EQ(error_of_write(header(Command::write, 0, 100'000)), ErrorNumber::not_permitted);
        EXPECT_EQ(error_of(header(Command::trim, 0, 10)), ErrorNumber::not_permitted);
        EXPECT_EQ(error_of(header(Command::write_zeroes, 0, 10)), ErrorNumber::not_permitted);
        EXPECT_EQ(reply_to(header(Command::read, 0, 10)).data, Bytes(10));
        EXPECT_EQ(error_of(header(Command::flush, 0, 0)), ErrorNumber::none);
        EXPECT_EQ(error_of(header(Command::cache, 0, 10)), ErrorNumber::none);
    }
    EXPECT_EQ(memory.allocated_bytes(), 0u);
    EXPECT_EQ(statistics.refused, 6u);
}

TEST_F(TransmissionTest, RefusesWhatReachesBeyondTheEnd) {
    struct Range {
        std::uint64_t offset;
        std::uint32_t length;
    };
    for (auto [offset, length] : {Range{disk_size, 1}, Range{disk_size - 1, 2}, Range{far, 1},
                                  Range{far - 4095, 4096}, Range{1ull << 63, 8192}}) {
        if (connection) driver->close(std::nullopt), gone = 0;
        begin(Speech::structured, "disk");
        EXPECT_EQ(error_of(header(Command::read, offset, length)), ErrorNumber::invalid);
        EXPECT_EQ(error_of(header(Command::trim, offset, length)), ErrorNumber::invalid);
        EXPECT_EQ(error_of(header(Command::cache, offset, length)), ErrorNumber::invalid);
        EXPECT_EQ(error_of(header(Command::block_status, offset, length)), ErrorNumber::invalid);
        EXPECT_EQ(error_of(header(Command::write_zeroes, offset, length)), ErrorNumber::no_space);
        EXPECT_EQ(error_of_write(header(Command::write, offset, length)), ErrorNumber::no_space);
    }
    EXPECT_EQ(error_of(header(Command::trim, 1, ~0u)), ErrorNumber::invalid);
    EXPECT_EQ(error_of(header(Command::read, 1, ~0u)), ErrorNumber::invalid);
    EXPECT_EQ(memory.allocated_bytes(), 0u);
}

TEST_F(TransmissionTest, RefusesCommandsItDoesNotKnow) {
    for (auto speech : {Speech::simple, Speech::structured}) {
        if (connection) driver->close(std::nullopt), gone = 0;
        begin(speech, "disk");
        for (unsigned command : {8u, 9u, 0x100u, 0xffffu})
            EXPECT_EQ(error_of(header(static_cast<Command>(command), 0, 512)),
                      ErrorNumber::invalid);
        EXPECT_EQ(error_of(header(Command::read, 0, 512)), ErrorNumber::none);
    }
}

TEST_F(TransmissionTest, RefusesFlagsThatDoNotBelongToTheCommand) {
    begin(Speech::structured, "disk");
    auto allowed = [](Command command) -> unsigned {
        switch (command) {
            case Command::read:
                return flag_durable | flag_do_not_fragment;
            case Command::write_zeroes:
                return flag_durable | flag_no_hole | flag_fast_zero;
            case Command::block_status:
                return flag_durable | flag_one_extent;
            default:
                return flag_durable;
        }
    };
    for (auto command : {Command::read, Command::write, Command::flush, Command::trim,
                         Command::cache, Command::write_zeroes, Command::block_status}) {
        for (unsigned bit = 0; bit < 16; ++bit) {
            auto request = flagged(header(command, 0, 512), 1u << bit);
            auto error = command == Command::write ? error_of_write(request) : error_of(request);
            bool fits = (allowed(command) >> bit & 1) != 0;
            EXPECT_EQ(error, fits ? ErrorNumber::none : ErrorNumber::invalid)
                << "command " << static_cast<int>(command) << " flag " << bit;
        }
    }
}

TEST_F(TransmissionTest, KeepsReadsTogetherOnlyForThoseWhoCanSeeIt) {
    begin(Speech::simple, "disk");
    EXPECT_EQ(error_of(flagged(header(Command::read, 0, 512), flag_do_not_fragment)),
              ErrorNumber::invalid);
}

TEST_F(TransmissionTest, MovesThirtyTwoMegabytesAtOnceAndNotOneByteMore) {
    static block::MemoryDisk large(std::make_unique<block::HeapMemory>(80u << 20), 80u << 20);
    ASSERT_TRUE(exports.add({"large", "", &large, false}).has_value());
    begin(Speech::structured, "large");
    auto payload = octets(32u << 20, 0x42);
    say_write(header(Command::write, 5, 32u << 20), payload);
    EXPECT_EQ(reply().error, ErrorNumber::none);
    EXPECT_TRUE(reply_to(header(Command::read, 5, 32u << 20)).data == payload);

    EXPECT_EQ(error_of(header(Command::read, 5, (32u << 20) + 1)), ErrorNumber::invalid);
    EXPECT_EQ(error_of_write(header(Command::write, 40u << 20, (32u << 20) + 1)),
              ErrorNumber::invalid);
    EXPECT_EQ(reply_to(header(Command::read, 40u << 20, 2)).data, Bytes(2));
    EXPECT_EQ(error_of(header(Command::trim, 0, 80u << 20)), ErrorNumber::none)
        << "what carries no payload may be longer";
}

TEST_F(TransmissionTest, HangsUpOnAPayloadTooLargeToReadAway) {
    begin(Speech::structured, "disk");
    say_request(header(Command::write, 0, refused_payload_max + 1));
    EXPECT_TRUE(dropped());
    EXPECT_TRUE(driver->take_sent().empty());
}

TEST_F(TransmissionTest, KeepsToTheBlockSizesOfTheDevice) {
    disk.shown.minimum_block = 512;
    disk.shown.maximum_transfer = 8192;
    disk.shown.preferred_block = 4096;
    begin(Speech::structured, "disk");
    EXPECT_EQ(error_of(header(Command::read, 512, 8192)), ErrorNumber::none);
    EXPECT_EQ(error_of(header(Command::read, 512, 8704)), ErrorNumber::invalid);
    EXPECT_EQ(error_of_write(header(Command::write, 0, 8704)), ErrorNumber::invalid);
    for (auto command : {Command::read, Command::trim, Command::write_zeroes, Command::cache,
                         Command::block_status}) {
        EXPECT_EQ(error_of(header(command, 1, 512)), ErrorNumber::invalid);
        EXPECT_EQ(error_of(header(command, 512, 511)), ErrorNumber::invalid);
        EXPECT_EQ(error_of(header(command, 512, 512)), ErrorNumber::none);
    }
    EXPECT_EQ(error_of_write(header(Command::write, 1, 512)), ErrorNumber::invalid);
}

TEST_F(TransmissionTest, RefusesWhatItDidNotOffer) {
    disk.shown.can_trim = disk.shown.can_write_zeroes = false;
    begin(Speech::structured, "disk");
    EXPECT_EQ(error_of(header(Command::trim, 0, 512)), ErrorNumber::invalid);
    EXPECT_EQ(error_of(header(Command::write_zeroes, 0, 512)), ErrorNumber::invalid);
    EXPECT_EQ(error_of(flagged(header(Command::write_zeroes, 0, 512), flag_fast_zero)),
              ErrorNumber::invalid);
}

TEST_F(TransmissionTest, TellsTheErrorsOfTheDevice) {
    begin(Speech::structured, "disk");
    auto told = [&](Command command, unsigned flags, Code code) {
        disk.holding = true;
        say_request(flagged(header(command, 0, 512), flags));
        disk.fail(0, {.code = code});
        return reply().error;
    };
    EXPECT_EQ(told(Command::read, 0, Code::io_failed), ErrorNumber::io);
    EXPECT_EQ(told(Command::read, 0, Code::disconnected), ErrorNumber::io);
    EXPECT_EQ(told(Command::read, 0, Code::out_of_range), ErrorNumber::invalid);
    EXPECT_EQ(told(Command::trim, 0, Code::access_denied), ErrorNumber::not_permitted);
    EXPECT_EQ(told(Command::write_zeroes, flag_no_hole, Code::exhausted), ErrorNumber::no_space);
    // The protocol keeps "not supported" for zeroing that was to be fast or not at all.
    EXPECT_EQ(told(Command::write_zeroes, flag_fast_zero, Code::unsupported),
              ErrorNumber::not_supported);
    EXPECT_EQ(told(Command::write_zeroes, 0, Code::unsupported), ErrorNumber::invalid);
    EXPECT_EQ(told(Command::block_status, 0, Code::unsupported), ErrorNumber::invalid);
    EXPECT_EQ(statistics.refused, 8u);
}

TEST_F(TransmissionTest, TakesAPrefetchTheDeviceCannotDoForAHint) {
    begin(Speech::structured, "disk");
    disk.holding = true;
    say_request(header(Command::cache, 0, 512));
    disk.fail(0, {.code = Code::unsupported});
    EXPECT_EQ(reply().error, ErrorNumber::none);
}

TEST_F(TransmissionTest, SaysWhenTheDiskIsFull) {
    static block::MemoryDisk bounded(std::make_unique<block::HeapMemory>(1 << 20), 4096);
    ASSERT_TRUE(exports.add({"bounded", "", &bounded, false}).has_value());
    begin(Speech::simple, "bounded");
    EXPECT_EQ(error_of_write(header(Command::write, 0, 4097)), ErrorNumber::no_space);
    EXPECT_EQ(error_of_write(header(Command::write, 0, 4096)), ErrorNumber::none);
}

}  // namespace
}  // namespace weft::nbd
