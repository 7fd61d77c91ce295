// SPDX-License-Identifier: Apache-2.0
#include "linux/disk_files.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace weft::linux {
namespace {

namespace fs = std::filesystem;

struct ADiskFile : testing::Test {
    ADiskFile() {
        std::string name = testing::TempDir() + "weft-disk-XXXXXX";
        folder = ::mkdtemp(name.data());
    }
    ~ADiskFile() override { fs::remove_all(folder); }

    fs::path folder;
    std::string path() const { return folder / "part"; }
};

TEST_F(ADiskFile, IsMadeEmptyAndHasItsSpace) {
    ASSERT_TRUE(provide_disk_file(path(), 8u << 20));
    EXPECT_EQ(fs::file_size(path()), 8u << 20);
    struct stat facts {};
    ASSERT_EQ(::stat(path().c_str(), &facts), 0);
    EXPECT_GE(facts.st_blocks * 512, 8 << 20) << "what is written later needs no more";
    std::ifstream file(path());
    EXPECT_EQ(file.get(), 0);
    EXPECT_EQ(fs::status(path()).permissions() & fs::perms::others_all, fs::perms::none);
}

TEST_F(ADiskFile, IsRefusedWhereThereIsNoRoom) {
    const auto room = room_for_disk_files(folder);
    ASSERT_TRUE(room);
    const auto made = provide_disk_file(path(), *room + (std::uint64_t{1} << 40));
    ASSERT_FALSE(made);
    EXPECT_NE(made.error().code, Code::unsupported);
    EXPECT_FALSE(room_for_disk_files(folder / "nowhere"));
}

TEST_F(ADiskFile, GrowsAndKeepsWhatItHas) {
    ASSERT_TRUE(provide_disk_file(path(), 4096));
    std::ofstream(path(), std::ios::in) << "kept";
    ASSERT_TRUE(provide_disk_file(path(), 8192));
    EXPECT_EQ(fs::file_size(path()), 8192u);
    ASSERT_TRUE(provide_disk_file(path(), 100));
    EXPECT_EQ(fs::file_size(path()), 8192u) << "it never shrinks";
    std::string word;
    std::getline(std::ifstream(path()), word, '\0');
    EXPECT_EQ(word, "kept");
}

TEST_F(ADiskFile, IsGoneWhenRemovedOnceOrTwice) {
    ASSERT_TRUE(provide_disk_file(path(), 4096));
    EXPECT_TRUE(remove_disk_file(path()));
    EXPECT_FALSE(fs::exists(path()));
    EXPECT_TRUE(remove_disk_file(path()));
}

TEST_F(ADiskFile, MustBeAFileInAFolder) {
    EXPECT_FALSE(provide_disk_file(folder / "nowhere" / "part", 4096));
    fs::create_directory(path());
    EXPECT_FALSE(provide_disk_file(path(), 4096));
    fs::remove(path());
    fs::create_symlink(folder / "elsewhere", path());
    EXPECT_FALSE(provide_disk_file(path(), 4096)) << "nobody is led to another's file";
}

}  // namespace
}  // namespace weft::linux
