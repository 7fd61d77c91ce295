// SPDX-License-Identifier: Apache-2.0
// `weft initiator ls|inq|read|write`: what targets there are, what a unit is, and its bytes.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error_text.hpp"
#include "cli/initiator_access.hpp"
#include "cli/outside.hpp"
#include "cli/text.hpp"

namespace weft::cli {
namespace {

using nlohmann::json;

struct Waiting final : BlockRequest {
    std::optional<Result<void>> outcome;
    void completed(Result<void> result) override { outcome = result; }
};

void transfer(LinuxWorld& world, BlockDevice& device, BlockOperation operation,
              std::uint64_t offset, Buffer memory) {
    while (!memory.empty()) {
        Buffer piece =
            memory.first(std::min<std::size_t>(memory.size(), device.traits().maximum_transfer));
        Waiting request;
        request.operation = operation;
        request.offset = offset;
        request.length = piece.size();
        request.memory = {&piece, 1};
        device.submit(request);
        world.run_until([&] { return request.outcome.has_value(); });
        if (!*request.outcome)
            throw Refusal{fmt::format("{} bytes at {}: {}", piece.size(), offset,
                                      to_text(request.outcome->error()))};
        offset += piece.size();
        memory = memory.subspan(piece.size());
    }
}

std::uint64_t whole_blocks(const std::string& text, const BlockTraits& traits) {
    auto size = parse_size(text);
    if (!size || *size % traits.minimum_block != 0)
        throw Refusal{fmt::format("'{}' is not a whole number of blocks of {} bytes", text,
                                  traits.minimum_block)};
    return *size;
}

std::vector<iscsi::DiscoveredTarget> discover(LinuxWorld& world, const InitiatorWishes& wishes) {
    auto options = initiator_options(wishes);
    options.discovery = true;
    options.connections = 1;
    auto transport = make_transport(world, options.url);
    std::optional<Result<std::vector<iscsi::DiscoveredTarget>>> told;
    std::optional<Error> ended;
    node::IscsiInitiator* self = nullptr;
    node::IscsiInitiator initiator(
        world, *transport, options,
        {.up = [&] { self->session().discover([&](auto outcome) { told = std::move(outcome); }); },
         .gave_up = [&](Error why) { ended = why; }});
    self = &initiator;
    initiator.begin();
    world.run_until([&] { return told || ended; });
    if (!ended) {
        initiator.leave();
        world.run_until([&] { return ended.has_value(); });
    }
    if (told && *told) return **told;
    throw Refusal{why_not(wishes.where, initiator.session(), told ? told->error() : *ended)};
}

json facts_of(const iscsi::UnitFacts& facts, const BlockTraits& traits) {
    return {{"vendor", facts.vendor},
            {"product", facts.product},
            {"revision", facts.revision},
            {"serial", facts.serial},
            {"size", traits.size},
            {"block", traits.minimum_block},
            {"maximum_transfer", traits.maximum_transfer},
            {"read_only", traits.read_only},
            {"can_trim", traits.can_trim},
            {"can_report_status", traits.can_report_status},
            {"forces_unit_access", facts.can_force_unit_access}};
}

}  // namespace

int initiator_ls(const Command& self, const Arguments& arguments) {
    CLI::App options;
    InitiatorWishes wishes;
    bool as_json = false;
    declare(options, wishes);
    options.add_flag("--json", as_json, "as a JSON document");
    if (auto leave = parse(self, options, arguments)) return *leave;
    auto world = make_world({});
    auto targets = discover(*world, wishes);
    if (as_json) {
        json list = json::array();
        for (const auto& target : targets)
            list.push_back({{"target", target.name}, {"portals", target.addresses}});
        fmt::print("{}\n", show_json(list));
        return done;
    }
    for (const auto& target : targets) {
        fmt::print("{}\n", show_foreign(target.name));
        for (const auto& address : target.addresses) fmt::print("    {}\n", show_foreign(address));
    }
    return done;
}

int initiator_inq(const Command& self, const Arguments& arguments) {
    CLI::App options;
    InitiatorWishes wishes;
    bool as_json = false;
    declare(options, wishes);
    options.add_flag("--json", as_json, "as a JSON document");
    if (auto leave = parse(self, options, arguments)) return *leave;
    auto world = make_world({});
    OpenedIscsiDisk disk(*world, wishes.where, initiator_options(wishes));
    const auto& facts = disk.device().facts();
    const auto traits = disk.device().traits();
    if (as_json) {
        fmt::print("{}\n", show_json(facts_of(facts, traits)));
        return done;
    }
    auto yes = [](bool can) { return can ? "yes" : "no"; };
    fmt::print("{} {} {}, serial number {}\n", show_foreign(facts.vendor),
               show_foreign(facts.product), show_foreign(facts.revision),
               show_foreign(facts.serial));
    fmt::print("  {} ({} bytes) in blocks of {}; at most {} at a time\n", show_size(traits.size),
               traits.size, traits.minimum_block, show_size(traits.maximum_transfer));
    fmt::print("  read-only: {}; trims: {}; knows its holes: {}; forces unit access: {}\n",
               yes(traits.read_only), yes(traits.can_trim), yes(traits.can_report_status),
               yes(facts.can_force_unit_access));
    return done;
}

int initiator_read(const Command& self, const Arguments& arguments) {
    CLI::App options;
    InitiatorWishes wishes;
    std::string offset, length;
    declare(options, wishes);
    options.add_option("OFFSET", offset, "the first byte")->required();
    options.add_option("LENGTH", length, "how many")->required();
    if (auto leave = parse(self, options, arguments)) return *leave;
    auto world = make_world({});
    OpenedIscsiDisk disk(*world, wishes.where, initiator_options(wishes));
    const auto traits = disk.device().traits();
    std::uint64_t at = whole_blocks(offset, traits);
    std::uint64_t left = whole_blocks(length, traits);
    std::vector<std::byte> memory(std::min<std::uint64_t>(left, traits.maximum_transfer));
    while (left > 0) {
        Buffer piece = Buffer(memory).first(std::min<std::uint64_t>(left, memory.size()));
        transfer(*world, disk.device(), BlockOperation::read, at, piece);
        if (std::fwrite(piece.data(), 1, piece.size(), stdout) != piece.size())
            throw Refusal{"standard output takes no more"};
        at += piece.size();
        left -= piece.size();
    }
    return done;
}

int initiator_write(const Command& self, const Arguments& arguments) {
    CLI::App options;
    InitiatorWishes wishes;
    std::string offset, path;
    declare(options, wishes);
    options.add_option("OFFSET", offset, "the first byte")->required();
    options.add_option("FILE", path, "what to write")->required();
    if (auto leave = parse(self, options, arguments)) return *leave;
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file) throw Refusal{fmt::format("{} cannot be read", show_foreign(path))};
    const auto end = file.tellg();
    if (end < 0) throw Refusal{fmt::format("{} is no file with a size", show_foreign(path))};
    const auto size = static_cast<std::uint64_t>(end);
    file.seekg(0);
    auto world = make_world({});
    OpenedIscsiDisk disk(*world, wishes.where, initiator_options(wishes));
    const auto traits = disk.device().traits();
    std::uint64_t at = whole_blocks(offset, traits);
    // Before anything is changed.
    if (size % traits.minimum_block != 0)
        throw Refusal{fmt::format("{} is no whole number of blocks of {} bytes", show_foreign(path),
                                  traits.minimum_block)};
    if (at > traits.size || size > traits.size - at)
        throw Refusal{fmt::format("{} of {} bytes at {} do not fit into {}", show_foreign(path),
                                  size, at, traits.size)};
    std::uint64_t total = 0;
    std::vector<std::byte> memory(std::min(traits.maximum_transfer, 1u << 20));
    while (total < size) {
        const auto count = std::min<std::uint64_t>(size - total, memory.size());
        if (!file.read(reinterpret_cast<char*>(memory.data()), static_cast<std::streamsize>(count)))
            throw Refusal{fmt::format("{} became shorter meanwhile", show_foreign(path))};
        transfer(*world, disk.device(), BlockOperation::write, at, Buffer(memory).first(count));
        at += count;
        total += count;
    }
    Waiting flush;
    flush.operation = BlockOperation::flush;
    disk.device().submit(flush);
    world->run_until([&] { return flush.outcome.has_value(); });
    if (!*flush.outcome) throw Refusal{fmt::format("flush: {}", to_text(flush.outcome->error()))};
    fmt::print("{} written\n", show_size(total));
    return done;
}

}  // namespace weft::cli
