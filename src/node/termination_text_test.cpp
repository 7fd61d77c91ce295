// SPDX-License-Identifier: Apache-2.0
#include "node/termination_text.hpp"

#include <gtest/gtest.h>

namespace weft::node {
namespace {

using verbs::Termination;

TEST(ATermination, IsSaidInWordsWithTheTagItQuotes) {
    Termination said{.from = Termination::From::peer,
                     .about = Termination::About::write,
                     .layer = 1,
                     .error_type = 1,
                     .error_code = 0,
                     .target = {4096, SteeringTag{0xa40d17}},
                     .size = 0};
    EXPECT_EQ(to_text(said),
              "the peer terminated the connection: invalid steering tag 0x00a40d17 (RDMA Write, "
              "offset 4096)");
    said = {.from = Termination::From::us,
            .about = Termination::About::read,
            .layer = 0,
            .error_type = 1,
            .error_code = 2,
            .target = {0, SteeringTag{1}},
            .size = 8};
    EXPECT_EQ(to_text(said),
              "this side terminated the connection: no such right under steering tag 0x00000001 "
              "(RDMA Read, offset 0)");
}

TEST(ATermination, IsSaidInWordsWhateverItsNumbersAre) {
    for (unsigned layer = 0; layer < 4; ++layer)
        for (unsigned type = 0; type < 16; ++type)
            for (unsigned code = 0; code < 256; ++code)
                EXPECT_FALSE(to_text({.from = Termination::From::peer,
                                      .about = Termination::About::nothing,
                                      .layer = static_cast<std::uint8_t>(layer),
                                      .error_type = static_cast<std::uint8_t>(type),
                                      .error_code = static_cast<std::uint8_t>(code)})
                                 .empty());
}

}  // namespace
}  // namespace weft::node
