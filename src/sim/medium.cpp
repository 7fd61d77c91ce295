// SPDX-License-Identifier: Apache-2.0
#include "sim/medium.hpp"

#include <algorithm>
#include <cstring>

namespace weft::sim {

void Medium::assign(Image& image, std::uint64_t sector, const Contents& contents) {
    if (contents)
        image.insert_or_assign(sector, *contents);
    else
        image.erase(sector);
}

void Medium::read(std::uint64_t offset, Buffer into) const {
    std::fill(into.begin(), into.end(), std::byte{0});
    std::uint64_t first = offset / sector_bytes;
    std::uint64_t end = first + into.size() / sector_bytes;
    for (auto at = current_.lower_bound(first); at != current_.end() && at->first < end; ++at)
        std::memcpy(into.data() + (at->first - first) * sector_bytes, at->second.data(),
                    sector_bytes);
}

void Medium::put(std::uint64_t sector, const Contents& contents, Reach reach) {
    assign(current_, sector, contents);
    if (reach == Reach::cache) {
        cache_[sector].push_back({last_write_, contents});
        ++cached_versions_;
        return;
    }
    // Older versions must not come back over this one at a power cut.
    if (auto older = cache_.find(sector); older != cache_.end()) {
        cached_versions_ -= older->second.size();
        cache_.erase(older);
    }
    assign(stable_, sector, contents);
}

void Medium::write(std::uint64_t offset, ConstBuffer bytes, Reach reach) {
    ++last_write_;
    for (std::uint64_t sector = offset / sector_bytes; !bytes.empty(); ++sector) {
        Sector contents;
        std::memcpy(contents.data(), bytes.data(), sector_bytes);
        put(sector, contents, reach);
        bytes = bytes.subspan(sector_bytes);
    }
    make_room();
}

void Medium::write_zeroes(std::uint64_t offset, std::uint64_t length, Zeroes kind, Reach reach) {
    ++last_write_;
    Contents zeroes = kind == Zeroes::hole ? Contents() : Contents(Sector{});
    for (std::uint64_t at = offset; at < offset + length; at += sector_bytes)
        put(at / sector_bytes, zeroes, reach);
    make_room();
}

void Medium::make_room() {
    if (cached_versions_ <= cache_sectors_) return;
    std::uint64_t oldest = last_write_;
    for (const auto& [sector, versions] : cache_) oldest = std::min(oldest, versions[0].write);
    // The older half: not everything, and not so little that this is done again at once.
    flush(oldest + (last_write_ - oldest) / 2);
    if (cached_versions_ > cache_sectors_) flush(last_write_);
}

std::uint64_t Medium::unallocated(std::uint64_t offset, std::uint64_t length) const {
    std::uint64_t first = offset / sector_bytes, count = length / sector_bytes;
    auto taken = std::distance(current_.lower_bound(first), current_.lower_bound(first + count));
    return (count - static_cast<std::uint64_t>(taken)) * sector_bytes;
}

Extent Medium::extent(std::uint64_t offset, std::uint64_t length) const {
    auto state = [this](Image::const_iterator at, std::uint64_t sector) {
        if (at == current_.end() || at->first != sector) return Extent{0, true, true};
        return Extent{0, false, at->second == Sector{}};
    };
    std::uint64_t first = offset / sector_bytes, end = first + length / sector_bytes;
    auto at = current_.lower_bound(first);
    Extent run = state(at, first);
    std::uint64_t sector = first;
    if (run.hole) {
        sector = at == current_.end() ? end : std::min(end, at->first);
    } else {
        for (; sector < end && state(at, sector) == run; ++sector) ++at;
    }
    run.length = (sector - first) * sector_bytes;
    return run;
}

void Medium::flush(std::uint64_t mark) {
    for (auto at = cache_.begin(); at != cache_.end();) {
        auto& [sector, versions] = *at;
        auto newer = std::find_if(versions.begin(), versions.end(),
                                  [mark](const Version& version) { return version.write > mark; });
        if (newer != versions.begin()) {
            assign(stable_, sector, std::prev(newer)->contents);
            cached_versions_ -= static_cast<std::size_t>(newer - versions.begin());
            versions.erase(versions.begin(), newer);
        }
        at = versions.empty() ? cache_.erase(at) : std::next(at);
    }
}

void Medium::power_cut(Random& random) {
    enum class Fate : std::uint8_t { kept, lost, torn };
    std::map<std::uint64_t, Fate> fates;
    for (const auto& [sector, versions] : cache_)
        for (const Version& version : versions) fates.emplace(version.write, Fate::kept);
    for (auto& [write, fate] : fates) fate = static_cast<Fate>(random.below(3));
    for (const auto& [sector, versions] : cache_) {
        for (const Version& version : versions) {
            Fate fate = fates[version.write];
            bool kept = fate == Fate::kept || (fate == Fate::torn && random.chance(50));
            if (kept) assign(stable_, sector, version.contents);
        }
    }
    cache_.clear();
    cached_versions_ = 0;
    current_ = stable_;
}

void Medium::rot(std::uint64_t byte, unsigned bit) {
    std::uint64_t sector = byte / sector_bytes;
    Sector& rotten = stable_[sector];
    rotten[byte % sector_bytes] ^= static_cast<std::byte>(1u << bit);
    if (!cache_.contains(sector)) current_[sector] = rotten;
}

}  // namespace weft::sim
