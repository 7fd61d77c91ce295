// SPDX-License-Identifier: Apache-2.0
// What an RNIC says of itself. Only what is there: a zero is a plain "no".
#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "abi/limits.hpp"
#include "abi/verbs/context.hpp"
#include "abi/verbs/devices.hpp"
#include "verbs/limits.hpp"

#undef ibv_query_port

namespace weft::abi {
namespace {

/// No vendor's: programs that know vendors by number shall not mistake us for one.
constexpr std::uint32_t vendor = 0x776566;
constexpr std::uint16_t only_partition = 0xffff;

constexpr int as_int(std::size_t number) {
    return static_cast<int>(std::min<std::size_t>(number, INT32_MAX));
}

ibv_device_attr device_attributes(const RnicDevice& device) {
    namespace each = verbs::limits;
    ibv_device_attr attributes{};
    std::snprintf(attributes.fw_ver, sizeof attributes.fw_ver, "%s", WEFT_VERSION);
    attributes.node_guid = attributes.sys_image_guid = guid_of(device);
    attributes.max_mr_size = UINT64_MAX;
    attributes.page_size_cap = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    attributes.vendor_id = vendor;
    attributes.device_cap_flags =
        IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS;
    attributes.max_qp = as_int(limits::queue_pairs);
    attributes.max_qp_wr = as_int(each::sends);
    attributes.max_sge = as_int(each::pieces);
    attributes.max_sge_rd = 1;  // a Read Request has room for one place
    attributes.max_cq = as_int(limits::completion_queues);
    attributes.max_cqe = as_int(each::completions);
    attributes.max_mr = as_int(limits::regions);
    attributes.max_pd = as_int(limits::domains);
    attributes.max_qp_rd_atom = attributes.max_qp_init_rd_atom = each::reads;
    attributes.max_res_rd_atom = as_int(limits::queue_pairs * each::reads);
    attributes.atomic_cap = IBV_ATOMIC_HCA;
    attributes.max_mw = as_int(limits::windows);
    attributes.max_srq = as_int(limits::shared_receive_queues);
    attributes.max_srq_wr = as_int(each::shared_receives);
    attributes.max_srq_sge = as_int(each::pieces);
    attributes.max_pkeys = 1;
    attributes.phys_port_cnt = 1;
    return attributes;
}

/// The largest of the sizes InfiniBand has names for that fits.
ibv_mtu mtu_name(unsigned mtu) {
    if (mtu >= 4096) return IBV_MTU_4096;
    if (mtu >= 2048) return IBV_MTU_2048;
    if (mtu >= 1024) return IBV_MTU_1024;
    return mtu >= 512 ? IBV_MTU_512 : IBV_MTU_256;
}

/// As lanes and the speed of each, in InfiniBand's codes.
struct LinkSpeed {
    std::uint8_t width, speed;
};
LinkSpeed link_speed(const std::string& interface) {
    constexpr std::uint8_t one_lane = 1, four_lanes = 2;
    constexpr std::uint8_t lane_2_5 = 1, lane_5 = 2, lane_10 = 8, lane_25 = 32, lane_50 = 64;
    long megabits = -1;
    std::ifstream("/sys/class/net/" + interface + "/speed") >> megabits;
    if (megabits <= 1'000) return {one_lane, lane_2_5};
    if (megabits <= 10'000) return {one_lane, lane_10};
    if (megabits <= 20'000) return {four_lanes, lane_5};
    if (megabits <= 25'000) return {one_lane, lane_25};
    if (megabits <= 40'000) return {four_lanes, lane_10};
    if (megabits <= 50'000) return {one_lane, lane_50};
    if (megabits <= 100'000) return {four_lanes, lane_25};
    return {four_lanes, lane_50};
}

ibv_port_attr port_attributes(const RnicDevice& device) {
    constexpr std::uint8_t link_up = 5, disabled = 3;
    auto& interface = device.interface;
    auto speed = link_speed(interface.name);
    ibv_port_attr attributes{};
    attributes.state = interface.is_up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    attributes.max_mtu = attributes.active_mtu = mtu_name(interface.mtu);
    attributes.gid_tbl_len = 1;
    attributes.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_DEVICE_MGMT_SUP;
    attributes.max_msg_sz = verbs::limits::message_bytes;
    attributes.pkey_tbl_len = 1;
    attributes.active_width = speed.width;
    attributes.active_speed = speed.speed;
    attributes.phys_state = interface.is_up ? link_up : disabled;
    attributes.link_layer = IBV_LINK_LAYER_ETHERNET;
    return attributes;
}

bool is_our_port(std::uint32_t port) {
    return port == 1;
}

}  // namespace

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* to, std::size_t size) {
    if (input && input->comp_mask) return EINVAL;
    if (size < sizeof to->orig_attr) return EINVAL;
    Hold hold;
    ibv_device_attr_ex attributes{};
    attributes.orig_attr = device_attributes(*of(*context).device);
    attributes.device_cap_flags_ex = attributes.orig_attr.device_cap_flags;
    attributes.phys_port_cnt_ex = 1;
    // A program of a later day has a larger struct; what it has beyond ours, we do not have.
    std::memset(to, 0, size);
    std::memcpy(to, &attributes, std::min(size, sizeof attributes));
    return 0;
}

int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* to, std::size_t size) {
    if (!is_our_port(port)) return EINVAL;
    Hold hold;
    (void)list_devices();  // the interface may have come up, or gone down, since
    auto attributes = port_attributes(*of(*context).device);
    std::memset(to, 0, size);
    std::memcpy(to, &attributes, std::min(size, sizeof attributes));
    return 0;
}

}  // namespace weft::abi

using namespace weft::abi;

extern "C" {

int ibv_query_device(ibv_context* context, ibv_device_attr* attributes) {
    Hold hold;
    *attributes = device_attributes(*of(*context).device);
    return 0;
}

int ibv_query_port(ibv_context* context, std::uint8_t port, _compat_ibv_port_attr* attributes) {
    // Programs of the time before `port_cap_flags2` have a struct that ends there.
    return query_port(context, port, reinterpret_cast<ibv_port_attr*>(attributes),
                      offsetof(ibv_port_attr, port_cap_flags2));
}

int ibv_query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) {
    if (!is_our_port(port) || index != 0) {
        errno = EINVAL;
        return -1;
    }
    Hold hold;
    *gid = gid_of(*of(*context).device);
    return 0;
}

int _ibv_query_gid_ex(ibv_context* context, std::uint32_t port, std::uint32_t index,
                      ibv_gid_entry* to, std::uint32_t flags, std::size_t size) {
    if (flags) return EOPNOTSUPP;
    if (!is_our_port(port) || index != 0) return EINVAL;
    Hold hold;
    auto& device = *of(*context).device;
    ibv_gid_entry entry{};
    entry.gid = gid_of(device);
    entry.port_num = port;
    entry.gid_type = IBV_GID_TYPE_IB;
    entry.ndev_ifindex = device.interface.index;
    std::memset(to, 0, size);
    std::memcpy(to, &entry, std::min(size, sizeof entry));
    return 0;
}

ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, std::size_t most,
                             std::uint32_t flags, std::size_t size) {
    if (flags) return -EOPNOTSUPP;
    if (most == 0) return -EINVAL;
    int failed = _ibv_query_gid_ex(context, 1, 0, entries, 0, size);
    return failed ? -failed : 1;
}

/// For ibv_devinfo, which knows two kinds of Ethernet and prints this one as the elder.
int ibv_query_gid_type(ibv_context*, std::uint8_t port, unsigned index, int* type) {
    if (!is_our_port(static_cast<std::uint32_t>(port)) || index != 0) {
        errno = EINVAL;
        return -1;
    }
    *type = 0;
    return 0;
}

int ibv_query_pkey(ibv_context*, std::uint8_t port, int index, __be16* pkey) {
    if (!is_our_port(port) || index != 0) {
        errno = EINVAL;
        return -1;
    }
    *pkey = htons(only_partition);
    return 0;
}

int ibv_get_pkey_index(ibv_context*, std::uint8_t port, __be16 pkey) {
    if (is_our_port(port) && pkey == htons(only_partition)) return 0;
    errno = EINVAL;
    return -1;
}

}  // extern "C"
