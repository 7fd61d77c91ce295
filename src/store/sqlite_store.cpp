// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite_store.hpp"

#include <fcntl.h>
#include <sqlite3.h>

#include <algorithm>
#include <limits>

#include "base/check.hpp"
#include "linux/descriptor.hpp"

namespace weft::store {
namespace {

/// "WeAr": by it SQLite's files tell whose they are.
constexpr int application = 0x57654172;
constexpr int schema_version = 2;
constexpr int version_without_lease = 1;
constexpr int busy_ms = 5000;

constexpr const char* make_tables[] = {
    "CREATE TABLE records (name TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE office (one INTEGER PRIMARY KEY CHECK (one = 1), epoch INTEGER, "
    "renewals INTEGER NOT NULL DEFAULT 0, lease_ms INTEGER NOT NULL DEFAULT 0, "
    "holder TEXT NOT NULL DEFAULT '')",
    "INSERT INTO office (one, epoch) VALUES (1, 0)",
    "PRAGMA user_version=2",
    "PRAGMA application_id=0x57654172",
};
constexpr const char* add_lease[] = {
    "ALTER TABLE office ADD COLUMN renewals INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE office ADD COLUMN lease_ms INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE office ADD COLUMN holder TEXT NOT NULL DEFAULT ''",
    "PRAGMA user_version=2",
};

Error error_of(int code) {
    // Not as a detail: that would be read as a number of Linux's.
    const auto said = static_cast<std::uint32_t>(code);
    switch (code & 0xff) {
        case SQLITE_NOTADB:
        case SQLITE_CORRUPT:
            return {.code = Code::malformed, .where = said};
        case SQLITE_FULL:
        case SQLITE_BUSY:
            return {.code = Code::exhausted, .where = said};
        default:  // never access_denied: that is for who has lost office
            return {.code = Code::io_failed, .where = said};
    }
}

/// SQLite would make the file so that everybody may read it, and it says all there is to know of an
/// array. Its log takes over the file's mode. What cannot be made here, SQLite finds out about.
void make_private(const std::string& path) {
    const linux::Descriptor made(
        ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
}

/// A statement from its text to its end.
class Statement {
public:
    Statement(sqlite3* file, const char* text) {
        fault_ = sqlite3_prepare_v2(file, text, -1, &statement_, nullptr);
    }
    Statement(const Statement&) = delete;
    Statement& operator=(const Statement&) = delete;
    ~Statement() { sqlite3_finalize(statement_); }

    Statement& bind(int place, std::int64_t number) {
        return keep(sqlite3_bind_int64(statement_, place, number));
    }
    /// What is bound must live until the statement has been run.
    Statement& bind(int place, const std::string& text) {
        return keep(sqlite3_bind_text(statement_, place, text.data(), static_cast<int>(text.size()),
                                      SQLITE_STATIC));
    }
    Statement& bind(int place, const std::vector<std::byte>& octets) {
        static constexpr std::byte none{};  // a null pointer would bind NULL, not an empty record
        const auto* from = octets.empty() ? &none : octets.data();
        return keep(sqlite3_bind_blob64(statement_, place, from, octets.size(), SQLITE_STATIC));
    }
    /// True: there is a row. False: there is no further one.
    Result<bool> step() {
        if (fault_ != SQLITE_OK) return error_of(fault_);
        const int said = sqlite3_step(statement_);
        if (said == SQLITE_ROW) return true;
        if (said == SQLITE_DONE) return false;
        return error_of(said);
    }
    Result<void> run() {
        WEFT_TRY([[maybe_unused]] bool row, step());
        return {};
    }
    std::int64_t number(int column) { return sqlite3_column_int64(statement_, column); }
    std::string text(int column) {
        const auto* from = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
        const auto size = sqlite3_column_bytes(statement_, column);
        return from == nullptr ? std::string() : std::string(from, static_cast<std::size_t>(size));
    }
    std::vector<std::byte> octets(int column) {
        const auto* from = static_cast<const std::byte*>(sqlite3_column_blob(statement_, column));
        const auto size = sqlite3_column_bytes(statement_, column);
        return from == nullptr ? std::vector<std::byte>() : std::vector(from, from + size);
    }

private:
    Statement& keep(int fault) {
        if (fault_ == SQLITE_OK) fault_ = fault;
        return *this;
    }

    sqlite3_stmt* statement_ = nullptr;
    int fault_ = SQLITE_OK;
};

}  // namespace

class SqliteStore::Database {
public:
    explicit Database(sqlite3* file) : file_(file) {}
    ~Database() { sqlite3_close(file_); }

