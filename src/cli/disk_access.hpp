// SPDX-License-Identifier: Apache-2.0
// A disk named on the command line: a file, or an NBD URI.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/command.hpp"
#include "cli/outside.hpp"
#include "cli/text.hpp"
#include "node/nbd_disk.hpp"
#include "weft/linux_world.hpp"

namespace weft::cli {

/// Why a file cannot be a disk, as a sentence.
Refusal cannot_open(const std::string& path, Error why);

/// The NBD URI `where` is, or nothing if it names a file; throws a Refusal if it is a bad URI.
std::optional<NbdUri> as_nbd_uri(const std::string& where);

class OpenedDisk {
public:
    /// Opens and waits until it can be used; throws a Refusal.
    OpenedDisk(LinuxWorld& world, const std::string& where, bool read_only);
    /// Says goodbye to an NBD server.
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
};

}  // namespace weft::cli
