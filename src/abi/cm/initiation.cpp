// SPDX-License-Identifier: Apache-2.0
#include "abi/cm/initiation.hpp"

#include "abi/cm/limits.hpp"
#include "abi/cm/socket_names.hpp"
#include "abi/wishes.hpp"

namespace weft::abi {

Result<void> initiate(Identifier& one) {
    auto* queue_pair = queue_pair_of(one);
    if (!queue_pair) return Error{.code = Code::disconnected};
    auto options = connect_options();
    options.inbound_reads = one.inbound_reads;
    options.outbound_reads = one.outbound_reads;
    options.private_data = one.private_data;
    options.from = local_end(one).address();
    options.traffic_class = one.traffic_class;
    WEFT_TRY(one.connection,
             Engine::get().device().connect(remote_end(one).address(), *queue_pair->engine_side,
                                            options, one.news));
    return {};
}

bool tries_again(Identifier& one) {
    if (one.end_is_asked || one.refusals == limits::refusals) return false;
    // The last is the longest wait.
    auto delay = limits::refusal_wait / (1 << (2 * (limits::refusals - ++one.refusals)));
    one.is_between_attempts = true;
    one.call_later(delay, [&one] {
        one.is_between_attempts = false;
        if (auto begun = initiate(one); !begun) one.news.failed(begun.error());
    });
    return true;
}

}  // namespace weft::abi
