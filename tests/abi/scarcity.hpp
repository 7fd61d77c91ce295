// SPDX-License-Identifier: Apache-2.0
// What a process may run out of: descriptors.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <vector>

namespace weft::test {

/// While it lives, so many more can be had and no more.
class FewDescriptors {
public:
    explicit FewDescriptors(std::size_t left) {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        auto few = before_;
        few.rlim_cur = 1024;
        ::setrlimit(RLIMIT_NOFILE, &few);
        for (int one; (one = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;)
            taken_.push_back(one);
        for (; left > 0 && !taken_.empty(); --left) give_one();
    }
    ~FewDescriptors() {
        while (!taken_.empty()) give_one();
        ::setrlimit(RLIMIT_NOFILE, &before_);
    }
    FewDescriptors(const FewDescriptors&) = delete;
    FewDescriptors& operator=(const FewDescriptors&) = delete;

private:
    void give_one() {
        ::close(taken_.back());
        taken_.pop_back();
    }

    rlimit before_{};
    std::vector<int> taken_;
};

}  // namespace weft::test
