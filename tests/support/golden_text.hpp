// SPDX-License-Identifier: Apache-2.0
// Golden text: what a program makes, kept as people read it. With UPDATE=1 in the environment the
// file is written instead of compared; then read the difference.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace weft::test {

inline void expect_golden_text(const std::string& name, const std::string& text) {
    const std::string path = std::string(WEFT_GOLDEN "/") + name;
    if (std::getenv("UPDATE")) {
        std::ofstream(path) << text;
        return;
    }
    std::ifstream file(path);
    ASSERT_TRUE(file) << "no golden file " << name << "; make it with UPDATE=1 and read it";
    std::stringstream expected;
    expected << file.rdbuf();
    EXPECT_EQ(text, expected.str()) << name;
}

}  // namespace weft::test
