// SPDX-License-Identifier: Apache-2.0
// `weft export nbd`: serve disks to NBD clients until told to stop.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error_text.hpp"
#include "cli/command.hpp"
#include "cli/disk_access.hpp"
#include "cli/exporting.hpp"
#include "cli/text.hpp"
#include "linux/descriptor_limit.hpp"
#include "node/nbd_server.hpp"

namespace weft::cli {
namespace {

using nlohmann::json;

struct Wishes {
    std::vector<std::string> memory, files, names, tcp, unix_paths;
    std::string description, memory_limit, buffers = "1G", file_engine = "auto";
    bool read_only = false, direct = false, as_json = false;
    std::size_t connections = 1024;
};

/// One disk that is served, and how to speak of it.
struct Disk {
    std::unique_ptr<BlockDevice> device;
    std::string name;
    std::string what;  ///< "in memory", "disk.img"
};

void declare(CLI::App& options, Wishes& wishes) {
    auto repeatable = [&](const char* name, std::vector<std::string>& into, const char* what) {
        options.add_option(name, into, what)->allow_extra_args(false);
    };
    repeatable("--memory", wishes.memory, "a disk of this size in memory (repeatable)");
    repeatable("--file", wishes.files, "a file or block device as the disk (repeatable)");
    repeatable("--name", wishes.names, "the export's name; one per disk, files first");
    options.add_option("--description", wishes.description, "a sentence clients can show");
    options.add_flag("--read-only", wishes.read_only, "refuse every change");
    options.add_flag("--direct", wishes.direct, "file past the page cache (O_DIRECT)");
    options.add_option("--memory-limit", wishes.memory_limit,
                       "how much of a memory disk may hold data at a time");
    options.add_option("--file-engine", wishes.file_engine, "how files are reached")
        ->check(CLI::IsMember({"auto", "ring", "threads"}));
    repeatable("--tcp", wishes.tcp, "listen on HOST:PORT (repeatable)");
    repeatable("--unix", wishes.unix_paths, "listen on a Unix socket (repeatable)");
    options.add_option("--connections", wishes.connections, "clients at a time")
        ->check(CLI::Range(1, 65536));
    options.add_option("--buffers", wishes.buffers,
                       "memory for all clients' payload together, where the disk lends none");
    options.add_flag("--json", wishes.as_json, "say what happens as JSON, a line each");
}

std::vector<std::string> names_for(const Wishes& wishes) {
    auto count = wishes.files.size() + wishes.memory.size();
    if (count == 0) throw Misuse{"nothing to export; give --memory SIZE or --file PATH"};
    if (wishes.tcp.empty() && wishes.unix_paths.empty())
        throw Misuse{"nowhere to listen; give --unix PATH or --tcp HOST:PORT"};
    if (!wishes.names.empty() && wishes.names.size() != count)
        throw Misuse{fmt::format("give one --name per disk, or none; disks: {}, names: {}", count,
                                 wishes.names.size())};
    if (!wishes.names.empty()) return wishes.names;
    if (count == 1) return {""};
    std::vector<std::string> names;
    for (const auto& file : wishes.files) names.push_back(std::filesystem::path(file).filename());
    for (std::size_t i = 0; i < wishes.memory.size(); ++i)
        names.push_back(fmt::format("memory{}", i));
    return names;
}

std::size_t buffer_bytes(const Wishes& wishes) {
    auto size = parse_size(wishes.buffers);
    if (!size || *size < nbd::pool_bytes_min)
        throw Refusal{fmt::format("'{}' is not a size of {} or more", wishes.buffers,
                                  show_size(nbd::pool_bytes_min))};
    return *size;
}

std::vector<Disk> open_disks(World& world, const Wishes& wishes) {
    auto names = names_for(wishes);
    std::vector<Disk> disks;
    for (const auto& file : wishes.files) {
        auto disk = world.open_disk({file, wishes.read_only, wishes.direct});
        if (!disk) throw cannot_open(file, disk.error());
        disks.push_back({std::move(*disk), names[disks.size()], file});
    }
    for (const auto& size : wishes.memory)
        disks.push_back(
            {make_memory_disk(size, wishes.memory_limit), names[disks.size()], "in memory"});
    return disks;
}

/// Clients may be started elsewhere, so the lines we print must not depend on where we are.
std::string absolute(const std::string& path) {
    std::error_code failed;
    auto whole = std::filesystem::absolute(path, failed);
    if (failed || path.empty()) throw Misuse{fmt::format("'{}' is not a path to listen on", path)};
    return whole;
}

std::vector<Address> listen(node::NbdServer& server, const Wishes& wishes) {
    std::vector<Address> asked;
    for (const auto& text : wishes.tcp) asked.push_back(tcp_address_of(text));
    for (const auto& path : wishes.unix_paths)
        asked.push_back(Address::unix_socket(absolute(path)));
    std::vector<Address> listening;
    for (const auto& address : asked) {
        auto real = server.listen(address);
        if (!real)
            throw Refusal{fmt::format("cannot listen on {}: {}", show_address(address),
                                      to_text(real.error()))};
        listening.push_back(*real);
    }
    return listening;
}

void announce(const Wishes& wishes, const std::vector<Disk>& disks,
              const std::vector<Address>& listening) {
    auto document = json{{"event", "listening"}, {"exports", json::array()}};
    for (const auto& disk : disks) {
        auto size = disk.device->traits().size;
        auto entry = json{{"name", disk.name},
                          {"size", size},
                          {"backing", disk.what},
                          {"read_only", wishes.read_only},
                          {"uris", json::array()}};
        if (!wishes.as_json)
            fmt::print("{}: {} {}, {}\n", disk.name.empty() ? "the default export" : disk.name,
                       show_size(size), disk.what,
                       wishes.read_only ? "read-only" : "read and write");
        for (const auto& address : listening) {
            auto uri = show_nbd_uri({address, disk.name});
            entry["uris"].push_back(uri);
            if (wishes.as_json) continue;
            fmt::print(
                "    nbdinfo '{0}'\n    nbdcopy '{0}' copy.img\n    qemu-io {1}-f raw '{0}'\n", uri,
                wishes.read_only ? "-r " : "");
        }
        document["exports"].push_back(entry);
    }
    if (wishes.as_json)
        fmt::print("{}\n", show_json(document));
    else
        fmt::print("Paste one of these in another terminal. Ctrl-C here stops the export.\n");
    std::fflush(stdout);
}

void tell(const Wishes& wishes, const node::NbdServer::Event& event) {
    using Kind = node::NbdServer::Event::Kind;
    constexpr const char* words[] = {"connected", "left", "refused"};
    auto kind = words[static_cast<std::size_t>(event.kind)];
    if (wishes.as_json) {
        auto line = json{{"event", kind}, {"peer", event.peer}};
        if (event.kind == Kind::left) line["export"] = event.export_name;
        if (event.fault) line["fault"] = to_text(event.fault->code);
        print_news(show_json(line));
    } else if (event.kind == Kind::refused) {
        print_news(fmt::format("{}: turned away, {} clients are the limit",
                               show_foreign(event.peer), wishes.connections));
    } else if (event.kind == Kind::left && event.fault && event.fault->code != Code::disconnected) {
        print_news(
            fmt::format("{}: dropped, {}", show_foreign(event.peer), to_text(event.fault->code)));
    }
}

void sum_up(const Wishes& wishes, const nbd::Statistics& sums) {
    if (wishes.as_json)
        fmt::print("{}\n", show_json({{"event", "stopped"},
                                      {"connections", sums.connections},
                                      {"requests", sums.requests},
                                      {"refused", sums.refused},
                                      {"bytes_read", sums.bytes_read},
                                      {"bytes_written", sums.bytes_written}}));
    else
        fmt::print("Stopped after {} connections, {} requests ({} refused): {} read, {} written.\n",
                   sums.connections, sums.requests, sums.refused, show_size(sums.bytes_read),
                   show_size(sums.bytes_written));
}

void serve(const Wishes& wishes) {
    LinuxWorldOptions options;
    options.files = file_engine_of(wishes.file_engine);
    linux::raise_descriptor_limit();
    auto world = make_world(options);
    auto disks = open_disks(*world, wishes);
    node::NbdServer server(
        *world, {.connections_max = wishes.connections, .buffer_bytes = buffer_bytes(wishes)});
    for (const auto& disk : disks)
        if (auto added =
                server.add({disk.name, wishes.description, disk.device.get(), wishes.read_only});
            !added)
            throw Refusal{
                added.error().code == Code::out_of_range
                    ? fmt::format("a name and a description may have {} bytes; there are {} and {}",
                                  wire::nbd::string_max, disk.name.size(),
                                  wishes.description.size())
                : added.error().code == Code::exhausted
                    ? fmt::format("{} exports are the limit", nbd::exports_max)
                    : fmt::format("the name '{}' is given twice", disk.name)};
    auto listening = listen(server, wishes);
    server.on_event([&](const auto& event) { tell(wishes, event); });
    serve_until_stopped(*world, server, [&] { announce(wishes, disks, listening); });
    sum_up(wishes, server.statistics());
}

}  // namespace

int export_nbd(const Command& self, const Arguments& arguments) {
    CLI::App options;
    Wishes wishes;
    declare(options, wishes);
    if (auto leave = parse(self, options, arguments)) return *leave;
    serve(wishes);
    return done;
}

}  // namespace weft::cli
