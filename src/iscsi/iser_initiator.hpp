// SPDX-License-Identifier: Apache-2.0
// Makes iSER datamovers for initiators, in either way there is: connecting by RDMA first and
// logging in inside Sends, as Linux and libiscsi do, or turning a stream into RDMA after a login
// over TCP, as RFC 7145 says. It must outlive what it makes.
#pragma once

#include <memory>

#include "iscsi/datamover.hpp"
#include "weft/rdma.hpp"

namespace weft::iscsi {

class IserInitiator {
public:
    struct Options {
        bool checksums = false;         ///< ask for MPA's; a target that asks for them gets them
        std::uint32_t tasks_max = 128;  ///< what ConnectionTerms may say later
    };
    IserInitiator(World& world, const Options& options);

    /// The user hears opened() and logs in, or lost().
    Result<std::unique_ptr<InitiatorDatamover>> connect(const Address& address,
                                                        InitiatorDatamoverUser& user);
    /// The final Login Response has come, and all that was sent over the stream has gone. These
    /// terms hold; the user hears opened() when commands may be sent.
    Result<std::unique_ptr<InitiatorDatamover>> switch_over(std::unique_ptr<Stream> stream,
                                                            InitiatorDatamoverUser& user,
                                                            const ConnectionTerms& terms);

private:
    World& world_;
    Options options_;
    std::unique_ptr<verbs::Device> device_;
};

}  // namespace weft::iscsi
