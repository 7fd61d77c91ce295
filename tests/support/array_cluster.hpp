// SPDX-License-Identifier: Apache-2.0
// A whole array on simulated machines: a controller, boxes, hosts, all of them the production
// objects, and initiators that know nothing of arrays.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "node/box_node.hpp"
#include "node/controller_node.hpp"
#include "node/host_node.hpp"
#include "node/iscsi_disk.hpp"
#include "node/memory_metadata_store.hpp"
#include "sim/world.hpp"
#include "support/test_request.hpp"
#include "wire/array_host.hpp"

namespace weft::test {

class ArrayCluster {
public:
    std::uint64_t box_size = 24u << 20;  ///< of the boxes to come
    static constexpr std::uint16_t port = 3260;

    explicit ArrayCluster(std::uint64_t seed) : world(seed) {}
    ~ArrayCluster() {
        disks.clear();
        transports.clear();
        for (auto& each : hosts) {
            each.second->leave();
            EXPECT_TRUE(run_until([&] { return each.second->finished(); }));
        }
        hosts.clear();
        for (auto* each : {standby.get(), controller.get()}) {
            if (each == nullptr) continue;
            each->stop();
            EXPECT_TRUE(run_until([&] { return each->quiet(); }));
        }
        standby.reset();
        controller.reset();
        for (auto& each : boxes) {
            each.second->stop();
            EXPECT_TRUE(run_until([&] { return each.second->quiet(); }));
        }
        boxes.clear();
    }

    static std::string machine_of(const std::string& name) {
        std::size_t number = 10;
        for (const char* known : {"oak", "elm", "ash", "fir", "yew", "bay", "box"}) {
            if (name == known) break;
            ++number;
        }
        return "10.0.0." + std::to_string(number);
    }
    Address controller_address() const { return Address::tcp("10.0.0.1", port); }
    static Address box_address(const std::string& name) {
        return Address::tcp(machine_of(name), port);
    }

    template <class Done>
    [[nodiscard]] bool run_until(const Done& done, Duration patience = std::chrono::seconds(120)) {
        const auto until = world.now() + patience;
        while (!done()) {
            if (world.now() >= until || !world.step()) return false;
        }
        return true;
    }

    void start_controller() {
        store = std::make_unique<node::MemoryMetadataStore>(world.host("10.0.0.1"), records);
        node::ControllerNode::Options options;
        options.listen = controller_address();
        options.volume = volume_options;
        options.in_band = in_band;
        options.box_silence = box_silence;
        controller = std::make_unique<node::ControllerNode>(world.host("10.0.0.1"), *store,
                                                            std::move(options));
        std::optional<Result<Address>> started;
        controller->start([&](Result<Address> outcome) { started = outcome; });
        ASSERT_TRUE(run_until([&] { return started.has_value(); }));
        ASSERT_TRUE(*started) << static_cast<int>(started->error().code);
    }
    Address standby_address() const { return Address::tcp("10.0.0.2", port); }
    /// Another controller with the same records, on a machine of its own; it waits.
    void start_standby() {
        standby_store =
            std::make_unique<node::MemoryMetadataStore>(world.host("10.0.0.2"), records);
        node::ControllerNode::Options options;
        options.listen = standby_address();
        options.volume = volume_options;
        options.in_band = in_band;
        options.box_silence = box_silence;
        options.office.standby = true;
        standby = std::make_unique<node::ControllerNode>(world.host("10.0.0.2"), *standby_store,
                                                         std::move(options));
        standby->start([this](Result<Address> outcome) { standby_serves = outcome.has_value(); });
    }
    /// The controller's machine loses its power. What is left of it in the midst of its work is
    /// never called again, and cannot be taken apart: it is kept, for whoever looks for leaks.
    void cut_power_of_controller() {
        using Rest = std::pair<std::unique_ptr<node::MemoryMetadataStore>,
                               std::unique_ptr<node::ControllerNode>>;
        static auto& rests = *new std::vector<Rest>;
        world.host("10.0.0.1").power_cut();
        rests.emplace_back(std::move(store), std::move(controller));
    }
    void stop_controller() {
        if (!controller) return;
        controller->stop();
        EXPECT_TRUE(run_until([&] { return controller->quiet(); }));
        controller.reset();
        store.reset();
    }
    void start_box(const std::string& name) { start_box(name, box_address(name)); }
    void start_box(const std::string& name, const Address& where) {
        auto& host = world.host(machine_of(name));
        auto& box = boxes[name];
        box = std::make_unique<node::BoxNode>(
            host, node::BoxNode::Options{.name = name,
                                         .folder = "/" + name,
                                         .size = box_size,
                                         .windows = {.windows = 16, .bytes = 2u << 20}});
        std::optional<std::optional<std::string>> told;
        box->start([&](std::optional<std::string> refusal) { told = std::move(refusal); });
        ASSERT_TRUE(run_until([&] { return told.has_value(); }));
        ASSERT_FALSE(*told) << **told;
        ASSERT_TRUE(box->listen(where));
    }
    void cut_power(const std::string& name) { go_dark({name}); }
    /// Amid whatever they do, as what was answered may still be on its way home: nothing they say
    /// is heard any more, their disks lose what was not flushed. The rest of them is taken apart
    /// when that has ended.
    void go_dark(const std::vector<std::string>& dark) {
        for (const auto& name : dark) {
            world.network().power_cut(machine_of(name));
            for (const auto& [path, disk] : world.disks())
                if (path.starts_with("/" + name + "/"))
                    disk->power_cut(sim::AfterPowerCut::requests_fail);
        }
        for (const auto& name : dark) {
            boxes[name]->stop();
            EXPECT_TRUE(run_until([&] { return boxes[name]->quiet(); }));
            boxes.erase(name);
            world.network().power_on(machine_of(name));
        }
    }

