// SPDX-License-Identifier: Apache-2.0
#include "raid/superblock_keeper.hpp"

#include "base/check.hpp"

namespace weft::raid {

void SuperblockKeeper::keep(const wire::ArraySuperblock& superblock) {
    WEFT_CHECK(!busy());
    stage_ = Stage::writing;
    next_ = superblock;
    next_.written = current_.written + 1;
    image_ = encode_superblock(next_);
    operation = BlockOperation::write;
    offset = (copy_ ^ 1) * wire::superblock_size;
    length = wire::superblock_size;
    memory = {&memory_, 1};
    disk_.submit(*this);
}

void SuperblockKeeper::completed(Result<void> outcome) {
    if (outcome && stage_ == Stage::writing) {
        stage_ = Stage::flushing;
        operation = BlockOperation::flush;
        disk_.submit(*this);
        return;
    }
    stage_ = Stage::idle;
    if (outcome) {
        current_ = next_;
        copy_ ^= 1;
    }
    listener_.superblock_kept(outcome);
}

}  // namespace weft::raid
