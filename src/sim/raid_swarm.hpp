// SPDX-License-Identifier: Apache-2.0
// A volume with its boxes, controllers and hosts, from one seed: some work, some faults, all within
// what the volume must survive; then the faults stop, and everything is looked at. What the
// checkers find carries the name specs give it: S for what must never happen, L for what must
// happen at last.
#pragma once

#include <memory>
#include <set>

#include "sim/raid_cluster.hpp"
#include "sim/raid_ledger.hpp"
#include "sim/raid_rule_blame.hpp"
#include "sim/raid_rule_fairness.hpp"
#include "sim/raid_rule_rebuild.hpp"
#include "sim/raid_rule_time.hpp"

namespace weft::sim {

struct RaidSwarmOptions {
    wire::ArrayConsistency consistency = wire::ArrayConsistency::none;
    bool beyond = false;  ///< more boxes fail than the code can do without: stop, never wrong data
    RaidMutation mutation = RaidMutation::none;
    /// Those of RaidHabits::draw_more() too. Without them a seed is what it was when there were no
    /// others.
    bool all_faults = false;
    /// Those of RaidHabits::draw_room() too, likewise: with all the others.
    bool short_of_room = false;
    /// Those of RaidHabits::draw_gray() too.
    bool gray = false;
    bool gray_alone = false;   ///< and no others
    bool small_rings = false;  ///< with that, journals far below what the product has
    std::function<void(const std::string&)> trace;
};

class RaidSwarm {
public:
    struct Tally {
        std::uint64_t reads = 0, writes = 0, unknown = 0, failed = 0, blocks_read = 0;
        std::uint64_t session_cuts = 0, power_cuts = 0, takeovers = 0, disk_errors = 0;
        std::uint64_t host_deaths = 0, rebuilds = 0, steps = 0, stops = 0;
        std::uint64_t links_cut = 0, rotten_blocks = 0, lost_writes = 0, strayed_writes = 0;
        std::uint64_t damaged_transfers = 0, replacements = 0, wiped_disks = 0, blackouts = 0;
        std::uint64_t healed_blocks = 0, back_pressed = 0, scrubs = 0, probes = 0;
        std::uint64_t hedged_reads = 0, put_backs = 0, noticed_put_backs = 0;
        std::uint64_t full_file_systems = 0;
        std::uint64_t pauses = 0, gray_faults = 0, connections_reset = 0, loads = 0;
        std::uint64_t asked_again = 0;  ///< as the answer was "later"
        std::uint64_t overtaken = 0;    ///< the most that any request was
        void add(const Tally& other);
    };

    RaidSwarm(std::uint64_t seed, RaidSwarmOptions options);
    ~RaidSwarm();

    void run();
    const std::vector<std::string>& complaints() const { return complaints_.all(); }
    const Tally& tally() const { return tally_; }
    const RaidHabits& habits() const { return habits_; }

private:
    struct Host {
        unsigned number = 0;
        std::uint64_t commands = 0;
    };
    /// What a host wants, until it is answered, perhaps by another controller than it asked first.
    struct Work;
    /// Asked of one controller.
    struct Attempt;

    /// Of a box's disk, to be put back.
    struct Copy {
        unsigned box = 0;
        std::uint64_t epoch = 0;
        std::vector<std::byte> image;
    };

    void say(const std::string& what);
    std::string standing();
    bool chance(double percent) { return agenda_.random.chance(percent); }
    void step();
    void work_a_little();
    void submit(raid::HostOperation operation, raid::Range range, unsigned host);
    void ask(Work& work, bool again);
    void answered(Work& work, Attempt& attempt, Result<void> outcome);
    void finish(Work& work, Result<void> outcome);
    bool may_ask_later(const Work& work, const Error& why) const;
    void ask_later(Work& work, const Attempt& attempt);
    raid::Range draw_range();

