// SPDX-License-Identifier: Apache-2.0
#include "store/base64.hpp"

#include <gtest/gtest.h>

namespace weft::store {
namespace {

std::string text_of(const std::vector<std::byte>& octets) {
    return {reinterpret_cast<const char*>(octets.data()), octets.size()};
}

TEST(Base64, IsThatOfTheStandard) {
    // RFC 4648 section 10.
    const std::pair<std::string, std::string> examples[] = {{"", ""},
                                                            {"f", "Zg=="},
                                                            {"fo", "Zm8="},
                                                            {"foo", "Zm9v"},
                                                            {"foob", "Zm9vYg=="},
                                                            {"fooba", "Zm9vYmE="},
                                                            {"foobar", "Zm9vYmFy"}};
    for (const auto& [plain, coded] : examples) {
        EXPECT_EQ(to_base64(plain), coded);
        auto back = from_base64(coded);
        ASSERT_TRUE(back) << coded;
        EXPECT_EQ(text_of(*back), plain);
    }
}

TEST(Base64, CarriesEveryOctet) {
    std::vector<std::byte> all(256);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::byte>(i);
    auto back = from_base64(to_base64(all));
    ASSERT_TRUE(back);
    EXPECT_EQ(*back, all);
}

TEST(Base64, RefusesWhatIsNone) {
    for (const char* text : {"Z", "Zg", "Zg=", "Z===", "====", "Zg==Zg==", "Zm9v!mFy", "Zm 9"})
        EXPECT_FALSE(from_base64(text)) << text;
}

}  // namespace
}  // namespace weft::store
