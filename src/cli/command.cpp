// SPDX-License-Identifier: Apache-2.0
#include "cli/command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/text.hpp"

namespace weft::cli {
namespace {

// clang-format off
constexpr Command table[] = {
    {"export nbd", "(--memory SIZE | --file PATH)… (--unix PATH | --tcp HOST:PORT)… [--name NAME]…",
     "Serve disks to NBD clients", export_nbd},
    {"export iscsi", "--target NAME (--memory SIZE | --file PATH)… (--tcp HOST:PORT)… [--lun N]…",
     "Serve disks to iSCSI initiators", export_iscsi},
    {"target list", "--control PATH [--json]",
     "Say which targets a running export serves", target_list},
    {"target add", "NAME (--memory SIZE | --file PATH)… --control PATH",
     "Let a running export serve one more target", target_add},
    {"target remove", "NAME --control PATH",
     "Close a target's sessions and serve it no longer", target_remove},
    {"unit add", "TARGET (--memory SIZE | --file PATH) [--lun N] --control PATH",
     "Give a target of a running export one more disk", unit_add},
    {"unit remove", "TARGET --lun N --control PATH",
     "End the commands of a target's disk and serve it no longer", unit_remove},
    {"session list", "--control PATH [--json]",
     "Say who uses the targets of a running export", session_list},
    {"box serve", "--name NAME --data FOLDER --size SIZE (--listen HOST:PORT)… [--key FILE] "
     "[--json]",
     "Be a box of an array: keep parts of volumes", box_serve},
    {"controller serve", "(--state FILE | --etcd HOST:PORT,…) (--listen HOST:PORT)… [--standby] "
     "[--reach HOST] [--key FILE] [--data-path third-party|inband] [--json]",
     "Be the controller of an array: know its boxes, serve its volumes", controller_serve},
    {"controller status", "--controller HOST:PORT,… [--json]",
     "Say which of the controllers of an array is in office", controller_status},
    {"controller step-down", "--controller HOST:PORT,… [--json]",
     "Let the controller in office give way to a standby", controller_step_down},
    {"box add", "NAME HOST:PORT --controller HOST:PORT [--join] [--json]",
     "Let a box belong to an array", box_add},
    {"box list", "--controller HOST:PORT [--json]",
     "Say which boxes an array has, and how they are", box_list},
    {"box clean", "NAME [--force] --controller HOST:PORT [--json]",
     "Remove parts that no volume claims from a box", box_clean},
    {"box remove", "NAME --controller HOST:PORT [--json]",
     "Let a box that is part of no volume go", box_remove},
    {"volume create", "NAME --level 1|5|6 --boxes NAME,… [--chunk SIZE] [--size SIZE] "
     "[--consistency journal|none] [--topology star|tree] --controller HOST:PORT [--json]",
     "Make a volume on boxes of an array", volume_create},
    {"volume list", "--controller HOST:PORT [--json]",
     "Say which volumes an array has", volume_list},
    {"volume status", "VOLUME --controller HOST:PORT [--json]",
     "Say how a volume is, box by box", volume_status},
    {"volume grow", "VOLUME SIZE --controller HOST:PORT [--json]",
     "Let a volume have more of its boxes' room", volume_grow},
    {"volume delete", "VOLUME --controller HOST:PORT [--json]",
     "Give up a volume and all that is on it", volume_delete},
    {"volume assemble", "VOLUME [--force] --controller HOST:PORT [--json]",
     "Learn of a volume from its boxes, where the controller's state is lost", volume_assemble},
    {"member fail", "VOLUME MEMBER --controller HOST:PORT [--json]",
     "Let a volume go on without a box", member_fail},
    {"member replace", "VOLUME MEMBER BOX --controller HOST:PORT [--json]",
     "Give a box's place in a volume to another", member_replace},
    {"member re-add", "VOLUME MEMBER --controller HOST:PORT [--json]",
     "Let a box that was failed back into its volume", member_re_add},
    {"spare add", "BOX --controller HOST:PORT [--json]",
     "Keep a box ready for the next that is lost", spare_add},
    {"spare remove", "BOX --controller HOST:PORT [--json]",
     "Keep it ready no longer", spare_remove},
    {"spare list", "--controller HOST:PORT [--json]",
     "Say which boxes are spares", spare_list},
    {"rebuild status", "VOLUME --controller HOST:PORT [--once] [--json]",
     "Say how far the rebuilding of a volume is", rebuild_status},
    {"rebuild pause", "VOLUME --controller HOST:PORT [--json]",
     "Let the rebuilding of a volume wait", rebuild_pause},
    {"rebuild resume", "VOLUME --controller HOST:PORT [--json]",
     "Let it go on", rebuild_resume},
    {"rebuild rate", "VOLUME RATE --controller HOST:PORT [--json]",
     "Limit how fast a volume is rebuilt", rebuild_rate},
    {"scrub", "VOLUME [--repair] [--stop] [--wait] --controller HOST:PORT [--json]",
     "Look whether the boxes of a volume agree", scrub},
    {"host attach", "VOLUME --controller HOST:PORT,… (--nbd-unix PATH | --nbd HOST:PORT | "
     "--iscsi HOST:PORT)…",
     "Attach to a volume and serve it to programs of this machine", host_attach},
    {"host list", "--controller HOST:PORT [--json]",
     "Say which hosts use an array's volumes", host_list},
    {"link list", "[--volume VOLUME] --controller HOST:PORT [--json]",
     "Say how the connections between boxes and hosts are, over which data moves", link_list},
    {"events", "--controller HOST:PORT [--follow] [--json]",
     "Say what has happened to an array", events},
    {"slow-ops", "--controller HOST:PORT [--json]",
     "Say which requests of hosts took long", slow_operations},
    {"examine", "FOLDER [--json]",
     "Say what a box's folder holds, whether or not it runs", examine},
    {"disk info", "DISK [--json]",
     "Say what a disk is and can do: a file, nbd://HOST/NAME, iscsi://HOST/TARGET/UNIT", disk_info},
    {"disk copy", "SOURCE TARGET [--json]",
     "Copy a disk: each side a file, an NBD or an iSCSI URL", disk_copy},
    {"initiator ls", "iscsi://HOST[:PORT] [--json]",
     "List the iSCSI targets of a portal", initiator_ls},
    {"initiator inq", "URL [--json]",
     "Say what a logical unit is and can do", initiator_inq},
    {"initiator read", "URL OFFSET LENGTH",
     "Write bytes of a logical unit to standard output", initiator_read},
    {"initiator write", "URL OFFSET FILE",
     "Write a file to a logical unit", initiator_write},
    {"initiator bench", "URL [--size SIZE] [--depth N] [--seconds S] [--write] [--json]",
     "Measure how many reads or writes a logical unit takes", initiator_bench},
    {"rdma serve", "--listen HOST:PORT",
     "Be a peer to exercise RDMA with", rdma_serve},
    {"rdma ping", "HOST:PORT [--count N] [--size SIZE] [--json]",
     "Say how long a message takes there and back", rdma_ping},
    {"rdma bench", "HOST:PORT [--op send|write|read] [--size SIZE] [--json]",
     "Measure round trips and throughput", rdma_bench},
    {"rdma rping", "(--server | --client) HOST:PORT [--count N] [--size SIZE]",
     "Speak the stock rping program's exchange", rdma_rping},
    {"sim run", "raid|array [--seeds FIRST-LAST | --seed N] [--consistency journal|none|both] "
     "[--faults all|rings|second|first] [--beyond] [--go-on] [--jobs N] [--trace] [--json]",
     "Run whole arrays in virtual time, with faults, and look for anything lost", sim_run},
    {"run", "[--crc on|off] [--mode MODE] [--placement verified|eager] "
     "(PROGRAM ARGS… | --print-env)",
     "Start an RDMA program on Weft: it finds our libibverbs and librdmacm", run_program},
    {"version", "[--json]",
     "Say which weft this is", version},
    {"help", "[COMMAND]",
     "Say what weft can do, or explain one command", help},
};
// clang-format on

/// The command whose words `arguments` begin with, and how many words that took.
std::pair<const Command*, std::size_t> find(const Arguments& arguments) {
    for (const auto& command : table) {
        std::string name;
        for (std::size_t count = 0; count < arguments.size() && count < 2; ++count) {
            name += (count ? " " : "") + arguments[count];
            if (name == command.name) return {&command, count + 1};
        }
    }
    return {nullptr, 0};
}

std::string usage_of(const Command& command) {
    return fmt::format("usage: weft {} {}", command.name, command.usage);
}

/// On stderr, and no matter whether that works: there is nobody else to tell.
void complain(const std::string& sentence) {
    std::fputs(("weft: " + sentence + "\n").c_str(), stderr);
}

int misuse(const Arguments& arguments) {
    std::string nouns;
    for (const auto& command : table) {
        std::string_view name = command.name;
        if (name.starts_with(arguments.front() + " "))
            nouns += fmt::format("{}weft {}", nouns.empty() ? "" : ", ", name);
    }
    if (!nouns.empty())
        complain(fmt::format("'{}' needs a verb: {}", arguments.front(), nouns));
    else
        complain(fmt::format("there is no command '{}'; 'weft help' lists what there is",
                             show_foreign(arguments.front())));
    return misused;
}

}  // namespace

std::span<const Command> commands() {
    return table;
}

std::optional<int> parse(const Command& self, CLI::App& options, const Arguments& arguments) {
    options.name(fmt::format("weft {}", self.name));
    options.description(self.summary);
    try {
        // CLI11 takes its arguments last first.
        options.parse(Arguments(arguments.rbegin(), arguments.rend()));
        return {};
    } catch (const CLI::CallForHelp&) {
        fmt::print("{}: {}\n{}\n", self.name, self.summary, usage_of(self));
        auto text = options.help();
        auto options_at = text.find("\nOptions:");
        if (options_at != std::string::npos) fmt::print("{}", text.substr(options_at));
        return done;
    } catch (const CLI::ParseError& wrong) {
        throw Misuse{show_foreign(wrong.what())};
    }
}

int run(const Arguments& arguments) {
    if (arguments.empty() || arguments == Arguments{"--help"} || arguments == Arguments{"-h"})
        return run({"help"});
    if (arguments == Arguments{"--version"}) return run({"version"});
    auto [command, words] = find(arguments);
    if (command == nullptr) return misuse(arguments);
    try {
        return command->run(*command, Arguments(arguments.begin() + words, arguments.end()));
    } catch (const Misuse& misuse) {
        complain(misuse.sentence + "\n" + usage_of(*command));
        return misused;
    } catch (const Refusal& refusal) {
        complain(refusal.sentence);
        return refusal.status;
    } catch (const std::exception& unforeseen) {
        complain(unforeseen.what());
    }
    return refused;
}

int help(const Command& self, const Arguments& arguments) {
    if (!arguments.empty() && arguments.front() != "--help") {
        auto [command, words] = find(arguments);
        if (command == nullptr) return misuse(arguments);
        if (command->run != self.run) return command->run(*command, {"--help"});
    }
    fmt::print("weft: RDMA and the storage built on it, in user space\n\n");
    for (const auto& command : table) {
        fmt::print("  weft {} {}\n      {}\n", command.name, command.usage, command.summary);
    }
    fmt::print("\n'weft help COMMAND' explains one; sizes are written 64k, 512M, 1G.\n");
    return done;
}

int version(const Command& self, const Arguments& arguments) {
    CLI::App options;
    bool json = false;
    options.add_flag("--json", json, "as a JSON document");
    if (auto leave = parse(self, options, arguments)) return *leave;
    if (json)
        fmt::print("{}\n", show_json({{"name", "weft"}, {"version", WEFT_VERSION}}));
    else
        fmt::print("weft {}\n", WEFT_VERSION);
    return done;
}

}  // namespace weft::cli
