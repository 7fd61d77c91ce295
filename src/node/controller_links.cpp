// SPDX-License-Identifier: Apache-2.0
// What a controller says of the links between boxes, hosts and itself: it asks the boxes, which
// begin all transfers, whenever somebody wants to know, and now and then for its events.
#include <algorithm>

#include "node/controller_node.hpp"

namespace weft::node {
namespace {

/// A box may be paused, and whoever asked is a person.
constexpr Duration patience = std::chrono::seconds(3);

}  // namespace

std::string ControllerNode::name_of_end(const wire::ArrayConnectionEnd& end) const {
    if (end.role == wire::ArrayRole::box) return box_name(end.identity);
    if (end == wire::host_end(own_session)) return "controller";
    for (const auto& host : hosts())
        if (end == wire::host_end(host.session)) return host.name;
    return "a host that is gone";
}

std::set<std::string> ControllerNode::parties_of(const std::string& volume) const {
    std::set<std::string> parties{"controller"};
    for (const auto& report : volumes())
        if (report.name == volume) parties.insert(report.box_names.begin(), report.box_names.end());
    for (const auto& host : hosts())
        if (host.volume == volume) parties.insert(host.name);
    return parties;
}

void ControllerNode::ask_for_links(std::function<void(LinkReports)> told) {
    struct Asking {
        LinkReports reports;
        std::set<std::string> silent;
        std::function<void(LinkReports)> told;

        void end() {
            if (!told) return;
            reports.silent.assign(silent.begin(), silent.end());
            std::exchange(told, nullptr)(std::move(reports));
        }
    };
    auto asking = std::make_shared<Asking>();
    asking->told = std::move(told);
    auto add = [this](Asking& to, const std::string& from,
                      const std::vector<ArrayLinkFacts>& links) {
        for (const auto& link : links)
            to.reports.links.push_back({from, name_of_end(link.peer), link});
    };
    if (links_) add(*asking, "controller", links_->facts());
    auto round = Round::make([asking] { asking->end(); });
    for (const auto& [identity, box] : boxes_) {
        if (!box->is_up() || !may_act()) continue;
        asking->silent.insert(box->name());
        box->list_links([asking, add, name = box->name(), step = round->step(),
                         alive = alive_](std::optional<std::vector<ArrayLinkFacts>> links) {
            if (*alive && links) {
                asking->silent.erase(name);
                add(*asking, name, *links);
            }
            step();
        });
    }
    round->end();
    if (asking->told) later(patience, [asking] { asking->end(); });
}

void ControllerNode::links(const std::string& volume, const ToldLinks& told) {
    if (!volume.empty() && !find_volume(volume))
        return told("there is no volume " + volume, LinkReports{});
    ask_for_links([this, volume, told, alive = alive_](LinkReports reports) {
        if (!*alive) return told("the controller has ended", LinkReports{});
        if (!volume.empty()) {
            const auto parties = parties_of(volume);
            std::erase_if(reports.links, [&](const LinkReport& each) {
                return !parties.contains(each.from) || !parties.contains(each.to);
            });
            std::erase_if(reports.silent,
                          [&](const std::string& box) { return !parties.contains(box); });
        }
        std::ranges::sort(reports.links, {}, [](const LinkReport& each) {
            return std::tie(each.from, each.to, each.link.direction);
        });
        told(std::nullopt, reports);
    });
}

void ControllerNode::watch_links() {
    link_timer_->set(world_.now() + LinkWatch::period);
    if (!in_office() || !may_act() || volumes_.empty()) return;
    ask_for_links([this, alive = alive_](const LinkReports& reports) {
        if (!*alive) return;
        for (const auto& [from, what] : link_watch_.look(reports.links, world_.now()))
            note("", from == "controller" ? "" : from, what);
    });
}

}  // namespace weft::node
