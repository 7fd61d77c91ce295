// SPDX-License-Identifier: Apache-2.0
#include "node/nbd_disk.hpp"

namespace weft::node {

NbdDisk::NbdDisk(std::string export_name, std::function<void(Result<void>)> opened)
    : client_(std::move(export_name), {.wake =
                                           [this] {
                                               if (stream_) stream_->wake();
                                           },
                                       .opened = std::move(opened)}) {}

Result<std::unique_ptr<NbdDisk>> NbdDisk::connect(World& world, const Address& address,
                                                  std::string export_name,
                                                  std::function<void(Result<void>)> opened) {
    std::unique_ptr<NbdDisk> disk(new NbdDisk(std::move(export_name), std::move(opened)));
    WEFT_TRY(disk->stream_, world.connect(address, disk->client_));
    return disk;
}

}  // namespace weft::node
