// SPDX-License-Identifier: Apache-2.0
// `weft host attach`: a volume of an array for the programs of this machine, by NBD and iSCSI.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error_text.hpp"
#include "cli/command.hpp"
#include "cli/disk_access.hpp"
#include "cli/exporting.hpp"
#include "cli/text.hpp"
#include "linux/descriptor_limit.hpp"
#include "node/host_node.hpp"
#include "node/iscsi_server.hpp"
#include "node/nbd_server.hpp"
#include "wire/array_names.hpp"

namespace weft::cli {
namespace {

using nlohmann::json;

struct Wishes {
    std::string volume, controller, name, listen, reach, transport = "iser";
    std::vector<std::string> nbd_paths, nbd, iscsi;
    bool as_json = false;
};

void declare(CLI::App& options, Wishes& wishes) {
    options.add_option("VOLUME", wishes.volume, "the volume's name")->required();
    options
        .add_option("--controller", wishes.controller,
                    "HOST:PORT of the array's controller; of several, with commas between them")
        ->required();
    auto repeatable = [&](const char* name, std::vector<std::string>& into, const char* what) {
        options.add_option(name, into, what)->allow_extra_args(false);
    };
    repeatable("--nbd-unix", wishes.nbd_paths, "serve NBD on a Unix socket (repeatable)");
    repeatable("--nbd", wishes.nbd, "serve NBD on HOST:PORT (repeatable)");
    repeatable("--iscsi", wishes.iscsi, "serve iSCSI on HOST:PORT (repeatable)");
    options.add_option("--name", wishes.name, "of this host, for people; its own if not given");
    options.add_option("--listen", wishes.listen,
                       "HOST:PORT where boxes connect to; the address that leads to the "
                       "controller and any port if not given");
    options.add_option("--reach", wishes.reach,
                       "the address boxes are told, where it is another than --listen");
    options.add_option("--transport", wishes.transport, "how commands go to the controller")
        ->check(CLI::IsMember({"iser", "tcp"}));
    options.add_flag("--json", wishes.as_json, "say what happens as JSON, a line each");
}

std::string own_name() {
    std::array<char, 65> name{};
    if (::gethostname(name.data(), name.size() - 1) < 0) return "host";
    std::string text = name.data();
    for (auto& letter : text)
        letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    return wire::is_array_name(text) ? text : "host";
}

node::HostNode::Options host_options(const Wishes& wishes) {
    if (wishes.nbd_paths.empty() && wishes.nbd.empty() && wishes.iscsi.empty())
        throw Misuse{"nowhere to serve it; give --nbd-unix PATH, --nbd or --iscsi HOST:PORT"};
    for (const auto& name : {wishes.volume, wishes.name})
        if (!name.empty() && !wire::is_array_name(name))
            throw Misuse{fmt::format(
                "'{}' is no name: it has small letters, digits, '-' and '.', 63 at most",
                show_foreign(name))};
    node::HostNode::Options options;
    options.others = tcp_addresses_of(wishes.controller);
    options.controller = options.others.front();
    options.others.erase(options.others.begin());
    options.volume = wishes.volume;
    options.name = wishes.name.empty() ? own_name() : wishes.name;
    options.over_rdma = wishes.transport == "iser";
    if (!wishes.listen.empty()) options.listen = tcp_address_of(wishes.listen);
    options.reach = wishes.reach;
    return options;
}

/// Both servers as one.
class Servers {
public:
    Servers(World& world, node::HostNode& host, const std::string& volume)
        : host_(host),
          nbd_(world, {}),
          iscsi_(world, {}),
          target_(wire::volume_target_name(volume)) {
        auto& device = host.device();
        // Clients that name no export mean the only one there is.
        for (const auto& name : {std::string(), volume})
            must(nbd_.add({name, "volume " + volume + " of an array", &device, false}));
        scsi::UnitOptions unit;
        unit.block_bytes = device.traits().minimum_block;
        unit.product = "volume";
        // As at the controller: what two volumes are called may be the same.
        unit.seed = to_digits(host_.volume());
        must(iscsi_.add_target(target_, {}));
        must(iscsi_.add_unit(target_, 0, device, unit));
    }

