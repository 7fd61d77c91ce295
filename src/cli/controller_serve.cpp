// SPDX-License-Identifier: Apache-2.0
// `weft controller serve`: be the controller of an array until told to stop.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error_text.hpp"
#include "cli/command.hpp"
#include "cli/controller_desk.hpp"
#include "cli/exporting.hpp"
#include "cli/text.hpp"
#include "linux/descriptor_limit.hpp"
#include "store/sqlite_store.hpp"

namespace weft::cli {
namespace {

using nlohmann::json;

struct Wishes {
    std::string state, listen, reach, key, data_path = "third-party";
    bool as_json = false;
};

std::string sentence_of(const node::ControllerEvent& event) {
    std::string about = event.volume;
    if (!event.box.empty()) about += (about.empty() ? "" : ", ") + event.box;
    return (about.empty() ? "" : show_foreign(about) + ": ") + show_foreign(event.what);
}

std::unique_ptr<store::SqliteStore> open_store(LinuxWorld& world, const std::string& path) {
    // SQLite has names for databases that are in no file: whatever is kept there is not kept.
    if (path.empty() || path.starts_with(':') || path.starts_with("file:"))
        throw Misuse{fmt::format("'{}' is not the name of a file", show_foreign(path))};
    auto opened = store::SqliteStore::open(world, path);
    if (opened) return std::move(*opened);
    if (opened.error().code == Code::malformed)
        throw Refusal{fmt::format("{}: it is no state of a controller", show_foreign(path))};
    throw Refusal{fmt::format("{}: it cannot be opened, or the disk failed", show_foreign(path))};
}

void announce(const Wishes& wishes, const Address& listening, node::ControllerNode& controller) {
    const auto here = show_address(listening);
    if (wishes.as_json)
        return print_news(show_json({{"event", "listening"},
                                     {"address", here},
                                     {"epoch", static_cast<std::uint64_t>(controller.epoch())},
                                     {"cluster", to_digits(controller.cluster())}}));
    fmt::print(
        "The controller listens on {0}, with {1} boxes and {2} volumes.\n"
        "    weft box add NAME HOST:PORT --controller {0}\n"
        "Ctrl-C here stops it.\n",
        here, controller.boxes().size(), controller.volumes().size());
    std::fflush(stdout);
}

/// The controller as serve_until_stopped() ends it: not for ever, whatever hosts still wait for.
class Ending {
public:
    Ending(LinuxWorld& world, node::ControllerNode& controller)
        : world_(world),
          controller_(controller),
          timer_(world.make_timer([this] { late_ = true; })) {}
    void drain() { controller_.drain(); }
    void stop() {
        controller_.stop();
        timer_->set(world_.now() + std::chrono::seconds(5));
    }
    bool quiet() const { return late_ || controller_.quiet(); }

private:
    LinuxWorld& world_;
    node::ControllerNode& controller_;
    std::unique_ptr<Timer> timer_;
    bool late_ = false;
};

void serve(const Wishes& wishes) {
    linux::raise_descriptor_limit();
    auto world = make_world({});
    auto store = open_store(*world, wishes.state);
    std::optional<ManagementServer> management;
    node::ControllerNode::Options options;
    options.listen = tcp_address_of(wishes.listen);
    if (!wishes.reach.empty())
        options.reach = parse_tcp(wishes.reach).value_or(Address::tcp(wishes.reach, 0));
    options.key = read_key(wishes.key);
    options.in_band = wishes.data_path == "inband";
    options.server.json = [&](std::unique_ptr<Stream> stream, ConstBuffer read_already) {
        if (management) management->take(std::move(stream), read_already);
    };
    node::ControllerNode controller(*world, *store, options);
    management.emplace(*world, options.key, [&](const json& request, auto reply) {
        answer_management(*world, controller, request, reply);
    });
    std::optional<Result<Address>> started;
    controller.start([&](Result<Address> outcome) { started = outcome; });
    world->run_until([&] { return started.has_value(); });
    if (!*started) {
        controller.stop();
        world->run_until([&] { return controller.quiet() && store->quiet(); });
        throw Refusal{fmt::format("the controller cannot start on {}: {}",
                                  show_foreign(wishes.listen), to_text(started->error()))};
    }
    auto tell = [&](const node::ControllerEvent& event) {
        print_news(wishes.as_json ? show_json(event_json(*world, event)) : sentence_of(event));
    };
    Ending ending(*world, controller);
    serve_until_stopped(*world, ending, [&] {
        announce(wishes, **started, controller);
        for (const auto& event : controller.events()) tell(event);  // of before
        controller.on_event(tell);
    });
    management.reset();
    world->run_until([&] { return store->quiet(); });
    if (controller.quiet()) return;
    // Requests that wait for boxes that are away: whoever asked will ask again. What is kept is
    // kept, and nothing else of ours outlives us.
    print_news("stopped, with requests of hosts that nobody could answer");
    std::_Exit(done);
}

}  // namespace

int controller_serve(const Command& self, const Arguments& arguments) {
    CLI::App options;
    Wishes wishes;
    options.add_option("--state", wishes.state, "the file that has what must be remembered")
        ->required();
    options.add_option("--listen", wishes.listen, "HOST:PORT, for hosts, boxes and management")
        ->required();
    options.add_option("--reach", wishes.reach,
                       "where boxes reach this machine, if not where they see it come from");
    options.add_option(
        "--key", wishes.key,
        "a file whose contents boxes, and those who manage from elsewhere, must know");
    options
        .add_option("--data-path", wishes.data_path,
                    "third-party: data goes between hosts and boxes; inband: by way of here")
        ->check(CLI::IsMember({"third-party", "inband"}));
    options.add_flag("--json", wishes.as_json, "say what happens as JSON, a line each");
    if (auto leave = parse(self, options, arguments)) return *leave;
    serve(wishes);
    return done;
}

}  // namespace weft::cli
