// SPDX-License-Identifier: Apache-2.0
#include "sim/raid_host.hpp"

namespace weft::sim {

namespace {

/// As of node::HostDisk: then connections are cut that still have memory of what has ended.
constexpr Duration lent_patience = std::chrono::seconds(5);

}  // namespace

RaidHost::RaidHost(RaidAgenda& agenda, unsigned number) : agenda_(agenda), number_(number) {
    restart();
}

RaidHost::~RaidHost() = default;

void RaidHost::restart() {
    // Its objects hear nothing more, and go when the world does.
    if (station_) {
        station_->power_cut();
        graves_.push_back({std::move(lent_), std::move(leaving_), std::move(sinks_),
                           std::move(leaving_timer_), std::move(station_)});
        lent_.clear(), leaving_.clear(), sinks_.clear();
    }
    session_.reset();
    station_ = std::make_unique<RaidStation>(agenda_, "host" + std::to_string(number_));
    leaving_timer_ = machine().make_timer([this] { look_at_leaving(); });
}

void RaidHost::welcomed(wire::HostSession session, const node::ArraySecret& secret,
                        wire::ClusterIdentity cluster, wire::Epoch epoch) {
    auto& links = station_->links();
    links.set_office(cluster, epoch);
    if (session_ && *session_ != session) links.disappear(wire::host_end(*session_));
    links.appear_as(wire::host_end(session), secret);
    session_ = session;
    gone_early_.clear();
    sinks_.clear();  // who wrote for what was before is cut off
}

void RaidHost::hear(const wire::BoxIdentity& box, bool may_come) {
    if (!session_) return;
    const auto self = wire::host_end(*session_);
    may_come ? station_->links().let_in(self, wire::box_end(box))
             : station_->links().bar(self, wire::box_end(box));
}

void RaidHost::open(verbs::MemoryRegion& region, SteeringTag tag, Buffer memory, Rights rights) {
    const auto opened = region.open({.tag = tag,
                                     .pieces = {memory},
                                     .address = 0,
                                     .rights = rights,
                                     .addressing = Addressing::from_zero});
    WEFT_CHECK(opened.has_value());
}

SteeringTag RaidHost::lend(Buffer memory, bool is_for_a_read) {
    auto region = station_->links().domain()->allocate_tag(1);
    WEFT_CHECK(region.has_value());
    const SteeringTag tag{(static_cast<std::uint32_t>((*region)->tag()) & ~0xffu) | ++key_};
    // A flush has none.
    if (!memory.empty())
        open(**region, tag, memory,
             is_for_a_read ? Rights::local_write | Rights::remote_write : Rights::remote_read);
    lent_[tag] = {std::move(*region), memory};
    return tag;
}

void RaidHost::take_back(SteeringTag tag, std::function<void()> is_free) {
    auto found = lent_.extract(tag);
    if (!found) return;  // of a life before
    const auto memory = found.mapped().memory;
    auto& region = leaving_[tag] = std::move(found.mapped().region);
    (void)region->close();  // a box that has the tag might have invalidated it
    if (!region->is_still_lent()) {
        if (keeps_tags && !memory.empty()) {
            open(*region, tag, memory, Rights::local_write | Rights::remote_write);
            kept_.push_back(std::move(region));
        }
        leaving_.erase(tag);
        return is_free();
    }
    if (leaving_.size() == 1) leaving_timer_->set(agenda_.now() + lent_patience);
    const auto freed = region->deregister([this, tag, is_free = std::move(is_free)] {
        agenda_.later([this, tag] { leaving_.erase(tag); });  // not from inside
        is_free();
    });
    WEFT_CHECK(freed.has_value());
}

void RaidHost::look_at_leaving() {
    for (const auto& [tag, region] : leaving_) station_->links().take_back(tag);
    if (!leaving_.empty()) leaving_timer_->set(agenda_.now() + lent_patience);
}

void RaidHost::take_back_from_writers(SteeringTag tag, std::uint64_t command) {
    auto found = lent_.extract(tag);
    if (!found || closes_at_once || gone_early_.erase(command) > 0) return;
    auto& sink = sinks_[command];
    sink.region = std::move(found.mapped().region);
    sink.memory.resize(found.mapped().memory.size());
    (void)sink.region->close();
    const Buffer memory = keeps_tags ? found.mapped().memory : Buffer(sink.memory);
    open(*sink.region, tag, memory, Rights::local_write | Rights::remote_write);
}

}  // namespace weft::sim
