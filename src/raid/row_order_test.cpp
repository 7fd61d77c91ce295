// SPDX-License-Identifier: Apache-2.0
#include "raid/row_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace weft::raid {
namespace {

using Use = RowOrder::Use;
using Rank = RowOrder::Rank;

bool gets_rows(RowOrder& order, Arrival request, const std::vector<Band>& bands, Use use) {
    (void)order.add(request, bands, use, Rank::host);
    return order.has_rows(request);
}

Band band(std::uint64_t stripe, std::uint32_t offset, std::uint32_t length) {
    return {.stripe = stripe, .offset = offset, .length = length};
}

TEST(RowOrder, LetsReadersShareAndWritersWaitForThem) {
    RowOrder order;
    const std::vector<Band> rows{band(3, 0, 4096)};
    EXPECT_TRUE(gets_rows(order, 1, rows, Use::shared));
    EXPECT_TRUE(gets_rows(order, 2, rows, Use::shared));
    EXPECT_FALSE(gets_rows(order, 3, rows, Use::exclusive));
    EXPECT_FALSE(gets_rows(order, 4, rows, Use::shared)) << "it came after a writer of its rows";
    EXPECT_TRUE(order.remove(1).empty());
    EXPECT_EQ(order.remove(2), (std::vector<Arrival>{3}));
    EXPECT_FALSE(order.has_rows(4));
    EXPECT_EQ(order.remove(3), (std::vector<Arrival>{4}));
    EXPECT_TRUE(order.has_rows(4));
}

TEST(RowOrder, LetsWritersOfOtherRowsPass) {
    RowOrder order;
    EXPECT_TRUE(gets_rows(order, 1, std::vector{band(3, 0, 4096)}, Use::exclusive));
    EXPECT_TRUE(gets_rows(order, 2, std::vector{band(3, 4096, 4096)}, Use::exclusive));
    EXPECT_TRUE(gets_rows(order, 3, std::vector{band(4, 0, 4096)}, Use::exclusive));
}

TEST(RowOrder, ForgetsWhatGaveItsRowsBack) {
    RowOrder order;
    EXPECT_TRUE(
        gets_rows(order, 1, std::vector{band(1, 0, 8192), band(2, 0, 8192)}, Use::exclusive));
    EXPECT_FALSE(gets_rows(order, 2, std::vector{band(1, 0, 4096), band(2, 0, 4096)}, Use::shared));
    EXPECT_EQ(order.remove(1), (std::vector<Arrival>{2}));
    EXPECT_TRUE(order.remove(1).empty());
    EXPECT_TRUE(order.remove(2).empty());
    EXPECT_TRUE(order.empty());
}

TEST(RowOrder, LetsUpkeepGoBeforeHostsThatHaveNotBegun) {
    RowOrder order;
    const std::vector<Band> rows{band(3, 0, 4096)};
    EXPECT_TRUE(gets_rows(order, 1, rows, Use::shared));
    EXPECT_TRUE(gets_rows(order, 2, rows, Use::shared));
    order.begin(1);
    EXPECT_EQ(order.add(3, rows, Use::exclusive, Rank::upkeep), (std::vector<Arrival>{2}));
    EXPECT_FALSE(order.has_rows(2));
    EXPECT_FALSE(order.has_rows(3)) << "the first has begun";
    EXPECT_EQ(order.remove(1), (std::vector<Arrival>{3}));
    order.begin(3);
    EXPECT_EQ(order.remove(3), (std::vector<Arrival>{2}));
}

/// As a list of all would tell it, one request after another.
struct Model {
    struct Request {
        std::vector<Band> bands;
        Use use{};
        Rank rank{};
    };
    static bool clash(const Request& a, const Request& b) {
        if (a.use == Use::shared && b.use == Use::shared) return false;
        return std::ranges::any_of(a.bands, [&](const Band& x) {
            return std::ranges::any_of(b.bands, [&](const Band& y) {
                return x.stripe == y.stripe && x.offset < y.offset + y.length &&
                       y.offset < x.offset + x.length;
            });
        });
    }
    bool has_rows(Arrival number) const {
        const Request& own = requests.at(number);
        return std::ranges::none_of(requests, [&](const auto& each) {
            const auto& [other, request] = each;
            return std::pair(request.rank, other) < std::pair(own.rank, number) &&
                   clash(request, own);
        });
    }
    std::vector<Arrival> with_rows() const {
        std::vector<Arrival> all;
        for (const auto& [number, request] : requests)
            if (has_rows(number)) all.push_back(number);
        return all;
    }
    std::map<Arrival, Request> requests;
};

TEST(RowOrder, IsThatOfAListInWhichThoseBeforeGoFirst) {
    for (unsigned seed = 1; seed <= 50; ++seed) {
        std::mt19937 random(seed);
        auto draw = [&](std::uint32_t below) {
            return static_cast<std::uint32_t>(random() % below);
        };
        RowOrder order;
        Model model;
        for (Arrival next = 1; next <= 200;) {
            const auto what = draw(6);
            if (what < 3) {
                Model::Request request{
                    .bands = {}, .use = Use(draw(2)), .rank = draw(4) ? Rank::host : Rank::upkeep};
                for (auto bands = 1 + draw(3); bands > 0; --bands)
                    request.bands.push_back(band(draw(3), 4096 * draw(4), 4096 * (1 + draw(2))));
                std::ranges::sort(request.bands, {}, &Band::stripe);
                const auto before = model.with_rows();
                const auto wait_now = order.add(next, request.bands, request.use, request.rank);
                model.requests[next] = request;
                for (auto each : before)
                    ASSERT_EQ(std::ranges::count(wait_now, each), model.has_rows(each) ? 0 : 1);
                ++next;
            } else if (const auto having = model.with_rows(); what == 3 && !having.empty()) {
                const auto begun = having[draw(static_cast<std::uint32_t>(having.size()))];
                order.begin(begun);
                model.requests[begun].rank = Rank::begun;
            } else if (!model.requests.empty()) {
                const auto gone =
                    std::next(model.requests.begin(),
                              draw(static_cast<std::uint32_t>(model.requests.size())));
                const auto before = model.with_rows();
                const Arrival number = gone->first;
                model.requests.erase(gone);
                std::vector<Arrival> expected;
                for (auto each : model.with_rows())
                    if (std::ranges::count(before, each) == 0) expected.push_back(each);
                ASSERT_EQ(order.remove(number), expected) << "seed " << seed;
            }
            for (const auto& [number, each] : model.requests)
                ASSERT_EQ(order.has_rows(number), model.has_rows(number)) << "seed " << seed;
        }
    }
}

}  // namespace
}  // namespace weft::raid
