// SPDX-License-Identifier: Apache-2.0
// An iSCSI target named on the command line, and the sentences about what went wrong with it.
#pragma once

#include <memory>
#include <string>

#include "cli/command.hpp"
#include "node/iscsi_disk.hpp"
#include "weft/linux_world.hpp"

namespace weft::cli {

/// The name we log in with, unless the user gives another.
inline constexpr const char* default_initiator_name = "iqn.2026-11.io.weft:initiator";

/// What `text` is as a URL; throws a Misuse if it is none.
iscsi::InitiatorUrl read_initiator_url(const std::string& text);

/// The URL as it may be shown: terminals and logs are no place for secrets.
std::string without_secrets(std::string url);

/// Why a login failed, as a sentence.
std::string why_not(const std::string& url, iscsi::InitiatorSession& session, Error error);

/// The kind of connections a URL asks for.
std::unique_ptr<node::IscsiTransport> make_transport(World& world, const iscsi::InitiatorUrl& url);

class OpenedIscsiDisk {
public:
    /// Opens and waits until it can be used; throws a Refusal.
    OpenedIscsiDisk(LinuxWorld& world, const std::string& where,
                    const node::IscsiInitiatorOptions& options);
    /// Says goodbye.
    ~OpenedIscsiDisk();
    OpenedIscsiDisk(const OpenedIscsiDisk&) = delete;
    OpenedIscsiDisk& operator=(const OpenedIscsiDisk&) = delete;

    iscsi::InitiatorDisk& device() { return disk_->device(); }
    iscsi::InitiatorSession& session() { return disk_->session(); }
    std::uint64_t completions() const { return disk_->completions(); }

private:
    void close();

    LinuxWorld& world_;
    std::unique_ptr<node::IscsiTransport> transport_;
    std::unique_ptr<node::IscsiDisk> disk_;
};

/// The options every command about a target has.
struct InitiatorWishes {
    std::string where;
    std::string name = default_initiator_name;
    std::size_t connections = 1;
    std::uint32_t patience_seconds = 60;
};
void declare(CLI::App& options, InitiatorWishes& wishes);
node::IscsiInitiatorOptions initiator_options(const InitiatorWishes& wishes);

}  // namespace weft::cli
