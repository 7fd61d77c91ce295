// SPDX-License-Identifier: Apache-2.0
// A protection domain and the memory registered in it: handles on entries of the memory table.
#pragma once

#include "verbs/device_core.hpp"

namespace weft::verbs {

class ProtectionDomainObject final : public ProtectionDomain,
                                     public std::enable_shared_from_this<ProtectionDomainObject> {
public:
    explicit ProtectionDomainObject(std::shared_ptr<DeviceCore> core)
        : core_(std::move(core)), id_(iwarp::DomainId{core_->next_domain++}) {}

    Result<std::unique_ptr<MemoryRegion>> register_memory(Buffer memory, Rights rights,
                                                          Addressing addressing) override;
    Result<std::unique_ptr<MemoryRegion>> register_pieces(std::span<const Buffer> pieces,
                                                          std::uint64_t address,
                                                          Rights rights) override;
    Result<std::unique_ptr<MemoryRegion>> allocate_tag(std::size_t pieces_max) override;
    Result<std::unique_ptr<MemoryWindow>> allocate_window(WindowKind kind) override;

    iwarp::DomainId id() const { return id_; }
    /// Two devices count their domains alike.
    bool is_of(const DeviceCore& core) const { return core_.get() == &core; }

private:
    std::shared_ptr<DeviceCore> core_;
    const iwarp::DomainId id_;
};

}  // namespace weft::verbs
