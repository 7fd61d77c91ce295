// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz harness over the files of its corpus: a test that needs no fuzzer. A corpus that is
// missing or empty is a failure, since a test that looked at nothing must not pass.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argument_count, char** arguments) {
    if (argument_count != 2) {
        std::fprintf(stderr, "usage: %s CORPUS_FOLDER\n", arguments[0]);
        return 2;
    }
    std::error_code trouble;
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(arguments[1], trouble))
        if (entry.is_regular_file()) files.push_back(entry.path());
    if (files.empty()) {
        std::fprintf(stderr, "%s holds no inputs\n", arguments[1]);
        return 1;
    }
    std::sort(files.begin(), files.end());
    for (const auto& path : files) {
        std::printf("%s\n", path.filename().c_str());
        std::fflush(stdout);  // so that the last name printed is the one that crashed
        std::ifstream file(path, std::ios::binary);
        std::vector<char> octets{std::istreambuf_iterator<char>(file), {}};
        LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(octets.data()), octets.size());
    }
    std::printf("%zu inputs\n", files.size());
}
