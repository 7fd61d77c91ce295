// SPDX-License-Identifier: Apache-2.0
#include "wire/tcp.hpp"

#include <algorithm>

namespace weft::wire {
namespace {

constexpr std::size_t option_head = 2;  // kind and length
constexpr std::uint8_t window_scale_max = 14;

void gather(const TcpOption& option, TcpOptions& options) {
    const auto& body = option.body;
    switch (option.kind) {
        case TcpOptionKind::maximum_segment_size:
            if (body.size() == 2)
                options.maximum_segment_size =
                    static_cast<std::uint16_t>(load_big_endian<2>(body.data()));
            break;
        case TcpOptionKind::window_scale:
            // RFC 7323, section 2.3: a greater shift is taken as 14.
            if (body.size() == 1)
                options.window_scale =
                    std::min(std::to_integer<std::uint8_t>(body[0]), window_scale_max);
            break;
        case TcpOptionKind::sack_permitted:
            if (body.empty()) options.sack_permitted = true;
            break;
        case TcpOptionKind::timestamps:
            if (body.size() == wire_size<TcpTimestamps>())
                options.timestamps = *decode<TcpTimestamps>(body);
            break;
        case TcpOptionKind::sack:
            if (body.empty() || body.size() % wire_size<SackBlock>() != 0) break;
            options.sack.clear();
            for (std::size_t at = 0; at < body.size(); at += wire_size<SackBlock>())
                if (!options.sack.full())
                    options.sack.push_back(*decode<SackBlock>(body.subspan(at)));
            break;
        default:
            break;
    }
}

/// Appends to the options area; who calls knows that there is room.
class OptionWriter {
public:
    explicit OptionWriter(std::span<std::byte, tcp_options_max> octets) : octets_(octets) {}

    void padding() { number<1>(static_cast<std::uint64_t>(TcpOptionKind::no_operation)); }
    void head(TcpOptionKind kind, std::size_t body) {
        number<1>(static_cast<std::uint64_t>(kind));
        number<1>(option_head + body);
    }
    template <std::size_t Count>
    void number(std::uint64_t value) {
        WEFT_CHECK(room() >= Count);
        store_big_endian<Count>(value, octets_.data() + size_);
        size_ += Count;
    }
    template <class Body>
    void body(const Body& part) {
        WEFT_CHECK(room() >= wire_size<Body>());
        encode(part, octets_.subspan(size_));
        size_ += wire_size<Body>();
    }
    std::size_t size() const { return size_; }
    std::size_t room() const { return octets_.size() - size_; }

private:
    std::span<std::byte> octets_;
    std::size_t size_ = 0;
};

void write_sack(const TcpOptions& options, OptionWriter& writer) {
    constexpr std::size_t overhead = 2 + option_head;  // two of padding, so that words are aligned
    if (options.sack.empty() || writer.room() < overhead + wire_size<SackBlock>()) return;
    auto fitting = (writer.room() - overhead) / wire_size<SackBlock>();
    auto count = std::min(options.sack.size(), fitting);
    writer.padding();
    writer.padding();
    writer.head(TcpOptionKind::sack, count * wire_size<SackBlock>());
    for (std::size_t i = 0; i < count; ++i) writer.body(options.sack[i]);
}

}  // namespace

Result<TcpSegment> split_tcp_segment(ConstBuffer octets) {
    WEFT_TRY(auto header, decode<TcpHeader>(octets));
    constexpr auto fixed_size = wire_size<TcpHeader>();
    if (header.size() < fixed_size) return Error{.code = Code::malformed};
    if (header.size() > octets.size()) return Error{.code = Code::truncated};
    return TcpSegment{header, octets.subspan(fixed_size, header.size() - fixed_size),
                      octets.subspan(header.size())};
}

Result<std::optional<TcpOption>> TcpOptionCursor::next() {
    while (!rest_.empty() && rest_[0] == std::byte{1}) rest_ = rest_.subspan(1);
    if (rest_.empty() || rest_[0] == std::byte{0}) return std::optional<TcpOption>{};
    if (rest_.size() < option_head) return Error{.code = Code::truncated};
    auto kind = static_cast<TcpOptionKind>(rest_[0]);
    auto size = std::to_integer<std::size_t>(rest_[1]);
    if (size < option_head) return Error{.code = Code::malformed};
    if (size > rest_.size()) return Error{.code = Code::truncated};
    TcpOption option{kind, rest_.subspan(option_head, size - option_head)};
    rest_ = rest_.subspan(size);
    return std::optional(option);
}

Result<TcpOptions> read_tcp_options(ConstBuffer octets) {
    TcpOptions options;
    TcpOptionCursor cursor(octets);
    for (;;) {
        WEFT_TRY(auto option, cursor.next());
        if (!option) return options;
        gather(*option, options);
    }
}

std::size_t write_tcp_options(const TcpOptions& options,
                              std::span<std::byte, tcp_options_max> octets) {
    OptionWriter writer(octets);
    if (options.maximum_segment_size) {
        writer.head(TcpOptionKind::maximum_segment_size, 2);
        writer.number<2>(*options.maximum_segment_size);
    }
    // "SACK permitted" is two octets long and takes the place of the padding before timestamps.
    if (options.sack_permitted) {
        writer.head(TcpOptionKind::sack_permitted, 0);
    } else if (options.timestamps) {
        writer.padding();
        writer.padding();
    }
    if (options.timestamps) {
        writer.head(TcpOptionKind::timestamps, wire_size<TcpTimestamps>());
        writer.body(*options.timestamps);
    } else if (options.sack_permitted) {
        writer.padding();
        writer.padding();
    }
    if (options.window_scale) {
        writer.padding();
        writer.head(TcpOptionKind::window_scale, 1);
        writer.number<1>(*options.window_scale);
    }
    write_sack(options, writer);
    return writer.size();
}

}  // namespace weft::wire
