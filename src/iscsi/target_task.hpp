// SPDX-License-Identifier: Apache-2.0
// A SCSI command at an iSCSI target: to the unit that executes it a scsi::Task, to the mover that
// carries its data a TargetMoverTask. It stands between the two and lets neither get ahead of the
// other: no answer before all data was taken, no memory given back before the mover is done.
#pragma once

#include "iscsi/datamover.hpp"
#include "scsi/task.hpp"

namespace weft::iscsi {

class TargetConnection;
class TargetSession;

class TargetTask final : public scsi::Task, public TargetMoverTask {
public:
    explicit TargetTask(TargetSession& session) : session_(session) {}

    /// Takes what the command says. `malformed`: its headers contradict each other.
    Result<void> load(const wire::ScsiCommandPdu& command, ConstBuffer additional_headers,
                      TargetConnection& connection);
    bool immediate() const { return immediate_; }
    std::uint32_t command_number() const { return command_number_; }
    TargetConnection* connection() const { return connection_; }
    /// Its answer is on its way: nothing can abort it any more.
    bool answering() const { return stage_ == Stage::answering; }
    bool waiting() const { return stage_ == Stage::waiting; }
    bool executing() const { return stage_ == Stage::executing; }
    /// The unit is done with it, the initiator is not: data comes that nobody wants.
    bool draining() const { return stage_ == Stage::draining; }

    /// Its turn has come.
    void execute();
    /// From the mover.
    void data_taken(DataOutcome outcome);
    void answered();
    /// Its connection is gone: forget the mover. The unit is told by whoever lost the connection.
    void connection_lost();
    /// It waits for its turn or for data to be dropped, and shall end without an answer.
    void withdraw();
    /// It was to wait for its turn, which will not come.
    void forget();

    // scsi::Task
    void data_wanted(std::span<const Buffer> places) override;
    void data_unwanted() override;
    void finished() override;

    // The session's.
    TargetTask* next_free = nullptr;
    TargetTask* next_listed = nullptr;
    bool listed = false;
    bool counts_unanswered = false;
    bool orphan = false;  ///< its connection is gone, its unit still has it

private:
    enum class Stage : std::uint8_t {
        free,
        waiting,    ///< for commands with smaller numbers
        executing,  ///< with the unit
        draining,   ///< the unit is done, and unsolicited data still comes
        answering,
    };

    bool has_data_out() const { return out_length > 0 || immediate_length > 0; }
    void send_answer();
    void end();
    wire::ScsiResponsePdu response() const;

    TargetSession& session_;
    TargetConnection* connection_ = nullptr;
    std::uint32_t command_number_ = 0;
    bool immediate_ = false;
    bool read_ = false;
    bool write_ = false;
    Stage stage_ = Stage::free;
    bool asked_for_data_ = false;  ///< take_data() was called
    bool data_pending_ = false;    ///< and is not answered
    bool withdrawn_ = false;       ///< no answer is wanted
};

}  // namespace weft::iscsi
