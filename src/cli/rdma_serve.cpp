// SPDX-License-Identifier: Apache-2.0
// `weft rdma serve`: a peer for `weft rdma ping` and `weft rdma bench`.
#include <fmt/format.h>

#include <list>
#include <nlohmann/json.hpp>

#include "base/error_text.hpp"
#include "cli/rdma_options.hpp"
#include "cli/text.hpp"
#include "linux/descriptor_limit.hpp"
#include "node/exercise_server.hpp"

namespace weft::cli {
namespace {

struct Wishes : RdmaWishes {
    std::string listen;
    std::size_t connections = 64;
};

class Service {
public:
    Service(const Wishes& wishes, verbs::Device& device) : wishes_(wishes), device_(device) {}

    void requested(std::unique_ptr<verbs::ConnectionRequest> request) {
        std::erase_if(peers_, [](auto& peer) { return peer->is_over(); });
        auto remote = show_address(request->remote());
        if (peers_.size() >= wishes_.connections) {
            (void)request->reject({});  // who is gone already needs no answer
            return say("refused", remote, fmt::format("{} are the limit", wishes_.connections));
        }
        auto peer = node::ExerciseServer::accept(
            device_, *request, connect_options(wishes_),
            [this, remote](node::ExerciseServer& gone) {
                say("left", remote, fmt::format("{} messages", gone.messages()));
            });
        if (!peer) return say("refused", remote, to_text(peer.error().code));
        say("connected", remote, "");
        peers_.push_back(std::move(*peer));
    }

private:
    void say(const char* what, const std::string& remote, const std::string& more) {
        if (wishes_.as_json)
            print_news(show_json({{"event", what}, {"peer", remote}, {"note", more}}));
        else
            print_news(fmt::format("{}: {}{}{}", remote, what, more.empty() ? "" : ", ", more));
    }

    const Wishes& wishes_;
    verbs::Device& device_;
    std::list<std::unique_ptr<node::ExerciseServer>> peers_;
};

}  // namespace

int rdma_serve(const Command& self, const Arguments& arguments) {
    CLI::App options;
    Wishes wishes;
    options.add_option("--listen", wishes.listen, "HOST:PORT to be reached at")->required();
    options.add_option("--connections", wishes.connections, "peers at a time")
        ->check(CLI::Range(1, 65536));
    declare(options, wishes);
    if (auto leave = parse(self, options, arguments)) return *leave;
    auto address = rdma_address(wishes.listen);
    linux::raise_descriptor_limit();
    auto world = make_world(world_options(wishes));
    auto device = verbs::make_device(*world, {});
    Service service(wishes, *device);
    auto listener =
        device->listen(address, [&](auto request) { service.requested(std::move(request)); });
    if (!listener)
        throw Refusal{
            fmt::format("cannot listen on {}: {}", wishes.listen, to_text(listener.error()))};
    auto where = show_address((*listener)->address());
    if (wishes.as_json) {
        fmt::print("{}\n", show_json({{"event", "listening"}, {"address", where}}));
    } else {
        fmt::print(
            "Serving RDMA on {0}. In another terminal:\n    weft rdma ping {0}\n"
            "    weft rdma bench {0} --op write --size 64K\nCtrl-C here stops.\n",
            where);
    }
    std::fflush(stdout);
    drive(*world, wishes, [] { return false; });
    return done;
}

}  // namespace weft::cli
