// SPDX-License-Identifier: Apache-2.0
#include "raid/superblock.hpp"

#include <gtest/gtest.h>

#include "raid/records.hpp"
#include "support/golden.hpp"

namespace weft::raid {
namespace {

using wire::ArrayMemberState;

/// A volume of five boxes, as box `place` would keep it.
wire::ArraySuperblock kept_by(std::uint8_t place) {
    wire::ArraySuperblock superblock;
    superblock.cluster.octets[0] = 1;
    superblock.volume.volume.octets[0] = 2;
    superblock.volume.generation = wire::Generation{4};
    superblock.volume.level = 5;
    superblock.volume.boxes = 5;
    superblock.volume.chunk_bytes = 65536;
    superblock.volume.stripes = 100;
    EXPECT_TRUE(set_field(superblock.volume.name, "photos"));
    for (std::uint8_t i = 0; i < 5; ++i) {
        superblock.volume.members[i].box.octets[0] = static_cast<std::uint8_t>(10 + i);
        superblock.volume.members[i].state = ArrayMemberState::current;
    }
    superblock.place = place;
    superblock.box = superblock.volume.members[place].box;
    superblock.epoch = wire::Epoch{9};
    return superblock;
}

TEST(Superblock, IsReadBackAsItWasWritten) {
    auto golden = test::golden("raid/superblock.hex");
    auto read = parse_superblock(golden);
    ASSERT_TRUE(read);
    EXPECT_EQ(text_of_field(read->volume.name), "photos");
    EXPECT_EQ(test::to_hex(encode_superblock(*read)), test::to_hex(golden));
    EXPECT_EQ(*parse_superblock(encode_superblock(kept_by(3))), kept_by(3));
}

TEST(Superblock, HasATopologyWhichIsAStarWhereNoneWasWritten) {
    EXPECT_EQ(parse_superblock(test::golden("raid/superblock.hex"))->volume.topology,
              wire::ArrayTopology::star);
    auto tree = kept_by(1);
    tree.volume.topology = wire::ArrayTopology::binary_tree;
    EXPECT_EQ(*parse_superblock(encode_superblock(tree)), tree);
    tree.volume.topology = wire::ArrayTopology{2};
    EXPECT_EQ(parse_superblock(encode_superblock(tree)).error().code, Code::unsupported);
}

TEST(Superblock, IsRefusedWhenAnyBitOfItIsWrong) {
    auto image = encode_superblock(kept_by(0));
    for (std::size_t bit = 0; bit < image.size() * 8; bit += 3) {
        image[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
        EXPECT_FALSE(parse_superblock(image)) << bit;
        image[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    }
    EXPECT_EQ(parse_superblock(ConstBuffer(image).first(4095)).error().code, Code::truncated);
    EXPECT_EQ(parse_superblock(SuperblockImage{}).error().code, Code::malformed);
}

TEST(Superblock, IsRefusedWhenItSaysWhatNoBoxWouldWrite) {
    auto wrong = kept_by(0);
    wrong.place = 1;
    EXPECT_FALSE(parse_superblock(encode_superblock(wrong))) << "in another's place";
    wrong = kept_by(0);
    wrong.volume.boxes = 200;
    EXPECT_FALSE(parse_superblock(encode_superblock(wrong))) << "too many boxes";
    wrong = kept_by(0);
    wrong.volume.chunk_bytes = 1;
    EXPECT_FALSE(parse_superblock(encode_superblock(wrong))) << "a chunk of one octet";
}

TEST(Superblock, IsNotTakenForDamagedWhenItIsOnlyNotUnderstood) {
    const auto known = encode_superblock(kept_by(0));
    auto of_the_future = kept_by(0);
    of_the_future.volume.level = 77;
    const auto unknown = encode_superblock(of_the_future);
    for (const auto& other : {known, unknown, SuperblockImage{}}) {
        EXPECT_EQ(newest_superblock(unknown, other).error().code, Code::unsupported);
        EXPECT_EQ(newest_superblock(other, unknown).error().code, Code::unsupported);
    }
    EXPECT_EQ(newest_superblock({}, SuperblockImage{}).error().code, Code::not_found);
}

TEST(Superblock, OutlivesAPowerCutWhileItIsWritten) {
    std::array<SuperblockImage, 2> copies{};
    for (std::uint64_t i = 1; i < 10; ++i) {
        auto next = kept_by(0);
        next.written = i;
        auto image = encode_superblock(next);
        auto& place = copies[copy_to_write(copies[0], copies[1])];
        auto before = newest_superblock(copies[0], copies[1]);
        for (std::size_t cut = 512; cut < image.size(); cut += 512) {  // torn anywhere
            auto saved = place;
            std::copy_n(image.begin(), cut, place.begin());
            auto found = newest_superblock(copies[0], copies[1]);
            if (i == 1)
                EXPECT_EQ(found.error().code, Code::not_found);
            else
                EXPECT_TRUE(found && (*found == *before || *found == next));
            place = saved;
        }
        place = image;
        EXPECT_EQ(*newest_superblock(copies[0], copies[1]), next);
    }
}

TEST(Superblock, TellsLayoutAndHealth) {
    auto volume = kept_by(0).volume;
    volume.members[1].state = ArrayMemberState::rebuilding;
    volume.members[1].rebuilt_stripes = 50;
    EXPECT_EQ(*layout_of(volume), *Layout::make(Level::raid5, 5, 65536));
    EXPECT_EQ(health_of(volume).absent_at(49), 0u);
    EXPECT_EQ(health_of(volume).absent_at(50), 0b10u);
}

TEST(Assembling, NeedsAsManyBoxesAsTheCodeDoes) {
    std::vector<wire::ArraySuperblock> found;
    EXPECT_EQ(assemble(found).error().code, Code::not_found);
    for (std::uint8_t place : std::array<std::uint8_t, 3>{0, 2, 3}) found.push_back(kept_by(place));
    EXPECT_EQ(assemble(found).error().code, Code::io_failed);
    found.push_back(kept_by(4));
    auto assembled = assemble(found);
    ASSERT_TRUE(assembled);
    EXPECT_EQ(assembled->present, 0b11101u);
    EXPECT_EQ(assembled->volume, kept_by(0).volume);
    EXPECT_EQ(assembled->epoch, wire::Epoch{9});
}

TEST(Assembling, TellsWhoMayHaveGoneOnWithoutThose) {
    auto mirror = [](std::uint8_t place) {
        auto superblock = kept_by(place);
        superblock.volume.level = 1;
        superblock.volume.boxes = 3;
        return superblock;
    };
    std::vector<wire::ArraySuperblock> found{mirror(1)};
    auto assembled = assemble(found);
    ASSERT_TRUE(assembled);
    EXPECT_EQ(assembled->unheard, 0b101u) << "either of them could";
    give_up_unheard(*assembled);
    EXPECT_GT(assembled->volume.generation, mirror(1).volume.generation);
    EXPECT_EQ(assembled->volume.members[0].state, ArrayMemberState::absent);
    EXPECT_EQ(assembled->volume.members[1].state, ArrayMemberState::current);
    found = {mirror(0), mirror(1), mirror(2)};
    EXPECT_EQ(assemble(found)->unheard, 0u);
    found.clear();
    for (std::uint8_t place : std::array<std::uint8_t, 4>{0, 2, 3, 4})
        found.push_back(kept_by(place));
    EXPECT_EQ(assemble(found)->unheard, 0u) << "one box of RAID 5 goes nowhere by itself";
}

TEST(Assembling, BelievesTheNewestGenerationAlone) {
    std::vector<wire::ArraySuperblock> found;
    for (std::uint8_t place = 0; place < 5; ++place) found.push_back(kept_by(place));
    for (std::size_t i : {0u, 1u, 2u, 3u}) {  // box 4 was lost, came back, and knows nothing of it
        found[i].volume.generation = wire::Generation{5};
        found[i].volume.members[4].state = ArrayMemberState::absent;
    }
    found[4].epoch = wire::Epoch{11};
    auto assembled = assemble(found);
    ASSERT_TRUE(assembled);
    EXPECT_EQ(assembled->present, 0b01111u);
    EXPECT_EQ(assembled->epoch, wire::Epoch{11}) << "a controller must go beyond what any obeyed";
    found.erase(found.begin());
    EXPECT_EQ(assemble(found).error().code, Code::io_failed) << "an old box counts for nothing";
}

TEST(Assembling, RefusesADisksOfSomebodyElse) {
    std::vector<wire::ArraySuperblock> found;
    for (std::uint8_t place = 0; place < 5; ++place) found.push_back(kept_by(place));
    auto other = found;
    other[2].cluster.octets[1] = 7;
    EXPECT_EQ(assemble(other).error().code, Code::malformed);
    other = found;
    other[2].volume.volume.octets[1] = 7;
    EXPECT_EQ(assemble(other).error().code, Code::malformed);
    other = found;
    other[2].volume.stripes = 7;
    EXPECT_EQ(assemble(other).error().code, Code::malformed) << "one generation, two opinions";
}

TEST(Record, IsReadBackOrRefused) {
    wire::ArrayRebuildRecord record{.place = 3, .paused = true, .stripes = 12};
    auto octets = encode_record(record);
    EXPECT_EQ(*parse_record<wire::ArrayRebuildRecord>(octets), record);
    for (std::size_t size = 0; size < octets.size(); ++size)
        EXPECT_FALSE(parse_record<wire::ArrayRebuildRecord>(ConstBuffer(octets).first(size)));
    for (std::size_t i = 0; i < octets.size(); ++i) {
        octets[i] ^= std::byte{0x40};
        EXPECT_FALSE(parse_record<wire::ArrayRebuildRecord>(octets)) << i;
        octets[i] ^= std::byte{0x40};
    }
    EXPECT_FALSE(parse_record<wire::ArraySpareRecord>(octets)) << "another kind";
    auto volume = kept_by(0).volume;
    EXPECT_EQ(*parse_record<wire::ArrayVolume>(encode_record(volume)), volume);
}

TEST(Record, HasTheChecksumOthersCompute) {
    auto golden = test::golden("raid/records.hex");
    ConstBuffer rest(golden);
    auto take = [&](std::size_t body) {
        auto part = rest.first(8 + body + 4);
        rest = rest.subspan(part.size());
        return part;
    };
    EXPECT_TRUE(parse_record<wire::ArrayClusterRecord>(take(40)));
    EXPECT_TRUE(parse_record<wire::ArrayBoxRecord>(take(152)));
    EXPECT_TRUE(parse_record<wire::ArraySpareRecord>(take(16)));
    EXPECT_TRUE(parse_record<wire::ArrayHostRecord>(take(88)));
    EXPECT_EQ(parse_record<wire::ArrayRebuildRecord>(take(40))->stripes, 77u);
    EXPECT_EQ(parse_record<wire::ArrayEventRecord>(take(400))->number, 41u);
    EXPECT_TRUE(rest.empty());
}

TEST(Field, HoldsTextThatFits) {
    Octets<8> field{};
    EXPECT_TRUE(set_field(field, "seven77"));
    EXPECT_EQ(text_of_field(field), "seven77");
    EXPECT_FALSE(set_field(field, "eight888"));
    EXPECT_EQ(text_of_field(field), "seven77");
}

}  // namespace
}  // namespace weft::raid
