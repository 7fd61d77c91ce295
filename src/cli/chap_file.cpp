// SPDX-License-Identifier: Apache-2.0
#include "cli/chap_file.hpp"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "cli/command.hpp"
#include "cli/secret_file.hpp"
#include "cli/text.hpp"

namespace weft::cli {

void read_chap(const std::string& path, iscsi::TargetRules& rules) {
    std::ifstream file(path);
    if (!file) throw Refusal{fmt::format("{}: it cannot be read", show_foreign(path))};
    require_private(path);
    std::string line;
    for (unsigned number = 1; std::getline(file, line); ++number) {
        if (line.empty() || line.starts_with('#')) continue;
        std::istringstream words(line);
        std::string kind, name, secret, more;
        words >> kind >> name >> secret;
        if (secret.empty() || words >> more || (kind != "user" && kind != "target"))
            throw Refusal{
                fmt::format("{}: line {} is not 'user NAME SECRET' or 'target NAME SECRET'",
                            show_foreign(path), number)};
        if (!iscsi::long_enough(secret))
            throw Refusal{fmt::format("{}: the secret in line {} has fewer than {} characters",
                                      show_foreign(path), number, iscsi::chap_secret_min)};
        if (kind == "user")
            rules.users.push_back({name, secret});
        else
            rules.own = {name, secret};
    }
    if (rules.users.empty())
        throw Refusal{fmt::format("{}: there is no line 'user NAME SECRET'", show_foreign(path))};
    for (const auto& user : rules.users)
        if (rules.own && rules.own->secret == user.secret)
            throw Refusal{
                fmt::format("{}: a user has the target's own secret", show_foreign(path))};
}

}  // namespace weft::cli
