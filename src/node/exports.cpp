// SPDX-License-Identifier: Apache-2.0
// The servers of node/ as weft/export.hpp shows them to programs outside.
#include "node/iscsi_server.hpp"
#include "node/nbd_server.hpp"
#include "weft/export.hpp"

namespace weft {
namespace {

class Nbd final : public NbdExports {
public:
    explicit Nbd(World& world) : server_(world, {}) {}

    Result<void> add(const std::string& name, BlockDevice& device, bool read_only) override {
        return server_.add({name, {}, &device, read_only});
    }
    Result<Address> listen(const Address& address) override { return server_.listen(address); }
    void drain() override { server_.drain(); }
    void stop() override { server_.stop(); }
    bool quiet() const override { return server_.quiet(); }

private:
    node::NbdServer server_;
};

class Iscsi final : public IscsiExports {
public:
    explicit Iscsi(World& world) : server_(world, {}) {}

    Result<void> add_target(const std::string& name, const IscsiAccess& access) override {
        iscsi::TargetRules rules{.initiators = access.initiators};
        for (const auto& user : access.users) rules.users.push_back({user.name, user.secret});
        return server_.add_target(name, std::move(rules));
    }
    Result<void> remove_target(const std::string& name, std::function<void()> gone) override {
        return server_.remove_target(name, std::move(gone));
    }
    Result<void> add_unit(const std::string& target, std::uint32_t number, BlockDevice& device,
                          const IscsiUnit& unit) override {
        scsi::UnitOptions options;
        options.block_bytes = unit.block_bytes;
        options.read_only = unit.read_only;
        options.removable = unit.removable;
        options.thin = unit.thin;
        return server_.add_unit(target, number, device, options);
    }
    Result<void> remove_unit(const std::string& target, std::uint32_t number,
                             std::function<void()> gone) override {
        return server_.remove_unit(target, number, std::move(gone));
    }
    Result<Address> listen(const Address& address) override { return server_.listen(address); }
    void drain() override { server_.drain(); }
    void stop() override { server_.stop(); }
    bool quiet() const override { return server_.quiet(); }

private:
    node::IscsiServer server_;
};

}  // namespace

std::unique_ptr<NbdExports> make_nbd_exports(World& world) {
    return std::make_unique<Nbd>(world);
}

std::unique_ptr<IscsiExports> make_iscsi_exports(World& world) {
    return std::make_unique<Iscsi>(world);
}

}  // namespace weft