    /// What management is told: nothing, or why not.
    using Ask = std::function<void(node::ControllerNode::Told)>;
    std::optional<std::string> refusal_of(const Ask& ask) {
        std::optional<std::optional<std::string>> told;
        ask([&](std::optional<std::string> refusal) { told = std::move(refusal); });
        if (!run_until([&] { return told.has_value(); })) return "it never said";
        return *told;
    }
    void add_box(const std::string& name) {
        start_box(name);
        const auto refusal = refusal_of([&](auto told) {
            controller->add_box(name, box_address(name), false, std::move(told));
        });
        ASSERT_FALSE(refusal) << *refusal;
    }
    std::optional<std::string> create(const std::string& name, raid::Level level,
                                      std::vector<std::string> members,
                                      std::uint32_t chunk_bytes = 32u << 10,
                                      std::uint64_t size = 0) {
        return refusal_of([&](auto told) {
            controller->create_volume({.name = name,
                                       .level = level,
                                       .boxes = members,
                                       .chunk_bytes = chunk_bytes,
                                       .size = size},
                                      std::move(told));
        });
    }
    raid::VolumeStatus status(const std::string& name) const {
        for (const auto& volume : controller->volumes())
            if (volume.name == name) return volume.status;
        return {};
    }
    [[nodiscard]] bool becomes(const std::string& name, raid::VolumeState state) {
        return run_until([&] { return status(name).state == state; });
    }

    /// An initiator that knows nothing of arrays.
    BlockDevice& attach_ordinary(const std::string& volume, bool over_rdma) {
        auto& here = world.host("10.0.0.90");
        if (over_rdma)
            transports.push_back(
                std::make_unique<node::IscsiIserTransport>(here, iscsi::IserInitiator::Options{}));
        else
            transports.push_back(std::make_unique<node::IscsiTcpTransport>(here));
        node::IscsiInitiatorOptions options;
        options.url.over_rdma = over_rdma;
        options.url.address = controller_address();
        options.url.target_name = wire::volume_target_name(volume);
        options.initiator_name = "iqn.2026-11.io.weft:ordinary";
        std::optional<Result<void>> opened;
        disks.push_back(std::make_unique<node::IscsiDisk>(
            here, *transports.back(), options, [&](Result<void> outcome) { opened = outcome; }));
        EXPECT_TRUE(run_until([&] { return opened.has_value(); }));
        EXPECT_TRUE(opened && *opened);
        return disks.back()->device();
    }
    /// A host of the array.
    BlockDevice& attach(const std::string& volume, const std::string& machine = "10.0.0.50") {
        node::HostNode::Options options;
        options.controller = controller_address();
        if (standby) options.others = {standby_address()};
        options.volume = volume;
        options.name = machine;
        options.listen = Address::tcp(machine, 7500);
        std::optional<std::optional<std::string>> opened;
        auto& host = *(hosts[machine] = std::make_unique<node::HostNode>(
                           world.host(machine), options,
                           node::HostNode::Holder{
                               .opened = [&](std::optional<std::string> why) { opened = why; },
                               .news = [](const std::string&) {}}));
        EXPECT_TRUE(run_until([&] { return opened.has_value(); }));
        EXPECT_TRUE(opened && !*opened) << opened->value_or("");
        return host.device();
    }

