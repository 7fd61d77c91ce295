// SPDX-License-Identifier: Apache-2.0
#include "raid/checked_disk.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "block/error_filter.hpp"
#include "support/crash_disk.hpp"
#include "support/seeds.hpp"

namespace weft::raid {
namespace {

using test::CrashDisk;

constexpr std::uint64_t offset = 16384, length = 40 * CheckedDisk::group_bytes + 8192;

struct Checked {
    explicit Checked(std::uint64_t seed, std::uint8_t columns = 0)
        : disk(CheckedDisk::length_below(length, columns) + offset, seed),
          checked(refusing, {.offset = offset, .length = length, .columns = columns},
                  10u * (columns + 1u)) {}

    std::optional<Result<void>> ask(BlockOperation operation, std::uint64_t home, Buffer octets) {
        std::optional<Result<void>> said;
        DiskAsker asker(checked);
        asker.submit(operation, home, {octets}, [&](Result<void> how) { said = how; });
        disk.run();
        return said;
    }
    bool writes(std::uint64_t home, std::vector<std::byte> octets) {
        return ask(BlockOperation::write, home, octets)->has_value();
    }
    bool reads(std::uint64_t home, const std::vector<std::byte>& expected) {
        std::vector<std::byte> octets(expected.size());
        return ask(BlockOperation::read, home, octets)->has_value() && octets == expected;
    }

    bool writes_as(std::uint64_t home, std::vector<std::byte> octets, Mask columns, Version as) {
        bool good = false;
        checked.write(home, octets, {.stamp = 7, .columns = columns, .version = as},
                      [&](Result<void> how) { good = how.has_value(); });
        disk.run();
        return good;
    }
    Versions versions(std::uint64_t home) {
        Result<Versions> said = Error{.code = Code::disconnected};
        checked.read_versions(home, [&](Result<Versions> how) { said = how; });
        disk.run();
        EXPECT_TRUE(said) << home;
        return said ? *said : Versions{};
    }

