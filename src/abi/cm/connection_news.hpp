// SPDX-License-Identifier: Apache-2.0
// Makes events for the application of what a connection has to say.
#pragma once

#include "weft/rdma.hpp"

namespace weft::abi {

struct Identifier;

class ConnectionNews final : public verbs::ConnectionEvents {
public:
    explicit ConnectionNews(Identifier& about) : about_(about) {}

    void established() override;
    void rejected() override;
    void failed(Error why) override;
    void disconnected() override;

private:
    Identifier& about_;
};

/// Inside a Hold. That the connection is over.
void tell_end(Identifier& one);

}  // namespace weft::abi
