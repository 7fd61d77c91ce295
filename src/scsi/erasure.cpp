// SPDX-License-Identifier: Apache-2.0
#include "scsi/erasure.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "scsi/limits.hpp"

namespace weft::scsi {

namespace {

constexpr Error stopped{.code = Code::disconnected};

}  // namespace

Erasure::Erasure(BlockDevice& device, const Surroundings& surroundings, Plan plan, Done done)
    : device_(device),
      surroundings_(surroundings),
      plan_(std::move(plan)),
      done_(std::move(done)) {}

Erasure::~Erasure() {
    WEFT_CHECK(!with_device_);
    *alive_ = false;
}

void Erasure::start() {
    begun_ = surroundings_.now();
    if (!by_device()) {
        auto most = std::min<std::uint64_t>(piece_bytes, device_.traits().maximum_transfer);
        auto blocks = std::max<std::uint64_t>(1, most / plan_.block_bytes);
        memory_.resize(static_cast<std::size_t>(blocks * plan_.block_bytes));
        fill_memory();
    }
    go_on();
}

void Erasure::stop() {
    stopped_ = true;
    if (!with_device_) end(stopped);
}

void Erasure::fill_memory() {
    std::fill(memory_.begin(), memory_.end(), std::byte{0});
    if (plan_.pattern.empty()) return;
    const bool inverted = plan_.invert && pass_ % 2 == 1;
    for (std::size_t i = 0; i < memory_.size(); ++i) {
        auto octet = plan_.pattern[i % plan_.block_bytes % plan_.pattern.size()];
        memory_[i] = inverted ? ~octet : octet;
    }
}

std::uint16_t Erasure::progress() const {
    const auto size = device_.traits().size;
    const double whole = static_cast<double>(size) * plan_.passes;
    const double gone = static_cast<double>(size) * pass_ + static_cast<double>(at_);
    return whole == 0 ? 0xffff : static_cast<std::uint16_t>(gone / whole * 0xffff);
}

/// Never from inside a call: other connections have their turns, and time passes.
void Erasure::go_on() {
    const auto due =
        begun_ +
        Duration(static_cast<Duration::rep>(static_cast<double>(plan_.least_time.count()) / 0xffff *
                                            (at_ == 0 && pass_ == 0 ? 0 : progress())));
    const auto now = surroundings_.now();
    auto delay = due > now ? due - now : Duration{};
    surroundings_.call_later(delay, [this, alive = std::weak_ptr(alive_)] {
        auto still = alive.lock();
        if (still && *still) submit_next();
    });
}

void Erasure::submit_next() {
    const auto size = device_.traits().size - device_.traits().size % plan_.block_bytes;
    if (at_ == size && ++pass_ < plan_.passes) {
        at_ = 0;
        fill_memory();
    }
    durable = false;
    keep_space = false;
    offset = at_;
    if (at_ == size) {
        flushing_ = true;
        operation = BlockOperation::flush;
        offset = length = 0;
        memory = {};
    } else if (by_device()) {
        operation = BlockOperation::write_zeroes;
        // Slower than it could be, if it is to take its time.
        auto steps = plan_.least_time > Duration{} ? std::max<std::uint64_t>(1, size / 64) : size;
        length = std::min({zeroes_bytes_max, size - at_, steps - steps % plan_.block_bytes});
        if (length == 0) length = std::min<std::uint64_t>(plan_.block_bytes, size - at_);
        memory = {};
    } else {
        operation = BlockOperation::write;
        length = std::min<std::uint64_t>(memory_.size(), size - at_);
        piece_ = Buffer(memory_).first(static_cast<std::size_t>(length));
        memory = {&piece_, 1};
    }
    with_device_ = true;
    device_.submit(*this);
}

void Erasure::completed(Result<void> outcome) {
    with_device_ = false;
    if (!outcome || flushing_) return end(outcome);
    if (stopped_) return end(stopped);
    at_ += length;
    go_on();
}

/// Last of all: whoever hears it may end this object.
void Erasure::end(Result<void> outcome) {
    auto done = std::exchange(done_, nullptr);
    if (done) done(outcome);
}

}  // namespace weft::scsi
