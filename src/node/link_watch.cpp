// SPDX-License-Identifier: Apache-2.0
#include "node/link_watch.hpp"

#include <cstdio>

namespace weft::node {
namespace {

constexpr unsigned looks_needed = 2;

template <class... Values>
std::string text(const char* format, Values... values) {
    std::string made(static_cast<std::size_t>(std::snprintf(nullptr, 0, format, values...)), '\0');
    std::snprintf(made.data(), made.size() + 1, format, values...);
    return made;
}

double seconds_of(Duration duration) {
    return std::chrono::duration<double>(duration).count();
}

std::string times(std::uint64_t count) {
    return count == 1 ? "once" : std::to_string(count) + " times";
}

}  // namespace

std::string LinkWatch::slowness_of(const LinkReport& report) {
    const auto& link = report.link;
    if (link.state == ArrayLinkFacts::State::stalled)
        return text(
            "link to %s is stalled: nothing has moved for %.1f s, with %u transfers under "
            "way",
            report.to.c_str(), seconds_of(link.since_progress), link.under_way);
    return text(
        "link to %s is congested: %u transfers under way, the oldest for %.1f s; %.1f %% of its "
        "segments were sent again",
        report.to.c_str(), link.under_way, seconds_of(link.oldest), link.resent_per_mille / 10.0);
}

std::vector<LinkWatch::News> LinkWatch::look(std::span<const LinkReport> links, Instant now) {
    using State = ArrayLinkFacts::State;
    std::vector<News> news;
    for (auto& [key, watched] : links_) watched.seen = false;
    for (const auto& report : links) {
        const auto& link = report.link;
        if (link.direction != ArrayLinkFacts::Direction::outbound) continue;
        auto [found, is_new] = links_.try_emplace({report.from, report.to});
        auto& watched = found->second;
        watched.seen = true;
        const auto& count = link.counters;
        // A peer that came back is counted anew.
        if (is_new || count.ended < watched.ended) {
            watched.ended = count.ended;
            watched.retried = count.retried;
        }
        const auto trouble = link.state == State::congested || link.state == State::stalled
                                 ? Trouble::slow
                                 : Trouble::none;
        watched.looks = trouble == watched.told ? 0 : watched.looks + 1;
        if (watched.looks >= looks_needed) {
            watched.told = trouble;
            watched.looks = 0;
            news.push_back(
                {report.from, trouble == Trouble::slow
                                  ? slowness_of(report)
                                  : text("link to %s is no longer slow", report.to.c_str())});
        }
        const bool may_tell = !watched.ends_told_at || now - *watched.ends_told_at >= quiet_for;
        if (count.ended == watched.ended || !may_tell) continue;
        news.push_back({report.from,
                        text("connection to %s ended %s (the last: %s); %llu transfers were begun "
                             "again over another",
                             report.to.c_str(), times(count.ended - watched.ended).c_str(),
                             link.last_end.c_str(),
                             static_cast<unsigned long long>(count.retried - watched.retried))});
        watched.ended = count.ended;
        watched.retried = count.retried;
        watched.ends_told_at = now;
    }
    std::erase_if(links_, [](const auto& each) { return !each.second.seen; });
    return news;
}

}  // namespace weft::node
