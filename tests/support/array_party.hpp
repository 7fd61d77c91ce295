// SPDX-License-Identifier: Apache-2.0
// Parties of an array on simulated machines: each with an RNIC, its links, and some memory that
// peers may read and write.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "node/array_links.hpp"
#include "sim/world.hpp"

namespace weft::test {

inline constexpr wire::ClusterIdentity the_cluster{{1, 2, 3}};
inline constexpr wire::Epoch the_epoch{5};

inline wire::ArrayConnectionEnd box_end(std::uint8_t number) {
    wire::ArrayConnectionEnd end{.role = wire::ArrayRole::box, .identity = {}};
    end.identity.octets[0] = number;
    return end;
}

inline node::ArraySecret secret_of(std::uint8_t seed) {
    node::ArraySecret secret{};
    secret.fill(seed);
    return secret;
}

class ArrayParty {
public:
    static constexpr std::uint16_t port = 7174;

    ArrayParty(sim::World& the_world, const std::string& machine, wire::ArrayConnectionEnd self,
               const node::ArrayLinks::Options& options)
        : name(machine),
          end(self),
          device(verbs::make_device(the_world.host(machine), {})),
          links(std::make_unique<node::ArrayLinks>(the_world.host(machine), *device, options)) {
        links->set_office(the_cluster, the_epoch);
        links->appear_as(self, std::nullopt);
        links->on_event([this](const auto& event) { events.push_back(event); });
        listener = std::move(*device->listen(where(), [this](auto request) {
            if (links) links->take(std::move(request));
        }));
        region = std::move(*links->domain()->register_memory(
            memory, Rights::local_write | Rights::remote_read | Rights::remote_write,
            Addressing::from_zero));
    }

    Address where() const { return Address::tcp(name, port); }
    void meets(const ArrayParty& other, const node::ArraySecret& secret) {
        ASSERT_TRUE(links->know(other.end, secret, other.where()));
    }
    /// How another's order would name this party's memory.
    raid::PartyAccess access() const {
        auto kind =
            end.role == wire::ArrayRole::host ? raid::PartyKind::host : raid::PartyKind::box;
        return {.party = {kind, {}}, .tag = region->tag(), .base = 0, .identity = end.identity};
    }
    std::string last_reason() const { return events.empty() ? "" : events.back().why; }

    std::string name;
    wire::ArrayConnectionEnd end;
    std::vector<std::byte> memory = std::vector<std::byte>(1 << 20);
    std::vector<node::ArrayLinks::Event> events;
    std::unique_ptr<verbs::Device> device;
    std::unique_ptr<node::ArrayLinks> links;
    std::unique_ptr<Listener> listener;
    std::unique_ptr<verbs::MemoryRegion> region;
};

/// A transfer that remembers how it ended, and may do something then.
class TestTransfer final : public raid::PeerTransfer {
public:
    TestTransfer(const raid::PartyAccess& whose, std::uint64_t offset, std::size_t size,
                 std::uint8_t fill)
        : octets(size, std::byte{fill}) {
        peer = whose;
        at = offset;
        memory = octets;
    }
    void completed(Result<void> outcome) override {
        ++ends;
        if (!outcome) failure = outcome.error().code;
        if (then) then();
    }
    bool succeeded() const { return ends == 1 && !failure; }

    std::vector<std::byte> octets;
    int ends = 0;
    std::optional<Code> failure;
    std::function<void()> then;
};

}  // namespace weft::test
