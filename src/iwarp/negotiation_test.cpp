// SPDX-License-Identifier: Apache-2.0
// Wishes and frames in, frames and terms out, as tables. A frame is written as its flags, its
// revision and its enhanced terms: "50 02 8001 c001". See wire/mpa.hpp for the bits.
#include "iwarp/negotiation.hpp"

#include <gtest/gtest.h>

#include <string>

#include "iwarp/fault.hpp"
#include "support/golden.hpp"

namespace weft::iwarp {
namespace {

using test::from_hex;
using wire::MpaError;

StartupFrame frame(std::string_view text) {
    auto octets = from_hex(text);
    auto header = test::join({ConstBuffer(octets).first(2), from_hex("0000")});
    StartupFrame read{.terms = *decode<wire::MpaTerms>(header), .enhanced = {}};
    if (octets.size() > 2)
        read.enhanced = *decode<wire::EnhancedTerms>(ConstBuffer(octets).subspan(2));
    return read;
}
std::string text(const StartupFrame& frame) {
    EXPECT_EQ(frame.terms.enhanced, frame.enhanced.has_value());
    auto octets = test::join({ConstBuffer(encoded(frame.terms)).first(2)});
    if (frame.enhanced) octets = test::join({octets, encoded(*frame.enhanced)});
    return test::to_hex(octets);
}
std::string same_spacing(std::string_view hex) {
    return test::to_hex(from_hex(hex));
}

/// As "checksum, markers in, reads 16/1, ready by write, siw"; what is absent is not mentioned.
std::string text(const Terms& terms) {
    constexpr const char* ready[] = {"", ", ready by send", ", ready by write", ", ready by read"};
    constexpr const char* peer[] = {"", ", siw", ", weft"};
    std::string words;
    if (terms.checksum) words += "checksum, ";
    if (terms.markers_in) words += "markers in, ";
    if (terms.markers_out) words += "markers out, ";
    return words + "reads " + std::to_string(terms.inbound_reads) + "/" +
           std::to_string(terms.outbound_reads) + ready[static_cast<int>(terms.ready)] +
           peer[static_cast<int>(terms.peer)];
}

constexpr Wishes plain{.checksum = false, .peer_to_peer = false, .show_ourselves = false};
constexpr Wishes with(Wishes wishes, auto change) {
    change(wishes);
    return wishes;
}
constexpr Wishes reads(Wishes wishes, std::uint16_t inbound, std::uint16_t outbound) {
    wishes.inbound_reads = inbound;
    wishes.outbound_reads = outbound;
    return wishes;
}

TEST(StartupRequest, SaysWhatIsWished) {
    const struct {
        Wishes wishes;
        std::string_view request;
    } rows[] = {
        {{}, "5c 02 c010 c010"},
        {plain, "10 02 0010 0010"},
        {with(plain, [](auto& w) { w.markers = true; }), "90 02 0010 0010"},
        {with(plain, [](auto& w) { w.checksum = true; }), "50 02 0010 0010"},
        {with(plain, [](auto& w) { w.show_ourselves = true; }), "1c 02 0010 0010"},
        {with(plain, [](auto& w) { w.revision = 1; }), "00 01"},
        {with({}, [](auto& w) { w.revision = 1; }), "4c 01"},
        {with({}, [](auto& w) { w.ready_by_send = false; }), "5c 02 8010 c010"},
        {with({}, [](auto& w) { w.ready_by_read = w.ready_by_send = false; }), "5c 02 8010 8010"},
        {reads(plain, 0, 0x3ffe), "10 02 0000 3ffe"},
        // The read that would show readiness counts, though the application wants none.
        {reads({}, 3, 0), "5c 02 c003 c001"},
        {with(reads({}, 3, 0), [](auto& w) { w.ready_by_read = false; }), "5c 02 c003 8000"},
        {reads(plain, 3, 0), "10 02 0003 0000"},
    };
    for (const auto& row : rows)
        EXPECT_EQ(text(request_for(row.wishes)), same_spacing(row.request));
}

TEST(StartupWishes, AreRefusedIfNoFrameCanSayThem) {
    auto refused = [](Role role, Wishes wishes) {
        auto checked = check_wishes(role, wishes);
        return checked ? std::nullopt : std::optional(checked.error().code);
    };
    for (auto role : {Role::initiator, Role::responder}) {
        EXPECT_EQ(refused(role, {}), std::nullopt);
        EXPECT_EQ(refused(role, reads({}, 0x3ffe, 0x3ffe)), std::nullopt);
        EXPECT_EQ(refused(role, reads({}, 0x3fff, 0)), Code::out_of_range);
        EXPECT_EQ(refused(role, reads({}, 0, 0x3fff)), Code::out_of_range);
        EXPECT_EQ(refused(role, {.inbound_reads_max = 0x3fff}), Code::out_of_range);
    }
    EXPECT_EQ(refused(Role::initiator, {.revision = 0}), Code::unsupported);
    EXPECT_EQ(refused(Role::initiator, {.revision = 3}), Code::unsupported);
    Wishes mute{.ready_by_send = false, .ready_by_write = false, .ready_by_read = false};
    EXPECT_EQ(refused(Role::initiator, mute), Code::unsupported);
    EXPECT_EQ(refused(Role::responder, mute), std::nullopt) << "it has nothing to send";
    mute.revision = 1;
    EXPECT_EQ(refused(Role::initiator, mute), std::nullopt) << "there is no place to ask";
}

struct AnswerRow {
    const char* what;
    Wishes wishes;
    std::string_view request;
    std::string_view reply;
    std::string_view terms;
};

const AnswerRow answers[] = {
    {"siw to siw", reads(plain, 1, 1), "10 02 0001 0001", "10 02 0001 0001", "reads 1/1, siw"},
    {"siw, not trusted", with(plain, [](auto& w) { w.trust_plain_siw = false; }), "10 02 0001 0001",
     "10 02 0010 0001", "reads 16/1"},
    {"nearly siw", plain, "30 02 0001 0001", "10 02 0010 0001", "reads 16/1"},
    {"Weft to Weft",
     {},
     "5c 02 c010 c010",
     "5e 02 8010 8010",
     "checksum, reads 16/16, ready by write, weft"},
    {"Weft to a Weft that hides", with({}, [](auto& w) { w.show_ourselves = false; }),
     "5c 02 c010 c010", "50 02 8010 8010", "checksum, reads 16/16, ready by write"},
    {"a siw that tries large FPDUs", plain, "18 02 0001 0001", "10 02 0010 0001",
     "reads 16/1, siw"},
    {"the same, told that we take them", with(plain, [](auto& w) { w.show_ourselves = true; }),
     "18 02 0001 0001", "18 02 0010 0001", "reads 16/1, siw"},
    {"flags that mean nothing to us", with(plain, [](auto& w) { w.show_ourselves = true; }),
     "13 02 0001 0001", "10 02 0010 0001", "reads 16/1"},
    {"Chelsio", plain, "50 02 8020 4020", "50 02 8020 4010",
     "checksum, reads 32/16, ready by read"},

    {"revision 0", plain, "00 00", "00 00", "reads 16/16"},
    {"revision 1", plain, "00 01", "00 01", "reads 16/16"},
    {"revision 2 without enhanced terms", plain, "00 02", "00 02", "reads 16/16"},
    {"Weft with revision 1", {}, "4c 01", "4e 01", "checksum, reads 16/16, weft"},

    {"their checksum", plain, "40 01", "40 01", "checksum, reads 16/16"},
    {"our checksum", with(plain, [](auto& w) { w.checksum = true; }), "00 01", "40 01",
     "checksum, reads 16/16"},
    {"their markers", plain, "80 01", "00 01", "markers out, reads 16/16"},
    {"our markers", with(plain, [](auto& w) { w.markers = true; }), "00 01", "80 01",
     "markers in, reads 16/16"},
    {"both markers", with(plain, [](auto& w) { w.markers = true; }), "80 01", "80 01",
     "markers in, markers out, reads 16/16"},
    {"a rejection bit, which is not looked at", plain, "60 01", "40 01", "checksum, reads 16/16"},

    {"all ways to be ready", plain, "50 02 c001 c001", "50 02 8010 8001",
     "checksum, reads 16/1, ready by write"},
    {"write or send", plain, "50 02 c001 8001", "50 02 8010 8001",
     "checksum, reads 16/1, ready by write"},
    {"read or send", plain, "50 02 c001 4001", "50 02 8010 4001",
     "checksum, reads 16/1, ready by read"},
    {"only send", plain, "50 02 c001 0001", "50 02 c010 0001",
     "checksum, reads 16/1, ready by send"},
    {"no way to be ready", plain, "50 02 8001 0001", "50 02 8010 8001",
     "checksum, reads 16/1, ready by write"},
    {"ways to be ready without need", plain, "50 02 4001 c001", "50 02 0010 0001",
     "checksum, reads 16/1"},

    {"reads we lower", reads(plain, 4, 8), "50 02 0003 0002", "50 02 0004 0003",
     "checksum, reads 4/3"},
    {"reads we raise", reads(plain, 4, 8), "50 02 0009 0080", "50 02 0080 0008",
     "checksum, reads 128/8"},
    {"reads we cannot raise", reads(plain, 4, 8), "50 02 0000 0081", "50 02 0080 0000",
     "checksum, reads 128/0"},
    {"a limit below our own wish", with(plain, [](auto& w) { w.inbound_reads_max = 2; }),
     "50 02 0000 0081", "50 02 0010 0000", "checksum, reads 16/0"},
    {"their inbound reads not negotiated", reads(plain, 4, 8), "50 02 3fff 0005", "50 02 0005 3fff",
     "checksum, reads 5/8"},
    {"their outbound reads not negotiated", reads(plain, 4, 8), "50 02 0002 3fff",
     "50 02 3fff 0002", "checksum, reads 4/2"},
    {"nothing negotiated", reads(plain, 4, 8), "50 02 3fff 3fff", "50 02 3fff 3fff",
     "checksum, reads 4/8"},
    {"a read to be ready, where none is served",
     with(reads(plain, 0, 0), [](auto& w) { w.inbound_reads_max = 0; }), "50 02 8000 4000",
     "50 02 8001 4000", "checksum, reads 1/0, ready by read"},
    {"the same, not negotiated", reads(plain, 0, 0), "50 02 8000 7fff", "50 02 bfff 4000",
     "checksum, reads 1/0, ready by read"},
};

TEST(StartupAnswer, FollowsFromRequestAndWishes) {
    for (const auto& row : answers) {
        auto answer = answer_to(frame(row.request), row.wishes);
        EXPECT_EQ(text(answer.reply), same_spacing(row.reply)) << row.what;
        EXPECT_EQ(text(answer.terms), row.terms) << row.what;
        EXPECT_EQ(answer.terms.role, Role::responder);
    }
}

TEST(StartupRejection, SaysWhatWouldHaveBeenWished) {
    auto markers = with(reads({}, 4, 8), [](auto& w) { w.markers = true; });
    const struct {
        Wishes wishes;
        std::string_view request;
        std::string_view reply;
    } rows[] = {
        {markers, "00 01", "60 01"},
        {markers, "00 00", "60 00"},
        {markers, "90 02 0002 0001", "70 02 0004 0008"},
        {markers, "10 02 3fff 0001", "70 02 0004 3fff"},
        {markers, "5c 02 c002 c001", "7e 02 8004 8008"},
    };
    for (const auto& row : rows)
        EXPECT_EQ(text(rejection_of(frame(row.request), row.wishes)), same_spacing(row.reply));
}

struct ConclusionRow {
    const char* what;
    Wishes wishes;
    std::string_view reply;
    std::string_view terms;
};

const ConclusionRow conclusions[] = {
    {"siw to siw", reads(plain, 1, 1), "10 02 0001 0001", "reads 1/1"},
    {"Weft", {}, "5e 02 8010 8010", "checksum, reads 16/16, ready by write, weft"},
    {"siw, which echoes", {}, "5c 02 8001 8001", "checksum, reads 16/1, ready by write, siw"},
    {"half an echo", {}, "58 02 8001 8001", "checksum, reads 16/1, ready by write"},
    {"hardware", {}, "50 02 8001 8001", "checksum, reads 16/1, ready by write"},
    {"all flags, though we showed nothing", plain, "1f 02 0010 0010", "reads 16/16"},

    {"revision 1", with(plain, [](auto& w) { w.revision = 1; }), "00 01", "reads 16/16"},
    {"revision 1 from siw", with({}, [](auto& w) { w.revision = 1; }), "4c 01",
     "checksum, reads 16/16, siw"},
    {"revision 1 from Weft", with({}, [](auto& w) { w.revision = 1; }), "4e 01",
     "checksum, reads 16/16, weft"},
    {"plain frames of others", with(plain, [](auto& w) { w.revision = 1; }), "00 02",
     "reads 16/16"},
    {"of others still", with(plain, [](auto& w) { w.revision = 1; }), "00 00", "reads 16/16"},

    {"their checksum", plain, "50 02 0010 0010", "checksum, reads 16/16"},
    {"our checksum", with(plain, [](auto& w) { w.checksum = true; }), "10 02 0010 0010",
     "checksum, reads 16/16"},
    {"their markers", plain, "90 02 0010 0010", "markers out, reads 16/16"},
    {"our markers", with(plain, [](auto& w) { w.markers = true; }), "10 02 0010 0010",
     "markers in, reads 16/16"},

    {"ready by read", {}, "50 02 8010 4010", "checksum, reads 16/16, ready by read"},
    {"ready by send", {}, "50 02 c010 0010", "checksum, reads 16/16, ready by send"},
    {"any way to be ready", {}, "50 02 c010 c010", "checksum, reads 16/16, ready by write"},
    {"the way we know", with({}, [](auto& w) { w.ready_by_write = w.ready_by_read = false; }),
     "50 02 c010 c010", "checksum, reads 16/16, ready by send"},
    {"a way we did not offer is not needed", with({}, [](auto& w) { w.ready_by_write = false; }),
     "50 02 8010 c010", "checksum, reads 16/16, ready by read"},
    {"ways to be ready without need", plain, "10 02 4010 c010", "reads 16/16"},

    {"fewer reads served", reads(plain, 4, 8), "10 02 0003 0004", "reads 4/3"},
    {"more reads served", reads(plain, 4, 8), "10 02 0009 0002", "reads 4/8"},
    {"more reads wanted", reads(plain, 4, 8), "10 02 0008 0080", "reads 128/8"},
    {"their inbound reads not negotiated", reads(plain, 4, 8), "10 02 3fff 0005", "reads 5/8"},
    {"their outbound reads not negotiated", reads(plain, 4, 8), "10 02 0002 3fff", "reads 4/2"},
    {"a read to be ready, where none is wanted", reads({}, 4, 0), "50 02 8001 4000",
     "checksum, reads 4/1, ready by read"},
    {"a write to be ready, where no read is wanted", reads({}, 4, 0), "50 02 8001 8000",
     "checksum, reads 4/0, ready by write"},
    {"a read to be ready, where none is said to be served", reads({}, 4, 2), "50 02 8000 4000",
     "checksum, reads 4/1, ready by read"},
};

TEST(StartupConclusion, FollowsFromReplyAndWishes) {
    for (const auto& row : conclusions) {
        auto terms = conclude(frame(row.reply), row.wishes);
        ASSERT_TRUE(terms) << row.what;
        EXPECT_EQ(text(*terms), row.terms) << row.what;
        EXPECT_EQ(terms->role, Role::initiator);
    }
}

TEST(StartupConclusion, IsRefusedInTheWordsOfATerminate) {
    auto old = with(plain, [](auto& w) { w.revision = 1; });
    auto only_send = with({}, [](auto& w) { w.ready_by_write = w.ready_by_read = false; });
    const struct {
        const char* what;
        Wishes wishes;
        std::string_view reply;
        Code code;
        MpaError why;
    } rows[] = {
        {"not enhanced", {}, "40 02", Code::malformed, MpaError::invalid_startup_frame},
        {"older", {}, "40 01", Code::malformed, MpaError::invalid_startup_frame},
        {"enhanced unasked", old, "10 02 0001 0001", Code::malformed,
         MpaError::invalid_startup_frame},
        {"peer to peer unasked", plain, "10 02 8001 8001", Code::malformed,
         MpaError::invalid_startup_frame},
        {"no peer to peer",
         {},
         "50 02 0010 0010",
         Code::unsupported,
         MpaError::no_matching_ready_message},
        {"no peer to peer, with ways to be ready",
         {},
         "50 02 4010 c010",
         Code::unsupported,
         MpaError::no_matching_ready_message},
        {"no way to be ready",
         {},
         "50 02 8010 0010",
         Code::unsupported,
         MpaError::no_matching_ready_message},
        {"not our way to be ready", only_send, "50 02 8010 c010", Code::unsupported,
         MpaError::no_matching_ready_message},
        {"too many reads wanted", plain, "10 02 0010 0081", Code::exhausted,
         MpaError::insufficient_inbound_reads},
    };
    for (const auto& row : rows) {
        auto terms = conclude(frame(row.reply), row.wishes);
        ASSERT_FALSE(terms) << row.what;
        EXPECT_EQ(terms.error().code, row.code) << row.what;
        EXPECT_EQ(control_of(terms.error()), wire::terminate_for(row.why)) << row.what;
    }
}

TEST(StartupRevision, IsOneOfThree) {
    for (int revision = 0; revision < 256; ++revision) {
        auto checked = check_revision({.revision = static_cast<std::uint8_t>(revision)});
        EXPECT_EQ(checked.has_value(), revision <= 2) << revision;
        if (!checked) {
            EXPECT_EQ(checked.error().code, Code::unsupported);
        }
    }
}

/// Both sides of one negotiation, whatever they wish for.
void expect_one_mind(const Wishes& ours, const Wishes& theirs) {
    auto request = request_for(ours);
    auto answer = answer_to(request, theirs);
    auto concluded = conclude(answer.reply, ours);
    SCOPED_TRACE(text(request) + ": " + text(answer.reply));
    ASSERT_TRUE(concluded);
    const auto &initiator = *concluded, &responder = answer.terms;
    EXPECT_EQ(initiator.checksum, ours.checksum || theirs.checksum);
    EXPECT_EQ(initiator.checksum, responder.checksum);
    EXPECT_EQ(initiator.markers_in, ours.markers);
    EXPECT_EQ(initiator.markers_in, responder.markers_out);
    EXPECT_EQ(responder.markers_in, theirs.markers);
    EXPECT_EQ(responder.markers_in, initiator.markers_out);
    EXPECT_EQ(initiator.ready, responder.ready);
    EXPECT_EQ(initiator.ready != ReadyMessage::none, ours.peer_to_peer && ours.revision == 2);
    EXPECT_EQ(initiator.peer == Peer::weft, ours.show_ourselves && theirs.show_ourselves);
    EXPECT_EQ(responder.peer == Peer::weft, initiator.peer == Peer::weft);
    if (ours.revision < 2) return;
    EXPECT_LE(initiator.outbound_reads, responder.inbound_reads);
    EXPECT_LE(responder.outbound_reads, initiator.inbound_reads);
    EXPECT_LE(responder.outbound_reads, theirs.outbound_reads);
    if (initiator.ready == ReadyMessage::read) {
        EXPECT_GE(initiator.outbound_reads, 1u);
    } else {
        EXPECT_LE(initiator.outbound_reads, ours.outbound_reads);
    }
}

TEST(StartupNegotiation, LeavesBothSidesOfOneMind) {
    constexpr std::uint16_t depths[] = {0, 1, 16, 127, 128, 129, 0x3ffe};
    for (int flags = 0; flags < 1 << 10; ++flags) {
        auto flag = [flags](int bit) { return (flags >> bit & 1) != 0; };
        Wishes ours{.revision = static_cast<std::uint8_t>(flag(0) ? 1 : 2),
                    .checksum = flag(1),
                    .markers = flag(2),
                    .peer_to_peer = flag(3),
                    .ready_by_send = flag(4),
                    .ready_by_write = flag(5),
                    .ready_by_read = flag(6),
                    .show_ourselves = flag(7)};
        Wishes theirs{.checksum = flag(8), .markers = flag(9), .show_ourselves = flag(1)};
        if (!check_wishes(Role::initiator, ours)) continue;
        expect_one_mind(ours, theirs);
    }
    for (auto inbound : depths)
        for (auto outbound : depths)
            for (auto their_inbound : depths)
                for (auto their_outbound : depths)
                    for (bool only_read : {false, true}) {
                        auto ours = reads({}, inbound, outbound);
                        ours.ready_by_write = ours.ready_by_send = !only_read;
                        expect_one_mind(ours, reads({}, their_inbound, their_outbound));
                    }
}

}  // namespace
}  // namespace weft::iwarp
