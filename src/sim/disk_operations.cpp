// SPDX-License-Identifier: Apache-2.0
// What a request does to the bytes of a simulated disk, at the moment it completes.
#include <algorithm>
#include <cerrno>

#include "base/check.hpp"
#include "block/admission.hpp"
#include "block/scatter.hpp"
#include "sim/disk.hpp"
#include "sim/disk_device.hpp"

namespace weft::sim {
namespace {

constexpr Error device_error{.code = Code::io_failed, .detail = EIO};

std::vector<std::byte> gather(const BlockRequest& request) {
    std::vector<std::byte> bytes(request.length);
    block::copy_out({request.memory, 0, request.length}, bytes);
    return bytes;
}

Medium::Reach reach_of(const BlockRequest& request) {
    return request.durable ? Medium::Reach::stable : Medium::Reach::cache;
}

}  // namespace

Result<void> Disk::execute(const Service& service) {
    BlockRequest& request = *service.request;
    if (auto refused = block::refusal_of(request, service.device->traits())) return *refused;
    WEFT_CHECK(block::memory_fits(request));
    if (life_ == Life::fails || is_bad(request)) {
        clockwork_.note("disk fails a request", number_);
        return device_error;
    }
    switch (request.operation) {
        case BlockOperation::read:
            return read(request);
        case BlockOperation::write:
            return write(request);
        case BlockOperation::write_zeroes:
            return write_zeroes(request);
        case BlockOperation::trim:
            return trim(request);
        case BlockOperation::flush:
            if (spec_.flush_honesty == FlushHonesty::honest) medium_.flush(service.flush_mark);
            clockwork_.note("flushed", number_);
            return {};
        case BlockOperation::prefetch:
            return {};
        case BlockOperation::status:
            return report_status(request);
    }
    return Error{.code = Code::unsupported};
}

bool Disk::is_bad(const BlockRequest& request) const {
    if (request.operation == BlockOperation::flush) return false;
    BadFor wanted = block::changes_data(request.operation) ? BadFor::writes : BadFor::reads;
    return std::any_of(bad_ranges_.begin(), bad_ranges_.end(), [&](const BadRange& range) {
        return (range.bad_for == wanted || range.bad_for == BadFor::all) &&
               request.offset < range.offset + range.length &&
               range.offset < request.offset + request.length;
    });
}

bool Disk::has_space_for(const BlockRequest& request) const {
    std::uint64_t needed = medium_.unallocated(request.offset, request.length);
    return spec_.space == 0 || needed == 0 || medium_.allocated() + needed <= spec_.space;
}

Result<void> Disk::read(const BlockRequest& request) {
    if (clockwork_.random.chance(spec_.read_error_percent)) {
        // What a failed read leaves behind is nothing to rely on.
        for (Buffer piece : request.memory) std::fill(piece.begin(), piece.end(), std::byte{0xee});
        clockwork_.note("disk fails a request", number_);
        return device_error;
    }
    std::vector<std::byte> bytes(request.length);
    medium_.read(request.offset, bytes);
    block::copy_in(bytes, {request.memory, 0, request.length});
    clockwork_.note("disk read", number_, bytes);
    return {};
}

Result<void> Disk::write(const BlockRequest& request) {
    if (!has_space_for(request)) return Error{.code = Code::exhausted, .detail = ENOSPC};
    if (clockwork_.random.chance(spec_.write_error_percent)) return fail_write(request);
    auto bytes = gather(request);
    medium_.write(request.offset, bytes, reach_of(request));
    clockwork_.note("disk wrote", number_, bytes);
    return {};
}

/// A write that fails may have written some sectors, or none.
Result<void> Disk::fail_write(const BlockRequest& request) {
    clockwork_.note("disk fails a request", number_);
    auto bytes = gather(request);
    bool wrote_some = clockwork_.random.chance(50);
    for (std::size_t at = 0; wrote_some && at < bytes.size(); at += sector_bytes)
        if (clockwork_.random.chance(50))
            medium_.write(request.offset + at, ConstBuffer(bytes).subspan(at, sector_bytes),
                          Medium::Reach::cache);
    return device_error;
}

Result<void> Disk::write_zeroes(const BlockRequest& request) {
    // Keeping the space means writing zeroes out, which is what fast_only does not want.
    if (request.fast_only && request.keep_space) return Error{.code = Code::unsupported};
    if (request.keep_space && !has_space_for(request))
        return Error{.code = Code::exhausted, .detail = ENOSPC};
    auto kind = request.keep_space ? Medium::Zeroes::allocated : Medium::Zeroes::hole;
    medium_.write_zeroes(request.offset, request.length, kind, reach_of(request));
    clockwork_.trace.note(clockwork_.now(), "disk zeroed", number_, request.length, 0);
    return {};
}

Result<void> Disk::trim(const BlockRequest& request) {
    // A device may keep what was trimmed, so this one decides sector by sector.
    for (std::uint64_t at = 0; at < request.length; at += sector_bytes)
        if (clockwork_.random.chance(50))
            medium_.write_zeroes(request.offset + at, sector_bytes, Medium::Zeroes::hole,
                                 reach_of(request));
    clockwork_.trace.note(clockwork_.now(), "disk trimmed", number_, request.length, 0);
    return {};
}

Result<void> Disk::report_status(BlockRequest& request) {
    request.extent_count = 0;
    std::uint64_t at = request.offset, left = request.length;
    while (left > 0 && request.extent_count < request.extents.size()) {
        Extent run = medium_.extent(at, left);
        request.extents[request.extent_count++] = run;
        at += run.length;
        left -= run.length;
    }
    return {};
}

/// What a request in flight may have done when the power went: as if it had just been cached.
void Disk::leave_in_cache(const Service& service) {
    const BlockRequest& request = *service.request;
    if (block::refusal_of(request, service.device->traits())) return;
    if (request.operation == BlockOperation::write)
        medium_.write(request.offset, gather(request), Medium::Reach::cache);
    if (request.operation == BlockOperation::write_zeroes)
        medium_.write_zeroes(request.offset, request.length, Medium::Zeroes::hole,
                             Medium::Reach::cache);
}

}  // namespace weft::sim
