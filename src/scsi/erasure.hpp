// SPDX-License-Identifier: Apache-2.0
// The erasure of a whole medium, by SANITIZE or FORMAT UNIT. It goes on whatever becomes of the
// command that asked for it, piece by piece, leaving the world its turns in between.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "scsi/surroundings.hpp"
#include "weft/block_device.hpp"
#include "wire/scsi_sense.hpp"

namespace weft::scsi {

class Erasure final : public BlockRequest {
public:
    struct Plan {
        wire::AdditionalSense in_progress{};  ///< what others are told meanwhile
        std::vector<std::byte> pattern{};     ///< repeated over each block; none: zeroes
        std::uint32_t block_bytes = 512;
        unsigned passes = 1;
        bool invert = false;  ///< the pattern, from each pass to the next
        Duration least_time{};
    };
    using Done = std::function<void(Result<void>)>;

    Erasure(BlockDevice& device, const Surroundings& surroundings, Plan plan, Done done);
    Erasure(const Erasure&) = delete;
    Erasure& operator=(const Erasure&) = delete;
    ~Erasure();

    void start();
    /// Ends, done or not: at once, or when the device has answered. `done` is called, perhaps from
    /// inside, and may end this object.
    void stop();
    wire::AdditionalSense in_progress() const { return plan_.in_progress; }
    /// In 65536ths.
    std::uint16_t progress() const;

private:
    void completed(Result<void> outcome) override;
    void go_on();
    void submit_next();
    void fill_memory();
    bool by_device() const { return plan_.pattern.empty() && device_.traits().can_write_zeroes; }
    void end(Result<void> outcome);

    BlockDevice& device_;
    const Surroundings& surroundings_;
    Plan plan_;
    Done done_;
    std::vector<std::byte> memory_;  ///< a piece of the pattern
    Buffer piece_{};
    Instant begun_{};
    std::uint64_t at_ = 0;
    unsigned pass_ = 0;
    bool flushing_ = false;
    bool with_device_ = false;
    bool stopped_ = false;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace weft::scsi
