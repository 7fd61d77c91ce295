// SPDX-License-Identifier: Apache-2.0
// What the controller does itself when data goes by way of it: orders like a box's, on windows like
// a box's, without a disk. Boxes reach these windows by tag; a host that is the controller itself
// is reached by a copy.
#pragma once

#include <memory>
#include <vector>

#include "raid/box.hpp"

namespace weft::raid {

/// The controller's own share when data goes by way of it.
struct OwnSide {
    StagingMemory* windows = nullptr;  ///< none: no data goes by way of this controller
    PeerTransfers* transfers = nullptr;
    wire::BoxIdentity identity{};  ///< how boxes know the controller's end of a connection
};

class OwnWork {
public:
    class Listener {
    public:
        virtual void own_order_ended(CommandTicket ticket, const OrderResult& result) = 0;

    protected:
        ~Listener() = default;
    };

    OwnWork(Listener& listener, const OwnSide& side);
    ~OwnWork();

    std::uint32_t windows() const;
    std::uint32_t window_limit() const;
    /// `local` is the memory of a host that is ourselves, or empty.
    Result<void> open(std::uint32_t window, SteeringTag tag, std::uint32_t length, Buffer local);
    void close(std::uint32_t window);
    /// One at a time in each window, which is open. May end inside.
    void start(std::uint32_t window, CommandTicket ticket, ReceivedOrder order);

private:
    class Window;

    Listener& listener_;
    OwnSide side_;
    std::vector<std::unique_ptr<Window>> open_;
};

}  // namespace weft::raid
