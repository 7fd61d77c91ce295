// SPDX-License-Identifier: Apache-2.0
#include "sim/durability_checker.hpp"

#include <algorithm>
#include <array>

#include "base/check.hpp"
#include "sim/disk_spec.hpp"

namespace weft::sim {
namespace {

constexpr std::array<std::byte, sector_bytes> zero_sector{};

}  // namespace

DurabilityChecker::Contents DurabilityChecker::hash(ConstBuffer sector) {
    std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
    for (std::byte octet : sector)
        hash = (hash ^ std::to_integer<std::uint64_t>(octet)) * 0x100000001b3;
    return hash;
}

DurabilityChecker::Sector& DurabilityChecker::at(std::uint64_t sector) {
    auto [found, is_new] = sectors_.try_emplace(sector);
    if (is_new) found->second.versions.push_back({hash(zero_sector), Certainty::certain, 0});
    return found->second;
}

bool DurabilityChecker::is_busy(std::uint64_t offset, std::uint64_t length) const {
    auto end = sectors_.lower_bound((offset + length + sector_bytes - 1) / sector_bytes);
    return std::any_of(sectors_.lower_bound(offset / sector_bytes), end,
                       [](const auto& entry) { return entry.second.busy; });
}

void DurabilityChecker::ask(std::uint64_t number, Contents contents) {
    Sector& sector = at(number);
    WEFT_CHECK(!sector.busy);
    sector.busy = true;
    sector.settled = false;
    sector.versions.push_back({contents, Certainty::asked, 0});
}

void DurabilityChecker::write_asked(std::uint64_t offset, ConstBuffer bytes) {
    for (std::uint64_t number = offset / sector_bytes; !bytes.empty(); ++number) {
        ask(number, hash(bytes.first(sector_bytes)));
        bytes = bytes.subspan(sector_bytes);
    }
}

void DurabilityChecker::zeroes_asked(std::uint64_t offset, std::uint64_t length) {
    for (std::uint64_t at = offset; at < offset + length; at += sector_bytes)
        ask(at / sector_bytes, hash(zero_sector));
}

void DurabilityChecker::trim_asked(std::uint64_t offset, std::uint64_t length) {
    for (std::uint64_t byte = offset; byte < offset + length; byte += sector_bytes) {
        ask(byte / sector_bytes, hash(zero_sector));
        // Uncertain whatever the answer will be: a device may keep what was trimmed.
        at(byte / sector_bytes).versions.back().certainty = Certainty::uncertain;
    }
}

void DurabilityChecker::write_answered(std::uint64_t offset, std::uint64_t length, Lasting lasting,
                                       const Result<void>& outcome) {
    ++answers_;
    for (std::uint64_t byte = offset; byte < offset + length; byte += sector_bytes) {
        Sector& sector = at(byte / sector_bytes);
        WEFT_CHECK(sector.busy);
        sector.busy = false;
        Version& newest = sector.versions.back();
        if (newest.certainty != Certainty::asked) continue;  // a trim
        newest.certainty = outcome ? Certainty::certain : Certainty::uncertain;
        newest.answered = answers_;
        if (outcome && lasting == Lasting::durable) forget_before(sector, answers_);
    }
}

void DurabilityChecker::forget_before(Sector& sector, std::uint64_t answered_by) {
    auto& versions = sector.versions;
    auto durable = std::find_if(versions.rbegin(), versions.rend(), [&](const Version& version) {
        return version.certainty == Certainty::certain && version.answered <= answered_by;
    });
    if (durable != versions.rend()) versions.erase(versions.begin(), durable.base() - 1);
}

void DurabilityChecker::flush_answered(std::uint64_t asked, const Result<void>& outcome) {
    if (!outcome) return;
    for (auto& [number, sector] : sectors_) forget_before(sector, asked);
}

void DurabilityChecker::read_asked(std::uint64_t offset, std::uint64_t length) {
    for (std::uint64_t byte = offset; byte < offset + length; byte += sector_bytes) {
        Sector& sector = at(byte / sector_bytes);
        WEFT_CHECK(!sector.busy);
        sector.busy = true;
    }
}

std::optional<std::string> DurabilityChecker::read_answered(std::uint64_t offset, ConstBuffer bytes,
                                                            const Result<void>& outcome) {
    std::optional<std::string> wrong;
    ++answers_;
    for (std::uint64_t number = offset / sector_bytes; !bytes.empty(); ++number) {
        Sector& sector = at(number);
        sector.busy = false;
        Contents found = hash(bytes.first(sector_bytes));
        bytes = bytes.subspan(sector_bytes);
        if (!outcome) continue;

        auto& versions = sector.versions;
        auto certain = std::find_if(versions.rbegin(), versions.rend(), [](const Version& version) {
            return version.certainty == Certainty::certain;
        });
        auto first = certain == versions.rend() ? versions.begin() : certain.base() - 1;
        auto match = std::find_if(first, versions.end(), [&](const Version& version) {
            return version.contents == found;
        });
        if (match == versions.end()) {
            wrong = "sector " + std::to_string(number) + " holds none of the " +
                    std::to_string(versions.end() - first) + " contents it may have";
        } else {
            // Seen once, it is what the device holds: no later read may show another.
            std::rotate(match, match + 1, versions.end());
            versions.back().certainty = Certainty::certain;
            versions.back().answered = answers_;
            if (sector.settled) versions.erase(versions.begin(), versions.end() - 1);
        }
    }
    return wrong;
}

void DurabilityChecker::crashed() {
    for (auto& [number, sector] : sectors_) {
        sector.busy = false;
        sector.settled = true;
        for (Version& version : sector.versions) version.certainty = Certainty::uncertain;
    }
}

}  // namespace weft::sim
