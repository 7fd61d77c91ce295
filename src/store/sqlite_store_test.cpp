// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite_store.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "support/store_conformance.hpp"

namespace weft::store {
namespace {

using raid::MetadataChange;
using test::store_octets;
using Commit = test::StoreCommit;
using Reading = test::StoreReading;
using Election = test::StoreElection;

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
                           {{"volumes/b", store_octets("two")},
                            {"boxes/a", store_octets("")},
                            {"volumes/a", store_octets(std::string_view("o\0e", 3))}}));
        ASSERT_TRUE(commit(*store, epoch,
                           {{"volumes/b", store_octets("three")},
                            {"boxes/a", std::nullopt},
                            {"boxes/nobody", std::nullopt}}));
    }
    auto store = open();
    EXPECT_EQ(read(*store), (Records{{"volumes/a", store_octets(std::string_view("o\0e", 3))},
                                     {"volumes/b", store_octets("three")}}));
    EXPECT_GT(elect(*store), epoch);
}

TEST_F(SqliteStoreTest, ObeysOnlyWhoWonOfficeLast) {
    auto store = open();
    auto old_epoch = elect(*store);
    auto rival = open();
    auto new_epoch = elect(*rival);
    EXPECT_GT(new_epoch, old_epoch);
    auto late = commit(*store, old_epoch, {{"cluster", store_octets("yesterday")}});
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, Code::access_denied);
    auto early = commit(*store, wire::Epoch{static_cast<std::uint64_t>(new_epoch) + 1},
                        {{"cluster", store_octets("tomorrow")}});
    ASSERT_FALSE(early);
    EXPECT_TRUE(read(*store).empty()) << "nothing of a refused change is kept";
    EXPECT_TRUE(commit(*rival, new_epoch, {{"cluster", store_octets("today")}}));
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

TEST_F(SqliteStoreTest, MakesAFileThatOnlyItsOwnerCanRead) {
    const auto mask = ::umask(0);
    auto store = open();
    elect(*store);
    ::umask(mask);
    int files = 0;
    for (const auto& each : std::filesystem::directory_iterator(folder_)) {
        using std::filesystem::perms;
        EXPECT_EQ(each.status().permissions(), perms::owner_read | perms::owner_write)
            << each.path();
        ++files;
    }
    EXPECT_GT(files, 1) << "it has a log beside it";
}

TEST_F(SqliteStoreTest, LeavesAFileOfSomethingElseAsItIs) {
    std::ofstream(path()) << "a letter, and by no means a database; it is long enough to be one "
                             "page of it, though.";
    auto opened = SqliteStore::open(*world_, path());
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, Code::malformed);
    EXPECT_EQ(opened.error().detail, 0u) << "people would be told of Linux's error of that number";
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
        commits[i].changes = {{"cluster", store_octets(std::to_string(i))}};
        store->commit(commits[i]);
    }
    EXPECT_FALSE(store->quiet());
    world_->run_until([&] { return store->quiet(); });
    for (auto& each : commits) EXPECT_TRUE(each.outcome && *each.outcome);
    EXPECT_EQ(read(*store), (Records{{"cluster", store_octets("49")}}));
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
        bool kept = bool(commit(*store, epoch, {{"cluster", store_octets("ours")}}));
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
    EXPECT_EQ(read(*store), (Records{{"cluster", store_octets("ours")}}));
}

/// With a standby beside it, and while both still have the file open.
TEST_F(SqliteStoreTest, HasAllOfItInTheOneFileThatPeopleCopy) {
    auto store = open(), standby = open();
    const auto epoch = elect(*store);
    for (const auto* word : {"one", "two", "three"}) {
        ASSERT_TRUE(commit(*store, epoch, {{"cluster", store_octets(word)}}));
        const auto copy = folder_ + "/copy-" + word;
        std::filesystem::copy_file(path(), copy);
        auto copied = std::move(*SqliteStore::open(*world_, copy));
        EXPECT_EQ(read(*copied), (Records{{"cluster", store_octets(word)}}));
        EXPECT_GT(elect(*copied), epoch);
        EXPECT_EQ(read(*standby), (Records{{"cluster", store_octets(word)}}));
    }
}

