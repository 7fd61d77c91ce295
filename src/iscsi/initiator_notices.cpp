// SPDX-License-Identifier: Apache-2.0
// What a target says to an InitiatorSession that is no answer to a command: pings, notices,
// refusals, texts and goodbyes.
#include "base/bytes.hpp"
#include "iscsi/initiator_session.hpp"
#include "wire/iscsi_notice.hpp"

namespace weft::iscsi {

void InitiatorSession::take(InitiatorConnection& connection, const ReceivedPdu& pdu) {
    switch (pdu.basic.opcode) {
        case wire::IscsiOpcode::nop_in: {
            const auto ping = decode<wire::NopInPdu>(pdu.header);
            if (!ping) return end_session(ping.error());
            if (ping->transfer_tag == wire::TargetTransferTag::none) return;
            return connection.send(
                wire::NopOutPdu{.immediate = true,
                                .logical_unit = ping->logical_unit,
                                .task_tag = wire::InitiatorTaskTag::none,
                                .transfer_tag = ping->transfer_tag,
                                .numbers = {.command_number = command_number_.value()}},
                {});
        }
        case wire::IscsiOpcode::asynchronous_message:
            return take_asynchronous(pdu);
        case wire::IscsiOpcode::reject:
            return take_reject(pdu);
        case wire::IscsiOpcode::text_response:
            return take_text(pdu);
        case wire::IscsiOpcode::task_management_response:
            return take_management(pdu);
        case wire::IscsiOpcode::logout_response:
            logout_answered_ = true;
            return end_session({.code = Code::disconnected});
        default:
            return end_session({.code = Code::malformed});
    }
}

void InitiatorSession::ping(InitiatorConnection& connection) {
    connection.pinged = true;
    const auto tag = static_cast<std::uint32_t>(ping_tag + connection.index());
    connection.send(wire::NopOutPdu{.immediate = true,
                                    .task_tag = static_cast<wire::InitiatorTaskTag>(tag),
                                    .transfer_tag = wire::TargetTransferTag::none,
                                    .numbers = {.command_number = command_number_.value()}},
                    {});
    user_.deadline_changed();
}

void InitiatorSession::take_asynchronous(const ReceivedPdu& pdu) {
    const auto message = decode<wire::AsynchronousMessagePdu>(pdu.header);
    if (!message) return end_session(message.error());
    switch (message->event) {
        case wire::AsynchronousEvent::logout_requested:
            // What is under way is answered first, so that nothing has to be sent again.
            draining_ = true;
            return log_out_if_idle();
        case wire::AsynchronousEvent::connection_will_be_dropped:
        case wire::AsynchronousEvent::session_will_be_dropped:
            // The target is going: what is under way is taken up again in the next session.
            return end_session({.code = Code::disconnected});
        default:
            return;  // sense of a unit comes with commands too, and terms we do not change
    }
}

void InitiatorSession::take_reject(const ReceivedPdu& pdu) {
    const auto reject = decode<wire::RejectPdu>(pdu.header);
    const auto refused = decode<wire::BasicHeader>(pdu.data);
    const bool damaged = reject && reject->reason == wire::RejectReason::data_digest_error;
    // Data is asked for again, or the command it belongs to is answered accordingly.
    if (damaged && refused && refused->opcode == wire::IscsiOpcode::data_out) return;
    if (!refused || refused->opcode != wire::IscsiOpcode::scsi_command)
        return end_session({.code = Code::unsupported});
    InitiatorMoverTask* task = find_task(refused->task_tag);
    if (task == nullptr) return;
    if (damaged) {
        // If its number is used up the target has taken the command, and only what came along is
        // at stake. Otherwise it counts as not received, and the next session sends it again.
        const SequenceNumber32 number(task->command.numbers.command_number);
        if (number < expected_command_number_) return;
        return end_session({.code = Code::io_failed});
    }
    // A command that is refused was not carried out, and its number counts as not received: only a
    // session begun anew has numbers without a hole.
    auto& command = static_cast<InitiatorCommand&>(*task);
    command.journey.answered = true;
    command.journey.end = {.delivered = Error{.code = Code::unsupported}};
    end_session({.code = Code::unsupported});
}

void InitiatorSession::log_out_if_idle() {
    const bool time_to_go = (leaving_ && idle()) || (draining_ && under_way_ == 0);
    if (!time_to_go || logout_sent_ || state_ != State::up) return;
    logout_sent_ = true;
    for (auto& connection : connections_) {
        if (!connection->ready()) continue;
        return connection->send(
            wire::LogoutRequestPdu{.immediate = true,
                                   .reason = wire::LogoutReason::close_session,
                                   .task_tag = static_cast<wire::InitiatorTaskTag>(logout_tag),
                                   .numbers = {.command_number = command_number_.value()}},
            {});
    }
}

void InitiatorSession::discover(std::function<void(Result<std::vector<DiscoveredTarget>>)> told) {
    WEFT_CHECK(up() && !discovered_);
    discovered_ = std::move(told);
    discovery_joined_.clear();
    discovery_exchanges_ = 0;
    ask_for_targets(wire::TargetTransferTag::none);
}

void InitiatorSession::ask_for_targets(wire::TargetTransferTag tag) {
    TextQueue text;
    if (tag == wire::TargetTransferTag::none) text.add(name_of(TextKey::send_targets), "All");
    const ConstBuffer data = text.take(login_segment_max);
    connections_[0]->send(
        wire::TextRequestPdu{.final = true,
                             .data_length = static_cast<std::uint32_t>(data.size()),
                             .task_tag = static_cast<wire::InitiatorTaskTag>(text_tag),
                             .transfer_tag = tag,
                             .numbers = {.command_number = command_number_.value()}},
        data);
    ++command_number_;
}

void InitiatorSession::take_text(const ReceivedPdu& pdu) {
    const auto response = decode<wire::TextResponsePdu>(pdu.header);
    if (!response || !discovered_) return end_session({.code = Code::malformed});
    if (pdu.data.size() > discovery_bytes_max - discovery_joined_.size() ||
        ++discovery_exchanges_ > discovery_exchanges_max)
        return end_discovery(Error{.code = Code::exhausted});
    discovery_joined_ += text_of(pdu.data);
    if (response->final) return end_discovery(read_discovery());
    if (response->transfer_tag == wire::TargetTransferTag::none)
        return end_discovery(Error{.code = Code::malformed});
    ask_for_targets(response->transfer_tag);
}

Result<std::vector<DiscoveredTarget>> InitiatorSession::read_discovery() const {
    std::vector<DiscoveredTarget> targets;
    wire::TextPairs pairs(bytes_of(discovery_joined_));
    while (true) {
        WEFT_TRY(const auto pair, pairs.next());
        if (!pair) return targets;
        if (pair->key == name_of(TextKey::target_name)) {
            targets.push_back({.name = std::string(pair->value), .addresses = {}});
        } else if (pair->key == name_of(TextKey::target_address) && !targets.empty()) {
            targets.back().addresses.emplace_back(pair->value);
        }
    }
}

void InitiatorSession::end_discovery(Result<std::vector<DiscoveredTarget>> outcome) {
    std::exchange(discovered_, nullptr)(std::move(outcome));
}

}  // namespace weft::iscsi
