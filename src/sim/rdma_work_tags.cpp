// SPDX-License-Identifier: Apache-2.0
#include "sim/rdma_work_tags.hpp"

namespace weft::sim {
namespace {

constexpr std::size_t fast_pieces_max = 6;

}  // namespace

WorkTags::WorkTags(Station& station) : station_(station) {
    for (int i = 0; i < 2; ++i) {
        auto& fast = fast_tags.emplace_back();
        fast.memory = station.carve(fast_memory, fast_pieces_max);
    }
    windows.resize(2);
    windows.front().kind = verbs::WindowKind::by_domain;
    windows.back().kind = verbs::WindowKind::by_queue_pair;
    renew();
}

void WorkTags::renew() {
    for (auto& each : windows) {
        each.window.reset();
        auto made = station_.domain->allocate_window(each.kind);
        WEFT_CHECK(made);
        each.window = std::move(*made);
        each.grant = std::make_shared<Grant>();
    }
    for (auto& each : fast_tags) {
        each.region.reset();
        auto made = station_.domain->allocate_tag(fast_pieces_max);
        WEFT_CHECK(made);
        each.region = std::move(*made);
        each.grant = std::make_shared<Grant>();
    }
}

void WorkTags::drop() {
    windows.clear();
    fast_tags.clear();
}

std::vector<std::shared_ptr<Grant>> WorkTags::grants() const {
    std::vector<std::shared_ptr<Grant>> all;
    for (auto& each : windows) all.push_back(each.grant);
    for (auto& each : fast_tags) all.push_back(each.grant);
    return all;
}

}  // namespace weft::sim
