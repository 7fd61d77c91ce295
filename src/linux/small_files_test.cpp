// SPDX-License-Identifier: Apache-2.0
#include "linux/small_files.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/bytes.hpp"
#include "linux/world.hpp"

namespace weft::linux {
namespace {

class SmallFile : public testing::Test {
protected:
    SmallFile() {
        std::string name = "weft_small_files_test_XXXXXX";
        folder = ::mkdtemp(name.data());
        path = folder / "kept";
    }
    ~SmallFile() override { std::filesystem::remove_all(folder); }

    Result<void> replace(const std::string& where, std::string_view contents) {
        std::optional<Result<void>> outcome;
        world->replace_file(where, bytes_of(contents), [&](auto how) { outcome = how; });
        EXPECT_FALSE(outcome) << "never from inside";
        world->run_until([&] { return outcome.has_value(); });
        return *outcome;
    }
    std::string read() {
        auto contents = world->read_file(path);
        return contents ? std::string(text_of(*contents)) : "unreadable";
    }

    std::unique_ptr<World> world = std::move(*World::make());
    std::filesystem::path folder, path;
};

TEST_F(SmallFile, IsNotFoundBeforeItIsWritten) {
    auto contents = world->read_file(path);
    ASSERT_FALSE(contents);
    EXPECT_EQ(contents.error().code, Code::not_found);
}

TEST_F(SmallFile, HasTheNewContentsAndLeavesRoomForTheNext) {
    EXPECT_TRUE(replace(path, "a longer text at first"));
    EXPECT_EQ(read(), "a longer text at first");
    EXPECT_TRUE(replace(path, "short"));
    EXPECT_EQ(read(), "short");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 2);
    struct stat facts {};
    ASSERT_EQ(::stat(path.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777, 0600u) << "it is nobody else's business";
}

TEST_F(SmallFile, MayBeLong) {
    EXPECT_TRUE(replace(path, std::string(1'000'000, 'x')));
    EXPECT_EQ(read(), std::string(1'000'000, 'x'));
}

TEST_F(SmallFile, KeepsTheOldContentsWhenTheNewCannotBeWritten) {
    EXPECT_TRUE(replace(path, "old"));
    std::filesystem::remove(folder / "kept.new");
    std::filesystem::create_directory(folder / "kept.new");
    EXPECT_FALSE(replace(path, "new"));
    EXPECT_EQ(read(), "old");
    auto nowhere = replace(folder / "no such folder" / "kept", "new");
    ASSERT_FALSE(nowhere);
    EXPECT_EQ(nowhere.error().detail, ENOENT);
}

TEST_F(SmallFile, IsReplacedInTheOrderOfAsking) {
    int last = -1;
    for (int i = 0; i < 50; ++i)
        world->replace_file(path, bytes_of(std::to_string(i)), [&, i](Result<void> how) {
            EXPECT_TRUE(how);
            EXPECT_EQ(i, last + 1);
            last = i;
        });
    world->run_until([&] { return last == 49; });
    EXPECT_EQ(read(), "49");
}

TEST_F(SmallFile, IsRefusedToReadWhenItIsNotSmall) {
    std::ofstream(path).seekp(limits::small_file_bytes + 1).put('x');
    auto contents = world->read_file(path);
    ASSERT_FALSE(contents);
    EXPECT_EQ(contents.error().code, Code::exhausted);
}

}  // namespace
}  // namespace weft::linux
