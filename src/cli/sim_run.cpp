// SPDX-License-Identifier: Apache-2.0
// `weft sim run`: whole arrays in virtual time, one run for each seed, with faults, and checkers
// that look at everything. A run is a function of its seed: what fails once fails again.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/command.hpp"
#include "cli/text.hpp"
#include "sim/array_swarm.hpp"
#include "sim/raid_swarm.hpp"

namespace weft::cli {
namespace {

constexpr unsigned max_jobs = 256;

struct Wishes {
    std::string what, seeds = "1-1000", seed, consistency = "both", faults = "all";
    unsigned jobs = 0;  ///< 0: one for every processor
    bool beyond = false, go_on = false, trace = false, as_json = false;
};

struct Seeds {
    std::uint64_t first = 0, last = 0;
};

std::optional<std::uint64_t> parse_number(std::string_view text) {
    std::uint64_t number = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (fault != std::errc{} || end != text.data() + text.size()) return {};
    return number;
}

Seeds parse_seeds(const std::string& text) {
    const auto dash = text.find('-');
    const auto first = parse_number(std::string_view(text).substr(0, dash));
    const auto last =
        dash == std::string::npos ? first : parse_number(std::string_view(text).substr(dash + 1));
    if (!first || !last || *last < *first)
        throw Misuse{fmt::format("'{}' is neither a seed nor a range of them, as 1-1000",
                                 show_foreign(text))};
    return {*first, *last};
}

class Progress {
public:
    Progress(Seeds seeds, bool shown) : seeds_(seeds), shown_(shown && isatty(STDERR_FILENO)) {}

