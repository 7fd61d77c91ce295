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
    bool is_busy() const { return work_ != nullptr; }

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
    : listener_(listener), side_(side), slots_(windows()) {}

OwnWork::~OwnWork() = default;

std::uint32_t OwnWork::windows() const {
    return side_.windows ? side_.windows->windows() : 0;
}

std::uint32_t OwnWork::window_limit() const {
    return side_.windows ? side_.windows->window_limit() : 0;
}

std::uint32_t OwnWork::abandoned() const {
    return static_cast<std::uint32_t>(std::ranges::count(slots_, State::abandoned, &Slot::state));
}

OwnWork::Slot& OwnWork::used(OwnWindow window) {
    WEFT_CHECK(number(window) < slots_.size() && slots_[number(window)].state != State::free);
    return slots_[number(window)];
}

/// The lowest number that is free: the memory of a window that was never used costs nothing.
Result<OwnWindow> OwnWork::open(wire::TransactionNumber transaction, std::uint32_t length,
                                Buffer local) {
    if (slots_.empty() || length > window_limit()) return Error{Code::unsupported};
    for (std::uint32_t window = 0; window < slots_.size(); ++window) {
        Slot& slot = slots_[window];
        if (slot.state != State::free) continue;
        const SteeringTag tag = listener_.own_window_tag(window, transaction);
        const auto memory = side_.windows->open(window, tag, length);
        if (!memory && memory.error().code == Code::exhausted) continue;  // it is still lent
        if (!memory) return memory.error();
        slot = {State::open, tag,
                std::make_unique<Window>(*this, *memory, side_.windows->landing(window), local)};
        return OwnWindow{window};
    }
    return Error{Code::exhausted};
}

SteeringTag OwnWork::tag(OwnWindow window) const {
    return slots_[number(window)].tag;
}

void OwnWork::start(OwnWindow window, CommandTicket ticket, ReceivedOrder order) {
    Slot& slot = used(window);
    WEFT_CHECK(slot.state == State::open);
    slot.work->start(ticket, std::move(order));
}

void OwnWork::abandon(OwnWindow window) {
    Slot& slot = used(window);
    WEFT_CHECK(slot.state == State::open && !slot.work->is_busy());
    slot.work.reset();
    slot.state = State::abandoned;
}

void OwnWork::close(OwnWindow window) {
    used(window) = {};
    side_.windows->close(number(window));
}

}  // namespace weft::raid
