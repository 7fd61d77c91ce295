// SPDX-License-Identifier: Apache-2.0
#include "iscsi/pdu_receiver.hpp"

#include <algorithm>

#include "base/bytes.hpp"

namespace weft::iscsi {

namespace {

std::uint32_t digest_at(const std::byte* octets) {
    return static_cast<std::uint32_t>(load_little_endian<wire::iscsi_digest_size>(octets));
}

}  // namespace

PduReceiver::PduReceiver(std::size_t scratch_size) : scratch_(scratch_size) {
    begin_header();
}

void PduReceiver::begin_header() {
    data_length_ = 0;
    // Additional headers are rare, so the digest is taken with the basic header; where there are
    // some, these are their first octets instead, and lie where they belong.
    begin(Stage::basic_header,
          Buffer(headers_).first(wire::basic_header_size + digest_size(digests_.header)));
}

Buffer PduReceiver::want() {
    switch (stage_) {
        case Stage::unplaced:
        case Stage::dead:
            return {};
        case Stage::data:
            return places_.piece();
        default:
            return part_.subspan(have_);
    }
}

Result<std::optional<PduReceiver::Event>> PduReceiver::filled(std::size_t count) {
    if (stage_ == Stage::data) {
        WEFT_CHECK(count > 0 && count <= places_.piece().size());
        if (digests_.data) data_digest_.add(places_.piece().first(count));
        places_.advance(count);
        if (places_.left() > 0) return std::optional<Event>{};
        return end_data();
    }
    WEFT_CHECK(count > 0 && count <= part_.size() - have_);
    have_ += count;
    if (have_ < part_.size()) return std::optional<Event>{};
    switch (stage_) {
        case Stage::basic_header:
            return end_basic_header();
        case Stage::additional_headers:
            return end_headers();
        case Stage::collected:
            if (digests_.data) data_digest_.add(part_);
            return end_data();
        case Stage::discarded:
            if (digests_.data) data_digest_.add(part_);
            discard_left_ -= static_cast<std::uint32_t>(part_.size());
            if (discard_left_ == 0) return end_data();
            begin_discard();
            return std::optional<Event>{};
        case Stage::trailer:
            return end_trailer();
        case Stage::data:
        case Stage::unplaced:
        case Stage::dead:
            break;
    }
    WEFT_CHECK(false);
}

Result<std::optional<PduReceiver::Event>> PduReceiver::end_basic_header() {
    auto basic = decode<wire::BasicHeader>(headers_);
    if (!basic) {
        begin(Stage::dead, {});
        return basic.error();
    }
    basic_ = *basic;
    if (basic_.additional_header_words == 0) return end_headers();
    const std::size_t whole =
        wire::basic_header_size + basic_.additional_header_size() + digest_size(digests_.header);
    const std::size_t have = have_;
    begin(Stage::additional_headers, Buffer(headers_).first(whole));
    have_ = have;
    return std::optional<Event>{};
}

Result<std::optional<PduReceiver::Event>> PduReceiver::end_headers() {
    const std::size_t size = wire::basic_header_size + basic_.additional_header_size();
    const ConstBuffer headers = ConstBuffer(headers_).first(size);
    if (digests_.header && crc32c(headers) != digest_at(headers_.data() + size)) {
        begin(Stage::dead, {});
        return std::optional<Event>(HeaderDigestWrong{});
    }
    if (basic_.data_length > data_length_limit_) {
        begin(Stage::dead, {});
        return Error{.code = Code::out_of_range, .where = basic_.data_length};
    }
    const PduHeader event{.basic = basic_,
                          .octets = headers.first(wire::basic_header_size),
                          .additional = headers.subspan(wire::basic_header_size)};
    begin_header();
    if (basic_.data_length > 0) {
        data_length_ = basic_.data_length;
        data_digest_ = {};
        begin(Stage::unplaced, {});
    }
    return std::optional<Event>(event);
}

void PduReceiver::place(std::span<const Buffer> list, std::uint64_t skip) {
    WEFT_CHECK(stage_ == Stage::unplaced);
    collecting_ = false;
    places_ = block::ScatterCursor(list, skip, data_length_);
    begin(Stage::data, {});
}

void PduReceiver::collect() {
    WEFT_CHECK(stage_ == Stage::unplaced && can_collect(data_length_));
    collecting_ = true;
    begin(Stage::collected, Buffer(scratch_).first(data_length_));
}

void PduReceiver::discard() {
    WEFT_CHECK(stage_ == Stage::unplaced);
    collecting_ = false;
    discard_left_ = data_length_;
    begin_discard();
}

void PduReceiver::begin_discard() {
    begin(Stage::discarded,
          Buffer(waste_).first(std::min<std::size_t>(discard_left_, waste_.size())));
}

Result<std::optional<PduReceiver::Event>> PduReceiver::end_data() {
    const std::size_t padding = round_up(data_length_, wire::iscsi_padding_unit) - data_length_;
    const std::size_t size = padding + digest_size(digests_.data);
    begin(Stage::trailer, Buffer(trailer_).first(size));
    if (size == 0) return end_trailer();
    return std::optional<Event>{};
}

Result<std::optional<PduReceiver::Event>> PduReceiver::end_trailer() {
    // Padding "should" be zero and is not looked at, but the digest covers it as it came.
    PduData event;
    if (collecting_) event.collected = ConstBuffer(scratch_).first(data_length_);
    if (digests_.data) {
        const std::size_t padding = part_.size() - wire::iscsi_digest_size;
        data_digest_.add(part_.first(padding));
        event.digest_good = data_digest_.value() == digest_at(part_.data() + padding);
    }
    begin_header();
    return std::optional<Event>(event);
}

void PduReceiver::use_digests(Digests digests) {
    WEFT_CHECK(stage_ == Stage::basic_header && have_ == 0);
    digests_ = digests;
    begin_header();
}

}  // namespace weft::iscsi
