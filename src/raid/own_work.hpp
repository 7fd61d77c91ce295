// SPDX-License-Identifier: Apache-2.0
// What the controller does itself when data goes by way of it: orders like a box's, on windows like
// a box's, without a disk. Boxes reach these windows by tag; a host that is the controller itself
// is reached by a copy.
//
// These windows have a numbering of their own. A read that goes around a late box abandons its
// window: that box may still write there, so tag and memory stay as they are and nobody reads them,
// until the box has confirmed that it is done, or can reach the controller no longer. A late Write
// that met a closed tag would end the connection, and with it all other transfers of that box.
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

/// The number of a window of the controller. It says nothing of the window at the boxes.
enum class OwnWindow : std::uint32_t {};

constexpr std::uint32_t number(OwnWindow window) {
    return static_cast<std::uint32_t>(window);
}

/// So many windows the controller needs for requests under way of which each has one: as many again
/// may be abandoned for each of two boxes that are late at a time.
constexpr std::uint32_t own_windows_for(std::uint32_t windows) {
    return 3 * windows;
}

class OwnWork {
public:
    class Listener {
    public:
        /// Under which tag boxes reach this window of the controller in this transaction.
        virtual SteeringTag own_window_tag(std::uint32_t window,
                                           wire::TransactionNumber transaction) = 0;
        virtual void own_order_ended(CommandTicket ticket, const OrderResult& result) = 0;

    protected:
        ~Listener() = default;
    };

    OwnWork(Listener& listener, const OwnSide& side);
    ~OwnWork();

    std::uint32_t windows() const;
    std::uint32_t window_limit() const;
    std::uint32_t abandoned() const;  ///< windows that wait for late boxes

    /// A window that is free. `local` is the memory of a host that is ourselves, or empty.
    /// `exhausted`: none is free now. The first close() may change that; time does, where a peer
    /// has yet to acknowledge what it read of a window before.
    Result<OwnWindow> open(wire::TransactionNumber transaction, std::uint32_t length, Buffer local);
    /// By which boxes reach it, until close().
    SteeringTag tag(OwnWindow window) const;
    /// One at a time in each window, which is open and not abandoned. May end inside.
    void start(OwnWindow window, CommandTicket ticket, ReceivedOrder order);
    /// Nobody needs what is written there any more, but boxes may still write. No order may be
    /// under way in it. It is kept out of use until close().
    void abandon(OwnWindow window);
    /// No box writes there any more. An order under way in it ends untold.
    void close(OwnWindow window);

private:
    class Window;
    enum class State : std::uint8_t { free, open, abandoned };
    struct Slot {
        State state = State::free;
        SteeringTag tag{};
        std::unique_ptr<Window> work;  ///< while it is open
    };

    Slot& used(OwnWindow window);

    Listener& listener_;
    OwnSide side_;
    std::vector<Slot> slots_;
};

}  // namespace weft::raid
