// SPDX-License-Identifier: Apache-2.0
#include "cli/secret_file.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include "cli/command.hpp"
#include "cli/text.hpp"

namespace weft::cli {

void require_private(const std::string& path) {
    constexpr unsigned by_others = S_IRWXG | S_IRWXO, all = by_others | S_IRWXU;
    struct stat facts {};
    if (::stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return;
    if ((facts.st_mode & by_others) == 0) return;
    const auto shown = show_foreign(path);
    throw Refusal{fmt::format(
        "{}: its mode is {:04o}, so other users of this machine can get at the secret in it; "
        "say: chmod 600 {}",
        shown, facts.st_mode & all, shown)};
}

}  // namespace weft::cli
