// SPDX-License-Identifier: Apache-2.0
#include "linux/in_place_file_io.hpp"

#include <cerrno>
#include <chrono>

#include "base/check.hpp"

namespace weft::linux {
namespace {

constexpr Duration slow = std::chrono::milliseconds(1);
constexpr int patience = 50;

}  // namespace

InPlaceFileIo::InPlaceFileIo(EventLoop& loop, std::unique_ptr<FileIo> engine, Reads reads)
    : loop_(loop), engine_(std::move(engine)), reads_(reads) {
    loop_.at_turn_end(*this);
}

InPlaceFileIo::~InPlaceFileIo() {
    WEFT_CHECK(gathered_.empty());
    loop_.not_at_turn_end(*this);
}

void InPlaceFileIo::start(FileOperation& operation) {
    bool here = operation.brief;
    if (operation.kind == FileOperation::Kind::read)
        here &= reads_ == Reads::try_in_place;
    else
        here &= loop_.now() >= patient_until_;
    here ? gathered_.push_back(operation) : engine_->start(operation);
}

bool InPlaceFileIo::turn_ends() {
    if (gathered_.empty()) return false;
    IntrusiveQueue<FileOperation> now;
    now.append(gathered_);  // what their ends start waits for the next round
    while (!now.empty()) {
        auto& operation = now.pop_front();
        if (operation.kind == FileOperation::Kind::read)
            try_read(operation);
        else
            do_timed(operation);
    }
    return true;
}

void InPlaceFileIo::try_read(FileOperation& operation) {
    operation.flags = RWF_NOWAIT;
    auto result = perform(operation);
    operation.flags = 0;
    if (result == -EOPNOTSUPP) reads_ = Reads::leave_to_engine;  // this file system cannot tell
    if (result == -EOPNOTSUPP || result == -EAGAIN) return engine_->start(operation);
    operation.finished(result);
}

void InPlaceFileIo::do_timed(FileOperation& operation) {
    if (loop_.now() < patient_until_) return engine_->start(operation);
    auto begun = read_clock();
    auto result = perform(operation);
    auto ended = read_clock();
    auto took = ended - begun;
    if (took >= slow) patient_until_ = ended + took * patience;
    operation.finished(result);
}

}  // namespace weft::linux
