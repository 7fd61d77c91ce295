// SPDX-License-Identifier: Apache-2.0
// Any octets as what an NBD client says to our server. The first export lends its memory and
// answers at once; the second does neither.
#include <vector>

#include "block/heap_memory.hpp"
#include "block/memory_disk.hpp"
#include "fuzz/drive.hpp"
#include "fuzz/slow_disk.hpp"
#include "nbd/server_connection.hpp"

namespace weft {
namespace {

constexpr std::size_t disk_size = 20'000;

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace weft;
    block::MemoryDisk disk(std::make_unique<block::HeapMemory>(disk_size), disk_size / 2);
    fuzz::SlowDisk slow(disk);
    nbd::Exports exports;
    WEFT_CHECK(exports.add({"disk", "in memory", &disk, false}));
    WEFT_CHECK(exports.add({"slow", "", &slow, false}));
    // Little, so that requests of the second export are made to wait for it.
    block::BufferPool pool(
        {.bytes = 64u << 10, .reserve_bytes = 8u << 10, .idle_bytes = 32u << 10});
    nbd::Statistics statistics;
    int gone = 0;
    nbd::ServerConnection server(exports, pool, statistics, Instant{}, {[] {}, [&] { ++gone; }});
    fuzz::drive(server, std::as_bytes(std::span(data, size)),
                [&, calls = 0]() mutable { return ++calls % 4 == 0 && slow.answer(); });
    while (slow.answer()) continue;
    WEFT_CHECK(gone == 1);
    return 0;
}
