// SPDX-License-Identifier: Apache-2.0
// A whole array from one seed, of the production nodes on simulated machines (array_machines.hpp):
// some work of several hosts, connections that break, machines that lose their power, controllers
// that follow each other; at the end all power at once. Then enough of the boxes return, all that
// was answered must be there; the rest return, and all must become whole.
//
// It is the slow and faithful sister of RaidSwarm, with the same ledger: fewer seeds, and every
// octet on its way through iSCSI, RDMA and streams that are cut anywhere. Volumes have a journal,
// so nothing may be lost however many machines are dark, as long as they return.
#pragma once

#include <memory>
#include <vector>

#include "sim/array_machines.hpp"
#include "sim/faults.hpp"
#include "sim/raid_ledger.hpp"

namespace weft::sim {

struct ArraySwarmOptions {
    /// They say flushed, and have done nothing: so that it is known that it would be seen.
    bool disks_lie = false;
    std::function<void(const std::string&)> trace;
};

class ArraySwarm {
public:
    struct Tally {
        std::uint64_t reads = 0, writes = 0, unknown = 0, failed = 0, blocks_read = 0;
        std::uint64_t power_cuts = 0, link_faults = 0, takeovers = 0, host_deaths = 0;
        std::uint64_t kept_away = 0;  ///< boxes that were missing when all was read
        std::uint64_t steps = 0;
        void add(const Tally& other);
    };

    ArraySwarm(std::uint64_t seed, ArraySwarmOptions options);
    ~ArraySwarm();

    void run();
    const std::vector<std::string>& complaints() const { return complaints_.all(); }
    const Tally& tally() const { return tally_; }
    /// What kind of array it is.
    std::string to_text() const;

private:
    /// What a host asks for, until it is answered or the host is no more.
    struct Work;
    struct Habits {
        explicit Habits(Random& random);
        ArrayMachines::Options machines;
        std::uint64_t slices_max = 1;
        unsigned steps = 0;
        Cutting cutting{};
        // In percent of the requests, and of the steps.
        double reads = 0, flushes = 5;
        double box_cuts = 0, box_returns = 30, controller_cuts = 0, handovers = 0, store_cuts = 0;
        double host_deaths = 0, link_faults = 0;
        bool beyond = false;  ///< more boxes are dark at a time than the code can do without
    };

    void say(const std::string& what) const;
    bool chance(double percent) { return world_.chance().chance(percent); }
    unsigned spare_columns() const;
    unsigned dark_boxes() const;

    void step();
    void work_a_little();
    void submit(BlockOperation operation, raid::Range range, unsigned host);
    void answered(Work& work, Result<void> outcome);
    raid::Range draw_range();

    void disturb();
    void cut_a_box();
    void bring_one();
    void break_a_link();
    void kill_host(unsigned host);
    void disturb_controllers();
    void bring_all(const std::vector<unsigned>& but);
    bool run_for(Duration span);
    bool all_answered() const;

    void lose_all_power();
    void wind_up();
    bool read_everything(std::vector<std::byte>& octets);
    void look_at_everything();

    ArraySwarmOptions options_;
    Complaints complaints_;
    World world_;
    Habits habits_;
    std::uint64_t size_;
    RaidLedger ledger_;
    Tally tally_;
    std::vector<std::unique_ptr<Work>> works_;
    std::unique_ptr<ArrayMachines> machines_;
    std::vector<std::uint64_t> commands_;  ///< by host
    bool is_ending_ = false;               ///< no request may fail any more
};

}  // namespace weft::sim
