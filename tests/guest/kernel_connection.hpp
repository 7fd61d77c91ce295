// SPDX-License-Identifier: Apache-2.0
// One connection of kernel_peer, with all it needs of libibverbs, and its half of the script.
//
// Everything here blocks: the script then reads top to bottom. It sleeps on the completion channel
// rather than spin, as the guest has one slow processor.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <unistd.h>

#include <deque>
#include <mutex>
#include <thread>

#include "peer_script.hpp"

namespace peer {

constexpr int patience_ms = 300'000;  // of the guest, which is slow; the test has its own
constexpr std::uint32_t sends = 32;

[[noreturn]] inline void die(const char* what) {
    std::perror(what);
    std::_Exit(1);
}
template <class T>
T* must(T* made, const char* what) {
    if (!made) die(what);
    return made;
}
inline void must(int status, const char* what) {
    if (status != 0) die(what);
}

inline bool is_readable(int descriptor, int timeout_ms) {
    pollfd asked{descriptor, POLLIN, 0};
    return ::poll(&asked, 1, timeout_ms) > 0;
}

/// Queues are mapped by keys, which are offsets in pages that count up. The provider of siw takes
/// the key 0x90000 for a failure, and so no process gets past some 40 connections; unless its first
/// queue is large enough to reach beyond that key.
inline void occupy_the_key_siw_refuses(ibv_context* context) {
    must(ibv_create_cq(context, 32768, nullptr, nullptr, 0), "ibv_create_cq");
}

/// Tells what happens to queue pairs beside their completions, for as long as the program runs.
inline void report_events(ibv_context* context) {
    std::thread([context] {
        ibv_async_event event;
        while (ibv_get_async_event(context, &event) == 0) {
            report(std::string("event ") + ibv_event_type_str(event.event_type));
            ibv_ack_async_event(&event);
        }
    }).detach();
}

class Connection {
public:
    Connection(rdma_cm_id* id, const Options& options) : id_(id), options_(options) {
        static std::once_flag once;
        std::call_once(once, [id] {
            occupy_the_key_siw_refuses(id->verbs);
            report_events(id->verbs);
        });
        must(fcntl(id->channel->fd, F_SETFL, O_NONBLOCK), "fcntl");
        domain_ = must(ibv_alloc_pd(id->verbs), "ibv_alloc_pd");
        wakes_ = must(ibv_create_comp_channel(id->verbs), "ibv_create_comp_channel");
        must(fcntl(wakes_->fd, F_SETFL, O_NONBLOCK), "fcntl");
        completions_ =
            must(ibv_create_cq(id->verbs, 2 * (sends + receives), nullptr, wakes_, 0), "cq");
        ibv_qp_init_attr wish{};
        wish.send_cq = wish.recv_cq = completions_;
        wish.cap.max_send_wr = sends;
        wish.cap.max_recv_wr = receives;
        wish.cap.max_send_sge = wish.cap.max_recv_sge = 1;
        wish.qp_type = IBV_QPT_RC;
        wish.sq_sig_all = 1;
        must(rdma_create_qp(id, domain_, &wish), "rdma_create_qp");

        window_.resize(std::max<std::uint64_t>(options.window, small_region));
        constexpr int both = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
        memory_ = open(window_, both | IBV_ACCESS_REMOTE_READ);
        readable_ = open(window_, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, small_region);
        writable_ = open(window_, both, small_region);
        words_.resize((receives + 1) * words_max);
        mail_ = open(words_, IBV_ACCESS_LOCAL_WRITE);
        for (auto& victim : victims_) {
            victim.bytes.resize(small_region);
            victim.region = open(victim.bytes, both);
        }
        for (std::uint32_t slot = 0; slot < receives; ++slot) post_receive(slot);
    }

    ~Connection() {
        rdma_destroy_qp(id_);
        for (auto* region :
             {memory_, readable_, writable_, mail_, victims_[0].region, victims_[1].region})
            ibv_dereg_mr(region);
        ibv_destroy_cq(completions_);
        ibv_destroy_comp_channel(wakes_);
        ibv_dealloc_pd(domain_);
    }

    /// Both sides say what they have, whoever connected.
    bool begin() {
        Offer offer;
        offer.window = {reinterpret_cast<std::uint64_t>(window_.data()), memory_->rkey};
        offer.size = window_.size();
        offer.readable = readable_->rkey;
        offer.writable = writable_->rkey;
        for (int i : {0, 1})
            offer.victims[i] = {reinterpret_cast<std::uint64_t>(victims_[i].bytes.data()),
                                victims_[i].region->rkey};
        std::string words;
        return say(to_words(offer)) && hear(words) && parse_offer(words, there_);
    }

