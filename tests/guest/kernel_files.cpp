// SPDX-License-Identifier: Apache-2.0
// Does to files of one folder whatever programs do to files, by chance, and knows what must be in
// them: write, read, truncate, mmap, punch holes, fsync, close, forget what the kernel has cached.
// As fsx does, of which nothing is taken. It runs in the guest, on a file system on a disk of ours.
//
//     kernel_files FOLDER SEED SECONDS
//
// A line a second says how far it is; the status is 1 when a file is not what it must be, and the
// last line says where.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr std::size_t largest = 1 << 20;
constexpr std::size_t longest = 48 << 10;
constexpr int files = 6;

[[noreturn]] void fail(const std::string& what) {
    std::printf("WRONG: %s\n", what.c_str());
    std::exit(1);
}

void must(bool done, const char* what, const std::string& path) {
    if (!done) fail(std::string(what) + " of " + path + ": " + std::strerror(errno));
}

struct Counts {
    std::uint64_t operations = 0, octets = 0, syncs = 0, forgotten = 0;
};

class Chance {
public:
    explicit Chance(std::uint64_t seed) : engine_(seed) {}
    std::size_t below(std::size_t bound) { return static_cast<std::size_t>(engine_() % bound); }
    void fill(std::vector<std::byte>& octets) {
        // Eight at a time: the guest is emulated, and slow.
        for (std::size_t at = 0; at < octets.size(); at += sizeof(std::uint64_t)) {
            const std::uint64_t drawn = engine_();
            std::memcpy(octets.data() + at, &drawn, std::min(sizeof drawn, octets.size() - at));
        }
    }

private:
    std::mt19937_64 engine_;
};

/// A file, and what must be in it.
class File {
public:
    File(std::string path, Chance& chance, Counts& counts)
        : path_(std::move(path)), chance_(chance), counts_(counts) {
        open_it(O_CREAT | O_TRUNC);
    }
    File(File&& other) noexcept
        : path_(std::move(other.path_)),
          chance_(other.chance_),
          counts_(other.counts_),
          model_(std::move(other.model_)),
          descriptor_(std::exchange(other.descriptor_, -1)) {}
    ~File() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }

    void step() {
        ++counts_.operations;
        switch (chance_.below(16)) {
            case 0:
            case 1:
            case 2:
            case 3:
                return write();
            case 4:
            case 5:
                return write_mapped();
            case 6:
            case 7:
            case 8:
                return read();
            case 9:
                return read_mapped();
            case 10:
                return truncate();
            case 11:
                return punch();
            case 12:
            case 13:
                return sync();
            case 14:
                return forget();
            default:
                return reopen();
        }
    }

    /// All of it, from the disk.
    void check() {
        forget();
        compare(0, model_.size(), "read again");
    }

