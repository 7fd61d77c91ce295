// SPDX-License-Identifier: Apache-2.0
#include "raid/row_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace weft::raid {
namespace {

using Use = RowOrder::Use;

Band band(std::uint64_t stripe, std::uint32_t offset, std::uint32_t length) {
    return {.stripe = stripe, .offset = offset, .length = length};
}

TEST(RowOrder, LetsReadersShareAndWritersWaitForThem) {
    RowOrder order;
    const std::vector<Band> rows{band(3, 0, 4096)};
    EXPECT_TRUE(order.add(1, rows, Use::shared));
    EXPECT_TRUE(order.add(2, rows, Use::shared));
    EXPECT_FALSE(order.add(3, rows, Use::exclusive));
    EXPECT_FALSE(order.add(4, rows, Use::shared)) << "it came after a writer of its rows";
    EXPECT_TRUE(order.remove(1).empty());
    EXPECT_EQ(order.remove(2), (std::vector<Arrival>{3}));
    EXPECT_FALSE(order.has_rows(4));
    EXPECT_EQ(order.remove(3), (std::vector<Arrival>{4}));
    EXPECT_TRUE(order.has_rows(4));
}

TEST(RowOrder, LetsWritersOfOtherRowsPass) {
    RowOrder order;
    EXPECT_TRUE(order.add(1, std::vector{band(3, 0, 4096)}, Use::exclusive));
    EXPECT_TRUE(order.add(2, std::vector{band(3, 4096, 4096)}, Use::exclusive));
    EXPECT_TRUE(order.add(3, std::vector{band(4, 0, 4096)}, Use::exclusive));
}

TEST(RowOrder, ForgetsWhatGaveItsRowsBack) {
    RowOrder order;
    EXPECT_TRUE(order.add(1, std::vector{band(1, 0, 8192), band(2, 0, 8192)}, Use::exclusive));
    EXPECT_FALSE(order.add(2, std::vector{band(1, 0, 4096), band(2, 0, 4096)}, Use::shared));
    EXPECT_EQ(order.remove(1), (std::vector<Arrival>{2}));
    EXPECT_TRUE(order.remove(1).empty());
    EXPECT_TRUE(order.remove(2).empty());
    EXPECT_TRUE(order.empty());
}

/// As a list of all would tell it, one request after another.
struct Model {
    struct Request {
        std::vector<Band> bands;
        Use use{};
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
        return std::ranges::none_of(requests, [&](const auto& earlier) {
            return earlier.first < number && clash(earlier.second, requests.at(number));
        });
    }
    std::map<Arrival, Request> requests;
};

TEST(RowOrder, IsThatOfAListInWhichEarlierOnesGoFirst) {
    for (unsigned seed = 1; seed <= 50; ++seed) {
        std::mt19937 random(seed);
        RowOrder order;
        Model model;
        for (Arrival next = 1; next <= 200;) {
            if (random() % 5 < 3) {
                Model::Request request{.bands = {}, .use = Use(random() % 2)};
                for (auto bands = 1 + random() % 3; bands > 0; --bands)
                    request.bands.push_back(
                        band(random() % 3, 4096 * (random() % 4), 4096 * (1 + random() % 2)));
                std::ranges::sort(request.bands, {}, &Band::stripe);
                const bool at_once = order.add(next, request.bands, request.use);
                model.requests[next] = request;
                ASSERT_EQ(at_once, model.has_rows(next)) << "seed " << seed;
                ++next;
            } else if (!model.requests.empty()) {
                auto gone = std::next(model.requests.begin(),
                                      static_cast<long>(random() % model.requests.size()));
                std::map<Arrival, bool> before;
                for (const auto& [number, each] : model.requests)
                    before[number] = model.has_rows(number);
                const Arrival number = gone->first;
                model.requests.erase(gone);
                std::vector<Arrival> expected;
                for (const auto& [each, request] : model.requests)
                    if (!before[each] && model.has_rows(each)) expected.push_back(each);
                ASSERT_EQ(order.remove(number), expected) << "seed " << seed;
            }
            for (const auto& [number, each] : model.requests)
                ASSERT_EQ(order.has_rows(number), model.has_rows(number)) << "seed " << seed;
        }
    }
}

}  // namespace
}  // namespace weft::raid
