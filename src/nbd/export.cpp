// SPDX-License-Identifier: Apache-2.0
#include "nbd/export.hpp"

#include <algorithm>

#include "base/bytes.hpp"

namespace weft::nbd {

wire::nbd::TransmissionFlags Export::flags(bool structured_replies) const {
    auto traits = device->traits();
    bool writable = !read_only && !traits.read_only;
    return {.read_only = !writable,
            .can_flush = traits.can_flush,
            .can_write_durably = traits.can_write_durably,
            .rotational = traits.rotational,
            .can_trim = writable && traits.can_trim,
            .can_write_zeroes = writable && traits.can_write_zeroes,
            .can_keep_together = structured_replies,
            .many_connections = true,
            .can_cache = true,
            .can_zero_fast = writable && traits.can_write_zeroes};
}

wire::nbd::InfoBlockSize block_sizes(const BlockTraits& traits) {
    constexpr std::uint32_t smallest_preferred = 512;
    auto minimum = traits.minimum_block;
    auto preferred = std::max({traits.preferred_block, minimum, smallest_preferred});
    auto maximum = std::max(std::min(traits.maximum_transfer, transfer_max), preferred);
    return {minimum, preferred, static_cast<std::uint32_t>(round_down(maximum, minimum))};
}

Result<void> Exports::add(Export offered) {
    if (exports_.size() == exports_max) return Error{.code = Code::exhausted};
    if (offered.name.size() > wire::nbd::string_max ||
        offered.description.size() > wire::nbd::string_max)
        return Error{.code = Code::out_of_range};
    auto same = [&](const Export& other) { return other.name == offered.name; };
    if (std::ranges::any_of(exports_, same)) return Error{.code = Code::malformed};
    exports_.push_back(std::move(offered));
    return {};
}

const Export* Exports::find(std::string_view name) const {
    for (const auto& offered : exports_)
        if (offered.name == name) return &offered;
    return name.empty() && !exports_.empty() ? &exports_.front() : nullptr;
}

}  // namespace weft::nbd
