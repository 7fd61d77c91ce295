// SPDX-License-Identifier: Apache-2.0
// Commands of our own (wire/scsi_array.hpp) at a logical unit: the unit brings their parameters and
// carries their answers, and somebody above says what they mean. So the boxes and the controller of
// an array speak SCSI without SCSI knowing of arrays.
//
// Calls of one nexus are handed over in the order in which its commands came, however late the
// parameters of one are; plans rely on that. Answers may come in any order.
#pragma once

#include "scsi/nexus.hpp"
#include "weft/buffer.hpp"
#include "wire/scsi_status.hpp"

namespace weft::scsi {

class LogicalUnit;
class Task;

/// A command of ours, from receive() to answer(). It is the task's, and no copy is made of it.
class VendorCall {
public:
    explicit VendorCall(Task& task) : task_(task) {}
    VendorCall(const VendorCall&) = delete;
    VendorCall& operator=(const VendorCall&) = delete;

    ConstBuffer command_block() const;  ///< 16 octets
    /// What came of the parameter list, which may be less than the command block says.
    ConstBuffer parameters() const;
    const Nexus& sender() const;
    /// Octets of Data-In that can be answered: what the sender takes, within limits.
    std::size_t room_in() const;

    /// Exactly once, from inside receive() or forget(), or later; then the call is no more. The
    /// descriptors become sense data in the descriptor format, whatever the status: of the
    /// vendor's key with CHECK CONDITION, of no key otherwise. All octets are copied.
    void answer(wire::ScsiStatus status, ConstBuffer descriptors, ConstBuffer data_in);

private:
    Task& task_;
};

class VendorCommands {
public:
    virtual void receive(VendorCall& call) = 0;
    /// It was aborted, or its nexus is gone: nobody hears its answer any more. It must be answered
    /// nevertheless, now or when its work has ended, and whoever waits for the abort waits for
    /// that.
    virtual void forget(VendorCall& call) = 0;

protected:
    ~VendorCommands() = default;
};

}  // namespace weft::scsi