    /// As the client. A fault is meant to end the connection, and so the steps.
    bool run() {
        for (const auto& step : options_.steps) {
            bool done = step.asked ? ask("perform " + step.text) : perform(step);
            if (step.is_fault() && !done) {
                wait_for_end();
                return true;
            }
            report(step.text + (step.asked ? " by the peer " : " ") + (done ? "ok" : "failed"));
            if (!done) return false;
        }
        return true;
    }

    /// As the server, until the client leaves.
    bool serve() {
        std::string words;
        while (hear(words))
            if (!help(words)) break;
        wait_for_end();
        return !bad_;
    }

    void leave() {
        rdma_disconnect(id_);
        wait_for_end();
    }

private:
    struct Victim {
        std::vector<char> bytes;
        ibv_mr* region = nullptr;
    };

    ibv_mr* open(std::vector<char>& bytes, int rights, std::uint64_t size = ~0ull) {
        size = std::min<std::uint64_t>(size, bytes.size());
        return must(ibv_reg_mr(domain_, bytes.data(), size, rights), "ibv_reg_mr");
    }

    void post_receive(std::uint32_t slot) {
        ibv_sge place{reinterpret_cast<std::uint64_t>(&words_[slot * words_max]), words_max,
                      mail_->lkey};
        ibv_recv_wr request{slot, nullptr, &place, 1};
        ibv_recv_wr* refused = nullptr;
        if (ibv_post_recv(id_->qp, &request, &refused) != 0 && !over_) die("ibv_post_recv");
    }

    /// Takes what has come; sleeps until something does. False: the connection is over.
    bool wait() {
        for (;;) {
            if (collect()) return true;
            if (over_) return false;
            must(ibv_req_notify_cq(completions_, 0), "ibv_req_notify_cq");
            if (collect()) return true;
            pollfd asked[] = {{wakes_->fd, POLLIN, 0}, {id_->channel->fd, POLLIN, 0}};
            if (::poll(asked, 2, patience_ms) == 0) {
                report("nothing happens");
                bad_ = over_ = true;
            }
            if (asked[0].revents) forget_wakes();
            if (asked[1].revents) look_at_connection();
        }
    }

    void wait_for_end() {
        while (wait()) continue;
    }

    void forget_wakes() {
        ibv_cq* queue = nullptr;
        void* context = nullptr;
        while (ibv_get_cq_event(wakes_, &queue, &context) == 0) ibv_ack_cq_events(queue, 1);
    }

    void look_at_connection() {
        rdma_cm_event* event = nullptr;
        if (rdma_get_cm_event(id_->channel, &event) != 0) return;
        report(std::string("connection ") + (rdma_event_str(event->event) + 14));
        if (event->event == RDMA_CM_EVENT_DISCONNECTED) over_ = true;
        rdma_ack_cm_event(event);
    }

    bool collect() {
        ibv_wc done;
        bool any = false;
        while (ibv_poll_cq(completions_, 1, &done) > 0) {
            any = true;
            bool is_receive = done.wr_id < receives;
            if (is_receive && done.status == IBV_WC_WR_FLUSH_ERR) continue;  // as is natural
            if (!is_receive) {
                ++sent_;
                work_failed_ = done.status != IBV_WC_SUCCESS;
            }
            if (done.status != IBV_WC_SUCCESS || reports_all_) {
                report(std::string(is_receive ? "receive" : "work") + " completion " +
                       ibv_wc_status_str(done.status));
            } else if (is_receive) {
                arrived_.push_back({static_cast<std::uint32_t>(done.wr_id), done.byte_len});
            }
        }
        return any;
    }

    bool post(ibv_send_wr& request, ibv_sge place) {
        request.wr_id = receives;
        request.sg_list = &place;
        request.num_sge = 1;
        ibv_send_wr* refused = nullptr;
        if (ibv_post_send(id_->qp, &request, &refused) != 0) return false;
        ++posted_;
        while (sent_ < posted_)
            if (!wait()) return false;
        return !work_failed_;
    }

    bool say(const std::string& words) {
        ibv_send_wr request{};
        request.opcode = IBV_WR_SEND;
        return post(request, place_words(words));
    }

    ibv_sge place_words(const std::string& words) {
        char* place = &words_[receives * words_max];
        std::memcpy(place, words.data(), words.size());
        return {reinterpret_cast<std::uint64_t>(place), static_cast<std::uint32_t>(words.size()),
                mail_->lkey};
    }

