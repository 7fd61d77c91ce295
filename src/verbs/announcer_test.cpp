// SPDX-License-Identifier: Apache-2.0
#include "verbs/announcer.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "support/manual_world.hpp"

namespace weft::verbs {
namespace {

struct Crier final : Announced {
    void announce() override {
        ++announced;
        if (then) then();
    }
    int announced = 0;
    std::function<void()> then;
};

class AnnouncerTest : public testing::Test {
protected:
    void turn() { world.advance({}); }

    test::ManualWorld world;
    std::optional<Announcer> announcer{std::in_place, world};
};

TEST_F(AnnouncerTest, TellsOnceAndNeverFromInsideTheCall) {
    Crier crier;
    announcer->add(crier);
    announcer->add(crier);
    EXPECT_EQ(crier.announced, 0);
    turn();
    EXPECT_EQ(crier.announced, 1);
    turn();
    EXPECT_EQ(crier.announced, 1);
    announcer->add(crier);
    turn();
    EXPECT_EQ(crier.announced, 2);
}

TEST_F(AnnouncerTest, DoesNotTellOfWhoIsGone) {
    Crier stays;
    auto goes = std::make_unique<Crier>();
    int told = 0;
    goes->then = [&] { ++told; };
    announcer->add(*goes);
    announcer->add(stays);
    goes.reset();
    turn();
    EXPECT_EQ(told, 0);
    EXPECT_EQ(stays.announced, 1);
}

TEST_F(AnnouncerTest, BearsThatOneWhoIsToldDestroysItselfAndAnother) {
    auto first = std::make_unique<Crier>(), second = std::make_unique<Crier>();
    Crier third;
    int told = 0;
    auto destroy_both = [&] {
        ++told;
        second.reset();
        first.reset();
    };
    first->then = [destroy_both] { destroy_both(); };
    second->then = first->then;
    announcer->add(*first);
    announcer->add(*second);
    announcer->add(third);
    turn();
    EXPECT_EQ(told, 1);
    EXPECT_EQ(third.announced, 1);
}

TEST_F(AnnouncerTest, TellsNewNewsInTheNextTurn) {
    Crier crier, other;
    crier.then = [&] {
        if (crier.announced < 3) announcer->add(crier);
    };
    announcer->add(crier);
    announcer->add(other);
    for (int i = 0; i < 5; ++i) turn();
    EXPECT_EQ(crier.announced, 3);
    EXPECT_EQ(other.announced, 1);
}

TEST_F(AnnouncerTest, BearsItsOwnEndWhileItTells) {
    Crier first, second;
    first.then = [&] { announcer.reset(); };
    announcer->add(first);
    announcer->add(second);
    turn();
    EXPECT_EQ(first.announced, 1);
}

TEST_F(AnnouncerTest, IsSilentOnceItIsGone) {
    Crier crier;
    announcer->add(crier);
    announcer.reset();
    turn();
    EXPECT_EQ(crier.announced, 0);
}

}  // namespace
}  // namespace weft::verbs
