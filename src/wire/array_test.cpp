// SPDX-License-Identifier: Apache-2.0
// The array's own formats, as tests/golden/raid/array.py writes them.
#include <gtest/gtest.h>

#include "support/header_walk.hpp"
#include "wire/array_box.hpp"
#include "wire/array_connection.hpp"
#include "wire/array_host.hpp"
#include "wire/array_superblock.hpp"
#include "wire/scsi_array.hpp"

namespace weft::wire {
namespace {

using test::HeaderWalk;

Octets<16> counting(std::uint8_t from) {
    Octets<16> octets;
    for (auto& octet : octets) octet = from++;
    return octets;
}
Octets<32> long_counting(std::uint8_t from) {
    Octets<32> octets;
    for (auto& octet : octets) octet = from++;
    return octets;
}
template <std::size_t size>
Octets<size> field(std::string_view text) {
    Octets<size> octets{};
    std::copy(text.begin(), text.end(), octets.begin());
    return octets;
}

const ArrayAddress address{.cluster = {counting(0x10)},
                           .volume = {counting(0x20)},
                           .box = {counting(0x30)},
                           .generation = Generation{7},
                           .epoch = Epoch{3}};

BoxIdentity session(std::uint64_t number) {
    BoxIdentity identity;
    for (std::size_t i = 0; i < 8; ++i)
        identity.octets[15 - i] = static_cast<std::uint8_t>(number >> 8 * i);
    return identity;
}

TEST(ArrayIdentity, IsWrittenInDigits) {
    EXPECT_EQ(to_digits(BoxIdentity{{0x0f, 0xa0}}), "0fa00000000000000000000000000000");
}

TEST(ArrayOrder, IsACommandBlockAHeaderPartiesAndPieces) {
    HeaderWalk walk("raid/order.hex");
    walk.expect(ArrayCommandBlock{.action = ArrayAction::vectored_order,
                                  .transaction = TransactionNumber{0x1122334455667788},
                                  .parameter_length = 144 + 5 * 32});
    walk.expect(ArrayOrderHeader{.address = address,
                                 .host = HostSession{0x0a0b0c0d},
                                 .host_command = 0x99,
                                 .participants = 0b10001,
                                 .window = 2,
                                 .window_tag = SteeringTag{0x12345},
                                 .window_length = 8192,
                                 .phase = 2,
                                 .round = 1,
                                 .prepares = true,
                                 .party_count = 2,
                                 .piece_count = 3,
                                 .settled = TransactionNumber{0x1122334455667700},
                                 .host_identity = {counting(0x50)},
                                 .lease_ms = 5000,
                                 .to_prepare = 4096});
    walk.expect(ArrayParty{.kind = 0,
                           .tag = SteeringTag{0xabcdef01},
                           .base = 0x7f0000001000,
                           .identity = session(0x0a0b0c0d)});
    walk.expect(
        ArrayParty{.kind = 2, .box = 3, .tag = SteeringTag{0x45607}, .identity = {counting(0x40)}});
    walk.expect(ArrayPiece{.verb = 1, .party = 0, .length = 4096, .at = 0x2000});
    walk.expect(ArrayPiece{.verb = 1,
                           .blend = 2,
                           .column = 5,
                           .party = 1,
                           .length = 4096,
                           .slot = 4096,
                           .at = 0x3000});
    walk.expect(ArrayPiece{
        .verb = 2, .blend = 1, .party = no_array_party, .length = 4096, .home = 0x40000});
    walk.expect_end();
}

TEST(ArrayOrder, IsAnsweredInTheSenseData) {
    HeaderWalk walk("raid/answer.hex");
    ArrayAnswer answer{.outcome = ArrayOutcome::peer_unreachable,
                       .party = 1,
                       .piece = 2,
                       .transaction = TransactionNumber{0x1122334455667788},
                       .generation = Generation{8},
                       .epoch = Epoch{4},
                       .row_digest = 0xdeadbeef};
    for (std::uint32_t i = 0; i < 16; ++i) answer.diagonal_digests[i] = 0x100 + i;
    walk.expect(answer);
    walk.expect_end();
}

TEST(ArrayRecall, ListsTransactionsAndNotes) {
    HeaderWalk walk("raid/recall.hex");
    walk.expect(ArrayRecallHead{
        .settled = TransactionNumber{0x30000000010}, .transactions = 1, .notes = 1});
    walk.expect(ArrayRecalled{.transaction = TransactionNumber{0x30000000011},
                              .generation = Generation{7},
                              .host = HostSession{0x0a0b0c0d},
                              .host_identity = {counting(0x50)},
                              .host_command = 0x99,
                              .home = 1 << 20,
                              .length = 8192,
                              .participants = 0b10001,
                              .state = ArrayTransactionState::committed,
                              .restores = true,
                              .sum = 0x123456});
    walk.expect(ArrayExecutedNote{.transaction = TransactionNumber{0x3000000000f},
                                  .host_identity = {counting(0x50)},
                                  .host_command = 0x98});
    walk.expect_end();
}

TEST(ArraySuperblock, SaysAllThereIsToKnowOfTheVolume) {
    HeaderWalk walk("raid/superblock.hex");
    ArraySuperblock superblock{.written = 42,
                               .cluster = {counting(0x10)},
                               .box = {counting(0x30)},
                               .place = 0,
                               .columns = 2,
                               .epoch = Epoch{3},
                               .data_offset = 1 << 20,
                               .data_length = 1 << 30,
                               .journal_offset = 8192,
                               .journal_length = 1 << 19,
                               .volume = {.volume = {counting(0x20)},
                                          .name = field<64>("photos"),
                                          .generation = Generation{7},
                                          .level = 5,
                                          .boxes = 3,
                                          .consistency = ArrayConsistency::journal,
                                          .chunk_bytes = 128 * 1024,
                                          .stripes = 8192}};
    superblock.volume.members[0] = {{counting(0x30)}, ArrayMemberState::current, 0};
    superblock.volume.members[1] = {{counting(0x40)}, ArrayMemberState::rebuilding, 77};
    superblock.volume.members[2] = {{}, ArrayMemberState::absent, 0};
    walk.expect(superblock);
    walk.take(superblock_size - wire_size<ArraySuperblock>());
    walk.expect_end();
}

TEST(ArrayBox, SaysWhatItIsAndKeepsWhoItIs) {
    HeaderWalk walk("raid/box.hex");
    walk.expect(ArrayBoxDescription{.box = {counting(0x30)},
                                    .cluster = {counting(0x10)},
                                    .epoch = Epoch{3},
                                    .boot = 0x0102030405060708,
                                    .name = field<64>("oak"),
                                    .size = 1 << 30,
                                    .free = 1 << 29,
                                    .window_limit = 4 << 20,
                                    .windows = 32,
                                    .parts = 2,
                                    .left_out = 1});
    walk.expect(ArrayLeftOutPart{.volume = {counting(0x20)}, .size = 1 << 28, .damaged = true});
    walk.expect(ArrayBoxFile{.box = {counting(0x30)},
                             .cluster = {counting(0x10)},
                             .epoch = Epoch{3},
                             .name = field<64>("oak"),
                             .parts = 1});
    walk.expect(
        ArrayBoxPart{.volume = {counting(0x20)}, .size = 1 << 29, .number = 5, .begun = true});
    walk.expect_end();
}

TEST(ArrayRecord, HasAHeadABodyAndAChecksum) {
    HeaderWalk walk("raid/records.hex");
    auto expect = [&](ArrayRecordKind kind, const auto& body) {
        using Body = std::remove_cvref_t<decltype(body)>;
        walk.expect(ArrayRecordHead{.kind = kind, .body_length = wire_size<Body>()});
        walk.expect(body);
        walk.take(4);
    };
    expect(ArrayRecordKind::cluster,
           ArrayClusterRecord{
               .cluster = {counting(0x10)}, .epoch = Epoch{3}, .controller = counting(0x40)});
    expect(ArrayRecordKind::box, ArrayBoxRecord{.box = {counting(0x30)},
                                                .name = field<64>("oak"),
                                                .address = field<64>("127.0.0.1:3260"),
                                                .size = 1 << 30});
    expect(ArrayRecordKind::spare, ArraySpareRecord{.box = {counting(0x40)}});
    expect(ArrayRecordKind::host, ArrayHostRecord{.name = field<64>("desk"),
                                                  .session = HostSession{0x0a0b0c0d},
                                                  .volume = {counting(0x20)}});
    expect(ArrayRecordKind::rebuild, ArrayRebuildRecord{.volume = {counting(0x20)},
                                                        .place = 1,
                                                        .paused = true,
                                                        .stripes = 77,
                                                        .octets_per_second = 50'000'000});
    expect(ArrayRecordKind::event, ArrayEventRecord{.number = 41,
                                                    .when = 1'790'000'000'000'000'000,
                                                    .volume = field<64>("photos"),
                                                    .box = field<64>("oak"),
                                                    .what = field<256>("member absent")});
    walk.expect_end();
}

TEST(ArrayConnection, IsGreetedWelcomedAndProved) {
    HeaderWalk walk("raid/greetings.hex");
    walk.expect(ArrayGreeting{.cluster = {counting(0x10)},
                              .epoch = Epoch{3},
                              .from = {ArrayRole::box, {counting(0x30)}},
                              .to = {ArrayRole::host, session(9)},
                              .fresh = long_counting(0)});
    walk.expect(
        ArrayWelcome{.epoch = Epoch{3}, .fresh = long_counting(32), .proof = long_counting(64)});
    walk.expect(ArrayProof{.proof = long_counting(96)});
    walk.expect(ArrayReady{});
    walk.expect(ArrayPeerList{.address = address, .count = 1});
    Octets<16> four_mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
    walk.expect(ArrayPeer{.box = {counting(0x40)},
                          .place = 3,
                          .port = 3260,
                          .address = four_mapped,
                          .secret = long_counting(0)});
    walk.expect(
        ArrayHostAdmission{.address = address,
                           .host = HostSession{9},
                           .port = 4000,
                           .network_address = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
                           .secret = long_counting(0)});
    walk.expect_end();
}

TEST(ArrayHost, SaysHelloAndAsksForTransfers) {
    HeaderWalk walk("raid/host.hex");
    walk.expect(HostCommandBlock{.action = HostAction::hello, .parameter_length = 120});
    walk.expect(HostHello{.name = field<64>("desk"),
                          .previous = HostSession{8},
                          .port = 4000,
                          .network_address = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
                          .identity = {counting(0x50)}});
    walk.expect(HostWelcome{.outcome = HostOutcome::done,
                            .session = HostSession{9},
                            .cluster = {counting(0x10)},
                            .volume = {counting(0x20)},
                            .epoch = Epoch{3},
                            .size = 1ull << 40,
                            .request_limit = 1 << 20,
                            .roster = 4,
                            .secret = long_counting(0)});
    walk.expect(
        HostCommandBlock{.action = HostAction::write, .command = 77, .parameter_length = 56});
    walk.expect(HostTransfer{.session = HostSession{9},
                             .command = 77,
                             .offset = 1ull << 33,
                             .length = 12288,
                             .tag = SteeringTag{0xabcdef01},
                             .base = 0x1000,
                             .durable = true,
                             .repeated = true,
                             .heard = 4,
                             .released = 0x10203});
    walk.expect(HostAnswer{
        .outcome = HostOutcome::later, .command = 77, .size = 1ull << 40, .leaves_writers = true});
    walk.expect(HostNews{.number = 5, .box = {counting(0x30)}, .may_come = false});
    walk.expect(HostNews{.number = 6, .box = {counting(0x40)}, .may_come = true});
    walk.expect(HostRelease{.number = 0x10204, .command = 77});
    walk.expect_end();
    EXPECT_EQ(identity_of(HostSession{0x0a0b0c0d}), session(0x0a0b0c0d));
    EXPECT_EQ(volume_target_name("photos"), "iqn.2026-11.io.weft:volume.photos");
    EXPECT_TRUE(is_of_host(0x44));
    EXPECT_FALSE(is_of_host(0x3f));
    EXPECT_FALSE(is_of_host(0x45));
}

}  // namespace
}  // namespace weft::wire
