// SPDX-License-Identifier: Apache-2.0
#include "linux/disk_operation.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/bytes.hpp"
#include "linux/file_disk.hpp"
#include "linux/scatter_vectors.hpp"
#include "linux/system_error.hpp"

namespace weft::linux {
namespace {

constexpr std::size_t page = 4096;
alignas(page) constinit std::byte zeroes[limits::zero_bytes] = {};

constexpr int hole_mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
constexpr int zero_mode = FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE;

}  // namespace

void DiskOperation::begin(BlockRequest& request) {
    request_ = &request;
    descriptor = disk_.descriptor();
    offset = request.offset;
    length = request.length;
    done_ = 0;
    switch (request.operation) {
        case BlockOperation::read:
        case BlockOperation::write:
            cursor_ = block::ScatterCursor(request.memory, 0, request.length);
            return move_next();
        case BlockOperation::flush:
            return make_durable(0, 0);
        case BlockOperation::trim:
            return begin_trim();
        case BlockOperation::write_zeroes:
            return begin_zeroing();
        case BlockOperation::prefetch:
            return start(Step::advising, Kind::advise, POSIX_FADV_WILLNEED);
        case BlockOperation::status:
            return start(Step::asking, Kind::call, 0);
    }
}

void DiskOperation::start(Step step, Kind what, int how) {
    brief = step == Step::moving && is_brief();
    step_ = step;
    kind = what;
    flags = how;
    disk_.io().start(*this);
}

void DiskOperation::finished(std::int64_t outcome) {
    if (outcome == -EINTR || outcome == -EAGAIN) return disk_.io().start(*this);
    auto number = static_cast<int>(-outcome);
    if (outcome == -EOPNOTSUPP && (step_ == Step::punching || step_ == Step::zeroing)) {
        // The file system has just told us once and for all.
        (step_ == Step::punching ? disk_.can_punch : disk_.can_zero_range) = false;
        return begin_zeroing();
    }
    if (step_ == Step::advising) return complete({});  // advice not taken is no failure
    if (outcome < 0 && step_ == Step::making_durable)
        return complete(synchronization_error(number));
    if (outcome < 0) return complete(disk_error(number));
    switch (step_) {
        case Step::moving:
        case Step::writing_zeroes:
            // The request lies within the size the file had: if its end is here, it has shrunk.
            if (outcome == 0) return complete(disk_error(EIO));
            return moved(static_cast<std::size_t>(outcome));
        case Step::trimming:
        case Step::punching:
        case Step::zeroing:
            return end_change();
        case Step::making_durable:
        case Step::asking:
        case Step::advising:
            return complete({});
    }
}

/// Past the cache the write itself can be durable, and no other is lost with it. Through it a ring
/// would keep all other writes of the file waiting for the disk, so a synchronization of just this
/// range comes after it.
int DiskOperation::durability() const {
    return request_->durable && disk_.facts().direct ? RWF_DSYNC : 0;
}

void DiskOperation::make_durable(std::uint64_t from, std::uint64_t octets) {
    offset = from;
    length = octets;
    start(Step::making_durable, Kind::synchronize, 0);
}

void DiskOperation::move_next() {
    auto most = std::min<std::uint64_t>(left(), limits::bytes_per_operation);
    memory = gather(cursor_, pieces_, most);
    bounced_ = disk_.facts().direct && !is_aligned(memory);
    if (bounced_) use_bounce();
    offset = request_->offset + done_;
    if (request_->operation == BlockOperation::read) return start(Step::moving, Kind::read, 0);
    start(Step::moving, Kind::write, durability());
}

bool DiskOperation::is_aligned(std::span<const iovec> pieces) const {
    auto& facts = disk_.facts();
    for (auto& piece : pieces)
        if (reinterpret_cast<std::uintptr_t>(piece.iov_base) % facts.memory_alignment != 0 ||
            piece.iov_len % facts.traits.minimum_block != 0)
            return false;
    return true;
}

/// A write is brief only if it covers whole pages: for a part of one the rest must be read first.
bool DiskOperation::is_brief() const {
    if (disk_.facts().direct) return false;
    if (request_->operation == BlockOperation::read)
        return request_->length <= limits::brief_read_bytes;
    return request_->length <= limits::brief_write_bytes &&
           (request_->offset | request_->length) % page == 0;
}

void DiskOperation::use_bounce() {
    auto alignment = std::max<std::size_t>(page, disk_.facts().traits.minimum_block);
    if (!bounce_)
        bounce_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, limits::bounce_bytes)));
    WEFT_CHECK(bounce_);
    Buffer part(bounce_.get(), std::min<std::uint64_t>(left(), limits::bounce_bytes));
    if (request_->operation == BlockOperation::write) copy_out(cursor_, part);
    pieces_[0] = {part.data(), part.size()};
    memory = std::span(pieces_).first(1);
}

