// SPDX-License-Identifier: Apache-2.0
#include "raid/own_work.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace weft::raid {
namespace {

class NoDisk final : public BlockDevice {
public:
    BlockTraits traits() const override { return {}; }
    void submit(BlockRequest& request) override { request.completed(Error{Code::unsupported}); }
};

}  // namespace

class OwnWork::Window final : private OrderWorkOwner, private PeerTransfers {
public:
    Window(OwnWork& all, Buffer memory, Buffer landing, Buffer local)
        : all_(all), memory_(memory), landing_(landing), local_(local) {}

    void start(CommandTicket ticket, ReceivedOrder order) {
        WEFT_CHECK(!work_);
        ticket_ = ticket;
        OrderWorkOwner& owner = *this;
        work_ = std::make_unique<OrderWork>(owner, std::move(order),
                                            OrderWork::Place{.disk = no_disk_,
                                                             .data_offset = 0,
                                                             .peers = *this,
                                                             .window = memory_,
                                                             .landing = landing_});
        work_->start();
    }

private:
    void order_ended(OrderWork&, const OrderResult& result) override {
        const OrderResult told = result;
        work_.reset();
        all_.listener_.own_order_ended(ticket_, told);  // which may close this window
    }
    void fetch(PeerTransfer& transfer) override {
        if (transfer.peer.party != the_host || local_.empty())
            return all_.side_.transfers->fetch(transfer);
        if (!within(transfer.at, transfer.memory.size(), local_.size()))
            return transfer.completed(Error{Code::out_of_range});
        std::ranges::copy(local_.subspan(transfer.at, transfer.memory.size()),
                          transfer.memory.begin());
        transfer.completed({});
    }
    void send(PeerTransfer& transfer) override {
        if (transfer.peer.party != the_host || local_.empty())
            return all_.side_.transfers->send(transfer);
        if (!within(transfer.at, transfer.memory.size(), local_.size()))
            return transfer.completed(Error{Code::out_of_range});
        std::ranges::copy(transfer.memory,
                          local_.begin() + static_cast<std::ptrdiff_t>(transfer.at));
        transfer.completed({});
    }

    OwnWork& all_;
    Buffer memory_, landing_, local_;
    NoDisk no_disk_;
    CommandTicket ticket_{};
    std::unique_ptr<OrderWork> work_;
};

OwnWork::OwnWork(Listener& listener, const OwnSide& side)
    : listener_(listener), side_(side), open_(windows()) {}

OwnWork::~OwnWork() = default;

std::uint32_t OwnWork::windows() const {
    return side_.windows ? side_.windows->windows() : 0;
}

std::uint32_t OwnWork::window_limit() const {
    return side_.windows ? side_.windows->window_limit() : 0;
}

Result<void> OwnWork::open(std::uint32_t window, SteeringTag tag, std::uint32_t length,
                           Buffer local) {
    if (window >= open_.size()) return Error{Code::unsupported};
    WEFT_TRY(auto memory, side_.windows->open(window, tag, length));
    open_[window] = std::make_unique<Window>(*this, memory, side_.windows->landing(window), local);
    return {};
}

void OwnWork::close(std::uint32_t window) {
    if (window >= open_.size() || !open_[window]) return;
    open_[window].reset();
    side_.windows->close(window);
}

void OwnWork::start(std::uint32_t window, CommandTicket ticket, ReceivedOrder order) {
    open_[window]->start(ticket, std::move(order));
}

}  // namespace weft::raid
