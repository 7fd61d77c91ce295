// SPDX-License-Identifier: Apache-2.0
#include "wire/scsi_sense.hpp"

#include <algorithm>

namespace weft::wire {

namespace {

constexpr std::size_t descriptor_start = 2;
/// SPC-4 lets a target cut fixed sense data short; up to here are key, code and qualifier.
constexpr std::size_t least_fixed_sense = 14;

Result<SenseSummary> summarize_fixed(ConstBuffer sense) {
    if (sense.size() < least_fixed_sense)
        return Error{.code = Code::truncated, .where = static_cast<std::uint32_t>(sense.size())};
    std::array<std::byte, wire_size<FixedSense>()> padded{};
    std::ranges::copy(sense.first(std::min(sense.size(), padded.size())), padded.begin());
    WEFT_TRY(const auto fixed_sense, decode<FixedSense>(padded));
    SenseSummary summary{.key = fixed_sense.key,
                         .additional = fixed_sense.additional,
                         .deferred = fixed_sense.response == SenseResponse::fixed_deferred};
    if (fixed_sense.information_valid) summary.information = fixed_sense.information;
    return summary;
}

Result<SenseSummary> summarize_descriptors(ConstBuffer sense) {
    WEFT_TRY(const auto header, decode<DescriptorSense>(sense));
    SenseSummary summary{.key = header.key,
                         .additional = header.additional,
                         .deferred = header.response == SenseResponse::descriptor_deferred};
    WEFT_TRY(auto descriptors, SenseDescriptors::of(sense));
    for (;;) {
        WEFT_TRY(const auto descriptor, descriptors.next());
        if (!descriptor) return summary;
        if (descriptor->type != SenseDescriptorType::information) continue;
        WEFT_TRY(const auto information, decode<SenseInformation>(descriptor->whole));
        if (information.valid) summary.information = information.number;
    }
}

}  // namespace

Result<SenseResponse> sense_response(ConstBuffer sense) {
    if (sense.empty()) return Error{.code = Code::truncated};
    const auto code = std::to_integer<unsigned>(sense[0]) & 0x7f;
    if (code < 0x70 || code > 0x73) return Error{.code = Code::malformed};
    return static_cast<SenseResponse>(code);
}

Result<SenseDescriptors> SenseDescriptors::of(ConstBuffer sense) {
    WEFT_TRY(const auto header, decode<DescriptorSense>(sense));
    const auto after = sense.subspan(wire_size<DescriptorSense>());
    if (header.additional_length > after.size())
        return Error{.code = Code::truncated, .where = static_cast<std::uint32_t>(sense.size())};
    return SenseDescriptors(after.first(header.additional_length));
}

Result<std::optional<SenseDescriptor>> SenseDescriptors::next() {
    if (rest_.empty()) return std::optional<SenseDescriptor>{};
    if (rest_.size() < descriptor_start) return Error{.code = Code::truncated};
    const auto size = descriptor_start + std::to_integer<std::size_t>(rest_[1]);
    if (size > rest_.size())
        return Error{.code = Code::truncated, .where = static_cast<std::uint32_t>(rest_.size())};
    const SenseDescriptor descriptor{.type = static_cast<SenseDescriptorType>(rest_[0]),
                                     .whole = rest_.first(size)};
    rest_ = rest_.subspan(size);
    return std::optional(descriptor);
}

Result<SenseSummary> summarize_sense(ConstBuffer sense) {
    WEFT_TRY(const auto response, sense_response(sense));
    const bool is_fixed =
        response == SenseResponse::fixed_current || response == SenseResponse::fixed_deferred;
    return is_fixed ? summarize_fixed(sense) : summarize_descriptors(sense);
}

}  // namespace weft::wire
