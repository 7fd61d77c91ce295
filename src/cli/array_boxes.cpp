// SPDX-License-Identifier: Apache-2.0
// `weft box add|list|clean|remove`, `weft spare …`, `weft host list`: who takes part in an array.
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

void print_boxes(const json& boxes) {
    for (const auto& box : boxes) {
        fmt::print("{} at {}, {}{}: {} of {} free\n", word(box, "name"), word(box, "address"),
                   box.at("up").get<bool>() ? "up" : "down",
                   box.at("spare").get<bool>() ? ", spare" : "",
                   show_size(box.at("free").get<std::uint64_t>()),
                   show_size(box.at("size").get<std::uint64_t>()));
        if (!box.at("up").get<bool>()) fmt::print("  {}\n", word(box, "trouble"));
        for (const auto& volume : box.at("volumes"))
            fmt::print("  part of {}\n", show_foreign(volume.get<std::string>()));
        for (const auto& volume : box.at("unclaimed"))
            fmt::print("  a part of {} that no volume claims: weft box clean {}\n",
                       show_foreign(volume.get<std::string>()), word(box, "name"));
    }
}

/// A command with one name: NAME and what all have.
struct Named {
    std::string name;
    ArrayWishes array;

    std::optional<int> read(const Command& self, const Arguments& arguments, const char* what) {
        CLI::App options;
        options.add_option("NAME", name, what)->required();
        array.declare(options);
        auto leave = parse(self, options, arguments);
        if (!leave && name.empty()) throw Misuse{"NAME is empty"};
        return leave;
    }
};

json list(const Command& self, const Arguments& arguments, const char* what, ArrayWishes& array,
          std::optional<int>& leave) {
    CLI::App options;
    array.declare(options);
    leave = parse(self, options, arguments);
    return leave ? json() : array.ask({{"do", what}});
}

}  // namespace

int box_add(const Command& self, const Arguments& arguments) {
    CLI::App options;
    std::string name, address;
    ArrayWishes array;
    options.add_option("NAME", name, "the box's name, as weft box serve was given it")->required();
    options.add_option("ADDRESS", address, "HOST:PORT it listens on")->required();
    bool join = false;
    options.add_flag("--join", join,
                     "if it is of another cluster, the controller becomes that cluster's: for one "
                     "whose state is lost");
    array.declare(options);
    if (auto leave = parse(self, options, arguments)) return *leave;
    return array.do_it({{"do", "add box"}, {"name", name}, {"address", address}, {"join", join}},
                       fmt::format("{} belongs to the array now.", show_foreign(name)));
}

int box_remove(const Command& self, const Arguments& arguments) {
    Named wishes;
    if (auto leave = wishes.read(self, arguments, "the box's name")) return *leave;
    return wishes.array.do_it(
        {{"do", "remove box"}, {"name", wishes.name}},
        fmt::format("{} belongs to the array no longer.", show_foreign(wishes.name)));
}

int box_clean(const Command& self, const Arguments& arguments) {
    CLI::App options;
    std::string name;
    bool force = false;
    ArrayWishes array;
    options.add_option("NAME", name, "the box's name")->required();
    options.add_flag("--force", force,
                     "also parts of volumes that could be assembled from what boxes have");
    array.declare(options);
    if (auto leave = parse(self, options, arguments)) return *leave;
    auto answer = array.ask({{"do", "clean box"}, {"name", name}, {"force", force}});
    const auto removed = answer.value("removed", json::array());
    if (array.as_json) {
        answer["name"] = name;
        answer["force"] = force;
        return fmt::print("{}\n", show_json(answer)), done;
    }
    for (const auto& part : removed)
        fmt::print("The part of {} on {} is gone: {}.\n", word(part, "volume"), show_foreign(name),
                   show_size(part.at("bytes").get<std::uint64_t>()));
    if (removed.empty())
        fmt::print("There was nothing to remove: {} has no part that no volume claims.\n",
                   show_foreign(name));
    return done;
}

int box_list(const Command& self, const Arguments& arguments) {
    ArrayWishes array;
    std::optional<int> leave;
    auto boxes = list(self, arguments, "list boxes", array, leave);
    if (leave) return *leave;
    if (array.as_json)
        fmt::print("{}\n", show_json(boxes));
    else
        print_boxes(boxes);
    return done;
}

int spare_add(const Command& self, const Arguments& arguments) {
    Named wishes;
    if (auto leave = wishes.read(self, arguments, "a box that is part of no volume")) return *leave;
    return wishes.array.do_it(
        {{"do", "add spare"}, {"box", wishes.name}},
        fmt::format("{} takes the place of the next box that is lost.", show_foreign(wishes.name)));
}

int spare_remove(const Command& self, const Arguments& arguments) {
    Named wishes;
    if (auto leave = wishes.read(self, arguments, "a spare")) return *leave;
    return wishes.array.do_it({{"do", "remove spare"}, {"box", wishes.name}},
                              fmt::format("{} is no spare any more.", show_foreign(wishes.name)));
}

int spare_list(const Command& self, const Arguments& arguments) {
    ArrayWishes array;
    std::optional<int> leave;
    auto boxes = list(self, arguments, "list boxes", array, leave);
    if (leave) return *leave;
    json spares = json::array();
    for (const auto& box : boxes)
        if (box.at("spare").get<bool>()) spares.push_back(box);
    if (array.as_json)
        fmt::print("{}\n", show_json(spares));
    else
        print_boxes(spares);
    return done;
}

int host_list(const Command& self, const Arguments& arguments) {
    ArrayWishes array;
    std::optional<int> leave;
    auto hosts = list(self, arguments, "list hosts", array, leave);
    if (leave) return *leave;
    if (array.as_json) return fmt::print("{}\n", show_json(hosts)), done;
    for (const auto& host : hosts)
        fmt::print("{} at {} uses {}, {} requests so far\n", word(host, "name"),
                   word(host, "address"), word(host, "volume"),
                   host.at("requests").get<std::uint64_t>());
    return done;
}

}  // namespace weft::cli
