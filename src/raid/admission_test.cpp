// SPDX-License-Identifier: Apache-2.0
#include "raid/admission.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>

namespace weft::raid {
namespace {

using Kind = Admission::Kind;
using wire::HostSession;

constexpr std::uint64_t small = 4096, large = 1 << 20;
constexpr HostSession mine{1}, other{2};

/// Windows that are given back in the order they were taken.
struct Windows {
    explicit Windows(std::uint32_t count = 16, unsigned upkeep_percent = 20)
        : admission({.windows = count, .upkeep_percent = upkeep_percent}) {}

    Arrival add(Kind kind, HostSession session = mine, std::uint64_t octets = small) {
        const Arrival arrival = ++arrivals;
        about[arrival] = {kind, octets, session};
        admission.add(arrival, kind, session);
        return arrival;
    }
    /// Starts what may; returns what was.
    std::vector<Arrival> start() {
        std::vector<Arrival> all;
        while (auto next = admission.next()) {
            admission.started(*next, about[*next].octets, 1);
            under_way.push_back(*next);
            all.push_back(*next);
        }
        return all;
    }
    void end_one() {
        admission.ended(about[under_way.front()].kind);
        under_way.pop_front();
    }

    struct About {
        Kind kind{};
        std::uint64_t octets = 0;
        HostSession session{};
    };
    Admission admission;
    std::map<Arrival, About> about;
    std::deque<Arrival> under_way;
    Arrival arrivals = 0;
};

TEST(Admission, StartsTheOldestOfASessionFirst) {
    Windows windows(2);
    for (int i = 0; i < 2; ++i) windows.add(Kind::read), windows.add(Kind::write);
    EXPECT_EQ(windows.start(), (std::vector<Arrival>{1, 2}));
    windows.end_one();
    EXPECT_EQ(windows.start(), (std::vector<Arrival>{3}));
}

TEST(Admission, KeepsSomeWindowsFromEachKind) {
    for (const Kind many : {Kind::read, Kind::write, Kind::upkeep}) {
        Windows windows;
        for (int i = 0; i < 40; ++i) windows.add(many);
        EXPECT_EQ(windows.start().size(), windows.admission.most_of(many));
        const auto one = windows.add(many == Kind::read ? Kind::write : Kind::read, other);
        EXPECT_EQ(windows.start(), (std::vector<Arrival>{one}));
    }
}

TEST(Admission, StartsAWriteAmongReadersWithoutEnd) {
    Windows windows;
    const std::uint64_t hosts = 3;
    auto read = [&](Arrival of) { windows.add(Kind::read, HostSession{10 + of % hosts}); };
    for (Arrival i = 0; i < hosts * 256; ++i) read(i);
    windows.start();
    for (unsigned round = 0; round < 100; ++round) {
        const Arrival write = windows.add(Kind::write, mine);
        Arrival younger = 0;
        for (bool started = false; !started;) {
            windows.end_one();
            read(++younger);
            for (Arrival each : windows.start()) started = started || each == write;
            ASSERT_LE(younger, hosts + 1) << "others that started while it could have";
        }
    }
}

TEST(Admission, GivesSessionsEqualSharesOfWhatBoxesMove) {
    Windows windows;
    std::map<HostSession, std::uint64_t> moved;
    std::map<HostSession, unsigned> waiting;
    for (int i = 0; i < 20'000; ++i) {
        for (const auto& [session, octets] : {std::pair{mine, small}, std::pair{other, large}})
            while (waiting[session] < 32)
                windows.add(i % 3 ? Kind::read : Kind::write, session, octets), ++waiting[session];
        for (Arrival each : windows.start()) {
            const auto& about = windows.about[each];
            moved[about.session] += about.octets + (16u << 10);
            --waiting[about.session];
        }
        windows.end_one();
    }
    EXPECT_NEAR(static_cast<double>(moved[mine]) / static_cast<double>(moved[other]), 1, 0.1);
}

TEST(Admission, SavesUpNothingForWhoAskedForNothing) {
    Windows windows(1);
    for (int i = 0; i < 1000; ++i) {
        windows.add(Kind::read, mine, large);
        windows.start();
        windows.end_one();
    }
    windows.add(Kind::read, mine, large);
    windows.add(Kind::read, mine, large);
    windows.add(Kind::read, other, large);
    windows.add(Kind::read, other, large);
    unsigned of_other = 0;
    for (int i = 0; i < 2; ++i) {
        for (Arrival each : windows.start()) of_other += windows.about[each].session == other;
        windows.end_one();
    }
    EXPECT_EQ(of_other, 1u) << "what it did not use is not made up for";
}

TEST(Admission, GivesUpkeepItsShareUnderAnyLoadAndAllThatHostsLeave) {
    for (const unsigned percent : {5u, 20u, 50u}) {
        Windows windows(16, percent);
        std::uint64_t hosts = 0, upkeep = 0;
        for (int i = 0; i < 50'000; ++i) {
            while (windows.arrivals < static_cast<Arrival>(i) + 200)
                windows.add(Kind::read, HostSession{windows.arrivals % 4});
            if (windows.admission.under_way(Kind::upkeep) == 0)
                windows.add(Kind::upkeep, {}, large / 2);
            for (Arrival each : windows.start()) {
                const auto& about = windows.about[each];
                (about.kind == Kind::upkeep ? upkeep : hosts) += about.octets + (16u << 10);
            }
            windows.end_one();
        }
        EXPECT_GE(100.0 * static_cast<double>(upkeep) / static_cast<double>(upkeep + hosts),
                  percent * 0.95);
    }
    Windows idle;
    for (int i = 0; i < 8; ++i) idle.add(Kind::upkeep, {}, large);
    EXPECT_EQ(idle.start().size(), idle.admission.most_of(Kind::upkeep));
    idle.end_one();
    EXPECT_EQ(idle.start().size(), 1u) << "there is nobody else";
}

TEST(Admission, StartsNothingThatWasRemoved) {
    Windows windows;
    const auto first = windows.add(Kind::read), second = windows.add(Kind::write);
    windows.admission.remove(first);
    windows.admission.remove(first);
    EXPECT_EQ(windows.start(), (std::vector<Arrival>{second}));
}

}  // namespace
}  // namespace weft::raid
