// SPDX-License-Identifier: Apache-2.0
// `weft controller status` and `weft controller step-down`: who is in office, and shall not be.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/array_options.hpp"
#include "cli/text.hpp"

namespace weft::cli {

using nlohmann::json;

int controller_status(const Command& self, const Arguments& arguments) {
    CLI::App options;
    ArrayWishes wishes;
    wishes.declare(options);
    if (auto leave = parse(self, options, arguments)) return *leave;
    const auto where = wishes.where();
    const auto answers = ask_for_office(where, false);
    json all = json::array();
    bool any = false;
    for (std::size_t i = 0; i < answers.size(); ++i) {
        const auto& answer = answers[i];
        const auto address = show_address(where.addresses[i]);
        auto said = answer.trouble ? json{{"trouble", *answer.trouble}}
                                   : json::parse(answer.document, nullptr, false);
        said["address"] = address;
        any = any || !answer.trouble;
        if (!wishes.as_json)
            fmt::print("{}  {}\n", address,
                       answer.trouble ? show_foreign(*answer.trouble)
                                      : fmt::format("{}, epoch {}", show_foreign(answer.state),
                                                    said.value("epoch", std::uint64_t{0})));
        all.push_back(std::move(said));
    }
    if (wishes.as_json) fmt::print("{}\n", show_json(all));
    return any ? done : refused;
}

int controller_step_down(const Command& self, const Arguments& arguments) {
    CLI::App options;
    ArrayWishes wishes;
    wishes.declare(options);
    if (auto leave = parse(self, options, arguments)) return *leave;
    return wishes.do_it({{"do", "step down"}}, "The controller steps down.");
}

}  // namespace weft::cli
