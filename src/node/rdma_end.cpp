// SPDX-License-Identifier: Apache-2.0
#include "node/rdma_end.hpp"

#include <algorithm>
#include <array>

namespace weft::node {

Result<void> RdmaEnd::prepare(const RdmaEndOptions& options) {
    domain_ = options.domain ? options.domain : device_.make_domain();
    WEFT_TRY(completions_,
             device_.make_completion_queue(options.sends + options.receives, [this] { drain(); }));
    WEFT_TRY(queue_pair_, device_.make_queue_pair({.domain = domain_,
                                                   .send_completions = completions_,
                                                   .receive_completions = completions_,
                                                   .shared_receives = nullptr,
                                                   .sends = options.sends,
                                                   .receives = options.receives,
                                                   .inline_bytes = options.inline_bytes,
                                                   .sends_own_memory = options.sends_own_memory}));
    completions_->arm(verbs::CompletionQueue::Wanted::any);
    return {};
}

Result<void> RdmaEnd::connect(const Address& address, const verbs::ConnectOptions& options) {
    WEFT_TRY(connection_, device_.connect(address, *queue_pair_, options, *this));
    return {};
}

Result<void> RdmaEnd::accept(verbs::ConnectionRequest& request,
                             const verbs::ConnectOptions& options) {
    WEFT_TRY(connection_, request.accept(*queue_pair_, options, *this));
    return {};
}

Result<std::unique_ptr<RdmaEnd::Memory>> RdmaEnd::make_memory(std::size_t size, Rights rights) {
    auto made = std::make_unique<Memory>();
    // Not a vector: that would throw where there is too little, and touch every page at once.
    made->owned.reset(static_cast<std::byte*>(std::calloc(std::max<std::size_t>(size, 1), 1)));
    if (!made->owned) return Error{.code = Code::exhausted};
    made->bytes = {made->owned.get(), size};
    WEFT_TRY(made->region, domain_->register_memory(made->bytes, rights, Addressing::by_address));
    return made;
}

void RdmaEnd::drain() {
    auto self = self_;
    std::array<verbs::Completion, 32> batch;
    // Armed before the last look: what comes after it is announced.
    completions_->arm(verbs::CompletionQueue::Wanted::any);
    while (auto count = completions_->poll(batch)) {
        for (std::size_t i = 0; i < count; ++i) {
            completed(batch[i]);
            if (!*self) return;
        }
    }
}

void RdmaEnd::established() {
    started();
}
void RdmaEnd::rejected() {
    end(Error{.code = Code::access_denied}, true);
}
void RdmaEnd::failed(Error why) {
    end(why, false);
}
void RdmaEnd::disconnected() {
    auto self = self_;
    drain();  // what was flushed is told before the end is
    if (*self) end(std::nullopt, false);
}

void RdmaEnd::end(std::optional<Error> why, bool was_rejected) {
    if (std::exchange(over_, true)) return;
    ended(why, was_rejected);
}

}  // namespace weft::node
