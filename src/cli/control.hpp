// SPDX-License-Identifier: Apache-2.0
// How `weft` talks to a running `weft`: a Unix socket, one JSON document per line and direction.
// Who may open the socket is the file system's business.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "weft/linux_world.hpp"

namespace weft::cli {

class ControlServer {
public:
    /// Answers a request. A Refusal or Misuse it throws is told to whoever asked.
    using Answer = std::function<nlohmann::json(const nlohmann::json& request)>;

    /// Throws a Refusal if it cannot listen there.
    ControlServer(World& world, const std::string& path, Answer answer);
    ControlServer(const ControlServer&) = delete;
    ControlServer& operator=(const ControlServer&) = delete;
    ~ControlServer();

private:
    class Visitor;

    void accepted(std::unique_ptr<Stream> stream);

    World& world_;
    Answer answer_;
    std::list<Visitor> visitors_;
    std::unique_ptr<Listener> listener_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

/// Asks the weft that listens there, and gives its answer. Throws a Refusal, also for the other's.
nlohmann::json ask_control(const std::string& path, const nlohmann::json& request);

}  // namespace weft::cli
