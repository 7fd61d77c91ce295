// SPDX-License-Identifier: Apache-2.0
// A stream of bytes each way over one queue pair: the protocol of the sockets, without the sockets.
//
// It touches nothing outside but the memory it was given and its Carrier, and waits for nothing:
// whoever drives it says what has been heard and what has ended, and asks it what can be done now.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "abi/sockets/carrier.hpp"
#include "abi/sockets/incoming.hpp"
#include "abi/sockets/outgoing.hpp"

namespace weft::abi::sockets {

/// What a stream works in. The peer may write to the last two, and knows them by their keys.
struct StreamMemory {
    Buffer send_ring;
    Buffer receive_ring;
    Buffer slots;  ///< where the peer describes its windows, and then its mappings
    std::uint32_t receive_key = 0;
    std::uint32_t slots_key = 0;

    static std::size_t slots_size(std::uint32_t mappings) {
        return limits::windows * sizeof(Window) + mappings * sizeof(Mapping);
    }
};

enum class Shutdown : std::uint8_t { reading, writing, both };

class Stream {
public:
    /// `entries`: of the send queue. `credits`: of the receive queue, for the peer's data.
    Stream(Carrier& carrier, const StreamMemory& memory, std::uint32_t entries,
           std::uint16_t credits);

    // The beginning.
    Introduction introduction() const;
    /// False if the peer does not speak our language.
    bool begin(const Introduction& peer);

    // What has happened.
    void heard(Message message);
    void done(const Receipt& receipt);
    /// The queue pair takes nothing more.
    void lost();
    /// It could not do what it had taken.
    void failed();
    /// The peer broke the rules, or something of ours did not reach it; the connection is over.
    bool is_broken() const { return broken_; }

    // What can be done.
    /// Both sides are there, or were not heard to have gone.
    bool is_connected() const { return connected_; }
    /// More data may come.
    bool is_readable() const { return readable_; }
    bool is_writable() const { return writable_; }
    bool can_send() const { return writable_ && outgoing_.has_room(); }
    bool can_write_mapped() const { return writable_ && outgoing_.has_room_unasked(); }
    /// Nothing of ours is under way, or will ever be.
    bool is_idle() const { return !connected_ || (outgoing_.is_idle() && control_is_idle()); }

    Incoming& incoming() { return incoming_; }
    Outgoing& outgoing() { return outgoing_; }
    /// Where the queue pair refuses what a half has sent, the connection is lost.
    void note(bool accepted) {
        if (!accepted) lost();
    }

    /// Tells the peer of what was read, if it is time. To be called whenever something was read,
    /// heard or done.
    void grant();

    /// From now on nothing is read, written or both. What the peer is to be told, if anything.
    std::optional<Control> shut(Shutdown how);
    bool can_say_control() const { return control_free_ > 0; }
    void say(Control control);
    bool has_heard_anything() const { return has_heard_; }
    /// Shows that we are there, by a write of nothing to nowhere.
    void remind();

    // Memory of the applications, written without being asked.
    std::uint32_t peers_mapping_slots() const { return peers_mapping_slots_; }
    /// Needs can_send().
    void tell_mapping(std::uint32_t slot, const Mapping& mapping);
    /// What the peer has told to be there; its length is what follows the offset.
    std::optional<Window> find_mapping(std::uint64_t offset) const;

private:
    bool control_is_idle() const { return control_free_ == limits::control_entries; }
    void look_for_windows();
    void look_at_mapping(std::uint32_t index);
    void end() { connected_ = readable_ = writable_ = false; }

    Carrier& carrier_;
    StreamMemory memory_;
    Incoming incoming_;
    Outgoing outgoing_;
    std::uint32_t control_free_ = limits::control_entries;

    Window peers_slots_;
    std::uint32_t peers_slot_next_ = 1;  ///< the first window was told by the introduction
    std::uint32_t own_slot_next_ = 1;
    std::uint32_t peers_mapping_slots_ = 0;
    std::vector<Mapping> mappings_;  ///< the peer's, as it told them

    bool has_heard_ = false;
    bool connected_ = false, readable_ = false, writable_ = false, broken_ = false;
};

}  // namespace weft::abi::sockets
