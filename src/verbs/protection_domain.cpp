// SPDX-License-Identifier: Apache-2.0
#include "verbs/protection_domain.hpp"

#include "base/check.hpp"

namespace weft::verbs {
namespace {

std::uint64_t total_size(std::span<const Buffer> pieces) {
    std::uint64_t size = 0;
    for (auto& piece : pieces) size += piece.size();
    return size;
}

class RegionObject final : public MemoryRegion {
public:
    RegionObject(std::shared_ptr<DeviceCore> core,
                 std::shared_ptr<const ProtectionDomainObject> domain, SteeringTag tag,
                 std::uint64_t address, std::uint64_t size)
        : core_(std::move(core)),
          domain_(std::move(domain)),
          tag_(tag),
          address_(address),
          size_(size) {}
    ~RegionObject() override {
        if (!registered_) return;
        core_->memory.unbind_windows(tag_);
        WEFT_CHECK(core_->remove_memory(tag_, {}));
    }

    /// A fast registration may have changed the key.
    SteeringTag tag() const override { return registered_ ? core_->memory.tag_now(tag_) : tag_; }
    std::uint64_t address() const override { return address_; }
    std::uint64_t size() const override { return size_; }

    bool is_still_lent() const override { return core_->memory.is_held(tag()); }

    Result<void> open(const FastRegistration& registration) override {
        constexpr std::uint32_t key = 0xff;
        bool ours = registered_ && (static_cast<std::uint32_t>(registration.tag) | key) ==
                                       (static_cast<std::uint32_t>(tag_) | key);
        if (!ours) return Error{.code = Code::not_found};
        return core_->memory.fast_register(registration, {.domain = domain_->id()});
    }
    std::optional<SteeringTag> fresh_tag() override {
        return registered_ ? core_->memory.fresh_tag(tag()) : std::nullopt;
    }
    Result<void> close() override {
        if (!registered_) return Error{.code = Code::not_found};
        return core_->memory.invalidate(tag(), {.domain = domain_->id()});
    }

    Result<void> discard() override {
        if (!registered_) return Error{.code = Code::not_found};
        return core_->memory.discard(tag(), {.domain = domain_->id()});
    }

    Result<void> deregister(std::function<void()> done) override {
        if (!registered_) return Error{.code = Code::not_found};
        auto removed = core_->remove_memory(tag_, std::move(done));
        if (removed) registered_ = false;
        return removed;
    }

private:
    std::shared_ptr<DeviceCore> core_;
    std::shared_ptr<const ProtectionDomainObject> domain_;
    const SteeringTag tag_;
    const std::uint64_t address_;
    const std::uint64_t size_;
    bool registered_ = true;
};

class WindowObject final : public MemoryWindow {
public:
    WindowObject(std::shared_ptr<DeviceCore> core,
                 std::shared_ptr<const ProtectionDomainObject> domain, SteeringTag tag)
        : core_(std::move(core)), domain_(std::move(domain)), tag_(tag) {}
    ~WindowObject() override { WEFT_CHECK(core_->remove_memory(tag_, {})); }

    SteeringTag tag() const override { return core_->memory.tag_now(tag_); }

private:
    std::shared_ptr<DeviceCore> core_;
    std::shared_ptr<const ProtectionDomainObject> domain_;
    const SteeringTag tag_;
};

}  // namespace

Result<std::unique_ptr<MemoryRegion>> ProtectionDomainObject::register_memory(
    Buffer memory, Rights rights, Addressing addressing) {
    auto address =
        addressing == Addressing::from_zero
            ? 0
            : static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(memory.data()));
    std::span<const Buffer> one(&memory, 1);
    WEFT_TRY(auto tag, core_->memory.add_region(id_, one, address, rights, addressing));
    return std::unique_ptr<MemoryRegion>(
        new RegionObject(core_, shared_from_this(), tag, address, memory.size()));
}

Result<std::unique_ptr<MemoryRegion>> ProtectionDomainObject::register_pieces(
    std::span<const Buffer> pieces, std::uint64_t address, Rights rights) {
    if (pieces.size() > limits::pieces_per_region)
        return Error{.code = Code::out_of_range, .where = limits::pieces_per_region};
    WEFT_TRY(auto tag,
             core_->memory.add_region(id_, pieces, address, rights, Addressing::by_address));
    return std::unique_ptr<MemoryRegion>(
        new RegionObject(core_, shared_from_this(), tag, address, total_size(pieces)));
}

Result<std::unique_ptr<MemoryRegion>> ProtectionDomainObject::allocate_tag(std::size_t pieces_max) {
    if (pieces_max > limits::pieces_per_region)
        return Error{.code = Code::out_of_range, .where = limits::pieces_per_region};
    WEFT_TRY(auto tag, core_->memory.allocate(id_, pieces_max));
    return std::unique_ptr<MemoryRegion>(new RegionObject(core_, shared_from_this(), tag, 0, 0));
}

Result<std::unique_ptr<MemoryWindow>> ProtectionDomainObject::allocate_window(WindowKind kind) {
    WEFT_TRY(auto tag, core_->memory.add_window(id_, kind));
    return std::unique_ptr<MemoryWindow>(new WindowObject(core_, shared_from_this(), tag));
}

}  // namespace weft::verbs