    double seconds() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
    }
    void tell(std::uint64_t seeds_done, std::size_t failures) {
        const auto now = std::chrono::steady_clock::now();
        if (!shown_ || now < next_) return;
        next_ = now + std::chrono::seconds(1);
        const auto done = static_cast<double>(seeds_done);
        const auto left = static_cast<double>(seeds_.last - seeds_.first + 1 - seeds_done);
        const double rate = done / seconds();
        fmt::print(stderr, "\r{:.0f} seeds, {} failed, {:.0f} per second, {} to go        ", done,
                   failures, rate, show_duration(left / rate));
    }
    void end() const {
        if (shown_) fmt::print(stderr, "\r{:60}\r", "");
    }

private:
    Seeds seeds_;
    bool shown_;
    std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now(), next_{};
};

nlohmann::json document_of(const sim::RaidSwarm::Tally& tally) {
    return {{"reads", tally.reads},
            {"writes", tally.writes},
            {"blocks_read", tally.blocks_read},
            {"session_cuts", tally.session_cuts},
            {"power_cuts", tally.power_cuts},
            {"takeovers", tally.takeovers},
            {"disk_errors", tally.disk_errors},
            {"host_deaths", tally.host_deaths},
            {"links_cut", tally.links_cut},
            {"rotten_blocks", tally.rotten_blocks},
            {"lost_writes", tally.lost_writes},
            {"strayed_writes", tally.strayed_writes},
            {"damaged_transfers", tally.damaged_transfers},
            {"boxes_replaced", tally.replacements},
            {"disks_replaced", tally.wiped_disks},
            {"blackouts", tally.blackouts},
            {"blocks_healed", tally.healed_blocks},
            {"reads_hedged", tally.hedged_reads},
            {"copies_put_back", tally.put_backs},
            {"copies_noticed", tally.noticed_put_backs},
            {"full_file_systems", tally.full_file_systems},
            {"pauses", tally.pauses},
            {"gray_faults", tally.gray_faults},
            {"connections_reset", tally.connections_reset},
            {"loads", tally.loads},
            {"most_overtaken", tally.overtaken},
            {"rebuilds", tally.rebuilds},
            {"stops", tally.stops}};
}

nlohmann::json document_of(const sim::ArraySwarm::Tally& tally) {
    return {{"reads", tally.reads},
            {"writes", tally.writes},
            {"unknown", tally.unknown},
            {"blocks_read", tally.blocks_read},
            {"power_cuts", tally.power_cuts},
            {"link_faults", tally.link_faults},
            {"takeovers", tally.takeovers},
            {"host_deaths", tally.host_deaths},
            {"boxes_kept_away", tally.kept_away}};
}

std::string text_of(const sim::RaidSwarm::Tally& tally) {
    return fmt::format(
        "{} writes and {} reads; {} sessions cut, {} power cuts, {} takeovers, {} disk errors, "
        "{} links cut, {} blocks spoiled, {} disks and boxes replaced, {} rebuilds",
        tally.writes, tally.reads, tally.session_cuts, tally.power_cuts, tally.takeovers,
        tally.disk_errors, tally.links_cut,
        tally.rotten_blocks + tally.lost_writes + tally.strayed_writes,
        tally.replacements + tally.wiped_disks, tally.rebuilds);
}

std::string text_of(const sim::ArraySwarm::Tally& tally) {
    return fmt::format(
        "{} writes and {} reads; {} power cuts, {} faults of links, {} takeovers, {} hosts killed",
        tally.writes, tally.reads, tally.power_cuts, tally.link_faults, tally.takeovers,
        tally.host_deaths);
}

/// A seed that failed, and how.
struct Failure {
    std::uint64_t seed = 0;
    std::string habits, options;  ///< options: those that run it again
    std::vector<std::string> complaints;
};

std::string replay_of(const Wishes& wishes, const Failure& failure) {
    return fmt::format("weft sim run {} --seed {}{} --trace", wishes.what, failure.seed,
                       failure.options);
}

void print_failure(const Wishes& wishes, const Failure& failure) {
    fmt::print("Seed {}: {}\n", failure.seed, failure.habits);
    for (const auto& complaint : failure.complaints) fmt::print("    {}\n", complaint);
    fmt::print("replay: {}\n", replay_of(wishes, failure));
    std::fflush(stdout);
}

/// What became of all of them, or of those up to the first that failed.
template <class Tally>
struct Outcome {
    Tally tally;
    std::uint64_t seeds_run = 0;
    double seconds = 0;
    std::vector<Failure> failures;
};

int report(const Wishes& wishes, Seeds seeds, const auto& outcome) {
    const auto& failures = outcome.failures;
    const int status = failures.empty() ? done : refused;
    if (wishes.as_json) {
        auto document = document_of(outcome.tally);
        document["first_seed"] = seeds.first;
        document["last_seed"] = seeds.last;
        document["seeds_run"] = outcome.seeds_run;
        document["seconds"] = outcome.seconds;
        document["failures"] = nlohmann::json::array();
        for (const auto& failure : failures)
            document["failures"].push_back({{"seed", failure.seed},
                                            {"violations", failure.complaints},
                                            {"replay", replay_of(wishes, failure)}});
        fmt::print("{}\n", show_json(document));
        return status;
    }
    if (!failures.empty() && !wishes.go_on) {
        print_failure(wishes, failures.front());
        return status;
    }
    fmt::print("{} {} in {}: {}. {}.\n", outcome.seeds_run,
               outcome.seeds_run == 1 ? "seed" : "seeds", show_duration(outcome.seconds),
               failures.empty() ? "nothing lost" : fmt::format("{} failed", failures.size()),
               text_of(outcome.tally));
    return status;
}

/// `run_one(seed, tally)` gives the failure, if it was one. Every run is a world of its own, so
/// several go on at once; seeds are begun in order, so the first that fails is always the same.
template <class Tally>
int run_all(const Wishes& wishes, Seeds seeds, auto run_one) {
    Outcome<Tally> outcome;
    Progress progress(seeds, !wishes.as_json && !wishes.trace);
    std::mutex mutex;  // of all that is shared, which is the following and the above
    auto next = seeds.first;
    bool is_over = false;
    const bool tells_each = wishes.go_on && !wishes.as_json;  // it may go on for an hour
    auto work = [&] {
        std::unique_lock lock(mutex);
        while (!is_over) {
            const auto seed = next++;
            is_over = seed == seeds.last;
            lock.unlock();
            Tally tally;
            auto failure = run_one(seed, tally);
            lock.lock();
            outcome.tally.add(tally);
            ++outcome.seeds_run;
            is_over = is_over || (failure && !wishes.go_on);
            if (failure && tells_each) progress.end(), print_failure(wishes, *failure);
            if (failure) outcome.failures.push_back(std::move(*failure));
            progress.tell(outcome.seeds_run, outcome.failures.size());
        }
    };
    {
        const auto jobs = wishes.jobs != 0 ? wishes.jobs : std::thread::hardware_concurrency();
        std::vector<std::jthread> others;
        for (unsigned i = 1; !wishes.trace && i < jobs; ++i) others.emplace_back(work);
        work();
    }
    progress.end();
    outcome.seconds = progress.seconds();
    std::ranges::sort(outcome.failures, {}, &Failure::seed);
    if (!wishes.go_on && outcome.failures.size() > 1) outcome.failures.resize(1);
    return report(wishes, seeds, outcome);
}

void print_line(const std::string& line) {
    fmt::print("{}\n", line);
}

/// Volumes of real boxes and managers, their messages function calls: many seeds.
int run_raid(const Wishes& wishes, Seeds seeds) {
    sim::RaidSwarmOptions options;
    options.beyond = wishes.beyond;
    options.all_faults = wishes.faults != "first";
    options.small_rings = wishes.faults == "rings";
    options.short_of_room =
        wishes.faults == "all" || wishes.faults == "gray" || options.small_rings;
    options.gray = wishes.faults == "gray" || wishes.faults == "wire";
    options.gray_alone = wishes.faults == "wire";
    if (wishes.trace) options.trace = print_line;
    std::vector<std::string> ways{wishes.consistency};
    if (wishes.consistency == "both") ways = {"journal", "none"};
    using Tally = sim::RaidSwarm::Tally;
    auto run_one = [&](std::uint64_t seed, Tally& tally) -> std::optional<Failure> {
        for (const auto& way : ways) {
            auto own = options;  // others run at the same time
            own.consistency =
                way == "journal" ? wire::ArrayConsistency::journal : wire::ArrayConsistency::none;
            sim::RaidSwarm swarm(seed, own);
            swarm.run();
            tally.add(swarm.tally());
            if (swarm.complaints().empty()) continue;
            return Failure{seed, swarm.habits().to_text(),
                           fmt::format(" --consistency {}{}{}", way,
                                       wishes.faults == "all" ? "" : " --faults " + wishes.faults,
                                       options.beyond ? " --beyond" : ""),
                           swarm.complaints()};
        }
        return std::nullopt;
    };
    return run_all<Tally>(wishes, seeds, run_one);
}

/// Whole arrays of the nodes that real machines run, every octet by RDMA over streams: fewer.
int run_array(const Wishes& wishes, Seeds seeds) {
    if (wishes.beyond || wishes.faults != "all" || wishes.consistency != "both")
        throw Misuse{"an array takes no --consistency, --faults and --beyond: those are for raid"};
    sim::ArraySwarmOptions options;
    if (wishes.trace) options.trace = print_line;
    using Tally = sim::ArraySwarm::Tally;
    auto run_one = [&](std::uint64_t seed, Tally& tally) -> std::optional<Failure> {
        sim::ArraySwarm swarm(seed, options);
        swarm.run();
        tally.add(swarm.tally());
        if (swarm.complaints().empty()) return std::nullopt;
        return Failure{seed, swarm.to_text(), "", swarm.complaints()};
    };
    return run_all<Tally>(wishes, seeds, run_one);
}

}  // namespace

