// SPDX-License-Identifier: Apache-2.0
// Asks tshark what a capture says: Wireshark's dissectors were written by others from the same
// standards, so where its fields equal ours, both readings of the standard agree.
//
//     auto frames = dissect(capture, {});
//     EXPECT_THAT(complaints(frames), testing::IsEmpty());
//     EXPECT_EQ(frame(frames, request).number("iscsi.initiatortasktag"), 0x10u);
//
// A test that uses this fails where tshark is absent; it never skips.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "support/pcap.hpp"

namespace weft::test {

struct TsharkOptions {
    std::vector<std::string> decode_as = {};      ///< as for -d: "tcp.port==10809,nbd"
    std::vector<std::string> preferences = {};    ///< as for -o: "nbd.desegment:TRUE"
    std::vector<std::string> heuristics = {};     ///< as for --enable-heuristic
    std::vector<std::string> no_heuristics = {};  ///< as for --disable-heuristic
};

/// One frame as a list of (name, value) in the order of dissection. Protocols and subtrees are in
/// the list too, with an empty value.
class DissectedFrame {
public:
    void add(std::string name, std::string value) {
        fields_.emplace_back(std::move(name), std::move(value));
    }

    bool has(const std::string& name) const;
    std::vector<std::string> all(const std::string& name) const;
    /// The only value of that name; fails the test if there is none or more than one.
    std::string text(const std::string& name) const;
    /// The same as a number; tshark writes both 12 and 0x0c, and True and False.
    std::uint64_t number(const std::string& name) const;
    std::vector<std::uint64_t> numbers(const std::string& name) const;
    /// All names and values, a line each: for looking at a failure.
    std::string dump() const;

    const std::vector<std::pair<std::string, std::string>>& fields() const { return fields_; }

private:
    std::vector<std::pair<std::string, std::string>> fields_;
};

struct DissectedFrames {
    std::vector<DissectedFrame> frames;
    /// The warnings and errors of tshark's expert summary: "group protocol text", a line each. A
    /// dissector can remark on a frame without marking any field, so the frames do not hold them
    /// all.
    std::vector<std::string> remarks;

    std::size_t size() const { return frames.size(); }
    const DissectedFrame& operator[](std::size_t index) const { return frames[index]; }
    auto begin() const { return frames.begin(); }
    auto end() const { return frames.end(); }
};

/// Runs tshark over the capture. Throws std::runtime_error if tshark is absent or fails.
DissectedFrames dissect(const Capture& capture, const TsharkOptions& options);
DissectedFrames dissect_file(const std::string& path, const TsharkOptions& options);

/// What `tshark -V` prints: the words a dissector adds to a field, such as "Good CRC32", are only
/// there.
std::string dissect_in_words(const Capture& capture, const TsharkOptions& options);

/// The frame of that number, counted from one as tshark and TcpConversation count.
const DissectedFrame& frame(const DissectedFrames& frames, std::size_t number);

/// What tshark holds against the frames: malformed protocols, and remarks of the severities
/// warning and error, whether tied to a frame or not. Wrong checksums of IP and TCP are among them.
std::vector<std::string> complaints(const DissectedFrames& frames);

}  // namespace weft::test
