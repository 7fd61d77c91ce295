// SPDX-License-Identifier: Apache-2.0
#include "linux/file_disk.hpp"

#include "base/check.hpp"
#include "block/admission.hpp"

namespace weft::linux {

Result<std::unique_ptr<BlockDevice>> FileDisk::open(FileIo& io, const DiskOptions& options) {
    WEFT_TRY(auto file, open_file(options));
    return std::unique_ptr<BlockDevice>(new FileDisk(io, std::move(file)));
}

FileDisk::FileDisk(FileIo& io, OpenedFile file)
    : can_punch(file.facts.traits.can_write_zeroes), io_(io), file_(std::move(file)) {
    for (std::size_t i = 0; i < limits::operations_per_disk; ++i)
        idle_.push_back(&operations_.emplace_back(*this));
}

FileDisk::~FileDisk() {
    WEFT_CHECK(idle_.size() == operations_.size() && waiting_.empty());
}

void FileDisk::submit(BlockRequest& request) {
    request.extent_count = 0;
    if (auto refused = block::refusal_of(request, file_.facts.traits))
        return request.completed(*refused);
    WEFT_CHECK(block::memory_fits(request));
    bool nothing_to_do =
        request.operation == BlockOperation::prefetch
            ? file_.facts.direct || request.length == 0  // past the cache, there is none to warm
            : request.operation != BlockOperation::flush && request.length == 0;
    if (nothing_to_do) return request.completed({});
    if (waiting_.size() >= limits::waiting_requests_per_disk)
        return request.completed(Error{.code = Code::exhausted});
    waiting_.push_back(request);
    start_waiting();
}

void FileDisk::put_back(DiskOperation& operation) {
    idle_.push_back(&operation);
    start_waiting();
}

void FileDisk::start_waiting() {
    if (starting_) return;  // an answer from inside begin(): the loop below goes on
    starting_ = true;
    while (!waiting_.empty() && !idle_.empty()) {
        auto& request = waiting_.pop_front();
        auto& operation = *idle_.back();
        idle_.pop_back();
        bool last = waiting_.empty();
        if (last) starting_ = false;
        operation.begin(request);
        if (last) return;  // it may have been answered, and the disk dropped
    }
    starting_ = false;
}

}  // namespace weft::linux
