// SPDX-License-Identifier: Apache-2.0
#include "cli/array_options.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/exporting.hpp"
#include "cli/text.hpp"

namespace weft::cli {

using nlohmann::json;

void ArrayWishes::declare(CLI::App& options) {
    options
        .add_option("--controller", controller,
                    "HOST:PORT of the array's controller; of several, with commas between them")
        ->required();
    options.add_option("--key", key, "a file with the key, for a controller that has one");
    options.add_flag("--json", as_json, "as a JSON document");
}

AtController ArrayWishes::where() const {
    return {.addresses = tcp_addresses_of(controller), .key = read_key(key)};
}

json ArrayWishes::ask(const json& request) const {
    return ask_controller(where(), request);
}

int ArrayWishes::do_it(const json& request, const std::string& sentence) const {
    auto answer = ask(request);
    for (const auto& [word, value] : request.items())
        if (word != "do") answer[word] = value;  // what it was done to
    fmt::print("{}\n", as_json ? show_json(answer) : sentence);
    return done;
}

void declare_host_connections(CLI::App& options, std::size_t& most) {
    options
        .add_option("--host-connections", most,
                    "connections from one address, and sessions of one initiator with one target, "
                    "at a time; more are refused")
        ->capture_default_str()
        ->check(CLI::Range(1, 1024));
}

std::uint64_t size_of(const std::string& text) {
    auto size = parse_size(text);
    if (!size) throw Misuse{why_no_size(text)};
    return *size;
}

std::uint64_t volume_size_of(const std::string& text) {
    const auto size = size_of(text);
    if (size == 0) throw Misuse{"a volume of no size is of no use; say one like 512M or 1G"};
    return size;
}

}  // namespace weft::cli
