// SPDX-License-Identifier: Apache-2.0
// A volume on a whole cluster, whichever way its data goes: out of band with a star or a tree, or
// by way of the controller; for what must hold of all of them.
#pragma once

#include "raid/superblock.hpp"
#include "support/array_cluster.hpp"
#include "support/payload_watch.hpp"

namespace weft::test {

/// A way for data to go, and where parity is made of it.
struct Way {
    const char* name;
    raid::DataPath path;
    raid::Topology topology;
};
inline constexpr Way star{"Star", raid::DataPath::third_party, raid::Topology::star};
inline constexpr Way tree{"Tree", raid::DataPath::third_party, raid::Topology::binary_tree};
inline constexpr Way in_band{"InBand", raid::DataPath::in_band, raid::Topology::star};

struct ArrayCase {
    raid::Level level;
    Way way;
};
inline void PrintTo(const ArrayCase& each, std::ostream* out) {
    *out << each.way.name;
}
inline std::string name_of(const testing::TestParamInfo<ArrayCase>& info) {
    const auto level = info.param.level;
    return std::string(info.param.way.name) + (level == raid::Level::mirror  ? "Mirror"
                                               : level == raid::Level::raid5 ? "Raid5"
                                                                             : "Raid6");
}

/// A volume on such a cluster, the host that uses it, and all their wires watched.
struct Photos {
    static constexpr std::uint64_t block = 4096;
    static constexpr std::uint32_t chunk = 4 * block;
    static constexpr std::uint64_t size = 4 << 20;
    static constexpr const char* controller_machine = "10.0.0.1";
    static constexpr const char* host_machine = "10.0.0.50";

    Photos(raid::Level level, const Way& way) : array(1), watch(array.world.network()) {
        array.volume_options.plan.topology = way.topology;
        // So that no upkeep is counted among what hosts ask for.
        array.volume_options.flush_interval = std::chrono::hours(24);
        array.in_band = way.path == raid::DataPath::in_band;
        make(level);
    }

    raid::VolumeStatus status() const { return array.status("photos"); }
    void lose_box(const std::string& name) {
        auto& box = *array.boxes.at(name);
        box.stop();
        ASSERT_TRUE(array.run_until([&] { return box.quiet(); }));
        array.boxes.erase(name);
        ASSERT_TRUE(array.run_until([&] { return !raid::health_of(status().volume).whole(); }));
        // Requests of the time before all boxes have kept that would be begun twice.
        array.world.run_for(std::chrono::seconds(1));
    }
    void scrub() {
        const auto refusal = array.refusal_of(
            [&](auto told) { array.controller->scrub("photos", false, false, std::move(told)); });
        ASSERT_FALSE(refusal) << *refusal;
        ASSERT_TRUE(array.run_until([&] { return !status().scrub.running; }));
        EXPECT_EQ(status().scrub.mismatches, 0u);
        EXPECT_EQ(status().scrub.unchecked, 0u);
        EXPECT_EQ(status().scrub.done, status().volume.stripes);
    }

    std::vector<std::string> boxes{"oak", "elm", "ash", "fir", "yew"};
    ArrayCluster array;
    PayloadWatch watch;
    BlockDevice* disk = nullptr;  ///< none if any of it failed

private:
    void make(raid::Level level) {
        ASSERT_NO_FATAL_FAILURE(array.start_controller());
        if (level == raid::Level::mirror) boxes.resize(3);
        for (const auto& name : boxes) ASSERT_NO_FATAL_FAILURE(array.add_box(name));
        const auto refusal = array.create("photos", level, boxes, chunk, size);
        ASSERT_FALSE(refusal) << *refusal;
        ASSERT_TRUE(array.becomes("photos", raid::VolumeState::healthy));
        disk = &array.attach("photos", host_machine);
    }
};

}  // namespace weft::test