int sim_run(const Command& self, const Arguments& arguments) {
    CLI::App options;
    Wishes wishes;
    options.add_option("scenario", wishes.what, "what to run: raid, or array")->required();
    auto* many = options.add_option("--seeds", wishes.seeds, "FIRST-LAST, or one");
    auto* one = options.add_option("--seed", wishes.seed, "one run")->excludes(many);
    options
        .add_option("--consistency", wishes.consistency,
                    "of the volumes of raid: journal, none, or both, one after the other")
        ->check(CLI::IsMember({"journal", "none", "both"}));
    options
        .add_option(
            "--faults", wishes.faults,
            "all; rings: with journals too small, too; gray: with machines and lines that are "
            "slow, crowded or stand still, and load; wire: these alone; or those there were "
            "first, or second")
        ->check(CLI::IsMember({"all", "rings", "gray", "wire", "first", "second"}));
    options.add_flag("--beyond", wishes.beyond,
                     "take away more boxes than a volume can do without: it must stop");
    options.add_flag("--go-on", wishes.go_on, "after a seed that fails, too, and list all of them");
    options
        .add_option("--jobs", wishes.jobs,
                    "so many seeds at once; one for every processor if not given")
        ->check(CLI::Range(1U, max_jobs));
    options.add_flag("--trace", wishes.trace, "print what happens");
    options.add_flag("--json", wishes.as_json, "as a JSON document");
    if (auto leave = parse(self, options, arguments)) return *leave;
    const auto seeds = parse_seeds(*one ? wishes.seed : wishes.seeds);
    if (wishes.what == "raid") return run_raid(wishes, seeds);
    if (wishes.what == "array") return run_array(wishes, seeds);
    throw Misuse{fmt::format("'{}' is nothing that can be run; raid and array are",
                             show_foreign(wishes.what))};
}

}  // namespace weft::cli
