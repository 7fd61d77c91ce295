// SPDX-License-Identifier: Apache-2.0
// What a controller tells people: plain values, which a face turns into words or JSON.
#pragma once

#include <string>
#include <vector>

#include "node/array_link_facts.hpp"
#include "raid/volume_engine.hpp"
#include "raid/volume_status.hpp"
#include "weft/instant.hpp"
#include "weft/world.hpp"

namespace weft::node {

/// How a controller stands to its office.
struct OfficeReport {
    enum class State : std::uint8_t { standby, in_office, doubtful, deposed, stepped_down };
    State state{};
    wire::Epoch epoch{};        ///< its own; of a standby: of who is in office
    std::string holder;         ///< where that one is, as it said itself
    Duration lease{};           ///< zero: none
    std::uint32_t left_ms = 0;  ///< of it, before nothing is done any more
};

struct BoxReport {
    std::string name;
    wire::BoxIdentity identity{};
    Address address;
    bool up = false;
    std::string trouble;  ///< why it is not up
    bool spare = false;
    std::uint64_t size = 0, free = 0;
    std::vector<std::string> volumes;    ///< it has a part of
    std::vector<std::string> unclaimed;  ///< the same, where the volume does not count the part
};

/// A part that no volume claimed, and that is gone.
struct RemovedPart {
    std::string volume;        ///< its name, or its digits where nobody knows that
    std::uint64_t octets = 0;  ///< of the box's room that it took
};

struct VolumeReport {
    std::string name;
    raid::VolumeStatus status;
    std::vector<std::string> box_names;  ///< of the members, by place; empty: none there
    std::size_t hosts = 0;
    // Since the controller has started:
    std::uint64_t requests = 0;        ///< of hosts and initiators
    std::uint64_t orders = 0;          ///< commands to boxes
    std::uint64_t payload_octets = 0;  ///< of requests whose data went by way of the controller
    std::uint64_t relayed_octets = 0;  ///< that went so to get around a link which is broken
};

struct HostReport {
    std::string name;
    std::string volume;
    wire::HostSession session{};
    Address address;
    std::uint64_t requests = 0;  ///< so far
};

/// A link as one end of it sees it.
struct LinkReport {
    std::string from;  ///< whose view it is: a box, or "controller"
    std::string to;    ///< a box, a host, or "controller"
    ArrayLinkFacts link;
};

struct LinkReports {
    std::vector<LinkReport> links;
    std::vector<std::string> silent;  ///< boxes that are up and did not say
};

struct ControllerEvent {
    std::uint64_t number = 0;  ///< counts up, over all controllers
    Date when{};
    std::string volume;  ///< empty: about none in particular
    std::string box;
    std::string what;  ///< a sentence
};

struct SlowOperation {
    Instant since{};
    Duration took{};
    bool under_way = false;
    std::string volume;
    raid::HostOperation operation{};
    std::uint64_t offset = 0, length = 0;
    wire::HostSession session{};
    raid::RequestStory story{};                  ///< where its time went
    std::vector<wire::BoxIdentity> waits_for{};  ///< boxes that have not answered
    wire::BoxIdentity slowest{};                 ///< whose answer took longest
    // The same by their names:
    std::vector<std::string> waits_for_names{};
    std::string slowest_name{};
};

}  // namespace weft::node
