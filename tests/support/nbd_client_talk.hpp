// SPDX-License-Identifier: Apache-2.0
// An NBD client and a server that speaks to it in raw messages, honest or not.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <memory>

#include "nbd/client.hpp"
#include "support/engine_driver.hpp"
#include "support/nbd_messages.hpp"
#include "support/test_request.hpp"

namespace weft::test {

class NbdClientTalk : public testing::Test {
protected:
    static constexpr std::uint64_t disk_size = 1 << 20;
    static constexpr std::uint32_t context_id = 0x77;

    using Option = wire::nbd::Option;
    using Answer = wire::nbd::OptionReplyType;
    using Command = wire::nbd::Command;
    using ErrorNumber = wire::nbd::ErrorNumber;
    using ChunkType = wire::nbd::ChunkType;

    static constexpr wire::nbd::TransmissionFlags everything{.can_flush = true,
                                                             .can_write_durably = true,
                                                             .can_trim = true,
                                                             .can_write_zeroes = true,
                                                             .can_keep_together = true,
                                                             .many_connections = true,
                                                             .can_cache = true,
                                                             .can_zero_fast = true};

    ~NbdClientTalk() override {
        if (client && !driver->closed()) driver->close(std::nullopt);
        for (const auto& request : requests) EXPECT_TRUE(request.done());
        if (client) {
            EXPECT_EQ(opened.size(), 1u) << "opened is told once";
        }
    }

    void connect() {
        client = std::make_unique<nbd::Client>(
            "disk",
            nbd::Client::Holder{.wake = [this] { driver->wake(); },
                                .opened = [this](Result<void> how) { opened.push_back(how); }});
        driver.emplace(*client);
        driver->run();
    }
    void server_says(ConstBuffer octets) { driver->receive(octets); }
    void answer(Option which, Answer type, ConstBuffer data) {
        server_says(option_reply(which, type, data));
    }

    enum class Speech : std::uint8_t { simple, structured };
    /// A connection in transmission, to an export that can do all that `flags` says.
    void begin(Speech speech, wire::nbd::TransmissionFlags flags) {
        connect();
        server_says(encoded(wire::nbd::Greeting{true, true}));
        if (speech == Speech::structured) {
            answer(Option::structured_reply, Answer::ack, {});
            answer(Option::set_meta_context, Answer::meta_context,
                   join({number<4>(context_id), bytes_of("base:allocation")}));
            answer(Option::set_meta_context, Answer::ack, {});
        } else {
            answer(Option::structured_reply, Answer::error_unsupported, {});
        }
        answer(Option::go, Answer::info, encoded(wire::nbd::InfoExport{disk_size, flags}));
        answer(Option::go, Answer::ack, {});
        ASSERT_EQ(opened.size(), 1u);
        ASSERT_TRUE(opened[0].has_value());
        driver->take_sent();
    }

    TestRequest& submit(BlockOperation operation, std::uint64_t offset, std::uint64_t length) {
        auto& request = requests.emplace_back(operation, offset, length);
        client->submit(request);
        driver->run_if_woken();
        return request;
    }
    /// The headers of the requests heard since last asked; payload is passed over.
    std::vector<wire::nbd::RequestHeader> heard() {
        std::vector<wire::nbd::RequestHeader> headers;
        auto sent = driver->take_sent();
        for (ConstBuffer left = sent; !left.empty();) {
            auto header = decode<wire::nbd::RequestHeader>(left);
            if (!header) {
                ADD_FAILURE() << "not a request: " << to_hex(left);
                break;
            }
            headers.push_back(*header);
            auto payload = header->command == Command::write ? header->length : 0;
            left = left.subspan(wire_size<wire::nbd::RequestHeader>() + payload);
        }
        return headers;
    }
    std::uint64_t heard_cookie() {
        auto headers = heard();
        EXPECT_EQ(headers.size(), 1u);
        return headers.empty() ? 0 : headers[0].cookie;
    }
    static Bytes chunk(bool done, ChunkType type, std::uint64_t cookie, ConstBuffer body) {
        auto size = static_cast<std::uint32_t>(body.size());
        return join({encoded(wire::nbd::ChunkHeader{done, type, cookie, size}), body});
    }
    static Bytes error_body(ErrorNumber error, std::string_view message) {
        return join(
            {encoded(wire::nbd::ChunkError{error, static_cast<std::uint16_t>(message.size())}),
             bytes_of(message)});
    }
    /// The client has hung up, and says nothing more.
    bool hung_up() {
        std::array<ConstBuffer, 3> pieces;
        return driver->closed() && client->pending(pieces) == 0;
    }

    std::deque<TestRequest> requests;
    std::vector<Result<void>> opened;
    std::unique_ptr<nbd::Client> client;  ///< on the heap, where a sanitizer sees it used too late
    std::optional<EngineDriver> driver;
};

}  // namespace weft::test
