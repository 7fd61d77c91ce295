// SPDX-License-Identifier: Apache-2.0
// An array in use: what was written is remembered, so that it can be looked for.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "support/array_cluster.hpp"

namespace weft::test {

/// Four boxes with the volume `photos`, a host that has written here and there, and what should
/// be there.
class ScribbledArray : public ArrayCluster {
public:
    static constexpr std::uint64_t used = 6u << 20;
    static inline const std::vector<std::string> members{"oak", "elm", "ash", "fir"};

    explicit ScribbledArray(std::uint64_t seed) : ArrayCluster(seed) {
        volume_options.spare_patience = std::chrono::seconds(3);
        start_controller();
        for (const auto& name : members) add_box(name);
        const auto refusal = create("photos", raid::Level::raid5, members, 16u << 10, used);
        EXPECT_FALSE(refusal) << *refusal;
        EXPECT_TRUE(becomes("photos", raid::VolumeState::healthy));
        disk = &attach("photos");
        shadow.resize(used);
        scribble(40);
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
    void check() {
        constexpr std::size_t step = 512u << 10;
        for (std::size_t at = 0; at < used; at += step) {
            const auto from = shadow.begin() + static_cast<std::ptrdiff_t>(at);
            ASSERT_TRUE(std::ranges::equal(read(*disk, at, step), std::span(from, step)))
                << "from " << at;
        }
    }
    void scrub_finds_nothing() {
        const auto refusal = refusal_of(
            [&](auto told) { controller->scrub("photos", false, false, std::move(told)); });
        ASSERT_FALSE(refusal) << *refusal;
        ASSERT_TRUE(run_until([&] { return !status("photos").scrub.running; }));
        EXPECT_EQ(status("photos").scrub.mismatches, 0u);
        EXPECT_EQ(status("photos").scrub.done, status("photos").scrub.to_do);
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
    std::vector<std::byte> shadow;
    std::vector<node::RemovedPart> removed;  ///< when a box was cleaned last
};

}  // namespace weft::test
