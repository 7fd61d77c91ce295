// SPDX-License-Identifier: Apache-2.0
#include "cli/toml.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/command.hpp"

namespace weft::cli {
namespace {

using nlohmann::json;

TEST(Toml, reads_tables_in_arrays_of_tables) {
    auto found = parse_toml(R"(
# two targets
[[target]]
name = "iqn.2026-11.io.weft:one"   # the first
initiators = ["a", 'b']
[[target.lun]]
memory = "1G"
[[target.lun]]
file = 'C:\disk'
number = 7
read_only = true
[[target]]
name = "two \"quoted\""
thick = false
)",
                            "targets.toml");
    EXPECT_EQ(found, json::parse(R"({"target": [
        {"name": "iqn.2026-11.io.weft:one", "initiators": ["a", "b"],
         "lun": [{"memory": "1G"}, {"file": "C:\\disk", "number": 7, "read_only": true}]},
        {"name": "two \"quoted\"", "thick": false}]})"));
}

TEST(Toml, reads_arrays_over_several_lines) {
    EXPECT_EQ(parse_toml("a = [\n  1, # one\n  2,\n]\nb = []", "x"),
              json::parse(R"({"a": [1, 2], "b": []})"));
}

TEST(Toml, says_which_line_is_wrong) {
    for (const char* wrong : {"x = 1\ny", "x = 1\ny = ", "x = 1\nx = 2", "x = 1\ny = \"z",
                              "x = 1\n[x]", "x = 1\n[y", "x = 1\ny = 2 3", "x = 1\ny = nonsense"}) {
        try {
            parse_toml(wrong, "file");
            ADD_FAILURE() << wrong;
        } catch (const Refusal& refusal) {
            EXPECT_TRUE(refusal.sentence.starts_with("file: line 2: ")) << refusal.sentence;
        }
    }
}

}  // namespace
}  // namespace weft::cli
