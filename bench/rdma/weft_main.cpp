// SPDX-License-Identifier: Apache-2.0
// Weft's own queue pairs, doing the work that bench/rdma.py asks of every contestant, through the
// public API alone. The first argument says how the bytes are checked.
//
// A Send or Write completes when the socket has taken it, so a stream ends with one octet sent
// after it and one octet answered: the clock stops when everything has arrived.
#include <array>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <vector>

#include "bench_options.hpp"
#include "insist.hpp"
#include "weft/linux_world.hpp"
#include "weft/rdma.hpp"

namespace weft::bench {
namespace {

using verbs::Operation;

/// Where the other side's memory is, told in the private data of the connection.
struct Offer {
    std::uint64_t address;
    SteeringTag tag;
};

class Peer final : private verbs::ConnectionEvents {
public:
    Peer(const BenchOptions& options, const verbs::ConnectOptions& connection)
        : options_(options),
          connection_options_(connection),
          world_(insist(open_linux_world({}), "world")),
          device_(verbs::make_device(*world_, {})),
          domain_(device_->make_domain()),
          outgoing_(options.size),
          incoming_(options.size) {
        auto all = Rights::local_write | Rights::remote_read | Rights::remote_write;
        outgoing_region_ = insist(domain_->register_memory(outgoing_, all), "memory");
        incoming_region_ = insist(domain_->register_memory(incoming_, all), "memory");
        auto depth = static_cast<std::uint32_t>(options.depth);
        completions_ = insist(device_->make_completion_queue(2 * depth + 2, nullptr), "queue");
        queue_pair_ = insist(device_->make_queue_pair({.domain = domain_,
                                                       .send_completions = completions_,
                                                       .receive_completions = completions_,
                                                       .shared_receives = nullptr,
                                                       .sends = depth + 1,
                                                       .receives = depth + 1}),
                             "queue pair");
        Offer offer{incoming_region_->address(), incoming_region_->tag()};
        connection_options_.private_data = std::as_bytes(std::span(&offer, 1));
        options.side == Side::serve ? accept() : connect();
        while (!established_) world_->turn(Wait::until_something_happens);
        std::memcpy(&offer, peer_data().data(), std::min(sizeof offer, peer_data().size()));
        remote_ = {offer.address, offer.tag};
    }
    ~Peer() {
        connection_->disconnect();
        while (!over_) world_->turn(Wait::until_something_happens);
    }

    void drive(std::uint64_t count) {
        if (options_.operation == bench::Operation::ping_pong) {
            for (std::uint64_t i = 0; i < count; ++i) {
                post_receive();
                post(Operation::send, options_.size);
                wait_for(received_, receives_posted_);
            }
        } else {
            auto operation = options_.operation == bench::Operation::send    ? Operation::send
                             : options_.operation == bench::Operation::write ? Operation::write
                                                                             : Operation::read;
            post_receive();
            for (std::uint64_t i = 0; i < count; ++i) {
                while (posted_ - ended_ >= options_.depth) progress();
                post(operation, options_.size);
            }
            // Reads are answered beside what the other side sends: they are awaited first.
            if (operation == Operation::read) wait_for(ended_, posted_);
            post(Operation::send, 1);
            wait_for(received_, receives_posted_);
        }
        wait_for(ended_, posted_);
    }

    /// Receives are posted ahead for the phases to come as well, for the other side begins the next
    /// one without asking.
    void serve(std::initializer_list<std::uint64_t> phases) {
        const bool ping_pong = options_.operation == bench::Operation::ping_pong;
        const bool one_sided = options_.operation == bench::Operation::write ||
                               options_.operation == bench::Operation::read;
        std::uint64_t expected = 0;
        for (const std::uint64_t count : phases)
            expected += ping_pong ? count : one_sided ? 1 : count + 1;
        std::uint64_t phase_end = 0;
        for (const std::uint64_t count : phases) {
            if (ping_pong) {
                for (std::uint64_t i = 0; i < count; ++i) {
                    receive_until(++phase_end, expected);
                    post(Operation::send, options_.size);
                }
            } else {
                phase_end += one_sided ? 1 : count + 1;
                receive_until(phase_end, expected);
                post(Operation::send, 1);
            }
            wait_for(ended_, posted_);
        }
    }

private:
    void connect() {
        connection_ = insist(device_->connect(Address::tcp(options_.host, options_.port),
                                              *queue_pair_, connection_options_, *this),
                             "connect");
    }
    void accept() {
        std::unique_ptr<verbs::ConnectionRequest> request;
        auto listener = insist(device_->listen(Address::tcp(options_.host, options_.port),
                                               [&](auto asked) { request = std::move(asked); }),
                               "listen");
        while (!request) world_->turn(Wait::until_something_happens);
        request_data_.assign(request->private_data().begin(), request->private_data().end());
        connection_ = insist(request->accept(*queue_pair_, connection_options_, *this), "accept");
    }
    ConstBuffer peer_data() const {
        return options_.side == Side::serve ? ConstBuffer(request_data_)
                                            : connection_->peer_private_data();
    }

