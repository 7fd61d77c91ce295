// SPDX-License-Identifier: Apache-2.0
// `weft volume …` and `weft member …`: what an array stores on which boxes.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/array_options.hpp"
#include "cli/text.hpp"

namespace weft::cli {
namespace {

using nlohmann::json;

std::string word(const json& document, const char* key) {
    return show_foreign(document.at(key).get<std::string>());
}

std::string level_text(const json& volume) {
    const auto level = volume.at("level").get<unsigned>();
    return level == 1 ? std::string("a mirror") : fmt::format("RAID {}", level);
}

void print_volume(const json& volume) {
    fmt::print("{}: {}, {} on {} boxes, {}\n", word(volume, "name"),
               show_size(volume.at("size").get<std::uint64_t>()), level_text(volume),
               volume.at("boxes").get<unsigned>(), word(volume, "state"));
}

/// What is the matter with a box that is there.
std::string troubles_of(const json& member) {
    std::string text;
    if (member.at("failing").get<bool>()) text += ", fails orders";
    if (member.at("slow").get<bool>()) text += ", answers slowly: reads go around it";
    if (member.at("full").get<bool>()) text += ", has no room: writes wait";
    for (const auto& other : member.at("unreached"))
        text += ", does not reach " + show_foreign(other.get<std::string>());
    if (member.at("misses_host").get<bool>()) text += ", does not reach a host";
    return text;
}

void print_details(const json& volume) {
    print_volume(volume);
    fmt::print("  target {}, chunks of {}, {}{}, generation {}, {} hosts\n", word(volume, "target"),
               show_size(volume.at("chunk").get<std::uint64_t>()),
               word(volume, "consistency") == "journal" ? "with a journal" : "without a journal",
               word(volume, "topology") == "tree" ? ", parity by a tree" : "",
               volume.at("generation").get<std::uint64_t>(), volume.at("hosts").get<std::size_t>());
    for (const auto& member : volume.at("members"))
        fmt::print("  place {}: {}, {}, {}{}\n", member.at("place").get<unsigned>(),
                   word(member, "box"), word(member, "state"),
                   member.at("up").get<bool>() ? "up" : "down", troubles_of(member));
    for (const auto& rebuild : volume.at("rebuilds"))
        fmt::print("  place {} is being rebuilt{}: {} of {} stripes\n",
                   rebuild.at("place").get<unsigned>(),
                   rebuild.at("paused").get<bool>() ? " (paused)" : "",
                   rebuild.at("done").get<std::uint64_t>(),
                   rebuild.at("to_do").get<std::uint64_t>());
    const auto& scrub = volume.at("scrub");
    if (scrub.at("to_do").get<std::uint64_t>() != 0)
        fmt::print("  scrub: {} of {} stripes{}, {} mismatches, {} repaired\n",
                   scrub.at("done").get<std::uint64_t>(), scrub.at("to_do").get<std::uint64_t>(),
                   scrub.at("running").get<bool>() ? "" : ", ended",
                   scrub.at("mismatches").get<std::uint64_t>(),
                   scrub.at("repaired").get<std::uint64_t>());
}

std::vector<std::string> split(const std::string& list) {
    std::vector<std::string> words;
    for (std::size_t at = 0; at <= list.size();) {
        const auto comma = std::min(list.find(',', at), list.size());
        words.push_back(list.substr(at, comma - at));
        if (words.back().empty()) throw Misuse{"--boxes: a name is missing between the commas"};
        at = comma + 1;
    }
    return words;
}

struct Wishes {
    std::string volume, member, box;
    ArrayWishes array;

