// SPDX-License-Identifier: Apache-2.0
// Waits for others to connect; what they ask for is the responder's business.
#pragma once

#include <memory>

#include "verbs/responder.hpp"

namespace weft::verbs {

class ListenerObject final : public Listener {
public:
    static Result<std::unique_ptr<Listener>> listen(std::shared_ptr<DeviceCore> core,
                                                    const Address& address,
                                                    Device::Requested requested) {
        auto& world = core->world;
        auto made = std::make_unique<ListenerObject>(std::move(core), std::move(requested));
        auto* responder = &made->responder_;
        WEFT_TRY(made->listener_, world.listen(address, [responder](auto stream) {
            (void)responder->respond(std::move(stream), {});  // refused, the stream is closed
        }));
        return std::unique_ptr<Listener>(std::move(made));
    }
    ListenerObject(std::shared_ptr<DeviceCore> core, Device::Requested requested)
        : responder_(std::move(core), std::move(requested), {}) {}

    Address address() const override { return listener_->address(); }

private:
    ResponderObject responder_;
    std::unique_ptr<weft::Listener> listener_;
};

}  // namespace weft::verbs
