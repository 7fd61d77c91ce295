// SPDX-License-Identifier: Apache-2.0
#include "wire/ddp.hpp"

namespace weft::wire {

Result<Segment> decode_segment(ConstBuffer octets) {
    if (octets.empty()) return Error{.code = Code::truncated};
    if (segment_header_size(octets[0]) == wire_size<TaggedSegment>()) {
        WEFT_TRY(auto tagged, decode<TaggedSegment>(octets));
        return Segment(tagged);
    }
    WEFT_TRY(auto untagged, decode<UntaggedSegment>(octets));
    return Segment(untagged);
}

}  // namespace weft::wire