    bool hear(std::string& words) {
        while (arrived_.empty())
            if (!wait()) return false;
        auto [slot, size] = arrived_.front();
        arrived_.pop_front();
        words.assign(&words_[slot * words_max], size);
        post_receive(slot);
        return true;
    }

    /// Until the answer comes, the other side may need our help.
    bool ask(const std::string& request) {
        std::string words = request;
        if (!say(words)) return false;
        while (hear(words)) {
            if (is_yes(words)) return true;
            if (words == "bad") return false;
            if (!help(words)) return false;
        }
        return false;
    }

    bool help(const std::string& words) {
        bool done = true;
        if (words.starts_with("fill") || words.starts_with("check")) {
            auto [size, seed] = parse_pattern(words);
            if (words.starts_with("fill"))
                fill(window_.data(), size, seed);
            else
                done = holds(window_.data(), size, seed);
        } else if (words.starts_with("perform ")) {
            auto step = parse_step(words.substr(8));
            done = perform(step);
            if (over_ || (step.is_fault() && !done)) return false;
        } else {
            // A Send that solicits should wake who waits for such alone; siw never does. And its
            // completions do not say what was invalidated.
            done = words.starts_with("expect") || words == "payload";
        }
        if (!done) {
            report("bad: " + words);
            bad_ = true;
        }
        return say(done ? yes_to(words) : "bad");
    }

    ibv_sge local(std::uint64_t size) {
        return {reinterpret_cast<std::uint64_t>(window_.data()), static_cast<std::uint32_t>(size),
                memory_->lkey};
    }

    bool move(ibv_wr_opcode operation, std::uint64_t size, const Region& there) {
        ibv_send_wr request{};
        request.opcode = operation;
        request.wr.rdma = {there.address, there.tag};
        return post(request, local(size));
    }

    bool perform(const Step& step) {
        auto seed = ++seed_;
        if (step.kind == "write") {
            fill(window_.data(), step.size, seed);
            return move(IBV_WR_RDMA_WRITE, step.size, there_.window) &&
                   ask(pattern_words("check", step.size, seed));
        }
        if (step.kind == "read")
            return ask(pattern_words("fill", step.size, seed)) &&
                   move(IBV_WR_RDMA_READ, step.size, there_.window) &&
                   holds(window_.data(), step.size, seed);
        if (!step.is_fault()) return send_payload(step);
        // Who reads knows at once whether it worked. Who writes does not, until the end comes.
        bool worked = commit(step.detail);
        if (step.detail.starts_with("read")) return worked;
        wait_for_end();
        return false;
    }

    bool send_payload(const Step& step) {
        auto victim = there_.victims[step.victim()];
        if (step.invalidates() && !move(IBV_WR_RDMA_WRITE, 8, victim)) return false;
        if (!ask(step.is_solicited() ? "expect solicited" : "expect plain")) return false;
        ibv_send_wr request{};
        request.opcode = step.invalidates() ? IBV_WR_SEND_WITH_INV : IBV_WR_SEND;
        // libibverbs says the former; its provider for siw looks at the latter.
        if (step.invalidates()) request.invalidate_rkey = request.wr.rdma.rkey = victim.tag;
        request.send_flags = step.is_solicited() ? IBV_SEND_SOLICITED : 0;
        if (!post(request, place_words("payload"))) return false;
        std::string words;
        return hear(words) && is_yes(words);
    }

    /// What must not work.
    bool commit(const std::string& name) {
        reports_all_ = true;
        if (name == "long-send") {
            ibv_send_wr request{};
            request.opcode = IBV_WR_SEND;
            return post(request, local(2 * words_max));
        }
        return move(name.starts_with("read") ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, 8,
                    faulty_target(name, there_));
    }

    struct Arrived {
        std::uint32_t slot, size;
    };

    rdma_cm_id* id_;
    const Options& options_;
    ibv_pd* domain_ = nullptr;
    ibv_comp_channel* wakes_ = nullptr;
    ibv_cq* completions_ = nullptr;
    std::vector<char> window_, words_;
    ibv_mr *memory_ = nullptr, *readable_ = nullptr, *writable_ = nullptr, *mail_ = nullptr;
    Victim victims_[2];
    Offer there_;
    std::deque<Arrived> arrived_;
    std::uint64_t posted_ = 0, sent_ = 0, seed_ = 0;
    bool over_ = false, bad_ = false, work_failed_ = false, reports_all_ = false;
};

}  // namespace peer
