// SPDX-License-Identifier: Apache-2.0
// The command line as a table: noun, verb, usage, one sentence, and the function that does it.
//
// `weft help`, the error for an unknown command and the test that each command can explain itself
// are all made from this table. Options are declared by each command with CLI11.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weft::cli {

/// What a command answers to the shell.
enum Status : int {
    done = 0,
    refused = 1,  ///< one sentence on stderr says why
    misused = 2,  ///< the usage line was printed too
};

/// A sentence for the user, thrown to the one place that prints it.
struct Refusal {
    std::string sentence;
    int status = refused;
};

/// The same for arguments that make no sense: the usage line follows.
struct Misuse {
    std::string sentence;
};

using Arguments = std::vector<std::string>;

struct Command {
    const char* name;   ///< "export nbd"
    const char* usage;  ///< what follows the name
    const char* summary;
    int (*run)(const Command& self, const Arguments& arguments);
};

/// In the order `weft help` prints them.
std::span<const Command> commands();

/// The whole program: finds the command and runs it.
int run(const Arguments& arguments);

/// Reads `arguments` into what `options` declares. Nothing: go on. A number: leave with it, because
/// help was asked for and printed, or the arguments were wrong and that was said.
std::optional<int> parse(const Command& self, CLI::App& options, const Arguments& arguments);

int export_nbd(const Command& self, const Arguments& arguments);
int export_iscsi(const Command& self, const Arguments& arguments);
int target_list(const Command& self, const Arguments& arguments);
int target_add(const Command& self, const Arguments& arguments);
int target_remove(const Command& self, const Arguments& arguments);
int unit_add(const Command& self, const Arguments& arguments);
int unit_remove(const Command& self, const Arguments& arguments);
int session_list(const Command& self, const Arguments& arguments);
int box_serve(const Command& self, const Arguments& arguments);
int examine(const Command& self, const Arguments& arguments);
int controller_serve(const Command& self, const Arguments& arguments);
int controller_status(const Command& self, const Arguments& arguments);
int controller_step_down(const Command& self, const Arguments& arguments);
int box_add(const Command& self, const Arguments& arguments);
int box_list(const Command& self, const Arguments& arguments);
int box_clean(const Command& self, const Arguments& arguments);
int box_remove(const Command& self, const Arguments& arguments);
int volume_create(const Command& self, const Arguments& arguments);
int volume_list(const Command& self, const Arguments& arguments);
int volume_status(const Command& self, const Arguments& arguments);
int volume_grow(const Command& self, const Arguments& arguments);
int volume_delete(const Command& self, const Arguments& arguments);
int volume_assemble(const Command& self, const Arguments& arguments);
int member_fail(const Command& self, const Arguments& arguments);
int member_replace(const Command& self, const Arguments& arguments);
int member_re_add(const Command& self, const Arguments& arguments);
int spare_add(const Command& self, const Arguments& arguments);
int spare_remove(const Command& self, const Arguments& arguments);
int spare_list(const Command& self, const Arguments& arguments);
int rebuild_status(const Command& self, const Arguments& arguments);
int rebuild_pause(const Command& self, const Arguments& arguments);
int rebuild_resume(const Command& self, const Arguments& arguments);
int rebuild_rate(const Command& self, const Arguments& arguments);
int scrub(const Command& self, const Arguments& arguments);
int host_attach(const Command& self, const Arguments& arguments);
int host_list(const Command& self, const Arguments& arguments);
int events(const Command& self, const Arguments& arguments);
int slow_operations(const Command& self, const Arguments& arguments);
int link_list(const Command& self, const Arguments& arguments);
int disk_info(const Command& self, const Arguments& arguments);
int disk_copy(const Command& self, const Arguments& arguments);
int initiator_ls(const Command& self, const Arguments& arguments);
int initiator_inq(const Command& self, const Arguments& arguments);
int initiator_read(const Command& self, const Arguments& arguments);
int initiator_write(const Command& self, const Arguments& arguments);
int initiator_bench(const Command& self, const Arguments& arguments);
int rdma_serve(const Command& self, const Arguments& arguments);
int rdma_ping(const Command& self, const Arguments& arguments);
int rdma_bench(const Command& self, const Arguments& arguments);
int rdma_rping(const Command& self, const Arguments& arguments);
int sim_run(const Command& self, const Arguments& arguments);
int run_program(const Command& self, const Arguments& arguments);
int version(const Command& self, const Arguments& arguments);
int help(const Command& self, const Arguments& arguments);

}  // namespace weft::cli
