// SPDX-License-Identifier: Apache-2.0
#include "iscsi/target_task.hpp"

#include "iscsi/target_connection.hpp"
#include "iscsi/target_session.hpp"
#include "wire/iscsi_segments.hpp"

namespace weft::iscsi {
namespace {

wire::AdditionalSense sense_of(DataOutcome outcome) {
    switch (outcome) {
        case DataOutcome::unexpected_unsolicited:
            return wire::AdditionalSense::unexpected_unsolicited_data;
        case DataOutcome::wrong_amount:
            return wire::AdditionalSense::not_enough_unsolicited_data;
        default:
            return wire::AdditionalSense::protocol_service_crc_error;
    }
}

struct Difference {
    wire::Residual kind{};
    std::uint32_t count = 0;
};

/// RFC 7143 section 11.4.5: what the command meant against what the initiator expected.
Difference difference(std::uint64_t meant, std::uint64_t expected) {
    constexpr std::uint64_t most = 0xffffffff;
    if (meant > expected)
        return {wire::Residual::overflow,
                static_cast<std::uint32_t>(std::min(meant - expected, most))};
    if (meant < expected)
        return {wire::Residual::underflow, static_cast<std::uint32_t>(expected - meant)};
    return {};
}

}  // namespace

Result<void> TargetTask::load(const wire::ScsiCommandPdu& command, ConstBuffer additional_headers,
                              TargetConnection& connection) {
    immediate_ = command.immediate;  // first: it is counted by this even if the rest is wrong
    std::array<std::byte, wire::max_command_block> block{};
    std::size_t size = wire::command_block_in_header;
    std::copy_n(reinterpret_cast<const std::byte*>(command.command_block.data()), size,
                block.begin());
    std::uint32_t bidirectional_read = 0;
    wire::AdditionalHeaders headers(additional_headers);
    for (;;) {
        WEFT_TRY(auto header, headers.next());
        if (!header) break;
        if (header->type == wire::AdditionalHeaderType::extended_command_block) {
            WEFT_TRY(auto rest, wire::extended_command_block(*header));
            if (size + rest.size() > block.size()) return Error{.code = Code::malformed};
            std::copy(rest.begin(), rest.end(), block.begin() + static_cast<std::ptrdiff_t>(size));
            size += rest.size();
        } else if (header->type == wire::AdditionalHeaderType::bidirectional_read_length) {
            WEFT_TRY(auto length, decode<wire::BidirectionalReadLength>(header->whole));
            bidirectional_read = length.expected_transfer_length;
        }
    }
    set_command_block(ConstBuffer(block).first(size));
    connection_ = &connection;
    command_number_ = command.numbers.command_number;
    read_ = command.read;
    write_ = command.write;
    stage_ = Stage::waiting;
    asked_for_data_ = data_pending_ = withdrawn_ = false;
    tag = command.task_tag;
    TargetMoverTask::logical_unit = command.logical_unit;
    expects_unsolicited = command.write && !command.final;
    immediate_length = command.data_length;
    out_length = write_ ? command.expected_transfer_length : 0;
    in_length = !read_ ? 0 : write_ ? bidirectional_read : command.expected_transfer_length;
    scsi::Task::logical_unit = command.logical_unit;
    attribute = command.attribute;
    offered_out = out_length;
    accepted_in = in_length;
    impatient = immediate_length > 0 || expects_unsolicited;
    return {};
}

void TargetTask::execute() {
    stage_ = Stage::executing;
    nexus = session_.nexus();
    session_.scsi_target().execute(*this);
}

void TargetTask::data_wanted(std::span<const Buffer> places) {
    if (connection_ == nullptr)
        return data_failed(wire::SenseKey::aborted_command,
                           wire::AdditionalSense::protocol_service_crc_error);
    asked_for_data_ = data_pending_ = true;
    connection_->mover().take_data(*this, places);
}

void TargetTask::data_unwanted() {
    if (!data_pending_) return;
    if (connection_ != nullptr) return connection_->mover().abandon(*this);
    data_taken(DataOutcome::abandoned);
}

void TargetTask::data_taken(DataOutcome outcome) {
    data_pending_ = false;
    if (stage_ == Stage::draining) return withdrawn_ ? end() : send_answer();
    if (outcome == DataOutcome::complete) return data_came();
    data_failed(wire::SenseKey::aborted_command, sense_of(outcome));
}

void TargetTask::finished() {
    if (connection_ == nullptr) return end();
    if (answer.end == scsi::TaskEnd::aborted) {
        connection_->mover().abandon(*this);
        return end();
    }
    if (!has_data_out() || asked_for_data_) return send_answer();
    // What the initiator sends by itself is still to be read; it listens only afterwards.
    stage_ = Stage::draining;
    asked_for_data_ = data_pending_ = true;
    connection_->mover().take_data(*this, {});
}

wire::ScsiResponsePdu TargetTask::response() const {
    wire::ScsiResponsePdu pdu{.response = wire::ServiceResponse::completed_at_target,
                              .status = answer.status,
                              .task_tag = tag};
    auto in = difference(answer.length_in, accepted_in);
    auto out = difference(answer.length_out, offered_out);
    if (read_ && write_) {
        pdu.read_residual = in.kind;
        pdu.read_residual_count = in.count;
        pdu.residual = out.kind;
        pdu.residual_count = out.count;
        return pdu;
    }
    // One direction was announced; a command that moves data in the other moved none of it.
    auto meant = answer.length_in + answer.length_out;
    auto expected = read_ ? accepted_in : offered_out;
    auto one = difference(meant, expected);
    pdu.residual = one.kind;
    pdu.residual_count = one.count;
    return pdu;
}

void TargetTask::send_answer() {
    if (connection_ == nullptr) return end();
    stage_ = Stage::answering;
    session_.task_answers(*this);
    connection_->mover().answer(*this,
                                {.data_in = answer.data_in,
                                 .response = response(),
                                 .sense = ConstBuffer(answer.sense.data(), answer.sense.size())});
}

void TargetTask::answered() {
    end();
}

void TargetTask::connection_lost() {
    connection_ = nullptr;
    switch (stage_) {
        case Stage::answering:
        case Stage::draining:
            return end();
        case Stage::waiting:
            return forget();
        case Stage::executing:
            if (data_pending_) data_taken(DataOutcome::abandoned);
            return;
        case Stage::free:
            return;
    }
}

void TargetTask::withdraw() {
    WEFT_CHECK(waiting() || draining());
    withdrawn_ = true;
    const bool waited = waiting();
    connection_->mover().abandon(*this);
    if (waited) forget();
}

void TargetTask::forget() {
    stage_ = Stage::free;
    connection_ = nullptr;
    session_.task_ended(*this);
}

void TargetTask::end() {
    stage_ = Stage::free;
    connection_ = nullptr;
    release();
    session_.task_ended(*this);
}

}  // namespace weft::iscsi
