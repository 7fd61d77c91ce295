// SPDX-License-Identifier: Apache-2.0
// What `weft rdma serve` is: a peer to exercise RDMA with. It takes Sends and throws them away,
// echoes those that solicit an event, and has memory to read and write.
#pragma once

#include <functional>

#include "node/rdma_end.hpp"
#include "wire/exercise.hpp"

namespace weft::node {

/// The bounds of what a client can make a server hold.
inline constexpr std::uint32_t exercise_message_max = 1u << 30;
inline constexpr std::uint32_t exercise_depth_max = 1024;

class ExerciseServer final : public RdmaEnd {
public:
    using Ended = std::function<void(ExerciseServer&)>;

    /// Accepts the request if it needs no more than `memory_left` bytes; or rejects it, and returns
    /// Code::out_of_range or Code::malformed.
    static Result<std::unique_ptr<ExerciseServer>> accept(verbs::Device& device,
                                                          verbs::ConnectionRequest& request,
                                                          verbs::ConnectOptions options,
                                                          std::uint64_t memory_left, Ended ended);
    ExerciseServer(verbs::Device& device, Ended ended)
        : RdmaEnd(device), ended_(std::move(ended)) {}

    std::uint64_t messages() const { return messages_; }
    std::uint64_t memory() const { return shared_->bytes.size() + received_->bytes.size(); }

private:
    Result<void> begin(verbs::ConnectionRequest& request, const wire::ExerciseRequest& wanted,
                       verbs::ConnectOptions options);
    void post_receive(std::uint64_t slot);
    void completed(const verbs::Completion& completion) override;
    void ended(std::optional<Error>, bool) override { ended_(*this); }

    Ended ended_;
    std::uint32_t message_size_ = 0;
    std::unique_ptr<Memory> shared_;    ///< for the client to read and write
    std::unique_ptr<Memory> received_;  ///< a slot for each receive
    std::uint64_t messages_ = 0;
};

}  // namespace weft::node
