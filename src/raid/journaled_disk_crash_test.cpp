// SPDX-License-Identifier: Apache-2.0
// The power goes after every single step of the disk, and what was not flushed is lost, kept or
// torn. Whatever was answered is so afterwards, and nothing else has changed.
#include <gtest/gtest.h>

#include <optional>

#include "raid/journaled_disk.hpp"
#include "support/crash_disk.hpp"
#include "support/seeds.hpp"

namespace weft::raid {
namespace {

using State = wire::ArrayTransactionState;
using test::CrashDisk;
using Content = std::array<std::byte, 4096>;

constexpr std::uint64_t blocks_at_home = 40, group_blocks = 512;

wire::ArraySuperblock the_part() {
    wire::ArraySuperblock superblock;
    superblock.journal_offset = 8192;
    superblock.journal_length = journal_ring_offset + 64 * wire::journal_block;
    superblock.data_offset = superblock.journal_offset + superblock.journal_length;
    superblock.data_length = 12 * CheckedDisk::group_bytes;
    return superblock;
}
constexpr std::uint64_t disk_size = 64u << 20;

/// Spread over more groups than there are pages for.
std::uint64_t home_of(std::uint64_t index) {
    return (index % 12 * group_blocks + index) * 4096;
}

Content content_of(std::uint64_t transaction, std::uint64_t index) {
    Content content;
    for (std::size_t i = 0; i < content.size(); ++i)
        content[i] = static_cast<std::byte>(transaction * 31 + index * 7 + i / 16 * transaction);
    return content;
}

wire::HostIdentity the_host() {
    return {.octets = {7}};
}

struct Write {
    std::uint64_t number = 0;
    std::vector<std::uint64_t> blocks;
    std::vector<Content> octets;
    enum class Step { none, asked, told } prepared{}, committed{}, aborted{};

    wire::TransactionNumber transaction() const { return wire::TransactionNumber{number}; }
    bool ended() const { return committed == Step::told || aborted == Step::told; }
};

/// What is known of the part by who uses it; a copy can be held against what a power cut left.
struct Story {
    std::map<std::uint64_t, Write> writes;
    std::map<std::uint64_t, Content> home;  ///< as of what was told; zero where nothing is
    std::uint64_t settled = 1;
    std::uint64_t next = 1;

    bool is_locked(std::uint64_t block) const {
        for (const auto& [number, write] : writes)
            if (!write.ended() && std::ranges::find(write.blocks, block) != write.blocks.end())
                return true;
        return false;
    }
};

Content read(JournaledDisk& disk, std::uint64_t block, bool& is_whole) {
    Content content{};
    is_whole = false;
    DiskAsker asker(disk.home());
    asker.read(home_of(block), content,
               [&](Result<void> outcome) { is_whole = outcome.has_value(); });
    return content;
}

Result<void> told_at_once(const std::function<void(Told)>& ask) {
    std::optional<Result<void>> said;
    ask([&](Result<void> outcome) { said = outcome; });
    EXPECT_TRUE(said.has_value()) << "not told";
    return said.value_or(Error{.code = Code::timed_out});
}

JournaledDisk::Options small_options(bool groups) {
    return {.journal = {.groups = groups, .marks_wait = {}}, .checksum_pages = 10};
}

/// The newer of the two is not what was written. Where it was on its way none may be left.
void rot_newest_checkpoint(test::SparseOctets& octets) {
    const auto part = the_part();
    std::vector<std::byte> journal(part.journal_length);
    octets.read(part.journal_offset, journal);
    const auto image = read_journal(journal);
    if (!image) return;
    const auto at = image->slot * wire::journal_checkpoint_bytes + 20;
    journal[at] ^= std::byte{4};
    octets.write(part.journal_offset + at, ConstBuffer(journal).subspan(at, 1));
}

class Crashes {
public:
    Crashes(std::uint64_t seed, int transactions, bool rots = false)
        : random(seed), left(transactions), checkpoints_rot(rots) {
        disk.random.seed(seed + 1);
        disk.answers_at_once = true;
        EXPECT_TRUE(told_at_once([&](Told told) { journaled.format(std::move(told)); }));
        disk.answers_at_once = false;
    }

