// SPDX-License-Identifier: Apache-2.0
#include "cli/command.hpp"

int main(int count, char** words) {
    return weft::cli::run({words + 1, words + count});
}
