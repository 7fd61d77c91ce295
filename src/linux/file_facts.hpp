// SPDX-License-Identifier: Apache-2.0
// What there is to know about a file or a block device before serving it as a disk.
#pragma once

#include <cstdint>

#include "linux/descriptor.hpp"
#include "weft/world.hpp"

namespace weft::linux {

struct FileFacts {
    BlockTraits traits;
    bool is_block_device = false;
    bool direct = false;
    std::uint32_t memory_alignment = 1;  ///< direct: of every piece of memory
    std::uint32_t sector = 1;            ///< block device: what trim and zeroing count in
};

struct OpenedFile {
    Descriptor descriptor;
    FileFacts facts;
};

/// Opens the disk and asks the kernel about it. Refuses what is neither a regular file nor a
/// block device, and O_DIRECT where the file system does not do it (EINVAL).
Result<OpenedFile> open_file(const DiskOptions& options);

}  // namespace weft::linux
