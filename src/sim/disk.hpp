// SPDX-License-Identifier: Apache-2.0
// A simulated disk: requests take time and finish in any order, writes rest in a volatile cache,
// and everything that goes wrong with real disks can be made to go wrong.
//
// The disk belongs to the world and lasts; what open() gives is a device on it, as a file
// descriptor is on a file. A write takes effect, all at once, at the moment it completes; a write
// in flight at a power cut may have reached the medium in part.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/clockwork.hpp"
#include "sim/disk_spec.hpp"
#include "sim/medium.hpp"
#include "weft/block_device.hpp"

namespace weft::sim {

class Disk {
public:
    Disk(Clockwork& clockwork, std::uint64_t number, const DiskSpec& spec);
    Disk(const Disk&) = delete;
    Disk& operator=(const Disk&) = delete;
    ~Disk();

    enum class Access : std::uint8_t { read_only, read_write };
    /// All devices must be gone before the disk is.
    std::unique_ptr<BlockDevice> open(Access access);

    const DiskSpec& spec() const { return spec_; }
    /// Announced to the watchers of every open device.
    void grow(std::uint64_t size);

    // What can go wrong.

    /// Each write that is not stable is kept, lost or torn, independently.
    void power_cut(AfterPowerCut after);
    void die(Death death);
    void revive();
    bool is_dead() const { return life_ != Life::well; }
    /// Requests that touch the range fail with Code::io_failed, until heal().
    void make_bad(std::uint64_t offset, std::uint64_t length, BadFor bad_for);
    void set_flush_honesty(FlushHonesty honesty) { spec_.flush_honesty = honesty; }
    void set_error_percent(double reads, double writes);
    /// Ends bad ranges and random errors.
    void heal();
    /// Flips one bit of what is stored.
    void rot(std::uint64_t byte, unsigned bit) { medium_.rot(byte, bit); }

    /// What a read would give, without asking the disk: for checkers. Sector-aligned.
    void peek(std::uint64_t offset, Buffer into) const { medium_.read(offset, into); }

private:
    class Device;
    enum class Life : std::uint8_t { well, fails, hangs };
    struct Service {
        BlockRequest* request;
        Device* device;
        std::uint64_t flush_mark;  ///< flush: the writes it must make stable
        Schedule::EventId end;     ///< none while the disk hangs
    };
    struct BadRange {
        std::uint64_t offset, length;
        BadFor bad_for;
    };

    void submit(BlockRequest& request, Device& device);
    void serve(BlockRequest& request, Device& device);
    void plan_end(std::uint64_t number, Service& service);
    void end(std::uint64_t number);
    void serve_waiting();

    Result<void> execute(const Service& service);
    Result<void> read(const BlockRequest& request);
    Result<void> write(const BlockRequest& request);
    Result<void> write_zeroes(const BlockRequest& request);
    Result<void> trim(const BlockRequest& request);
    Result<void> report_status(BlockRequest& request);
    Result<void> fail_write(const BlockRequest& request);
    bool is_bad(const BlockRequest& request) const;
    bool has_space_for(const BlockRequest& request) const;
    void leave_in_cache(const Service& service);

    Clockwork& clockwork_;
    std::uint64_t number_;
    DiskSpec spec_;
    Medium medium_;
    Life life_ = Life::well;
    std::vector<BadRange> bad_ranges_;
    std::vector<Device*> devices_;
    std::map<std::uint64_t, Service> in_service_;  ///< at most queue_depth
    std::uint64_t last_service_ = 0;
};

}  // namespace weft::sim
