// SPDX-License-Identifier: Apache-2.0
#include "block/offset_filter.hpp"

#include <algorithm>

#include "base/bytes.hpp"
#include "block/admission.hpp"

namespace weft::block {

Result<std::unique_ptr<OffsetFilter>> OffsetFilter::make(BlockDevice& below, std::uint64_t offset,
                                                         std::uint64_t length) {
    auto traits = below.traits();
    if (!within(offset, length, traits.size)) return Error{.code = Code::out_of_range};
    if (offset % traits.minimum_block != 0 || length % traits.minimum_block != 0)
        return Error{.code = Code::malformed};
    return std::unique_ptr<OffsetFilter>(new OffsetFilter(below, offset, length));
}

BlockTraits OffsetFilter::traits() const {
    auto traits = below().traits();
    traits.size = traits.size > offset_ ? std::min(length_, traits.size - offset_) : 0;
    return traits;
}

Result<void> OffsetFilter::admit(const BlockRequest& request) {
    if (auto refused = refusal_of(request, traits())) return *refused;
    return {};
}

Buffer OffsetFilter::lend(BlockOperation operation, std::uint64_t offset, std::uint64_t length) {
    if (!within(offset, length, traits().size)) return {};
    return below().lend(operation, offset_ + offset, length);
}

}  // namespace weft::block
