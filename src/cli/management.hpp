// SPDX-License-Identifier: Apache-2.0
// How `weft` talks to a running controller: on its one port, JSON documents, a line each. A request
// is answered by one line; some take their time. A controller with a key obeys those who prove that
// they know it: they ask for a challenge, and their request carries HMAC-SHA256 of the challenge
// and the request. One without a key obeys whoever comes from its own machine, and nobody else.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "weft/linux_world.hpp"

namespace weft::cli {

/// The contents of a key file: 16 to 4096 octets. "": no file, and no key. Throws a Refusal.
std::string read_key(const std::string& path);

class ManagementServer {
public:
    using Reply = std::function<void(const nlohmann::json&)>;
    /// Replies once, now or later. A Refusal or Misuse it throws is told to whoever asked.
    using Answer = std::function<void(const nlohmann::json& request, Reply reply)>;

    ManagementServer(World& world, std::string key, Answer answer);
    ManagementServer(const ManagementServer&) = delete;
    ManagementServer& operator=(const ManagementServer&) = delete;
    ~ManagementServer();

    /// A connection that speaks JSON, and what was read of it.
    void take(std::unique_ptr<Stream> stream, ConstBuffer read_already);

private:
    class Visitor;

    World& world_;
    std::string key_;
    Answer answer_;
    std::list<Visitor> visitors_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

/// Which controllers, of which one may be in office, and how to prove oneself there.
struct AtController {
    std::vector<Address> addresses;
    std::string key;  ///< "": none
};
/// Asks the only one, or the one that is in office, and gives the answer. Throws a Refusal, also
/// for the other's.
nlohmann::json ask_controller(const AtController& controller, const nlohmann::json& request);

struct OfficeAnswer {
    std::optional<std::string> trouble;  ///< why there is no answer, or a bad one: a sentence
    std::string state;                   ///< "in office", "standby", …
    std::string document;                ///< all it said, as JSON

    bool in_office() const { return state == "in office"; }
};
/// What each of them says of its office, in their order. `one_will_do`: not all need to have
/// answered when one is in office.
std::vector<OfficeAnswer> ask_for_office(const AtController& controller, bool one_will_do);

}  // namespace weft::cli
