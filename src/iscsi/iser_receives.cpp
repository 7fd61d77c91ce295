// SPDX-License-Identifier: Apache-2.0
#include "iscsi/iser_receives.hpp"

#include <algorithm>
#include <array>

#include "base/check.hpp"

namespace weft::iscsi::iser {

Result<void> Receives::add(std::size_t count) {
    count = std::min(count, count_max_ - std::min(count_max_, receives_.size()));
    if (count == 0)
        return Error{.code = Code::exhausted, .where = static_cast<std::uint32_t>(count_max_)};
    Slab slab{.memory = std::make_unique<std::byte[]>(count * bytes_each_), .region = {}};
    Buffer memory(slab.memory.get(), count * bytes_each_);
    WEFT_TRY(slab.region, domain_->register_memory(memory, Rights::local_write));
    auto tag = slab.region->tag();
    slabs_.push_back(std::move(slab));
    for (std::size_t i = 0; i < count; ++i) {
        auto& added = receives_.emplace_back();
        added.id = receives_.size() - 1;
        added.memory = memory.subspan(i * bytes_each_, bytes_each_);
        tags_.push_back(tag);
        if (auto posted = post(added); !posted) return posted;
    }
    return {};
}

Result<void> Receives::post(const Receive& receive) {
    std::array place{
        verbs::LocalMemory{.address = reinterpret_cast<std::uintptr_t>(receive.memory.data()),
                           .size = static_cast<std::uint32_t>(receive.memory.size()),
                           .tag = tags_[receive.id]}};
    return post_({.id = receive.id, .local = place});
}

Receive& Receives::filled(const verbs::Completion& completion) {
    WEFT_CHECK(completion.id < receives_.size());
    auto& receive = receives_[completion.id];
    receive.size = completion.bytes;
    receive.invalidated = completion.invalidated;
    receive.next = nullptr;
    return receive;
}

void Receives::give_back(Receive& receive) {
    (void)post(receive);  // it had its room before; on a queue pair that has ended there is no use
}

}  // namespace weft::iscsi::iser
