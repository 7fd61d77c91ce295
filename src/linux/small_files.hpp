// SPDX-License-Identifier: Apache-2.0
// Small files, read and replaced as a whole.
//
// A replacement is written beside the file, made stable, and given its name; then the folder is
// made stable too. A crash at any moment leaves the old contents or the new. What is beside it
// between replacements is room for the next: a file system that is full does not keep it from being
// replaced, nor, then, a controller from being obeyed. All of that waits for
// the disk, so it is done on a thread of the file engine's, one replacement at a time: two of the
// same file must not overtake each other.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "linux/file_io.hpp"
#include "linux/limits.hpp"
#include "weft/buffer.hpp"
#include "weft/result.hpp"

namespace weft::linux {

class SmallFiles {
public:
    explicit SmallFiles(FileIo& io);
    SmallFiles(const SmallFiles&) = delete;
    SmallFiles& operator=(const SmallFiles&) = delete;
    /// Every replacement must be done.
    ~SmallFiles();

    /// `exhausted`: it is longer than a small file may be.
    static Result<std::vector<std::byte>> read(const std::string& path);
    bool has_room() const { return replacements_.size() < limits::replacements_waiting; }
    void replace(const std::string& path, ConstBuffer contents,
                 std::function<void(Result<void>)> done);

private:
    class Replacement;

    void replaced(std::int64_t result);

    FileIo& io_;
    std::deque<std::unique_ptr<Replacement>> replacements_;  ///< the first is under way
};

}  // namespace weft::linux
