// SPDX-License-Identifier: Apache-2.0
// libfabric's tcp provider, doing the work that bench/rdma.py asks of every contestant. Its own
// fi_pingpong knows only the ping-pong, so the rest is written here, on connected endpoints
// (FI_EP_MSG), the closest it has to a queue pair, and in the way that is cheapest for it: one
// completion queue, no locks (FI_THREAD_DOMAIN), no address or key exchange (scalable memory keys).
//
// A Send or Write completes when the socket has taken it, so a stream ends with one octet sent
// after it and one octet answered: the clock stops when everything has arrived.
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <array>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <vector>

#include "bench_options.hpp"

namespace weft::bench {
namespace {

constexpr std::uint64_t remote_key = 1;
constexpr int patience_ms = 10'000;

int check(ssize_t status, const char* what) {
    if (status < 0) give_up(what, fi_strerror(static_cast<int>(-status)));
    return static_cast<int>(status);
}

/// Closes a libfabric object, whatever it is: all of them begin with a struct fid.
struct Close {
    template <class Object>
    void operator()(Object* object) const {
        fi_close(&object->fid);
    }
    void operator()(fi_info* info) const { fi_freeinfo(info); }
};
template <class Object>
using Owned = std::unique_ptr<Object, Close>;

Owned<fi_info> find_provider(const BenchOptions& options) {
    const Owned<fi_info> hints(fi_allocinfo());
    if (!hints) give_up("fi_allocinfo", "no memory");
    hints->caps = FI_MSG | FI_RMA;
    hints->ep_attr->type = FI_EP_MSG;
    hints->domain_attr->mr_mode = 0;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->fabric_attr->prov_name = ::strdup("tcp");
    fi_info* found = nullptr;
    const std::uint64_t flags = options.side == Side::serve ? FI_SOURCE : 0;
    check(fi_getinfo(FI_VERSION(1, 17), options.host.c_str(), std::to_string(options.port).c_str(),
                     flags, hints.get(), &found),
          "fi_getinfo");
    return Owned<fi_info>(found);
}

/// A connected endpoint with its memory, and the two parts of the conversation.
class Peer {
public:
    explicit Peer(const BenchOptions& options)
        : options_(options),
          info_(find_provider(options)),
          outgoing_(options.size),
          incoming_(options.size) {
        fid_fabric* fabric = nullptr;
        check(fi_fabric(info_->fabric_attr, &fabric, nullptr), "fi_fabric");
        fabric_.reset(fabric);
        fi_eq_attr attributes{};
        attributes.wait_obj = FI_WAIT_UNSPEC;
        fid_eq* events = nullptr;
        check(fi_eq_open(fabric, &attributes, &events, nullptr), "fi_eq_open");
        events_.reset(events);
        options.side == Side::serve ? accept() : connect();
    }

    void drive(std::uint64_t count) {
        if (options_.operation == Operation::ping_pong) {
            for (std::uint64_t i = 0; i < count; ++i) {
                post_receive();
                post_send(options_.size);
                wait_for(received_, receives_posted_);
            }
        } else {
            post_receive();
            for (std::uint64_t i = 0; i < count; ++i) {
                while (posted_ - ended_ >= options_.depth) progress();
                post();
            }
            post_send(1);
            wait_for(received_, receives_posted_);
        }
        wait_for(ended_, posted_);
    }

    /// Receives are posted ahead for the phases to come as well, for the other side begins the next
    /// one without asking.
    void serve(std::initializer_list<std::uint64_t> phases) {
        const bool ping_pong = options_.operation == Operation::ping_pong;
        const bool one_sided =
            options_.operation == Operation::write || options_.operation == Operation::read;
        std::uint64_t expected = 0;
        for (const std::uint64_t count : phases)
            expected += ping_pong ? count : one_sided ? 1 : count + 1;
        std::uint64_t phase_end = 0;
        for (const std::uint64_t count : phases) {
            if (ping_pong) {
                for (std::uint64_t i = 0; i < count; ++i) {
                    receive_until(++phase_end, expected);
                    post_send(options_.size);
                }
            } else {
                phase_end += one_sided ? 1 : count + 1;
                receive_until(phase_end, expected);
                post_send(1);
            }
            wait_for(ended_, posted_);
        }
    }

private:
    void accept() {
        fid_pep* listener = nullptr;
        check(fi_passive_ep(fabric_.get(), info_.get(), &listener, nullptr), "fi_passive_ep");
        const Owned<fid_pep> owned(listener);
        check(fi_pep_bind(listener, &events_->fid, 0), "fi_pep_bind");
        check(fi_listen(listener), "fi_listen");
        info_.reset(next_event(FI_CONNREQ));
        open_endpoint();
        check(fi_accept(endpoint_.get(), nullptr, 0), "fi_accept");
        next_event(FI_CONNECTED);
    }

    void connect() {
        open_endpoint();
        check(fi_connect(endpoint_.get(), info_->dest_addr, nullptr, 0), "fi_connect");
        next_event(FI_CONNECTED);
    }

