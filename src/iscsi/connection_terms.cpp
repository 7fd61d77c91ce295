// SPDX-License-Identifier: Apache-2.0
#include "iscsi/connection_terms.hpp"

#include "iscsi/limits.hpp"
#include "iscsi/target_limits.hpp"

namespace weft::iscsi {
namespace {

/// What one side takes in a data segment.
std::uint32_t initiator_takes(const Terms& terms) {
    return terms.rdma_extensions ? terms.rdma_initiator_segment_max : terms.initiator_segment_max;
}
std::uint32_t target_takes(const Terms& terms) {
    return terms.rdma_extensions ? terms.rdma_target_segment_max : terms.target_segment_max;
}

/// What is the same for both.
ConnectionTerms common_terms(const Terms& terms) {
    ConnectionTerms result;
    result.header_digest = terms.header_digest;
    result.data_digest = terms.data_digest;
    result.first_burst_max = terms.first_burst;
    result.burst_max = terms.max_burst;
    result.outstanding_requests_max = terms.max_outstanding_r2t;
    result.initial_request_needed = terms.initial_r2t;
    result.immediate_data = terms.immediate_data;
    result.data_in_order = terms.data_pdu_in_order;
    result.error_recovery_level = static_cast<std::uint8_t>(terms.error_recovery_level);
    result.rdma_extensions = terms.rdma_extensions;
    result.discovery = terms.session_type == SessionType::discovery;
    result.solicited_tags_only = terms.tagged_buffer_for_solicited_only;
    result.hello_required = terms.hello_required;
    return result;
}

}  // namespace

ConnectionTerms target_connection_terms(const Terms& terms) {
    auto result = common_terms(terms);
    result.send_segment_max = initiator_takes(terms);
    result.receive_segment_max = target_takes(terms);
    result.tasks_max = session_tasks_max;
    return result;
}

ConnectionTerms initiator_connection_terms(const Terms& terms) {
    auto result = common_terms(terms);
    result.send_segment_max = target_takes(terms);
    result.receive_segment_max = initiator_takes(terms);
    result.tasks_max = initiator_commands_max;
    return result;
}

}  // namespace weft::iscsi
