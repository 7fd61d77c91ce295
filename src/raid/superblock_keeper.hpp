// SPDX-License-Identifier: Apache-2.0
// Keeps a box's superblock on its disk: two copies, one written and flushed after the other. So one
// of them is whole whenever the power goes; and when all is done they are the same, so that either
// may rot: were the older one left as it was, a box that lost the newer would obey a controller
// whose time is over. What was kept before is believed until the new one is lasting; so is what
// depends on it.
#pragma once

#include "raid/superblock.hpp"
#include "weft/block_device.hpp"

namespace weft::raid {

class SuperblockKeeper final : private BlockRequest {
public:
    class Listener {
    public:
        /// The superblock is lasting, twice; or it may not be, and the old one still counts.
        virtual void superblock_kept(Result<void> outcome) = 0;

    protected:
        ~Listener() = default;
    };

    /// `superblock` is what the disk holds now, `copy` where: newest_superblock() told.
    SuperblockKeeper(BlockDevice& disk, Listener& listener, const wire::ArraySuperblock& superblock,
                     unsigned copy)
        : disk_(disk),
          listener_(listener),
          current_(superblock),
          written_(superblock.written),
          copy_(copy) {}

    const wire::ArraySuperblock& current() const { return current_; }
    bool busy() const { return stage_ != Stage::idle; }

    /// Begins to keep this one. Not while busy.
    void keep(const wire::ArraySuperblock& superblock);

private:
    enum class Stage : std::uint8_t { idle, writing, flushing, writing_again, flushing_again };

    void write(Stage stage);
    void flush(Stage stage);
    void completed(Result<void> outcome) override;

    BlockDevice& disk_;
    Listener& listener_;
    wire::ArraySuperblock current_, next_{};
    SuperblockImage image_{};
    Buffer memory_{image_};
    std::uint64_t written_;  ///< no two ever have the same number
    unsigned copy_;          ///< that is whole whatever happens to the other
    Stage stage_ = Stage::idle;
};

}  // namespace weft::raid
