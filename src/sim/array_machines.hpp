// SPDX-License-Identifier: Apache-2.0
// A whole array on simulated machines: boxes, two controllers of which one waits, and hosts, all of
// them the production nodes, with their own RDMA over streams that are cut anywhere and disks that
// lose what was not flushed. Every machine can lose its power amid whatever it does.
//
// A machine without power says nothing more, and what its disks had not made stable is kept, lost
// or torn. What is left of its program hears of that as of a network and a disk that are gone, is
// told to stop, and is taken apart when it has; only then can the machine be started again.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "node/box_node.hpp"
#include "node/controller_node.hpp"
#include "node/host_node.hpp"
#include "node/memory_metadata_store.hpp"
#include "sim/rdma_memory_model.hpp"
#include "sim/world.hpp"

namespace weft::sim {

class ArrayMachines {
public:
    struct Options {
        raid::Level level{};
        unsigned boxes = 0, hosts = 0;
        std::uint32_t chunk_bytes = 0;
        std::uint64_t size = 0;  ///< of the volume
        raid::PlanOptions plan{};
        bool hosts_over_rdma = true;  ///< to the controller
    };
    static constexpr unsigned controllers = 2;

    ArrayMachines(World& world, Complaints& complaints, const Options& options);
    ArrayMachines(const ArrayMachines&) = delete;
    ArrayMachines& operator=(const ArrayMachines&) = delete;
    /// In an orderly way: everything must be on its way to be quiet.
    ~ArrayMachines();

    /// Until a volume is healthy and all hosts are attached to it. False: a complaint says why not.
    bool set_up();

    // Machines. Cutting the power of one that is off changes nothing, nor does starting one that is
    // on, or of which something is left.
    void cut_box(unsigned i);
    void start_box(unsigned i);
    bool box_is_on(unsigned i) const { return boxes_[i].node != nullptr; }
    void cut_controller(unsigned i);
    void start_controller(unsigned i);
    bool controller_is_on(unsigned i) const { return controllers_[i].node != nullptr; }
    void cut_host(unsigned i);
    void start_host(unsigned i);
    bool host_is_on(unsigned i) const { return hosts_[i].node != nullptr; }
    /// None while it is not attached.
    BlockDevice* disk_of(unsigned host);

    /// In office, and hands over.
    void step_down();
    /// As if the network between this controller and its store were cut, or whole again.
    void reach_store(unsigned controller, bool reaches);

    /// The one in office; none while there is no such.
    node::ControllerNode* in_office();
    raid::VolumeStatus status();
    /// The volume as the store has it.
    std::optional<wire::ArrayVolume> volume() const;
    /// What a person does who finds boxes that were counted out for what they did: they are tried
    /// again.
    void re_add_failed();
    bool scrub();

    /// One event, and whatever that makes possible.
    void step();
    std::uint64_t steps() const { return steps_; }
    template <class Done>
    bool run_until(const Done& done, Duration patience) {
        const auto until = world_.now() + patience;
        while (!done()) {
            if (world_.now() >= until) return false;
            step();
        }
        return true;
    }

    std::function<void(const std::string&)> on_news;

private:
    /// What a node says when it has started: nothing, or why it cannot. One that lost its power
    /// may still say it, to nobody.
    using Word = std::shared_ptr<std::optional<std::optional<std::string>>>;
    struct Box {
        std::string name, machine;
        std::unique_ptr<node::BoxNode> node;
        Word told;
        bool listens = false;
    };
    struct Controller {
        std::string machine;
        std::unique_ptr<node::MemoryMetadataStore> store;
        std::unique_ptr<node::ControllerNode> node;
    };
    struct Host {
        std::string machine;
        std::unique_ptr<node::HostNode> node;
        Word opened;
    };
    /// What is left of a machine that lost its power, until it can be taken apart.
    struct Remains {
        std::string machine;
        std::function<bool()> is_quiet;
        std::function<void()> take_apart;
    };

    static Word no_word() { return std::make_shared<Word::element_type>(); }
    void say(const std::string& what) const {
        if (on_news) on_news(what);
    }
    bool has_remains(const std::string& machine) const;
    void bury(std::string machine, std::function<bool()> is_quiet,
              std::function<void()> take_apart);
    void beat();
    void tend();
    Address address_of(unsigned controller) const;
    bool told_well(const std::string& what,
                   const std::function<void(node::ControllerNode::Told)>& ask);

    World& world_;
    Complaints& complaints_;
    Options options_;
    node::MemoryRecords records_;
    std::vector<Box> boxes_;
    std::vector<Controller> controllers_;
    std::vector<Host> hosts_;
    std::deque<Remains> remains_;
    std::uint64_t steps_ = 0;
    Appointment heart_;
};

}  // namespace weft::sim