    // raid_swarm_faults.cpp
    void disturb();
    std::set<std::uint8_t> troubled();
    bool is_troubled();
    bool may_disturb(unsigned box);
    bool may_damage(unsigned box, std::uint64_t home);
    bool has_damage();
    bool is_damage_open() const;
    void pause_box(unsigned box);
    void resume_all();
    void lose(unsigned box, bool power);
    void bring_one();
    void take_over();
    void repeat_late(double percent);
    void kill_host();
    void harm_a_disk(unsigned box);
    // raid_swarm_more_faults.cpp
    void disturb_more();
    void cut_links(unsigned box);
    void spoil(unsigned box);
    RaidDisk::Fate fate_of(unsigned box, std::uint64_t offset, std::size_t size);
    void change_boxes(unsigned box);
    void lack_room();
    void check_failed(std::uint8_t place, wire::ArrayOutcome why);
    void strike();
    void strike_all();
    void put_back(unsigned box);
    bool all_are_up();
    void let_go(double percent);
    void go_on(std::uint64_t steps);
    template <class Condition>
    bool run_until(Condition condition);
    bool all_answered();
    bool is_healthy();

    // raid_swarm_gray.cpp
    void slow_down(unsigned box);
    void crowd(unsigned box);
    void reset_connections();
    void end_gray();
    void burst();
    void look_at_rules();
    void look_at_waiting(const Work& work);
    void go_on_for(Duration duration);
    bool can_serve();
    // raid_swarm_load.cpp
    void bear_load();
    void keep_reading();
    bool begin_rebuild();

    // raid_swarm_end.cpp
    void wind_up();
    bool become_healthy();
    bool is_whole_enough();
    bool may_stay_broken() const { return habits_.beyond && has_rotten_; }
    bool mend_everything();
    void scrub_everything();
    void look_at_everything();
    void read_everything();
    void check_rest();
    void probe();
    void check_cost(raid::Range range, bool writes, bool in_band);

    RaidSwarmOptions options_;
    Complaints complaints_;
    RaidAgenda agenda_;
    RaidHabits habits_;
    /// What the cluster's machines still have of their memory they let go before they are gone.
    std::vector<std::unique_ptr<Work>> works_;
    RaidCluster cluster_;
    std::uint64_t size_;
    RaidLedger ledger_;
    RaidBlameRule blame_rule_;
    RaidTimeRule time_rule_;
    RaidFairnessRule fairness_rule_;
    RaidRebuildRule rebuild_rule_;
    Tally tally_;
    std::size_t reading_ = 0;     ///< requests under way that are followed by others when they end
    bool is_calm_ = false;        ///< nothing is slow or crowded but by what hosts ask for
    std::size_t reads_left_ = 0;  ///< so many more follow
    std::vector<Work*> open_;     ///< not over
    bool detours_ = false;        ///< data had to go by way of the controller
    std::vector<Host> hosts_;
    std::set<unsigned> away_, disturbed_;
    std::map<std::uint8_t, unsigned> replacing_;  ///< places, and who has them until it is done
    bool is_fragile_ = false;                     ///< nothing more may go wrong until all is whole
    bool has_harmed_disk_ = false;                ///< since all was whole
    Random faults_;                               ///< for what draw_more() adds
    Random slowing_;                              ///< for machines that stand still
    Random copying_;                              ///< for disks that are put back
    Random room_;                                 ///< for file systems that become full
    std::optional<Copy> copy_;
    unsigned to_lose_ = 0, to_stray_ = 0;  ///< so many of the next writes that may be
    bool has_cut_box_link_ = false;
    std::size_t unheard_ = 0;  ///< answers on their way to hosts
    bool is_damaging_ = false;
    std::size_t damaged_ = 0;  ///< so many of the requests may have had damaged transfers
    bool has_rotten_ = false;  ///< some block, at some time
    std::vector<raid::Range> unreadable_;  ///< at the end
    Buffer final_{};                       ///< where what is read at the end goes
};

}  // namespace weft::sim
