// SPDX-License-Identifier: Apache-2.0
// What a server offers: block devices under names.
#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "nbd/limits.hpp"
#include "weft/block_device.hpp"
#include "wire/nbd.hpp"

namespace weft::nbd {

struct Export {
    std::string name;
    std::string description;
    BlockDevice* device = nullptr;
    bool read_only = false;

    wire::nbd::TransmissionFlags flags(bool structured_replies) const;
};

/// What a device's sizes are to NBD: never more than transfer_max, and in the order the protocol
/// demands whatever the device says.
wire::nbd::InfoBlockSize block_sizes(const BlockTraits& traits);

/// Connections keep pointers to the exports they chose, so exports never move.
class Exports {
public:
    /// Refuses a name twice, a name too long, and more exports than exports_max.
    Result<void> add(Export offered);

    /// The empty name means the first export, as clients that name none expect.
    const Export* find(std::string_view name) const;
    const std::deque<Export>& all() const { return exports_; }

private:
    std::deque<Export> exports_;
};

}  // namespace weft::nbd
