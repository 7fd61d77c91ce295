// SPDX-License-Identifier: Apache-2.0
// `weft examine`: what a box's folder holds, as its files say, whether or not a box runs there.
// Nothing is changed, and nothing is believed that a box would not believe.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error_text.hpp"
#include "cli/command.hpp"
#include "cli/text.hpp"
#include "node/box_facts.hpp"
#include "raid/journal_reader.hpp"
#include "raid/superblock.hpp"

namespace weft::cli {
namespace {

using nlohmann::json;

constexpr std::size_t copies = 2;
constexpr std::uint64_t journal_bytes_max = 1u << 30;  ///< no box makes one so long

std::vector<std::byte> beginning_of(const std::string& path, std::size_t size) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw Refusal{fmt::format("{}: it cannot be read", show_foreign(path))};
    std::vector<std::byte> octets(size);
    file.read(reinterpret_cast<char*>(octets.data()), static_cast<std::streamsize>(size));
    octets.resize(static_cast<std::size_t>(file.gcount()));
    return octets;
}

std::string name_of(wire::ArrayMemberState state) {
    switch (state) {
        case wire::ArrayMemberState::none:
            return "none";
        case wire::ArrayMemberState::current:
            return "current";
        case wire::ArrayMemberState::absent:
            return "absent";
        case wire::ArrayMemberState::rebuilding:
            return "rebuilding";
    }
    return "unknown";
}

json members_of(const wire::ArrayVolume& volume) {
    json members = json::array();
    for (std::size_t place = 0; place < volume.boxes; ++place) {
        const auto& member = volume.members[place];
        members.push_back({{"place", place},
                           {"box", to_digits(member.box)},
                           {"state", name_of(member.state)},
                           {"rebuilt_stripes", member.rebuilt_stripes}});
    }
    return members;
}

json copy_of(ConstBuffer image) {
    const auto superblock = raid::parse_superblock(image);
    if (!superblock) return {{"whole", false}};
    const auto& volume = superblock->volume;
    return {{"whole", true},
            {"written", superblock->written},
            {"cluster", to_digits(superblock->cluster)},
            {"box", to_digits(superblock->box)},
            {"place", superblock->place},
            {"epoch", static_cast<std::uint64_t>(superblock->epoch)},
            {"data_offset", superblock->data_offset},
            {"data_length", superblock->data_length},
            {"volume", raid::text_of_field(volume.name)},
            {"volume_identity", to_digits(volume.volume)},
            {"generation", static_cast<std::uint64_t>(volume.generation)},
            {"level", volume.level},
            {"chunk_bytes", volume.chunk_bytes},
            {"stripes", volume.stripes},
            {"members", members_of(volume)}};
}

/// Which of the two a box would go by; none if neither is whole.
std::optional<std::size_t> newest_of(ConstBuffer image) {
    const auto first = image.first(wire::superblock_size);
    const auto second = image.subspan(wire::superblock_size);
    if (!raid::newest_superblock(first, second)) return std::nullopt;
    return raid::copy_to_write(first, second) ^ 1;
}

/// What the journal has, by what became of it; `damaged` if what should be there is not.
json journal_of(const std::string& path, const wire::ArraySuperblock& superblock) {
    if (superblock.journal_length > journal_bytes_max)
        return {{"length", superblock.journal_length}, {"damaged", true}};
    const auto end = superblock.journal_offset + superblock.journal_length;
    auto image = beginning_of(path, end);
    image.resize(end);
    const auto read = raid::read_journal(ConstBuffer(image).subspan(superblock.journal_offset));
    json told = {{"length", superblock.journal_length}, {"damaged", !read}};
    if (!read) return told;
    std::map<wire::TransactionNumber, const char*> states;
    for (const auto& record : read->records) {
        if (record.entry.kind == wire::ArrayJournalKind::prepared)
            states[record.entry.transaction] = "prepared";
        for (const auto& mark : record.head.marks)
            if (auto found = states.find(mark.transaction); found != states.end())
                found->second =
                    mark.state == wire::ArrayTransactionState::committed ? "committed" : "aborted";
    }
    for (const char* state : {"prepared", "committed", "aborted"})
        told[state] = std::ranges::count_if(
            states, [&](const auto& each) { return std::string_view(each.second) == state; });
    told["used"] = read->end - read->checkpoint.head.tail;
    told["notes"] = read->checkpoint.notes.size();
    return told;
}

json part_of(const std::string& folder, const wire::ArrayBoxPart& part) {
    const auto file = node::file_name_of(part);
    auto image = beginning_of(folder + "/" + file, copies * wire::superblock_size);
    image.resize(copies * wire::superblock_size);
    json told = {{"file", file}, {"size", part.size}, {"begun", part.begun}};
    for (std::size_t i = 0; i < copies; ++i)
        told["copies"].push_back(
            copy_of(ConstBuffer(image).subspan(i * wire::superblock_size, wire::superblock_size)));
    const auto newest = newest_of(image);
    told["newest"] = newest ? json(*newest) : json();
    const auto superblock = raid::newest_superblock(
        ConstBuffer(image).first(wire::superblock_size),
        ConstBuffer(image).subspan(wire::superblock_size, wire::superblock_size));
    if (superblock && raid::has_journal(*superblock))
        told["journal"] = journal_of(folder + "/" + file, *superblock);
    return told;
}

json look_at(const std::string& folder) {
    const auto path = folder + "/box";
    const auto facts = node::parse_box_facts(beginning_of(path, 1u << 20));
    if (!facts)
        throw Refusal{
            fmt::format("{}: this is not a box's file, or it is damaged", show_foreign(path))};
    json told = {{"name", facts->name},
                 {"identity", to_digits(facts->box)},
                 {"cluster", facts->is_blank() ? json() : json(to_digits(facts->cluster))},
                 {"epoch", static_cast<std::uint64_t>(facts->epoch)},
                 {"parts", json::array()}};
    for (const auto& part : facts->parts) told["parts"].push_back(part_of(folder, part));
    return told;
}

void print_copy(const json& copy, std::size_t number, bool is_newest) {
    if (!copy.at("whole").get<bool>()) {
        fmt::print("  superblock {}: not whole\n", number);
        return;
    }
    fmt::print("  superblock {}: written {} times, generation {}, epoch {}{}\n", number,
               copy.at("written").get<std::uint64_t>(), copy.at("generation").get<std::uint64_t>(),
               copy.at("epoch").get<std::uint64_t>(), is_newest ? ", the one that counts" : "");
}

void print_journal(const json& journal) {
    const auto length = show_size(journal.at("length").get<std::uint64_t>());
    if (journal.at("damaged").get<bool>()) {
        fmt::print("  journal of {}: damaged, the part will be taken for lost\n", length);
        return;
    }
    fmt::print("  journal of {}: {} used; {} prepared, {} committed, {} aborted\n", length,
               show_size(journal.at("used").get<std::uint64_t>()),
               journal.at("prepared").get<std::uint64_t>(),
               journal.at("committed").get<std::uint64_t>(),
               journal.at("aborted").get<std::uint64_t>());
}

void print_part(const json& part) {
    fmt::print("{}: {}{}\n", part.at("file").get<std::string>(),
               show_size(part.at("size").get<std::uint64_t>()),
               part.at("begun").get<bool>() ? ", begun and not finished" : "");
    const auto& newest = part.at("newest");
    for (std::size_t i = 0; i < copies; ++i)
        print_copy(part.at("copies")[i], i, !newest.is_null() && newest.get<std::size_t>() == i);
    if (newest.is_null()) return;
    const auto& copy = part.at("copies")[newest.get<std::size_t>()];
    fmt::print("  place {} of volume {}: level {}, chunks of {}, {} stripes\n",
               copy.at("place").get<unsigned>(), show_foreign(copy.at("volume").get<std::string>()),
               copy.at("level").get<unsigned>(),
               show_size(copy.at("chunk_bytes").get<std::uint64_t>()),
               copy.at("stripes").get<std::uint64_t>());
    if (part.contains("journal")) print_journal(part.at("journal"));
    for (const auto& member : copy.at("members"))
        fmt::print("    {}: box {}, {}\n", member.at("place").get<unsigned>(),
                   member.at("box").get<std::string>(), member.at("state").get<std::string>());
}

void print(const json& told) {
    fmt::print("Box {}, {}\n", show_foreign(told.at("name").get<std::string>()),
               told.at("identity").get<std::string>());
    if (told.at("cluster").is_null())
        fmt::print("of no cluster yet\n");
    else
        fmt::print("of cluster {}, epoch {}\n", told.at("cluster").get<std::string>(),
                   told.at("epoch").get<std::uint64_t>());
    for (const auto& part : told.at("parts")) print_part(part);
}

}  // namespace

int examine(const Command& self, const Arguments& arguments) {
    CLI::App options;
    std::string folder;
    bool as_json = false;
    options.add_option("FOLDER", folder, "what weft box serve was given as --data")->required();
    options.add_flag("--json", as_json, "as a JSON document");
    if (auto leave = parse(self, options, arguments)) return *leave;
    const auto told = look_at(folder);
    if (as_json)
        fmt::print("{}\n", show_json(told));
    else
        print(told);
    return done;
}

}  // namespace weft::cli
