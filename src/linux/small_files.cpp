// SPDX-License-Identifier: Apache-2.0
#include "linux/small_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>

#include "base/check.hpp"
#include "linux/stable_folder.hpp"
#include "linux/system_error.hpp"

namespace weft::linux {
namespace {

/// How much longer than this one the next may be.
constexpr std::size_t slack = 16 * 1024;

/// What is in it already is of no interest, but its room is.
Descriptor open_beside(const std::string& path) {
    return Descriptor(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
}

int write_all(int file, ConstBuffer contents) {
    const auto length = static_cast<off_t>(contents.size());
    while (!contents.empty()) {
        const auto count = ::write(file, contents.data(), contents.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return -errno;
        contents = contents.subspan(static_cast<std::size_t>(count));
    }
    return ::ftruncate(file, length) < 0 || ::fsync(file) < 0 ? -errno : 0;
}

}  // namespace

class SmallFiles::Replacement final : public FileOperation {
public:
    Replacement(SmallFiles& owner, std::string path, ConstBuffer contents,
                std::function<void(Result<void>)> told)
        : done(std::move(told)),
          owner_(owner),
          path_(std::move(path)),
          contents_(contents.begin(), contents.end()) {
        kind = Kind::call;
    }

    std::int64_t on_thread() override {
        const std::string beside = path_ + ".new";
        {
            const auto file = open_beside(beside);
            if (!file.is_open()) return -errno;
            if (const int failed = write_all(file.number(), contents_)) return failed;
        }
        if (::rename(beside.c_str(), path_.c_str()) < 0) return -errno;
        if (const int failed = make_entry_stable(path_)) return failed;
        // Room for the next, so that it can be replaced even when the file system is full.
        if (const auto next = open_beside(beside); next.is_open())
            (void)::fallocate(next.number(), 0, 0, static_cast<off_t>(contents_.size() + slack));
        return 0;
    }
    void finished(std::int64_t number) override { owner_.replaced(number); }

    std::function<void(Result<void>)> done;

private:
    SmallFiles& owner_;
    std::string path_;
    std::vector<std::byte> contents_;
};

SmallFiles::SmallFiles(FileIo& io) : io_(io) {}

SmallFiles::~SmallFiles() {
    WEFT_CHECK(replacements_.empty());
}

Result<std::vector<std::byte>> SmallFiles::read(const std::string& path) {
    Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.is_open()) return system_error(errno);
    std::vector<std::byte> contents;
    for (;;) {
        constexpr std::size_t step = 64 * 1024;
        const auto before = contents.size();
        contents.resize(before + step);
        const auto count = ::read(file.number(), contents.data() + before, step);
        if (count < 0 && errno != EINTR) return system_error(errno);
        contents.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
        if (count == 0) return contents;
        if (contents.size() > limits::small_file_bytes) return Error{.code = Code::exhausted};
    }
}

void SmallFiles::replace(const std::string& path, ConstBuffer contents,
                         std::function<void(Result<void>)> done) {
    replacements_.push_back(std::make_unique<Replacement>(*this, path, contents, std::move(done)));
    if (replacements_.size() == 1) io_.start(*replacements_.front());
}

void SmallFiles::replaced(std::int64_t result) {
    const auto over = std::move(replacements_.front());
    replacements_.pop_front();
    if (!replacements_.empty()) io_.start(*replacements_.front());
    over->done(result < 0 ? Result<void>(system_error(static_cast<int>(-result))) : Result<void>());
}

}  // namespace weft::linux
