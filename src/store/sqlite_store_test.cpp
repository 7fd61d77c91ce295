// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite_store.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace weft::store {
namespace {

using raid::MetadataChange;

std::vector<std::byte> octets(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

struct Commit final : raid::MetadataCommit {
    std::optional<Result<void>> outcome;
    void completed(Result<void> said) override { outcome = said; }
};
struct Reading final : raid::MetadataReading {
    std::optional<Result<void>> outcome;
    void completed(Result<void> said) override { outcome = said; }
};
struct Election final : raid::MetadataElection {
    std::optional<Result<void>> outcome;
    void completed(Result<void> said) override { outcome = said; }
};

class SqliteStoreTest : public testing::Test {
protected:
    SqliteStoreTest() {
        std::string name = testing::TempDir() + "/weft-store-XXXXXX";
        folder_ = ::mkdtemp(name.data());
        world_ = std::move(*open_linux_world({.files = FileEngine::threads}));
    }
    ~SqliteStoreTest() override { std::filesystem::remove_all(folder_); }

    std::string path() const { return folder_ + "/state"; }
    std::unique_ptr<SqliteStore> open() { return std::move(*SqliteStore::open(*world_, path())); }

    template <class Asked>
    Result<void> wait(Asked& asked) {
        world_->run_until([&] { return asked.outcome.has_value(); });
        return *asked.outcome;
    }
    wire::Epoch elect(SqliteStore& store) {
        Election election;
        store.elect(election);
        EXPECT_TRUE(wait(election));
        return election.epoch;
    }
    Result<void> commit(SqliteStore& store, wire::Epoch epoch, std::vector<MetadataChange> what) {
        Commit commit;
        commit.epoch = epoch;
        commit.changes = std::move(what);
        store.commit(commit);
        return wait(commit);
    }
    using Records = std::vector<std::pair<std::string, std::vector<std::byte>>>;
    Records read(SqliteStore& store) {
        Reading reading;
        store.read(reading);
        EXPECT_TRUE(wait(reading));
        return reading.records;
    }

    std::string folder_;
    std::unique_ptr<LinuxWorld> world_;
};

TEST_F(SqliteStoreTest, KeepsWhatWasChangedInNamesOrder) {
    wire::Epoch epoch{};
    {
        auto store = open();
        EXPECT_TRUE(read(*store).empty());
        epoch = elect(*store);
        ASSERT_TRUE(commit(*store, epoch,
                           {{"volumes/b", octets("two")},
                            {"boxes/a", octets("")},
                            {"volumes/a", octets(std::string_view("o\0e", 3))}}));
        ASSERT_TRUE(commit(*store, epoch,
                           {{"volumes/b", octets("three")},
                            {"boxes/a", std::nullopt},
                            {"boxes/nobody", std::nullopt}}));
    }
    auto store = open();
    EXPECT_EQ(read(*store), (Records{{"volumes/a", octets(std::string_view("o\0e", 3))},
                                     {"volumes/b", octets("three")}}));
    EXPECT_GT(elect(*store), epoch);
}

TEST_F(SqliteStoreTest, ObeysOnlyWhoWonOfficeLast) {
    auto store = open();
    auto old_epoch = elect(*store);
    auto rival = open();
    auto new_epoch = elect(*rival);
    EXPECT_GT(new_epoch, old_epoch);
    auto late = commit(*store, old_epoch, {{"cluster", octets("yesterday")}});
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, Code::access_denied);
    auto early = commit(*store, wire::Epoch{static_cast<std::uint64_t>(new_epoch) + 1},
                        {{"cluster", octets("tomorrow")}});
    ASSERT_FALSE(early);
    EXPECT_TRUE(read(*store).empty()) << "nothing of a refused change is kept";
    EXPECT_TRUE(commit(*rival, new_epoch, {{"cluster", octets("today")}}));
}

TEST_F(SqliteStoreTest, GivesAnEpochBeyondTheOneItIsToldOf) {
    auto store = open();
    Election late;
    late.beyond = wire::Epoch{500};
    store->elect(late);
    ASSERT_TRUE(wait(late));
    EXPECT_EQ(late.epoch, wire::Epoch{501});
    EXPECT_EQ(elect(*store), wire::Epoch{502});
    Election never;
    never.beyond = wire::Epoch{~std::uint64_t{0}};
    store->elect(never);
    EXPECT_FALSE(wait(never));
    EXPECT_EQ(elect(*store), wire::Epoch{503});
}

TEST_F(SqliteStoreTest, LeavesAFileOfSomethingElseAsItIs) {
    std::ofstream(path()) << "a letter, and by no means a database; it is long enough to be one "
                             "page of it, though.";
    auto opened = SqliteStore::open(*world_, path());
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, Code::malformed);
    std::string kept;
    std::getline(std::ifstream(path()), kept);
    EXPECT_TRUE(kept.starts_with("a letter"));
    EXPECT_FALSE(SqliteStore::open(*world_, folder_ + "/no/such/folder/state"));
}

TEST_F(SqliteStoreTest, TakesRequestsOneAfterAnother) {
    auto store = open();
    auto epoch = elect(*store);
    constexpr std::size_t count = 50;
    std::vector<Commit> commits(count);
    for (std::size_t i = 0; i < count; ++i) {
        commits[i].epoch = epoch;
        commits[i].changes = {{"cluster", octets(std::to_string(i))}};
        store->commit(commits[i]);
    }
    EXPECT_FALSE(store->quiet());
    world_->run_until([&] { return store->quiet(); });
    for (auto& each : commits) EXPECT_TRUE(each.outcome && *each.outcome);
    EXPECT_EQ(read(*store), (Records{{"cluster", octets("49")}}));
}

TEST_F(SqliteStoreTest, HasWhatItSaidIsKeptAfterItsProcessWasKilled) {
    int told[2];
    ASSERT_EQ(::pipe(told), 0);
    const auto child = ::fork();
    if (child == 0) {
        auto world = std::move(*open_linux_world({.files = FileEngine::threads}));
        world_.swap(world);
        auto store = open();
        auto epoch = elect(*store);
        bool kept = bool(commit(*store, epoch, {{"cluster", octets("ours")}}));
        char answer = kept ? 'y' : 'n';
        (void)!::write(told[1], &answer, 1);
        ::pause();
        ::_exit(0);
    }
    char answer = 0;
    ASSERT_EQ(::read(told[0], &answer, 1), 1);
    EXPECT_EQ(answer, 'y');
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::close(told[0]);
    ::close(told[1]);
    auto store = open();
    EXPECT_EQ(read(*store), (Records{{"cluster", octets("ours")}}));
}

}  // namespace
}  // namespace weft::store
