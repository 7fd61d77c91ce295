// SPDX-License-Identifier: Apache-2.0
// The checker on stories told by hand, then on the simulated disk: an honest one passes for every
// seed, and one that lies about flushing is caught.
#include "sim/durability_checker.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <list>
#include <memory>

#include "sim/disk_spec.hpp"
#include "sim/world.hpp"
#include "support/seeds.hpp"
#include "support/test_request.hpp"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;
using test::for_each_seed;
using test::TestRequest;
using Lasting = DurabilityChecker::Lasting;

constexpr std::uint64_t plenty = 1'000'000;  // events
const Result<void> ok;
const Result<void> failed = Error{.code = Code::io_failed};

/// Sector 0 of a device, as told to the checker.
struct Story {
    DurabilityChecker checker;

    static std::vector<std::byte> sector(int fill) {
        return std::vector<std::byte>(sector_bytes, static_cast<std::byte>(fill));
    }
    void write(int fill, Lasting lasting, const Result<void>& outcome) {
        checker.write_asked(0, sector(fill));
        checker.write_answered(0, sector_bytes, lasting, outcome);
    }
    void flush() { checker.flush_answered(checker.flush_asked(), ok); }
    bool may_read(int fill) {
        DurabilityChecker before = checker;
        checker.read_asked(0, sector_bytes);
        bool good = !checker.read_answered(0, sector(fill), ok);
        checker = before;  // only a question: it must not narrow what may come
        return good;
    }
    void reads(int fill) {
        checker.read_asked(0, sector_bytes);
        EXPECT_FALSE(checker.read_answered(0, sector(fill), ok));
    }
    std::string may_read_of(std::string_view digits) {
        std::string may;
        for (char digit : digits)
            if (may_read(digit - '0')) may += digit;
        return may;
    }
};

TEST(DurabilityChecker, WantsTheLastWriteBack) {
    Story story;
    EXPECT_EQ(story.may_read_of("012"), "0");
    story.write(1, Lasting::until_crash, ok);
    story.write(2, Lasting::until_crash, ok);
    EXPECT_EQ(story.may_read_of("012"), "2");
}

TEST(DurabilityChecker, AllowsWhatWasNotFlushedToBeLostInACrash) {
    Story story;
    story.write(1, Lasting::until_crash, ok);
    story.flush();
    story.write(2, Lasting::until_crash, ok);
    story.write(3, Lasting::until_crash, ok);
    story.checker.crashed();
    EXPECT_EQ(story.may_read_of("0123"), "123");
    story.reads(2);
    EXPECT_EQ(story.may_read_of("0123"), "2") << "seen once, it stays";
    story.checker.crashed();
    EXPECT_EQ(story.may_read_of("0123"), "2") << "and it was on stable storage";
}

TEST(DurabilityChecker, WantsADurableWriteBackAfterACrash) {
    Story story;
    story.write(1, Lasting::until_crash, ok);
    story.write(2, Lasting::durable, ok);
    story.checker.crashed();
    EXPECT_EQ(story.may_read_of("012"), "2");
}

TEST(DurabilityChecker, DoesNotCountWritesAnsweredAfterTheFlushWasAsked) {
    Story story;
    story.write(1, Lasting::until_crash, ok);
    auto asked = story.checker.flush_asked();
    story.write(2, Lasting::until_crash, ok);
    story.checker.flush_answered(asked, ok);
    story.checker.crashed();
    EXPECT_EQ(story.may_read_of("012"), "12");
}

TEST(DurabilityChecker, ExpectsNothingOfAFlushThatFailed) {
    Story story;
    story.write(1, Lasting::until_crash, ok);
    story.checker.flush_answered(story.checker.flush_asked(), failed);
    story.checker.crashed();
    EXPECT_EQ(story.may_read_of("01"), "01");
}

TEST(DurabilityChecker, AllowsAFailedWriteToHaveHappenedOrNot) {
    Story story;
    story.write(1, Lasting::durable, ok);
    story.write(2, Lasting::durable, failed);
    EXPECT_EQ(story.may_read_of("012"), "12");
    story.reads(1);
    EXPECT_EQ(story.may_read_of("012"), "1") << "seen once, it stays";
}

TEST(DurabilityChecker, AllowsAWriteInFlightAtACrashToHaveHappenedOrNot) {
    Story story;
    story.checker.write_asked(0, Story::sector(1));
    EXPECT_TRUE(story.checker.is_busy(0, 1));
    EXPECT_FALSE(story.checker.is_busy(sector_bytes, sector_bytes));
    story.checker.crashed();
    EXPECT_FALSE(story.checker.is_busy(0, 1));
    EXPECT_EQ(story.may_read_of("01"), "01");
}

TEST(DurabilityChecker, AllowsTrimmedBytesToStay) {
    Story story;
    story.write(1, Lasting::durable, ok);
    story.write(2, Lasting::durable, ok);
    story.checker.trim_asked(0, sector_bytes);
    story.checker.write_answered(0, sector_bytes, Lasting::until_crash, ok);
    EXPECT_EQ(story.may_read_of("012"), "02");
}

/// Random requests, several at a time, against one disk; sometimes the power is cut.
class Workload {
public:
    Workload(std::uint64_t seed, DiskSpec spec) : world_(seed) {
        spec.size = sector_count * sector_bytes;
        disk_ = &world_.make_disk("disk", spec);
        device_ = std::move(*world_.open_disk({.path = "disk"}));
    }

