// SPDX-License-Identifier: Apache-2.0
#include "verbs/listener.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace weft::verbs {
namespace {

class RequestObject final : public ConnectionRequest {
public:
    explicit RequestObject(std::unique_ptr<ConnectionObject> connection)
        : connection_(std::move(connection)) {}

    ConstBuffer private_data() const override {
        return connection_ ? connection_->peer_private_data() : ConstBuffer{};
    }
    Address remote() const override { return connection_ ? connection_->remote() : Address{}; }
    Address local() const override { return connection_ ? connection_->local() : Address{}; }
    std::optional<std::uint16_t> inbound_reads() const override {
        return is_open() ? connection_->startup().peer_inbound_reads() : std::nullopt;
    }
    std::optional<std::uint16_t> outbound_reads() const override {
        return is_open() ? connection_->startup().peer_outbound_reads() : std::nullopt;
    }

    Result<std::unique_ptr<Connection>> accept(QueuePair& queue_pair, const ConnectOptions& options,
                                               ConnectionEvents& events) override {
        if (!is_open()) return Error{.code = Code::disconnected};
        auto& object = static_cast<QueuePairObject&>(queue_pair);
        if (object.is_linked() || object.state() != QueuePairState::idle)
            return Error{.code = Code::exhausted};
        if (auto accepted = connection_->accept(object, options, events); !accepted)
            return accepted.error();
        return std::unique_ptr<Connection>(std::move(connection_));
    }
    Result<void> reject(ConstBuffer private_data) override {
        if (!is_open()) return Error{.code = Code::disconnected};
        return ConnectionObject::reject(connection_, private_data);
    }

private:
    bool is_open() const { return connection_ && connection_->is_open(); }

    std::unique_ptr<ConnectionObject> connection_;
};

}  // namespace

Result<std::unique_ptr<Listener>> ListenerObject::listen(std::shared_ptr<DeviceCore> core,
                                                         const Address& address,
                                                         Device::Requested requested) {
    auto& world = core->world;
    auto made = std::make_unique<ListenerObject>(std::move(core), std::move(requested));
    auto* listener = made.get();
    WEFT_TRY(made->listener_, world.listen(address, [listener](std::unique_ptr<Stream> stream) {
        listener->accepted(std::move(stream));
    }));
    return std::unique_ptr<Listener>(std::move(made));
}

ListenerObject::~ListenerObject() {
    *self_ = nullptr;
    for (auto& connection : starting_) connection->leave_sink();
}

void ListenerObject::accepted(std::unique_ptr<Stream> stream) {
    if (starting_.size() >= limits::requests_waiting && !drop_longest_silent()) return;
    auto connection = ConnectionObject::respond(core_, std::move(stream), *this);
    if (connection) starting_.push_back(std::move(*connection));
}

/// Who connects and says nothing is given up after a while, and sooner where others want its place:
/// many silent ones cannot keep out one who speaks at once.
bool ListenerObject::drop_longest_silent() {
    auto silent = std::find_if(starting_.begin(), starting_.end(),
                               [](auto& each) { return !each->has_request(); });
    if (silent == starting_.end()) return false;
    (*silent)->leave_sink();
    starting_.erase(silent);
    return true;
}

std::unique_ptr<ConnectionObject> ListenerObject::take(ConnectionObject& connection) {
    auto found = std::find_if(starting_.begin(), starting_.end(),
                              [&](auto& each) { return each.get() == &connection; });
    WEFT_CHECK(found != starting_.end());
    auto taken = std::move(*found);
    starting_.erase(found);
    return taken;
}

void ListenerObject::requested(ConnectionObject& connection) {
    // Told from the loop: the application may destroy what is calling us here.
    core_->world.defer([self = self_, connection = &connection] {
        if (!*self) return;
        auto& listener = **self;
        auto starting = std::find_if(listener.starting_.begin(), listener.starting_.end(),
                                     [&](auto& each) { return each.get() == connection; });
        // It may have ended meanwhile, and another that is not as far have got its place.
        if (starting == listener.starting_.end() || !connection->has_request()) return;
        auto taken = listener.take(*connection);
        taken->leave_sink();
        auto requested = listener.requested_;  // who may destroy the listener, and so itself
        requested(std::make_unique<RequestObject>(std::move(taken)));
    });
}

void ListenerObject::abandoned(ConnectionObject& connection) {
    auto gone = take(connection);
}

}  // namespace weft::verbs
