// SPDX-License-Identifier: Apache-2.0
#include "linux/in_place_file_io.hpp"

#include <cerrno>

#include "base/check.hpp"

namespace weft::linux {

InPlaceFileIo::InPlaceFileIo(EventLoop& loop, std::unique_ptr<FileIo> engine, Reads reads,
                             Clock clock)
    : loop_(loop), engine_(std::move(engine)), reads_(reads), clock_(std::move(clock)) {
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
        here = here && !is_patient();
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
    if (is_patient()) return engine_->start(operation);
    auto begun = clock_();
    auto result = perform(operation);
    auto ended = clock_();
    auto took = ended - begun;
    if (took >= limits::slow_in_place)
        patient_until_ = ended + took * limits::patience_after_a_slow_one;
    operation.finished(result);
}

/// Whether one was slow lately. As long as none was, the clock need not be read.
bool InPlaceFileIo::is_patient() {
    if (!patient_until_) return false;
    if (clock_() < *patient_until_) return true;
    patient_until_.reset();
    return false;
}

}  // namespace weft::linux
