// SPDX-License-Identifier: Apache-2.0
#include "cli/exporting.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error_text.hpp"
#include "block/memory_disk.hpp"
#include "cli/command.hpp"
#include "cli/text.hpp"
#include "linux/anonymous_memory.hpp"

namespace weft::cli {

std::unique_ptr<BlockDevice> make_memory_disk(const std::string& text, const std::string& limit) {
    auto size = parse_size(text);
    if (!size || *size == 0) throw Misuse{fmt::format("'{}' is not a size like 512M or 1G", text)};
    auto most = limit.empty() ? size : parse_size(limit);
    if (!most || *most == 0) throw Misuse{fmt::format("'{}' is not a size like 512M", limit)};
    auto memory = linux::make_anonymous_memory(*size);
    if (!memory)
        throw Refusal{fmt::format("a memory disk of {} cannot be had here: {}", show_size(*size),
                                  to_text(memory.error()))};
    return std::make_unique<block::MemoryDisk>(std::move(*memory), *most);
}

FileEngine file_engine_of(const std::string& name) {
    if (name == "ring") return FileEngine::ring;
    if (name == "threads") return FileEngine::threads;
    return FileEngine::automatic;
}

Address tcp_address_of(const std::string& text) {
    auto address = parse_tcp(text);
    if (!address) throw Misuse{fmt::format("'{}' is not HOST:PORT with a port up to 65535", text)};
    return *address;
}

std::vector<Address> tcp_addresses_of(const std::string& text) {
    std::vector<Address> addresses;
    for (std::size_t at = 0; at <= text.size();) {
        const auto end = std::min(text.find(',', at), text.size());
        addresses.push_back(tcp_address_of(text.substr(at, end - at)));
        at = end + 1;
    }
    return addresses;
}

}  // namespace weft::cli