private:
    struct Extent {
        std::size_t at, count;
    };

    void open_it(int more) {
        descriptor_ = ::open(path_.c_str(), O_RDWR | more, 0600);
        must(descriptor_ >= 0, "open", path_);
    }
    Extent anywhere() {
        const auto at = chance_.below(largest - longest);
        const auto count = 1 + chance_.below(longest);
        return {at, count};
    }
    /// Something that is there; nothing where the file is empty.
    Extent inside() {
        if (model_.empty()) return {0, 0};
        const auto at = chance_.below(model_.size());
        const auto count = 1 + chance_.below(std::min(longest, model_.size() - at));
        return {at, count};
    }
    std::vector<std::byte> some(std::size_t count) {
        std::vector<std::byte> made(count);
        chance_.fill(made);
        return made;
    }
    void remember(std::size_t at, const std::vector<std::byte>& octets) {
        if (model_.size() < at + octets.size()) model_.resize(at + octets.size());
        std::copy(octets.begin(), octets.end(), model_.begin() + static_cast<long>(at));
        counts_.octets += octets.size();
    }
    void write() {
        const auto [at, count] = anywhere();
        const auto octets = some(count);
        must(::pwrite(descriptor_, octets.data(), count, static_cast<off_t>(at)) ==
                 static_cast<ssize_t>(count),
             "write", path_);
        remember(at, octets);
    }
    void compare(std::size_t at, std::size_t count, const char* how) {
        std::vector<std::byte> octets(count);
        must(::pread(descriptor_, octets.data(), count, static_cast<off_t>(at)) ==
                 static_cast<ssize_t>(count),
             how, path_);
        same(at, octets.data(), count, how);
    }
    void same(std::size_t at, const std::byte* found, std::size_t count, const char* how) {
        counts_.octets += count;
        const auto* wanted = model_.data() + at;
        const auto* differs = std::mismatch(found, found + count, wanted).first;
        if (differs == found + count) return;
        const auto where = static_cast<std::size_t>(differs - found);
        fail(path_ + " " + how + ": octet " + std::to_string(at + where) + " of " +
             std::to_string(model_.size()) + " is " +
             std::to_string(std::to_integer<unsigned>(found[where])) + ", not " +
             std::to_string(std::to_integer<unsigned>(wanted[where])));
    }
    void read() {
        const auto [at, count] = inside();
        compare(at, count, "read");
    }
    /// The pages that hold an extent, and where in them it begins.
    template <class Do>
    void mapped(Extent extent, Do what) {
        constexpr std::size_t page = 4096;
        const auto begin = extent.at / page * page;
        const auto length = extent.at + extent.count - begin;
        auto* memory = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_,
                              static_cast<off_t>(begin));
        must(memory != MAP_FAILED, "mmap", path_);
        what(static_cast<std::byte*>(memory) + (extent.at - begin), memory, length);
        ::munmap(memory, length);
    }
    void read_mapped() {
        const auto extent = inside();
        if (extent.count == 0) return;
        mapped(extent, [&](const std::byte* place, void*, std::size_t) {
            same(extent.at, place, extent.count, "read by mmap");
        });
    }
    void write_mapped() {
        const auto extent = inside();
        if (extent.count == 0) return;
        const auto octets = some(extent.count);
        const bool at_once = chance_.below(2) == 0;
        mapped(extent, [&](std::byte* place, void* memory, std::size_t length) {
            std::copy(octets.begin(), octets.end(), place);
            if (at_once) must(::msync(memory, length, MS_SYNC) == 0, "msync", path_);
        });
        remember(extent.at, octets);
    }
    void truncate() {
        const auto size = chance_.below(largest);
        must(::ftruncate(descriptor_, static_cast<off_t>(size)) == 0, "truncate", path_);
        model_.resize(size);
    }
    void punch() {
        const auto [at, count] = inside();
        if (count == 0) return;
        must(::fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                         static_cast<off_t>(at), static_cast<off_t>(count)) == 0,
             "punch", path_);
        std::fill_n(model_.begin() + static_cast<long>(at), count, std::byte{});
    }
    void sync() {
        ++counts_.syncs;
        must(::fsync(descriptor_) == 0, "fsync", path_);
    }
    /// What is read next comes from the disk.
    void forget() {
        sync();
        ++counts_.forgotten;
        must(::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED) == 0, "fadvise", path_);
    }
    void reopen() {
        must(::close(descriptor_) == 0, "close", path_);
        open_it(0);
        if (static_cast<std::size_t>(::lseek(descriptor_, 0, SEEK_END)) != model_.size())
            fail(path_ + " has not the size it had");
    }

    std::string path_;
    Chance& chance_;
    Counts& counts_;
    std::vector<std::byte> model_;
    int descriptor_ = -1;
};

void report(const Counts& counts) {
    std::printf("operations %llu octets %llu fsyncs %llu read-from-disk %llu\n",
                static_cast<unsigned long long>(counts.operations),
                static_cast<unsigned long long>(counts.octets),
                static_cast<unsigned long long>(counts.syncs),
                static_cast<unsigned long long>(counts.forgotten));
    std::fflush(stdout);
}

}  // namespace

int main(int count, char** words) {
    if (count != 4) {
        std::fprintf(stderr, "usage: kernel_files FOLDER SEED SECONDS\n");
        return 2;
    }
    using Clock = std::chrono::steady_clock;
    Chance chance(std::strtoull(words[2], nullptr, 10));
    Counts counts;
    std::vector<File> all;
    for (int number = 0; number < files; ++number)
        all.emplace_back(std::string(words[1]) + "/file" + std::to_string(number), chance, counts);
    const auto ends = Clock::now() + std::chrono::seconds(std::strtoul(words[3], nullptr, 10));
    auto next = Clock::now();
    while (Clock::now() < ends) {
        all[chance.below(all.size())].step();
        if (Clock::now() < next) continue;
        report(counts);
        next = Clock::now() + std::chrono::seconds(1);
    }
    for (auto& file : all) file.check();
    report(counts);
    std::puts("all files are what they must be");
    return 0;
}
