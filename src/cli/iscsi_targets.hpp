// SPDX-License-Identifier: Apache-2.0
// The targets a running `weft export iscsi` serves, with the disks behind them. One description
// serves the command line, a file of targets and `weft target add`: JSON as
//
//     {"name": "iqn.…", "alias": "…", "initiators": ["iqn.…"], "chap": "FILE",
//      "lun": [{"memory": "1G"}, {"file": "disk.img", "number": 5, "read_only": true,
//               "removable": true, "thick": true, "block_size": 4096, "direct": true,
//               "physical_block": 4096, "erasure_time": 15, "memory_limit": "512M"}]}
#pragma once

#include <list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "node/iscsi_server.hpp"

namespace weft::cli {

class IscsiTargets {
public:
    IscsiTargets(World& world, node::IscsiServer& server) : world_(world), server_(server) {}
    IscsiTargets(const IscsiTargets&) = delete;
    IscsiTargets& operator=(const IscsiTargets&) = delete;
    ~IscsiTargets() { *alive_ = false; }

    /// Opens the disks and offers the target. Throws a Refusal or a Misuse, and then nothing of it
    /// is left.
    void add(const nlohmann::json& description);
    /// Closes its sessions, and then its disks. Throws a Refusal.
    void remove(const std::string& name);
    /// One more unit for a target that is being served, described as in its list. Without a number
    /// it gets the first that is free. Throws as add() does; gives its number.
    std::uint32_t add_unit(const std::string& name, const nlohmann::json& description);
    /// Its commands are ended, and then its disk is closed. Throws a Refusal.
    void remove_unit(const std::string& name, std::uint32_t number);

    /// [{"name", "units": [{"lun", "size", "backing", "read_only"}]}]
    nlohmann::json targets() const;
    /// [{"initiator", "target", "type", "connections": [{"id", "peer"}], "tasks"}]
    nlohmann::json sessions() const;

private:
    struct Unit {
        std::unique_ptr<BlockDevice> device{};
        std::uint32_t number = 0;
        std::string what{};  ///< "in memory", "disk.img"
        scsi::UnitOptions options{};
    };
    struct Target {
        std::string name;
        std::vector<Unit> units{};
        bool leaving = false;
    };

    Target& find(const std::string& name);
    Unit open_unit(const nlohmann::json& description, std::uint32_t number);
    void forget(Target& target);

    World& world_;
    node::IscsiServer& server_;
    std::list<Target> targets_;
    /// Of units that were removed: closed when nothing is under way there any more.
    std::list<std::unique_ptr<BlockDevice>> retired_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace weft::cli
