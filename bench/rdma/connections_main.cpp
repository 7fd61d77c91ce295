// SPDX-License-Identifier: Apache-2.0
// What many connections cost a target, measured: the sum of the iSER paper's section 7.2.5.3.
//
// Clients in a child process hold the connections and send bursts of PDUs on all of them at once.
// The target receives them into queues of each connection's own, deep enough for four writes of 64
// KiB unsolicited data in PDUs of 8 KiB, as the paper has it (40 receives each); or into one shared
// queue that is filled up again when its low-water event comes. Nothing may be lost either way.
// With --receives none, the connections just stay: what does an idle one cost?
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <fstream>
#include <memory>
#include <vector>

#include "insist.hpp"
#include "weft/linux_world.hpp"
#include "weft/rdma.hpp"

namespace weft::bench {
namespace {

struct Options {
    std::string receives = "shared";
    std::uint32_t connections = 1000;
    std::uint32_t own_depth = 40;
    std::uint32_t shared_depth = 1000;
    std::uint32_t low_water = 500;
    std::uint32_t pdu_bytes = 8252;
    std::uint32_t messages = 20;  ///< on each connection
    std::uint16_t port = 7175;
};

std::size_t resident_bytes() {
    std::size_t all = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> all >> resident;
    return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

/// Memory for `count` PDUs, touched, in one region.
struct Pdus {
    Pdus(verbs::ProtectionDomain& domain, std::size_t count, std::uint32_t size)
        : pdu_size(size), bytes(count * size, std::byte{1}) {
        region = insist(domain.register_memory(bytes, Rights::local_write), "memory");
    }
    verbs::LocalMemory one(std::size_t i) const { return region->local(i * pdu_size, pdu_size); }

    std::uint32_t pdu_size;
    std::vector<std::byte> bytes;
    std::unique_ptr<verbs::MemoryRegion> region;
};

struct Connected final : verbs::ConnectionEvents {
    void established() override { is_established = true; }
    void rejected() override { is_over = true; }
    void failed(Error) override { is_over = true; }
    void disconnected() override { is_over = true; }

    std::unique_ptr<verbs::QueuePair> queue_pair;
    std::unique_ptr<verbs::Connection> connection;
    std::uint32_t to_send = 0;
    bool is_established = false, is_over = false;
};

class Target {
public:
    explicit Target(const Options& options)
        : options_(options),
          world_(insist(open_linux_world({}), "world")),
          device_(verbs::make_device(*world_, {.on_event = [this](auto& event) { noted(event); }})),
          domain_(device_->make_domain()),
          completions_(
              insist(device_->make_completion_queue(
                         std::size_t{options.connections} * options.own_depth + 1, nullptr),
                     "completion queue")),
          idle_bytes_(resident_bytes()) {
        listener_ = insist(device_->listen(Address::tcp("127.0.0.1", options.port),
                                           [this](auto request) { accept(*request); }),
                           "listen");
        if (options.receives == "shared") {
            shared_ = insist(device_->make_shared_receive_queue(options.shared_depth, 1), "shared");
            pdus_ = std::make_unique<Pdus>(*domain_, options.shared_depth, options.pdu_bytes);
            for (std::size_t i = 0; i < options.shared_depth; ++i) consumed_.push_back(i);
            refill();
        } else if (options.receives == "own") {
            pdus_ = std::make_unique<Pdus>(
                *domain_, std::size_t{options.connections} * options.own_depth, options.pdu_bytes);
        }
    }

    void run() {
        std::uint64_t expected = options_.receives == "none"
                                     ? 0
                                     : std::uint64_t{options_.connections} * options_.messages;
        while (peers_.size() < options_.connections || received_ < expected || !all_established()) {
            world_->turn(Wait::until_something_happens);
            reap();
        }
        report();
    }

private:
    void accept(verbs::ConnectionRequest& request) {
        auto peer = std::make_unique<Connected>();
        bool own = options_.receives == "own";
        peer->queue_pair =
            insist(device_->make_queue_pair({.domain = domain_,
                                             .send_completions = completions_,
                                             .receive_completions = completions_,
                                             .shared_receives = shared_,
                                             .sends = 16,
                                             .receives = own ? options_.own_depth : 1,
                                             .pieces = 1,
                                             .inline_bytes = 0}),
                   "queue pair");
        for (std::size_t i = 0; own && i < options_.own_depth; ++i)
            post_own(*peer->queue_pair, peers_.size() * options_.own_depth + i);
        peer->connection = insist(request.accept(*peer->queue_pair, {}, *peer), "accept");
        peers_.push_back(std::move(peer));
    }
    void post_own(verbs::QueuePair& queue_pair, std::size_t pdu) {
        auto place = pdus_->one(pdu);
        insist(queue_pair.post(verbs::ReceiveRequest{.id = pdu, .local = {&place, 1}}), "receive");
    }

    bool all_established() const {
        for (auto& peer : peers_)
            if (!peer->is_established) return false;
        return true;
    }

    void reap() {
        std::array<verbs::Completion, 64> found;
        while (auto count = completions_->poll(found)) {
            for (std::size_t i = 0; i < count; ++i) {
                if (found[i].status == verbs::Status::flushed) continue;  // its client has left
                if (found[i].status != verbs::Status::success)
                    insist(Result<void>(Error{.code = Code::io_failed}), "a receive");
                ++received_;
                if (shared_) {
                    consumed_.push_back(found[i].id);
                } else {
                    post_own(*peers_[found[i].id / options_.own_depth]->queue_pair, found[i].id);
                }
            }
        }
    }

    /// The shared queue is filled up only when its event asks for it.
    void noted(const verbs::AsyncEvent& event) {
        if (event.kind != verbs::AsyncEvent::Kind::receives_low) return;
        ++low_water_events_;
        lowest_ = std::min(lowest_, shared_->posted());
        reap();
        refill();
    }
    void refill() {
        for (auto pdu : consumed_) {
            auto place = pdus_->one(pdu);
            insist(shared_->post({.id = pdu, .local = {&place, 1}}), "receive");
        }
        consumed_.clear();
        insist(shared_->set_low_water(options_.low_water), "low-water mark");
    }

    void report() {
        auto per_connection = (static_cast<double>(resident_bytes() - idle_bytes_) -
                               static_cast<double>(pdus_ ? pdus_->bytes.size() : 0)) /
                              options_.connections;
        fmt::print(
            "| {} | {} | {:.1f} MB | {:.1f} KiB | {} | {} |\n", options_.connections,
            options_.receives, pdus_ ? static_cast<double>(pdus_->bytes.size()) / 1e6 : 0.0,
            per_connection / 1024, received_,
            shared_ ? fmt::format("{} events, lowest {} left", low_water_events_, lowest_) : "–");
        std::fflush(stdout);
    }

    const Options& options_;
    std::unique_ptr<LinuxWorld> world_;
    std::unique_ptr<verbs::Device> device_;
    std::shared_ptr<verbs::ProtectionDomain> domain_;
    std::shared_ptr<verbs::CompletionQueue> completions_;
    std::shared_ptr<verbs::SharedReceiveQueue> shared_;
    std::unique_ptr<Pdus> pdus_;
    std::unique_ptr<Listener> listener_;
    std::vector<std::unique_ptr<Connected>> peers_;
    std::vector<std::uint64_t> consumed_;
    std::uint64_t received_ = 0;
    std::size_t low_water_events_ = 0;
    std::size_t lowest_ = ~std::size_t{0};
    std::size_t idle_bytes_;
};

/// The clients: connect all, then send on all at once, then stay until they are killed.
[[noreturn]] void run_clients(const Options& options) {
    auto world = insist(open_linux_world({}), "world");
    auto device = verbs::make_device(*world, {});
    auto domain = device->make_domain();
    auto completions = insist(
        device->make_completion_queue(std::size_t{options.connections} * 17, nullptr), "queue");
    Pdus pdu(*domain, 1, options.pdu_bytes);
    std::vector<std::unique_ptr<Connected>> peers;
    for (std::uint32_t i = 0; i < options.connections; ++i) {
        auto peer = std::make_unique<Connected>();
        peer->queue_pair = insist(device->make_queue_pair({.domain = domain,
                                                           .send_completions = completions,
                                                           .receive_completions = completions,
                                                           .shared_receives = nullptr,
                                                           .sends = 16,
                                                           .receives = 1,
                                                           .pieces = 1,
                                                           .inline_bytes = 0}),
                                  "queue pair");
        peer->connection = insist(
            device->connect(Address::tcp("127.0.0.1", options.port), *peer->queue_pair, {}, *peer),
            "connect");
        while (!peer->is_established) {
            world->turn(Wait::until_something_happens);
            if (peer->is_over) std::_Exit(1);
        }
        peer->to_send = options.receives == "none" ? 0 : options.messages;
        peers.push_back(std::move(peer));
    }
    std::array<verbs::Completion, 64> found;
    while (true) {
        while (completions->poll(found) > 0) {
        }
        for (auto& peer : peers) {
            auto place = pdu.one(0);
            while (peer->to_send > 0 &&
                   peer->queue_pair->post(verbs::SendRequest{.local = {&place, 1}}))
                --peer->to_send;
        }
        world->turn(Wait::until_something_happens);
    }
}

int run(const Options& options) {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    Target target(options);
    auto child = ::fork();
    if (child == 0) run_clients(options);
    target.run();
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    return 0;
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) {
    weft::bench::Options options;
    CLI::App app{"What many connections cost a target."};
    app.add_option("--receives", options.receives)->check(CLI::IsMember({"own", "shared", "none"}));
    app.add_option("--connections", options.connections)->check(CLI::Range(1u, 60000u));
    app.add_option("--messages", options.messages, "on each connection");
    app.add_option("--low-water", options.low_water);
    app.add_option("--shared-depth", options.shared_depth);
    app.add_option("--port", options.port);
    CLI11_PARSE(app, argc, argv);
    return weft::bench::run(options);
}