    void established() override { established_ = true; }
    void rejected() override { give_up("connection", "rejected"); }
    void failed(Error) override { give_up("connection", "failed"); }
    void disconnected() override { over_ = true; }

    void progress() {
        if (options_.waiting == Waiting::polling) {
            world_->poll();
        } else if (completions_waiting_ == 0) {
            world_->turn(Wait::until_something_happens);
        }
        reap();
    }
    void reap() {
        completions_waiting_ = completions_->poll(found_);
        for (std::size_t i = 0; i < completions_waiting_; ++i) {
            if (found_[i].status != verbs::Status::success) give_up("completion", "failed");
            ++(found_[i].what == verbs::Ended::sent ? ended_ : received_);
        }
    }
    void wait_for(const std::uint64_t& ended, std::uint64_t count) {
        while (ended < count) progress();
    }
    void receive_until(std::uint64_t count, std::uint64_t expected) {
        while (true) {
            while (receives_posted_ < expected && receives_posted_ - received_ < options_.depth)
                post_receive();
            if (received_ >= count) return;
            progress();
        }
    }

    void post_receive() {
        auto place = incoming_region_->local(0, static_cast<std::uint32_t>(incoming_.size()));
        insist(queue_pair_->post(verbs::ReceiveRequest{.local = {&place, 1}}), "receive");
        ++receives_posted_;
    }
    void post(Operation operation, std::size_t size) {
        auto place = outgoing_region_->local(0, static_cast<std::uint32_t>(size));
        insist(queue_pair_->post(verbs::SendRequest{
                   .operation = operation, .local = {&place, 1}, .remote = remote_}),
               "post");
        ++posted_;
    }

    const BenchOptions& options_;
    verbs::ConnectOptions connection_options_;
    std::unique_ptr<LinuxWorld> world_;
    std::unique_ptr<verbs::Device> device_;
    std::shared_ptr<verbs::ProtectionDomain> domain_;
    std::vector<std::byte> outgoing_, incoming_;
    std::unique_ptr<verbs::MemoryRegion> outgoing_region_, incoming_region_;
    std::shared_ptr<verbs::CompletionQueue> completions_;
    std::unique_ptr<verbs::QueuePair> queue_pair_;
    std::unique_ptr<verbs::Connection> connection_;
    std::vector<std::byte> request_data_;
    verbs::RemoteMemory remote_;
    bool established_ = false, over_ = false;
    std::array<verbs::Completion, 16> found_{};
    std::size_t completions_waiting_ = 0;
    std::uint64_t posted_ = 0;  ///< to send, write or read
    std::uint64_t ended_ = 0;
    std::uint64_t receives_posted_ = 0;
    std::uint64_t received_ = 0;
};

void run(const BenchOptions& options, const verbs::ConnectOptions& connection) {
    Peer peer(options, connection);
    if (options.side == Side::serve) return peer.serve({options.warm_up_count(), options.count});
    drive_measured(options, [&](std::uint64_t count) { peer.drive(count); });
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) {
    const std::string_view checks = argc > 1 ? argv[1] : "";
    if (checks != "checksums" && checks != "eager" && checks != "none") {
        std::fputs("the first argument is checksums, eager or none\n", stderr);
        return 2;
    }
    const auto options = weft::bench::parse_bench_options(argc - 1, argv + 1, "Weft, measured.");
    if (!options) return 2;
    weft::bench::run(*options,
                     {.checksums = checks != "none", .place_before_check = checks == "eager"});
    return 0;
}
