// SPDX-License-Identifier: Apache-2.0
// A descriptor that becomes readable when it is rung.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "linux/descriptor.hpp"

namespace weft::abi {

class Bell {
public:
    /// Counts the rings if asked to, and each answer is to one; else one answer is to all.
    enum class Kind : std::uint8_t { once, each };
    explicit Bell(Kind kind)
        : descriptor_(::eventfd(
              0, EFD_CLOEXEC | EFD_NONBLOCK | (kind == Kind::each ? EFD_SEMAPHORE : 0))) {}

    /// Negative where there were no descriptors left.
    int descriptor() const { return descriptor_.number(); }
    void ring() {
        std::uint64_t one = 1;
        [[maybe_unused]] auto written = ::write(descriptor(), &one, sizeof one);
    }
    void close() { descriptor_.close(); }
    /// Somebody else has.
    void forget() { descriptor_.forget(); }
    /// False if it was not rung.
    bool answer() {
        std::uint64_t count = 0;
        return ::read(descriptor(), &count, sizeof count) == sizeof count;
    }

private:
    linux::Descriptor descriptor_;
};

}  // namespace weft::abi
