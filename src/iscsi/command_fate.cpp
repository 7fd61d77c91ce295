// SPDX-License-Identifier: Apache-2.0
#include "iscsi/command_fate.hpp"

namespace weft::iscsi {

using wire::AdditionalSense;
using wire::ScsiStatus;
using wire::SenseKey;

namespace {

Fate failed(Code code, std::uint16_t detail) {
    return {.kind = FateKind::failed, .error = {.code = code, .detail = detail}};
}

Code code_of(SenseKey key, AdditionalSense additional) {
    switch (key) {
        case SenseKey::illegal_request:
            if (additional == AdditionalSense::block_address_out_of_range)
                return Code::out_of_range;
            if (additional == AdditionalSense::invalid_operation_code) return Code::unsupported;
            if (additional == AdditionalSense::logical_unit_not_supported)
                return Code::disconnected;
            return Code::malformed;
        case SenseKey::data_protect:
            return additional == AdditionalSense::space_allocation_failed ? Code::exhausted
                                                                          : Code::access_denied;
        case SenseKey::volume_overflow:
            return Code::out_of_range;
        default:
            return Code::io_failed;
    }
}

Fate fate_of_sense(ConstBuffer sense) {
    const auto summary = wire::summarize_sense(sense);
    if (!summary) return failed(Code::io_failed, 0);
    Fate fate;
    switch (summary->key) {
        case SenseKey::no_sense:
        case SenseKey::recovered_error:
            fate.kind = FateKind::done;
            break;
        case SenseKey::unit_attention:
        case SenseKey::aborted_command:
            fate.kind = FateKind::again;
            break;
        case SenseKey::not_ready:
            fate.kind = summary->additional == AdditionalSense::becoming_ready ||
                                summary->additional == AdditionalSense::target_port_in_transition
                            ? FateKind::later
                            : FateKind::failed;
            break;
        default:
            break;
    }
    fate.key = summary->key;
    fate.additional = summary->additional;
    fate.error = {.code = code_of(summary->key, summary->additional),
                  .detail = static_cast<std::uint16_t>(summary->additional)};
    return fate;
}

}  // namespace

Fate fate_of(const CommandEnd& end) {
    switch (end.status) {
        case ScsiStatus::good:
        case ScsiStatus::condition_met:
            return {.kind = FateKind::done};
        case ScsiStatus::check_condition:
            return fate_of_sense(end.sense);
        case ScsiStatus::busy:
        case ScsiStatus::task_set_full:
            return {.kind = FateKind::later, .error = {.code = Code::exhausted}};
        case ScsiStatus::task_aborted:
            return {.kind = FateKind::again};
        case ScsiStatus::reservation_conflict:
            return failed(Code::access_denied, static_cast<std::uint16_t>(end.status));
        default:
            return failed(Code::io_failed, static_cast<std::uint16_t>(end.status));
    }
}

}  // namespace weft::iscsi