/// What a controller before leases left behind.
TEST_F(SqliteStoreTest, TakesOverAFileOfBeforeThereWereLeases) {
    sqlite3* file = nullptr;
    ASSERT_EQ(sqlite3_open(path().c_str(), &file), SQLITE_OK);
    for (const char* text :
         {"CREATE TABLE records (name TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID",
          "CREATE TABLE office (one INTEGER PRIMARY KEY CHECK (one = 1), epoch INTEGER)",
          "INSERT INTO office VALUES (1, 41)", "INSERT INTO records VALUES ('cluster', x'6f6c64')",
          "PRAGMA user_version=1", "PRAGMA application_id=0x57654172"})
        ASSERT_EQ(sqlite3_exec(file, text, nullptr, nullptr, nullptr), SQLITE_OK) << text;
    sqlite3_close(file);
    auto store = open();
    EXPECT_EQ(read(*store), (Records{{"cluster", store_octets("old")}}));
    EXPECT_EQ(elect(*store), wire::Epoch{42});
}

/// Two processes that begin at the same moment, with no file there yet.
TEST_F(SqliteStoreTest, IsMadeByOneOfSeveralThatBeginTogether) {
    constexpr int processes = 4;
    for (int i = 0; i < processes; ++i)
        if (::fork() == 0) {
            auto world = std::move(*open_linux_world({.files = FileEngine::threads}));
            auto opened = SqliteStore::open(*world, path());
            ::_exit(opened ? 0 : 1);
        }
    for (int i = 0; i < processes; ++i) {
        int status = 0;
        ASSERT_GT(::wait(&status), 0);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    EXPECT_EQ(elect(*open()), wire::Epoch{1});
}

/// Somebody else's change takes its time: ours waits for it, and is not refused.
TEST_F(SqliteStoreTest, WaitsForAnotherProcessThatIsWriting) {
    auto store = open();
    const auto epoch = elect(*store);
    sqlite3* file = nullptr;
    ASSERT_EQ(sqlite3_open(path().c_str(), &file), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(file, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
    Commit late;
    late.epoch = epoch;
    late.changes = {{"cluster", store_octets("ours")}};
    store->commit(late);
    auto timer =
        world_->make_timer([&] { sqlite3_exec(file, "COMMIT", nullptr, nullptr, nullptr); });
    timer->set(world_->now() + std::chrono::milliseconds(200));
    EXPECT_TRUE(wait(late));
    sqlite3_close(file);
}

TEST_F(SqliteStoreTest, LetsARenewalGoBeforeWhatOnlyWaits) {
    auto store = open();
    const auto epoch = elect(*store);
    std::vector<Commit> commits(100);
    for (auto& each : commits) {
        each.epoch = epoch;
        each.changes = {{"cluster", store_octets("again")}};
        store->commit(each);
    }
    test::StoreRenewal renewal;
    renewal.epoch = epoch;
    store->renew(renewal);
    EXPECT_TRUE(wait(renewal));
    EXPECT_FALSE(commits.back().outcome);
    world_->run_until([&] { return store->quiet(); });
}

}  // namespace
}  // namespace weft::store

namespace weft::test {
namespace {

class SqliteBench {
public:
    SqliteBench() : world_(std::move(*open_linux_world({.files = FileEngine::threads}))) {
        std::string name = testing::TempDir() + "/weft-store-XXXXXX";
        folder_ = ::mkdtemp(name.data());
    }
    ~SqliteBench() { std::filesystem::remove_all(folder_); }

    std::string trouble() const { return {}; }
    std::unique_ptr<raid::MetadataStore> make() {
        return std::move(*store::SqliteStore::open(*world_, folder_ + "/state"));
    }
    bool run_until(const auto& done) {
        world_->run_until(done);
        return done();
    }

private:
    std::string folder_;
    std::unique_ptr<LinuxWorld> world_;
};
INSTANTIATE_TYPED_TEST_SUITE_P(Sqlite, StoreConformance, SqliteBench);

}  // namespace
}  // namespace weft::test
