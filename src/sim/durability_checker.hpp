// SPDX-License-Identifier: Apache-2.0
// The invariant "every acknowledged durable write reads back", for one block device.
//
// It is told what a workload asked and what it was answered, and knows for each sector the
// contents it may have: now, and after a crash. A flush that was answered narrows the second to
// what was written before it; a failed or unanswered write widens both. Requests in flight at one
// time must not overlap: ask is_busy() first. The device is taken to hold zeroes at the start.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weft/block_device.hpp"

namespace weft::sim {

class DurabilityChecker {
public:
    enum class Lasting : std::uint8_t { until_crash, durable };

    /// True while a request for any of these sectors has not been answered.
    bool is_busy(std::uint64_t offset, std::uint64_t length) const;

    void write_asked(std::uint64_t offset, ConstBuffer bytes);
    void zeroes_asked(std::uint64_t offset, std::uint64_t length);
    /// The contents may be what they were, or zeroes.
    void trim_asked(std::uint64_t offset, std::uint64_t length);
    /// For all three.
    void write_answered(std::uint64_t offset, std::uint64_t length, Lasting lasting,
                        const Result<void>& outcome);

    /// Names the writes that were answered before; to be given back with the answer.
    std::uint64_t flush_asked() const { return answers_; }
    void flush_answered(std::uint64_t asked, const Result<void>& outcome);

    void read_asked(std::uint64_t offset, std::uint64_t length);
    /// What is wrong with the answer, if anything is.
    std::optional<std::string> read_answered(std::uint64_t offset, ConstBuffer bytes,
                                             const Result<void>& outcome);

    /// The device lost its power. Requests not answered never will be, or with an error: say
    /// nothing more about them.
    void crashed();

private:
    using Contents = std::uint64_t;  ///< a hash of a sector's bytes stands for them
    enum class Certainty : std::uint8_t { asked, certain, uncertain };
    struct Version {
        Contents contents;
        Certainty certainty;
        std::uint64_t answered;  ///< certain: when
    };
    /// Oldest first. The newest certain one and those after it may be read now; any may be found
    /// after a crash.
    struct Sector {
        std::vector<Version> versions;
        bool busy = false;
        bool settled = false;  ///< nothing was asked since a crash: one version is left, durably
    };

    static Contents hash(ConstBuffer sector);
    Sector& at(std::uint64_t sector);
    void ask(std::uint64_t sector, Contents contents);
    static void forget_before(Sector& sector, std::uint64_t answered_by);

    std::map<std::uint64_t, Sector> sectors_;  ///< those never asked about are durably zero
    std::uint64_t answers_ = 0;
};

}  // namespace weft::sim
