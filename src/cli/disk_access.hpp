// SPDX-License-Identifier: Apache-2.0
// A disk named on the command line: a file, an NBD URI or an iSCSI URL.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/command.hpp"
#include "cli/initiator_access.hpp"
#include "cli/outside.hpp"
#include "cli/text.hpp"
#include "node/nbd_disk.hpp"
#include "weft/linux_world.hpp"

namespace weft::cli {

/// Why a file cannot be a disk, as a sentence.
Refusal cannot_open(const std::string& path, Error why);

/// The NBD URI `where` is, or nothing if it names a file; throws a Refusal if it is a bad URI.
std::optional<NbdUri> as_nbd_uri(const std::string& where);

/// Whether it is somewhere else, and not a file.
bool is_remote(const std::string& where);

class OpenedDisk {
public:
    /// Opens and waits until it can be used; throws a Refusal.
    OpenedDisk(LinuxWorld& world, const std::string& where, bool read_only);
    /// Says goodbye to a server.
    ~OpenedDisk();
    OpenedDisk(const OpenedDisk&) = delete;
    OpenedDisk& operator=(const OpenedDisk&) = delete;

    BlockDevice& device();
    /// The NBD client, if it is one.
    nbd::Client* client() { return remote_ ? &remote_->device() : nullptr; }

private:
    LinuxWorld& world_;
    std::unique_ptr<BlockDevice> file_;
    std::unique_ptr<node::NbdDisk> remote_;
    std::unique_ptr<OpenedIscsiDisk> unit_;
};

}  // namespace weft::cli
