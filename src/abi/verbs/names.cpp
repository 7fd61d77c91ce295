// SPDX-License-Identifier: Apache-2.0
// Numbers in words. The words are those that people search for when they see them in a log.
#include <infiniband/verbs.h>

#include <array>
#include <cstddef>

namespace {

template <std::size_t Count>
const char* name_in(const std::array<const char*, Count>& names, int number) {
    bool known = number >= 0 && static_cast<std::size_t>(number) < Count;
    return known ? names[static_cast<std::size_t>(number)] : "unknown";
}

}  // namespace

extern "C" {

const char* ibv_node_type_str(ibv_node_type type) {
    static constexpr std::array<const char*, 8> names{
        "unknown",           "InfiniBand channel adapter",
        "InfiniBand switch", "InfiniBand router",
        "iWARP NIC",         "usNIC",
        "usNIC UDP",         "unspecified"};
    return name_in(names, type);
}

const char* ibv_port_state_str(ibv_port_state state) {
    static constexpr std::array<const char*, 6> names{
        "no state change (NOP)", "down", "init", "armed", "active", "active defer"};
    return name_in(names, state);
}

const char* ibv_event_type_str(ibv_event_type type) {
    static constexpr std::array<const char*, 20> names{"CQ error",
                                                       "local work queue catastrophic error",
                                                       "invalid request local work queue error",
                                                       "local access violation work queue error",
                                                       "communication established",
                                                       "send queue drained",
                                                       "path migrated",
                                                       "path migration request error",
                                                       "local catastrophic error",
                                                       "port active",
                                                       "port error",
                                                       "LID change",
                                                       "P_Key change",
                                                       "SM change",
                                                       "SRQ catastrophic error",
                                                       "SRQ limit reached",
                                                       "last WQE reached",
                                                       "client reregistration",
                                                       "GID table change",
                                                       "WQ fatal"};
    return name_in(names, type);
}

const char* ibv_wc_status_str(ibv_wc_status status) {
    static constexpr std::array<const char*, 24> names{"success",
                                                       "local length error",
                                                       "local QP operation error",
                                                       "local EE context operation error",
                                                       "local protection error",
                                                       "Work Request Flushed Error",
                                                       "memory management operation error",
                                                       "bad response error",
                                                       "local access error",
                                                       "remote invalid request error",
                                                       "remote access error",
                                                       "remote operation error",
                                                       "transport retry counter exceeded",
                                                       "RNR retry counter exceeded",
                                                       "local RDD violation error",
                                                       "remote invalid RD request",
                                                       "aborted error",
                                                       "invalid EE context number",
                                                       "invalid EE context state",
                                                       "fatal error",
                                                       "response timeout error",
                                                       "general error",
                                                       "TM error",
                                                       "TM software rendezvous"};
    return name_in(names, status);
}

}  // extern "C"
