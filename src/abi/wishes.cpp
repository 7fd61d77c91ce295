// SPDX-License-Identifier: Apache-2.0
#include "abi/wishes.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>

namespace weft::abi {
namespace {

std::string_view variable(const char* name) {
    const char* value = ::secure_getenv(name);
    return value ? value : "";
}

/// A wish from the environment. What is none of `choices` is said on stderr, once, and taken for
/// the first of them: a misspelt wish should not pass unnoticed, nor end somebody's program.
std::string_view chosen(const char* name, std::initializer_list<std::string_view> choices) {
    auto value = variable(name);
    if (value.empty() || std::ranges::find(choices, value) != choices.end()) return value;
    static std::set<std::string_view> complained;
    if (complained.insert(name).second)
        std::fprintf(stderr, "weft: %s: there is no \"%s\", so it is \"%s\"\n", name,
                     std::string(value).c_str(), std::string(*choices.begin()).c_str());
    return *choices.begin();
}

}  // namespace

verbs::ConnectOptions connect_options() {
    auto mode = chosen("WEFT_MODE", {"peer-to-peer", "client-server", "revision-1"});
    verbs::ConnectOptions options;
    options.checksums = chosen("WEFT_CRC", {"on", "off"}) != "off";
    options.place_before_check = chosen("WEFT_PLACEMENT", {"verified", "eager"}) == "eager";
    options.plain_startup = mode == "revision-1";
    options.peer_to_peer = mode != "client-server" && !options.plain_startup;
    return options;
}

}  // namespace weft::abi
