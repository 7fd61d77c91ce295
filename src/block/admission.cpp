// SPDX-License-Identifier: Apache-2.0
#include "block/admission.hpp"

#include "base/bytes.hpp"
#include "block/scatter.hpp"

namespace weft::block {
namespace {

bool can_do(BlockOperation operation, const BlockTraits& traits) {
    switch (operation) {
        case BlockOperation::trim:
            return traits.can_trim;
        case BlockOperation::write_zeroes:
            return traits.can_write_zeroes;
        case BlockOperation::status:
            return traits.can_report_status;
        case BlockOperation::read:
        case BlockOperation::write:
        case BlockOperation::flush:
        case BlockOperation::prefetch:
            return true;
    }
    return false;
}

}  // namespace

bool changes_data(BlockOperation operation) {
    return operation == BlockOperation::write || operation == BlockOperation::trim ||
           operation == BlockOperation::write_zeroes;
}

bool moves_data(BlockOperation operation) {
    return operation == BlockOperation::read || operation == BlockOperation::write;
}

bool memory_fits(const BlockRequest& request) {
    return !moves_data(request.operation) || total_size(request.memory) == request.length;
}

std::optional<Error> refusal_of(const BlockRequest& request, const BlockTraits& traits) {
    return refusal_of(request.operation, request.offset, request.length, traits);
}

std::optional<Error> refusal_of(BlockOperation operation, std::uint64_t offset,
                                std::uint64_t length, const BlockTraits& traits) {
    if (operation == BlockOperation::flush) return std::nullopt;
    // What no other range would help comes first.
    if (traits.read_only && changes_data(operation)) return Error{.code = Code::access_denied};
    if (!can_do(operation, traits)) return Error{.code = Code::unsupported};
    if (!within(offset, length, traits.size)) return Error{.code = Code::out_of_range};
    if (offset % traits.minimum_block != 0 || length % traits.minimum_block != 0)
        return Error{.code = Code::malformed};
    if (moves_data(operation) && length > traits.maximum_transfer)
        return Error{.code = Code::out_of_range};
    return std::nullopt;
}

}  // namespace weft::block
