// SPDX-License-Identifier: Apache-2.0
// `weft rdma rping`: the stock rping program's exchange, as its server or its client. The other
// side may be the stock program on any RNIC.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error_text.hpp"
#include "cli/rdma_options.hpp"
#include "cli/text.hpp"
#include "node/rping.hpp"

namespace weft::cli {
namespace {

struct Wishes : RdmaWishes {
    std::string server, client;
    std::uint32_t count = 10;
    std::string size = "64";
    bool persistent = false;
};

node::RpingOptions rping_options(const Wishes& wishes) {
    constexpr std::uint64_t largest = 1u << 30;
    auto size = parse_size(wishes.size);
    if (!size || *size < 32 || *size > largest)
        throw Refusal{
            fmt::format("'{}' is not a size of 32 B to {}", wishes.size, show_size(largest))};
    return {.size = static_cast<std::uint32_t>(*size),
            .count = wishes.client.empty() ? 0 : wishes.count,
            .connection = connect_options(wishes)};
}

/// What became of one side; a fault is the command's failure.
int report(const Wishes& wishes, const std::string& peer, const node::RpingOutcome& outcome,
           double seconds) {
    if (wishes.as_json) {
        auto document =
            nlohmann::json{{"peer", peer}, {"pings", outcome.pings}, {"seconds", seconds}};
        if (outcome.fault) document["fault"] = *outcome.fault;
        fmt::print("{}\n", show_json(document));
        return outcome.fault ? refused : done;
    }
    if (outcome.fault) throw Refusal{fmt::format("{}: {}", peer, *outcome.fault)};
    fmt::print("{}: {} pings of {} there and back in {}\n", peer, outcome.pings,
               show_size(*parse_size(wishes.size)), show_duration(seconds));
    return done;
}

double seconds_since(World& world, Instant began) {
    return std::chrono::duration<double>(world.now() - began).count();
}

int ping(const Wishes& wishes) {
    auto world = make_world(world_options(wishes));
    auto device = verbs::make_device(*world, {});
    auto address = rdma_address(wishes.client);
    std::optional<node::RpingOutcome> outcome;
    auto client = node::RpingClient::connect(*device, address, rping_options(wishes),
                                             [&](const node::RpingOutcome& how) { outcome = how; });
    if (!client)
        throw Refusal{
            fmt::format("cannot connect to {}: {}", wishes.client, to_text(client.error()))};
    auto began = world->now();
    if (!drive(*world, wishes, [&] { return outcome.has_value(); }))
        outcome = node::RpingOutcome{.pings = (*client)->pings(), .fault = "interrupted"};
    return report(wishes, wishes.client, *outcome, seconds_since(*world, began));
}

int serve(const Wishes& wishes) {
    auto world = make_world(world_options(wishes));
    auto device = verbs::make_device(*world, {});
    auto options = rping_options(wishes);
    std::vector<std::unique_ptr<node::RpingServer>> servers;
    std::optional<node::RpingOutcome> last;
    Instant began;
    auto requested = [&](std::unique_ptr<verbs::ConnectionRequest> request) {
        std::erase_if(servers, [](auto& server) { return server->is_over(); });
        constexpr std::size_t clients_max = 1024;
        bool busy = !wishes.persistent && !servers.empty();
        if (busy || servers.size() >= clients_max) {
            (void)request->reject({});  // who is gone already needs no answer
            return;
        }
        began = world->now();
        auto peer = show_address(request->remote());
        auto server = node::RpingServer::accept(
            *device, *request, options, [&, peer](const node::RpingOutcome& how) {
                last = how;
                if (!wishes.persistent) return;
                print_news(how.fault ? fmt::format("{}: {}", peer, *how.fault)
                                     : fmt::format("{}: {} pings", peer, how.pings));
            });
        if (server) servers.push_back(std::move(*server));
    };
    auto address = rdma_address(wishes.server);
    auto listener = device->listen(address, requested);
    if (!listener)
        throw Refusal{
            fmt::format("cannot listen on {}: {}", wishes.server, to_text(listener.error()))};
    if (!wishes.as_json) {
        auto real = (*listener)->address();
        fmt::print(
            "Waiting on {0}. In another terminal:\n    weft rdma rping --client {0}\n"
            "    rping -c -a {1} -p {2} -C 10 -v\n",
            show_address(real), real.host, real.port);
        std::fflush(stdout);
    }
    bool finished = drive(*world, wishes, [&] { return last.has_value() && !wishes.persistent; });
    if (!last || (!finished && wishes.persistent)) return done;
    return report(wishes, wishes.server, *last, seconds_since(*world, began));
}

}  // namespace

int rdma_rping(const Command& self, const Arguments& arguments) {
    CLI::App options;
    Wishes wishes;
    auto* server = options.add_option("--server", wishes.server, "wait for a client on HOST:PORT");
    options.add_option("--client", wishes.client, "ping the server at HOST:PORT")->excludes(server);
    options.add_option("--count", wishes.count, "pings the client makes")
        ->check(CLI::Range(1u, 1u << 30));
    options.add_option("--size", wishes.size, "of a ping; a server takes no larger ones");
    options.add_flag("--persistent", wishes.persistent, "serve one client after the other");
    declare(options, wishes);
    if (auto leave = parse(self, options, arguments)) return *leave;
    if (wishes.server.empty() == wishes.client.empty())
        throw Misuse{"give either --server HOST:PORT or --client HOST:PORT"};
    return wishes.server.empty() ? ping(wishes) : serve(wishes);
}

}  // namespace weft::cli
