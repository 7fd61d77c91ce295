// SPDX-License-Identifier: Apache-2.0
// What bench/rdma_instructions.py counts: both ends of a connection in one program and on one loop,
// so that every post and every poll happens exactly as often as is said. Under callgrind each kind
// of call leaves a dump of its own; what the network does in between is not collected.
#include <valgrind/callgrind.h>

#include <array>
#include <string>
#include <vector>

#include "insist.hpp"
#include "weft/linux_world.hpp"
#include "weft/rdma.hpp"

namespace weft::bench {
namespace {

constexpr std::uint32_t at_a_time = 16;  ///< posted before the network is asked to move them
constexpr std::uint32_t memory_bytes = 64 * 1024;

/// One line of the table: its name and how many calls it is the sum of.
void dump(const std::string& name, std::uint64_t calls) {
    auto label = name + " " + std::to_string(calls);
    CALLGRIND_DUMP_STATS_AT(label.c_str());
}

struct Side final : verbs::ConnectionEvents {
    explicit Side(verbs::Device& device) : memory(memory_bytes) {
        auto domain = device.make_domain();
        region = insist(domain->register_memory(memory, Rights::local_write | Rights::remote_read |
                                                            Rights::remote_write),
                        "memory");
        completions = insist(device.make_completion_queue(256, nullptr), "completion queue");
        queue_pair = insist(device.make_queue_pair({.domain = domain,
                                                    .send_completions = completions,
                                                    .receive_completions = completions,
                                                    .shared_receives = nullptr}),
                            "queue pair");
    }
    void established() override { is_up = true; }
    void rejected() override { insist(Result<void>(Error{.code = Code::disconnected}), "connect"); }
    void failed(Error why) override { insist(Result<void>(why), "connect"); }
    void disconnected() override {}

    std::vector<std::byte> memory;
    std::unique_ptr<verbs::MemoryRegion> region;
    std::shared_ptr<verbs::CompletionQueue> completions;
    std::unique_ptr<verbs::QueuePair> queue_pair;
    std::unique_ptr<verbs::Connection> connection;
    bool is_up = false;
};

struct Kind {
    const char* name;
    verbs::Operation operation;
    std::uint32_t bytes;
    bool inlined = false;
};
constexpr Kind kinds[] = {{"post send 64 B inline", verbs::Operation::send, 64, true},
                          {"post send 64 B", verbs::Operation::send, 64},
                          {"post write 4 KiB", verbs::Operation::write, 4096},
                          {"post read 4 KiB", verbs::Operation::read, 4096}};

class Bench {
public:
    explicit Bench(std::uint64_t rounds) : rounds_(rounds) {
        listener_ = insist(device_->listen(Address::tcp("127.0.0.1", 0),
                                           [this](auto request) {
                                               there_.connection = insist(
                                                   request->accept(*there_.queue_pair, {}, there_),
                                                   "accept");
                                           }),
                           "listen");
        here_.connection =
            insist(device_->connect(listener_->address(), *here_.queue_pair, {}, here_), "connect");
        world_->run_until([this] { return here_.is_up && there_.is_up; });
    }

    void run() {
        for (const auto& kind : kinds) count_posts(kind);
        count_receives();
        count_polls(1);
        count_polls(at_a_time);
        count_empty_polls();
    }

private:
    void post(const Kind& kind) {
        std::array local{here_.region->local(0, kind.bytes)};
        insist(here_.queue_pair->post(verbs::SendRequest{.operation = kind.operation,
                                                         .inlined = kind.inlined,
                                                         .local = local,
                                                         .remote = there_.region->remote()}),
               "post");
    }
    void post_receive() {
        std::array local{there_.region->local(0, 64)};
        insist(there_.queue_pair->post(verbs::ReceiveRequest{0, local}), "receive");
    }

    /// Until `count` completions have been taken from that side.
    void drain(Side& side, std::uint64_t count) {
        std::array<verbs::Completion, at_a_time> found;
        while (count > 0) {
            world_->poll();
            auto taken = side.completions->poll(std::span(found).first(
                static_cast<std::size_t>(std::min<std::uint64_t>(count, found.size()))));
            for (std::size_t i = 0; i < taken; ++i)
                if (found[i].status != verbs::Status::success)
                    insist(Result<void>(Error{.code = Code::io_failed}), "an operation");
            count -= taken;
        }
    }

    void count_posts(const Kind& kind) {
        bool sends = kind.operation == verbs::Operation::send;
        CALLGRIND_ZERO_STATS;
        for (std::uint64_t round = 0; round < rounds_; ++round) {
            for (std::uint32_t i = 0; sends && i < at_a_time; ++i) post_receive();
            CALLGRIND_TOGGLE_COLLECT;
            for (std::uint32_t i = 0; i < at_a_time; ++i) post(kind);
            CALLGRIND_TOGGLE_COLLECT;
            drain(here_, at_a_time);
            if (sends) drain(there_, at_a_time);
        }
        dump(kind.name, rounds_ * at_a_time);
    }

    void count_receives() {
        CALLGRIND_ZERO_STATS;
        for (std::uint64_t round = 0; round < rounds_; ++round) {
            CALLGRIND_TOGGLE_COLLECT;
            for (std::uint32_t i = 0; i < at_a_time; ++i) post_receive();
            CALLGRIND_TOGGLE_COLLECT;
            for (std::uint32_t i = 0; i < at_a_time; ++i) post(kinds[1]);
            drain(here_, at_a_time);
            drain(there_, at_a_time);
        }
        dump("post receive", rounds_ * at_a_time);
    }

    /// Polls of a queue that holds so many; per completion.
    void count_polls(std::uint32_t size) {
        std::array<verbs::Completion, at_a_time> found;
        CALLGRIND_ZERO_STATS;
        for (std::uint64_t round = 0; round < rounds_; ++round) {
            for (std::uint32_t i = 0; i < size; ++i) post(kinds[2]);
            // The last one's completion is there when a read behind it has ended.
            post(kinds[3]);
            settle();
            CALLGRIND_TOGGLE_COLLECT;
            auto taken = here_.completions->poll(std::span(found).first(size));
            CALLGRIND_TOGGLE_COLLECT;
            if (taken != size) insist(Result<void>(Error{.code = Code::io_failed}), "a poll");
            drain(here_, 1);
        }
        dump("poll, " + std::to_string(size) + " found, each", rounds_ * size);
    }

    void count_empty_polls() {
        std::array<verbs::Completion, 1> found;
        CALLGRIND_ZERO_STATS;
        CALLGRIND_TOGGLE_COLLECT;
        for (std::uint64_t round = 0; round < rounds_; ++round) here_.completions->poll(found);
        CALLGRIND_TOGGLE_COLLECT;
        dump("poll, nothing found", rounds_);
    }

    /// Lets everything posted end: an armed queue says when its next completion is there, and reads
    /// end last.
    void settle() {
        for (int i = 0; i < 200; ++i) world_->poll();
    }

    std::uint64_t rounds_;
    std::unique_ptr<LinuxWorld> world_ =
        insist(open_linux_world({.congestion_control = ""}), "world");
    std::unique_ptr<verbs::Device> device_ = verbs::make_device(*world_, {});
    Side here_{*device_}, there_{*device_};
    std::unique_ptr<Listener> listener_;
};

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) {
    weft::bench::Bench(argc > 1 ? std::stoull(argv[1]) : 100).run();
    return 0;
}
