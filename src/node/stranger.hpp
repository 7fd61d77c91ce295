// SPDX-License-Identifier: Apache-2.0
// Whoever listens where a box was expected: asked which targets it has, by an iSCSI discovery
// session, as any initiator may. For a sentence that says what was found instead.
#pragma once

#include <functional>
#include <string>

#include "node/iscsi_initiator.hpp"

namespace weft::node {

/// Of what a discovery has found, a sentence. `expected`: the name of the box that was to be there.
std::string found_instead(const std::vector<iscsi::DiscoveredTarget>& targets,
                          const std::string& expected);

class Stranger {
public:
    /// Told once, never from inside, and not destroyed from inside that either.
    using Told = std::function<void(const std::string& sentence)>;

    Stranger(World& world, const Address& address, std::string expected, Told told);
    Stranger(const Stranger&) = delete;
    Stranger& operator=(const Stranger&) = delete;
    ~Stranger() { *alive_ = false; }

private:
    void tell(const std::string& sentence);
    std::string why_not(Error why);

    World& world_;
    std::string expected_;
    Told told_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
    IscsiTcpTransport transport_;
    IscsiInitiator initiator_;
};

}  // namespace weft::node
