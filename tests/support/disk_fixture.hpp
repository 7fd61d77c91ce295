// SPDX-License-Identifier: Apache-2.0
// What the disk tests share: a world with the engine under test, a folder, and a way to wait.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "linux/world.hpp"
#include "support/test_request.hpp"

namespace weft::linux {

class DiskFixture : public testing::TestWithParam<FileEngine> {
protected:
    void SetUp() override {
        auto made = World::make({.files = GetParam()});
        if (!made && GetParam() == FileEngine::ring) GTEST_SKIP() << "no io_uring here";
        ASSERT_TRUE(made);
        world = std::move(*made);
        ASSERT_EQ(world->file_engine(), GetParam());
        std::filesystem::create_directory(folder);
        limit = world->make_timer([this] {
            ADD_FAILURE() << "this took too long";
            world->stop();
        });
        limit->set(world->now() + std::chrono::seconds(60));
    }
    void TearDown() override {
        limit.reset();
        world.reset();
        std::filesystem::remove_all(folder);
    }

    /// A file of `size` bytes, all of it a hole.
    std::string make_file(std::uint64_t size) {
        auto path = folder / "disk";
        std::ofstream(path).close();
        std::filesystem::resize_file(path, size);
        return path;
    }
    std::unique_ptr<BlockDevice> open(const DiskOptions& options) {
        auto made = world->open_disk(options);
        EXPECT_TRUE(made) << "errno " << made.error().detail;
        return made ? std::move(*made) : nullptr;
    }
    Result<void> wait(BlockDevice& disk, test::TestRequest& request) {
        disk.submit(request);
        world->run_until([&] { return request.done(); });
        return *request.outcome;
    }
    Result<void> write(BlockDevice& disk, std::uint64_t offset, Buffer bytes) {
        test::TestRequest request(BlockOperation::write, offset, bytes.size());
        return wait(disk, request.with_memory(bytes));
    }
    std::vector<std::byte> read(BlockDevice& disk, std::uint64_t offset, std::size_t length) {
        test::TestRequest request(BlockOperation::read, offset, length);
        EXPECT_TRUE(wait(disk, request));
        return request.octets;
    }
    Result<void> change(BlockDevice& disk, BlockOperation what, std::uint64_t offset,
                        std::uint64_t length) {
        test::TestRequest request(what, offset, length);
        return wait(disk, request);
    }

    std::unique_ptr<World> world;
    std::unique_ptr<Timer> limit;
    std::filesystem::path folder =
        std::filesystem::current_path() / ("weft_disk_test_" + std::to_string(::getpid()));
};

inline std::string engine_name(const testing::TestParamInfo<FileEngine>& tested) {
    return tested.param == FileEngine::ring ? "Ring" : "Threads";
}

#define WEFT_WITH_BOTH_ENGINES(suite)        \
    INSTANTIATE_TEST_SUITE_P(Engines, suite, \
                             testing::Values(FileEngine::ring, FileEngine::threads), engine_name)

}  // namespace weft::linux
