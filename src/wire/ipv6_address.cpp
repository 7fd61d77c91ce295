// SPDX-License-Identifier: Apache-2.0
#include "wire/ipv6_address.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

namespace weft::wire {
namespace {

constexpr std::size_t group_count = 8;
using Groups = std::array<std::uint16_t, group_count>;

Groups groups_of(const Octets<16>& octets) {
    Groups groups{};
    for (std::size_t i = 0; i < group_count; ++i)
        groups[i] = static_cast<std::uint16_t>(octets[2 * i] << 8 | octets[2 * i + 1]);
    return groups;
}

struct Run {
    std::size_t first = group_count;
    std::size_t size = 0;
};

/// The zero groups "::" stands for: the longest run, the first of equals, never a single group.
Run longest_zero_run(const Groups& groups) {
    Run best, current;
    for (std::size_t i = 0; i < group_count; ++i) {
        if (groups[i] != 0) {
            current = {};
            continue;
        }
        if (current.size++ == 0) current.first = i;
        if (current.size > best.size) best = current;
    }
    return best.size >= 2 ? best : Run{};
}

std::string dotted(std::uint16_t high, std::uint16_t low) {
    return std::to_string(high >> 8) + '.' + std::to_string(high & 255) + '.' +
           std::to_string(low >> 8) + '.' + std::to_string(low & 255);
}

/// Reads an address from left to right. "::" is remembered as the place where zeroes go in.
class AddressReader {
public:
    explicit AddressReader(std::string_view text) : text_(text) {}

    Result<Ipv6Address> read() {
        bool more = true;
        if (take("::")) gap_ = 0, more = !text_.empty();
        while (more) {
            if (count_ == group_count || !read_group()) return Error{.code = Code::malformed};
            if (text_.empty()) break;
            if (take("::")) {
                if (gap_) return Error{.code = Code::malformed};
                gap_ = count_;
                more = !text_.empty();
            } else if (!take(":")) {
                return Error{.code = Code::malformed};
            }
        }
        return finish();
    }

private:
    bool take(std::string_view mark) {
        if (!text_.starts_with(mark)) return false;
        text_.remove_prefix(mark.size());
        return true;
    }

    /// A number of at most `digits_max` digits.
    std::optional<std::uint16_t> number(int base, std::size_t digits_max) {
        std::uint16_t value = 0;
        const char* begin = text_.data();
        auto read = std::from_chars(begin, begin + std::min(text_.size(), digits_max), value, base);
        if (read.ec != std::errc{}) return std::nullopt;
        text_.remove_prefix(static_cast<std::size_t>(read.ptr - begin));
        return value;
    }

    bool read_group() {
        if (text_.substr(0, text_.find(':')).find('.') != std::string_view::npos)
            return read_dotted();
        auto group = number(16, 4);
        if (group) groups_[count_++] = *group;
        return group.has_value();
    }

    /// The last 32 bits as an IPv4 address.
    bool read_dotted() {
        if (count_ + 2 > group_count) return false;
        std::array<std::uint16_t, 4> parts{};
        for (std::size_t i = 0; i < parts.size(); ++i) {
            if (i > 0 && !take(".")) return false;
            bool padded = text_.size() > 1 && text_[0] == '0' && text_[1] >= '0' && text_[1] <= '9';
            auto part = number(10, 3);
            if (!part || *part > 255 || padded) return false;
            parts[i] = *part;
        }
        groups_[count_++] = static_cast<std::uint16_t>(parts[0] << 8 | parts[1]);
        groups_[count_++] = static_cast<std::uint16_t>(parts[2] << 8 | parts[3]);
        return text_.empty();
    }

    Result<Ipv6Address> finish() {
        if (gap_ ? count_ == group_count : count_ != group_count)
            return Error{.code = Code::malformed};
        if (gap_) {
            auto after = groups_.begin() + static_cast<std::ptrdiff_t>(*gap_);
            auto end = groups_.begin() + static_cast<std::ptrdiff_t>(count_);
            std::rotate(after, end, groups_.end());  // what follows the last group is still zero
        }
        Ipv6Address address;
        for (std::size_t i = 0; i < group_count; ++i) {
            address.octets[2 * i] = static_cast<std::uint8_t>(groups_[i] >> 8);
            address.octets[2 * i + 1] = static_cast<std::uint8_t>(groups_[i]);
        }
        return address;
    }

    std::string_view text_;
    Groups groups_{};
    std::size_t count_ = 0;
    std::optional<std::size_t> gap_;
};

}  // namespace

std::string Ipv6Address::text() const {
    auto groups = groups_of(octets);
    auto run = longest_zero_run(groups);
    bool mapped = run.first == 0 && run.size == 5 && groups[5] == 0xffff;
    if (mapped) return "::ffff:" + dotted(groups[6], groups[7]);
    std::string text;
    for (std::size_t i = 0; i < group_count; ++i) {
        if (i == run.first) {
            text += "::";
            i += run.size - 1;
            continue;
        }
        if (!text.empty() && text.back() != ':') text += ':';
        std::array<char, 4> digits;
        auto written = std::to_chars(digits.begin(), digits.end(), groups[i], 16);
        text.append(digits.begin(), written.ptr);
    }
    return text;
}

Result<Ipv6Address> Ipv6Address::from_text(std::string_view text) {
    return AddressReader(text).read();
}

Ipv6Address Ipv6Address::link_local(const EthernetAddress& link) {
    Ipv6Address address{{0xfe, 0x80}};
    std::copy_n(link.octets.begin(), 3, address.octets.begin() + 8);
    address.octets[8] ^= 2;  // the bit says "universal" here and "local" there
    address.octets[11] = 0xff;
    address.octets[12] = 0xfe;
    std::copy_n(link.octets.begin() + 3, 3, address.octets.begin() + 13);
    return address;
}

Ipv6Address Ipv6Address::solicited_node() const {
    Ipv6Address group{{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff}};
    std::copy_n(octets.begin() + 13, 3, group.octets.begin() + 13);
    return group;
}

EthernetAddress Ipv6Address::multicast_link() const {
    return {{0x33, 0x33, octets[12], octets[13], octets[14], octets[15]}};
}

bool Ipv6Address::is_loopback() const {
    Ipv6Address loopback;
    loopback.octets[15] = 1;
    return *this == loopback;
}

bool Ipv6Address::shares_prefix(const Ipv6Address& other, unsigned bits) const {
    unsigned whole = std::min(bits, 128u) / 8;
    if (!std::equal(octets.begin(), octets.begin() + whole, other.octets.begin())) return false;
    unsigned rest = std::min(bits, 128u) % 8;
    return rest == 0 || (octets[whole] ^ other.octets[whole]) >> (8 - rest) == 0;
}

}  // namespace weft::wire
