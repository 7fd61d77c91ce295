// SPDX-License-Identifier: Apache-2.0
// An NBD server's connection and a client that speaks to it in raw messages: "client says, server
// answers". The disk is 1 MiB and a bit, in memory, seen through a HeldDisk.
#pragma once

#include <gtest/gtest.h>

#include "block/heap_memory.hpp"
#include "block/memory_disk.hpp"
#include "nbd/server_connection.hpp"
#include "support/engine_driver.hpp"
#include "support/held_disk.hpp"
#include "support/nbd_messages.hpp"
#include "support/test_request.hpp"

namespace weft::test {

class NbdServerTalk : public testing::Test {
protected:
    static constexpr std::uint64_t disk_size = (1 << 20) + 10;
    static constexpr std::size_t pool_size = 256u << 20;
    static constexpr std::size_t reserve = 64u << 10;

    using Option = wire::nbd::Option;
    using Answer = wire::nbd::OptionReplyType;
    using Command = wire::nbd::Command;
    using ErrorNumber = wire::nbd::ErrorNumber;

    NbdServerTalk() {
        disk.holding = false;
        disk.lending = true;
        EXPECT_TRUE(exports.add({"disk", "a small disk", &disk, false}).has_value());
        EXPECT_TRUE(exports.add({"archive", "", &disk, true}).has_value());
    }
    ~NbdServerTalk() override {
        if (connection && !driver->closed()) driver->close(std::nullopt);
        disk.let_all_go();
        if (connection) {
            EXPECT_EQ(gone, 1) << "gone is told once";
        }
    }

    /// A new connection; the greeting is heard and dropped.
    void connect() {
        connection.emplace(exports, pool, statistics, Instant{},
                           nbd::ServerConnection::Holder{.wake = [this] { driver->wake(); },
                                                         .gone = [this] { ++gone; }});
        driver.emplace(*connection);
        driver->run();
        EXPECT_EQ(driver->take_sent().size(), wire_size<wire::nbd::Greeting>());
    }
    void say(ConstBuffer octets) { driver->receive(octets); }
    void say_flags() { say(from_hex("00000003")); }

    /// Says an option and returns all the server answers to it.
    std::vector<OptionAnswer> ask(Option which, ConstBuffer data) {
        say(option(which, data));
        return option_answers(driver->take_sent());
    }
    /// The types of the answers, for when they say it all.
    std::vector<Answer> answers(Option which, ConstBuffer data) {
        std::vector<Answer> types;
        for (const auto& answer : ask(which, data)) types.push_back(answer.type);
        return types;
    }
    bool dropped() const { return driver->closed() && connection->fault().has_value(); }

    enum class Speech : std::uint8_t { simple, structured };
    /// A connection in transmission.
    void begin(Speech speech, const std::string& name) {
        connect();
        say_flags();
        if (speech == Speech::structured) {
            EXPECT_EQ(answers(Option::structured_reply, {}), std::vector{Answer::ack});
            ask(Option::set_meta_context, context_question(name, {"base:allocation"}));
        }
        EXPECT_EQ(answers(Option::go, info_question(name, {})).back(), Answer::ack);
        ASSERT_NE(connection->chosen(), nullptr);
    }

    wire::nbd::RequestHeader header(Command command, std::uint64_t offset, std::uint32_t length) {
        return {.command = command, .cookie = ++last_cookie, .offset = offset, .length = length};
    }
    void say_request(const wire::nbd::RequestHeader& request) {
        if (request.command == Command::read) reader.expect_read(request);
        say(encoded(request));
    }
    void say_write(const wire::nbd::RequestHeader& request, ConstBuffer payload) {
        EXPECT_EQ(request.length, payload.size());
        say(join({encoded(request), payload}));
    }
    /// All replies heard since last asked.
    std::vector<Reply> replies() {
        driver->run_if_woken();
        return reader.read_all(driver->take_sent());
    }
    /// The one reply heard.
    Reply reply() {
        auto all = replies();
        EXPECT_EQ(all.size(), 1u);
        return all.empty() ? Reply{.error = ErrorNumber{999}} : all.front();
    }
    Reply reply_to(const wire::nbd::RequestHeader& request) {
        say_request(request);
        auto heard = reply();
        EXPECT_EQ(heard.cookie, request.cookie);
        return heard;
    }
    ErrorNumber error_of(const wire::nbd::RequestHeader& request) {
        return reply_to(request).error;
    }

    block::MemoryDisk memory{std::make_unique<block::HeapMemory>(disk_size), disk_size};
    HeldDisk disk{memory};
    nbd::Exports exports;
    block::BufferPool pool{{.bytes = pool_size, .reserve_bytes = reserve, .idle_bytes = 1u << 20}};
    nbd::Statistics statistics;
    int gone = 0;
    std::uint64_t last_cookie = 0x1000;
    ReplyReader reader;
    std::optional<nbd::ServerConnection> connection;
    std::optional<EngineDriver> driver;
};

}  // namespace weft::test
