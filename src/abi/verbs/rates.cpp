// SPDX-License-Identifier: Apache-2.0
// InfiniBand's names of speeds, and back.
#include <infiniband/verbs.h>

#include <array>

namespace {

struct Rate {
    ibv_rate name;
    int times_2_5_gbit;  ///< or -1, where Debian's library knows no multiple
    int megabits;
};
constexpr std::array<Rate, 23> rates{{
    {IBV_RATE_2_5_GBPS, 1, 2'500},        {IBV_RATE_5_GBPS, 2, 5'000},
    {IBV_RATE_10_GBPS, 4, 10'000},        {IBV_RATE_20_GBPS, 8, 20'000},
    {IBV_RATE_30_GBPS, 12, 30'000},       {IBV_RATE_40_GBPS, 16, 40'000},
    {IBV_RATE_60_GBPS, 24, 60'000},       {IBV_RATE_80_GBPS, 32, 80'000},
    {IBV_RATE_120_GBPS, 48, 120'000},     {IBV_RATE_14_GBPS, -1, 14'062},
    {IBV_RATE_56_GBPS, -1, 56'250},       {IBV_RATE_112_GBPS, -1, 112'500},
    {IBV_RATE_168_GBPS, -1, 168'750},     {IBV_RATE_25_GBPS, -1, 25'781},
    {IBV_RATE_100_GBPS, -1, 103'125},     {IBV_RATE_200_GBPS, -1, 206'250},
    {IBV_RATE_300_GBPS, -1, 309'375},     {IBV_RATE_28_GBPS, 11, 28'125},
    {IBV_RATE_50_GBPS, 20, 53'125},       {IBV_RATE_400_GBPS, 160, 425'000},
    {IBV_RATE_600_GBPS, 240, 637'500},    {IBV_RATE_800_GBPS, 320, 850'000},
    {IBV_RATE_1200_GBPS, 480, 1'275'000},
}};

}  // namespace

extern "C" {

int ibv_rate_to_mult(ibv_rate rate) {
    for (auto& each : rates)
        if (each.name == rate) return each.times_2_5_gbit;
    return -1;
}

ibv_rate mult_to_ibv_rate(int times) {
    for (auto& each : rates)
        if (each.times_2_5_gbit == times && times > 0) return each.name;
    return IBV_RATE_MAX;
}

int ibv_rate_to_mbps(ibv_rate rate) {
    for (auto& each : rates)
        if (each.name == rate) return each.megabits;
    return -1;
}

ibv_rate mbps_to_ibv_rate(int megabits) {
    for (auto& each : rates)
        if (each.megabits == megabits) return each.name;
    return IBV_RATE_MAX;
}

}  // extern "C"
