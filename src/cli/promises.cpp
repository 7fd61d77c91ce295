// SPDX-License-Identifier: Apache-2.0
#include "cli/promises.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/text.hpp"

namespace weft::cli {
namespace {

double seconds_of(Duration span) {
    return std::chrono::duration<double>(span).count();
}

}  // namespace

CLI::Option* DurationWish::declare(CLI::App& options, const std::string& name,
                                   const std::string& what) {
    return options.add_option(name, text, what)
        ->default_str(text)
        ->check([this](const std::string& said) {
            const auto span = parse_duration(said);
            if (!span) return fmt::format("'{}' is not a duration like 500ms, 10s or 2m", said);
            if (*span >= least && *span <= most) return std::string();
            return fmt::format("'{}' is not from {} to {}", said, show_duration(seconds_of(least)),
                               show_duration(seconds_of(most)));
        });
}

Duration DurationWish::value() const {
    return parse_duration(text).value_or(least);
}

void PromiseWishes::declare(CLI::App& options) {
    request_patience.declare(options, "--request-patience",
                             "how long a request of a host waits before it fails");
    box_silence.declare(options, "--box-silence",
                        "a box that has said nothing for so long is absent");
    spare_patience.declare(options, "--spare-patience",
                           "how long a lost box may take to return before a spare has its place");
    options
        .add_option("--rebuild-share", rebuild_share,
                    "percent of what each box admits that a rebuild gets while it has work")
        ->check(CLI::Range(1, 90))
        ->capture_default_str();
    options
        .add_option("--host-requests", host_requests,
                    "of one host that are under way; more wait for their turn")
        ->check(CLI::Range(1, static_cast<int>(node::ControllerVolume::host_commands_max)))
        ->capture_default_str();
}

void PromiseWishes::apply(node::ControllerNode::Options& options) const {
    options.box_silence = box_silence.value();
    options.volume.request_patience = request_patience.value();
    options.volume.box_silence = box_silence.value();
    options.volume.spare_patience = spare_patience.value();
    options.volume.rebuild_share = rebuild_share;
    options.volume.host_requests = host_requests;
    if (options.box_silence >= options.volume.request_patience)
        throw Misuse{
            fmt::format("--box-silence {} is not shorter than --request-patience {}: "
                        "requests that wait for a stopped box would fail before the "
                        "volume goes on without it",
                        box_silence.text, request_patience.text)};
}

nlohmann::json promises_json(const node::ControllerNode::Options& options) {
    return {{"request_patience_seconds", seconds_of(options.volume.request_patience)},
            {"box_silence_seconds", seconds_of(options.box_silence)},
            {"spare_patience_seconds", seconds_of(options.volume.spare_patience)},
            {"rebuild_share_percent", options.volume.rebuild_share},
            {"host_requests", options.volume.host_requests}};
}

}  // namespace weft::cli
