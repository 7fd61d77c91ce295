// SPDX-License-Identifier: Apache-2.0
#include "linux/anonymous_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "linux/system_error.hpp"

namespace weft::linux {
namespace {

class AnonymousMemory final : public block::SparseMemory {
public:
    explicit AnonymousMemory(Buffer memory)
        : memory_(memory), page_(static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE))) {}
    AnonymousMemory(const AnonymousMemory&) = delete;
    AnonymousMemory& operator=(const AnonymousMemory&) = delete;
    ~AnonymousMemory() override {
        if (!memory_.empty()) ::munmap(memory_.data(), memory_.size());
    }

    Buffer all() override { return memory_; }

    void release(std::uint64_t offset, std::uint64_t length) override {
        WEFT_CHECK(within(offset, length, memory_.size()));
        if (length == 0) return;
        auto end = offset + length;
        auto first_page = round_up(offset, page_);
        // The last page may be longer than the memory; nobody else has a share in it.
        auto last_page = end == memory_.size() ? end : round_down(end, page_);
        if (first_page >= last_page) {
            std::memset(memory_.data() + offset, 0, length);
            return;
        }
        std::memset(memory_.data() + offset, 0, first_page - offset);
        std::memset(memory_.data() + last_page, 0, end - last_page);
        give_back(first_page, last_page - first_page);
    }

private:
    void give_back(std::uint64_t offset, std::uint64_t length) {
        // Refused for locked memory (mlockall): then at least the bytes are zero.
        if (::madvise(memory_.data() + offset, length, MADV_DONTNEED) < 0)
            std::memset(memory_.data() + offset, 0, length);
    }

    Buffer memory_;
    std::uint64_t page_;
};

}  // namespace

Result<std::unique_ptr<block::SparseMemory>> make_anonymous_memory(std::uint64_t size) {
    if (size == 0) return std::unique_ptr<block::SparseMemory>(new AnonymousMemory(Buffer()));
    // No MADV_HUGEPAGE: it makes reads a tenth cheaper, but the first write to each part costs
    // anything from a third to three times as much, and a 4 KiB write then takes 2 MiB.
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* place = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (place == MAP_FAILED) return system_error(errno);
    Buffer memory(static_cast<std::byte*>(place), size);
    return std::unique_ptr<block::SparseMemory>(new AnonymousMemory(memory));
}

}  // namespace weft::linux
