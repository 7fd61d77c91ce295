// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <thread>

#include "linux/world.hpp"

namespace weft::linux {
namespace {

class CallOnThread : public testing::TestWithParam<FileEngine> {};

TEST_P(CallOnThread, WorksElsewhereAndTellsTheLoop) {
    auto made = World::make({.files = GetParam()});
    if (!made) GTEST_SKIP() << "there is no such engine here";
    auto& world = **made;
    std::thread::id worked, told;
    bool inside = true;
    world.call_on_thread([&] { worked = std::this_thread::get_id(); },
                         [&] {
                             EXPECT_FALSE(inside);
                             told = std::this_thread::get_id();
                             world.stop();
                         });
    inside = false;
    world.run();
    EXPECT_EQ(told, std::this_thread::get_id());
    EXPECT_EQ(worked == told, GetParam() == FileEngine::none);
}

INSTANTIATE_TEST_SUITE_P(All, CallOnThread,
                         testing::Values(FileEngine::ring, FileEngine::threads, FileEngine::none));

}  // namespace
}  // namespace weft::linux