    /// What the checker said first, if anything.
    std::optional<std::string> run(int crashes) {
        for (int crash = 0; crash < crashes; ++crash) {
            auto requests = world_.chance().between(5, 40);
            for (std::uint64_t i = 0; i < requests; ++i) {
                submit_one();
                world_.run_for(world_.chance().between(0us, 1ms));
            }
            cut_power();
            read_everything();
        }
        return wrong_;
    }
    Disk& disk() { return *disk_; }
    std::uint64_t trace_hash() const { return world_.trace_hash(); }
    void read_everything() {
        for (std::uint64_t sector = 0; sector < sector_count; ++sector) {
            submit(BlockOperation::read, sector * sector_bytes, sector_bytes);
            EXPECT_TRUE(world_.run_until_quiet(plenty));
        }
    }
    const std::optional<std::string>& wrong() const { return wrong_; }

private:
    static constexpr std::uint64_t sector_count = 24;
    struct Asked {
        Asked(BlockOperation operation, std::uint64_t offset, std::uint64_t length)
            : request(operation, offset, length) {}
        TestRequest request;
        std::uint64_t flush_mark = 0;
    };

    void submit_one() {
        constexpr std::array operations{BlockOperation::read,         BlockOperation::write,
                                        BlockOperation::write,        BlockOperation::write,
                                        BlockOperation::write_zeroes, BlockOperation::trim,
                                        BlockOperation::flush};
        auto operation = operations[world_.chance().below(operations.size())];
        auto first = world_.chance().below(sector_count);
        auto count = world_.chance().between(1, std::min<std::uint64_t>(8, sector_count - first));
        submit(operation, first * sector_bytes, count * sector_bytes);
    }

    void submit(BlockOperation operation, std::uint64_t offset, std::uint64_t length) {
        asked_.remove_if([](const Asked& old) { return old.request.outcome.has_value(); });
        bool is_flush = operation == BlockOperation::flush;
        if (!is_flush && checker_.is_busy(offset, length)) return;
        auto asked = asked_.emplace(asked_.end(), operation, offset, is_flush ? 0 : length);
        auto& request = asked->request;
        request.durable = !is_flush && world_.chance().chance(20);
        for (std::byte& octet : request.octets) octet = static_cast<std::byte>(world_.random());
        tell_asked(*asked);
        request.then = [this, asked] { tell_answered(*asked); };
        device_->submit(request);
    }

    void tell_asked(Asked& asked) {
        auto& request = asked.request;
        switch (request.operation) {
            case BlockOperation::read:
                return checker_.read_asked(request.offset, request.length);
            case BlockOperation::write:
                return checker_.write_asked(request.offset, request.octets);
            case BlockOperation::write_zeroes:
                return checker_.zeroes_asked(request.offset, request.length);
            case BlockOperation::trim:
                return checker_.trim_asked(request.offset, request.length);
            default:
                asked.flush_mark = checker_.flush_asked();
        }
    }

    void tell_answered(Asked& asked) {
        auto& request = asked.request;
        if (request.operation == BlockOperation::flush)
            return checker_.flush_answered(asked.flush_mark, *request.outcome);
        if (request.operation == BlockOperation::read) {
            auto wrong = checker_.read_answered(request.offset, request.octets, *request.outcome);
            if (wrong && !wrong_) wrong_ = wrong;
            return;
        }
        checker_.write_answered(request.offset, request.length,
                                request.durable ? Lasting::durable : Lasting::until_crash,
                                *request.outcome);
    }

    void cut_power() {
        world_.host("local").power_cut();
        world_.host("local").power_on();
        checker_.crashed();
        device_.reset();
        asked_.clear();
        device_ = std::move(*world_.open_disk({.path = "disk"}));
    }

    World world_;
    Disk* disk_;
    std::unique_ptr<BlockDevice> device_;
    DurabilityChecker checker_;
    std::list<Asked> asked_;
    std::optional<std::string> wrong_;
};

TEST(DurabilityChecker, FindsNothingWrongWithAnHonestDisk) {
    for_each_seed(300, [](std::uint64_t seed) {
        Workload workload(seed, {.queue_depth = 4, .cache_sectors = 40});
        auto wrong = workload.run(4);
        EXPECT_FALSE(wrong) << *wrong;
    });
}

TEST(DurabilityChecker, FindsNothingWrongWithAnHonestDiskThatReportsItsErrors) {
    for_each_seed(300, [](std::uint64_t seed) {
        Workload workload(seed, {.read_error_percent = 10, .write_error_percent = 10});
        auto wrong = workload.run(4);
        EXPECT_FALSE(wrong) << *wrong;
    });
}

TEST(DurabilityChecker, CatchesADiskThatLiesAboutFlushing) {
    int caught = 0;
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        Workload workload(seed, {.flush_honesty = FlushHonesty::lies});
        caught += workload.run(4).has_value();
    }
    EXPECT_GT(caught, 25) << "of 50";
}

TEST(DurabilityChecker, CatchesBitRot) {
    for_each_seed(20, [](std::uint64_t seed) {
        Workload workload(seed, {});
        ASSERT_FALSE(workload.run(1));
        workload.disk().rot(seed * 100, 3);
        workload.read_everything();
        EXPECT_TRUE(workload.wrong());
    });
}

TEST(Disk, RunsTheSameForTheSameSeedAndDifferentlyForAnother) {
    auto hash = [](std::uint64_t seed) {
        Workload workload(seed, {.read_error_percent = 5, .write_error_percent = 5});
        workload.run(3);
        return workload.trace_hash();
    };
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        EXPECT_EQ(hash(seed), hash(seed)) << seed;
        EXPECT_NE(hash(seed), hash(seed + 1)) << seed;
    }
}

}  // namespace
}  // namespace weft::sim
