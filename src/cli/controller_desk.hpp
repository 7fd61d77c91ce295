// SPDX-License-Identifier: Apache-2.0
// Where a controller is managed: requests as JSON to its calls, and what it knows as JSON.
#pragma once

#include "cli/management.hpp"
#include "node/controller_node.hpp"

namespace weft::cli {

/// {"do": "add box", "name": "oak", "address": "127.0.0.1:7001"} and the like. Throws a Refusal.
/// `step_down` is called soon after whoever asked for it was told.
void answer_management(World& world, node::ControllerNode& controller,
                       const std::function<void()>& step_down, const nlohmann::json& request,
                       const ManagementServer::Reply& reply);

/// One line of what happened, as JSON.
nlohmann::json event_json(const node::ControllerEvent& event);

}  // namespace weft::cli
