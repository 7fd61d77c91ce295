// SPDX-License-Identifier: Apache-2.0
#include "node/stranger.hpp"

#include <gtest/gtest.h>

namespace weft::node {
namespace {

TEST(Stranger, IsToldByItsTargets) {
    auto found = [](const std::vector<std::string>& names) {
        std::vector<iscsi::DiscoveredTarget> targets;
        for (const auto& name : names) targets.push_back({.name = name, .addresses = {}});
        return found_instead(targets, "oak");
    };
    EXPECT_EQ(found({"iqn.2026-11.io.weft:box.elm"}), "the box there is called elm");
    EXPECT_EQ(found({"iqn.2026-11.io.weft:box.oak"}),
              "it is there, and refuses this controller: perhaps it has another --key, or none");
    EXPECT_EQ(found({"iqn.2026-11.io.weft:volume.oak"}), "a controller listens there, and no box");
    EXPECT_EQ(found({"iqn.2026-11.io.weft:disk0"}), "an iSCSI server listens there, and no box");
    EXPECT_EQ(found({}), "an iSCSI server listens there, and no box");
}

}  // namespace
}  // namespace weft::node
