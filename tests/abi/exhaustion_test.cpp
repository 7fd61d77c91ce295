// SPDX-License-Identifier: Apache-2.0
// Everything of one kind that the device has, asked for until it is refused, and given back: the
// refusal is the documented one, one that goes makes room for another, and when all have gone the
// process has what it had before, counted in bytes and in descriptors.
#include "abi/counting.hpp"
#include "abi/verbs_fixture.hpp"

namespace weft::test {
namespace {

class Exhaustion : public VerbsTest {
protected:
    Exhaustion() { ibv_query_device(context, &device); }
    ~Exhaustion() override {
        EXPECT_EQ(ibv_destroy_cq(completions), 0);
        EXPECT_EQ(ibv_dealloc_pd(domain), 0);
    }

    /// Twice, since what is made once may stay. A few of the device's are librdmacm's, or ours.
    template <class Make, class End>
    void use_up(int most, Make make, End end) {
        auto before = open_descriptors();
        std::size_t first_count = 0, bytes_after_first = 0;
        for (int round = 0; round < 2; ++round) {
            std::vector<decltype(make())> all;
            all.reserve(static_cast<std::size_t>(most) + 1);
            while (auto* one = make()) all.push_back(one);
            EXPECT_EQ(errno, ENOMEM);
            EXPECT_LE(all.size(), static_cast<std::size_t>(most));
            EXPECT_GE(all.size() + 8, static_cast<std::size_t>(most));
            ASSERT_EQ(end(all.back()), 0);
            all.back() = make();
            EXPECT_NE(all.back(), nullptr) << "one that has gone makes room";
            for (auto* one : all) ASSERT_EQ(end(one), 0);
            if (round == 0) {
                first_count = all.size();
                bytes_after_first = bytes_in_use();
            } else {
                EXPECT_EQ(all.size(), first_count);
            }
        }
        EXPECT_LE(bytes_in_use(), bytes_after_first + 4096) << "less than one octet for each";
        EXPECT_EQ(open_descriptors(), before);
    }

    ibv_device_attr device{};
    ibv_pd* domain = ibv_alloc_pd(context);
    ibv_cq* completions = ibv_create_cq(context, 8, nullptr, nullptr, 0);
    std::array<char, 64> memory{};
};

TEST_F(Exhaustion, OfRegions) {
    use_up(
        device.max_mr,
        [&] { return ibv_reg_mr(domain, memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE); },
        ibv_dereg_mr);
}

TEST_F(Exhaustion, OfWindows) {
    use_up(
        device.max_mw, [&] { return ibv_alloc_mw(domain, IBV_MW_TYPE_2); }, ibv_dealloc_mw);
}

TEST_F(Exhaustion, OfDomains) {
    use_up(
        device.max_pd, [&] { return ibv_alloc_pd(context); }, ibv_dealloc_pd);
}

TEST_F(Exhaustion, OfCompletionQueues) {
    use_up(
        device.max_cq, [&] { return ibv_create_cq(context, 1, nullptr, nullptr, 0); },
        ibv_destroy_cq);
}

TEST_F(Exhaustion, OfSharedReceiveQueues) {
    ibv_srq_init_attr wish{nullptr, {1, 1, 0}};
    use_up(
        device.max_srq, [&] { return ibv_create_srq(domain, &wish); }, ibv_destroy_srq);
}

TEST_F(Exhaustion, OfQueuePairs) {
    ibv_qp_init_attr wish{nullptr, completions, completions, nullptr, {1, 1, 1, 1, 0}, IBV_QPT_RC,
                          0};
    use_up(
        device.max_qp, [&] { return ibv_create_qp(domain, &wish); }, ibv_destroy_qp);
}

}  // namespace
}  // namespace weft::test
