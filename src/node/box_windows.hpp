// SPDX-License-Identifier: Apache-2.0
// The staging windows of one part of a box: memory in the protection domain of the box's links,
// each window under a tag index of its own that never changes. An order opens a window under that
// index and the key octet its transaction chose, and peers reach it until it is closed.
#pragma once

#include <memory>
#include <new>
#include <vector>

#include "node/array_links.hpp"
#include "raid/staging.hpp"

namespace weft::node {

class BoxWindows final : public raid::StagingMemory {
public:
    struct Options {
        std::uint16_t windows = 32;
        std::uint32_t bytes = 4u << 20;  ///< of each; taken from the system as it is touched
        /// How long a window cannot be opened because bytes of it are on their way to a peer that
        /// takes none; then that connection is cut.
        Duration patience = std::chrono::seconds(2);
    };

    /// The memory is the links' to use, too, and must outlive them: see ArrayLinks::keep_ready().
    static Result<std::unique_ptr<BoxWindows>> make(ArrayLinks& links, const Options& options);

    std::uint32_t windows() const override { return static_cast<std::uint32_t>(regions_.size()); }
    std::uint32_t window_limit() const override { return options_.bytes; }
    Result<Buffer> open(std::uint32_t window, SteeringTag tag, std::uint32_t length) override;
    void close(std::uint32_t window) override;
    Buffer landing(std::uint32_t window) override;
    void close_all();

    /// With a key of zero: the transaction's takes its place.
    SteeringTag tag_of(std::uint32_t window) const;

private:
    static constexpr std::align_val_t alignment{4096};
    struct Free {
        void operator()(std::byte* memory) const { ::operator delete[](memory, alignment); }
    };

    BoxWindows(ArrayLinks& links, const Options& options)
        : links_(links), options_(options), lent_since_(options.windows) {}
    Buffer memory(std::uint32_t window) const;
    void take_back_in_time(std::uint32_t window);

    ArrayLinks& links_;
    Options options_;
    std::unique_ptr<std::byte[], Free> memory_;
    std::vector<std::unique_ptr<verbs::MemoryRegion>> regions_;
    std::vector<std::optional<Instant>> lent_since_;  ///< since somebody wanted to open it
};

}  // namespace weft::node
