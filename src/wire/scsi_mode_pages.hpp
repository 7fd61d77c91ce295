// SPDX-License-Identifier: Apache-2.0
// The mode pages a disk has: caching (SBC-4), control (SPC-4) and
// informational exceptions (SBC-4). `savable` is reserved in MODE SELECT.
#pragma once

#include "wire/scsi_mode.hpp"

namespace weft::wire {

template <ModePageCode code, unsigned length>
constexpr void describe_page_start(auto& v, auto& savable) {
    v.pack(bits<1>("savable", savable), fixed<1>("has subpage", 0),
           fixed<6>("code", static_cast<std::uint64_t>(code)), fixed<8>("length", length));
}

struct CachingPage {
    bool savable = false;
    bool initiator_control = false;
    bool abort_prefetch = false;
    bool caching_analysis = false;
    bool discontinuity = false;
    bool size_enable = false;
    bool write_cache = false;  ///< WCE: writes are acknowledged from the cache
    bool multiplication_factor = false;
    bool read_cache_disabled = false;
    std::uint8_t demand_read_retention = 0;
    std::uint8_t write_retention = 0;
    std::uint16_t disable_prefetch_length = 0;
    std::uint16_t minimum_prefetch = 0;
    std::uint16_t maximum_prefetch = 0;
    std::uint16_t maximum_prefetch_ceiling = 0;
    bool force_sequential_write = false;
    bool segment_size_in_blocks = false;
    bool read_ahead_disabled = false;
    bool nonvolatile_disabled = false;
    std::uint8_t cache_segments = 0;
    std::uint16_t cache_segment_size = 0;

    static constexpr void describe(auto& v, auto& h) {
        describe_page_start<ModePageCode::caching, 18>(v, h.savable);
        v.pack(bits<1>("initiator control", h.initiator_control),
               bits<1>("abort prefetch", h.abort_prefetch),
               bits<1>("caching analysis", h.caching_analysis),
               bits<1>("discontinuity", h.discontinuity), bits<1>("size enable", h.size_enable),
               bits<1>("write cache", h.write_cache),
               bits<1>("multiplication factor", h.multiplication_factor),
               bits<1>("read cache disabled", h.read_cache_disabled));
        v.pack(bits<4>("demand read retention", h.demand_read_retention),
               bits<4>("write retention", h.write_retention));
        v("disable prefetch length", h.disable_prefetch_length);
        v("minimum prefetch", h.minimum_prefetch);
        v("maximum prefetch", h.maximum_prefetch);
        v("maximum prefetch ceiling", h.maximum_prefetch_ceiling);
        v.pack(bits<1>("force sequential write", h.force_sequential_write),
               bits<1>("segment size in blocks", h.segment_size_in_blocks),
               bits<1>("read ahead disabled", h.read_ahead_disabled), reserved<4>,
               bits<1>("nonvolatile disabled", h.nonvolatile_disabled));
        v("cache segments", h.cache_segments);
        v("cache segment size", h.cache_segment_size);
        v.pack(reserved<32>);
    }
    bool operator==(const CachingPage&) const = default;
};
static_assert(wire_size<CachingPage>() == 20);

/// TST: whether the initiators of a logical unit share one set of tasks.
enum class TaskSetType : std::uint8_t { one_for_all = 0, one_per_nexus = 1 };

struct ControlPage {
    bool savable = false;
    TaskSetType task_set_type{};
    bool task_management_only = false;
    bool descriptor_sense_pending = false;
    bool descriptor_sense = false;  ///< D_SENSE: sense data is in descriptor format
    bool global_logging = false;
    bool report_log_exceptions = false;
    std::uint8_t queue_algorithm = 0;  ///< 1 permits reordering without restriction
    bool no_unit_attention_on_release = false;
    std::uint8_t queue_error_management = 0;
    std::uint8_t unit_attention_interlock = 0;
    bool software_write_protect = false;  ///< SWP
    bool application_tag_owner = false;
    bool task_aborted_status = false;  ///< TAS: tasks others abort end with TASK ABORTED
    std::uint8_t autoload_mode = 0;
    std::uint16_t busy_timeout_period = 0;  ///< units of 100 ms, 0xffff: no limit
    std::uint16_t self_test_seconds = 0;

    static constexpr void describe(auto& v, auto& h) {
        describe_page_start<ModePageCode::control, 10>(v, h.savable);
        v.pack(bits<3>("task set type", h.task_set_type),
               bits<1>("task management only", h.task_management_only),
               bits<1>("descriptor sense pending", h.descriptor_sense_pending),
               bits<1>("descriptor sense", h.descriptor_sense),
               bits<1>("global logging", h.global_logging),
               bits<1>("report log exceptions", h.report_log_exceptions));
        v.pack(bits<4>("queue algorithm", h.queue_algorithm),
               bits<1>("no unit attention on release", h.no_unit_attention_on_release),
               bits<2>("queue error management", h.queue_error_management), reserved<1>);
        v.pack(reserved<2>, bits<2>("unit attention interlock", h.unit_attention_interlock),
               bits<1>("software write protect", h.software_write_protect), reserved<3>);
        v.pack(bits<1>("application tag owner", h.application_tag_owner),
               bits<1>("task aborted status", h.task_aborted_status), reserved<3>,
               bits<3>("autoload mode", h.autoload_mode), reserved<16>);
        v("busy timeout period", h.busy_timeout_period);
        v("self test seconds", h.self_test_seconds);
    }
    bool operator==(const ControlPage&) const = default;
};
static_assert(wire_size<ControlPage>() == 12);

struct InformationalExceptionsPage {
    bool savable = false;
    bool performance = false;
    bool enable_background_function = false;
    bool enable_warning = false;
    bool exceptions_disabled = false;  ///< DEXCPT
    bool test = false;
    bool enable_background_error = false;
    bool log_errors = false;
    std::uint8_t reporting_method = 0;  ///< MRIE
    std::uint32_t interval_timer = 0;   ///< units of 100 ms
    std::uint32_t report_count = 0;

    static constexpr void describe(auto& v, auto& h) {
        describe_page_start<ModePageCode::informational_exceptions, 10>(v, h.savable);
        v.pack(bits<1>("performance", h.performance), reserved<1>,
               bits<1>("enable background function", h.enable_background_function),
               bits<1>("enable warning", h.enable_warning),
               bits<1>("exceptions disabled", h.exceptions_disabled), bits<1>("test", h.test),
               bits<1>("enable background error", h.enable_background_error),
               bits<1>("log errors", h.log_errors));
        v.pack(reserved<4>, bits<4>("reporting method", h.reporting_method));
        v("interval timer", h.interval_timer);
        v("report count", h.report_count);
    }
    bool operator==(const InformationalExceptionsPage&) const = default;
};
static_assert(wire_size<InformationalExceptionsPage>() == 12);

}  // namespace weft::wire
