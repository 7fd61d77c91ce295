// SPDX-License-Identifier: Apache-2.0
#include "sim/array_machines.hpp"

#include <algorithm>

namespace weft::sim {

using namespace std::chrono_literals;

namespace {

constexpr std::uint16_t port = 3260, host_port = 7500;
constexpr std::uint64_t box_size = 12u << 20;
constexpr std::uint16_t windows = 4;
constexpr std::uint32_t window_bytes = 256u << 10;
constexpr const char* volume_name = "photos";
constexpr Duration plenty = 300s;  // of virtual time, for what must happen at last

}  // namespace

ArrayMachines::ArrayMachines(World& world, Complaints& complaints, const Options& options)
    : world_(world),
      complaints_(complaints),
      options_(options),
      heart_(world.clockwork().schedule, "heart", 0) {
    boxes_.resize(options.boxes);
    for (unsigned i = 0; i < options.boxes; ++i) {
        boxes_[i].name = "box" + std::to_string(i);
        boxes_[i].machine = "10.0.0." + std::to_string(10 + i);
    }
    controllers_.resize(controllers);
    for (unsigned i = 0; i < controllers; ++i)
        controllers_[i].machine = "10.0.0." + std::to_string(1 + i);
    hosts_.resize(options.hosts);
    for (unsigned i = 0; i < options.hosts; ++i)
        hosts_[i].machine = "10.0.0." + std::to_string(50 + i);
    beat();
}

ArrayMachines::~ArrayMachines() {
    for (unsigned i = 0; i < hosts_.size(); ++i) cut_host(i);
    for (unsigned i = 0; i < controllers; ++i) cut_controller(i);
    for (unsigned i = 0; i < boxes_.size(); ++i) cut_box(i);
    const bool all = run_until([&] { return remains_.empty(); }, plenty);
    // Taken apart amid its work a node would call what is no more: so it is left, to be found by
    // whoever looks for leaks.
    if (all) return;
    complaints_.add("S14: a node that was told to stop does not become quiet");
    thread_local auto& left_behind = *new std::deque<Remains>;
    for (auto& each : remains_) left_behind.push_back(std::move(each));
}

bool ArrayMachines::set_up() {
    for (unsigned i = 0; i < boxes_.size(); ++i) start_box(i);
    start_controller(0);
    const bool started = run_until(
        [&] {
            return in_office() != nullptr &&
                   std::ranges::all_of(boxes_, [](const Box& box) { return box.listens; });
        },
        plenty);
    if (!started) return complaints_.add("L2: the nodes of an array do not start"), false;
    node::ControllerNode::VolumeWishes wishes{.name = volume_name,
                                              .level = options_.level,
                                              .boxes = {},
                                              .chunk_bytes = options_.chunk_bytes,
                                              .size = options_.size,
                                              .consistency = wire::ArrayConsistency::journal};
    for (const Box& box : boxes_) {
        wishes.boxes.push_back(box.name);
        const bool added = told_well("a box cannot be added", [&](auto told) {
            in_office()->add_box(box.name, Address::tcp(box.machine, port), false, std::move(told));
        });
        if (!added) return false;
    }
    if (!told_well("a volume cannot be made",
                   [&](auto told) { in_office()->create_volume(wishes, std::move(told)); }))
        return false;
    start_controller(1);
    for (unsigned i = 0; i < hosts_.size(); ++i) start_host(i);
    const bool ready = run_until(
        [&] {
            bool all = status().state == raid::VolumeState::healthy;
            for (unsigned i = 0; i < hosts_.size(); ++i) all = all && disk_of(i) != nullptr;
            return all;
        },
        plenty);
    if (!ready) complaints_.add("L2: a new volume does not become healthy, or no host attaches");
    return ready;
}

bool ArrayMachines::told_well(const std::string& what,
                              const std::function<void(node::ControllerNode::Told)>& ask) {
    std::optional<std::optional<std::string>> told;
    ask([&](std::optional<std::string> refusal) { told = std::move(refusal); });
    if (run_until([&] { return told.has_value(); }, plenty) && !*told) return true;
    complaints_.add("L2: " + what + ": " + (told ? told->value_or("") : "it never said"));
    return false;
}

// Time.

void ArrayMachines::step() {
    ++steps_;
    (void)world_.step();
}

/// Somebody looks after the machines, also when nothing is under way on any of them.
void ArrayMachines::beat() {
    tend();
    heart_.set(world_.now() + 10ms, [this] { beat(); });
}

/// What nobody may do from inside a node.
void ArrayMachines::tend() {
    for (auto each = remains_.begin(); each != remains_.end();) {
        if (!each->is_quiet()) {
            ++each;
            continue;
        }
        each->take_apart();
        world_.network().power_on(each->machine);
        each = remains_.erase(each);
    }
    for (Box& box : boxes_) {
        if (!box.node || !*box.told || box.listens) continue;
        if (const auto refusal = **box.told) {
            complaints_.add("S1: " + box.name + " does not start: " + *refusal);
            box.told = no_word();
            continue;
        }
        box.listens = box.node->listen(Address::tcp(box.machine, port)).has_value();
    }
    for (unsigned i = 0; i < hosts_.size(); ++i) {
        auto& host = hosts_[i];
        if (!host.node || !*host.opened || !**host.opened) continue;
        say("host " + std::to_string(i) + " is not attached: " + ***host.opened);
        cut_host(i);  // and is started again by whoever runs it
    }
}

bool ArrayMachines::has_remains(const std::string& machine) const {
    return std::ranges::any_of(remains_,
                               [&](const Remains& each) { return each.machine == machine; });
}

void ArrayMachines::bury(std::string machine, std::function<bool()> is_quiet,
                         std::function<void()> take_apart) {
    remains_.push_back({std::move(machine), std::move(is_quiet), std::move(take_apart)});
}

// Boxes.

void ArrayMachines::start_box(unsigned i) {
    Box& box = boxes_[i];
    if (box.node || has_remains(box.machine)) return;
    box.node = std::make_unique<node::BoxNode>(
        world_.host(box.machine),
        node::BoxNode::Options{.name = box.name,
                               .folder = "/" + box.name,
                               .size = box_size,
                               .windows = {.windows = windows, .bytes = window_bytes}});
    box.listens = false;
    box.told = no_word();
    box.node->start([told = box.told](std::optional<std::string> refusal) { *told = refusal; });
}

void ArrayMachines::cut_box(unsigned i) {
    Box& box = boxes_[i];
    if (!box.node) return;
    world_.network().go_dark(box.machine);
    for (const auto& [path, disk] : world_.disks())
        if (path.starts_with("/" + box.name + "/")) disk->power_cut(AfterPowerCut::requests_fail);
    std::shared_ptr<node::BoxNode> rest(std::move(box.node));
    rest->stop();
    bury(
        box.machine, [rest] { return rest->quiet(); }, [rest]() mutable { rest.reset(); });
}

// Controllers.

Address ArrayMachines::address_of(unsigned controller) const {
    return Address::tcp(controllers_[controller].machine, port);
}

void ArrayMachines::start_controller(unsigned i) {
    auto& controller = controllers_[i];
    if (controller.node || has_remains(controller.machine)) return;
    auto& host = world_.host(controller.machine);
    controller.store = std::make_unique<node::MemoryMetadataStore>(host, records_);
    node::ControllerNode::Options options;
    options.listen = address_of(i);
    options.volume.plan = options_.plan;
    options.volume.windows = windows;
    options.volume.window_bytes = window_bytes;
    options.volume.rebuild_save_stripes = 3;
    options.volume.request_patience = std::chrono::hours(24);  // boxes do return
    options.office.standby = true;
    controller.node = std::make_unique<node::ControllerNode>(host, *controller.store, options);
    controller.node->on_event([this, i](const node::ControllerEvent& event) {
        say("controller " + std::to_string(i) + ": " + event.what);
    });
    controller.node->start([](Result<Address>) {});
}

void ArrayMachines::cut_controller(unsigned i) {
    auto& controller = controllers_[i];
    if (!controller.node) return;
    world_.network().go_dark(controller.machine);
    controller.store->set_reachable(false);
    std::shared_ptr<node::MemoryMetadataStore> store(std::move(controller.store));
    std::shared_ptr<node::ControllerNode> rest(std::move(controller.node));
    rest->on_event([](const node::ControllerEvent&) {});
    rest->stop();
    bury(
        controller.machine, [rest] { return rest->quiet(); },
        [store, rest]() mutable {
            rest.reset();
            store.reset();
        });
}

void ArrayMachines::step_down() {
    for (auto& controller : controllers_) {
        if (!controller.node || !controller.node->in_office()) continue;
        std::shared_ptr<node::MemoryMetadataStore> store(std::move(controller.store));
        std::shared_ptr<node::ControllerNode> rest(std::move(controller.node));
        rest->drain();
        rest->stop();
        bury(
            controller.machine, [rest] { return rest->quiet(); },
            [store, rest]() mutable {
                rest.reset();
                store.reset();
            });
    }
}

void ArrayMachines::reach_store(unsigned i, bool reaches) {
    if (controllers_[i].store) controllers_[i].store->set_reachable(reaches);
}

node::ControllerNode* ArrayMachines::in_office() {
    for (auto& controller : controllers_)
        if (controller.node && controller.node->in_office()) return controller.node.get();
    return nullptr;
}

raid::VolumeStatus ArrayMachines::status() {
    if (const auto* controller = in_office())
        for (const auto& volume : controller->volumes())
            if (volume.name == volume_name) return volume.status;
    return {};
}

std::optional<wire::ArrayVolume> ArrayMachines::volume() const {
    for (const auto& [name, record] : records_.records)
        if (auto found = raid::parse_record<wire::ArrayVolume>(record)) return *found;
    return std::nullopt;
}

void ArrayMachines::re_add_failed() {
    for (const auto& member : status().members)
        if (member.failed)
            in_office()->re_add_member(volume_name, std::to_string(member.place),
                                       [](const std::optional<std::string>&) {});
}

bool ArrayMachines::scrub() {
    return told_well("no scrub can begin", [&](auto told) {
        in_office()->scrub(volume_name, false, false, std::move(told));
    });
}

// Hosts.

void ArrayMachines::start_host(unsigned i) {
    auto& host = hosts_[i];
    if (host.node || has_remains(host.machine)) return;
    node::HostNode::Options options;
    options.controller = address_of(0);
    options.others = {address_of(1)};
    options.volume = volume_name;
    options.name = host.machine;
    options.over_rdma = options_.hosts_over_rdma;
    options.listen = Address::tcp(host.machine, host_port);
    options.disk.patience = std::chrono::hours(1);
    host.opened = no_word();
    host.node = std::make_unique<node::HostNode>(
        world_.host(host.machine), options,
        node::HostNode::Holder{
            .opened = [word = host.opened](std::optional<std::string> why) { *word = why; },
            .news =
                [this, i](const std::string& what) {
                    say("host " + std::to_string(i) + ": " + what);
                }});
}

void ArrayMachines::cut_host(unsigned i) {
    auto& host = hosts_[i];
    if (!host.node) return;
    world_.network().go_dark(host.machine);
    std::shared_ptr<node::HostNode> rest(std::move(host.node));
    rest->break_off();
    rest->leave();
    bury(
        host.machine, [rest] { return rest->finished(); }, [rest]() mutable { rest.reset(); });
}

BlockDevice* ArrayMachines::disk_of(unsigned i) {
    auto& host = hosts_[i];
    return host.node && *host.opened && !**host.opened ? &host.node->device() : nullptr;
}

}  // namespace weft::sim
