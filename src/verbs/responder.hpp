// SPDX-License-Identifier: Apache-2.0
// Reads the requests of those who connect, and hands them to the application. The streams come from
// a listener, or from an application that has accepted them itself and told apart what they speak.
#pragma once

#include <memory>
#include <vector>

#include "verbs/connection.hpp"

namespace weft::verbs {

class ResponderObject final : public Responder, private RequestSink {
public:
    ResponderObject(std::shared_ptr<DeviceCore> core, Device::Requested requested,
                    std::function<void()> abandoned)
        : core_(std::move(core)),
          requested_(std::move(requested)),
          abandoned_(std::move(abandoned)) {}
    ~ResponderObject() override;

    Result<void> respond(std::unique_ptr<Stream> stream, ConstBuffer read_already) override;

private:
    bool drop_longest_silent();
    void requested(ConnectionObject& connection) override;
    void abandoned(ConnectionObject& connection) override;
    std::unique_ptr<ConnectionObject> take(ConnectionObject& connection);

    std::shared_ptr<DeviceCore> core_;
    Device::Requested requested_;
    std::function<void()> abandoned_;
    /// Connections whose request is not whole yet, or not handed out; the oldest first.
    std::vector<std::unique_ptr<ConnectionObject>> starting_;
    /// Shared with tasks that outlive the responder.
    std::shared_ptr<ResponderObject*> self_ = std::make_shared<ResponderObject*>(this);
};

}  // namespace weft::verbs
