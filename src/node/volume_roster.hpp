// SPDX-License-Identifier: Apache-2.0
// Which boxes a volume counts on, as its hosts have to know: one that was counted out may have
// transfers under way that nobody waits for any more, and must not reach memory that has another
// use by then. So every answer to a host tells it who came and went since it last heard.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "wire/array_host.hpp"
#include "wire/array_superblock.hpp"

namespace weft::node {

class VolumeRoster {
public:
    static constexpr std::size_t gone_max = 64;  ///< boxes that went and are remembered

    /// As the volume is now: who has come and gone since the last time, in no order. Cheap where
    /// nothing has changed.
    std::vector<wire::HostNews> follow(const wire::ArrayVolume& volume);

    /// The number of the last news.
    std::uint32_t number() const { return number_; }
    /// What is new to one who has heard all up to this number, in order. None: more than fits one
    /// answer, or is still known.
    std::optional<std::vector<wire::HostNews>> since(std::uint32_t heard) const;

private:
    void forget_the_oldest();

    std::optional<wire::Generation> generation_;
    std::uint32_t number_ = 0;
    std::uint32_t forgotten_ = 0;                        ///< news up to this may be missing
    std::map<wire::BoxIdentity, wire::HostNews> boxes_;  ///< the last news of each
};

}  // namespace weft::node
