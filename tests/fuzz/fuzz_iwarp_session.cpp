// SPDX-License-Identifier: Apache-2.0
// Any octets as what a peer sends in full operation, to a session with memory, receives, reads
// under way and work of its own. The first octet says what was agreed on, the second how small the
// pieces are; the rest is the stream, as it is or with each FPDU made whole again, so that a search
// gets past checksums. In it the memory has the tags 0x101, 0x201 and so on, whatever it has
// really.
//
// No byte changes that the peer may not change. However the stream is cut, it ends the same way.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "iwarp/session.hpp"
#include "wire/mpa.hpp"

namespace weft::iwarp {
namespace {

using Bytes = std::vector<std::byte>;

struct Script {
    Terms terms;
    SessionOptions options;
    Bytes stream;
};

constexpr std::size_t table_size = 8;
constexpr std::uint64_t table_seed = 1;

/// What a session's memory has where the stream has 0x101, 0x201 and so on.
const std::array<SteeringTag, 5>& real_tags() {
    static const auto tags = [] {
        std::array<SteeringTag, 5> given;
        MemoryTable same(table_size, table_seed);
        for (auto& tag : given) tag = *same.allocate(DomainId{}, 0);
        return given;
    }();
    return tags;
}

void put_real_tags(Bytes& stream) {
    for (std::size_t at = 0; at + 4 <= stream.size(); ++at) {
        const auto word = load_big_endian<4>(stream.data() + at);
        const auto number = word >> 8;
        if ((word & 0xff) != 1 || number == 0 || number > real_tags().size()) continue;
        store_big_endian<4>(static_cast<std::uint32_t>(real_tags()[number - 1]),
                            stream.data() + at);
        at += 3;
    }
}

/// Seals the FPDUs of a stream anew, with markers if they were agreed on.
Bytes made_whole(ConstBuffer stream, const Terms& terms) {
    Bytes whole;
    while (stream.size() >= 2) {
        auto size = std::min<std::size_t>(load_big_endian<2>(stream.data()), stream.size() - 2);
        Bytes fpdu(wire::fpdu_size(size));
        encode(wire::FpduLength{static_cast<std::uint16_t>(size)}, fpdu);
        std::memcpy(fpdu.data() + 2, stream.data() + 2, size);
        stream = stream.subspan(std::min(stream.size(), fpdu.size()));
        if (terms.markers_in) {
            Bytes marked(wire::marked_size(whole.size(), fpdu.size()));
            wire::insert_markers(fpdu, whole.size(), marked);
            fpdu = marked;
        }
        wire::seal_fpdu(fpdu);
        whole.insert(whole.end(), fpdu.begin(), fpdu.end());
    }
    return whole;
}

// The memory, in parts: which of them a peer may change depends on nothing but this.
struct Part {
    std::size_t at, size;
};
constexpr std::size_t memory_size = 4096;
constexpr std::uint64_t base = 0x10000;
constexpr Part open{256, 512}, read_only{1024, 256}, foreign{1536, 256}, renewable{2048, 256},
    sink{2560, 256}, receives{3072, 512};
constexpr std::size_t receive_count = 8;
constexpr std::size_t work_count = 12;
constexpr Asker us{DomainId{7}, QueuePairId{1}};

class Owner final : public SessionOwner {
public:
    explicit Owner(const Script& script)
        : session_(*this, table_, us, buffers_, script.terms, script.options) {
        for (std::size_t i = 0; i < memory_size; ++i)
            memory_[i] = before_[i] = static_cast<std::byte>(i * 11);
        using enum Rights;
        constexpr auto all = local_write | remote_read | remote_write | remote_atomic;
        open_ = add(open, all, us.domain);                       // 0x101
        add(read_only, local_write | remote_read, us.domain);    // 0x201
        add(foreign, all, DomainId{8});                          // 0x301
        auto renewed = *table_.allocate(us.domain, 1);           // 0x401
        local_ = add({0, memory_size}, local_write, us.domain);  // 0x501
        WEFT_CHECK(table_.fast_register({.tag = renewed,
                                         .pieces = {part(renewable)},
                                         .address = base + renewable.at,
                                         .rights = all,
                                         .addressing = Addressing::by_address},
                                        us));
        WEFT_CHECK(open_ == real_tags().front() && local_ == real_tags().back());
        for (std::size_t i = 0; i < receive_count; ++i) {
            places_[i] = {base + receives.at + 64 * i, 64, local_};
            receives_[i].local = {&places_[i], 1};
        }
        session_.reads().push({.sink_tag = local_, .sink_offset = base + sink.at, .size = 100});
        session_.reads().push({.kind = OutstandingRead::Kind::atomic,
                               .sink_tag = local_,
                               .sink_offset = base + sink.at + 104,
                               .size = 8,
                               .request_identifier = 5});
        session_.reads().push(
            {.sink_tag = local_, .sink_offset = base + sink.at + 128, .size = 64});
    }

