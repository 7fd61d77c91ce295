// SPDX-License-Identifier: Apache-2.0
#include "cli/disk_access.hpp"

#include <fmt/format.h>

#include "base/error_text.hpp"
#include "cli/text.hpp"

namespace weft::cli {

Refusal cannot_open(const std::string& path, Error why) {
    auto reason =
        why.code == Code::unsupported ? "it is neither a file nor a block device" : to_text(why);
    return {fmt::format("{}: {}", path.empty() ? "''" : path, reason)};
}

std::optional<NbdUri> as_nbd_uri(const std::string& where) {
    auto uri = parse_nbd_uri(where);
    if (!uri && (where.starts_with("nbd:") || where.starts_with("nbd+unix:")))
        throw Misuse{
            fmt::format("'{}' is not nbd://HOST[:PORT]/NAME or "
                        "nbd+unix:///NAME?socket=PATH",
                        where)};
    return uri;
}

bool is_remote(const std::string& where) {
    return iscsi::looks_like_initiator_url(where) || as_nbd_uri(where);
}

OpenedDisk::OpenedDisk(LinuxWorld& world, const std::string& where, bool read_only)
    : world_(world) {
    if (iscsi::looks_like_initiator_url(where)) {
        InitiatorWishes wishes;
        wishes.where = where;
        unit_ = std::make_unique<OpenedIscsiDisk>(world, where, initiator_options(wishes));
        return;
    }
    if (auto uri = as_nbd_uri(where)) {
        std::optional<Result<void>> opened;
        auto disk = node::NbdDisk::connect(world, uri->address, uri->export_name,
                                           [&](Result<void> outcome) { opened = outcome; });
        if (!disk) throw Refusal{fmt::format("{}: {}", where, to_text(disk.error()))};
        remote_ = std::move(*disk);
        world.run_until([&] { return opened.has_value(); });
        if (!*opened) {
            auto words = show_foreign(remote_->device().refusal());
            throw Refusal{
                fmt::format("{}: {}", where, words.empty() ? to_text(opened->error()) : words)};
        }
        return;
    }
    auto disk = world.open_disk({where, read_only, false});
    if (!disk) throw cannot_open(where, disk.error());
    file_ = std::move(*disk);
}

OpenedDisk::~OpenedDisk() {
    if (!remote_) return;
    remote_->device().disconnect();
    world_.run_until([&] { return remote_->device().finished(); });
}

BlockDevice& OpenedDisk::device() {
    if (remote_) return remote_->device();
    if (unit_) return unit_->device();
    return *file_;
}

}  // namespace weft::cli
