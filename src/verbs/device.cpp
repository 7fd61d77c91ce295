// SPDX-License-Identifier: Apache-2.0
// The software RNIC's front: checks what an application asks for, and makes it.
#include "verbs/connection.hpp"
#include "verbs/listener.hpp"
#include "verbs/queue_pair.hpp"

namespace weft::verbs {
namespace {

Result<void> within(std::size_t wanted, std::size_t limit) {
    if (wanted <= limit) return {};
    return Error{.code = Code::out_of_range, .where = static_cast<std::uint32_t>(limit)};
}

class DeviceObject final : public Device {
public:
    DeviceObject(World& world, DeviceOptions options)
        : core_(std::make_shared<DeviceCore>(world, std::move(options))) {}

    ~DeviceObject() override { core_->device_is_gone(); }

    std::shared_ptr<ProtectionDomain> make_domain() override {
        return std::make_shared<ProtectionDomainObject>(core_);
    }

    Result<std::shared_ptr<CompletionQueue>> make_completion_queue(
        std::size_t capacity, std::function<void()> notify) override {
        if (capacity == 0) return Error{.code = Code::out_of_range};
        if (auto good = within(capacity, limits::completions); !good) return good.error();
        return std::shared_ptr<CompletionQueue>(
            std::make_shared<CompletionQueueObject>(core_, capacity, std::move(notify)));
    }

    Result<std::shared_ptr<SharedReceiveQueue>> make_shared_receive_queue(
        std::size_t capacity, std::size_t pieces) override {
        if (auto good = within(capacity, limits::shared_receives); !good) return good.error();
        if (auto good = within(pieces, limits::pieces); !good) return good.error();
        return std::shared_ptr<SharedReceiveQueue>(
            std::make_shared<SharedReceiveQueueObject>(core_, capacity, pieces));
    }

    Result<std::unique_ptr<QueuePair>> make_queue_pair(const QueuePairOptions& options) override {
        if (!options.domain || !options.send_completions || !options.receive_completions)
            return Error{.code = Code::malformed};
        if (!are_ours(options)) return Error{.code = Code::malformed};
        if (options.sends == 0) return Error{.code = Code::out_of_range};
        for (auto& good :
             {within(options.sends, limits::sends), within(options.receives, limits::receives),
              within(options.pieces, limits::pieces),
              within(options.inline_bytes, limits::inline_bytes)})
            if (!good) return good.error();
        return std::unique_ptr<QueuePair>(std::make_unique<QueuePairObject>(core_, options));
    }

    Result<std::unique_ptr<Connection>> connect(const Address& address, QueuePair& queue_pair,
                                                const ConnectOptions& options,
                                                ConnectionEvents& events) override {
        auto& object = static_cast<QueuePairObject&>(queue_pair);
        if (object.is_linked() || object.state() != QueuePairState::idle)
            return Error{.code = Code::exhausted};
        WEFT_TRY(auto made, ConnectionObject::connect(core_, address, object, options, events));
        return std::unique_ptr<Connection>(std::move(made));
    }

    Result<std::unique_ptr<Connection>> connect_over(std::unique_ptr<Stream> stream,
                                                     QueuePair& queue_pair,
                                                     const ConnectOptions& options,
                                                     ConnectionEvents& events) override {
        auto& object = static_cast<QueuePairObject&>(queue_pair);
        if (object.is_linked() || object.state() != QueuePairState::idle)
            return Error{.code = Code::exhausted};
        WEFT_TRY(auto made,
                 ConnectionObject::connect_over(core_, std::move(stream), object, options, events));
        return std::unique_ptr<Connection>(std::move(made));
    }

    std::unique_ptr<Responder> make_responder(Requested requested,
                                              std::function<void()> abandoned) override {
        return std::make_unique<ResponderObject>(core_, std::move(requested), std::move(abandoned));
    }

    Result<std::unique_ptr<Listener>> listen(const Address& address, Requested requested) override {
        return ListenerObject::listen(core_, address, std::move(requested));
    }

private:
    bool are_ours(const QueuePairOptions& options) const {
        auto ours = [&](const auto& object) { return object.is_of(*core_); };
        using Completions = const CompletionQueueObject&;
        return ours(static_cast<const ProtectionDomainObject&>(*options.domain)) &&
               ours(static_cast<Completions>(*options.send_completions)) &&
               ours(static_cast<Completions>(*options.receive_completions)) &&
               (!options.shared_receives ||
                ours(static_cast<const SharedReceiveQueueObject&>(*options.shared_receives)));
    }

    std::shared_ptr<DeviceCore> core_;
};

}  // namespace

std::unique_ptr<Device> make_device(World& world, DeviceOptions options) {
    return std::make_unique<DeviceObject>(world, std::move(options));
}

}  // namespace weft::verbs
