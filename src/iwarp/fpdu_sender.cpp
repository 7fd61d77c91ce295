// SPDX-License-Identifier: Apache-2.0
#include "iwarp/fpdu_sender.hpp"

#include <algorithm>
#include <utility>

#include "base/crc32c.hpp"
#include "base/foreign_memory.hpp"

namespace weft::iwarp {
namespace {

constexpr std::size_t length_size = wire_size<wire::FpduLength>();
/// In the worst place a marker stands before an FPDU, and then one before every 508 octets of it.
constexpr std::size_t marked_size_max(std::size_t size) {
    return size + wire_size<wire::Marker>() * (size / wire::octets_between_markers + 2);
}

std::size_t append(ConstBuffer octets, Buffer to, std::size_t at) {
    std::copy(octets.begin(), octets.end(), to.begin() + static_cast<std::ptrdiff_t>(at));
    return at + octets.size();
}

}  // namespace

/// The pieces a world offered to be filled, and how far that has come.
class FpduSender::Lending {
public:
    Lending(std::span<ConstBuffer> pieces, std::size_t skip) : pieces_(pieces), skip_(skip) {}

    bool has_room() const { return count_ < pieces_.size(); }
    std::size_t count() const { return count_; }

    void add(const Fpdu& fpdu) {
        add_head(fpdu.head);
        for (ConstBuffer piece : fpdu.payload) add(piece);
        add(fpdu.tail);
    }

private:
    /// The trailer before it ends where it begins, unless that trailer is no longer here.
    void add_head(ConstBuffer head) {
        if (count_ > 0 && pieces_[count_ - 1].data() + pieces_[count_ - 1].size() == head.data())
            pieces_[count_ - 1] = {pieces_[count_ - 1].data(),
                                   pieces_[count_ - 1].size() + head.size()};
        else
            add(head);
    }
    void add(ConstBuffer piece) {
        auto gone = std::min(skip_, piece.size());
        skip_ -= gone;
        if (gone < piece.size() && has_room()) pieces_[count_++] = piece.subspan(gone);
    }

