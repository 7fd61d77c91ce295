// SPDX-License-Identifier: Apache-2.0
#include "node/box_facts.hpp"

#include <gtest/gtest.h>

namespace weft::node {
namespace {

BoxFacts some_facts() {
    return {.box = {{1, 2, 3}},
            .cluster = {{4, 5}},
            .epoch = wire::Epoch{6},
            .name = "oak",
            .parts = {{.volume = {{7}}, .size = 1 << 20, .begun = false},
                      {.volume = {{8}}, .size = 1 << 21, .begun = true}}};
}

TEST(BoxFacts, AreReadBackAsTheyWere) {
    const auto facts = some_facts();
    auto read = parse_box_facts(encode_box_facts(facts));
    ASSERT_TRUE(read);
    EXPECT_EQ(*read, facts);
    EXPECT_EQ(read->taken(), 3u << 20);
    EXPECT_EQ(read->find({{8}})->size, 2u << 20);
    EXPECT_EQ(read->find({{9}}), nullptr);
}

TEST(BoxFacts, AreNotBelievedIfABitIsWrong) {
    const auto octets = encode_box_facts(some_facts());
    for (std::size_t i = 0; i < octets.size(); ++i) {
        auto damaged = octets;
        damaged[i] ^= std::byte{4};
        EXPECT_FALSE(parse_box_facts(damaged)) << "octet " << i;
    }
}

TEST(BoxFacts, AreNotBelievedIfTheEndIsMissingOrTooFar) {
    auto octets = encode_box_facts(some_facts());
    for (std::size_t size = 0; size < octets.size(); ++size)
        EXPECT_FALSE(parse_box_facts(ConstBuffer(octets).first(size)));
    octets.push_back(std::byte{0});
    EXPECT_FALSE(parse_box_facts(octets));
}

TEST(BoxFacts, CannotNameOneVolumeTwice) {
    auto facts = some_facts();
    facts.parts[1].volume = facts.parts[0].volume;
    EXPECT_FALSE(parse_box_facts(encode_box_facts(facts)));
}

TEST(BoxFacts, NameADiskForEveryNumberOfAPart) {
    const auto digits = std::string(32, '0');
    EXPECT_EQ(file_name_of({.volume = {}, .number = 0}), "part-" + digits);
    EXPECT_EQ(file_name_of({.volume = {}, .number = 7}), "part-" + digits + ".7");
    BoxFacts facts{.box = {}, .cluster = {}, .epoch = {}, .name = "oak", .parts = {}};
    facts.parts.push_back({.volume = {}, .size = 1, .number = (1u << 31) - 1, .begun = true});
    EXPECT_EQ(*parse_box_facts(encode_box_facts(facts)), facts);
}

}  // namespace
}  // namespace weft::node
