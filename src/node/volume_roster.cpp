// SPDX-License-Identifier: Apache-2.0
#include "node/volume_roster.hpp"

#include <algorithm>
#include <set>

namespace weft::node {

std::vector<wire::HostNews> VolumeRoster::follow(const wire::ArrayVolume& volume) {
    using wire::ArrayMemberState;
    if (generation_ == volume.generation) return {};
    std::set<wire::BoxIdentity> counted_on;
    for (std::size_t place = 0; place < volume.boxes; ++place) {
        const auto& member = volume.members[place];
        if (member.state != ArrayMemberState::none && member.state != ArrayMemberState::absent)
            counted_on.insert(member.box);
    }
    std::vector<wire::HostNews> news;
    for (const auto& [box, last] : boxes_)
        if (last.may_come != counted_on.contains(box))
            news.push_back({.number = 0, .box = box, .may_come = !last.may_come});
    for (const auto& box : counted_on)
        if (!boxes_.contains(box)) news.push_back({.number = 0, .box = box, .may_come = true});
    for (auto& each : news) {
        // Hosts are told by the boxes that they were let in at first: that is no news to them.
        each.number = generation_ ? ++number_ : 0;
        boxes_[each.box] = each;
    }
    generation_ = volume.generation;
    if (boxes_.size() > counted_on.size() + gone_max) forget_the_oldest();
    return news;
}

void VolumeRoster::forget_the_oldest() {
    auto oldest = boxes_.end();
    for (auto each = boxes_.begin(); each != boxes_.end(); ++each)
        if (!each->second.may_come &&
            (oldest == boxes_.end() || each->second.number < oldest->second.number))
            oldest = each;
    forgotten_ = oldest->second.number;
    boxes_.erase(oldest);
}

std::optional<std::vector<wire::HostNews>> VolumeRoster::since(std::uint32_t heard) const {
    std::vector<wire::HostNews> news;
    for (const auto& [box, last] : boxes_)
        if (last.number > heard) news.push_back(last);
    if (news.size() > wire::host_news_max || heard < forgotten_) return std::nullopt;
    std::ranges::sort(news, {}, &wire::HostNews::number);
    return news;
}

}  // namespace weft::node
