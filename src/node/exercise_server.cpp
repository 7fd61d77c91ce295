// SPDX-License-Identifier: Apache-2.0
#include "node/exercise_server.hpp"

#include <algorithm>
#include <array>

namespace weft::node {
namespace {

/// A slot of no bytes would lie where the next one does.
std::uint32_t slot_size(const wire::ExerciseRequest& wanted) {
    return std::max<std::uint32_t>(wanted.message_size, 1);
}
std::uint64_t memory_for(const wire::ExerciseRequest& wanted) {
    return std::uint64_t{slot_size(wanted)} * (wanted.depth + 1);
}

}  // namespace

Result<std::unique_ptr<ExerciseServer>> ExerciseServer::accept(verbs::Device& device,
                                                               verbs::ConnectionRequest& request,
                                                               verbs::ConnectOptions options,
                                                               std::uint64_t memory_left,
                                                               Ended ended) {
    auto wanted = decode<wire::ExerciseRequest>(request.private_data());
    bool fits = wanted && wanted->message_size <= exercise_message_max && wanted->depth > 0 &&
                wanted->depth <= exercise_depth_max && memory_for(*wanted) <= memory_left;
    if (!fits) {
        std::array<std::byte, wire_size<wire::ExerciseAnswer>()> answer;
        encode(wire::ExerciseAnswer{.size = exercise_message_max}, answer);
        // If even the rejection fails, the peer is gone, and that is rejection enough.
        (void)request.reject(answer);
        return Error{.code = wanted ? Code::out_of_range : Code::malformed};
    }
    auto made = std::make_unique<ExerciseServer>(device, std::move(ended));
    if (auto begun = made->begin(request, *wanted, options); !begun) return begun.error();
    return made;
}

Result<void> ExerciseServer::begin(verbs::ConnectionRequest& request,
                                   const wire::ExerciseRequest& wanted,
                                   verbs::ConnectOptions options) {
    message_size_ = slot_size(wanted);
    if (auto made = prepare({.sends = wanted.depth, .receives = wanted.depth}); !made) return made;
    WEFT_TRY(shared_, make_memory(message_size_, Rights::local_write | Rights::remote_read |
                                                     Rights::remote_write));
    WEFT_TRY(received_,
             make_memory(std::size_t{message_size_} * wanted.depth, Rights::local_write));
    for (std::uint32_t slot = 0; slot < wanted.depth; ++slot) post_receive(slot);

    std::array<std::byte, wire_size<wire::ExerciseAnswer>()> answer;
    encode(wire::ExerciseAnswer{.address = shared_->region->address(),
                                .tag = shared_->region->tag(),
                                .size = wanted.message_size},
           answer);
    options.private_data = answer;
    return RdmaEnd::accept(request, options);
}

void ExerciseServer::post_receive(std::uint64_t slot) {
    auto place = received_->region->local(slot * message_size_, message_size_);
    // It can only be refused if the connection is over, and that will be told.
    (void)queue_pair().post(verbs::ReceiveRequest{.id = slot, .local = {&place, 1}});
}

void ExerciseServer::completed(const verbs::Completion& completion) {
    if (completion.status != verbs::Status::success) return;
    if (completion.what == verbs::Ended::sent) return post_receive(completion.id);  // the echo's
    ++messages_;
    if (!completion.solicited) return post_receive(completion.id);
    auto place = received_->region->local(completion.id * message_size_, completion.bytes);
    (void)queue_pair().post(verbs::SendRequest{.id = completion.id, .local = {&place, 1}});
}

}  // namespace weft::node
