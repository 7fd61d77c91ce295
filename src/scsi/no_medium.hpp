// SPDX-License-Identifier: Apache-2.0
// The device of a unit that has none: see UnitOptions::has_medium. The unit refuses every command
// that would reach it.
#pragma once

#include "weft/block_device.hpp"

namespace weft::scsi {

class NoMedium final : public BlockDevice {
public:
    BlockTraits traits() const override { return {.size = 512}; }
    void submit(BlockRequest& request) override {
        request.completed(Error{.code = Code::unsupported});
    }
};

}  // namespace weft::scsi
