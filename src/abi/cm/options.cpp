// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "abi/cm/objects.hpp"

namespace weft::abi {
namespace {

template <class Value>
std::optional<Value> read(const void* from, std::size_t size) {
    Value value{};
    if (!from || size != sizeof value) return std::nullopt;
    std::memcpy(&value, from, sizeof value);
    return value;
}

/// Inside a Hold.
int set_option(Identifier& one, int name, const void* value, std::size_t size) {
    switch (name) {
        case RDMA_OPTION_ID_TOS: {
            // For the connection that will be made; one that is there keeps what it has.
            auto wish = read<std::uint8_t>(value, size);
            if (!wish) return EINVAL;
            one.traffic_class = *wish;
            return 0;
        }
        case RDMA_OPTION_ID_REUSEADDR:
            // It always is: TCP's ports rest after a connection, and RDMA's never did.
            return read<int>(value, size) ? 0 : EINVAL;
        case RDMA_OPTION_ID_AFONLY: {
            auto wish = read<int>(value, size);
            if (!wish || (one.stage != Stage::idle && one.stage != Stage::bound)) return EINVAL;
            one.one_family = *wish != 0;
            return 0;
        }
        case RDMA_OPTION_ID_ACK_TIMEOUT:
            // About packets, which are TCP's business here.
            return read<std::uint8_t>(value, size) && one.qp_type == IBV_QPT_RC ? 0 : EINVAL;
        default:
            return ENOSYS;
    }
}

}  // namespace
}  // namespace weft::abi

using namespace weft::abi;

extern "C" int rdma_set_option(rdma_cm_id* id, int level, int name, void* value, std::size_t size) {
    if (!id) return fail_with(EINVAL);
    Hold hold;
    if (of(*id).is_inherited()) return fail_with(EIO);
    if (level != RDMA_OPTION_ID) return fail_with(ENOSYS);
    auto why = set_option(of(*id), name, value, size);
    return why == 0 ? 0 : fail_with(why);
}
