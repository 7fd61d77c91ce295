// SPDX-License-Identifier: Apache-2.0
// Orders on their way to a box. A plan speaks of parties and offsets; on the wire stand the
// steering tags under which their memory is reached, and who the order is from and for. What a box
// reads is checked whole before any of it is done: then nothing an order says can lie outside its
// window, its disk, or the code.
#pragma once

#include <span>
#include <vector>

#include "raid/order.hpp"
#include "wire/scsi_array.hpp"

namespace weft::raid {

/// How a party's memory is reached.
struct PartyAccess {
    Party party{};
    SteeringTag tag{};
    std::uint64_t base = 0;
    wire::BoxIdentity identity{};

    bool operator==(const PartyAccess&) const = default;
};

/// What an order carries besides its pieces.
struct OrderEnvelope {
    wire::ArrayAddress address{};
    wire::TransactionNumber transaction{};
    wire::HostSession host{};
    std::uint64_t host_command = 0;
    Mask participants = 0;
    std::uint32_t window = 0;
    SteeringTag window_tag{};
    std::uint32_t window_length = 0;
    wire::TransactionNumber settled{};
    wire::HostIdentity host_identity{};
    std::uint32_t lease_ms = 0;
    std::uint32_t to_prepare = 0;

    bool operator==(const OrderEnvelope&) const = default;
};

struct EncodedOrder {
    wire::ArrayCommandBlock command_block;
    std::vector<std::byte> parameters;
};

/// The parties an order speaks of, as they are numbered on the wire: an answer names one so.
std::vector<Party> parties_of(const Order& order);

/// `accesses` has every party the order's pieces speak of, and may have more.
EncodedOrder encode_order(const Order& order, const OrderEnvelope& envelope,
                          std::span<const PartyAccess> accesses);

/// Says in an encoded order how much longer its sender is in office; other commands do not say it.
void stamp_lease(const wire::ArrayCommandBlock& block, Buffer parameters, std::uint32_t lease_ms);

/// What bounds an order where it is carried out.
struct OrderBounds {
    std::uint64_t home_length = 0;
    std::uint32_t window_limit = 0;
};

struct ReceivedOrder {
    Order order;  ///< `to` is not on the wire: it is whoever reads
    OrderEnvelope envelope;
    std::vector<PartyAccess> parties;
};

/// `truncated` if the list is shorter than it says, `malformed` for what no controller would say,
/// `out_of_range` for pieces beyond window or disk, `exhausted` for a window larger than there is.
/// `where` is the number of the piece, from 1; 0 for the rest.
Result<ReceivedOrder> parse_order(const wire::ArrayCommandBlock& block, ConstBuffer parameters,
                                  const OrderBounds& bounds);

}  // namespace weft::raid
