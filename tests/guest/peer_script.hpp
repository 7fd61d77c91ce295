// SPDX-License-Identifier: Apache-2.0
// What kernel_peer (on the kernel's siw) and weft_peer (on ours) have in common: their command line
// and the few words they say to each other, so that either can be at either end.
//
// Both sides begin with an Offer of their memory. Then the client takes its steps, or asks the
// server to take them: "perform STEP". A step may need help: "fill SIZE SEED" and "check SIZE SEED"
// are about the helper's window; "expect plain" and "expect solicited" announce a "payload". Each
// of these is answered with "ok" or "bad". Words are text, so that captures read well.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace peer {

constexpr std::uint32_t words_max = 512;  // of a receive
constexpr std::uint32_t receives = 16;    // posted at any time; a step needs two
constexpr std::uint32_t small_region = 4096;

/// `KIND[:SIZE or NAME]`, with "ask:" before it if the other side shall take it.
struct Step {
    bool asked = false;
    std::string text;  ///< without "ask:"
    std::string kind, detail;
    std::uint64_t size = 0;

    bool is_fault() const { return kind == "fault"; }
    bool is_solicited() const { return kind.starts_with("solicited"); }
    bool invalidates() const { return kind.ends_with("invalidate"); }
    int victim() const { return is_solicited() ? 1 : 0; }
};

inline Step parse_step(std::string text) {
    Step step;
    if (text.starts_with("ask:")) {
        step.asked = true;
        text.erase(0, 4);
    }
    step.text = text;
    auto colon = text.find(':');
    step.kind = text.substr(0, colon);
    if (colon != std::string::npos) step.detail = text.substr(colon + 1);
    step.size = std::strtoull(step.detail.c_str(), nullptr, 10);
    return step;
}

/// A region of the other side's.
struct Region {
    std::uint64_t address = 0;
    std::uint32_t tag = 0;
};

struct Offer {
    Region window;               ///< may be read and written
    std::uint64_t size = 0;      ///< of the window
    std::uint32_t readable = 0;  ///< the window's first bytes once more, with fewer rights
    std::uint32_t writable = 0;
    Region victims[2];  ///< to be invalidated: one by each kind of Send that does so
};

inline constexpr const char* offer_format = "offer %llx %x %llx %x %x %llx %x %llx %x";

inline std::string to_words(const Offer& offer) {
    char words[words_max];
    using Long = unsigned long long;
    std::snprintf(words, sizeof words, offer_format, static_cast<Long>(offer.window.address),
                  offer.window.tag, static_cast<Long>(offer.size), offer.readable, offer.writable,
                  static_cast<Long>(offer.victims[0].address), offer.victims[0].tag,
                  static_cast<Long>(offer.victims[1].address), offer.victims[1].tag);
    return words;
}

inline bool parse_offer(const std::string& words, Offer& offer) {
    unsigned long long address = 0, size = 0, first = 0, second = 0;
    int found = std::sscanf(words.c_str(), offer_format, &address, &offer.window.tag, &size,
                            &offer.readable, &offer.writable, &first, &offer.victims[0].tag,
                            &second, &offer.victims[1].tag);
    offer.window.address = address;
    offer.size = size;
    offer.victims[0].address = first;
    offer.victims[1].address = second;
    return found == 9;
}

/// What a fault does wrong, beyond what its name says: where, and with which tag.
inline Region faulty_target(const std::string& name, const Offer& there) {
    Region target = there.window;
    if (name.ends_with("-tag")) target.tag ^= 0x5a;
    if (name.ends_with("-bounds")) target.address += there.size - 4;  // eight bytes do not fit
    if (name == "write-rights") target.tag = there.readable;
    if (name == "read-rights") target.tag = there.writable;
    if (name == "stale") target = there.victims[0];
    return target;
}

// A pattern that differs with the seed and repeats nowhere, by words because the guest is slow.

inline std::uint64_t pattern_word(std::uint64_t index, std::uint64_t seed) {
    return (index + 1) * 0x9e3779b97f4a7c15u + seed * 0x100000001b3u;
}

inline void fill(char* bytes, std::uint64_t size, std::uint64_t seed) {
    for (std::uint64_t at = 0; at < size; at += 8) {
        auto word = pattern_word(at / 8, seed);
        std::memcpy(bytes + at, &word, std::min<std::uint64_t>(8, size - at));
    }
}

inline bool holds(const char* bytes, std::uint64_t size, std::uint64_t seed) {
    for (std::uint64_t at = 0; at < size; at += 8) {
        auto word = pattern_word(at / 8, seed);
        if (std::memcmp(bytes + at, &word, std::min<std::uint64_t>(8, size - at)) != 0)
            return false;
    }
    return true;
}

inline std::string pattern_words(const char* verb, std::uint64_t size, std::uint64_t seed) {
    return std::string(verb) + " " + std::to_string(size) + " " + std::to_string(seed);
}

struct Pattern {
    std::uint64_t size = 0, seed = 0;
};
inline Pattern parse_pattern(const std::string& words) {
    char* rest = nullptr;
    Pattern pattern;
    pattern.size = std::strtoull(words.c_str() + words.find(' '), &rest, 10);
    pattern.seed = std::strtoull(rest, nullptr, 10);
    return pattern;
}

/// Yes, to a "fill 0 ..." in no bytes at all: asked for an RDMA Read of nothing, siw may respond
/// with what it sent last instead.
inline std::string yes_to(const std::string& words) {
    return words.starts_with("fill 0 ") ? "" : "ok";
}
inline bool is_yes(const std::string& words) {
    return words.empty() || words == "ok";
}

/// One fact of interest to the test, and at once: it may be killed the next moment.
inline void report(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
}

/// serve|connect HOST PORT [--window SIZE] [--private TEXT] [--connections N] [--FLAG] [STEP...]
struct Options {
    bool serves = false;
    std::string host;
    std::uint16_t port = 0;
    std::uint64_t window = 1 << 20;
    std::string private_data;       ///< the client's; the server gives it back
    std::uint32_t connections = 1;  ///< at once; as many as a server serves before it ends
    std::set<std::string> flags;
    std::vector<Step> steps;
};

inline Options parse_options(int count, char** words) {
    Options options;
    if (count < 4) {
        std::fprintf(stderr, "%s serve|connect HOST PORT [--OPTION...] [STEP...]\n", words[0]);
        std::exit(2);
    }
    options.serves = words[1] == std::string_view("serve");
    options.host = words[2];
    options.port = static_cast<std::uint16_t>(std::atoi(words[3]));
    for (int i = 4; i < count; ++i) {
        std::string word = words[i];
        bool has_value = i + 1 < count;
        if (word == "--window" && has_value)
            options.window = std::strtoull(words[++i], nullptr, 10);
        else if (word == "--private" && has_value)
            options.private_data = words[++i];
        else if (word == "--connections" && has_value)
            options.connections = static_cast<std::uint32_t>(std::atoi(words[++i]));
        else if (word.starts_with("--"))
            options.flags.insert(word.substr(2));
        else
            options.steps.push_back(parse_step(word));
    }
    return options;
}

/// A server rejects whoever says so, and tells why.
inline bool asks_for_rejection(std::string_view private_data) {
    return private_data.starts_with("reject");
}
inline std::string rejection_of(std::string_view private_data) {
    return "rejected: " + std::string(private_data);
}

}  // namespace peer
