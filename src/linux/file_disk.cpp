// SPDX-License-Identifier: Apache-2.0
#include "linux/file_disk.hpp"

#include "base/bytes.hpp"
#include "base/check.hpp"

namespace weft::linux {
namespace {

bool changes(BlockOperation operation) {
    return operation == BlockOperation::write || operation == BlockOperation::trim ||
           operation == BlockOperation::write_zeroes;
}

bool memory_fits(const BlockRequest& request) {
    std::uint64_t total = 0;
    for (auto piece : request.memory) total += piece.size();
    return total == request.length;
}

}  // namespace

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

Result<void> FileDisk::check(const BlockRequest& request) const {
    auto& traits = file_.facts.traits;
    if (request.operation == BlockOperation::flush) return {};
    if (!within(request.offset, request.length, traits.size))
        return Error{.code = Code::out_of_range};
    if ((request.offset | request.length) % traits.minimum_block != 0)
        return Error{.code = Code::malformed};
    if (traits.read_only && changes(request.operation)) return Error{.code = Code::access_denied};
    if (request.operation == BlockOperation::trim && !traits.can_trim)
        return Error{.code = Code::unsupported};
    if (request.operation == BlockOperation::status && !traits.can_report_status)
        return Error{.code = Code::unsupported};
    return {};
}

void FileDisk::submit(BlockRequest& request) {
    request.extent_count = 0;
    if (auto checked = check(request); !checked) return request.completed(checked);
    bool moves =
        request.operation == BlockOperation::read || request.operation == BlockOperation::write;
    WEFT_CHECK(!moves || memory_fits(request));
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
