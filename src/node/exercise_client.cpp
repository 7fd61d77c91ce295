// SPDX-License-Identifier: Apache-2.0
#include "node/exercise_client.hpp"

#include <algorithm>
#include <array>

#include "base/error_text.hpp"
#include "node/exercise_server.hpp"

namespace weft::node {

using verbs::Operation;

Result<std::unique_ptr<ExerciseClient>> ExerciseClient::connect(World& world, verbs::Device& device,
                                                                const Address& address,
                                                                const ExerciseOptions& options,
                                                                Clock clock, Ended ended) {
    auto made = std::make_unique<ExerciseClient>(world, device, options, std::move(clock),
                                                 std::move(ended));
    if (auto begun = made->begin(address); !begun) return begun.error();
    return made;
}

ExerciseClient::ExerciseClient(World& world, verbs::Device& device, const ExerciseOptions& options,
                               Clock clock, Ended ended)
    : RdmaEnd(device),
      world_(world),
      options_(options),
      clock_(std::move(clock)),
      ended_(std::move(ended)),
      pause_(world.make_timer([this] { begin_round_trip(); })) {}

Result<void> ExerciseClient::begin(const Address& address) {
    if (options_.size > exercise_message_max)
        return Error{.code = Code::out_of_range, .where = exercise_message_max};
    if (options_.depth == 0 || options_.depth > exercise_depth_max)
        return Error{.code = Code::out_of_range, .where = exercise_depth_max};
    if (auto made = prepare({.sends = options_.depth + 1, .receives = 1}); !made) return made;
    WEFT_TRY(memory_, make_memory(std::size_t{options_.size} * 2 + 1,
                                  Rights::local_write | Rights::remote_write));
    std::array<std::byte, wire_size<wire::ExerciseRequest>()> request;
    encode(wire::ExerciseRequest{.message_size = options_.size, .depth = options_.depth}, request);
    auto connection = options_.connection;
    connection.private_data = request;
    return RdmaEnd::connect(address, connection);
}

void ExerciseClient::started() {
    auto answer = decode<wire::ExerciseAnswer>(peer_private_data());
    if (!answer || answer->size < options_.size)
        return fail("the server is not one of weft rdma serve");
    remote_ = {answer->address, answer->tag};
    results_.round_trips.reserve(std::min<std::uint64_t>(options_.round_trips, 1u << 20));
    if (options_.round_trips > 0) return begin_round_trip();
    begin_many();
}

void ExerciseClient::post_receive() {
    auto place = memory_->region->local(options_.size, options_.size);
    if (auto posted = queue_pair().post(verbs::ReceiveRequest{.local = {&place, 1}}); !posted)
        fail("a receive cannot be posted: " + to_text(posted.error()));
}

void ExerciseClient::post(Operation operation, std::uint32_t bytes, bool solicited) {
    // Reads land behind the message, where nothing is that is sent.
    bool read = operation == Operation::read;
    auto place = memory_->region->local(read ? options_.size : 0, bytes);
    auto posted = queue_pair().post(verbs::SendRequest{
        .operation = operation, .solicited = solicited, .local = {&place, 1}, .remote = remote_});
    if (!posted) return fail("work cannot be posted: " + to_text(posted.error()));
    ++under_way_;
}

void ExerciseClient::begin_round_trip() {
    if (stage_ != Stage::round_trips) return;
    began_ = clock_();
    switch (options_.kind) {
        case ExerciseKind::send:
            post_receive();
            return post(Operation::send, options_.size, true);
        case ExerciseKind::write:
            post(Operation::write, options_.size, false);
            return post(Operation::read, std::min(1u, options_.size), false);
        case ExerciseKind::read:
            return post(Operation::read, options_.size, false);
    }
}

void ExerciseClient::end_round_trip() {
    results_.round_trips.push_back(clock_() - began_);
    if (results_.round_trips.size() == options_.round_trips) return begin_many();
    if (options_.pause == Duration{}) return begin_round_trip();
    pause_->set(world_.now() + options_.pause);
}

void ExerciseClient::begin_many() {
    if (options_.many_for == Duration{}) return finish();
    stage_ = Stage::many;
    began_ = clock_();
    keep_busy();
}

void ExerciseClient::keep_busy() {
    auto operation = options_.kind == ExerciseKind::send    ? Operation::send
                     : options_.kind == ExerciseKind::write ? Operation::write
                                                            : Operation::read;
    while (stage_ == Stage::many && under_way_ < options_.depth) {
        post(operation, options_.size, false);
        ++results_.operations;
    }
}

void ExerciseClient::confirm() {
    stage_ = Stage::confirming;
    post(Operation::read, std::min(1u, options_.size), false);
}

void ExerciseClient::finish() {
    stage_ = Stage::over;
    disconnect();
}

void ExerciseClient::completed(const verbs::Completion& completion) {
    if (completion.status == verbs::Status::flushed) return;  // the end will be told too
    if (completion.status != verbs::Status::success)
        return fail("an operation failed; is the server still the same?");
    bool sent = completion.what == verbs::Ended::sent;
    if (sent) --under_way_;
    switch (stage_) {
        case Stage::round_trips: {
            bool back = options_.kind == ExerciseKind::send
                            ? !sent
                            : completion.operation == Operation::read;
            if (back) end_round_trip();
            return;
        }
        case Stage::many:
            if (clock_() - began_ >= options_.many_for) return confirm();
            return keep_busy();
        case Stage::confirming:
            if (under_way_ > 0) return;
            results_.elapsed = clock_() - began_;
            return finish();
        case Stage::over:
            return;
    }
}

void ExerciseClient::fail(std::string sentence) {
    if (!results_.fault) results_.fault = std::move(sentence);
    finish();
}

void ExerciseClient::ended(std::optional<Error> why, bool rejected) {
    if (!results_.fault && rejected) results_.fault = "the server rejected the connection";
    if (!results_.fault && why) results_.fault = to_text(*why);
    if (!results_.fault && stage_ != Stage::over)
        results_.fault = "the server closed the connection";
    ended_(results_);
}

}  // namespace weft::node
