// SPDX-License-Identifier: Apache-2.0
#include "support/golden.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <fstream>

namespace weft::test {

Bytes from_hex(std::string_view text) {
    Bytes octets;
    int high = -1;
    for (char letter : text) {
        if (std::isspace(static_cast<unsigned char>(letter))) continue;
        auto digit = std::string_view("0123456789abcdef")
                         .find(static_cast<char>(std::tolower(static_cast<unsigned char>(letter))));
        if (digit == std::string_view::npos) {
            ADD_FAILURE() << "'" << letter << "' is not a hexadecimal digit in: " << text;
            return octets;
        }
        if (high < 0) {
            high = static_cast<int>(digit);
        } else {
            octets.push_back(static_cast<std::byte>(high << 4 | static_cast<int>(digit)));
            high = -1;
        }
    }
    if (high >= 0) ADD_FAILURE() << "half an octet in: " << text;
    return octets;
}

std::string to_hex(ConstBuffer octets) {
    constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (auto octet : octets) {
        auto value = std::to_integer<unsigned>(octet);
        if (!text.empty()) text += ' ';
        text += digits[value >> 4];
        text += digits[value & 15];
    }
    return text;
}

Bytes golden(const std::string& name) {
    std::ifstream file(std::string(WEFT_GOLDEN "/") + name);
    if (!file) {
        ADD_FAILURE() << "no golden file " << name;
        return {};
    }
    Bytes octets;
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line[0] == '#') continue;
        auto space = line.find(' ');
        if (space == std::string::npos ||
            std::stoul(line.substr(0, space), nullptr, 16) != octets.size()) {
            ADD_FAILURE() << name << ": wrong offset, expected " << octets.size() << ": " << line;
            return octets;
        }
        auto part = from_hex(std::string_view(line).substr(space, line.find('|') - space));
        octets.insert(octets.end(), part.begin(), part.end());
    }
    return octets;
}

Bytes join(std::initializer_list<ConstBuffer> parts) {
    Bytes all;
    for (auto part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
}

}  // namespace weft::test
