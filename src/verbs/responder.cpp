// SPDX-License-Identifier: Apache-2.0
#include "verbs/responder.hpp"

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

ResponderObject::~ResponderObject() {
    *self_ = nullptr;
    for (auto& connection : starting_) connection->leave_sink();
}

Result<void> ResponderObject::respond(std::unique_ptr<Stream> stream, ConstBuffer read_already) {
    if (starting_.size() >= limits::requests_waiting && !drop_longest_silent())
        return Error{.code = Code::exhausted, .where = limits::requests_waiting};
    WEFT_TRY(auto connection,
             ConnectionObject::respond(core_, std::move(stream), read_already, *this));
    starting_.push_back(std::move(connection));
    return {};
}

/// Who connects and says nothing is given up after a while, and sooner where others want its place:
/// many silent ones cannot keep out one who speaks at once.
bool ResponderObject::drop_longest_silent() {
    auto silent = std::find_if(starting_.begin(), starting_.end(),
                               [](auto& each) { return !each->has_request(); });
    if (silent == starting_.end()) return false;
    abandoned(**silent);
    return true;
}

std::unique_ptr<ConnectionObject> ResponderObject::take(ConnectionObject& connection) {
    auto found = std::find_if(starting_.begin(), starting_.end(),
                              [&](auto& each) { return each.get() == &connection; });
    WEFT_CHECK(found != starting_.end());
    auto taken = std::move(*found);
    starting_.erase(found);
    return taken;
}

void ResponderObject::requested(ConnectionObject& connection) {
    // Told from the loop: the application may destroy what is calling us here.
    core_->world.defer([self = self_, connection = &connection] {
        if (!*self) return;
        auto& responder = **self;
        auto starting = std::find_if(responder.starting_.begin(), responder.starting_.end(),
                                     [&](auto& each) { return each.get() == connection; });
        // It may have ended meanwhile, and another that is not as far have got its place.
        if (starting == responder.starting_.end() || !connection->has_request()) return;
        auto taken = responder.take(*connection);
        taken->leave_sink();
        auto requested = responder.requested_;  // who may destroy the responder, and so itself
        requested(std::make_unique<RequestObject>(std::move(taken)));
    });
}

void ResponderObject::abandoned(ConnectionObject& connection) {
    auto gone = take(connection);
    if (!abandoned_) return;
    core_->world.defer([self = self_] {
        if (!*self) return;
        auto abandoned = (*self)->abandoned_;  // who may destroy the responder
        abandoned();
    });
}

}  // namespace weft::verbs