    std::optional<int> read(const Command& self, const Arguments& arguments, bool with_member,
                            bool with_box) {
        CLI::App options;
        options.add_option("VOLUME", volume, "the volume's name")->required();
        if (with_member)
            options.add_option("MEMBER", member, "a place from 0, or the name of the box there")
                ->required();
        if (with_box) options.add_option("BOX", box, "the box that takes the place")->required();
        array.declare(options);
        return parse(self, options, arguments);
    }
    std::string name() const { return show_foreign(volume); }
};

}  // namespace

int volume_create(const Command& self, const Arguments& arguments) {
    CLI::App options;
    std::string name, boxes, chunk = "128K", size, consistency, topology;
    unsigned level = 5;
    ArrayWishes array;
    options.add_option("NAME", name, "the volume's name")->required();
    options.add_option("--level", level, "1 (mirror), 5 or 6")
        ->required()
        ->check(CLI::IsMember({1, 5, 6}));
    options.add_option("--boxes", boxes, "the boxes, with commas between them")->required();
    options.add_option("--chunk", chunk, "what one box holds in a row");
    options.add_option("--size", size, "octets hosts may use; all there is room for if not given");
    options
        .add_option(
            "--consistency", consistency,
            "journal, unless none is asked for: nothing answered is lost, whoever loses power")
        ->check(CLI::IsMember({"journal", "none"}));
    options
        .add_option("--topology", topology,
                    "star, unless tree is asked for: boxes gather parity in pairs, round by round")
        ->check(CLI::IsMember({"star", "tree"}));
    array.declare(options);
    if (auto leave = parse(self, options, arguments)) return *leave;
    json request{{"do", "create volume"},
                 {"name", name},
                 {"level", level},
                 {"boxes", split(boxes)},
                 {"chunk", size_of(chunk)}};
    if (!consistency.empty()) request["consistency"] = consistency;
    if (!topology.empty()) request["topology"] = topology;
    if (!size.empty()) request["size"] = volume_size_of(size);
    array.ask(request);
    auto volume = array.ask({{"do", "volume status"}, {"name", name}});
    if (array.as_json)
        fmt::print("{}\n", show_json(volume));
    else
        print_details(volume);
    return done;
}

int volume_list(const Command& self, const Arguments& arguments) {
    CLI::App options;
    ArrayWishes array;
    array.declare(options);
    if (auto leave = parse(self, options, arguments)) return *leave;
    auto volumes = array.ask({{"do", "list volumes"}});
    if (array.as_json) return fmt::print("{}\n", show_json(volumes)), done;
    for (const auto& volume : volumes) print_volume(volume);
    return done;
}

int volume_status(const Command& self, const Arguments& arguments) {
    Wishes wishes;
    if (auto leave = wishes.read(self, arguments, false, false)) return *leave;
    auto volume = wishes.array.ask({{"do", "volume status"}, {"name", wishes.volume}});
    if (wishes.array.as_json)
        fmt::print("{}\n", show_json(volume));
    else
        print_details(volume);
    return done;
}

int volume_delete(const Command& self, const Arguments& arguments) {
    Wishes wishes;
    if (auto leave = wishes.read(self, arguments, false, false)) return *leave;
    return wishes.array.do_it({{"do", "delete volume"}, {"name", wishes.volume}},
                              fmt::format("{} is no more.", wishes.name()));
}

int volume_assemble(const Command& self, const Arguments& arguments) {
    CLI::App options;
    std::string name;
    bool force = false;
    ArrayWishes array;
    options.add_option("VOLUME", name, "the volume's name")->required();
    options.add_flag("--force", force, "also where boxes that are not here may know more of it");
    array.declare(options);
    if (auto leave = parse(self, options, arguments)) return *leave;
    return array.do_it({{"do", "assemble volume"}, {"name", name}, {"force", force}},
                       fmt::format("{} is known again.", show_foreign(name)));
}

int volume_grow(const Command& self, const Arguments& arguments) {
    CLI::App options;
    std::string name, size;
    ArrayWishes array;
    options.add_option("VOLUME", name, "the volume's name")->required();
    options.add_option("SIZE", size, "octets hosts may use then")->required();
    array.declare(options);
    if (auto leave = parse(self, options, arguments)) return *leave;
    return array.do_it({{"do", "grow volume"}, {"name", name}, {"size", volume_size_of(size)}},
                       fmt::format("{} grows.", show_foreign(name)));
}

int member_fail(const Command& self, const Arguments& arguments) {
    Wishes wishes;
    if (auto leave = wishes.read(self, arguments, true, false)) return *leave;
    return wishes.array.do_it(
        {{"do", "fail member"}, {"volume", wishes.volume}, {"member", wishes.member}},
        fmt::format("{} goes on without {}.", wishes.name(), show_foreign(wishes.member)));
}

int member_re_add(const Command& self, const Arguments& arguments) {
    Wishes wishes;
    if (auto leave = wishes.read(self, arguments, true, false)) return *leave;
    return wishes.array.do_it(
        {{"do", "re-add member"}, {"volume", wishes.volume}, {"member", wishes.member}},
        fmt::format("{} is rebuilt for {}.", show_foreign(wishes.member), wishes.name()));
}

int member_replace(const Command& self, const Arguments& arguments) {
    Wishes wishes;
    if (auto leave = wishes.read(self, arguments, true, true)) return *leave;
    return wishes.array.do_it({{"do", "replace member"},
                               {"volume", wishes.volume},
                               {"member", wishes.member},
                               {"box", wishes.box}},
                              fmt::format("{} takes a place of {}, and is rebuilt.",
                                          show_foreign(wishes.box), wishes.name()));
}

}  // namespace weft::cli
