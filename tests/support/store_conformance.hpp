// SPDX-License-Identifier: Apache-2.0
// What every store of a controller must do, whichever it is. A Bench makes stores that have their
// records in common, as two controllers would have them, and runs its world until something is so.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "raid/metadata_store.hpp"

namespace weft::test {

struct StoreLook final : raid::MetadataLook {
    std::optional<Result<void>> outcome;
    void completed(Result<void> said) override { outcome = said; }
};
struct StoreElection final : raid::MetadataElection {
    std::optional<Result<void>> outcome;
    void completed(Result<void> said) override { outcome = said; }
};
struct StoreRenewal final : raid::MetadataRenewal {
    std::optional<Result<void>> outcome;
    void completed(Result<void> said) override { outcome = said; }
};
struct StoreReading final : raid::MetadataReading {
    std::optional<Result<void>> outcome;
    void completed(Result<void> said) override { outcome = said; }
};
struct StoreCommit final : raid::MetadataCommit {
    std::optional<Result<void>> outcome;
    void completed(Result<void> said) override { outcome = said; }
};

inline std::vector<std::byte> store_octets(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

using StoreRecords = std::vector<std::pair<std::string, std::vector<std::byte>>>;

template <class Bench>
class StoreConformance : public testing::Test {
protected:
    static constexpr std::chrono::milliseconds lease{5000};

    void SetUp() override {
        if (!bench.trouble().empty()) GTEST_SKIP() << bench.trouble();
        one = bench.make();
        other = bench.make();
    }

    Result<void> wait(auto& asked) {
        EXPECT_TRUE(bench.run_until([&] { return asked.outcome.has_value(); }));
        return asked.outcome.value_or(Error{.code = Code::timed_out});
    }
    raid::MetadataOffice look(raid::MetadataStore& store) {
        StoreLook asked;
        store.look(asked);
        EXPECT_TRUE(wait(asked));
        return asked.office;
    }
    Result<wire::Epoch> elect(raid::MetadataStore& store,
                              std::optional<raid::MetadataOffice> seen = std::nullopt,
                              wire::Epoch beyond = {}) {
        StoreElection asked;
        asked.lease = lease;
        asked.holder = "at home";
        asked.seen = std::move(seen);
        asked.beyond = beyond;
        store.elect(asked);
        if (auto won = wait(asked); !won) return won.error();
        return asked.epoch;
    }
    Result<void> renew(raid::MetadataStore& store, wire::Epoch epoch, bool releases = false) {
        StoreRenewal asked;
        asked.epoch = epoch;
        asked.releases = releases;
        store.renew(asked);
        return wait(asked);
    }
    Result<void> commit(raid::MetadataStore& store, wire::Epoch epoch,
                        std::vector<raid::MetadataChange> changes) {
        StoreCommit asked;
        asked.epoch = epoch;
        asked.changes = std::move(changes);
        store.commit(asked);
        return wait(asked);
    }
    StoreRecords read(raid::MetadataStore& store) {
        StoreReading asked;
        store.read(asked);
        EXPECT_TRUE(wait(asked));
        return asked.records;
    }
    static bool is_denied(const auto& outcome) {
        return !outcome && outcome.error().code == Code::access_denied;
    }

    Bench bench;
    std::unique_ptr<raid::MetadataStore> one, other;
};

TYPED_TEST_SUITE_P(StoreConformance);

TYPED_TEST_P(StoreConformance, IsEmptyAndFreeAtFirst) {
    EXPECT_TRUE(this->read(*this->one).empty());
    EXPECT_TRUE(this->look(*this->one).is_free());
    EXPECT_EQ(this->look(*this->one).epoch, wire::Epoch{});
}

TYPED_TEST_P(StoreConformance, KeepsWhatWasChangedInNamesOrder) {
    auto epoch = this->elect(*this->one);
    ASSERT_TRUE(epoch);
    const std::string large(70'000, 'x');
    ASSERT_TRUE(this->commit(*this->one, *epoch,
                             {{"volumes/b", store_octets("two")},
                              {"boxes/a", store_octets("")},
                              {"boxes/b", store_octets(large)},
                              {"volumes/a", store_octets(std::string_view("o\0e\xff", 4))}}));
    ASSERT_TRUE(this->commit(*this->one, *epoch,
                             {{"volumes/b", store_octets("three")},
                              {"boxes/a", std::nullopt},
                              {"boxes/nobody", std::nullopt}}));
    EXPECT_EQ(this->read(*this->other),
              (StoreRecords{{"boxes/b", store_octets(large)},
                            {"volumes/a", store_octets(std::string_view("o\0e\xff", 4))},
                            {"volumes/b", store_octets("three")}}));
}

TYPED_TEST_P(StoreConformance, TakesTheLastWordOnANameOfOneChange) {
    auto epoch = this->elect(*this->one);
    ASSERT_TRUE(epoch);
    ASSERT_TRUE(this->commit(*this->one, *epoch,
                             {{"boxes/a", store_octets("first")},
                              {"boxes/a", std::nullopt},
                              {"boxes/b", std::nullopt},
                              {"boxes/b", store_octets("last")}}));
    EXPECT_EQ(this->read(*this->one), (StoreRecords{{"boxes/b", store_octets("last")}}));
}

TYPED_TEST_P(StoreConformance, LeavesAnOfficeThatIsHeldToItsHolder) {
    auto epoch = this->elect(*this->one);
    ASSERT_TRUE(epoch);
    EXPECT_TRUE(this->is_denied(this->elect(*this->other)));
    const auto office = this->look(*this->other);
    EXPECT_EQ(office.epoch, *epoch);
    EXPECT_EQ(office.lease, this->lease);
    EXPECT_EQ(office.holder, "at home");
    EXPECT_TRUE(this->commit(*this->one, *epoch, {{"cluster", store_octets("ours")}}));
}

TYPED_TEST_P(StoreConformance, GivesAnOfficeThatStandsStillToWhoSawIt) {
    auto epoch = this->elect(*this->one);
    ASSERT_TRUE(epoch);
    const auto before = this->look(*this->other);
    ASSERT_TRUE(this->renew(*this->one, *epoch));
    const auto after = this->look(*this->other);
    EXPECT_FALSE(after.is_unchanged_since(before)) << "it was renewed";
    EXPECT_TRUE(this->is_denied(this->elect(*this->other, before)));
    auto taken = this->elect(*this->other, after);
    ASSERT_TRUE(taken);
    EXPECT_GT(*taken, *epoch);
}

TYPED_TEST_P(StoreConformance, ObeysOnlyWhoWonOfficeLast) {
    auto epoch = this->elect(*this->one);
    ASSERT_TRUE(epoch);
    ASSERT_TRUE(this->commit(*this->one, *epoch, {{"cluster", store_octets("yesterday")}}));
    auto taken = this->elect(*this->other, this->look(*this->other));
    ASSERT_TRUE(taken);
    EXPECT_TRUE(this->is_denied(
        this->commit(*this->one, *epoch,
                     {{"cluster", store_octets("late")}, {"boxes/a", store_octets("late")}})));
    EXPECT_TRUE(this->is_denied(this->renew(*this->one, *epoch)));
    EXPECT_TRUE(this->is_denied(this->renew(*this->one, *epoch, true)));
    EXPECT_FALSE(this->look(*this->one).is_free()) << "it was not his to give back";
    EXPECT_EQ(this->read(*this->one), (StoreRecords{{"cluster", store_octets("yesterday")}}));
    EXPECT_TRUE(this->commit(*this->other, *taken, {{"cluster", store_octets("today")}}));
    EXPECT_TRUE(this->renew(*this->other, *taken));
}

TYPED_TEST_P(StoreConformance, GivesAnOfficeThatWasGivenBackToTheNext) {
    auto epoch = this->elect(*this->one);
    ASSERT_TRUE(epoch);
    ASSERT_TRUE(this->renew(*this->one, *epoch, true));
    EXPECT_TRUE(this->look(*this->other).is_free());
    auto next = this->elect(*this->other);
    ASSERT_TRUE(next);
    EXPECT_GT(*next, *epoch);
    EXPECT_TRUE(this->is_denied(this->elect(*this->one)));
}

TYPED_TEST_P(StoreConformance, GivesItsHolderAnEpochBeyondTheOneHeHasHeardOf) {
    auto epoch = this->elect(*this->one);
    ASSERT_TRUE(epoch);
    auto higher = this->elect(*this->one, std::nullopt, wire::Epoch{500});
    ASSERT_TRUE(higher);
    EXPECT_EQ(*higher, wire::Epoch{501});
    EXPECT_TRUE(this->is_denied(this->commit(*this->one, *epoch, {{"a", store_octets("")}})));
    EXPECT_TRUE(this->commit(*this->one, *higher, {{"a", store_octets("")}}));
    EXPECT_FALSE(this->elect(*this->one, std::nullopt, wire::Epoch{~std::uint64_t{0}}));
    EXPECT_TRUE(this->renew(*this->one, *higher)) << "what was refused changed nothing";
}

REGISTER_TYPED_TEST_SUITE_P(StoreConformance, IsEmptyAndFreeAtFirst,
                            KeepsWhatWasChangedInNamesOrder, TakesTheLastWordOnANameOfOneChange,
                            LeavesAnOfficeThatIsHeldToItsHolder,
                            GivesAnOfficeThatStandsStillToWhoSawIt, ObeysOnlyWhoWonOfficeLast,
                            GivesAnOfficeThatWasGivenBackToTheNext,
                            GivesItsHolderAnEpochBeyondTheOneHeHasHeardOf);

}  // namespace weft::test
