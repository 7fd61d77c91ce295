// SPDX-License-Identifier: Apache-2.0
// Serving block devices to others: by NBD, or as the logical units of iSCSI targets.
//
// A server runs in a world, Linux or simulated, and serves any BlockDevice. To end it: drain() asks
// the clients to go and answers what is under way, stop() closes what is left; the devices may be
// destroyed, and the server with them, when quiet() says so.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weft/block_device.hpp"
#include "weft/world.hpp"

namespace weft {

class Server {
public:
    Server() = default;
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;
    virtual ~Server() = default;

    /// Where it really listens: a port asked for as 0 is known afterwards.
    virtual Result<Address> listen(const Address& address) = 0;
    virtual void drain() = 0;
    virtual void stop() = 0;
    virtual bool quiet() const = 0;
};

class NbdExports : public Server {
public:
    /// The empty name is the default export.
    virtual Result<void> add(const std::string& name, BlockDevice& device, bool read_only) = 0;
};

/// Somebody who proves himself by CHAP. A secret has 12 characters at the least.
struct ChapUser {
    std::string name;
    std::string secret;
};

struct IscsiAccess {
    std::vector<std::string> initiators{};  ///< names that may log in; none listed: all
    std::vector<ChapUser> users{};          ///< none listed: nobody has to prove himself
};

struct IscsiUnit {
    std::uint32_t block_bytes = 512;
    bool read_only = false;
    bool removable = false;
    bool thin = true;  ///< offer unmapping, if the device can trim
};

/// Targets and units come and go while others are in use. `gone` is called when the device or
/// devices are not used any more.
class IscsiExports : public Server {
public:
    virtual Result<void> add_target(const std::string& name, const IscsiAccess& access) = 0;
    virtual Result<void> remove_target(const std::string& name, std::function<void()> gone) = 0;
    virtual Result<void> add_unit(const std::string& target, std::uint32_t number,
                                  BlockDevice& device, const IscsiUnit& unit) = 0;
    virtual Result<void> remove_unit(const std::string& target, std::uint32_t number,
                                     std::function<void()> gone) = 0;
};

std::unique_ptr<NbdExports> make_nbd_exports(World& world);
std::unique_ptr<IscsiExports> make_iscsi_exports(World& world);

}  // namespace weft