void DiskOperation::moved(std::size_t count) {
    done_ += count;
    if (step_ == Step::writing_zeroes) {
        if (left() > 0) return write_zeroes_next();
        return end_change();
    }
    if (bounced_ && request_->operation == BlockOperation::read)
        copy_in({bounce_.get(), count}, cursor_);
    if (left() == 0) return end_change();
    cursor_.advance(count);
    move_next();
}

void DiskOperation::begin_trim() {
    if (disk_.facts().is_block_device) return start(Step::trimming, Kind::call, 0);
    start(Step::trimming, Kind::allocate, hole_mode);
}

void DiskOperation::begin_zeroing() {
    auto& facts = disk_.facts();
    bool aligned = (request_->offset | request_->length) % facts.sector == 0;
    if (aligned && !request_->keep_space && disk_.can_punch)
        return start(Step::punching, Kind::allocate, hole_mode);
    // A block device answers ZERO_RANGE with zeroes of the kernel's own writing: less to do for
    // us, but not fast.
    bool fast = !facts.is_block_device;
    if (aligned && disk_.can_zero_range && (fast || !request_->fast_only))
        return start(Step::zeroing, Kind::allocate, zero_mode);
    if (request_->fast_only) return complete(Error{.code = Code::unsupported});
    write_zeroes_next();
}

void DiskOperation::write_zeroes_next() {
    std::size_t count = 0;
    auto rest = left();
    for (; count < pieces_.size() && rest > 0; ++count) {
        auto part = std::min<std::uint64_t>(rest, limits::zero_bytes);
        pieces_[count] = {zeroes, part};
        rest -= part;
    }
    memory = std::span(pieces_).first(count);
    offset = request_->offset + done_;
    start(Step::writing_zeroes, Kind::write, durability());
}

void DiskOperation::end_change() {
    const bool is_write = step_ == Step::moving || step_ == Step::writing_zeroes;
    const bool is_read = request_->operation == BlockOperation::read;
    if (!request_->durable || is_read || (is_write && durability() != 0)) return complete({});
    // Of trims what the file system knows has changed, which has no range.
    make_durable(is_write ? request_->offset : 0, is_write ? request_->length : 0);
}

std::int64_t DiskOperation::on_thread() {
    return step_ == Step::trimming ? discard() : find_extents();
}

std::int64_t DiskOperation::discard() {
    std::uint64_t sector = disk_.facts().sector;
    auto first = round_up(request_->offset, sector);
    auto last = round_down(request_->offset + request_->length, sector);
    if (first >= last) return 0;  // less than a sector: a trim may keep what it likes
    std::uint64_t range[] = {first, last - first};
    return ::ioctl(descriptor, BLKDISCARD, range) < 0 ? -errno : 0;
}

std::int64_t DiskOperation::find_extents() {
    auto at = static_cast<off_t>(request_->offset);
    auto end = static_cast<off_t>(request_->offset + request_->length);
    auto extents = request_->extents;
    // Beyond the end of a file that shrank there is no hole: reads fail there, and whoever copies
    // by the map must not take lost data for zeroes.
    struct stat status {};
    if (::fstat(descriptor, &status) < 0) return -errno;
    if (S_ISREG(status.st_mode) && status.st_size < end) return -EIO;
    std::size_t count = 0;
    while (at < end && count < extents.size()) {
        auto data = ::lseek(descriptor, at, SEEK_DATA);
        if (data < 0 && errno != ENXIO) return -errno;
        bool hole = data != at;
        auto until = data;
        if (!hole) until = ::lseek(descriptor, at, SEEK_HOLE);
        if (until < 0) until = end;  // nothing but a hole follows, or the end of the file
        until = std::min(until, end);
        if (until == at) continue;  // the file changed between the two questions
        extents[count++] = {static_cast<std::uint64_t>(until - at), hole, hole};
        at = until;
    }
    request_->extent_count = count;
    return 0;
}

void DiskOperation::complete(Result<void> outcome) {
    auto& request = *std::exchange(request_, nullptr);
    disk_.put_back(*this);
    request.completed(outcome);  // last: the disk may be gone when it returns
}

}  // namespace weft::linux
