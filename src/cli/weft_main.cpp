// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "cli/command.hpp"

namespace {

/// Whoever starts us without them: the first file we open must not become standard error.
void fill_standard_descriptors() {
    int descriptor = 0;
    while (descriptor >= 0 && descriptor <= STDERR_FILENO) descriptor = ::open("/dev/null", O_RDWR);
    if (descriptor > STDERR_FILENO) ::close(descriptor);
}

}  // namespace

int main(int count, char** words) {
    fill_standard_descriptors();
    std::signal(SIGPIPE, SIG_IGN);  // a reader that leaves is an error to report, not a death
    int status = weft::cli::run({words + 1, words + count});
    // What could not be written was not said, and then we did not succeed.
    if (std::fflush(stdout) != 0 && status == weft::cli::done) status = weft::cli::refused;
    return status;
}
