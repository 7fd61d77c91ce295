// SPDX-License-Identifier: Apache-2.0
// NBD's headers against bytes that qemu, nbdkit and libnbd sent (tests/golden/nbd): reading them
// gives what they meant, writing that gives the same bytes again.
#include "wire/nbd.hpp"

#include <gtest/gtest.h>

#include "support/golden.hpp"

namespace weft::wire::nbd {
namespace {

constexpr std::uint64_t qemu_cookie = 0x5651c67380e0;

test::Bytes with_flipped_bit(test::Bytes octets, std::size_t at) {
    octets[at] ^= std::byte{1};
    return octets;
}

/// What every header must satisfy: `octets` is exactly one, from elsewhere, and means `expected`.
template <class Header>
void agree(ConstBuffer octets, const Header& expected) {
    ASSERT_EQ(octets.size(), wire_size<Header>());
    auto read = decode<Header>(octets);
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(*read, expected) << to_text(*read) << "\n" << to_text(expected);
    EXPECT_EQ(test::to_hex(encoded(expected)), test::to_hex(octets));
    for (std::size_t size = 0; size < octets.size(); ++size)
        EXPECT_EQ(decode<Header>(octets.first(size)).error().code, Code::truncated);
}

/// The same for a header that begins a golden message or stands inside it.
template <class Header>
void agree(const std::string& name, std::size_t at, const Header& expected) {
    SCOPED_TRACE(name);
    auto message = test::golden("nbd/" + name + ".hex");
    ASSERT_LE(at + wire_size<Header>(), message.size());
    agree(ConstBuffer(message).subspan(at, wire_size<Header>()), expected);
}

template <class Header>
void refuses_broken_magic(const std::string& name, std::size_t magic_size) {
    SCOPED_TRACE(name);
    auto message = test::golden("nbd/" + name + ".hex");
    for (std::size_t at = 0; at < magic_size; ++at) {
        auto refused = decode<Header>(with_flipped_bit(message, at));
        ASSERT_FALSE(refused.has_value()) << "octet " << at;
        EXPECT_EQ(refused.error().code, Code::malformed);
    }
}

constexpr TransmissionFlags nbdkit_memory{.can_flush = true,
                                          .can_write_durably = true,
                                          .can_trim = true,
                                          .can_write_zeroes = true,
                                          .many_connections = true,
                                          .can_cache = true,
                                          .can_zero_fast = true};

constexpr TransmissionFlags with_structured_replies(TransmissionFlags flags) {
    flags.can_keep_together = true;
    return flags;
}

TEST(NbdWire, ReadsTheGreetingAndItsAnswer) {
    agree("greeting", 0, Greeting{.no_zeroes = true, .fixed_newstyle = true});
    agree("client_flags", 0, ClientFlags{.no_zeroes = true, .fixed_newstyle = true});
}

TEST(NbdWire, KeepsClientFlagsItDoesNotKnow) {
    auto flags = decode<ClientFlags>(test::from_hex("80000006"));
    EXPECT_EQ(*flags, (ClientFlags{.unknown = 0x20000001, .no_zeroes = true}));
}

TEST(NbdWire, ReadsEveryOption) {
    agree("option_export_name", 0, OptionHeader{Option::export_name, 0});
    agree("option_abort", 0, OptionHeader{Option::abort, 0});
    agree("option_list", 0, OptionHeader{Option::list, 0});
    agree("option_info", 0, OptionHeader{Option::info, 16});
    agree("option_go", 0, OptionHeader{Option::go, 12});
    agree("option_structured_reply", 0, OptionHeader{Option::structured_reply, 0});
    agree("option_list_meta_context", 0, OptionHeader{Option::list_meta_context, 12});
    agree("option_set_meta_context", 0, OptionHeader{Option::set_meta_context, 31});
}

TEST(NbdWire, ReadsEveryOptionReply) {
    using enum OptionReplyType;
    agree("reply_ack", 0, OptionReplyHeader{Option::structured_reply, ack, 0});
    agree("reply_server", 0, OptionReplyHeader{Option::list, server, 20});
    agree("reply_info_name", 0, OptionReplyHeader{Option::info, OptionReplyType::info, 6});
    agree("reply_info_description", 0, OptionReplyHeader{Option::go, OptionReplyType::info, 14});
    agree("reply_info_export", 0, OptionReplyHeader{Option::go, OptionReplyType::info, 12});
    agree("reply_info_block_size", 0, OptionReplyHeader{Option::go, OptionReplyType::info, 14});
    agree("reply_meta_context", 0, OptionReplyHeader{Option::set_meta_context, meta_context, 19});
    agree("reply_error_unsupported", 0,
          OptionReplyHeader{Option::structured_reply, error_unsupported, 0});
    agree("reply_error_unknown", 0, OptionReplyHeader{Option::info, error_unknown, 28});
}

TEST(NbdWire, TellsErrorsFromAnswers) {
    EXPECT_FALSE(is_error(OptionReplyType::ack));
    EXPECT_FALSE(is_error(OptionReplyType::meta_context));
    EXPECT_TRUE(is_error(OptionReplyType::error_unsupported));
    EXPECT_TRUE(is_error(OptionReplyType{0xffffffff}));
    EXPECT_FALSE(is_error(ChunkType::none));
    EXPECT_FALSE(is_error(ChunkType::block_status));
    EXPECT_TRUE(is_error(ChunkType::error_offset));
    EXPECT_TRUE(is_error(ChunkType{0xffff}));
}

TEST(NbdWire, ReadsWhatAnOptionReplyCarries) {
    agree("reply_info_export", 20, InfoExport{1 << 20, with_structured_replies(nbdkit_memory)});
    agree("reply_info_block_size", 20, InfoBlockSize{1, 4096, 32u << 20});
    agree("reply_meta_context", 20, MetaContextId{0});
    auto message = test::golden("nbd/reply_meta_context.hex");
    EXPECT_EQ(text_of(ConstBuffer(message).subspan(24)), allocation_context);
}

TEST(NbdWire, ReadsTheEndOfAnOldHandshake) {
    agree("export_name_reply", 0, ExportNameReply{65536, nbdkit_memory});
    agree("export_name_reply_zeroes", 0, ExportNameReply{65536, nbdkit_memory});
    EXPECT_EQ(test::golden("nbd/export_name_reply_zeroes.hex").size(),
              wire_size<ExportNameReply>() + export_name_zeroes);
}

TEST(NbdWire, GivesEveryTransmissionFlagItsBit) {
    auto octets_of = [](TransmissionFlags flags) { return test::to_hex(encoded(flags)); };
    EXPECT_EQ(octets_of({}), "00 01");
    EXPECT_EQ(octets_of({.read_only = true}), "00 03");
    EXPECT_EQ(octets_of({.can_flush = true}), "00 05");
    EXPECT_EQ(octets_of({.can_write_durably = true}), "00 09");
    EXPECT_EQ(octets_of({.rotational = true}), "00 11");
    EXPECT_EQ(octets_of({.can_trim = true}), "00 21");
    EXPECT_EQ(octets_of({.can_write_zeroes = true}), "00 41");
    EXPECT_EQ(octets_of({.can_keep_together = true}), "00 81");
    EXPECT_EQ(octets_of({.many_connections = true}), "01 01");
    EXPECT_EQ(octets_of({.can_cache = true}), "04 01");
    EXPECT_EQ(octets_of({.can_zero_fast = true}), "08 01");
}

TEST(NbdWire, RefusesTransmissionFlagsThatAreNone) {
    EXPECT_EQ(decode<TransmissionFlags>(test::from_hex("0ffe")).error().code, Code::malformed);
}

TEST(NbdWire, ReadsEveryRequest) {
    agree("request_read", 0, RequestHeader{0, Command::read, qemu_cookie, 65024, 1536});
    agree("request_write", 0, RequestHeader{0, Command::write, 1, 0, 4096});
    agree("request_write_durable", 0,
          RequestHeader{flag_durable, Command::write, qemu_cookie, 65536, 512});
    agree("request_flush", 0, RequestHeader{0, Command::flush, qemu_cookie, 0, 0});
    agree("request_trim", 0, RequestHeader{0, Command::trim, qemu_cookie, 4096, 4096});
    agree("request_cache", 0, RequestHeader{0, Command::cache, 2, 4096, 32768});
    agree(
        "request_write_zeroes_no_hole", 0,
        RequestHeader{flag_durable | flag_no_hole, Command::write_zeroes, qemu_cookie, 8192, 4096});
    agree("request_write_zeroes_durable", 0,
          RequestHeader{flag_durable, Command::write_zeroes, qemu_cookie, 12288, 4096});
    agree("request_block_status", 0, RequestHeader{0, Command::block_status, 1, 0, 1 << 20});
    agree("request_block_status_one", 0,
          RequestHeader{flag_one_extent, Command::block_status, qemu_cookie, 0, 1 << 20});
    agree("request_disconnect", 0, RequestHeader{.command = Command::disconnect});
}

TEST(NbdWire, ReadsASimpleReply) {
    agree("simple_reply", 0, SimpleReply{ErrorNumber::none, qemu_cookie});
}

TEST(NbdWire, ReadsEveryChunk) {
    agree("chunk_offset_data", 0, ChunkHeader{true, ChunkType::offset_data, qemu_cookie, 1032});
    agree("chunk_offset_data", 20, DataOffset{65536});

    agree("chunk_offset_hole", 0, ChunkHeader{false, ChunkType::offset_hole, qemu_cookie, 12});
    agree("chunk_offset_hole", 20, HoleRange{65024, 512});

    agree("chunk_block_status", 0, ChunkHeader{true, ChunkType::block_status, 1, 20});
    agree("chunk_block_status", 20, MetaContextId{1});
    agree("chunk_block_status", 24, StatusDescriptor{65536, false, false});
    agree("chunk_block_status", 32, StatusDescriptor{983040, true, true});

    agree("chunk_error", 0, ChunkHeader{true, ChunkType::error, 0x558578b1aff0, 6});
    agree("chunk_error", 20, ChunkError{ErrorNumber::io, 0});
}

TEST(NbdWire, TellsHoleFromZero) {
    EXPECT_EQ(test::to_hex(encoded(StatusDescriptor{1, false, true})), "00 00 00 01 00 00 00 01");
    EXPECT_EQ(test::to_hex(encoded(StatusDescriptor{1, true, false})), "00 00 00 01 00 00 00 02");
}

TEST(NbdWire, RefusesEveryBrokenMagic) {
    refuses_broken_magic<Greeting>("greeting", 16);
    refuses_broken_magic<OptionHeader>("option_go", 8);
    refuses_broken_magic<OptionReplyHeader>("reply_ack", 8);
    refuses_broken_magic<RequestHeader>("request_read", 4);
    refuses_broken_magic<SimpleReply>("simple_reply", 4);
    refuses_broken_magic<ChunkHeader>("chunk_error", 4);
}

}  // namespace
}  // namespace weft::wire::nbd
