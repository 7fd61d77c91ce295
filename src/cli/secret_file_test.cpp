// SPDX-License-Identifier: Apache-2.0
#include "cli/secret_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "cli/command.hpp"

namespace weft::cli {
namespace {

std::optional<std::string> refusal_of(const std::string& path) {
    try {
        require_private(path);
        return std::nullopt;
    } catch (const Refusal& refusal) {
        return refusal.sentence;
    }
}

TEST(SecretFile, MustBeForItsOwnerAlone) {
    std::string folder = testing::TempDir() + "/weft-secret-XXXXXX";
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    const auto path = folder + "/key";
    std::ofstream(path) << "secret";
    for (::mode_t mode : {0600u, 0400u, 0700u}) {
        ASSERT_EQ(::chmod(path.c_str(), mode), 0);
        EXPECT_EQ(refusal_of(path), std::nullopt) << mode;
    }
    for (::mode_t mode : {0644u, 0640u, 0604u, 0660u, 0602u}) {
        ASSERT_EQ(::chmod(path.c_str(), mode), 0);
        EXPECT_NE(refusal_of(path), std::nullopt) << mode;
    }
    ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
    EXPECT_EQ(refusal_of(path), path +
                                    ": its mode is 0644, so other users of this machine can get at "
                                    "the secret in it; say: chmod 600 " +
                                    path);
    std::filesystem::remove_all(folder);
}

TEST(SecretFile, MayBeNoFileAtAll) {
    EXPECT_EQ(refusal_of("/dev/null"), std::nullopt) << "not one that lies about";
    EXPECT_EQ(refusal_of("/no/such/file"), std::nullopt) << "who reads it says so";
}

}  // namespace
}  // namespace weft::cli
