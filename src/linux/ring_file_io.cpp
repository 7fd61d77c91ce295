// SPDX-License-Identifier: Apache-2.0
#include "linux/ring_file_io.hpp"

#include <sys/eventfd.h>
#include <array>
#include <cerrno>

#include "base/check.hpp"
#include "linux/system_error.hpp"

namespace weft::linux {
namespace {

// The first set spares us interrupts while we run; kernels before 5.19 do not know it.
constexpr unsigned flag_sets[] = {IORING_SETUP_COOP_TASKRUN | IORING_SETUP_CLAMP,
                                  IORING_SETUP_CLAMP};

bool supports_all(io_uring& ring) {
    constexpr int needed[] = {IORING_OP_READ,     IORING_OP_READV, IORING_OP_WRITE,
                              IORING_OP_WRITEV,   IORING_OP_FSYNC, IORING_OP_FADVISE,
                              IORING_OP_FALLOCATE};
    io_uring_probe* probe = io_uring_get_probe_ring(&ring);
    if (!probe) return false;
    bool all = true;
    for (int operation : needed) all &= io_uring_opcode_supported(probe, operation) != 0;
    io_uring_free_probe(probe);
    return all;
}

}  // namespace

Result<std::unique_ptr<RingFileIo>> RingFileIo::make(EventLoop& loop) {
    std::unique_ptr<RingFileIo> io(new RingFileIo(loop));
    if (auto done = io->set_up(); !done) return done.error();
    WEFT_TRY(io->helper_, ThreadFileIo::make(loop, 1));
    if (auto watched = loop.watch(io->bell_.number(), EPOLLIN | EPOLLET, *io); !watched)
        return watched.error();
    loop.at_turn_end(*io);
    return io;
}

Result<void> RingFileIo::set_up() {
    int status = -EINVAL;
    for (unsigned flags : flag_sets) {
        io_uring_params parameters{};
        parameters.flags = flags;
        status = io_uring_queue_init_params(limits::ring_depth, &ring_, &parameters);
        if (status != -EINVAL) break;
    }
    if (status < 0) return system_error(-status);
    has_ring_ = true;
    // Watched edge-triggered, an eventfd makes an edge for each completion and is never read.
    bell_ = Descriptor(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (!bell_.is_open()) return system_error(errno);
    status = io_uring_register_eventfd(&ring_, bell_.number());
    if (status < 0) return system_error(-status);
    if (!supports_all(ring_)) return system_error(ENOSYS);
    return {};
}

RingFileIo::~RingFileIo() {
    if (!has_ring_) return;
    WEFT_CHECK(in_flight_ == 0 && waiting_.empty());
    loop_.not_at_turn_end(*this);
    loop_.forget(bell_.number(), *this);
    io_uring_queue_exit(&ring_);
}

void RingFileIo::start(FileOperation& operation) {
    if (operation.kind == FileOperation::Kind::call) return helper_->start(operation);
    waiting_.push_back(operation);
}

bool RingFileIo::turn_ends() {
    while (!waiting_.empty() && in_flight_ < limits::ring_depth && io_uring_sq_space_left(&ring_)) {
        prepare(waiting_.pop_front());
        ++in_flight_;
    }
    if (io_uring_sq_ready(&ring_) != 0) submit();
    return reap();  // looking is only a glance at shared memory
}

void RingFileIo::prepare(FileOperation& operation) {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    int descriptor = operation.descriptor;
    auto pieces = static_cast<unsigned>(operation.memory.size());
    const iovec* memory = operation.memory.data();
    bool single = pieces == 1;  // spares the kernel the copy and check of a list
    auto size = single ? static_cast<unsigned>(memory->iov_len) : 0u;
    switch (operation.kind) {
        case FileOperation::Kind::read:
            if (single)
                io_uring_prep_read(entry, descriptor, memory->iov_base, size, operation.offset);
            else
                io_uring_prep_readv(entry, descriptor, memory, pieces, operation.offset);
            break;
        case FileOperation::Kind::write:
            if (single)
                io_uring_prep_write(entry, descriptor, memory->iov_base, size, operation.offset);
            else
                io_uring_prep_writev(entry, descriptor, memory, pieces, operation.offset);
            entry->rw_flags = operation.flags;
            break;
        case FileOperation::Kind::synchronize:
            io_uring_prep_fsync(entry, descriptor, IORING_FSYNC_DATASYNC);
            if (operation.length == 0 || operation.length > ~std::uint32_t{0}) break;
            entry->off = operation.offset;
            entry->len = static_cast<std::uint32_t>(operation.length);
            break;
        case FileOperation::Kind::allocate:
            io_uring_prep_fallocate(entry, descriptor, operation.flags,
                                    static_cast<off_t>(operation.offset),
                                    static_cast<off_t>(operation.length));
            break;
        case FileOperation::Kind::advise:
            // Advice is about the near future; its length field has only 32 bits.
            io_uring_prep_fadvise(
                entry, descriptor, operation.offset,
                static_cast<off_t>(std::min<std::uint64_t>(operation.length, 1u << 30)),
                operation.flags);
            break;
        case FileOperation::Kind::call:
            WEFT_CHECK(false);
            break;
    }
    io_uring_sqe_set_data(entry, &operation);
}

void RingFileIo::submit() {
    int status = io_uring_submit(&ring_);
    if (status >= 0 && io_uring_sq_ready(&ring_) == 0) return;
    // The kernel is short of memory or wants its completions taken first: what is left in the
    // ring goes out with the next turn, and there will be one.
    WEFT_CHECK(status >= 0 || status == -EAGAIN || status == -EBUSY || status == -EINTR);
    loop_.defer([] {});
}

void RingFileIo::ready(std::uint32_t) {
    reap();
}

bool RingFileIo::reap() {
    bool any = false;
    std::array<io_uring_cqe*, 64> entries;
    // Bounded: each completion belongs to an operation that was in flight when we began.
    for (unsigned left = in_flight_; left > 0;) {
        auto most = std::min<unsigned>(left, entries.size());
        unsigned count = io_uring_peek_batch_cqe(&ring_, entries.data(), most);
        if (count == 0) break;
        left -= count;
        any = true;
        std::array<std::pair<FileOperation*, int>, 64> finished;
        for (unsigned i = 0; i < count; ++i)
            finished[i] = {static_cast<FileOperation*>(io_uring_cqe_get_data(entries[i])),
                           entries[i]->res};
        io_uring_cq_advance(&ring_, count);
        in_flight_ -= count;
        for (unsigned i = 0; i < count; ++i) finished[i].first->finished(finished[i].second);
    }
    return any;
}

}  // namespace weft::linux