    std::span<ConstBuffer> pieces_;
    std::size_t skip_;
    std::size_t count_ = 0;
};

FpduSender::FpduSender(MessageSource& source, MemoryHolds& memory, FpduBuffers& buffers,
                       FpduBufferWaiter& waiter, const FpduSenderOptions& options)
    : source_(source),
      memory_(memory),
      buffers_(buffers),
      waiter_(waiter),
      options_(options),
      cutter_(options.ulpdu_max) {
    static_assert(Seam::header_room >= length_size + wire::segment_header_limit);
    static_assert(Seam::trailer_room >= wire::fpdu_trailer_size(1));
    WEFT_CHECK(options.ulpdu_max >= wire::ulpdu_limit_floor);
    WEFT_CHECK(options.ulpdu_max <= wire::ulpdu_limit);
}

FpduSender::~FpduSender() {
    buffers_.forget(waiter_);
    for (std::size_t i = 0; i < lent_; ++i) {
        release(lent(i).held);
        drop_copy(lent(i));
    }
    release(cutting_held_);
}

std::size_t FpduSender::pending(std::span<ConstBuffer> pieces) {
    Lending lending(pieces, front_sent_);
    for (std::size_t i = 0; i < lent_ && lending.has_room(); ++i) lending.add(lent(i));
    while (lending.has_room() && make_next()) lending.add(lent(lent_ - 1));
    return lending.count();
}

void FpduSender::take_room() {
    room_ = std::make_unique<Room>();
    if (!options_.markers) return;
    room_->plain.resize(wire::fpdu_size(options_.ulpdu_max));
    room_->marked.resize(marked_size_max(room_->plain.size()));
}

void FpduSender::rest() {
    if (lent_ == 0) room_.reset();
}

/// Adds an FPDU to those lent, if one may be and there is a message for it.
bool FpduSender::make_next() {
    auto most = options_.markers ? 1 : limits::fpdus_lent;
    if (lent_ == most || lent_bytes_ >= limits::lent_bytes) return false;
    if (cutter_.done() && !begin_message()) return false;
    Buffer copy;
    if (must_copy() && (copy = take_copy()).empty()) return false;
    if (!room_) take_room();
    Fpdu& fpdu = lent(lent_);
    fpdu.copy = copy;
    auto at = static_cast<std::size_t>(&fpdu - room_->fpdus.data());
    make(fpdu, room_->seams[at], room_->seams[(at + 1) % limits::fpdus_lent]);
    if (options_.markers) mark(fpdu);
    fpdu.ends = Ends::nothing;
    if (cutter_.done()) {
        fpdu.ends = cutting_ends_;
        fpdu.held = std::exchange(cutting_held_, {});
    }
    ++lent_;
    ++fpdu_count_;
    lent_bytes_ += fpdu.size;
    return true;
}

bool FpduSender::begin_message() {
    std::optional<Message> message;
    if (!winding_up_) {
        message = source_.next_message();
        cutting_ends_ = Ends::a_message;
    }
    // Also if the source gave up while it was asked: what it named in the same breath does not go.
    if (winding_up_) {
        message = std::exchange(last_, std::nullopt);
        cutting_ends_ = Ends::silently;
    }
    if (!message) return false;
    cutter_.begin(*message);
    for (const auto& source : message->payload) {
        if (source.tag == SteeringTag{}) continue;
        cutting_held_.push_back(memory_.hold(source.tag));
    }
    return true;
}

bool FpduSender::must_copy() const {
    return options_.checksum && !options_.markers &&
           cutter_.next_payload_max() > Seam::payload_room &&
           cutter_.opcode() == wire::RdmapOpcode::read_response;
}

Buffer FpduSender::take_copy() {
    if (copied_bytes_ >= limits::copied_bytes) return {};
    auto size = cutter_.next_payload_max();
    // While something is lent, its departure brings the stream back to us; and a stream that is
    // blocked would not come for a buffer, but keep all who wait behind us from theirs.
    Buffer copy = lent_ > 0 ? buffers_.take_if_free(size) : buffers_.take(size, waiter_);
    copied_bytes_ += copy.size();
    return copy;
}

void FpduSender::drop_copy(Fpdu& fpdu) {
    if (fpdu.copy.empty()) return;
    copied_bytes_ -= fpdu.copy.size();
    buffers_.give_back(std::exchange(fpdu.copy, {}));
}

/// From here on the copy is the payload. If the memory is gone, it is lent as it is: the stream
/// will find so when it sends it, and end.
void FpduSender::copy_payload(Fpdu& fpdu) {
    std::size_t size = 0;
    if (!touch_foreign_memory([&] {
            for (ConstBuffer piece : fpdu.payload) size = append(piece, fpdu.copy, size);
        }))
        return;
    fpdu.payload.clear();
    fpdu.payload.push_back(fpdu.copy.first(size));
}

/// The header and, where there is room behind it, the payload. If the memory is gone, it is lent as
/// above.
Buffer FpduSender::with_payload(Buffer head, SegmentPayload& payload) {
    std::size_t size = 0;
    for (ConstBuffer piece : payload) size += piece.size();
    if (size == 0 || size > Seam::payload_room) return head;
    Buffer both(head.data(), head.size() + size);
    auto end = head.size();
    if (!touch_foreign_memory([&] {
            for (ConstBuffer piece : payload) end = append(piece, both, end);
        }))
        return head;
    payload.clear();
    return both;
}

void FpduSender::make(Fpdu& fpdu, Seam& before, Seam& after) {
    auto head = Buffer(before.octets).subspan(Seam::trailer_room);
    fpdu.payload.clear();
    head = head.first(length_size + cutter_.cut(head.subspan(length_size), fpdu.payload));
    if (!fpdu.copy.empty()) copy_payload(fpdu);
    if (!options_.markers) head = with_payload(head, fpdu.payload);
    auto ulpdu_size = head.size() - length_size;
    for (ConstBuffer piece : fpdu.payload) ulpdu_size += piece.size();
    encode(wire::FpduLength{.ulpdu_size = static_cast<std::uint16_t>(ulpdu_size)}, head);

    auto padding = wire::fpdu_padding(ulpdu_size);
    std::uint32_t checksum = 0;
    // With markers it covers these too and is computed once they stand.
    if (options_.checksum && !options_.markers) {
        static constexpr std::array<std::byte, 4> zeroes{};
        Crc32c crc;
        crc.add(head);
        // If the memory is gone, the stream will find so too when it sends it, and end.
        (void)touch_foreign_memory([&] {
            for (ConstBuffer piece : fpdu.payload) crc.add(piece);
        });
        crc.add(ConstBuffer(zeroes).first(padding));
        checksum = crc.value();
    }
    auto tail = Buffer(after.octets).first(Seam::trailer_room);
    tail = tail.last(wire::fpdu_trailer_size(ulpdu_size));
    wire::encode_fpdu_trailer(ulpdu_size, checksum, tail);
    fpdu.head = head;
    fpdu.tail = tail;
    fpdu.size = wire::fpdu_size(ulpdu_size);
}

/// Gathers the FPDU with its markers in the buffer, which is then all that is lent of it.
void FpduSender::mark(Fpdu& fpdu) {
    Buffer plain = room_->plain;
    auto end = append(fpdu.head, plain, 0);
    // If the memory is gone, it is lent as it is: the stream will find so when it sends it, and
    // end.
    if (!touch_foreign_memory([&] {
            for (ConstBuffer piece : fpdu.payload) end = append(piece, plain, end);
        }))
        return;
    end = append(fpdu.tail, plain, end);
    fpdu.size = wire::insert_markers(plain.first(end), position_, room_->marked);
    position_ += fpdu.size;
    auto whole = Buffer(room_->marked).first(fpdu.size);
    if (options_.checksum) wire::seal_fpdu(whole);
    fpdu.head = whole;
    fpdu.payload.clear();
    fpdu.tail = {};
}

void FpduSender::sent(std::size_t count) {
    WEFT_CHECK(count <= lent_bytes_ - front_sent_);
    front_sent_ += count;
    octets_sent_ += count;
    while (lent_ > 0 && front_sent_ >= lent(0).size) {
        front_sent_ -= lent(0).size;
        pop();
    }
}

void FpduSender::pop() {
    Fpdu& fpdu = lent(0);
    first_ = (first_ + 1) % limits::fpdus_lent;
    --lent_;
    lent_bytes_ -= fpdu.size;
    drop_copy(fpdu);
    if (fpdu.ends == Ends::nothing) return;
    release(fpdu.held);
    fpdu.held.clear();
    if (fpdu.ends == Ends::a_message) source_.message_sent();
}

bool FpduSender::holds(SteeringTag tag) const {
    auto has_it = [&](const HeldTags& tags) {
        return std::find(tags.begin(), tags.end(), tag) != tags.end();
    };
    for (std::size_t i = 0; i < lent_; ++i)
        if (lent(i).ends != Ends::nothing && has_it(lent(i).held)) return true;
    return has_it(cutting_held_);
}

void FpduSender::release(const HeldTags& tags) {
    for (SteeringTag tag : tags) memory_.release(tag);
}

void FpduSender::wind_up(std::optional<Message> last) {
    if (winding_up_) return;
    winding_up_ = true;
    last_ = last;
    buffers_.forget(waiter_);
    if (cutter_.done()) return;
    bool newest_is_of_it = lent_ > 0 && cutter_.has_cut();
    cutter_.abandon();
    auto held = std::exchange(cutting_held_, {});
    if (!newest_is_of_it) return release(held);
    lent(lent_ - 1).held = held;
    lent(lent_ - 1).ends = Ends::silently;
}

}  // namespace weft::iwarp