    /// Where it listens then, as URLs.
    std::vector<std::string> listen(const Wishes& wishes) {
        std::vector<std::string> urls;
        auto add_nbd = [&](const Address& address) {
            urls.push_back(show_nbd_uri({listen_on(nbd_, address), ""}));
        };
        for (const auto& path : wishes.nbd_paths) {
            if (path.empty()) throw Misuse{"'' is not a path to listen on"};
            add_nbd(Address::unix_socket(std::filesystem::absolute(path)));
        }
        for (const auto& text : wishes.nbd) add_nbd(tcp_address_of(text));
        for (const auto& text : wishes.iscsi)
            urls.push_back(fmt::format(
                "iscsi://{}/{}/0", show_address(listen_on(iscsi_, tcp_address_of(text))), target_));
        return urls;
    }
    void drain() {
        nbd_.drain();
        iscsi_.drain();
        // Without a controller nobody will answer, however long clients are given.
        if (!host_.is_attached()) host_.break_off();
    }
    void stop() {
        nbd_.stop();
        iscsi_.stop();
        if (!host_.device().idle()) host_.break_off();  // nobody has answered them
    }
    bool quiet() const { return nbd_.quiet() && iscsi_.quiet(); }

private:
    static void must(const Result<void>& done) {
        if (!done) throw Refusal{"the volume cannot be served: " + to_text(done.error())};
    }
    static Address listen_on(auto& server, const Address& address) {
        auto real = server.listen(address);
        if (!real)
            throw Refusal{fmt::format("cannot listen on {}: {}", show_address(address),
                                      to_text(real.error()))};
        return *real;
    }

    node::HostNode& host_;
    node::NbdServer nbd_;
    node::IscsiServer iscsi_;
    std::string target_;
};

void announce(const Wishes& wishes, std::uint64_t size, const std::vector<std::string>& urls) {
    if (wishes.as_json) {
        fmt::print("{}\n", show_json({{"event", "listening"},
                                      {"volume", wishes.volume},
                                      {"size", size},
                                      {"uris", urls}}));
    } else {
        fmt::print("{}: {} attached, read and write\n", wishes.volume, show_size(size));
        for (const auto& url : urls) {
            const bool nbd = url.starts_with("nbd");
            fmt::print("    {0} '{1}'\n    qemu-io -f raw '{1}'\n", nbd ? "nbdinfo" : "iscsi-inq",
                       url);
        }
        fmt::print("Paste one of these in another terminal. Ctrl-C here detaches.\n");
    }
    std::fflush(stdout);
}

void take_leave(LinuxWorld& world, node::HostNode& host) {
    bool patient = true;
    auto patience = world.make_timer([&] { patient = false; });
    patience->set(world.now() + std::chrono::seconds(5));
    host.leave();
    world.run_until([&] { return host.finished() || !patient; });
}

void attach(const Wishes& wishes) {
    const auto options = host_options(wishes);
    linux::raise_descriptor_limit();
    auto world = make_world({});
    std::optional<std::optional<std::string>> opened;
    node::HostNode host(*world, options,
                        {.opened = [&](std::optional<std::string> why) { opened = std::move(why); },
                         .news =
                             [&](const std::string& what) {
                                 print_news(wishes.as_json
                                                ? show_json({{"event", "news"}, {"what", what}})
                                                : show_foreign(what));
                             }});
    bool interrupted_early = false;
    hear_signals(*world, [&] { interrupted_early = true; });
    world->run_until([&] { return opened.has_value() || interrupted_early; });
    if (interrupted_early || *opened) {
        take_leave(*world, host);
        throw interrupted_early ? Refusal{"interrupted", interrupted}
                                : Refusal{show_foreign(**opened)};
    }
    {
        Servers servers(*world, host, wishes.volume);
        std::vector<std::string> urls;
        try {
            urls = servers.listen(wishes);
        } catch (...) {
            servers.stop();
            world->run_until([&] { return servers.quiet(); });
            take_leave(*world, host);
            throw;
        }
        serve_until_stopped(*world, servers,
                            [&] { announce(wishes, host.device().traits().size, urls); });
    }
    take_leave(*world, host);
    fmt::print("{}\n", wishes.as_json ? show_json({{"event", "stopped"}})
                                      : fmt::format("Detached from {}.", wishes.volume));
}

}  // namespace

int host_attach(const Command& self, const Arguments& arguments) {
    CLI::App options;
    Wishes wishes;
    declare(options, wishes);
    if (auto leave = parse(self, options, arguments)) return *leave;
    attach(wishes);
    return done;
}

}  // namespace weft::cli
