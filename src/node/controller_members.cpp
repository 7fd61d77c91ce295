// SPDX-License-Identifier: Apache-2.0
// What management does with the members of volumes, and what it is told of all of it.
#include <algorithm>
#include <charconv>

#include "base/error_text.hpp"
#include "node/controller_node.hpp"
#include "raid/superblock.hpp"

namespace weft::node {
namespace {

std::string refusal_text(ControllerVolume& found, Error why, const std::string& unsupported) {
    const auto& volume = found.name();
    const auto state = found.manager().status().state;
    switch (why.code) {
        case Code::not_found:
            return state == raid::VolumeState::starting
                       ? volume + " is starting, and waits for its boxes: ask again when it has"
                       : volume + " has no such place";
        case Code::unsupported:
            return unsupported + " (" + volume + " is " + raid::to_text(state) + ")";
        case Code::io_failed:
            return volume + " could not do without it";
        case Code::out_of_range:
            return volume + " is not smaller than that";
        case Code::exhausted:
            return volume + " has no room for that";
        default:
            return volume + ": " + to_text(why);
    }
}

}  // namespace

void ControllerNode::with_volume(const std::string& name, const Told& told, const VolumeWork& work,
                                 const std::string& unsupported) {
    auto* volume = find_volume(name);
    if (volume == nullptr) return told("there is no volume " + name);
    auto done = work(*volume);
    told(done ? std::nullopt : Refusal(refusal_text(*volume, done.error(), unsupported)));
}

void ControllerNode::with_member(const std::string& name, const std::string& member,
                                 const Told& told, const MemberWork& work,
                                 const std::string& unsupported) {
    auto* volume = find_volume(name);
    if (volume == nullptr) return told("there is no volume " + name);
    auto place = place_of(*volume, member);
    if (!place) return told(name + " has no member " + member);
    with_volume(
        name, told, [&](ControllerVolume& found) { return work(found, *place); }, unsupported);
}

std::optional<std::uint8_t> ControllerNode::place_of(const ControllerVolume& volume,
                                                     const std::string& member) {
    const auto& known = volume.manager().volume();
    std::uint8_t place = 0;
    if (member.size() > 1 && member.starts_with('0')) return std::nullopt;
    const auto* end = member.data() + member.size();
    if (auto [stopped, fault] = std::from_chars(member.data(), end, place);
        fault == std::errc{} && stopped == end)
        return place < known.boxes ? std::optional(place) : std::nullopt;
    for (place = 0; place < known.boxes; ++place)
        if (box_name(known.members[place].box) == member) return place;
    return std::nullopt;
}

void ControllerNode::fail_member(const std::string& volume, const std::string& member, Told told) {
    with_member(volume, member, told, [](ControllerVolume& found, std::uint8_t place) {
        return found.manager().fail(place);
    });
}

void ControllerNode::re_add_member(const std::string& volume, const std::string& member,
                                   Told told) {
    with_member(
        volume, member, told,
        [](ControllerVolume& found, std::uint8_t place) { return found.manager().re_add(place); },
        member + " has not failed: if it is away it is taken back when it returns, and rebuilt");
}

/// What it has left is asked for first: what it said when it came may be of long ago, and whoever
/// gives its place up for a box that cannot take it has lost it.
void ControllerNode::replace_member(const std::string& volume, const std::string& member,
                                    const std::string& box, Told told) {
    auto* other = find_box(box);
    if (other == nullptr) return told("there is no box " + box);
    if (!other->is_up()) return told(box + " is not up: " + other->trouble());
    other->describe([this, volume, member, box, told = std::move(told), alive = alive_](bool well) {
        if (!*alive) return;
        if (!well) return told(box + " does not say what it has, and is given no place");
        give_place(volume, member, box, told);
    });
}

void ControllerNode::give_place(const std::string& volume, const std::string& member,
                                const std::string& box, const Told& told) {
    const auto* other = find_box(box);
    if (other == nullptr) return told("there is no box " + box);
    if (!other->is_up()) return told(box + " is not up: " + other->trouble());
    const auto identity = *other->identity();
    if (auto* found = find_volume(volume)) {
        if (claims(found->identity(), identity))
            return told(box + " is part of " + volume + " already");
        if (other->facts()->parts.contains(found->identity()) ||
            other->facts()->left_out.contains(found->identity()))
            return told(box + " has an old part of " + volume + ": weft box clean " + box +
                        " removes it");
        if (auto refusal = lacks_room_for_part(*other, *found)) return told(refusal);
    }
    with_member(
        volume, member, told,
        [&](ControllerVolume& found, std::uint8_t place) -> Result<void> {
            auto replaced = found.manager().replace(place, identity);
            if (replaced && spares_.erase(identity) != 0)
                keep({{spare_record_name(identity), std::nullopt}}, [](Result<void>) {});
            return replaced;
        },
        box + " is about to take another place of " + volume);
}

void ControllerNode::pause_rebuild(const std::string& volume, bool paused, Told told) {
    with_volume(volume, told, [paused](ControllerVolume& found) {
        return found.manager().pause_rebuild(paused);
    });
}

void ControllerNode::limit_rebuild(const std::string& volume, std::uint64_t octets_per_second,
                                   Told told) {
    with_volume(volume, told, [octets_per_second](ControllerVolume& found) {
        return found.manager().limit_rebuild(octets_per_second);
    });
}

void ControllerNode::scrub(const std::string& volume, bool repair, bool stop, Told told) {
    with_volume(
        volume, told,
        [repair, stop](ControllerVolume& found) {
            return stop ? found.manager().stop_scrub() : found.manager().scrub(repair);
        },
        stop ? "no scrub of " + volume + " runs"
             : "a scrub of " + volume + " runs already: weft scrub " + volume + " --stop ends it");
}

// -------------------------------------------------------------------------------------- reports

std::vector<BoxReport> ControllerNode::boxes() const {
    std::vector<BoxReport> reports;
    for (const auto& [identity, box] : boxes_) {
        BoxReport report{.name = box->name(),
                         .identity = identity,
                         .address = box->address(),
                         .up = box->is_up(),
                         .trouble = box->trouble(),
                         .spare = spares_.contains(identity),
                         .volumes = {},
                         .unclaimed = {}};
        if (const auto& facts = box->facts()) {
            report.size = facts->box.size;
            report.free = facts->box.free;
            for (const auto& [volume, part] : facts->parts) {
                const auto name = raid::text_of_field(part.superblock.volume.name);
                (claims(volume, identity) ? report.volumes : report.unclaimed).push_back(name);
            }
            for (const auto& [volume, part] : facts->left_out)
                if (!claims(volume, identity)) report.unclaimed.push_back(name_of(volume));
        }
        reports.push_back(std::move(report));
    }
    std::ranges::sort(reports, {}, &BoxReport::name);
    return reports;
}

std::vector<VolumeReport> ControllerNode::volumes() const {
    std::vector<VolumeReport> reports;
    for (const auto& [identity, volume] : volumes_) {
        VolumeReport report{.name = volume->name(),
                            .status = volume->manager().status(),
                            .box_names = {},
                            .hosts = volume->hosts().size()};
        volume->count(report);
        const bool some_host = volume->has_host_here();
        for (auto& member : report.status.members) {
            member.misses_host = member.misses_host && some_host;  // who is gone is not missed
            report.box_names.push_back(box_name(member.box));
        }
        reports.push_back(std::move(report));
    }
    std::ranges::sort(reports, {}, &VolumeReport::name);
    return reports;
}

std::vector<HostReport> ControllerNode::hosts() const {
    std::vector<HostReport> reports;
    for (const auto& [identity, volume] : volumes_)
        for (auto& host : volume->hosts()) reports.push_back(std::move(host));
    return reports;
}

std::vector<SlowOperation> ControllerNode::slow_operations() const {
    std::vector<SlowOperation> found;
    for (const auto& [identity, volume] : volumes_)
        for (auto& each : volume->slow_operations()) found.push_back(std::move(each));
    for (auto& each : found) {
        for (const auto& box : each.waits_for) each.waits_for_names.push_back(box_name(box));
        if (each.slowest != wire::BoxIdentity{}) each.slowest_name = box_name(each.slowest);
    }
    std::ranges::sort(found, {}, &SlowOperation::since);
    return found;
}

}  // namespace weft::node
