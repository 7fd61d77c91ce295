// SPDX-License-Identifier: Apache-2.0
#include "abi/sockets/stream.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"

namespace weft::abi::sockets {
namespace {

std::uint64_t address_of(ConstBuffer memory) {
    return reinterpret_cast<std::uintptr_t>(memory.data());
}

template <class Described>
ConstBuffer octets_of(const Described& described) {
    return std::as_bytes(std::span(&described, 1));
}

}  // namespace

Stream::Stream(Carrier& carrier, const StreamMemory& memory, std::uint32_t entries,
               std::uint16_t credits)
    : carrier_(carrier),
      memory_(memory),
      incoming_(memory.receive_ring, credits),
      outgoing_(carrier, memory.send_ring, entries - limits::control_entries),
      mappings_((memory.slots.size() - StreamMemory::slots_size(0)) / sizeof(Mapping)) {
    WEFT_CHECK(memory.slots.size() >= StreamMemory::slots_size(0));
}

Introduction Stream::introduction() const {
    auto window = incoming_.first_window();
    return {.flags = Introduction::own_flags(),
            .credits = incoming_.credits(),
            .mapping_scale = scale_of(static_cast<std::uint32_t>(mappings_.size())),
            .slots = {address_of(memory_.slots), memory_.slots_key, limits::windows},
            .first_window = {address_of(window), memory_.receive_key,
                             static_cast<std::uint32_t>(window.size())}};
}

bool Stream::begin(const Introduction& peer) {
    if (peer.version != 1 || !peer.has_our_byte_order()) return false;
    if (peer.slots.length < limits::windows || peer.first_window.length == 0) return false;
    peers_slots_ = peer.slots;
    if (peer.flags & Introduction::has_mappings)
        peers_mapping_slots_ = count_of(peer.mapping_scale);
    outgoing_.begin(peer.credits, peer.first_window);
    connected_ = readable_ = writable_ = true;
    return true;
}

void Stream::heard(Message message) {
    has_heard_ = true;
    if (!connected_) return;
    switch (message.topic) {
        case Topic::data:
            if (!incoming_.arrived(message.value)) broken_ = true;
            break;
        case Topic::credits:
            outgoing_.allow(static_cast<std::uint16_t>(message.value));
            look_for_windows();
            break;
        case Topic::mapping:
            incoming_.counted();
            look_at_mapping(message.value);
            break;
        case Topic::control:
            switch (static_cast<Control>(message.value)) {
                case Control::disconnect:
                    end();
                    break;
                case Control::shutdown:
                    readable_ = false;
                    if (!writable_) end();
                    break;
                case Control::keep_alive:
                    break;
            }
            break;
        default:
            broken_ = true;
    }
    if (broken_) end();
}

/// A slot is read once and emptied: the peer describes a window there only after we have filled
/// the one it described there before.
void Stream::look_for_windows() {
    for (;;) {
        auto slot = memory_.slots.subspan(own_slot_next_ * sizeof(Window), sizeof(Window));
        Window window;
        std::memcpy(&window, slot.data(), sizeof window);
        if (window.length == 0) return;
        if (!outgoing_.offer(window)) {
            broken_ = true;
            return;
        }
        std::memset(slot.data(), 0, slot.size());
        own_slot_next_ = (own_slot_next_ + 1) % limits::windows;
    }
}

void Stream::look_at_mapping(std::uint32_t index) {
    if (index >= mappings_.size()) {
        broken_ = true;
        return;
    }
    auto slot = memory_.slots.subspan(StreamMemory::slots_size(index), sizeof(Mapping));
    std::memcpy(&mappings_[index], slot.data(), slot.size());
}

void Stream::done(const Receipt& receipt) {
    outgoing_.done(receipt);
    control_free_ += receipt.control_entries;
    WEFT_CHECK(control_free_ <= limits::control_entries);
    if (receipt.ends_connection) end();
}

void Stream::lost() {
    end();
}

void Stream::failed() {
    broken_ |= connected_;
    end();
}

void Stream::grant() {
    // With a window it takes two entries, and one that waits for a second soon has it.
    if (!connected_ || control_free_ < 2 || !incoming_.owes_grant()) return;
    auto lent = incoming_.lend();
    Message message{Topic::credits, incoming_.grant()};
    if (!lent) {
        --control_free_;
        return note(carrier_.say(message, {.control_entries = 1}));
    }
    Window window{address_of(*lent), memory_.receive_key, static_cast<std::uint32_t>(lent->size())};
    Window slot{peers_slots_.address + peers_slot_next_ * sizeof(Window), peers_slots_.key,
                sizeof(Window)};
    peers_slot_next_ = (peers_slot_next_ + 1) % peers_slots_.length;
    control_free_ -= 2;
    auto octets = octets_of(window);
    note(carrier_.write_and_say({&octets, 1}, slot, message, {.control_entries = 2}));
}

std::optional<Control> Stream::shut(Shutdown how) {
    if (!connected_) return std::nullopt;
    bool ends_reading = readable_ && how != Shutdown::writing;
    bool ends_writing = writable_ && how != Shutdown::reading;
    if (ends_reading) readable_ = false;
    if (ends_writing) writable_ = false;
    if (!readable_ && !writable_ && (ends_reading || ends_writing)) return Control::disconnect;
    if (ends_writing) return Control::shutdown;
    return std::nullopt;
}

void Stream::say(Control control) {
    if (!connected_) return;
    WEFT_CHECK(can_say_control());
    --control_free_;
    note(carrier_.say({Topic::control, static_cast<std::uint32_t>(control)},
                      {.control_entries = 1, .ends_connection = control == Control::disconnect}));
}

void Stream::remind() {
    if (!connected_ || !can_say_control()) return;
    --control_free_;
    note(carrier_.write({}, {}, {.control_entries = 1}));
}

void Stream::tell_mapping(std::uint32_t slot, const Mapping& mapping) {
    WEFT_CHECK(slot < peers_mapping_slots_);
    auto mappings_begin = peers_slots_.address + peers_slots_.length * sizeof(Window);
    Window place{mappings_begin + slot * sizeof(Mapping), peers_slots_.key, sizeof(Mapping)};
    note(outgoing_.tell(octets_of(mapping), place, {Topic::mapping, slot}));
}

std::optional<Window> Stream::find_mapping(std::uint64_t offset) const {
    for (const auto& mapping : mappings_) {
        if (offset < mapping.offset || offset - mapping.offset >= mapping.memory.length) continue;
        auto skipped = static_cast<std::uint32_t>(offset - mapping.offset);
        return Window{mapping.memory.address + skipped, mapping.memory.key,
                      mapping.memory.length - skipped};
    }
    return std::nullopt;
}

}  // namespace weft::abi::sockets
