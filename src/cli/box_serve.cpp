// SPDX-License-Identifier: Apache-2.0
// `weft box serve`: this machine as a box of an array.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error_text.hpp"
#include "cli/array_options.hpp"
#include "cli/command.hpp"
#include "cli/exporting.hpp"
#include "cli/management.hpp"
#include "cli/promises.hpp"
#include "cli/text.hpp"
#include "linux/descriptor.hpp"
#include "linux/descriptor_limit.hpp"
#include "linux/disk_files.hpp"
#include "node/box_node.hpp"
#include "wire/array_names.hpp"

namespace weft::cli {
namespace {

using nlohmann::json;

struct Wishes {
    std::string name, folder, size, key;
    std::vector<std::string> listen;
    std::string files = "auto";
    std::string group_commit = "on";
    std::size_t host_connections = host_connections_usual;
    DurationWish disk_patience{"30s", std::chrono::seconds(1), std::chrono::hours(1)};
    bool as_json = false;
};

/// The folder, made if it is not there, and for this process alone as long as the lock is open.
linux::Descriptor lock_folder(const std::string& folder) {
    std::error_code failed;
    std::filesystem::create_directory(folder, failed);
    if (failed) throw Refusal{fmt::format("{}: {}", show_foreign(folder), failed.message())};
    const auto path = folder + "/lock";
    linux::Descriptor lock(
        ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
    if (!lock.is_open())
        throw Refusal{fmt::format("{}: {}", show_foreign(path), std::strerror(errno))};
    if (::flock(lock.number(), LOCK_EX | LOCK_NB) < 0)
        throw Refusal{
            fmt::format("{}: another weft box serve uses this folder", show_foreign(folder))};
    return lock;
}

/// Without the file that says who it is a box would begin anew, over what it kept before.
void expect_to_know_parts(const std::string& folder) {
    namespace files = std::filesystem;
    std::error_code none;
    if (files::exists(files::path(folder) / "box", none)) return;
    for (const auto& entry : files::directory_iterator(folder, none))
        if (entry.path().filename().string().starts_with("part-"))
            throw Refusal{fmt::format("{}: there is {}, and no file 'box' that says whose it is",
                                      show_foreign(folder),
                                      show_foreign(entry.path().filename().string()))};
}

void start(LinuxWorld& world, node::BoxNode& box) {
    bool told = false;
    std::optional<std::string> refusal;
    box.start([&](std::optional<std::string> why) {
        told = true;
        refusal = std::move(why);
    });
    world.run_until([&] { return told; });
    if (!refusal) return;
    box.stop();
    world.run_until([&] { return box.quiet(); });
    throw Refusal{show_foreign(*refusal)};
}

void say_that_it_serves(const Wishes& wishes, node::BoxNode& box,
                        const std::vector<Address>& where) {
    const auto& facts = box.facts();
    const auto shown = show_address(where.front());
    std::string all = shown;
    json others = json::array();
    for (std::size_t i = 1; i < where.size(); ++i) {
        others.push_back(show_address(where[i]));
        all += " and " + show_address(where[i]);
    }
    if (wishes.as_json) {
        fmt::print("{}\n", show_json({{"event", "serving"},
                                      {"box", facts.name},
                                      {"identity", to_digits(facts.box)},
                                      {"address", shown},
                                      {"also_at", others},
                                      {"free", box.free_bytes()},
                                      {"parts", facts.parts.size()}}));
    } else {
        fmt::print("Box {} serves {} volumes on {}, with {} free.\n", facts.name,
                   facts.parts.size(), all, show_size(box.free_bytes()));
        if (facts.is_blank())
            fmt::print("It is nobody's yet:\n    weft box add {} {} --controller HOST:PORT\n",
                       facts.name, shown);
    }
    std::fflush(stdout);
}

}  // namespace

int box_serve(const Command& self, const Arguments& arguments) {
    CLI::App options;
    Wishes wishes;
    options.add_option("--name", wishes.name, "what the box is called in its cluster")->required();
    options.add_option("--data", wishes.folder, "a folder of its own, for all it keeps")
        ->required();
    options.add_option("--size", wishes.size, "what the volumes' parts may take of the disk")
        ->required();
    options
        .add_option("--listen", wishes.listen,
                    "HOST:PORT where controller, boxes and hosts reach it; again for every further "
                    "network it is in, the preferred first")
        ->required();
    options.add_option("--key", wishes.key,
                       "a file with the cluster's key: only a controller that has it is obeyed");
    options.add_option("--file-io", wishes.files, "how files are read and written")
        ->check(CLI::IsMember({"auto", "ring", "threads"}));
    options
        .add_option("--group-commit", wishes.group_commit,
                    "off: no two writes share a write to a journal; for measuring alone")
        ->check(CLI::IsMember({"on", "off"}));
    declare_host_connections(options, wishes.host_connections);
    wishes.disk_patience.declare(options, "--disk-patience",
                                 "a disk that leaves a request unanswered for so long has failed");
    options.add_flag("--json", wishes.as_json, "news as JSON lines");
    if (auto leave = parse(self, options, arguments)) return *leave;
    const auto size = parse_size(wishes.size);
    if (!size) throw Misuse{why_no_size(wishes.size)};
    if (*size == 0) throw Misuse{"a box without room is of no use; say a size like 512M or 1G"};
    std::vector<Address> addresses;
    for (const auto& each : wishes.listen) addresses.push_back(tcp_address_of(each));
    if (addresses.size() > wire::array_networks_max)
        throw Misuse{fmt::format("a box listens in {} networks at most", wire::array_networks_max)};
    // Before there is a folder that nobody will use.
    if (auto refusal = wire::refusal_of_box_name(wishes.name)) throw Refusal{*refusal};
    const auto key = read_key(wishes.key);
    linux::raise_descriptor_limit();
    // A file that may not grow any more is a disk that fails, not our end.
    std::signal(SIGXFSZ, SIG_IGN);
    const auto lock = lock_folder(wishes.folder);
    expect_to_know_parts(wishes.folder);
    auto world = make_world({.files = file_engine_of(wishes.files)});
    node::BoxNode box(*world,
                      {.name = wishes.name,
                       .folder = wishes.folder,
                       .size = *size,
                       .room = [&wishes] { return linux::room_for_disk_files(wishes.folder); },
                       .key = key,
                       .parts = {.group_commit = wishes.group_commit == "on",
                                 .disk_patience = wishes.disk_patience.value()},
                       .server = {.connections_per_host_max = wishes.host_connections}});
    box.on_event([&](const std::string& what) {
        print_news(wishes.as_json ? show_json({{"event", "news"}, {"what", what}})
                                  : show_foreign(what));
    });
    start(*world, box);
    std::vector<Address> real;
    for (const auto& address : addresses) {
        const auto listening = box.listen(address);
        if (listening) {
            real.push_back(*listening);
            continue;
        }
        box.stop();
        world->run_until([&] { return box.quiet(); });
        throw Refusal{fmt::format("cannot listen on {}: {}", show_address(address),
                                  to_text(listening.error()))};
    }
    serve_until_stopped(*world, box, [&] { say_that_it_serves(wishes, box, real); });
    return done;
}

}  // namespace weft::cli
