// SPDX-License-Identifier: Apache-2.0
// Task management: abort, reset and ask about SCSI tasks (RFC 7143 sections 11.5 and 11.6, with the
// functions of RFC 7144, which need iSCSIProtocolLevel 2).
#pragma once

#include "wire/iscsi_header.hpp"

namespace weft::wire {

enum class TaskManagementFunction : std::uint8_t {
    abort_task = 1,
    abort_task_set = 2,
    clear_auto_contingent_allegiance = 3,
    clear_task_set = 4,
    logical_unit_reset = 5,
    target_warm_reset = 6,
    target_cold_reset = 7,
    task_reassign = 8,
    query_task = 9,  ///< RFC 7144, as are the next three
    query_task_set = 10,
    nexus_reset = 11,
    query_asynchronous_event = 12,
};

enum class TaskManagementResult : std::uint8_t {
    complete = 0,
    task_does_not_exist = 1,
    logical_unit_does_not_exist = 2,
    task_still_allegiant = 3,
    reassignment_not_supported = 4,
    function_not_supported = 5,
    authorization_failed = 6,
    succeeded = 7,  ///< RFC 7144: the queried task is there
    rejected = 255,
};

/// Section 11.5.
struct TaskManagementRequestPdu {
    bool immediate = false;
    TaskManagementFunction function{};
    LogicalUnit logical_unit{};
    InitiatorTaskTag task_tag{};
    InitiatorTaskTag referenced_task_tag{};  ///< none unless a single task is meant
    InitiatorNumbers numbers{};
    std::uint32_t referenced_command_number = 0;
    std::uint32_t expected_data_number = 0;

    static constexpr void describe(auto& v, auto& h) {
        describe_request_opcode<IscsiOpcode::task_management_request>(v, h.immediate);
        v.pack(fixed<1>("final", 1), bits<7>("function", h.function), reserved<16>);
        describe_no_data(v);
        v("logical unit", h.logical_unit);
        v("task tag", h.task_tag);
        v("referenced task tag", h.referenced_task_tag);
        v.nested("numbers", h.numbers);
        v("referenced command number", h.referenced_command_number);
        v("expected data number", h.expected_data_number);
        v.pack(reserved<64>);
    }
    bool operator==(const TaskManagementRequestPdu&) const = default;
};
static_assert(wire_size<TaskManagementRequestPdu>() == basic_header_size);

/// Section 11.6.
struct TaskManagementResponsePdu {
    TaskManagementResult result{};
    std::uint32_t additional_information = 0;  ///< RFC 7144: what a query found, 24 bits
    InitiatorTaskTag task_tag{};
    TargetNumbers numbers{};

    static constexpr void describe(auto& v, auto& h) {
        describe_opcode<IscsiOpcode::task_management_response>(v);
        v.pack(fixed<1>("final", 1), reserved<7>);
        v("result", h.result);
        v.pack(reserved<8>);
        describe_no_data(v);
        v.pack(bits<24>("additional information", h.additional_information), reserved<40>);
        v("task tag", h.task_tag);
        v.pack(reserved<32>);
        v.nested("numbers", h.numbers);
        v.pack(reserved<64>);
        v.pack(reserved<32>);
    }
    bool operator==(const TaskManagementResponsePdu&) const = default;
};
static_assert(wire_size<TaskManagementResponsePdu>() == basic_header_size);

}  // namespace weft::wire
