// SPDX-License-Identifier: Apache-2.0
// `weft initiator bench`: how many reads or writes of one size a unit takes.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error_text.hpp"
#include "cli/initiator_access.hpp"
#include "cli/outside.hpp"
#include "cli/text.hpp"

namespace weft::cli {
namespace {

struct Wishes : InitiatorWishes {
    std::string size = "4k";
    std::size_t depth = 32;
    double seconds = 5;
    bool write = false, in_sequence = false, as_json = false;
};

/// Requests that follow themselves until they are told to stop.
class Load {
public:
    Load(LinuxWorld& world, BlockDevice& device, const Wishes& wishes, std::uint64_t size)
        : world_(world),
          device_(device),
          size_(size),
          places_(device.traits().size / size),
          in_sequence_(wishes.in_sequence),
          requests_(wishes.depth) {
        for (auto& request : requests_) {
            request.load = this;
            request.memory_.assign(size, std::byte{0x5a});
            request.operation = wishes.write ? BlockOperation::write : BlockOperation::read;
        }
    }

    void run(double seconds) {
        const Instant began = world_.now();
        const Instant until = began + Duration(static_cast<std::int64_t>(seconds * 1e9));
        auto timer = world_.make_timer([this] { stopping_ = true; });
        timer->set(until);
        for (auto& request : requests_) request.go();
        world_.run_until([&] { return under_way_ == 0; });
        elapsed = std::chrono::duration<double>(world_.now() - began).count();
        if (failure_) throw Refusal{fmt::format("a request failed: {}", to_text(*failure_))};
    }

    std::uint64_t done = 0;
    double elapsed = 0;

private:
    struct Request final : BlockRequest {
        Load* load = nullptr;
        std::vector<std::byte> memory_;
        Buffer piece;

        void go() {
            ++load->under_way_;
            offset = load->next_place() * load->size_;
            length = load->size_;
            piece = memory_;
            memory = {&piece, 1};
            load->device_.submit(*this);
        }
        void completed(Result<void> outcome) override {
            --load->under_way_;
            ++load->done;
            if (!outcome) load->failure_ = outcome.error();
            if (!load->stopping_ && !load->failure_) go();
        }
    };

    std::uint64_t next_place() {
        if (in_sequence_) return place_++ % places_;
        place_ = place_ * 6364136223846793005u + 1442695040888963407u;
        return (place_ >> 33) % places_;
    }

    LinuxWorld& world_;
    BlockDevice& device_;
    std::uint64_t size_, places_, place_ = 0;
    bool in_sequence_;
    std::vector<Request> requests_;
    std::size_t under_way_ = 0;
    bool stopping_ = false;
    std::optional<Error> failure_;
};

}  // namespace

int initiator_bench(const Command& self, const Arguments& arguments) {
    CLI::App options;
    Wishes wishes;
    declare(options, wishes);
    options.add_option("--size", wishes.size, "of each request");
    options.add_option("--depth", wishes.depth, "requests under way")
        ->check(CLI::Range(std::size_t{1}, std::size_t{iscsi::initiator_commands_max}));
    options.add_option("--seconds", wishes.seconds, "how long");
    options.add_flag("--write", wishes.write, "write instead of read; what is there is lost");
    options.add_flag("--sequential", wishes.in_sequence, "one after another, not at random");
    options.add_flag("--json", wishes.as_json, "as a JSON document");
    if (auto leave = parse(self, options, arguments)) return *leave;
    auto world = make_world({});
    OpenedIscsiDisk disk(*world, wishes.where, initiator_options(wishes));
    const auto traits = disk.device().traits();
    auto size = parse_size(wishes.size);
    if (!size || *size == 0 || *size % traits.minimum_block != 0 || *size > traits.size ||
        *size > traits.maximum_transfer)
        throw Refusal{fmt::format("'{}' is no size of a request to this unit", wishes.size)};
    Load load(*world, disk.device(), wishes, *size);
    const auto completions_before = disk.completions();
    load.run(wishes.seconds);
    const auto completions = disk.completions() - completions_before;
    const double rate = static_cast<double>(load.done) / load.elapsed;
    const double bytes = rate * static_cast<double>(*size);
    const bool over_rdma = read_initiator_url(wishes.where).over_rdma;
    if (wishes.as_json) {
        nlohmann::json told{{"requests", load.done},
                            {"seconds", load.elapsed},
                            {"requests_per_second", rate},
                            {"bytes_per_second", bytes},
                            {"logins", disk.session().logins()},
                            {"sent_again", disk.session().sent_again()}};
        if (over_rdma) told["completions"] = completions;
        fmt::print("{}\n", show_json(told));
        return done;
    }
    fmt::print("{} {}s of {}, {} at a time: {:.0f} per second, {}/s\n", load.done,
               wishes.write ? "write" : "read", show_size(*size), wishes.depth, rate,
               show_size(static_cast<std::uint64_t>(bytes)));
    // Exactly, since a single one too many is one too many.
    if (over_rdma && completions == load.done)
        fmt::print("one completion for each\n");
    else if (over_rdma)
        fmt::print("{} completions, {:.4f} for each\n", completions,
                   static_cast<double>(completions) / static_cast<double>(load.done));
    return done;
}

}  // namespace weft::cli
