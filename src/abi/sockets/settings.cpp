// SPDX-License-Identifier: Apache-2.0
#include "abi/sockets/settings.hpp"

#include <fcntl.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "abi/sockets/messages.hpp"

namespace weft::abi::sockets {
namespace {

struct Defaults {
    Settings settings;
    std::uint32_t polling_us = limits::polling_us_default;
};

/// A file with one number in it, or the value given.
std::uint32_t number_in(const char* file, std::uint32_t otherwise, std::uint32_t least,
                        std::uint32_t most) {
    std::ifstream stream(std::string("/etc/rdma/rsocket/") + file);
    std::int64_t number = 0;
    if (!(stream >> number)) return otherwise;
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(number, least, most));
}

Defaults read_defaults() {
    using namespace limits;
    Defaults made;
    auto& is = made.settings;
    is.receive_bytes =
        number_in("mem_default", is.receive_bytes, buffer_bytes_min, buffer_bytes_max);
    is.send_bytes = number_in("wmem_default", is.send_bytes, buffer_bytes_min, buffer_bytes_max);
    is.send_entries =
        number_in("sqsize_default", is.send_entries, queue_entries_min, queue_entries_max);
    is.receive_entries =
        number_in("rqsize_default", is.receive_entries, queue_entries_min, queue_entries_max);
    is.inline_bytes = number_in("inline_default", is.inline_bytes, 0, queue_entries_max);
    is.mappings = count_of(scale_of(number_in("iomap_size", is.mappings, 0, mappings_max)));
    made.polling_us = number_in("polling_time", made.polling_us, 0, 1'000'000);
    return made;
}

const Defaults& defaults() {
    static const Defaults read = read_defaults();
    return read;
}

}  // namespace

bool Settings::is_nonblocking() const {
    return (status_flags & O_NONBLOCK) != 0;
}

const Settings& default_settings() {
    return defaults().settings;
}

std::uint32_t polling_us() {
    return defaults().polling_us;
}

}  // namespace weft::abi::sockets
