// SPDX-License-Identifier: Apache-2.0
#include "cli/initiator_access.hpp"

#include <fmt/format.h>

#include "base/error_text.hpp"
#include "cli/text.hpp"
#include "node/iscsi_iser_transport.hpp"

namespace weft::cli {

iscsi::InitiatorUrl read_initiator_url(const std::string& text) {
    auto url = iscsi::parse_initiator_url(text);
    if (!url)
        throw Misuse{fmt::format("'{}' is not iscsi://[USER%SECRET@]HOST[:PORT][/TARGET/UNIT]",
                                 without_secrets(text))};
    return *url;
}

std::string without_secrets(std::string url) {
    auto hide = [&](std::size_t from, std::size_t to) { url.replace(from, to - from, "***"); };
    constexpr std::string_view password = "target_password=";
    if (const auto at = url.find(password); at != url.npos)
        hide(at + password.size(), std::min(url.find('&', at), url.size()));
    const auto scheme = url.find("://");
    const auto user = scheme == url.npos ? 0 : scheme + 3;
    const auto host = url.rfind('@', url.find('/', user));
    const auto secret = url.find('%', user);
    if (host != url.npos && secret < host) hide(secret + 1, host);
    return url;
}

std::string why_not(const std::string& url, iscsi::InitiatorSession& session, Error error) {
    using enum wire::LoginStatus;
    std::string reason = to_text(error);
    switch (session.login_status()) {
        case success:
            break;
        case authentication_failure:
            reason = "the target does not believe who we are";
            break;
        case authorization_failure:
            reason = "we may not use this target";
            break;
        case not_found:
            reason = "there is no such target";
            break;
        case service_unavailable:
        case out_of_resources:
            reason = "the target is not ready to serve us now";
            break;
        default:
            reason = fmt::format("the target refused the login with status {:04x}",
                                 static_cast<unsigned>(session.login_status()));
    }
    return fmt::format("{}: {}", without_secrets(url), reason);
}

std::unique_ptr<node::IscsiTransport> make_transport(World& world, const iscsi::InitiatorUrl& url) {
    if (url.rdma_after_login)
        return std::make_unique<node::IscsiTurningTransport>(world,
                                                             iscsi::IserInitiator::Options{});
    if (url.over_rdma)
        return std::make_unique<node::IscsiIserTransport>(world, iscsi::IserInitiator::Options{});
    return std::make_unique<node::IscsiTcpTransport>(world);
}

OpenedIscsiDisk::OpenedIscsiDisk(LinuxWorld& world, const std::string& where,
                                 const node::IscsiInitiatorOptions& options)
    : world_(world), transport_(make_transport(world, options.url)) {
    if (options.url.target_name.empty())
        throw Misuse{fmt::format("{} names no target and unit", without_secrets(where))};
    std::optional<Result<void>> opened;
    disk_ = std::make_unique<node::IscsiDisk>(world, *transport_, options,
                                              [&](Result<void> outcome) { opened = outcome; });
    world.run_until([&] { return opened.has_value(); });
    if (*opened) return;
    auto sentence = why_not(where, disk_->session(), opened->error());
    close();
    throw Refusal{sentence};
}

OpenedIscsiDisk::~OpenedIscsiDisk() {
    close();
}

void OpenedIscsiDisk::close() {
    if (!disk_) return;
    disk_->disconnect();
    world_.run_until([&] { return disk_->finished(); });
    disk_.reset();
}

void declare(CLI::App& options, InitiatorWishes& wishes) {
    options.add_option("URL", wishes.where, "iscsi://[USER%SECRET@]HOST[:PORT]/TARGET/UNIT")
        ->required();
    options.add_option("--initiator", wishes.name, "the name to log in with");
    options.add_option("--connections", wishes.connections, "connections of the session")
        ->check(CLI::Range(std::size_t{1}, iscsi::initiator_connections_max));
    options.add_option("--timeout", wishes.patience_seconds,
                       "seconds after which a command is aborted; 0: never");
}

node::IscsiInitiatorOptions initiator_options(const InitiatorWishes& wishes) {
    node::IscsiInitiatorOptions options;
    options.url = read_initiator_url(wishes.where);
    options.initiator_name = wishes.name;
    options.connections = wishes.connections;
    options.command_patience = std::chrono::seconds(wishes.patience_seconds);
    return options;
}

}  // namespace weft::cli