    /// The info of a connection request, which is the caller's then; else nothing.
    fi_info* next_event(std::uint32_t wanted) {
        std::uint32_t event = 0;
        fi_eq_cm_entry entry{};
        // The one who serves may wait long for the first one to come; bench/rdma.py ends it then.
        const int patience = wanted == FI_CONNREQ ? -1 : patience_ms;
        check(fi_eq_sread(events_.get(), &event, &entry, sizeof entry, patience, 0), "connection");
        if (event != wanted) give_up("connection", "refused");
        return entry.info;
    }

    void open_endpoint() {
        if (info_->domain_attr->mr_mode != 0) give_up("memory", "keys would need an exchange");
        if (info_->tx_attr->size < options_.depth) give_up("--depth", "too many for this provider");
        fid_domain* domain = nullptr;
        check(fi_domain(fabric_.get(), info_.get(), &domain, nullptr), "fi_domain");
        domain_.reset(domain);
        fi_cq_attr attributes{};
        attributes.size = 2 * options_.depth + 2;
        attributes.format = FI_CQ_FORMAT_CONTEXT;
        const bool polling = options_.waiting == Waiting::polling;
        attributes.wait_obj = polling ? FI_WAIT_NONE : FI_WAIT_UNSPEC;
        fid_cq* completions = nullptr;
        check(fi_cq_open(domain, &attributes, &completions, nullptr), "fi_cq_open");
        completions_.reset(completions);
        fid_mr* region = nullptr;
        check(fi_mr_reg(domain, incoming_.data(), incoming_.size(),
                        FI_REMOTE_READ | FI_REMOTE_WRITE, 0, remote_key, 0, &region, nullptr),
              "fi_mr_reg");
        region_.reset(region);
        fid_ep* endpoint = nullptr;
        check(fi_endpoint(domain, info_.get(), &endpoint, nullptr), "fi_endpoint");
        endpoint_.reset(endpoint);
        check(fi_ep_bind(endpoint, &events_->fid, 0), "fi_ep_bind");
        check(fi_ep_bind(endpoint, &completions->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
        check(fi_enable(endpoint), "fi_enable");
    }

    /// Each request's context is the count of ended ones of its kind.
    void progress() {
        if (options_.waiting == Waiting::polling) return reap();
        ended_of(
            fi_cq_sread(completions_.get(), found_.data(), found_.size(), nullptr, patience_ms));
    }

    void reap() { ended_of(fi_cq_read(completions_.get(), found_.data(), found_.size())); }

    void ended_of(ssize_t count) {
        if (count == -FI_EAGAIN) return;
        if (count == -FI_EAVAIL) {
            fi_cq_err_entry error{};
            fi_cq_readerr(completions_.get(), &error, 0);
            give_up("completion", fi_strerror(error.err));
        }
        check(count, "fi_cq_read");
        for (ssize_t i = 0; i < count; ++i)
            ++*static_cast<std::uint64_t*>(found_[static_cast<std::size_t>(i)].op_context);
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

    template <class Call>
    void insist(Call call, const char* what) {
        ssize_t status = 0;
        while ((status = call()) == -FI_EAGAIN) reap();
        check(status, what);
    }

    void post_receive() {
        insist(
            [&] {
                return fi_recv(endpoint_.get(), incoming_.data(), incoming_.size(), nullptr, 0,
                               &received_);
            },
            "fi_recv");
        ++receives_posted_;
    }

    void post_send(std::size_t size) {
        insist(
            [&] { return fi_send(endpoint_.get(), outgoing_.data(), size, nullptr, 0, &ended_); },
            "fi_send");
        ++posted_;
    }

    void post() {
        if (options_.operation == Operation::send) return post_send(options_.size);
        const bool write = options_.operation == Operation::write;
        insist(
            [&] {
                return write ? fi_write(endpoint_.get(), outgoing_.data(), outgoing_.size(),
                                        nullptr, 0, 0, remote_key, &ended_)
                             : fi_read(endpoint_.get(), outgoing_.data(), outgoing_.size(), nullptr,
                                       0, 0, remote_key, &ended_);
            },
            write ? "fi_write" : "fi_read");
        ++posted_;
    }

    // Closed in reverse: the endpoint first, the fabric last.
    const BenchOptions& options_;
    Owned<fi_info> info_;
    std::vector<std::byte> outgoing_;
    std::vector<std::byte> incoming_;
    Owned<fid_fabric> fabric_;
    Owned<fid_eq> events_;
    Owned<fid_domain> domain_;
    Owned<fid_cq> completions_;
    Owned<fid_mr> region_;
    Owned<fid_ep> endpoint_;
    std::array<fi_cq_entry, 16> found_{};
    std::uint64_t posted_ = 0;  ///< to send, write or read
    std::uint64_t ended_ = 0;
    std::uint64_t receives_posted_ = 0;
    std::uint64_t received_ = 0;
};

void run(const BenchOptions& options) {
    Peer peer(options);
    if (options.side == Side::serve) return peer.serve({options.warm_up_count(), options.count});
    drive_measured(options, [&](std::uint64_t count) { peer.drive(count); });
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) {
    const auto options = weft::bench::parse_bench_options(argc, argv, "libfabric tcp, measured.");
    if (!options) return 2;
    weft::bench::run(*options);
    return 0;
}