    Result<void> run(const char* text) { return Statement(file_, text).run(); }

    Result<std::int64_t> ask(const char* text) {
        Statement statement(file_, text);
        WEFT_TRY(bool row, statement.step());
        return row ? statement.number(0) : std::int64_t{0};
    }

    Result<void> prepare() {
        sqlite3_busy_timeout(file_, busy_ms);
        // Somebody else may be making the same file at this moment: what it is, is asked alone.
        if (auto whose = in_one(&Database::make_or_know); !whose) return whose;
        // The mode is answered with a row, which is of no interest: where a file system cannot have
        // a write-ahead log, the older journal is as safe. Whoever is at it at the same moment is
        // told that the file is busy, without having waited: one of them has changed it then.
        const auto mode = ask("PRAGMA journal_mode=WAL");
        if (!mode && mode.error().code != Code::exhausted) return mode.error();
        // Every commit ends in the file itself: people copy that one, and leave behind the log of a
        // controller that was killed. Answered with a row, as the mode is.
        WEFT_TRY([[maybe_unused]] auto pages, ask("PRAGMA wal_autocheckpoint=1"));
        return run("PRAGMA synchronous=FULL");
    }

    Result<raid::MetadataOffice> office() {
        Statement statement(file_, "SELECT epoch, renewals, lease_ms, holder FROM office");
        WEFT_TRY(bool row, statement.step());
        if (!row) return Error{.code = Code::malformed};
        return raid::MetadataOffice{
            .epoch = wire::Epoch{static_cast<std::uint64_t>(statement.number(0))},
            .renewals = static_cast<std::uint64_t>(statement.number(1)),
            .lease = std::chrono::milliseconds(statement.number(2)),
            .holder = statement.text(3)};
    }

    Result<void> elect(raid::MetadataElection& election, wire::Epoch own) {
        return in_one([&](Database& self) -> Result<void> {
            WEFT_TRY(auto now, self.office());
            WEFT_TRY(auto won, raid::office_after(now, election, own));
            election.epoch = won.epoch;
            return self.set(won);
        });
    }

    Result<void> renew(const raid::MetadataRenewal& renewal) {
        return in_one([&](Database& self) -> Result<void> {
            WEFT_TRY(auto now, self.office());
            if (now.epoch != renewal.epoch) return Error{.code = Code::access_denied};
            ++now.renewals;
            if (renewal.releases) now.lease = {};
            return self.set(now);
        });
    }

    Result<void> read(raid::MetadataReading& reading) {
        reading.records.clear();
        Statement statement(file_, "SELECT name, body FROM records ORDER BY name");
        for (;;) {
            WEFT_TRY(bool row, statement.step());
            if (!row) return {};
            reading.records.emplace_back(statement.text(0), statement.octets(1));
        }
    }

    Result<void> commit(const raid::MetadataCommit& commit) {
        return in_one([&](Database& self) -> Result<void> {
            WEFT_TRY(auto now, self.office());
            if (commit.epoch != now.epoch) return Error{.code = Code::access_denied};
            for (const auto& change : commit.changes)
                if (auto made = self.make(change); !made) return made;
            return {};
        });
    }

private:
    Result<void> make_or_know() {
        WEFT_TRY(auto tables, ask("SELECT count(*) FROM sqlite_master"));
        WEFT_TRY(auto owner, ask("PRAGMA application_id"));
        WEFT_TRY(auto version, ask("PRAGMA user_version"));
        if (owner != application && (owner != 0 || tables != 0))
            return Error{.code = Code::malformed};
        if (owner != application) return run_all(make_tables);
        if (version == version_without_lease) return run_all(add_lease);
        if (version != schema_version) return Error{.code = Code::unsupported};
        return {};
    }