    std::optional<Result<void>> run(BlockDevice& disk, TestRequest& request) {
        disk.submit(request);
        EXPECT_TRUE(run_until([&] { return request.outcome.has_value(); }));
        return request.outcome;
    }
    void write(BlockDevice& disk, std::uint64_t offset, const std::vector<std::byte>& octets) {
        TestRequest request(BlockOperation::write, offset, octets.size());
        request.octets = octets;
        request.with_memory(request.octets);
        auto outcome = run(disk, request);
        ASSERT_TRUE(outcome && *outcome)
            << "at " << offset << ": " << static_cast<int>(outcome->error().code);
    }
    std::vector<std::byte> read(BlockDevice& disk, std::uint64_t offset, std::size_t size) {
        TestRequest request(BlockOperation::read, offset, size);
        auto outcome = run(disk, request);
        EXPECT_TRUE(outcome && *outcome) << "at " << offset;
        return request.octets;
    }

    sim::World world;
    node::MemoryRecords records;
    raid::VolumeManagerOptions volume_options{};
    bool in_band = false;
    Duration box_silence = node::BoxSession::silence_usual;
    std::unique_ptr<node::MemoryMetadataStore> store;
    std::unique_ptr<node::ControllerNode> controller;
    std::unique_ptr<node::MemoryMetadataStore> standby_store;
    std::unique_ptr<node::ControllerNode> standby;
    bool standby_serves = false;
    std::map<std::string, std::unique_ptr<node::BoxNode>> boxes;
    std::vector<std::unique_ptr<node::IscsiTransport>> transports;
    std::vector<std::unique_ptr<node::IscsiDisk>> disks;
    std::map<std::string, std::unique_ptr<node::HostNode>> hosts;
};

/// An initiator that sends a host's commands as it pleases.
class VendorInitiator {
public:
    VendorInitiator(ArrayCluster& array, World& here, node::IscsiTransport& transport,
                    const std::string& volume)
        : array_(array) {
        node::IscsiInitiatorOptions options;
        options.url.over_rdma = true;
        options.url.address = array.controller_address();
        options.url.target_name = wire::volume_target_name(volume);
        options.initiator_name = "iqn.2026-11.io.weft:stranger";
        initiator_.emplace(
            here, transport, options,
            node::IscsiInitiator::Holder{.up = [this] { up_ = true; }, .gave_up = [](Error) {}});
        initiator_->begin();
        EXPECT_TRUE(array_.run_until([&] { return up_; }));
    }
    ~VendorInitiator() {
        initiator_->leave();
        EXPECT_TRUE(array_.run_until([&] { return initiator_->over(); }));
    }

    template <class Parameters>
    std::optional<wire::HostOutcome> ask(wire::HostAction action, const Parameters& parameters) {
        Command command(action, parameters);
        for (;;) {  // a session begins with news of the unit
            command.over = false;
            initiator_->session().submit(command);
            EXPECT_TRUE(array_.run_until([&] { return command.over; }));
            if (!command.outcome && command.tries++ < 4) continue;
            return command.outcome;
        }
    }

private:
    struct Command final : iscsi::InitiatorCommand {
        template <class Parameters>
        Command(wire::HostAction action, const Parameters& said) {
            const auto octets = encoded(said);
            parameters.assign(octets.begin(), octets.end());
            out = parameters;
            const wire::HostCommandBlock block{
                .action = action,
                .command = 9,
                .parameter_length = static_cast<std::uint32_t>(parameters.size())};
            prepare({}, encoded(block), iscsi::Effect::once);
            set_data_out({&out, 1}, static_cast<std::uint32_t>(out.size()));
        }
        void ended(const iscsi::CommandEnd& end) override {
            over = true;
            // Behind the head of the sense data: type, length, outcome.
            constexpr std::size_t at = 8 + 2;
            if (end.sense.size() > 20)
                outcome = wire::HostOutcome{std::to_integer<std::uint8_t>(end.sense[at])};
        }
        std::vector<std::byte> parameters;
        Buffer out{};
        bool over = false;
        unsigned tries = 0;
        std::optional<wire::HostOutcome> outcome;
    };

    ArrayCluster& array_;
    std::optional<node::IscsiInitiator> initiator_;
    bool up_ = false;
};

}  // namespace weft::test
