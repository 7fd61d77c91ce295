// SPDX-License-Identifier: Apache-2.0
// `weft disk info`: what a file or an NBD export is and can do.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/disk_access.hpp"
#include "cli/text.hpp"

namespace weft::cli {

int disk_info(const Command& self, const Arguments& arguments) {
    CLI::App options;
    std::string where;
    bool as_json = false;
    options
        .add_option("DISK", where,
                    "a file, nbd://HOST/NAME, nbd+unix:///NAME?socket=PATH or "
                    "iscsi://HOST/TARGET/UNIT")
        ->required();
    options.add_flag("--json", as_json, "as a JSON document");
    if (auto leave = parse(self, options, arguments)) return *leave;
    auto world = make_world({});
    OpenedDisk disk(*world, where, true);
    auto traits = disk.device().traits();
    auto document = nlohmann::json{{"disk", where},
                                   {"size", traits.size},
                                   {"minimum_block", traits.minimum_block},
                                   {"preferred_block", traits.preferred_block},
                                   {"maximum_transfer", traits.maximum_transfer},
                                   {"can_trim", traits.can_trim},
                                   {"can_write_zeroes", traits.can_write_zeroes},
                                   {"can_report_status", traits.can_report_status}};
    if (auto* client = disk.client()) {
        document["read_only"] = traits.read_only;
        document["structured_replies"] = client->agreement().structured_replies;
        document["many_connections"] = client->agreement().flags.many_connections;
    }
    if (as_json) {
        fmt::print("{}\n", show_json(document));
        return done;
    }
    auto yes = [](bool can) { return can ? "yes" : "no"; };
    fmt::print("{}: {} ({} bytes)\n", where, show_size(traits.size), traits.size);
    fmt::print("  blocks: at least {} B, best {}, at most {} at a time\n", traits.minimum_block,
               show_size(traits.preferred_block), show_size(traits.maximum_transfer));
    fmt::print("  trims: {}; zeroes quickly: {}; knows its holes: {}\n", yes(traits.can_trim),
               yes(traits.can_write_zeroes), yes(traits.can_report_status));
    if (disk.client() != nullptr) fmt::print("  read-only: {}\n", yes(traits.read_only));
    return done;
}

}  // namespace weft::cli
