// SPDX-License-Identifier: Apache-2.0
#include "linux/descriptor_limit.hpp"

#include <sys/resource.h>

namespace weft::linux {

std::size_t raise_descriptor_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
    rlimit raised{limit.rlim_max, limit.rlim_max};
    return ::setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur;
}

}  // namespace weft::linux
