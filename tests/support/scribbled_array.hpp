// SPDX-License-Identifier: Apache-2.0
// An array in use: what was written is remembered, so that it can be looked for.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <list>

#include "support/array_cluster.hpp"

namespace weft::test {

/// Four boxes with the volume `photos`, a host that has written here and there, and what should
/// be there.
class ScribbledArray : public ArrayCluster {
public:
    static constexpr std::uint64_t used = 6u << 20;
    static inline const std::vector<std::string> members{"oak", "elm", "ash", "fir"};

    enum class Standby { none, waits };

    explicit ScribbledArray(std::uint64_t seed, Standby wanted = Standby::none)
        : ArrayCluster(seed) {
        volume_options.spare_patience = std::chrono::seconds(3);
        start_controller();
        for (const auto& name : members) add_box(name);
        const auto refusal = create("photos", raid::Level::raid5, members, 16u << 10, used);
        EXPECT_FALSE(refusal) << *refusal;
        EXPECT_TRUE(becomes("photos", raid::VolumeState::healthy));
        if (wanted == Standby::waits) start_standby();  // hosts know those there are
        disk = &attach("photos");
        shadow.resize(used);
        scribble(40);
    }
    ~ScribbledArray() {
        EXPECT_TRUE(run_until([&] { return ended(); }));
    }
    /// Writes here and there, and remembers it.
    void scribble(int count) {
        for (int i = 0; i < count; ++i) {
            const auto blocks = 1 + world.chance().below(24);
            const auto at = world.chance().below(used / 4096 - blocks) * 4096;
            std::vector<std::byte> octets(blocks * 4096);
            for (auto& octet : octets) octet = static_cast<std::byte>(world.random());
            std::copy(octets.begin(), octets.end(),
                      shadow.begin() + static_cast<std::ptrdiff_t>(at));
            write(*disk, at, octets);
        }
    }
    /// Writes that are under way together, each to a place of its own.
    void begin_writes() {
        constexpr std::size_t count = 16, room = used / count;
        for (std::size_t i = 0; i < count; ++i) {
            const auto blocks = 1 + world.chance().below(24);
            const auto at = i * room + world.chance().below(room / 4096 - blocks) * 4096;
            auto& request = writes.emplace_back(BlockOperation::write, at, blocks * 4096);
            for (auto& octet : request.octets) octet = static_cast<std::byte>(world.random());
            std::ranges::copy(request.octets, shadow.begin() + static_cast<std::ptrdiff_t>(at));
            disk->submit(request);
        }
    }
    bool ended() const {
        return std::ranges::all_of(writes, [](const auto& each) { return each.done(); });
    }
    std::ptrdiff_t answered() const {
        return std::ranges::count_if(writes, [](const auto& each) { return each.succeeded(); });
    }
    /// No write failed, and all that was written is there.
    void check() {
        ASSERT_TRUE(run_until([&] { return ended(); }));
        for (const auto& each : writes) EXPECT_TRUE(each.succeeded());
        writes.clear();
        constexpr std::size_t step = 512u << 10;
        for (std::size_t at = 0; at < used; at += step) {
            const auto from = shadow.begin() + static_cast<std::ptrdiff_t>(at);
            ASSERT_TRUE(std::ranges::equal(read(*disk, at, step), std::span(from, step)))
                << "from " << at;
        }
    }
    void scrub_finds_nothing() { scrub_finds_nothing(*controller); }
    /// The boxes agree about every row, says the one in office.
    void scrub_finds_nothing(node::ControllerNode& in_office) {
        auto scrub = [&] {
            const auto volumes = in_office.volumes();
            return std::ranges::find(volumes, "photos", &node::VolumeReport::name)->status.scrub;
        };
        const auto refusal = refusal_of(
            [&](auto told) { in_office.scrub("photos", false, false, std::move(told)); });
        ASSERT_FALSE(refusal) << *refusal;
        ASSERT_TRUE(run_until([&] { return !scrub().running; }));
        EXPECT_EQ(scrub().mismatches, 0u);
        EXPECT_EQ(scrub().done, scrub().to_do);
    }

    std::optional<std::string> clean(const std::string& name, bool force) {
        return refusal_of([&](const node::ControllerNode::Told& told) {
            controller->clean_box(name, force, [this, told](auto refusal, const auto& parts) {
                removed = parts;
                told(refusal);
            });
        });
    }

    BlockDevice* disk = nullptr;
    std::list<TestRequest> writes;
    std::vector<std::byte> shadow;
    std::vector<node::RemovedPart> removed;  ///< when a box was cleaned last
};

}  // namespace weft::test
