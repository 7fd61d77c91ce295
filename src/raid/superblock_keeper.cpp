// SPDX-License-Identifier: Apache-2.0
#include "raid/superblock_keeper.hpp"

#include "base/check.hpp"

namespace weft::raid {

void SuperblockKeeper::keep(const wire::ArraySuperblock& superblock) {
    WEFT_CHECK(!busy());
    next_ = superblock;
    next_.written = ++written_;
    image_ = encode_superblock(next_);
    write(Stage::writing);
}

void SuperblockKeeper::write(Stage stage) {
    stage_ = stage;
    operation = BlockOperation::write;
    offset = (copy_ ^ 1) * wire::superblock_size;
    length = wire::superblock_size;
    memory = {&memory_, 1};
    disk_.submit(*this);
}

void SuperblockKeeper::flush(Stage stage) {
    stage_ = stage;
    operation = BlockOperation::flush;
    disk_.submit(*this);
}

void SuperblockKeeper::completed(Result<void> outcome) {
    if (outcome && stage_ == Stage::writing) return flush(Stage::flushing);
    if (outcome && stage_ == Stage::flushing) {
        copy_ ^= 1;
        return write(Stage::writing_again);
    }
    if (outcome && stage_ == Stage::writing_again) return flush(Stage::flushing_again);
    stage_ = Stage::idle;
    if (outcome) current_ = next_;
    listener_.superblock_kept(outcome);
}

}  // namespace weft::raid