    Result<void> run_all(std::span<const char* const> texts) {
        for (const char* text : texts)
            if (auto made = run(text); !made) return made;
        return {};
    }

    Result<void> set(const raid::MetadataOffice& office) {
        return Statement(file_,
                         "UPDATE office SET epoch = ?1, renewals = ?2, lease_ms = ?3, holder = ?4")
            .bind(1, static_cast<std::int64_t>(office.epoch))
            .bind(2, static_cast<std::int64_t>(office.renewals))
            .bind(3, std::int64_t{office.lease.count()})
            .bind(4, office.holder)
            .run();
    }

    Result<void> make(const raid::MetadataChange& change) {
        if (!change.record)
            return Statement(file_, "DELETE FROM records WHERE name = ?1")
                .bind(1, change.name)
                .run();
        return Statement(file_, "INSERT OR REPLACE INTO records VALUES (?1, ?2)")
            .bind(1, change.name)
            .bind(2, *change.record)
            .run();
    }

    /// All of it or nothing.
    template <class Work>
    Result<void> in_one(Work&& work) {
        if (auto begun = run("BEGIN IMMEDIATE"); !begun) return begun;
        auto done = std::invoke(work, *this);
        if (done) done = run("COMMIT");
        if (!done) (void)run("ROLLBACK");
        return done;
    }

    sqlite3* file_;
};

Result<std::unique_ptr<SqliteStore>> SqliteStore::open(LinuxWorld& world, const std::string& path) {
    make_private(path);
    sqlite3* file = nullptr;
    const int said =
        sqlite3_open_v2(path.c_str(), &file,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
    auto database = std::make_unique<Database>(file);
    if (said != SQLITE_OK) return error_of(said);
    if (auto prepared = database->prepare(); !prepared) return prepared.error();
    return std::unique_ptr<SqliteStore>(new SqliteStore(world, std::move(database)));
}

SqliteStore::SqliteStore(LinuxWorld& world, std::unique_ptr<Database> database)
    : world_(world), database_(std::move(database)) {}

SqliteStore::~SqliteStore() {
    WEFT_CHECK(waiting_.empty());
}

void SqliteStore::look(raid::MetadataLook& look) {
    add({.work = [&](Database& database) -> Result<void> {
             WEFT_TRY(look.office, database.office());
             return {};
         },
         .told = [&](Result<void> outcome) { look.completed(outcome); }});
}

void SqliteStore::elect(raid::MetadataElection& election) {
    add({.work = [&election,
                  own = own_](Database& database) { return database.elect(election, own); },
         .told =
             [this, &election](Result<void> outcome) {
                 if (outcome) own_ = election.epoch;
                 election.completed(outcome);
             }});
}

void SqliteStore::renew(raid::MetadataRenewal& renewal) {
    add({.work = [&](Database& database) { return database.renew(renewal); },
         .told = [&](Result<void> outcome) { renewal.completed(outcome); },
         .first = !renewal.releases});
}

void SqliteStore::read(raid::MetadataReading& reading) {
    add({.work = [&](Database& database) { return database.read(reading); },
         .told = [&](Result<void> outcome) { reading.completed(outcome); }});
}

void SqliteStore::commit(raid::MetadataCommit& commit) {
    add({.work = [&](Database& database) { return database.commit(commit); },
         .told = [&](Result<void> outcome) { commit.completed(outcome); }});
}

void SqliteStore::add(Request request) {
    if (waiting_.size() >= requests_max) {
        world_.defer([told = std::move(request.told)] { told(Error{.code = Code::exhausted}); });
        return;
    }
    // The first is under way already. A release ends what was asked for before it.
    if (request.first && !waiting_.empty())
        waiting_.insert(std::next(waiting_.begin()), std::move(request));
    else
        waiting_.push_back(std::move(request));
    if (waiting_.size() == 1) begin();
}

void SqliteStore::begin() {
    auto& request = waiting_.front();
    world_.call_on_thread([this, &request] { request.outcome = request.work(*database_); },
                          [this] {
                              const auto over = std::move(waiting_.front());
                              waiting_.pop_front();
                              if (!waiting_.empty()) begin();
                              over.told(over.outcome);
                          });
}

}  // namespace weft::store
