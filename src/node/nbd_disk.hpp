// SPDX-License-Identifier: Apache-2.0
// Another machine's disk, reached by NBD: a client and its stream, kept together.
#pragma once

#include <functional>
#include <memory>

#include "nbd/client.hpp"

namespace weft::node {

class NbdDisk {
public:
    /// `opened` is called once: the handshake is done and device() is ready, or why not. Requests
    /// may be submitted before that; they wait.
    static Result<std::unique_ptr<NbdDisk>> connect(World& world, const Address& address,
                                                    std::string export_name,
                                                    std::function<void(Result<void>)> opened);

    nbd::Client& device() { return client_; }

private:
    NbdDisk(std::string export_name, std::function<void(Result<void>)> opened);

    nbd::Client client_;
    std::unique_ptr<Stream> stream_;
};

}  // namespace weft::node
