// SPDX-License-Identifier: Apache-2.0
// A scripted initiator: it says to a target exactly what a test tells it to, PDU by PDU, and shows
// what came back. It has no rules of its own, so it can break all of them.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "base/crc32c.hpp"
#include "iscsi/target_connection.hpp"
#include "iscsi/tcp_target_mover.hpp"
#include "wire/iscsi_login.hpp"
#include "wire/iscsi_segments.hpp"
#include "wire/iscsi_text.hpp"

namespace weft::iscsi {

/// What came back: one PDU.
struct Heard {
    std::vector<std::byte> header;
    std::vector<std::byte> data;

    wire::IscsiOpcode opcode() const { return decode<wire::BasicHeader>(header)->opcode; }
    template <class Pdu>
    Pdu as() const {
        auto pdu = decode<Pdu>(header);
        EXPECT_TRUE(pdu) << "opcode " << static_cast<int>(opcode());
        return pdu ? *pdu : Pdu{};
    }
    std::string text() const { return {reinterpret_cast<const char*>(data.data()), data.size()}; }
};

using Keys = std::initializer_list<std::pair<std::string_view, std::string_view>>;

inline std::vector<std::byte> text_of(Keys keys) {
    std::vector<std::byte> octets(8192);
    wire::TextWriter writer(octets);
    for (auto [key, value] : keys) EXPECT_TRUE(writer.add(key, value));
    octets.resize(writer.size());
    return octets;
}

/// One connection to a TargetNode, without a world: bytes are carried by copying.
class Talk {
public:
    explicit Talk(TargetNode& node)
        : connection_(node, {.peer = "test", .local = Address::tcp("192.0.2.1", 3260)},
                      {.logged_in = {}, .gone = [this] { gone_ = true; }}),
          mover_(connection_, [] {}) {
        connection_.use(mover_);
    }
    ~Talk() {
        if (!gone_) mover_.closed(std::nullopt);
    }

    TargetConnection& connection() { return connection_; }
    TcpTargetMover& mover() { return mover_; }
    bool gone() const { return gone_; }
    /// The target wants the stream closed.
    bool finished() { return mover_.finished(); }
    void hang_up() { mover_.closed(Error{.code = Code::disconnected}); }

    template <class Pdu>
    void say(Pdu pdu, ConstBuffer data = {}, ConstBuffer additional = {}) {
        if constexpr (requires { pdu.data_length; })
            pdu.data_length = static_cast<std::uint32_t>(data.size());
        if constexpr (requires { pdu.additional_header_words; })
            pdu.additional_header_words = static_cast<std::uint8_t>(additional.size() / 4);
        std::vector<std::byte> octets(wire::basic_header_size);
        encode(pdu, octets);
        octets.insert(octets.end(), additional.begin(), additional.end());
        if (digests.header) append_digest(octets, octets);
        if (!data.empty()) {
            std::vector<std::byte> padded(data.begin(), data.end());
            padded.resize((padded.size() + 3) / 4 * 4);
            octets.insert(octets.end(), padded.begin(), padded.end());
            if (digests.data) append_digest(octets, padded);
            if (spoil_next_data) octets[octets.size() - padded.size() - 4] ^= std::byte{1};
        }
        spoil_next_data = false;
        give(octets);
    }
    void give(ConstBuffer octets) {
        outbox_.insert(outbox_.end(), octets.begin(), octets.end());
        carry();
    }
    /// Lets what could not be read before be read, and hears what there is.
    void carry() {
        for (bool moved = true; moved;) {
            moved = false;
            while (!outbox_.empty()) {
                auto place = mover_.want();
                if (place.empty()) break;
                auto count = std::min(place.size(), outbox_.size());
                std::copy_n(outbox_.begin(), count, place.begin());
                outbox_.erase(outbox_.begin(),
                              outbox_.begin() + static_cast<std::ptrdiff_t>(count));
                mover_.filled(count);
                moved = true;
            }
            std::array<ConstBuffer, 16> pieces;
            while (auto count = mover_.pending(pieces)) {
                std::size_t total = 0;
                for (auto piece : std::span(pieces).first(count)) {
                    inbox_.insert(inbox_.end(), piece.begin(), piece.end());
                    total += piece.size();
                }
                mover_.sent(total);
                moved = true;
            }
        }
    }
    /// The next PDU of the target, if there is one.
    std::optional<Heard> hear() {
        carry();
        auto size = wire::basic_header_size;
        if (inbox_.size() < size) return std::nullopt;
        Heard heard;
        heard.header.assign(inbox_.begin(), inbox_.begin() + wire::basic_header_size);
        auto basic = *decode<wire::BasicHeader>(heard.header);
        size += basic.additional_header_size() + (digests.header ? 4 : 0);
        auto data_at = static_cast<std::ptrdiff_t>(size);
        if (basic.data_length > 0) size += basic.padded_data_size() + (digests.data ? 4 : 0);
        EXPECT_GE(inbox_.size(), size);
        heard.data.assign(inbox_.begin() + data_at, inbox_.begin() + data_at + basic.data_length);
        inbox_.erase(inbox_.begin(), inbox_.begin() + static_cast<std::ptrdiff_t>(size));
        return heard;
    }
    /// The next PDU, which must be there and of this kind.
    template <class Pdu>
    Pdu expect() {
        auto heard = hear();
        EXPECT_TRUE(heard) << "the target said nothing";
        if (!heard) return {};
        last = *heard;
        return heard->template as<Pdu>();
    }
    void expect_silence() { EXPECT_FALSE(hear()); }

    /// Logs in to the full feature phase, in one exchange.
    wire::LoginResponsePdu log_in(std::string_view target, Keys keys = {},
                                  wire::LoginRequestPdu request = {}) {
        request.transit = true;
        request.current_stage = wire::LoginStage::operational_negotiation;
        request.next_stage = wire::LoginStage::full_feature_phase;
        request.numbers.command_number = command_number;
        if (request.initiator_session_id == wire::InitiatorSessionId{})
            request.initiator_session_id = {0x80, 0, 0, 0, 0, 1};
        auto text = text_of({{"InitiatorName", initiator}});
        auto add = [&](std::vector<std::byte> more) {
            text.insert(text.end(), more.begin(), more.end());
        };
        if (target.empty())
            add(text_of({{"SessionType", "Discovery"}}));
        else
            add(text_of({{"TargetName", target}, {"SessionType", "Normal"}}));
        add(text_of(keys));
        say(request, text);
        return expect<wire::LoginResponsePdu>();
    }

    std::string initiator = "iqn.2026-11.io.weft:test-initiator";
    std::uint32_t command_number = 100;
    Digests digests;
    bool spoil_next_data = false;
    Heard last;

private:
    static void append_digest(std::vector<std::byte>& octets, ConstBuffer over) {
        auto sum = crc32c(std::vector<std::byte>(over.begin(), over.end()));
        for (int shift = 0; shift < 32; shift += 8)
            octets.push_back(static_cast<std::byte>(sum >> shift & 0xff));
    }

    bool gone_ = false;
    TargetConnection connection_;
    TcpTargetMover mover_;
    std::deque<std::byte> outbox_, inbox_;
};

}  // namespace weft::iscsi
