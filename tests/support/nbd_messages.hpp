// SPDX-License-Identifier: Apache-2.0
// NBD messages as tests want them: made from a few words, and read back into something to compare.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>

#include "support/golden.hpp"
#include "wire/nbd.hpp"

namespace weft::test {

template <std::size_t Count>
Bytes number(std::uint64_t value) {
    Bytes octets(Count);
    store_big_endian<Count>(value, octets.data());
    return octets;
}

/// A string with its length in front.
inline Bytes counted(std::string_view text) {
    return join({number<4>(text.size()), bytes_of(text)});
}

inline Bytes option(wire::nbd::Option which, ConstBuffer data) {
    auto size = static_cast<std::uint32_t>(data.size());
    return join({encoded(wire::nbd::OptionHeader{which, size}), data});
}

inline Bytes option_reply(wire::nbd::Option which, wire::nbd::OptionReplyType type,
                          ConstBuffer data) {
    auto size = static_cast<std::uint32_t>(data.size());
    return join({encoded(wire::nbd::OptionReplyHeader{which, type, size}), data});
}

/// The data of INFO and GO.
inline Bytes info_question(std::string_view name,
                           std::initializer_list<wire::nbd::InfoType> wants) {
    Bytes data = join({counted(name), number<2>(wants.size())});
    for (auto want : wants) data = join({data, number<2>(static_cast<std::uint16_t>(want))});
    return data;
}

/// The data of LIST_META_CONTEXT and SET_META_CONTEXT.
inline Bytes context_question(std::string_view name,
                              std::initializer_list<std::string_view> queries) {
    Bytes data = join({counted(name), number<4>(queries.size())});
    for (auto query : queries) data = join({data, counted(query)});
    return data;
}

struct OptionAnswer {
    wire::nbd::Option option{};
    wire::nbd::OptionReplyType type{};
    Bytes data;

    bool operator==(const OptionAnswer&) const = default;
};

/// The option replies in `octets`, which must hold nothing else.
inline std::vector<OptionAnswer> option_answers(ConstBuffer octets) {
    std::vector<OptionAnswer> answers;
    while (!octets.empty()) {
        auto header = decode<wire::nbd::OptionReplyHeader>(octets);
        if (!header || octets.size() - 20 < header->length) {
            ADD_FAILURE() << "not an option reply: " << to_hex(octets);
            break;
        }
        auto data = octets.subspan(20, header->length);
        answers.push_back({header->option, header->type, Bytes(data.begin(), data.end())});
        octets = octets.subspan(20 + header->length);
    }
    return answers;
}

/// The answer to one request, simple or of one chunk.
struct Reply {
    std::uint64_t cookie = 0;
    bool structured = false;
    wire::nbd::ErrorNumber error{};
    Bytes data{};                                        ///< of a read
    std::vector<wire::nbd::StatusDescriptor> extents{};  ///< of a block status
};

/// Reads replies off the front of a server's bytes. A simple reply does not say how much payload it
/// has, so the reads under way are told here.
class ReplyReader {
public:
    void expect_read(const wire::nbd::RequestHeader& request) { reads_[request.cookie] = request; }

    std::vector<Reply> read_all(ConstBuffer octets) {
        left_ = octets;
        std::vector<Reply> replies;
        while (!left_.empty()) replies.push_back(next());
        return replies;
    }

private:
    ConstBuffer take(std::size_t size) {
        EXPECT_LE(size, left_.size()) << "a reply is cut off";
        auto part = left_.first(std::min(size, left_.size()));
        left_ = left_.subspan(part.size());
        return part;
    }
    template <class Header>
    Header header() {
        auto read = decode<Header>(take(wire_size<Header>()));
        if (read) return *read;
        ADD_FAILURE() << "not a reply, and nothing after it can be read";
        left_ = {};
        return {};
    }
    Bytes copy(std::size_t size) {
        auto part = take(size);
        return Bytes(part.begin(), part.end());
    }
    Reply next() {
        using namespace wire::nbd;
        if (left_.size() >= 4 && load_big_endian<4>(left_.data()) == structured_reply_magic)
            return chunk(header<ChunkHeader>());
        auto simple = header<SimpleReply>();
        Reply reply{.cookie = simple.cookie, .error = simple.error};
        auto asked = reads_.find(simple.cookie);
        if (asked != reads_.end() && simple.error == ErrorNumber::none)
            reply.data = copy(asked->second.length);
        return reply;
    }
    Reply chunk(const wire::nbd::ChunkHeader& chunk) {
        using namespace wire::nbd;
        EXPECT_TRUE(chunk.done) << "our server sends one chunk";
        Reply reply{.cookie = chunk.cookie, .structured = true};
        if (chunk.type == ChunkType::offset_data) {
            EXPECT_EQ(header<DataOffset>().offset, reads_[chunk.cookie].offset);
            reply.data = copy(chunk.length - 8);
        } else if (chunk.type == ChunkType::block_status) {
            EXPECT_EQ(header<MetaContextId>().id, 1u);
            for (auto i = chunk.length / 8; i > 0; --i)
                reply.extents.push_back(header<StatusDescriptor>());
        } else if (chunk.type == ChunkType::error) {
            auto error = header<ChunkError>();
            reply.error = error.error;
            EXPECT_EQ(chunk.length, 6u + error.message_length);
            EXPECT_FALSE(text_of(take(error.message_length)).empty()) << "an error says why";
        } else {
            EXPECT_EQ(chunk.type, ChunkType::none);
            EXPECT_EQ(chunk.length, 0u);
        }
        return reply;
    }

    ConstBuffer left_;
    std::map<std::uint64_t, wire::nbd::RequestHeader> reads_;
};

}  // namespace weft::test
