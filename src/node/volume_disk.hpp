// SPDX-License-Identifier: Apache-2.0
// A volume as a block device at its controller, for initiators that know nothing of arrays: the
// controller is then a host like any other, whose memory boxes reach by RDMA. Every request's
// memory has a tag of its own, from when it is asked for until it is answered. Where data goes by
// way of the controller anyway, it is copied there instead.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>

#include "node/controller_report.hpp"
#include "raid/volume_engine.hpp"
#include "weft/block_device.hpp"
#include "weft/verbs.hpp"

namespace weft::node {

class VolumeDisk final : public BlockDevice {
public:
    /// `domain`: none, and all goes by way of the controller.
    VolumeDisk(World& world, std::shared_ptr<verbs::ProtectionDomain> domain,
               wire::HostSession self, std::function<void(raid::HostRequest&)> ask);
    ~VolumeDisk() override;

    /// Told of tags whose memory the network keeps though the request has ended: until it lets go,
    /// nobody is answered.
    void on_lent(std::function<void(SteeringTag)> hear) { lent_ = std::move(hear); }
    void set_size(std::uint64_t size);
    BlockTraits traits() const override;
    void submit(BlockRequest& request) override;
    /// Octets read and written so far, all of which came by here.
    std::uint64_t octets() const { return octets_; }
    std::uint64_t requests() const { return commands_; }
    /// Told of each that has ended, with how long it took; its volume's name is not filled in.
    void on_end(std::function<void(const SlowOperation&)> hear) { ended_ = std::move(hear); }
    /// The same of those that have not.
    std::vector<SlowOperation> under_way() const;
    /// A read that ended with `leaves_writers`: no box writes by its tag any more.
    void writers_gone(std::uint64_t command);
    /// Tags that are open to late boxes though their reads have ended; what comes goes nowhere.
    std::size_t kept() const { return kept_.size(); }
    static constexpr std::size_t kept_max =
        1024;  ///< beyond, a read ends when its writers are gone

private:
    class Run;

    void over(Run& run, Result<void> outcome);

    World& world_;
    std::shared_ptr<verbs::ProtectionDomain> domain_;
    wire::HostSession self_;
    std::function<void(raid::HostRequest&)> ask_;
    std::function<void(SteeringTag)> lent_;
    std::function<void(const SlowOperation&)> ended_;
    std::uint64_t size_ = 0;
    std::uint64_t commands_ = 0;
    std::uint64_t octets_ = 0;
    std::list<std::unique_ptr<Run>> runs_;
    std::map<std::uint64_t, std::unique_ptr<verbs::MemoryRegion>> kept_;  ///< by command
};

}  // namespace weft::node