    void run() {
        int idle = 0;
        while (idle < 3 && !::testing::Test::HasFatalFailure()) {
            act();
            for (auto steps = random() % 4; steps > 0; --steps) {
                if (!disk.step()) break;
                ASSERT_NO_FATAL_FAILURE(cut_the_power());
            }
            const bool over = left <= 0 && std::ranges::all_of(story.writes, [](const auto& each) {
                                  return each.second.ended();
                              });
            if (over && !disk.step()) ++idle;
        }
    }
    std::uint64_t laps() const { return journaled.journal().tail() / journaled.journal().length(); }

    int cuts = 0, found_damaged = 0, found_whole = 0;

private:
    void act() {
        if (left > 0 && under_way() < 4 && random() % 2 == 0) begin();
        for (auto& [number, write] : story.writes) {
            if (write.ended() || random() % 3 != 0) continue;
            if (write.committed != Write::Step::none || write.aborted != Write::Step::none)
                continue;
            if (write.prepared != Write::Step::told) continue;
            if (random() % 4 == 0)
                abort(write);
            else
                commit(write);
        }
        if (random() % 4 == 0) settle();
    }
    int under_way() const {
        return static_cast<int>(std::ranges::count_if(
            story.writes, [](const auto& each) { return !each.second.ended(); }));
    }

    void begin() {
        Write write{.number = story.next++, .blocks = {}, .octets = {}};
        for (auto count = 1 + random() % 5; count > 0; --count) {
            const auto block = random() % blocks_at_home;
            if (story.is_locked(block) ||
                std::ranges::find(write.blocks, block) != write.blocks.end())
                continue;
            write.blocks.push_back(block);
            write.octets.push_back(content_of(write.number, block));
        }
        if (write.blocks.empty()) return;
        const auto octets = static_cast<std::uint32_t>(write.blocks.size() * 4096);
        if (!journaled.keep_room(write.transaction(), octets)) return settle();
        --left;
        auto& kept = story.writes[write.number] = std::move(write);
        JournaledDisk::Preparation preparation;
        preparation.record.transaction = kept.transaction();
        preparation.record.host_identity = the_host();
        preparation.record.host_command = kept.number * 10;
        for (std::size_t i = 0; i < kept.blocks.size(); ++i) {
            preparation.extents.push_back({.home = home_of(kept.blocks[i]), .length = 4096});
            preparation.blocks.emplace_back(kept.octets[i]);
        }
        kept.prepared = Write::Step::asked;
        journaled.prepare(std::move(preparation), [this, number = kept.number](Result<void> how) {
            ASSERT_TRUE(how);
            story.writes[number].prepared = Write::Step::told;
        });
    }
    void commit(Write& write) {
        write.committed = Write::Step::asked;
        std::vector<Buffer> blocks;
        if (random() % 3 != 0)
            for (auto& octets : write.octets) blocks.emplace_back(octets);
        journaled.commit(write.transaction(), blocks, [this, number = write.number](auto how) {
            ASSERT_TRUE(how);
            auto& told = story.writes[number];
            told.committed = Write::Step::told;
            for (std::size_t i = 0; i < told.blocks.size(); ++i)
                story.home[told.blocks[i]] = told.octets[i];
        });
    }
    void abort(Write& write) {
        write.aborted = Write::Step::asked;
        journaled.abort(write.transaction(), [this, number = write.number](Result<void> how) {
            ASSERT_TRUE(how);
            story.writes[number].aborted = Write::Step::told;
        });
    }
    void settle() {
        while (story.settled < story.next) {
            auto found = story.writes.find(story.settled);
            if (found != story.writes.end() && !found->second.ended()) break;
            ++story.settled;
        }
        journaled.settle(wire::TransactionNumber{story.settled});
    }

    void cut_the_power() {
        ++cuts;
        for (auto after : {CrashDisk::After::all_lost, CrashDisk::After::all_kept,
                           CrashDisk::After::drawn, CrashDisk::After::drawn})
            ASSERT_NO_FATAL_FAILURE(check(disk.after_power_cut(after, random), story));
    }

