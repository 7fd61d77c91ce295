// SPDX-License-Identifier: Apache-2.0
#include "node/controller_records.hpp"

#include <gtest/gtest.h>

#include "raid/records.hpp"
#include "raid/superblock.hpp"

namespace weft::node {
namespace {

using Records = std::vector<std::pair<std::string, std::vector<std::byte>>>;

wire::ArrayVolume photos() {
    wire::ArrayVolume volume;
    volume.volume = {{7, 7}};
    (void)raid::set_field(volume.name, "photos");
    volume.generation = wire::Generation{3};
    volume.level = 5;
    volume.boxes = 3;
    volume.chunk_bytes = 65536;
    volume.stripes = 100;
    for (std::uint8_t place = 0; place < 3; ++place)
        volume.members[place] = {
            .box = {{place}}, .state = wire::ArrayMemberState::current, .rebuilt_stripes = 0};
    return volume;
}

TEST(ControllerRecords, AreReadAsTheyWereWritten) {
    const wire::ArrayClusterRecord cluster{
        .cluster = {{1}}, .epoch = wire::Epoch{4}, .controller = {2}};
    const wire::ArrayBoxRecord oak{.box = {{9}}, .name = {}, .address = {}, .size = 5};
    const wire::ArrayRebuildRecord rebuild{
        .volume = {{7, 7}}, .place = 2, .paused = true, .stripes = 11, .octets_per_second = 0};
    raid::DirtyRecord dirty{.volume = {{7, 7}},
                            .place = 1,
                            .stripes = raid::RegionMap(100, raid::limits::lasting_regions),
                            .boots = {}};
    dirty.stripes.add(17);
    const raid::ExecutedRecord executed{.volume = {{7, 7}}, .notes = {{{{3}}, 17}}};
    const Records kept{
        {raid::executed_record_name({{7, 7}}), raid::encode_executed_record(executed)},
        {raid::dirty_record_name({{7, 7}}, 1), raid::encode_dirty_record(dirty)},
        {box_record_name(oak.box), raid::encode_record(oak)},
        {cluster_record_name, raid::encode_record(cluster)},
        {raid::rebuild_record_name({{7, 7}}, 2), raid::encode_record(rebuild)},
        {spare_record_name(oak.box), raid::encode_record(wire::ArraySpareRecord{.box = oak.box})},
        {raid::volume_record_name({{7, 7}}), raid::encode_record(photos())}};
    auto known = read_controller_records(kept);
    ASSERT_TRUE(known);
    EXPECT_EQ(known->cluster, cluster);
    EXPECT_EQ(known->boxes.at(oak.box), oak);
    EXPECT_TRUE(known->spares.contains(oak.box));
    EXPECT_EQ(known->volumes.at({{7, 7}}), photos());
    const auto& of_photos = known->of_volumes.at({{7, 7}});
    EXPECT_EQ(of_photos.rebuilds, std::vector{rebuild});
    EXPECT_EQ(of_photos.dirty, std::vector{dirty});
    EXPECT_EQ(of_photos.executed, executed.notes);
    EXPECT_FALSE(read_controller_records({})->cluster) << "a new store";
}

TEST(ControllerRecords, StopWhoeverCannotReadThemAll) {
    auto whole = raid::encode_record(photos());
    const auto name = raid::volume_record_name({{7, 7}});
    for (std::size_t at = 0; at < whole.size(); at += 13) {
        auto damaged = whole;
        damaged[at] ^= std::byte{0x10};
        auto read = read_controller_records(Records{{name, damaged}});
        ASSERT_FALSE(read) << at;
        EXPECT_EQ(read.error(), (Error{.code = Code::malformed, .where = 1}));
    }
    EXPECT_FALSE(read_controller_records(Records{{"dreams/1", whole}}));
    EXPECT_FALSE(read_controller_records(Records{{"boxes/1", whole}})) << "of another kind";
    auto impossible = photos();
    impossible.chunk_bytes = 5000;
    EXPECT_FALSE(read_controller_records(Records{{name, raid::encode_record(impossible)}}));
}

}  // namespace
}  // namespace weft::node
