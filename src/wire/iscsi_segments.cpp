// SPDX-License-Identifier: Apache-2.0
#include "wire/iscsi_segments.hpp"

#include <algorithm>

namespace weft::wire {

namespace {
constexpr std::size_t sense_length_size = 2;
}

Result<std::optional<AdditionalHeader>> AdditionalHeaders::next() {
    if (rest_.empty()) return std::optional<AdditionalHeader>{};
    WEFT_TRY(const auto start, decode<AdditionalHeaderStart>(rest_));
    const std::size_t size = wire_size<AdditionalHeaderStart>() + start.length;
    const std::size_t padded = round_up(size, iscsi_padding_unit);
    if (start.length == 0) return Error{.code = Code::malformed};
    if (padded > rest_.size())
        return Error{.code = Code::truncated, .where = static_cast<std::uint32_t>(rest_.size())};
    const AdditionalHeader header{
        .type = start.type,
        .whole = rest_.first(size),
        .specific = rest_.subspan(wire_size<AdditionalHeaderStart>(), start.length)};
    rest_ = rest_.subspan(padded);
    return std::optional(header);
}

Result<ConstBuffer> extended_command_block(const AdditionalHeader& header) {
    const std::size_t spillover = header.specific.size() - 1;
    if (header.type != AdditionalHeaderType::extended_command_block || spillover == 0 ||
        spillover > max_command_block - command_block_in_header)
        return Error{.code = Code::malformed};
    return header.specific.subspan(1);
}

Result<std::size_t> write_extended_command_block(ConstBuffer spillover, Buffer to) {
    if (spillover.empty() || spillover.size() > max_command_block - command_block_in_header)
        return Error{.code = Code::out_of_range};
    const std::size_t size =
        extended_command_block_size(command_block_in_header + spillover.size());
    if (to.size() < size) return Error{.code = Code::exhausted};
    std::ranges::fill(to.first(size), std::byte{0});
    encode(AdditionalHeaderStart{.length = static_cast<std::uint16_t>(1 + spillover.size()),
                                 .type = AdditionalHeaderType::extended_command_block},
           to);
    std::ranges::copy(spillover, to.begin() + 4);
    return size;
}

Result<SenseSegment> split_sense_segment(ConstBuffer data_segment) {
    if (data_segment.empty()) return SenseSegment{};
    if (data_segment.size() < sense_length_size) return Error{.code = Code::truncated};
    const auto length = load_big_endian<sense_length_size>(data_segment.data());
    if (!within(sense_length_size, length, data_segment.size()))
        return Error{.code = Code::truncated,
                     .where = static_cast<std::uint32_t>(data_segment.size())};
    return SenseSegment{.sense = data_segment.subspan(sense_length_size, length),
                        .rest = data_segment.subspan(sense_length_size + length)};
}

Result<std::size_t> write_sense_segment(ConstBuffer sense, Buffer to) {
    if (sense.size() > 0xffff) return Error{.code = Code::out_of_range};
    if (to.size() < sense_length_size + sense.size()) return Error{.code = Code::exhausted};
    store_big_endian<sense_length_size>(sense.size(), to.data());
    std::ranges::copy(sense, to.begin() + sense_length_size);
    return sense_length_size + sense.size();
}

}  // namespace weft::wire
