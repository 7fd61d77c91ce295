// SPDX-License-Identifier: Apache-2.0
// File operations that do not stop the loop. Two engines do them: an io_uring, where the kernel
// allows one, and a few threads where it does not (many containers refuse io_uring). Before
// either stands InPlaceFileIo, for what is done sooner than handed over.
//
// An operation is an object its maker owns and keeps still until finished() is called, always
// from the loop and never from inside start(). What is started during a turn goes out together
// at its end: one system call, or one lock, for all of it.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <span>

#include "linux/event_loop.hpp"

namespace weft::linux {

class FileOperation {
public:
    enum class Kind : std::uint8_t {
        read,         ///< `flags`: RWF_NOWAIT or nothing
        write,        ///< `flags`: RWF_DSYNC or nothing
        synchronize,  ///< fdatasync; of `length` octets from `offset` if that is not 0: or of all
        allocate,     ///< fallocate; `flags` is its mode
        advise,       ///< posix_fadvise; `flags` is the advice
        call,         ///< whatever on_thread() does: for system calls a ring does not have
    };
    Kind kind = Kind::read;
    bool brief = false;  ///< most likely a copy from or to the page cache, and a small one
    int descriptor = -1;
    int flags = 0;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    std::span<const iovec> memory;  ///< read, write

    FileOperation* next = nullptr;  ///< for the engine
    std::int64_t result = 0;        ///< for the engine

    /// For `call`: runs on a thread of the engine's, and must touch nothing the loop may.
    virtual std::int64_t on_thread() { return 0; }
    /// What the system call returned: a count or zero, or a negative errno.
    virtual void finished(std::int64_t result) = 0;

protected:
    ~FileOperation() = default;
};

/// Does it here and now: what threads do, and what the result would be anywhere.
std::int64_t perform(FileOperation& operation);

class FileIo {
public:
    virtual ~FileIo() = default;
    virtual void start(FileOperation& operation) = 0;
};

}  // namespace weft::linux