    /// Everything the peer sends, in pieces, and between them one of what it is sent. Receives are
    /// posted when one is missed.
    void hear(ConstBuffer stream, std::size_t step, bool speaking) {
        while (!session_.finished()) {
            bool spoke = speaking && say_some(step);
            auto place = session_.want();
            if (place.empty()) {
                if (spoke) continue;  // a buffer may have come back
                if (!session_.waits_for_receive() || posted_ == receive_count) return;
                ++posted_;
                session_.receive_posted();
                continue;
            }
            auto count = std::min({place.size(), stream.size(), step});
            if (count == 0) return;
            std::memcpy(place.data(), stream.data(), count);
            stream = stream.subspan(count);
            session_.filled(count);
        }
    }
    void say(std::size_t step) {
        while (say_some(step)) continue;
        WEFT_CHECK(works_sent_ == works_begun_ || session_.finished());
    }
    bool say_some(std::size_t step) {
        std::array<ConstBuffer, 8> pieces;
        auto used = session_.pending(pieces);
        if (used == 0) return false;
        WEFT_CHECK(used <= pieces.size() && !pieces[0].empty());
        auto piece = pieces[0].first(std::min(step, pieces[0].size()));
        said_.insert(said_.end(), piece.begin(), piece.end());
        session_.sent(piece.size());
        return true;
    }
    void wait() {
        for (int i = 1; i < 5; ++i) session_.tick(Instant{} + i * std::chrono::minutes(1));
        WEFT_CHECK(!session_.waits_for_receive() || session_.finished());
    }
    /// From now on its bytes stay what they are.
    void take_memory_away() {
        WEFT_CHECK(table_.remove(open_));
        before_ = memory_;
        memory_is_gone_ = true;
    }

    /// Only what the peer may change has changed.
    void check() {
        auto allowed = before_;
        for (auto each : {renewable, sink, receives, open})
            if (!memory_is_gone_ || each.at != open.at)
                std::memcpy(allowed.data() + each.at, memory_.data() + each.at, each.size);
        WEFT_CHECK(memory_ == allowed);
    }
    bool operator==(const Owner& other) const {
        return heard_ == other.heard_ && memory_ == other.memory_ && said_ == other.said_;
    }

