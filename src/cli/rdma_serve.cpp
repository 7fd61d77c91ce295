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
    std::string memory = "2G";
};

class Service {
public:
    Service(const Wishes& wishes, World& world, verbs::Device& device, std::uint64_t memory)
        : wishes_(wishes), world_(world), device_(device), memory_left_(memory) {}

    void requested(std::unique_ptr<verbs::ConnectionRequest> request) {
        auto remote = show_address(request->remote());
        if (peers_.size() >= wishes_.connections) {
            (void)request->reject({});  // who is gone already needs no answer
            return say("refused", remote, fmt::format("{} are the limit", wishes_.connections));
        }
        auto peer = node::ExerciseServer::accept(
            device_, *request, connect_options(wishes_), memory_left_,
            [this, remote](node::ExerciseServer& gone) {
                say("left", remote, fmt::format("{} messages", gone.messages()));
                // From here it would pull the queue pair away under the connection that tells.
                world_.defer([this] { forget_the_gone(); });
            });
        if (!peer) return say("refused", remote, why_refused(peer.error()));
        say("connected", remote, "");
        memory_left_ -= (*peer)->memory();
        peers_.push_back(std::move(*peer));
    }

private:
    void forget_the_gone() {
        std::erase_if(peers_, [this](auto& peer) {
            if (peer->is_over()) memory_left_ += peer->memory();
            return peer->is_over();
        });
    }

    std::string why_refused(const Error& why) const {
        if (why.code != Code::out_of_range) return to_text(why.code);
        return fmt::format("it asks for more than the {} that are left; --memory allows more",
                           show_size(memory_left_));
    }

    void say(const char* what, const std::string& remote, const std::string& more) {
        if (wishes_.as_json)
            print_news(show_json({{"event", what}, {"peer", remote}, {"note", more}}));
        else
            print_news(fmt::format("{}: {}{}{}", remote, what, more.empty() ? "" : ", ", more));
    }

    const Wishes& wishes_;
    World& world_;
    verbs::Device& device_;
    std::uint64_t memory_left_;
    std::list<std::unique_ptr<node::ExerciseServer>> peers_;
};

}  // namespace

int rdma_serve(const Command& self, const Arguments& arguments) {
    CLI::App options;
    Wishes wishes;
    options.add_option("--listen", wishes.listen, "HOST:PORT to be reached at")->required();
    options.add_option("--connections", wishes.connections, "peers at a time")
        ->check(CLI::Range(1, 65536));
    options.add_option("--memory", wishes.memory, "for the messages of all peers together");
    declare(options, wishes);
    if (auto leave = parse(self, options, arguments)) return *leave;
    auto memory = parse_size(wishes.memory);
    if (!memory) throw Refusal{fmt::format("'{}' is not a size", wishes.memory)};
    auto address = rdma_address(wishes.listen);
    linux::raise_descriptor_limit();
    auto world = make_world(world_options(wishes));
    auto device = verbs::make_device(*world, {});
    Service service(wishes, *world, *device, *memory);
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
