// SPDX-License-Identifier: Apache-2.0
// Where persistent reservations are kept so that they outlive the target (APTPL).
//
// A unit gives its whole state as octets of its own making, before the command that changed it is
// answered, and takes them back when it is made. What keeps them is the outside's business: a file
// beside the disk, in production.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "weft/buffer.hpp"
#include "weft/result.hpp"

namespace weft::scsi {

class ReservationStore {
public:
    virtual ~ReservationStore() = default;

    /// What was last saved for the unit of this identifier; `not_found` if nothing ever was.
    virtual Result<std::vector<std::byte>> load(std::string_view unit) = 0;
    /// Keeps it. `done` is called, perhaps from inside, when it is on stable storage or cannot be.
    virtual void save(std::string_view unit, ConstBuffer state,
                      std::function<void(Result<void>)> done) = 0;
};

}  // namespace weft::scsi