    // SessionOwner.
    /// Sends of what nobody changes and Writes of what the peer may change and we may take away.
    std::optional<Message> next_work() override {
        WEFT_CHECK(!failed_);
        if (works_begun_ == work_count) return std::nullopt;
        bool sends = works_begun_ % 2 == 0;
        auto part = sends ? read_only : open;
        auto tag = sends ? local_ : open_;
        auto bytes = table_.resolve(tag, base + part.at, part.size, Rights::local_read, us);
        if (!bytes) return std::nullopt;
        ++works_begun_;
        source_ = {*bytes, tag};
        if (sends) return Message{.opcode = wire::RdmapOpcode::send, .payload = {&source_, 1}};
        return Message{.opcode = wire::RdmapOpcode::write,
                       .tag = SteeringTag{0x901},
                       .offset = 0x2000,
                       .payload = {&source_, 1}};
    }
    void work_sent() override { WEFT_CHECK(++works_sent_ <= works_begun_); }
    void read_ended(std::uint64_t original) override { note("read " + std::to_string(original)); }
    void read_failed() override { note("read failed"); }
    const PostedReceive* take_receive() override {
        WEFT_CHECK(!failed_ && !taking_);
        if (taken_ == posted_) return nullptr;
        taking_ = true;
        return &receives_[taken_++];
    }
    void receive_ended(const ReceiveOutcome& outcome) override {
        WEFT_CHECK(std::exchange(taking_, false));
        note("received " + std::to_string(static_cast<int>(outcome.status)) + " " +
             std::to_string(outcome.bytes) + " " + std::to_string(outcome.immediate));
    }
    void wake() override { WEFT_CHECK(!failed_); }
    void peer_spoke() override { note("spoke"); }
    void session_failed(const wire::TerminateControl& why, FaultOf whose, const Quoted&) override {
        note("failed " + std::to_string(static_cast<int>(whose)) + " " +
             std::to_string(why.error_type) + " " + std::to_string(why.error_code));
        failed_ = true;
    }

private:
    Buffer part(Part each) { return Buffer(memory_).subspan(each.at, each.size); }
    SteeringTag add(Part each, Rights rights, DomainId domain) {
        auto piece = part(each);
        return *table_.add_region(domain, {&piece, 1}, base + each.at, rights,
                                  Addressing::by_address);
    }
    void note(std::string what) {
        WEFT_CHECK(!failed_);
        heard_.push_back(std::move(what));
    }

    alignas(8) std::array<std::byte, memory_size> memory_;
    std::array<std::byte, memory_size> before_;
    MemoryTable table_{table_size, table_seed};
    FpduBuffers buffers_{FpduBuffers::largest, 0};
    SteeringTag open_{}, local_{};
    bool memory_is_gone_ = false;
    std::array<verbs::LocalMemory, receive_count> places_;
    std::array<PostedReceive, receive_count> receives_;
    std::size_t posted_ = 2, taken_ = 0;
    std::size_t works_begun_ = 0, works_sent_ = 0;
    Message::Source source_;
    bool taking_ = false;
    bool failed_ = false;
    std::vector<std::string> heard_;
    Bytes said_;
    Session session_;
};

/// Heard whole or in pieces, and only then answered.
void check_cuts(const Script& script, std::size_t step) {
    Owner whole(script), cut(script);
    whole.hear(script.stream, SIZE_MAX, false);
    cut.hear(script.stream, step, false);
    whole.wait();
    cut.wait();
    whole.say(SIZE_MAX);
    cut.say(step);
    whole.check();
    WEFT_CHECK(whole == cut);
}

/// Answered on the way; and some memory goes amid it all.
void check_answers(const Script& script, std::size_t step) {
    Owner owner(script);
    auto half = script.stream.size() / 2;
    owner.hear(ConstBuffer(script.stream).first(half), step, true);
    owner.check();
    owner.take_memory_away();
    owner.hear(ConstBuffer(script.stream).subspan(half), step, true);
    owner.wait();
    owner.say(step);
    owner.check();
}

}  // namespace
}  // namespace weft::iwarp

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace weft;
    using namespace weft::iwarp;
    if (size < 2) return 0;
    auto bit = [data](int number) { return (data[0] >> number & 1) != 0; };
    Script script;
    script.terms = {.role = bit(0) ? Role::initiator : Role::responder,
                    .checksum = bit(1),
                    .markers_in = bit(2),
                    .inbound_reads = 4,
                    .outbound_reads = 3,
                    .ready = bit(3) ? ReadyMessage::send : ReadyMessage::none,
                    .peer = bit(4) ? Peer::siw : Peer::weft};
    if (script.terms.role == Role::initiator) script.terms.ready = ReadyMessage::none;
    script.options.placement = bit(5) ? Placement::eager : Placement::verified;
    auto octets = std::as_bytes(std::span(data + 2, size - 2));
    script.stream.assign(octets.begin(), octets.end());
    put_real_tags(script.stream);
    if (bit(6)) script.stream = made_whole(script.stream, script.terms);
    check_cuts(script, 1u + data[1]);
    check_answers(script, 1u + data[1]);
    return 0;
}
