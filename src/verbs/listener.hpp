// SPDX-License-Identifier: Apache-2.0
// Waits for others to connect, reads their requests, and hands these to the application.
#pragma once

#include <memory>
#include <vector>

#include "verbs/connection.hpp"

namespace weft::verbs {

class ListenerObject final : public Listener, private RequestSink {
public:
    static Result<std::unique_ptr<Listener>> listen(std::shared_ptr<DeviceCore> core,
                                                    const Address& address,
                                                    Device::Requested requested);
    ListenerObject(std::shared_ptr<DeviceCore> core, Device::Requested requested)
        : core_(std::move(core)), requested_(std::move(requested)) {}
    ~ListenerObject() override;

    Address address() const override { return listener_->address(); }

private:
    void accepted(std::unique_ptr<Stream> stream);
    bool drop_longest_silent();
    void requested(ConnectionObject& connection) override;
    void abandoned(ConnectionObject& connection) override;
    std::unique_ptr<ConnectionObject> take(ConnectionObject& connection);

    std::shared_ptr<DeviceCore> core_;
    Device::Requested requested_;
    /// Connections whose request is not whole yet, or not handed out; the oldest first.
    std::vector<std::unique_ptr<ConnectionObject>> starting_;
    /// Shared with tasks that outlive the listener.
    std::shared_ptr<ListenerObject*> self_ = std::make_shared<ListenerObject*>(this);
    std::unique_ptr<weft::Listener> listener_;
};

}  // namespace weft::verbs
