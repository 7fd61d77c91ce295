// SPDX-License-Identifier: Apache-2.0
// Keeps a box's superblock on its disk: two copies, written in turn and flushed, one at a time.
// What was kept before is believed until the new one is lasting; so is what depends on it.
#pragma once

#include "raid/superblock.hpp"
#include "weft/block_device.hpp"

namespace weft::raid {

class SuperblockKeeper final : private BlockRequest {
public:
    class Listener {
    public:
        /// The superblock is lasting, or it is not and the old one still holds.
        virtual void superblock_kept(Result<void> outcome) = 0;

    protected:
        ~Listener() = default;
    };

    /// `superblock` is what the disk holds now, `copy` where: newest_superblock() told.
    SuperblockKeeper(BlockDevice& disk, Listener& listener, const wire::ArraySuperblock& superblock,
                     unsigned copy)
        : disk_(disk), listener_(listener), current_(superblock), copy_(copy) {}

    const wire::ArraySuperblock& current() const { return current_; }
    bool busy() const { return stage_ != Stage::idle; }

    /// Begins to keep this one. Not while busy.
    void keep(const wire::ArraySuperblock& superblock);

private:
    enum class Stage : std::uint8_t { idle, writing, flushing };

    void completed(Result<void> outcome) override;

    BlockDevice& disk_;
    Listener& listener_;
    wire::ArraySuperblock current_, next_{};
    SuperblockImage image_{};
    Buffer memory_{image_};
    unsigned copy_;
    Stage stage_ = Stage::idle;
};

}  // namespace weft::raid
