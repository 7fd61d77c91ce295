// SPDX-License-Identifier: Apache-2.0
#include "sim/raid_wire.hpp"

namespace weft::sim {

RaidStation::RaidStation(RaidAgenda& agenda, const std::string& machine)
    : host_(agenda.world.host(machine)), device_(verbs::make_device(host_, {})) {
    host_.power_on();
    links_ = std::make_unique<node::ArrayLinks>(host_, *device_, node::ArrayLinks::Options{});
    auto listening = device_->listen(where(), [this](auto request) {
        if (links_) links_->take(std::move(request));
    });
    WEFT_CHECK(listening.has_value());
    listener_ = std::move(*listening);
}

void RaidStation::close() {
    listener_.reset();
    links_.reset();
}

void RaidTransfers::begin(raid::PeerTransfer& transfer, bool fetches) {
    ++operations;
    const auto place = under_way_.emplace(under_way_.end());
    place->peer = transfer.peer;
    place->at = transfer.at;
    place->memory = transfer.memory;
    place->all = this;
    place->asked = &transfer;
    place->fetches = fetches;
    place->place = place;
    agenda_.begun();
    fetches ? links_->fetch(*place) : links_->send(*place);
}

bool RaidTransfers::takes_damage(const Watched& watched) {
    if (!watched.fetches || watched.peer.party.kind != raid::PartyKind::box) return false;
    if (damaged_key != static_cast<std::uint32_t>(watched.peer.tag) % raid::window_keys)
        return std::exchange(is_damaged, false);
    damaged_key.reset();
    return true;
}

void RaidTransfers::completed(Watched& watched, Result<void> outcome) {
    auto* asked = watched.asked;
    if (outcome && asked != nullptr) {
        octets += watched.memory.size();
        if (takes_damage(watched)) watched.memory[watched.memory.size() / 2] ^= std::byte{4};
    }
    under_way_.erase(watched.place);
    if (asked == nullptr) return;
    agenda_.ended();
    asked->completed(outcome);
}

void RaidTransfers::vanish() {
    for (auto& watched : under_way_)
        if (std::exchange(watched.asked, nullptr)) agenda_.ended();
}

void RaidTransfers::lose(const wire::ArrayConnectionEnd& peer) {
    for (auto& watched : under_way_) {
        const bool is_box = watched.peer.party.kind == raid::PartyKind::box;
        if (watched.peer.identity != peer.identity || is_box != (peer.role == wire::ArrayRole::box))
            continue;
        auto* asked = std::exchange(watched.asked, nullptr);
        if (asked == nullptr) continue;
        watched.elsewhere.resize(watched.memory.size());
        watched.memory = watched.elsewhere;
        agenda_.ended();
        agenda_.later([asked] { asked->completed(Error{Code::disconnected}); });
    }
}

RaidWindows::RaidWindows(node::ArrayLinks& links, std::uint32_t bytes, std::uint16_t windows) {
    auto made = node::BoxWindows::make(links, {.windows = windows, .bytes = bytes});
    WEFT_CHECK(made.has_value());
    windows_ = std::move(*made);
}

Result<Buffer> RaidWindows::open(std::uint32_t window, SteeringTag tag, std::uint32_t length) {
    if (refusals > 0) return --refusals, ++refused, Error{Code::exhausted};
    auto opened = windows_->open(window, tag, length);
    opened ? void(open_.insert(window)) : void(++refused);
    return opened;
}

void RaidWindows::close(std::uint32_t window) {
    open_.erase(window);
    windows_->close(window);
}

}  // namespace weft::sim
