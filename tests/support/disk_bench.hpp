// SPDX-License-Identifier: Apache-2.0
// A simulated disk on the bench: one request after the other, each run until it is done.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "sim/world.hpp"
#include "support/test_request.hpp"

namespace weft::test {

/// One disk of one mebibyte, and a device open on it.
struct DiskBench {
    explicit DiskBench(std::uint64_t seed, const sim::DiskSpec& spec = {})
        : world(seed), disk(world.make_disk("disk", spec)) {
        reopen();
    }
    void reopen() {
        device.reset();
        device = std::move(*world.open_disk({.path = "disk"}));
    }

    Result<void> run(TestRequest& request) {
        device->submit(request);
        EXPECT_TRUE(world.run_until_quiet(1'000'000));
        return request.outcome.value();
    }
    Result<void> write(std::uint64_t offset, std::uint64_t length, int fill, bool durable = false) {
        TestRequest request(BlockOperation::write, offset, length);
        std::fill(request.octets.begin(), request.octets.end(), static_cast<std::byte>(fill));
        request.durable = durable;
        return run(request);
    }
    Result<void> simple(BlockOperation operation, std::uint64_t offset, std::uint64_t length) {
        TestRequest request(operation, offset, length);
        return run(request);
    }
    Result<void> flush() { return simple(BlockOperation::flush, 0, 0); }

    /// One character per sector: its fill as a digit, or '?' if it is not all the same.
    std::string read(std::uint64_t offset, std::uint64_t length) {
        TestRequest request(BlockOperation::read, offset, length);
        if (!run(request)) return "error";
        std::string digits;
        for (auto at = request.octets.begin(); at != request.octets.end();
             at += sim::sector_bytes) {
            bool same =
                std::all_of(at, at + sim::sector_bytes, [&](std::byte b) { return b == *at; });
            digits += same ? static_cast<char>('0' + std::to_integer<int>(*at)) : '?';
        }
        return digits;
    }

    sim::World world;
    sim::Disk& disk;
    std::unique_ptr<BlockDevice> device;
};

}  // namespace weft::test
