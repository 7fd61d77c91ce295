// SPDX-License-Identifier: Apache-2.0
#include "sim/raid_ledger.hpp"

#include <algorithm>
#include <cstring>

#include "base/crc32c.hpp"
#include "raid/code.hpp"

namespace weft::sim {

namespace {

constexpr std::uint64_t key = 0x57'65'66'74'42'6c'6f'63;

constexpr RaidLedger::WriteNumber nobody_knows = ~RaidLedger::WriteNumber{0};

/// The first words of a block; what follows is made from them.
struct Label {
    std::uint64_t key, offset, host, command, version, checksum;
};

std::uint64_t checksum_of(const Label& label) {
    Label copy = label;
    copy.checksum = 0;
    return crc32c(ConstBuffer(reinterpret_cast<const std::byte*>(&copy), sizeof copy));
}

void fill(const Label& label, Buffer block) {
    std::memcpy(block.data(), &label, sizeof label);
    std::uint64_t word = label.version * 0x9e37'79b9'7f4a'7c15 ^ label.offset;
    for (std::size_t at = sizeof label; at < block.size(); at += sizeof word) {
        word = word * 0x5851'f42d'4c95'7f2d + 0x1405'7b7e'f767'814f;
        std::memcpy(block.data() + at, &word, sizeof word);
    }
}

}  // namespace

RaidLedger::WriteNumber RaidLedger::begin_write(unsigned host, std::uint64_t command,
                                                raid::Range range, Moment now, Buffer octets) {
    writes_.push_back({range, host, command, now, {}});
    const WriteNumber number = writes_.size();
    for (std::uint64_t at = 0; at < range.length; at += raid::slice_size) {
        Label label{key, range.offset + at, host, command, number, 0};
        label.checksum = checksum_of(label);
        fill(label, octets.subspan(at, raid::slice_size));
    }
    return number;
}

void RaidLedger::write_answered(WriteNumber number, Moment now) {
    auto& write = writes_[number - 1];
    write.answered = now;
    for (std::uint64_t at = 0; at < write.range.length; at += raid::slice_size) {
        auto& span = blocks_[write.range.offset + at][number];
        span.first_end = std::min(span.first_end, now);
        span.last_begin = std::max(span.last_begin, write.began);
    }
}

void RaidLedger::read_answered(raid::Range range, Moment began, Moment now, ConstBuffer octets) {
    for (std::uint64_t at = 0; at < range.length; at += raid::slice_size) {
        const auto block = octets.subspan(at, raid::slice_size);
        const auto number = read_block(range.offset + at, block, "a read");
        if (!number) continue;
        auto& span = blocks_[range.offset + at][*number];
        span.first_end = std::min(span.first_end, now);
        span.last_begin = std::max(span.last_begin, began);
    }
}

std::optional<RaidLedger::WriteNumber> RaidLedger::read_block(std::uint64_t offset,
                                                              ConstBuffer block, const char* when) {
    ++blocks_read_;
    if (std::ranges::all_of(block, [](std::byte octet) { return octet == std::byte{0}; })) return 0;
    Label label;
    std::memcpy(&label, block.data(), sizeof label);
    const auto at = " at " + std::to_string(offset) + " in " + when;
    if (label.key != key || label.checksum != checksum_of(label) || label.version == 0 ||
        label.version > writes_.size())
        return complaints_.add("S4: a block nobody wrote" + at), std::nullopt;
    if (label.offset != offset)
        return complaints_.add("S4: the block of " + std::to_string(label.offset) + " found" + at),
               std::nullopt;
    std::vector<std::byte> expected(block.size());
    fill(label, expected);
    if (!std::ranges::equal(expected, block))
        return complaints_.add("S6: " + name_of(label.version) + " is damaged" + at), std::nullopt;
    return label.version;
}

void RaidLedger::check(ConstBuffer final, const std::vector<raid::Range>& unreadable, bool atomic) {
    std::vector<WriteNumber> found(size_ / raid::slice_size, nobody_knows);
    for (std::uint64_t at = 0; at < size_; at += raid::slice_size) {
        const bool is_lost = std::ranges::any_of(unreadable, [&](const raid::Range& range) {
            return range.offset <= at && at < range.offset + range.length;
        });
        if (is_lost) continue;
        const auto block = final.subspan(at, raid::slice_size);
        if (auto number = read_block(at, block, "the end")) found[at / raid::slice_size] = *number;
    }
    for (const auto& [offset, spans] : blocks_) check_block(offset, spans);
    if (atomic) check_whole(found);
}

/// A value was there at least from the first end of what concerns it to the last beginning, if that
/// is later. Such times of two values cannot overlap, and a value all of whose life lies within
/// another's cannot have been.
void RaidLedger::check_block(std::uint64_t offset, const std::map<WriteNumber, Span>& spans) {
    auto began = [&](WriteNumber number) { return number == 0 ? 0 : writes_[number - 1].began; };
    for (const auto& [one, span] : spans) {
        if (span.first_end < began(one))
            complaints_.add("S2: " + name_of(one) + " was read before it was written");
        for (const auto& [other, rest] : spans) {
            if (one == other || span.first_end >= span.last_begin) continue;
            const bool other_lasts = rest.first_end < rest.last_begin;
            const auto first = std::min(rest.first_end, rest.last_begin);
            const auto last = std::max(rest.first_end, rest.last_begin);
            const bool clash = other_lasts
                                   ? one < other && first < span.last_begin && span.first_end < last
                                   : first > span.first_end && last < span.last_begin;
            if (clash)
                complaints_.add("S2: at " + std::to_string(offset) + ": " + name_of(one) + " and " +
                                name_of(other) + " cannot both have been so");
        }
    }
}

/// S3, where it can be told: of the blocks of a write that nobody wrote later, all or none are its.
void RaidLedger::check_whole(const std::vector<WriteNumber>& found) {
    for (WriteNumber number = 1; number <= writes_.size(); ++number) {
        const auto& write = writes_[number - 1];
        bool is_there = false, is_missing = false;
        for (std::uint64_t at = 0; at < write.range.length; at += raid::slice_size) {
            const auto offset = write.range.offset + at;
            const auto is_later = [&](const Write& other) {
                return &other != &write && other.range.offset <= offset &&
                       offset < other.range.offset + other.range.length &&
                       (!write.answered || other.began > write.began || !other.answered ||
                        *other.answered > write.began);
            };
            if (found[offset / raid::slice_size] == nobody_knows) continue;
            if (std::ranges::any_of(writes_, is_later)) continue;
            (found[offset / raid::slice_size] == number ? is_there : is_missing) = true;
        }
        if (is_there && is_missing) complaints_.add("S3: " + name_of(number) + " was done in part");
        if (write.answered && is_missing) complaints_.add("S1: " + name_of(number) + " is lost");
    }
}

std::string RaidLedger::name_of(WriteNumber number) const {
    if (number == 0) return "what was there in the beginning";
    const auto& write = writes_[number - 1];
    return "write " + std::to_string(number) + " (host " + std::to_string(write.host) +
           ", command " + std::to_string(write.command) + ")";
}

}  // namespace weft::sim
