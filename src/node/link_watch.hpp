// SPDX-License-Identifier: Apache-2.0
// What is worth an event of what boxes say of their links, look by look: a link that is congested
// or stalled for two looks, once, and its recovery; connections that ended, counted, at most once
// in a minute for each link. None of them says that a box or a link is broken: transfers go on.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "node/controller_report.hpp"

namespace weft::node {

class LinkWatch {
public:
    static constexpr Duration period = std::chrono::seconds(5);
    static constexpr Duration quiet_for = std::chrono::seconds(60);

    struct News {
        std::string from;  ///< whose link
        std::string what;  ///< a sentence about it
    };
    std::vector<News> look(std::span<const LinkReport> links, Instant now);

private:
    enum class Trouble : std::uint8_t { none, slow };
    struct Watched {
        Trouble told = Trouble::none;
        unsigned looks = 0;                    ///< in a row that say otherwise than was told
        std::uint64_t ended = 0, retried = 0;  ///< counted when it was told
        std::optional<Instant> ends_told_at;
        bool seen = false;  ///< at this look
    };

    static std::string slowness_of(const LinkReport& report);

    std::map<std::pair<std::string, std::string>, Watched> links_;
};

}  // namespace weft::node
