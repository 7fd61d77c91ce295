// SPDX-License-Identifier: Apache-2.0
// `weft controller serve`: be the controller of an array until told to stop.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/error_text.hpp"
#include "cli/array_options.hpp"
#include "cli/command.hpp"
#include "cli/controller_desk.hpp"
#include "cli/exporting.hpp"
#include "cli/promises.hpp"
#include "cli/text.hpp"
#include "linux/descriptor_limit.hpp"
#include "store/etcd_store.hpp"
#include "store/sqlite_store.hpp"

namespace weft::cli {
namespace {

using nlohmann::json;

struct Wishes {
    std::string state, etcd, etcd_prefix = "weft/", listen, reach, key, data_path = "third-party";
    std::vector<std::string> also_listen;
    double lease_seconds = 5;
    std::size_t host_connections = host_connections_usual;
    PromiseWishes promises;
    bool standby = false;
    bool as_json = false;
};

/// Why it serves no longer.
enum class Ended : std::uint8_t { told_to, deposed, stepped_down };

std::string sentence_of(const node::ControllerEvent& event) {
    std::string about = event.volume;
    if (!event.box.empty()) about += (about.empty() ? "" : ", ") + event.box;
    return (about.empty() ? "" : show_foreign(about) + ": ") + show_foreign(event.what);
}

/// The store that was asked for, whichever it is.
class Store {
public:
    Store(LinuxWorld& world, const Wishes& wishes) {
        if (!wishes.etcd.empty()) {
            // Two members may be silent before the third is asked, and all of it within the lease.
            constexpr Duration longest = std::chrono::seconds(2);
            const Duration tenth{std::lround(wishes.lease_seconds * 1e8)};
            etcd_ = std::make_unique<store::EtcdStore>(
                world, store::EtcdStore::Options{.members = tcp_addresses_of(wishes.etcd),
                                                 .prefix = wishes.etcd_prefix,
                                                 .patience = std::min(tenth, longest)});
            return;
        }
        const auto path = show_foreign(wishes.state);
        // SQLite has names for databases that are in no file: whatever is kept there is not kept.
        const auto& name = wishes.state;
        if (name.empty() || name.starts_with(':') || name.starts_with("file:"))
            throw Misuse{fmt::format("'{}' is not the name of a file", path)};
        auto opened = store::SqliteStore::open(world, name);
        if (!opened && opened.error().code == Code::malformed)
            throw Refusal{fmt::format("{}: it is no state of a controller, or damaged", path)};
        if (!opened && opened.error().code == Code::unsupported)
            throw Refusal{fmt::format("{}: it is of a newer version of weft", path)};
        if (!opened)
            throw Refusal{fmt::format("{}: it cannot be opened, or the disk failed", path)};
        file_ = std::move(*opened);
    }
    raid::MetadataStore& operator*() {
        if (etcd_) return *etcd_;
        return *file_;
    }
    /// What it is called by people.
    static std::string name(const Wishes& wishes) {
        return show_foreign(wishes.etcd.empty() ? wishes.state
                                                : wishes.etcd + "/" + wishes.etcd_prefix);
    }
    bool quiet() const { return etcd_ ? etcd_->quiet() : file_->quiet(); }
    /// What could not be done so far will not be.
    void give_up() {
        if (etcd_) etcd_->give_up();
    }

private:
    std::unique_ptr<store::SqliteStore> file_;
    std::unique_ptr<store::EtcdStore> etcd_;
};

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

node::ControllerNode::Options node_options(const Wishes& wishes, Ended before) {
    node::ControllerNode::Options options;
    options.listen = tcp_address_of(wishes.listen);
    for (const auto& each : wishes.also_listen) options.also_listen.push_back(tcp_address_of(each));
    if (!wishes.reach.empty())
        options.reach = parse_tcp(wishes.reach).value_or(Address::tcp(wishes.reach, 0));
    options.key = read_key(wishes.key);
    options.server.connections_per_host_max = wishes.host_connections;
    wishes.promises.apply(options);
    options.in_band = wishes.data_path == "inband";
    // All a box has: the more writes are under way, the more of them share a wait for its disk.
    options.volume.windows = node::BoxWindows::Options{}.windows;
    options.office.lease = std::chrono::milliseconds(std::lround(wishes.lease_seconds * 1000));
    options.office.standby = wishes.standby;
    // Who has stepped down lets the others go first.
    if (before == Ended::stepped_down) options.office.modesty = options.office.lease;
    return options;
}

/// Until it is in office: throws a Refusal if it will not be.
Address take_office(LinuxWorld& world, Store& store, node::ControllerNode& controller,
                    const Wishes& wishes) {
    std::optional<Result<Address>> started;
    bool interrupted_early = false;
    controller.on_waiting([&](const std::string& sentence) {
        print_news(wishes.as_json ? show_json({{"event", "waiting"},
                                               {"what", sentence},
                                               {"address", show_address(controller.address())}})
                                  : show_foreign(sentence));
    });
    hear_signals(world, [&] { interrupted_early = true; });
    controller.start([&](Result<Address> outcome) { started = outcome; });
    world.run_until([&] { return started.has_value() || interrupted_early; });
    controller.on_waiting({});
    if (!interrupted_early && *started) return **started;
    const auto rival = controller.office().holder;
    controller.stop();
    store.give_up();
    world.run_until([&] { return controller.quiet() && store.quiet(); });
    if (interrupted_early) throw Refusal{"interrupted", interrupted};
    if (started->error().code == Code::access_denied)
        throw Refusal{
            fmt::format("another controller is in office, {}; --standby waits until it is not",
                        show_foreign(rival))};
    const bool damaged = started->error().code == Code::malformed;
    if (const auto& record = controller.unreadable_record(); !record.empty())
        throw Refusal{fmt::format(
            "{}: its record '{}' {}; take the state from a copy, or begin a new one and add the "
            "boxes with --join",
            Store::name(wishes), show_foreign(record),
            damaged ? "is damaged, or of another version of weft"
                    : "is of no use: " + to_text(started->error()))};
    // Only what is stored has a form that can be broken: an address has been listened on by then.
    if (damaged)
        throw Refusal{fmt::format("{}: it is damaged, and cannot be read", Store::name(wishes))};
    throw Refusal{fmt::format("the controller cannot start on {}: {}", show_foreign(wishes.listen),
                              to_text(started->error()))};
}

Ended serve(Wishes& wishes, Ended before) {
    linux::raise_descriptor_limit();
    auto world = make_world({});
    Store store(*world, wishes);
    std::optional<ManagementServer> management;
    auto options = node_options(wishes, before);
    options.server.json = [&](std::unique_ptr<Stream> stream, ConstBuffer read_already) {
        if (management) management->take(std::move(stream), read_already);
    };
    node::ControllerNode controller(*world, *store, options);
    auto ended = Ended::told_to;
    auto end = [&](Ended why) {
        ended = why;
        world->stop();
    };
    management.emplace(*world, options.key, [&](const json& request, auto reply) {
        answer_management(
            *world, controller, [&] { end(Ended::stepped_down); }, request, reply);
    });
    const auto address = take_office(*world, store, controller, wishes);
    wishes.listen = show_address(address);  // its hosts know it by that, the next time too
    auto tell = [&](const node::ControllerEvent& event) {
        print_news(wishes.as_json ? show_json(event_json(event)) : sentence_of(event));
    };
    controller.on_deposed([&] { end(Ended::deposed); });
    Ending ending(*world, controller);
    serve_until_stopped(*world, ending, [&] {
        announce(wishes, address, controller);
        const auto& book = controller.events();
        for (const auto& event : book.events())
            if (event.number >= book.first_own()) tell(event);  // of before we could say so
        controller.on_event(tell);
        if (controller.deposed()) end(Ended::deposed);
    });
    management.reset();
    store.give_up();
    world->run_until([&] { return store.quiet(); });
    if (controller.quiet()) return ended;
    // Requests that wait for boxes that are away: whoever asked will ask again. What is kept is
    // kept, and nothing else of ours outlives us.
    print_news("stopped, with requests of hosts that nobody could answer");
    std::_Exit(ended == Ended::deposed ? refused : done);
}

}  // namespace

int controller_serve(const Command& self, const Arguments& arguments) {
    CLI::App options;
    Wishes wishes;
    auto* file =
        options.add_option("--state", wishes.state, "the file that has what must be remembered");
    options
        .add_option("--etcd", wishes.etcd,
                    "HOST:PORT of the members of an etcd that has it instead, with commas")
        ->excludes(file);
    options.add_option("--etcd-prefix", wishes.etcd_prefix,
                       "of all its keys there: arrays that share an etcd differ in it");
    std::vector<std::string> listen;
    options
        .add_option("--listen", listen,
                    "HOST:PORT, for hosts, boxes and management; again for every further network")
        ->required();
    options.add_flag("--standby", wishes.standby,
                     "if another controller is in office: wait until it is not, and take over");
    options
        .add_option("--lease", wishes.lease_seconds,
                    "seconds after which a standby takes over from one that is not heard of")
        ->check([](const std::string& text) {
            const double seconds = std::strtod(text.c_str(), nullptr);
            return seconds >= 0.5 && seconds <= 600
                       ? ""
                       : "'" + text + "' is no lease of 0.5 to 600 seconds";
        });
    options.add_option("--reach", wishes.reach,
                       "where boxes reach this machine, if not where they see it come from");
    options.add_option("--key", wishes.key,
                       "a file whose contents boxes, and those who manage the array, must know");
    options
        .add_option("--data-path", wishes.data_path,
                    "third-party: data goes between hosts and boxes; inband: by way of here")
        ->check(CLI::IsMember({"third-party", "inband"}));
    declare_host_connections(options, wishes.host_connections);
    wishes.promises.declare(options);
    options.add_flag("--json", wishes.as_json, "say what happens as JSON, a line each");
    if (auto leave = parse(self, options, arguments)) return *leave;
    wishes.listen = listen.front();
    wishes.also_listen.assign(listen.begin() + 1, listen.end());
    if (wishes.state.empty() && wishes.etcd.empty())
        throw Misuse{"nowhere to remember anything; give --state FILE or --etcd HOST:PORT,…"};
    (void)node_options(wishes, Ended::told_to);  // a Misuse comes before there is a file
    auto ended = serve(wishes, Ended::told_to);
    // A standby that was in office is one again when it is not.
    while (ended != Ended::told_to && wishes.standby) ended = serve(wishes, ended);
    return ended == Ended::deposed ? refused : done;
}

}  // namespace weft::cli
