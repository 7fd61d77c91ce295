// SPDX-License-Identifier: Apache-2.0
// Octets aligned for ISA-L, as a value that can be copied and compared.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>

#include "weft/buffer.hpp"

namespace weft::test {

class AlignedBytes {
public:
    explicit AlignedBytes(std::size_t size) : size_(size), octets_(allocate(size)) {
        std::ranges::fill(all(), std::byte{0});
    }
    AlignedBytes(const AlignedBytes& other) : AlignedBytes(other.size_) { copy(other); }
    AlignedBytes& operator=(const AlignedBytes& other) {
        if (this == &other) return *this;
        if (size_ != other.size_) octets_.reset(allocate(size_ = other.size_));
        copy(other);
        return *this;
    }

    Buffer all() { return {octets_.get(), size_}; }
    ConstBuffer all() const { return {octets_.get(), size_}; }
    std::size_t size() const { return size_; }

    bool operator==(const AlignedBytes& other) const {
        return std::ranges::equal(all(), other.all());
    }

private:
    static constexpr std::align_val_t alignment{64};
    static std::byte* allocate(std::size_t size) {
        return static_cast<std::byte*>(::operator new(size, alignment));
    }
    struct Free {
        void operator()(std::byte* octets) const { ::operator delete(octets, alignment); }
    };
    void copy(const AlignedBytes& other) { std::ranges::copy(other.all(), all().begin()); }

    std::size_t size_ = 0;
    std::unique_ptr<std::byte[], Free> octets_;
};

}  // namespace weft::test
