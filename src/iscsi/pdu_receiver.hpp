// SPDX-License-Identifier: Apache-2.0
// Takes a byte stream apart into iSCSI PDUs, for either role.
//
// A PDU is reported in up to two events. PduHeader: the basic and additional headers are here and,
// if a header digest was agreed on, right. If a data segment follows, nothing more is wanted until
// the user has said where it belongs: into memory of its own choosing, straight from the stream
// (place), into the receiver's scratch to be looked at (collect), or nowhere (discard). It may take
// its time over that: until then want() is empty, which stops the peer by TCP's own window. Then
// PduData: the segment, its padding and its digest have come.
//
// A wrong data digest is reported with the data, which must not be believed. After a wrong header
// digest no length in the stream can be believed, so that is the last event there is. Placed bytes
// are in place before their digest is known: whoever places says what becomes of them.
#pragma once

#include <array>
#include <optional>
#include <variant>
#include <vector>

#include "base/crc32c.hpp"
#include "base/stream_receiver.hpp"
#include "block/scatter.hpp"
#include "wire/iscsi_header.hpp"

namespace weft::iscsi {

/// Which digests travel. None before the full feature phase.
struct Digests {
    bool header = false;
    bool data = false;

    bool operator==(const Digests&) const = default;
};

struct PduHeader {
    wire::BasicHeader basic;
    ConstBuffer octets;      ///< all 48; valid, like `additional`, until the next PDU is wanted
    ConstBuffer additional;  ///< the additional headers, whole
};

struct PduData {
    ConstBuffer collected;  ///< what collect() asked for, without padding; until the next filled()
    bool digest_good = true;  ///< also if there is none
};

/// What the header digest says is not what came: nothing after this can be told apart.
struct HeaderDigestWrong {};

class PduReceiver {
public:
    using Event = std::variant<PduHeader, PduData, HeaderDigestWrong>;

    /// `scratch_size`: the longest segment that can be collected.
    explicit PduReceiver(std::size_t scratch_size);
    PduReceiver(const PduReceiver&) = delete;
    PduReceiver& operator=(const PduReceiver&) = delete;

    /// Where the next bytes belong. Empty while a data segment has no place, and after the end.
    Buffer want();
    /// An error: a data segment longer than the limit. The stream cannot be read on.
    Result<std::optional<Event>> filled(std::size_t count);

    // Exactly one of these after each PduHeader with a data segment, from inside the event or
    // later.
    /// As long as the segment. The list must stay in place until PduData; so must the memory.
    void place(std::span<const Buffer> list, std::uint64_t skip);
    void collect();
    void discard();

    /// The segment that has no place yet, or is on its way, in octets; 0 between PDUs.
    std::uint32_t data_length() const { return data_length_; }
    bool waits_for_place() const { return stage_ == Stage::unplaced; }
    bool can_collect(std::size_t size) const { return size <= scratch_.size(); }

    /// From the next PDU on. To be called between PDUs: after the last event of a login.
    void use_digests(Digests digests);
    /// The longest data segment we said we take (MaxRecvDataSegmentLength). Begins at 8192.
    void limit_data_length(std::uint32_t limit) { data_length_limit_ = limit; }

private:
    enum class Stage : std::uint8_t {
        basic_header,
        additional_headers,  ///< and the header digest
        unplaced,
        data,       ///< into a list of places
        collected,  ///< into scratch
        discarded,
        trailer,  ///< padding and digest
        dead,
    };

    /// 255 words of additional headers are all the length field can say.
    static constexpr std::size_t headers_max =
        wire::basic_header_size + 255 * 4 + wire::iscsi_digest_size;

    void begin(Stage stage, Buffer part) { stage_ = stage, part_ = part, have_ = 0; }
    void begin_header();
    void begin_discard();
    void begin_trailer();
    std::size_t digest_size(bool on) const { return on ? wire::iscsi_digest_size : 0; }
    Result<std::optional<Event>> end_basic_header();
    Result<std::optional<Event>> end_headers();
    Result<std::optional<Event>> end_data();
    Result<std::optional<Event>> end_trailer();

    Stage stage_{};
    Digests digests_;
    std::uint32_t data_length_limit_ = 8192;
    std::array<std::byte, headers_max> headers_;
    std::array<std::byte, 8> trailer_;  ///< up to three octets of padding, four of digest
    std::vector<std::byte> scratch_;
    std::array<std::byte, 4096> waste_;  ///< where discarded bytes go
    Buffer part_;                        ///< the part being received, but for placed data
    std::size_t have_ = 0;
    block::ScatterCursor places_;
    wire::BasicHeader basic_;
    std::uint32_t data_length_ = 0;
    std::uint32_t discard_left_ = 0;
    bool collecting_ = false;
    Crc32c data_digest_;
};
static_assert(StreamReceiver<PduReceiver>);

}  // namespace weft::iscsi
