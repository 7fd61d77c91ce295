// SPDX-License-Identifier: Apache-2.0
// The exchange of the stock `rping` program, both sides of it: the client offers a buffer, the
// server reads it, the client offers another, the server writes what it read, the client compares.
// Four Sends, an RDMA Read and an RDMA Write per ping: most of what an RNIC can do.
#pragma once

#include <functional>

#include "node/rdma_end.hpp"
#include "wire/rping.hpp"

namespace weft::node {

struct RpingOptions {
    std::uint32_t size = 64;  ///< of the buffer; what a server takes at most
    std::uint32_t count = 0;  ///< client: pings to make. 0: for ever
    verbs::ConnectOptions connection{};
};

/// How one side came to its end.
struct RpingOutcome {
    std::uint64_t pings = 0;
    std::optional<std::string> fault;  ///< a sentence, if it was not the expected end
};

/// What both sides have: four registered buffers, and Sends of sixteen octets.
class RpingEnd : public RdmaEnd {
public:
    using Ended = std::function<void(const RpingOutcome&)>;

protected:
    RpingEnd(verbs::Device& device, const RpingOptions& options, Ended ended);

    Result<void> prepare_buffers(Rights rights);
    void advertise(const verbs::MemoryRegion* region);
    void fail(std::string sentence);
    void completed(const verbs::Completion& completion) override;
    void ended(std::optional<Error> why, bool rejected) override;
    virtual void advertised(const wire::RpingAdvertisement& there) = 0;
    virtual void moved(verbs::Operation operation) = 0;
    void post(const verbs::SendRequest& request);
    void post_receive();

    const RpingOptions options_;
    RpingOutcome outcome_;
    std::unique_ptr<Memory> buffer_, incoming_, outgoing_;

private:
    Ended ended_;
};

class RpingServer final : public RpingEnd {
public:
    /// Accepts the request; where that fails the request is still there to be rejected.
    static Result<std::unique_ptr<RpingServer>> accept(verbs::Device& device,
                                                       verbs::ConnectionRequest& request,
                                                       const RpingOptions& options, Ended ended);
    RpingServer(verbs::Device& device, const RpingOptions& options, Ended ended)
        : RpingEnd(device, options, std::move(ended)) {}

private:
    void advertised(const wire::RpingAdvertisement& there) override;
    void moved(verbs::Operation operation) override;

    bool has_read_ = false;  ///< the next offer is where to write it
};

class RpingClient final : public RpingEnd {
public:
    static Result<std::unique_ptr<RpingClient>> connect(verbs::Device& device,
                                                        const Address& address,
                                                        const RpingOptions& options, Ended ended);
    RpingClient(verbs::Device& device, const RpingOptions& options, Ended ended)
        : RpingEnd(device, options, std::move(ended)) {}

    std::uint64_t pings() const { return outcome_.pings; }

private:
    void started() override { ping(); }
    void advertised(const wire::RpingAdvertisement& there) override;
    void moved(verbs::Operation) override {}
    void ping();

    std::unique_ptr<Memory> pattern_;
    bool was_read_ = false;  ///< the server has the pattern; now it may write
};

}  // namespace weft::node