    void check(test::SparseOctets left_over, const Story& known);
    bool recovers(JournaledDisk& found);
    static void check_home(JournaledDisk& found, const Story& known,
                           std::map<std::uint64_t, Content> expected);

    std::mt19937_64 random;
    int left;
    bool checkpoints_rot;
    CrashDisk disk{disk_size, 0};
    JournaledDisk journaled{disk, the_part(), small_options(true)};
    Story story;
};

/// What may be said of a write after the power was gone.
void expect_state(const Write& write, std::optional<State> state, bool is_settled) {
    using Step = Write::Step;
    if (write.committed == Step::told) {
        ASSERT_TRUE(state == State::committed || (!state && is_settled));
    } else if (write.aborted == Step::told) {
        ASSERT_TRUE(state == State::aborted || (!state && is_settled));
    } else if (write.committed == Step::asked) {
        ASSERT_TRUE(state == State::prepared || state == State::committed);
    } else if (write.aborted == Step::asked) {
        ASSERT_TRUE(state == State::prepared || state == State::aborted);
    } else if (write.prepared == Step::told) {
        ASSERT_EQ(state, State::prepared);
    } else {
        ASSERT_TRUE(!state || state == State::prepared);
    }
}

/// Else its journal is damaged, which may be only where a checkpoint has rotted.
bool Crashes::recovers(JournaledDisk& found) {
    const auto outcome = told_at_once([&](Told told) { found.recover(std::move(told)); });
    EXPECT_EQ(found.is_damaged(), found.has_failed());
    EXPECT_TRUE(outcome || checkpoints_rot);
    ++(outcome ? found_whole : found_damaged);
    return outcome.has_value();
}

void Crashes::check(test::SparseOctets left_over, const Story& known) {
    if (checkpoints_rot) rot_newest_checkpoint(left_over);
    CrashDisk again(disk_size, random());
    again.become(left_over);
    again.answers_at_once = true;
    auto expected = known.home;
    {
        JournaledDisk found(again, the_part(), small_options(true));
        if (!recovers(found)) return;
        const auto recalled = found.recall();
        for (const auto& [number, write] : known.writes) {
            SCOPED_TRACE("transaction " + std::to_string(number));
            const auto state = found.state_of(write.transaction());
            ASSERT_NO_FATAL_FAILURE(expect_state(write, state, number < known.settled));
            if (write.committed == Write::Step::told) {
                const wire::ArrayExecutedNote note{write.transaction(), the_host(), number * 10};
                ASSERT_EQ(std::ranges::count(recalled.notes, note), 1);
            }
            // Somebody decides what nobody knows: as the controller would, or as it may.
            const bool commits =
                write.committed != Write::Step::none ||
                (state == State::prepared && number % 2 == 0 && write.aborted == Write::Step::none);
            if (state == State::prepared) {
                ASSERT_TRUE(told_at_once([&, decided = write.transaction()](Told told) {
                    if (commits)
                        found.commit(decided, {}, std::move(told));
                    else
                        found.abort(decided, std::move(told));
                }));
            }
            if (!commits || !state) continue;
            for (std::size_t i = 0; i < write.blocks.size(); ++i)
                if (write.committed != Write::Step::told)
                    expected[write.blocks[i]] = write.octets[i];
        }
        ASSERT_NO_FATAL_FAILURE(check_home(found, known, expected));
        again.run();
    }
    // And once more, with all that was decided since: none of it was flushed but by the journal.
    std::mt19937_64 draw(1);
    CrashDisk third(disk_size, 1);
    left_over = again.after_power_cut(CrashDisk::After::all_lost, draw);
    if (checkpoints_rot) rot_newest_checkpoint(left_over);
    third.become(left_over);
    third.answers_at_once = true;
    JournaledDisk last(third, the_part(), small_options(true));
    if (!recovers(last)) return;
    ASSERT_NO_FATAL_FAILURE(check_home(last, known, expected));
}

void Crashes::check_home(JournaledDisk& found, const Story& known,
                         std::map<std::uint64_t, Content> expected) {
    for (std::uint64_t block = 0; block < blocks_at_home; ++block) {
        bool is_whole = false;
        const auto content = read(found, block, is_whole);
        ASSERT_TRUE(is_whole) << "block " << block << ", " << known.writes.size() << " writes";
        ASSERT_EQ(content, expected[block]) << "block " << block;
    }
}

TEST(JournaledDisk, KeepsWhatItToldWheneverThePowerGoes) {
    test::for_each_seed(3, [](std::uint64_t seed) {
        Crashes crashes(seed, 40);
        crashes.run();
        EXPECT_GT(crashes.cuts, 100);
        EXPECT_GT(crashes.laps(), 1u) << "the ring was not used again";
    });
}

/// The other checkpoint is older. It is gone by where nothing has been lost of what it tells of;
/// else that is known.
TEST(JournaledDisk, KnowsThatItIsDamagedOrKeepsWhatItToldWhenItsCheckpointRots) {
    int damaged = 0, whole = 0;
    test::for_each_seed(3, [&](std::uint64_t seed) {
        Crashes crashes(seed, 40, true);
        crashes.run();
        damaged += crashes.found_damaged;
        whole += crashes.found_whole;
    });
    if (!test::runs_all_seeds()) return;
    EXPECT_GT(damaged, 100);
    EXPECT_GT(whole, 100);
}

/// Of marks that were written together one is told first, and room is made then: what the others
/// committed was taken for home, and was not.
TEST(JournaledDisk, MakesNoRoomOfWhatIsCommittedAndNotHome) {
    Crashes(15, 40).run();
}

/// Whoever heard that there is no room would wait for some.
TEST(JournaledDisk, DoesNotSayThatItHasNoRoomWhenItHasFailed) {
    CrashDisk disk(disk_size, 1);
    disk.answers_at_once = true;
    JournaledDisk journaled(disk, the_part(), small_options(true));
    ASSERT_TRUE(told_at_once([&](Told told) { journaled.format(std::move(told)); }));
    disk.fails = true;
    for (const std::uint64_t never_heard_of : {5u, 6u}) {
        const auto told = told_at_once([&](Told answer) {
            journaled.abort(wire::TransactionNumber{never_heard_of}, std::move(answer));
        });
        ASSERT_FALSE(told);
        EXPECT_EQ(told.error().code, Code::io_failed);
    }
}

/// However little is in use: what is large would wait for ever where the ring is small.
TEST(JournaledDisk, MakesRoomForWhatDoesNotFit) {
    CrashDisk disk(disk_size, 1);
    disk.answers_at_once = true;
    JournaledDisk journaled(disk, the_part(), small_options(true));
    ASSERT_TRUE(told_at_once([&](Told told) { journaled.format(std::move(told)); }));
    constexpr wire::TransactionNumber first{1}, second{2};
    constexpr std::uint32_t large = 30 * wire::journal_block;
    auto octets = content_of(1, 0);
    JournaledDisk::Preparation preparation;
    preparation.record.transaction = first;
    constexpr unsigned some = 16;
    for (unsigned i = 0; i < some; ++i) {
        preparation.extents.push_back({.home = home_of(i), .length = 4096});
        preparation.blocks.emplace_back(octets);
    }
    ASSERT_TRUE(journaled.keep_room(first, some * wire::journal_block));
    ASSERT_TRUE(told_at_once(
        [&](Told told) { journaled.prepare(std::move(preparation), std::move(told)); }));
    ASSERT_TRUE(told_at_once([&](Told told) { journaled.commit(first, {}, std::move(told)); }));
    EXPECT_FALSE(journaled.keep_room(second, large)) << "others may not have ended it";
    EXPECT_LT(journaled.journal().used(), journaled.journal().length() / 2);
    journaled.settle(second);
    EXPECT_FALSE(journaled.keep_room(second, large)) << "room is made, and was not there yet";
    EXPECT_TRUE(journaled.keep_room(second, large));
}

}  // namespace
}  // namespace weft::raid
