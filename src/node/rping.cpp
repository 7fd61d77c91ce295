// SPDX-License-Identifier: Apache-2.0
#include "node/rping.hpp"

#include <algorithm>
#include <cstring>

#include "base/error_text.hpp"

namespace weft::node {

using verbs::Operation;

namespace {

constexpr std::uint32_t advertisement_size = wire_size<wire::RpingAdvertisement>();
/// Sends and receives under way are never more than two; a few more cost nothing.
const RdmaEndOptions queue_sizes{.sends = 8, .receives = 8, .inline_bytes = 0};

/// What rping itself sends: a line with the number, then letters, which begin with another one each
/// time, then a zero.
void fill_pattern(Buffer octets, std::uint64_t number) {
    auto line = "rdma-ping-" + std::to_string(number) + ": ";
    auto letter = static_cast<unsigned char>('A' + number % 58);
    for (std::size_t i = 0; i < octets.size(); ++i) {
        bool in_line = i < line.size();
        octets[i] = static_cast<std::byte>(in_line ? static_cast<unsigned char>(line[i]) : letter);
        if (!in_line) letter = letter == 'z' ? 'A' : static_cast<unsigned char>(letter + 1);
    }
    octets.back() = std::byte{0};
}

const char* name_of(verbs::Status status) {
    switch (status) {
        case verbs::Status::success:
            return "success";
        case verbs::Status::local_length:
            return "a message longer than the receive";
        case verbs::Status::local_operation:
            return "a request that made no sense";
        case verbs::Status::local_protection:
            return "memory of our own that does not allow this";
        case verbs::Status::window_binding:
            return "a window that cannot be bound so";
        case verbs::Status::remote_access:
            return "memory of the peer's that does not allow this";
        case verbs::Status::remote_operation:
            return "a failure of the peer";
        case verbs::Status::remote_invalid:
            return "a message the peer could not take";
        case verbs::Status::flushed:
            return "the end of the connection";
    }
    return "?";
}

}  // namespace

RpingEnd::RpingEnd(verbs::Device& device, const RpingOptions& options, Ended ended)
    : RdmaEnd(device), options_(options), ended_(std::move(ended)) {}

Result<void> RpingEnd::prepare_buffers(Rights rights) {
    if (auto made = prepare(queue_sizes); !made) return made;
    WEFT_TRY(buffer_, make_memory(options_.size, rights));
    WEFT_TRY(incoming_, make_memory(advertisement_size, Rights::local_write));
    WEFT_TRY(outgoing_, make_memory(advertisement_size, Rights::local_read));
    post_receive();
    return {};
}

void RpingEnd::post_receive() {
    auto place = incoming_->region->local(0, advertisement_size);
    if (auto posted = queue_pair().post(verbs::ReceiveRequest{.local = {&place, 1}}); !posted)
        fail("a receive cannot be posted: " + to_text(posted.error()));
}

void RpingEnd::post(const verbs::SendRequest& request) {
    if (auto posted = queue_pair().post(request); !posted)
        fail("work cannot be posted: " + to_text(posted.error()));
}

void RpingEnd::advertise(const verbs::MemoryRegion* region) {
    wire::RpingAdvertisement offer;
    if (region) offer = {region->address(), region->tag(), options_.size};
    encode(offer, outgoing_->bytes);
    auto place = outgoing_->region->local(0, advertisement_size);
    post({.operation = Operation::send, .local = {&place, 1}});
}

void RpingEnd::fail(std::string sentence) {
    if (!outcome_.fault) outcome_.fault = std::move(sentence);
    disconnect();
}

void RpingEnd::completed(const verbs::Completion& completion) {
    if (completion.status == verbs::Status::flushed) return;  // the end will be told too
    if (completion.status != verbs::Status::success)
        return fail(std::string("ping ") + std::to_string(outcome_.pings + 1) + " met " +
                    name_of(completion.status));
    if (completion.what == verbs::Ended::sent) {
        if (completion.operation != Operation::send) moved(completion.operation);
        return;
    }
    if (completion.bytes != advertisement_size)
        return fail("the peer sent " + std::to_string(completion.bytes) +
                    " octets where rping has " + std::to_string(advertisement_size));
    auto offer = decode<wire::RpingAdvertisement>(incoming_->bytes);
    post_receive();
    advertised(*offer);
}

void RpingEnd::ended(std::optional<Error> why, bool rejected) {
    if (!outcome_.fault && rejected) outcome_.fault = "the peer rejected the connection";
    if (!outcome_.fault && why) outcome_.fault = to_text(*why);
    if (!outcome_.fault && outcome_.pings < options_.count)
        outcome_.fault = "the connection ended after " + std::to_string(outcome_.pings) + " of " +
                         std::to_string(options_.count) + " pings";
    ended_(outcome_);
}

Result<std::unique_ptr<RpingServer>> RpingServer::accept(verbs::Device& device,
                                                         verbs::ConnectionRequest& request,
                                                         const RpingOptions& options, Ended ended) {
    auto made = std::make_unique<RpingServer>(device, options, std::move(ended));
    if (auto ready = made->prepare_buffers(Rights::local_write); !ready) return ready.error();
    if (auto accepted = made->RdmaEnd::accept(request, options.connection); !accepted)
        return accepted.error();
    return made;
}

void RpingServer::advertised(const wire::RpingAdvertisement& there) {
    if (there.size > options_.size)
        return fail("the client offers " + std::to_string(there.size) +
                    " octets; this server has " + "room for " + std::to_string(options_.size));
    auto place = buffer_->region->local(0, there.size);
    post({.operation = has_read_ ? Operation::write : Operation::read,
          .local = {&place, 1},
          .remote = {there.address, there.tag}});
    has_read_ = !has_read_;
}

void RpingServer::moved(Operation operation) {
    if (operation == Operation::write) ++outcome_.pings;
    advertise(nullptr);
}

Result<std::unique_ptr<RpingClient>> RpingClient::connect(verbs::Device& device,
                                                          const Address& address,
                                                          const RpingOptions& options,
                                                          Ended ended) {
    auto made = std::make_unique<RpingClient>(device, options, std::move(ended));
    auto rights = Rights::local_write | Rights::remote_write | Rights::remote_read;
    if (auto ready = made->prepare_buffers(rights); !ready) return ready.error();
    WEFT_TRY(made->pattern_, made->make_memory(options.size, rights));
    if (auto begun = made->RdmaEnd::connect(address, options.connection); !begun)
        return begun.error();
    return made;
}

void RpingClient::ping() {
    was_read_ = false;
    fill_pattern(pattern_->bytes, outcome_.pings);
    advertise(pattern_->region.get());
}

void RpingClient::advertised(const wire::RpingAdvertisement&) {
    if (!was_read_) {
        was_read_ = true;
        return advertise(buffer_->region.get());
    }
    if (!std::ranges::equal(buffer_->bytes, pattern_->bytes))
        return fail("ping " + std::to_string(outcome_.pings + 1) + " came back changed");
    ++outcome_.pings;
    if (options_.count != 0 && outcome_.pings == options_.count) return disconnect();
    ping();
}

}  // namespace weft::node