    CrashDisk disk;
    block::ErrorFilter refusing{disk};
    CheckedDisk checked;
};

std::vector<std::byte> filled(std::size_t size, int with) {
    return std::vector<std::byte>(size, static_cast<std::byte>(with));
}

TEST(CheckedDisk, ReadsAsZeroesUntilItIsWritten) {
    Checked one(1);
    EXPECT_TRUE(one.reads(0, filled(8192, 0)));
    EXPECT_TRUE(one.writes(4096, filled(4096, 7)));
    EXPECT_TRUE(one.reads(0, filled(4096, 0)));
    EXPECT_TRUE(one.reads(4096, filled(4096, 7)));
    EXPECT_TRUE(one.checked.idle());
}

TEST(CheckedDisk, LaysChecksumsAmongTheData) {
    Checked one(1);
    const auto home = CheckedDisk::group_bytes - 4096;
    ASSERT_TRUE(one.writes(home, filled(8192, 9)));
    ASSERT_TRUE(one.ask(BlockOperation::flush, 0, {})->has_value());
    std::vector<std::byte> there(4096);
    DiskAsker below(one.disk);
    for (std::uint64_t at : {offset + 4096 + home, offset + 4096 + home + 4096 + 4096}) {
        below.read(at, there, [](Result<void>) {});
        one.disk.run();
        EXPECT_EQ(there, filled(4096, 9)) << at;
    }
    below.read(offset + CheckedDisk::group_bytes + 4096, there, [](Result<void>) {});
    one.disk.run();
    EXPECT_NE(there, filled(4096, 0)) << "the second group's checksums";
}

TEST(CheckedDisk, PassesOnNothingThatIsNotWhatWasWritten) {
    Checked one(1);
    ASSERT_TRUE(one.writes(0, filled(12288, 7)));
    one.disk.damage(offset + 4096 + 4096 + 77);
    std::vector<std::byte> octets(12288);
    const auto said = one.ask(BlockOperation::read, 0, octets);
    ASSERT_FALSE(*said);
    EXPECT_TRUE(is_mismatch(said->error()));
    EXPECT_EQ(said->error().where, 1u);
    EXPECT_EQ(one.checked.mismatches(), 1u);
    EXPECT_TRUE(one.reads(0, filled(4096, 7)));
    one.disk.damage(offset + 4096 + 100 * 4096);
    EXPECT_FALSE(one.reads(100 * 4096, filled(4096, 0))) << "never written, and not zero";
    EXPECT_TRUE(one.writes(4096, filled(4096, 8)));
    EXPECT_TRUE(one.reads(4096, filled(4096, 8))) << "written anew it is whole";
}

TEST(CheckedDisk, KeepsChecksumsOverARestart) {
    Checked one(1);
    for (std::uint64_t group = 0; group < 30; ++group)  // of which ten fit into memory
        ASSERT_TRUE(one.writes(group * CheckedDisk::group_bytes, filled(4096, int(group))));
    ASSERT_TRUE(one.ask(BlockOperation::flush, 0, {})->has_value());
    std::mt19937_64 draw(1);
    Checked again(2);
    again.disk.become(one.disk.after_power_cut(CrashDisk::After::all_lost, draw));
    for (std::uint64_t group = 0; group < 30; ++group)
        EXPECT_TRUE(again.reads(group * CheckedDisk::group_bytes, filled(4096, int(group))));
}

// All pages in memory have changed, and none can be stored: it is tried once for each who writes,
// and whoever only reads does without.
TEST(CheckedDisk, IsReadFromWhileNoChecksumCanBeStored) {
    for (const bool at_once : {false, true})
        for (const auto why : {Code::exhausted, Code::io_failed}) {
            Checked one(1);
            one.disk.answers_at_once = at_once;
            for (std::uint64_t group = 0; group < 10; ++group)
                ASSERT_TRUE(one.writes(group * CheckedDisk::group_bytes, filled(4096, 7)));
            ASSERT_TRUE(one.refusing.add(
                {.operation = BlockOperation::write, .times = 20, .error = {.code = why}}));
            for (std::uint64_t group = 10; group < 40; ++group)
                EXPECT_TRUE(one.reads(group * CheckedDisk::group_bytes, filled(4096, 0)));
            for (std::uint64_t group = 0; group < 10; ++group)
                EXPECT_TRUE(one.reads(group * CheckedDisk::group_bytes, filled(4096, 7)));
            auto octets = filled(4096, 9);
            for (std::uint64_t group = 20; group < 25; ++group) {
                const auto said =
                    one.ask(BlockOperation::write, group * CheckedDisk::group_bytes, octets);
                ASSERT_FALSE(*said) << "it was tried more often than anybody asked for";
                EXPECT_EQ(said->error().code, why);
            }
            EXPECT_TRUE(one.checked.idle());
            one.refusing.clear();
            for (std::uint64_t group = 20; group < 40; ++group)
                EXPECT_TRUE(one.writes(group * CheckedDisk::group_bytes, octets));
            ASSERT_TRUE(one.ask(BlockOperation::flush, 0, {})->has_value());
            for (std::uint64_t group = 0; group < 40; ++group)
                EXPECT_TRUE(
                    one.reads(group * CheckedDisk::group_bytes, filled(4096, group < 10   ? 7
                                                                             : group < 20 ? 0
                                                                                          : 9)));
        }
}

constexpr Version version(std::uint64_t transaction, bool restored = false) {
    return version_of(wire::TransactionNumber{transaction}, restored);
}

TEST(CheckedDisk, RemembersVersionsByColumns) {
    Checked one(1, 3);
    const auto last = CheckedDisk::group_bytes - 4096;
    EXPECT_EQ(one.versions(last), (Versions{.kept = true, .columns = {}}));
    ASSERT_TRUE(one.writes_as(last, filled(8192, 7), 0b101, version(5)));
    for (const auto home : {last, last + 4096})
        EXPECT_EQ(one.versions(home),
                  (Versions{.kept = true, .columns = {version(5), {}, version(5)}}))
            << "on both sides of a group's end";
    ASSERT_TRUE(one.writes_as(last, filled(4096, 8), 0b1100010, version(6, true)));
    EXPECT_EQ(one.versions(last),
              (Versions{.kept = true, .columns = {version(5), version(6, true), version(5)}}))
        << "columns it does not keep are left out";
    ASSERT_TRUE(one.writes(last, filled(4096, 9)));
    EXPECT_EQ(one.versions(last).columns[0], version(5))
        << "a writer who says nothing changes none";
    EXPECT_TRUE(one.reads(last, filled(4096, 9)));
    EXPECT_TRUE(one.reads(last + 4096, filled(4096, 7)));
    EXPECT_EQ(one.versions(0), (Versions{.kept = true, .columns = {}}));
    EXPECT_TRUE(one.checked.idle());
}

TEST(CheckedDisk, KeepsVersionsOverARestart) {
    Checked one(1, 2);
    for (std::uint64_t group = 0; group < 40; ++group)  // more than fit into memory
        ASSERT_TRUE(one.writes_as(group * CheckedDisk::group_bytes, filled(4096, int(group)),
                                  group % 2 == 0 ? 0b01 : 0b11, version(100 + group)));
    ASSERT_TRUE(one.ask(BlockOperation::flush, 0, {})->has_value());
    std::mt19937_64 draw(1);
    Checked again(2, 2);
    again.disk.become(one.disk.after_power_cut(CrashDisk::After::all_lost, draw));
    for (std::uint64_t group = 0; group < 40; ++group) {
        const auto home = group * CheckedDisk::group_bytes;
        EXPECT_TRUE(again.reads(home, filled(4096, int(group))));
        const auto second = group % 2 == 0 ? Version{} : version(100 + group);
        EXPECT_EQ(again.versions(home),
                  (Versions{.kept = true, .columns = {version(100 + group), second}}));
    }
}

TEST(CheckedDisk, WithoutVersionsIsAsItWasBeforeThereWere) {
    Checked one(1);
    EXPECT_EQ(CheckedDisk::length_below(CheckedDisk::group_bytes, 0),
              CheckedDisk::group_bytes + CheckedDisk::block);
    ASSERT_TRUE(one.writes_as(0, filled(4096, 7), 0b11, version(5)));
    EXPECT_EQ(one.versions(0), Versions{}) << "which says that it keeps none";
    EXPECT_TRUE(one.reads(0, filled(4096, 7)));
}

TEST(CheckedDisk, RefusesWhatEveryDiskRefuses) {
    Checked one(1);
    auto code = [&](std::uint64_t home, std::size_t size) {
        std::vector<std::byte> octets(size);
        const auto said = one.ask(BlockOperation::read, home, octets);
        return said->has_value() ? std::optional<Code>{} : said->error().code;
    };
    EXPECT_EQ(code(length, 4096), Code::out_of_range);
    EXPECT_EQ(code(100, 4096), Code::malformed);
    EXPECT_EQ(code(0, 100), Code::malformed);
    EXPECT_EQ(code(length - 4096, 4096), std::nullopt);
    one.disk.fails = true;
    EXPECT_EQ(code(5 * CheckedDisk::group_bytes, 4096), Code::io_failed);
    one.disk.fails = false;
    EXPECT_EQ(code(5 * CheckedDisk::group_bytes, 4096), std::nullopt) << "asked again";
}

// Many at a time, over more groups than fit into memory, against what a plain disk would hold.
TEST(CheckedDisk, HoldsWhatAPlainDiskWould) {
    test::for_each_seed(10, [](std::uint64_t seed) {
        Checked one(seed);
        std::mt19937_64 random(seed);
        std::map<std::uint64_t, std::vector<std::byte>> shadow;
        DiskAsker asker(one.checked);
        std::deque<std::vector<std::byte>> memory;
        std::size_t answered = 0, asked = 0;
        for (int round = 0; round < 30; ++round) {
            std::map<std::uint64_t, bool> taken;
            for (int i = 0; i < 6; ++i) {
                const auto home = random() % 40 * CheckedDisk::group_bytes + random() % 4 * 4096;
                if (std::exchange(taken[home], true)) continue;
                ++asked;
                if (random() % 5 == 0) {
                    asker.flush([&](Result<void> how) { answered += how.has_value() ? 1 : 0; });
                } else if (random() % 2 == 0) {
                    auto& octets = memory.emplace_back(filled(4096, int(random() % 256)));
                    shadow[home] = octets;
                    asker.write(home, {octets}, [&](auto how) { answered += how ? 1 : 0; });
                } else {
                    auto& octets = memory.emplace_back(4096);
                    const auto expected = shadow.contains(home) ? shadow[home] : filled(4096, 0);
                    asker.read(home, octets, [&answered, &octets, expected](auto how) {
                        answered += how && octets == expected ? 1 : 0;
                    });
                }
                if (random() % 2 == 0) one.disk.step();
            }
            one.disk.run();
        }
        EXPECT_EQ(answered, asked);
        EXPECT_TRUE(one.checked.idle());
    });
}

}  // namespace
}  // namespace weft::raid
