// SPDX-License-Identifier: Apache-2.0
// Our end of peer_script.hpp: the public C++ API of the software RNIC, in one thread, however many
// connections there are. What kernel_peer says in a row is here what each answer leads to.
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "base/error_text.hpp"
#include "peer_script.hpp"
#include "weft/linux_world.hpp"
#include "weft/rdma.hpp"

namespace {

using namespace weft;
using peer::report;
using verbs::Operation;
using verbs::Status;
using Then = std::function<void(bool)>;

constexpr std::uint64_t words_id = 1000, registration_id = 1001, work_id = 1002;  // beyond slots

const char* name_of(Status status) {
    constexpr std::array names{"success",          "local_length",   "local_operation",
                               "local_protection", "window_binding", "remote_access",
                               "remote_operation", "remote_invalid", "flushed"};
    return names[static_cast<std::size_t>(status)];
}

const char* name_of(verbs::AsyncEvent::Kind kind) {
    constexpr std::array names{"queue_pair_failed", "access_violation",
                               "request_violation", "completions_overflowed",
                               "receives_low",      "last_receive_reached"};
    return names[static_cast<std::size_t>(kind)];
}

template <class T>
T must(Result<T> made, const char* what) {
    if (made) return std::move(*made);
    std::fprintf(stderr, "%s: %s\n", what, to_text(made.error()).c_str());
    std::_Exit(1);
}

Buffer as_buffer(std::vector<char>& bytes) {
    return std::as_writable_bytes(std::span(bytes));
}
std::string as_text(ConstBuffer bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
ConstBuffer as_bytes(const std::string& text) {
    return std::as_bytes(std::span(text));
}

verbs::ConnectOptions connect_options(const peer::Options& options, ConstBuffer private_data) {
    auto has = [&](const char* flag) { return options.flags.contains(flag); };
    return {.private_data = private_data,
            .checksums = !has("no-crc"),
            .peer_to_peer = !has("no-peer-to-peer"),
            .plain_startup = has("revision-1"),
            .only_standard = has("standard")};
}

class Peer final : public verbs::ConnectionEvents {
public:
    /// `ready`: both sides know each other's memory. `ended`: it is over; whether all went well.
    Peer(verbs::Device& device, const peer::Options& options, std::function<void()> ready,
         Then ended)
        : options_(options), ready_(std::move(ready)), ended_(std::move(ended)) {
        domain_ = device.make_domain();
        completions_ = must(device.make_completion_queue(256, [this] { drain(); }), "a queue");
        queue_pair_ = must(device.make_queue_pair({.domain = domain_,
                                                   .send_completions = completions_,
                                                   .receive_completions = completions_,
                                                   .shared_receives = nullptr,
                                                   .inline_bytes = peer::words_max}),
                           "a queue pair");
        completions_->arm(verbs::CompletionQueue::Wanted::any);
        window_.resize(std::max<std::uint64_t>(options.window, peer::small_region));
        constexpr auto both = Rights::local_write | Rights::remote_write;
        memory_ = open(window_, both | Rights::remote_read);
        readable_ = open(window_, Rights::local_write | Rights::remote_read);
        writable_ = open(window_, both);
        words_.resize(peer::receives * peer::words_max);
        mail_ = open(words_, Rights::local_write);
        for (std::uint32_t slot = 0; slot < peer::receives; ++slot) post_receive(slot);
    }

    void connect(verbs::Device& device) {
        auto wish = connect_options(options_, as_bytes(options_.private_data));
        connection_ = must(
            device.connect(Address::tcp(options_.host, options_.port), *queue_pair_, wish, *this),
            "connect");
    }

    /// The server gives the client its private data back.
    void accept(verbs::ConnectionRequest& request, const std::string& said) {
        connection_ =
            must(request.accept(*queue_pair_, connect_options(options_, as_bytes(said)), *this),
                 "accept");
    }

    /// As the client: takes the steps, one after the other.
    void run() { next_step(); }
    void leave() { connection_->disconnect(); }

private:
    struct Victim {
        std::vector<char> bytes;
        std::unique_ptr<verbs::MemoryRegion> region;
        SteeringTag tag{};
    };

    std::unique_ptr<verbs::MemoryRegion> open(std::vector<char>& bytes, Rights rights) {
        return must(domain_->register_memory(as_buffer(bytes), rights), "register_memory");
    }

    // --- what the connection says

    void established() override {
        report(std::string("established, ") + (connection_->facts().checksums ? "" : "no ") +
               "checksums");
        if (!options_.serves) report("private " + as_text(connection_->peer_private_data()));
        peer::Offer offer;
        offer.window = {memory_->address(), static_cast<std::uint32_t>(memory_->tag())};
        offer.size = memory_->size();
        offer.readable = static_cast<std::uint32_t>(readable_->tag());
        offer.writable = static_cast<std::uint32_t>(writable_->tag());
        for (std::size_t i = 0; i < victims_.size(); ++i) offer.victims[i] = open_victim(i);
        say(to_words(offer));
    }
    void rejected() override {
        report("connection REJECTED");
        report("private " + as_text(connection_->peer_private_data()));
        end(false);
    }
    void failed(Error why) override {
        report("connection failed: " + to_text(why));
        end(false);
    }
    void disconnected() override {
        drain();
        report("connection DISCONNECTED");
        end(options_.serves ? !bad_ : finished_);
    }
    void end(bool good) {
        over_ = true;
        ended_(good);
    }

    /// Only memory that was registered by the queue pair itself can the other side invalidate.
    peer::Region open_victim(std::size_t index) {
        auto& victim = victims_[index];
        victim.bytes.resize(peer::small_region);
        victim.region = must(domain_->allocate_tag(1), "allocate_tag");
        victim.tag = victim.region->tag();
        auto address = reinterpret_cast<std::uint64_t>(victim.bytes.data());
        verbs::FastRegistration registration{.tag = victim.tag,
                                             .pieces = {as_buffer(victim.bytes)},
                                             .address = address,
                                             .rights = Rights::local_write | Rights::remote_write};
        post({.id = registration_id,
              .operation = Operation::fast_register,
              .registration = &registration});
        return {address, static_cast<std::uint32_t>(victim.tag)};
    }

    // --- what the queue pair says

    void drain() {
        std::array<verbs::Completion, 32> batch;
        completions_->arm(verbs::CompletionQueue::Wanted::any);
        while (auto count = completions_->poll(batch))
            for (std::size_t i = 0; i < count; ++i) completed(batch[i]);
    }

    void completed(const verbs::Completion& done) {
        bool is_receive = done.what != verbs::Ended::sent;
        if (done.status == Status::flushed && done.id != work_id) return;  // as is natural
        if (done.status != Status::success || (reports_all_ && done.id == work_id))
            report(std::string(is_receive ? "receive" : "work") + " completion " +
                   name_of(done.status));
        if (done.status != Status::success) return;
        if (is_receive) return received(done);
        if (done.id == work_id && when_done_) std::exchange(when_done_, nullptr)(true);
    }

    void received(const verbs::Completion& done) {
        std::string words(&words_[done.id * peer::words_max], done.bytes);
        post_receive(done.id);
        if (words.starts_with("offer")) {
            if (!parse_offer(words, there_)) fail("bad: " + words);
            ready_();
        } else if (peer::is_yes(words) || words == "bad") {
            if (when_answered_) std::exchange(when_answered_, nullptr)(words != "bad");
        } else {
            help(words, done);
        }
    }

    void help(const std::string& words, const verbs::Completion& done) {
        auto answer = [this, words](bool good) {
            if (!good) fail("bad: " + words);
            say(good ? peer::yes_to(words) : "bad");
        };
        auto [size, seed] = peer::parse_pattern(words);
        if (words.starts_with("fill")) {
            peer::fill(window_.data(), size, seed);
            answer(true);
        } else if (words.starts_with("check")) {
            answer(peer::holds(window_.data(), size, seed));
        } else if (words.starts_with("expect")) {
            expects_solicited_ = words == "expect solicited";
            answer(true);
        } else if (words == "payload") {
            bool right = done.solicited == expects_solicited_;
            if (done.invalidated) right &= *done.invalidated == victims_[expects_solicited_].tag;
            report(std::string(done.solicited ? "solicited" : "plain") +
                   (done.invalidated ? " invalidating" : "") + " payload " +
                   (right ? "ok" : "bad"));
            answer(right);
        } else if (words.starts_with("perform ")) {
            perform(peer::parse_step(words.substr(8)), answer);
        } else {
            answer(false);
        }
    }

    void fail(const std::string& line) {
        report(line);
        bad_ = true;
    }

    // --- what is said and done

    void post(const verbs::SendRequest& request) {
        if (auto posted = queue_pair_->post(request); !posted)
            fail("cannot post: " + to_text(posted.error()));
    }
    void post_receive(std::uint64_t slot) {
        auto place = mail_->local(slot * peer::words_max, peer::words_max);
        (void)queue_pair_->post(verbs::ReceiveRequest{.id = slot, .local = {&place, 1}});
    }
    void say(const std::string& words) { send(words, {.id = words_id}); }
    void send(const std::string& words, verbs::SendRequest request) {
        request.inlined = true;
        verbs::LocalMemory place{reinterpret_cast<std::uint64_t>(words.data()),
                                 static_cast<std::uint32_t>(words.size()),
                                 {}};
        request.local = {&place, 1};
        post(request);
    }
    void ask(const std::string& words, Then then) {
        when_answered_ = std::move(then);
        say(words);
    }
    void move(Operation operation, std::uint64_t size, const peer::Region& there, Then then) {
        when_done_ = std::move(then);
        auto place = memory_->local(0, static_cast<std::uint32_t>(size));
        post({.id = work_id,
              .operation = operation,
              .local = {&place, 1},
              .remote = {there.address, SteeringTag{there.tag}}});
    }

    void next_step() {
        if (step_ == options_.steps.size()) {
            finished_ = true;
            return ready_();
        }
        auto step = options_.steps[step_++];
        finished_ = step.is_fault();  // then the end is what was asked for
        auto then = [this, step](bool done) {
            report(step.text + (step.asked ? " by the peer " : " ") + (done ? "ok" : "failed"));
            if (done) return next_step();
            bad_ = true;
            leave();
        };
        step.asked ? ask("perform " + step.text, then) : perform(step, then);
    }

    void perform(const peer::Step& step, const Then& then) {
        auto seed = ++seed_;
        auto size = step.size;
        if (step.kind == "write") {
            peer::fill(window_.data(), size, seed);
            move(Operation::write, size, there_.window,
                 [=, this](bool) { ask(peer::pattern_words("check", size, seed), then); });
        } else if (step.kind == "read") {
            ask(peer::pattern_words("fill", size, seed), [=, this](bool) {
                move(Operation::read, size, there_.window,
                     [=, this](bool) { then(peer::holds(window_.data(), size, seed)); });
            });
        } else if (step.is_fault()) {
            commit(step.detail, then);
        } else if (step.invalidates()) {
            move(Operation::write, 8, there_.victims[step.victim()],
                 [=, this](bool) { announce_payload(step, then); });
        } else {
            announce_payload(step, then);
        }
    }

    void announce_payload(const peer::Step& step, const Then& then) {
        ask(step.is_solicited() ? "expect solicited" : "expect plain", [=, this](bool) {
            when_answered_ = then;
            auto operation = step.invalidates() ? Operation::send_invalidate : Operation::send;
            send("payload", {.id = words_id,
                             .operation = operation,
                             .solicited = step.is_solicited(),
                             .invalidate = SteeringTag{there_.victims[step.victim()].tag}});
        });
    }

    /// What must not work.
    void commit(const std::string& name, const Then& then) {
        reports_all_ = true;
        if (name == "long-send") {
            auto place = memory_->local(0, 2 * peer::words_max);
            return post({.id = work_id, .local = {&place, 1}});
        }
        // Who reads knows at once whether it worked. Who writes does not, until the end comes.
        auto target = peer::faulty_target(name, there_);
        if (name.starts_with("read"))
            move(Operation::read, 8, target, then);
        else
            move(Operation::write, 8, target, nullptr);
    }

    const peer::Options& options_;
    std::function<void()> ready_;
    Then ended_;
    std::shared_ptr<verbs::ProtectionDomain> domain_;
    std::shared_ptr<verbs::CompletionQueue> completions_;
    std::vector<char> window_, words_;
    std::array<Victim, 2> victims_;
    std::unique_ptr<verbs::MemoryRegion> memory_, readable_, writable_, mail_;
    std::unique_ptr<verbs::QueuePair> queue_pair_;
    std::unique_ptr<verbs::Connection> connection_;
    peer::Offer there_;
    Then when_done_, when_answered_;
    std::size_t step_ = 0;
    std::uint64_t seed_ = 0;
    bool over_ = false, bad_ = false, finished_ = false, reports_all_ = false;
    bool expects_solicited_ = false;
};

/// Nobody takes a step before all are connected, and nobody leaves before all are done.
int connect_all(LinuxWorld& world, verbs::Device& device, const peer::Options& options) {
    std::vector<std::unique_ptr<Peer>> peers;
    std::uint32_t ready = 0, ended = 0;
    bool good = true;
    for (std::uint32_t i = 0; i < options.connections; ++i) {
        peers.push_back(std::make_unique<Peer>(
            device, options,
            [&] {
                ++ready;
                if (ready == options.connections)
                    for (auto& one : peers) one->run();
                if (ready == 2 * options.connections)
                    for (auto& one : peers) one->leave();
            },
            [&](bool well) {
                ++ended;
                good = good && well;
            }));
        peers.back()->connect(device);
    }
    world.run_until([&] { return ended == options.connections; });
    return good ? 0 : 1;
}

int serve(LinuxWorld& world, verbs::Device& device, const peer::Options& options) {
    std::vector<std::unique_ptr<Peer>> peers;
    std::uint32_t ended = 0;
    bool good = true;
    auto rejected = world.make_timer([&] { ++ended; });  // some time later: we are the device too
    auto requested = [&](std::unique_ptr<verbs::ConnectionRequest> request) {
        auto said = as_text(request->private_data());
        report("private " + said);
        if (peer::asks_for_rejection(said)) {
            auto why = peer::rejection_of(said);
            good = good && request->reject(as_bytes(why)).has_value();
            return rejected->set(world.now() + std::chrono::milliseconds(200));
        }
        peers.push_back(std::make_unique<Peer>(
            device, options, [] {},
            [&](bool well) {
                ++ended;
                good = good && well;
            }));
        peers.back()->accept(*request, said);
    };
    auto listener =
        must(device.listen(Address::tcp(options.host, options.port), requested), "listen");
    world.run_until([&] { return ended == options.connections; });
    return good ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
    auto options = peer::parse_options(count, words);
    auto world = must(open_linux_world({}), "the world");
    auto device = verbs::make_device(*world, {.on_event = [](const verbs::AsyncEvent& event) {
        report(std::string("event ") + name_of(event.kind));
    }});
    return options.serves ? serve(*world, *device, options) : connect_all(*world, *device, options);
}
