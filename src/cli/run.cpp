// SPDX-License-Identifier: Apache-2.0
// `weft run`: starts somebody else's RDMA program, which then finds our libibverbs and librdmacm
// where it would find the system's. Nothing of the system changes, and no rights are needed.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/program_file.hpp"
#include "cli/text.hpp"

namespace weft::cli {
namespace {

using Environment = std::map<std::string, std::string>;

struct Wishes {
    std::string checksums, mode, placement;
    bool print = false, as_json = false;
};

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

bool holds_libraries(const std::filesystem::path& folder) {
    std::error_code ignored;
    return std::filesystem::exists(folder / "libibverbs.so.1", ignored) &&
           std::filesystem::exists(folder / "librdmacm.so.1", ignored);
}

/// The folder of our libraries: beside the binary in a build tree, under lib where installed.
std::string find_libraries() {
    std::error_code failed;
    if (auto said = variable("WEFT_DROPIN"); !said.empty()) {
        auto folder = std::filesystem::absolute(said, failed);
        if (!failed && holds_libraries(folder)) return folder;
        throw Refusal{
            fmt::format("WEFT_DROPIN is {}, and there is no libibverbs.so.1 with a "
                        "librdmacm.so.1 there",
                        show_foreign(said))};
    }
    auto top = std::filesystem::read_symlink("/proc/self/exe", failed).parent_path().parent_path();
    auto built = top / "dropin", installed = top / "lib/weft/dropin";
    for (const auto& folder : {built, installed})
        if (holds_libraries(folder)) return folder;
    throw Refusal{
        fmt::format("Weft's libibverbs.so.1 and librdmacm.so.1 are neither in {} nor in "
                    "{}; set WEFT_DROPIN to their folder",
                    built.string(), installed.string())};
}

/// The library path with `folder` first, and not twice at its beginning.
std::string path_from(const std::string& folder) {
    auto before = variable("LD_LIBRARY_PATH");
    if (before.empty() || before == folder) return folder;
    return before.starts_with(folder + ":") ? before : folder + ":" + before;
}

Environment environment_for(const Wishes& wishes) {
    auto folder = find_libraries();
    if (folder.find_first_of(":;$") != std::string::npos)
        throw Refusal{fmt::format("{}: a library path cannot name a folder with ':', ';' or '$'",
                                  show_foreign(folder))};
    Environment environment{{"LD_LIBRARY_PATH", path_from(folder)}};
    if (!wishes.checksums.empty()) environment["WEFT_CRC"] = wishes.checksums;
    if (!wishes.mode.empty()) environment["WEFT_MODE"] = wishes.mode;
    if (!wishes.placement.empty()) environment["WEFT_PLACEMENT"] = wishes.placement;
    return environment;
}

/// For eval in a shell, whatever is in the value.
std::string quoted(const std::string& value) {
    std::string result = "'";
    for (char letter : value) {
        if (letter == '\'')
            result += "'\\''";
        else
            result += letter;
    }
    return result + "'";
}

void print(const Environment& environment, bool as_json) {
    if (as_json) {
        fmt::print("{}\n", show_json({{"environment", environment}}));
        return;
    }
    for (const auto& [name, value] : environment) fmt::print("export {}={}\n", name, quoted(value));
}

/// Becomes the program, or throws a Refusal.
int become(const Arguments& words, const Wishes& wishes) {
    auto path = find_program(words.front());
    expect_library_path_is_used(path);
    for (const auto& [name, value] : environment_for(wishes))
        ::setenv(name.c_str(), value.c_str(), 1);
    std::vector<char*> pointers;
    for (const auto& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    std::signal(SIGPIPE, SIG_DFL);  // weft ignores it, and who it becomes must not inherit that
    ::execvp(path.c_str(), pointers.data());
    throw Refusal{fmt::format("{}: {}", show_foreign(path), std::strerror(errno)), cannot_be_run};
}

}  // namespace

int run_program(const Command& self, const Arguments& arguments) {
    CLI::App options;
    Wishes wishes;
    options.prefix_command();  // what follows the program's name is the program's
    options.add_option("--crc", wishes.checksums, "checksums: on, or off where the peer agrees")
        ->check(CLI::IsMember({"on", "off"}));
    options
        .add_option("--mode", wishes.mode,
                    "how a connection begins: who may speak first, or by MPA revision 1")
        ->check(CLI::IsMember({"peer-to-peer", "client-server", "revision-1"}));
    options
        .add_option("--placement", wishes.placement,
                    "with checksums: place bytes after the check, or eagerly before it")
        ->check(CLI::IsMember({"verified", "eager"}));
    auto* print_only = options.add_flag("--print-env", wishes.print,
                                        "say what would be set, for eval, and start nothing");
    options.add_flag("--json", wishes.as_json, "with --print-env: as JSON")->needs(print_only);
    if (auto leave = parse(self, options, arguments)) return *leave;
    auto words = options.remaining();
    if (!words.empty() && words.front() == "--")
        words.erase(words.begin());
    else if (!words.empty() && words.front().starts_with('-'))
        throw Misuse{fmt::format("The following argument was not expected: {}",
                                 show_foreign(words.front()))};
    if (words.empty() != wishes.print)
        throw Misuse{"give either a PROGRAM to start or --print-env"};
    if (!wishes.print) return become(words, wishes);
    print(environment_for(wishes), wishes.as_json);
    return done;
}

}  // namespace weft::cli
