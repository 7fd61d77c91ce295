// SPDX-License-Identifier: Apache-2.0
// What a client has lent to the world stays in place until the world is done with it.
#include <gtest/gtest.h>

#include "support/nbd_client_talk.hpp"

namespace weft::nbd {
namespace {

using namespace wire::nbd;

class ClientLendingTest : public test::NbdClientTalk {};

TEST_F(ClientLendingTest, LeavesItsMakersMemoryToTheWorldEvenWhenItFails) {
    for (bool world_hears_more : {false, true}) {
        SCOPED_TRACE(world_hears_more);
        if (client) driver->close(std::nullopt), opened.clear();
        begin(Speech::simple, everything);
        driver->peer_listens = false;
        auto& flush = submit(BlockOperation::flush, 0, 0);
        auto& write = submit(BlockOperation::write, 0, 100);
        std::array<ConstBuffer, 3> pieces;
        ASSERT_EQ(client->pending(pieces), 3u);
        for (std::size_t i = 0; i < wire_size<SimpleReply>(); ++i) {
            client->want()[0] = std::byte{0xff};
            client->filled(1);
            if (client->finished()) break;
        }
        ASSERT_TRUE(client->finished());
        EXPECT_EQ(client->pending(pieces), 0u);
        EXPECT_TRUE(flush.failure().has_value());
        EXPECT_FALSE(write.done()) << "its memory is still lent";
        if (world_hears_more) {
            client->sent(2 * wire_size<RequestHeader>() + 99);
            EXPECT_FALSE(write.done());
            client->sent(1);
        } else {
            driver->close(std::nullopt);
        }
        EXPECT_EQ(write.failure(), flush.failure());
    }
}

}  // namespace
}  // namespace weft::nbd
