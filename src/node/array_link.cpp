// SPDX-License-Identifier: Apache-2.0
#include "node/array_link.hpp"

#include "base/error_text.hpp"
#include "node/chance.hpp"
#include "node/termination_text.hpp"

namespace weft::node {

namespace {

constexpr auto no_rights = Rights::local_read;
constexpr auto peers_rights = Rights::remote_read | Rights::remote_write;

}  // namespace

const char* to_text(ArrayLinkFacts::State state) {
    using enum ArrayLinkFacts::State;
    switch (state) {
        case down:
            return "down";
        case connecting:
            return "connecting";
        case pausing:
            return "pausing";
        case idle:
            return "idle";
        case busy:
            return "busy";
        case congested:
            return "congested";
        case stalled:
            break;
    }
    return "stalled";
}

ArrayLink::ArrayLink(World& world, verbs::Device& device, const ArrayLinkOptions& options,
                     const ArraySecret& secret)
    : RdmaEnd(device), world_(world), options_(options), secret_(secret) {}

Result<void> ArrayLink::prepare_link(std::shared_ptr<verbs::ProtectionDomain> domain,
                                     std::uint32_t receive_size) {
    domain_ = std::move(domain);
    // Every transfer may need an empty Read behind it, and there is one message of our own.
    if (auto ready = prepare({.sends = 2 * options_.under_way_max + 2,
                              .receives = 1,
                              .inline_bytes = 64,
                              .domain = domain_,
                              .sends_own_memory = true});
        !ready)
        return ready;
    queue_pair().limit_peer(no_rights);
    WEFT_TRY(received_, make_memory(receive_size, Rights::local_write));
    auto place = received_->region->local(0, receive_size);
    return queue_pair().post(verbs::ReceiveRequest{.id = 0, .local = {&place, 1}});
}

Result<void> ArrayLink::send_inline(ConstBuffer octets) {
    const verbs::LocalMemory place{
        .address = reinterpret_cast<std::uintptr_t>(octets.data()),
        .size = static_cast<std::uint32_t>(octets.size()),
        .tag = own_memory,
    };
    return queue_pair().post(verbs::SendRequest{
        .id = 0, .operation = verbs::Operation::send, .inlined = true, .local = {&place, 1}});
}

verbs::ConnectOptions ArrayLink::connect_options(ConstBuffer private_data) const {
    verbs::ConnectOptions wishes;
    wishes.private_data = private_data;
    wishes.inbound_reads = options_.reads;
    wishes.outbound_reads = options_.reads;
    wishes.checksums = options_.checksums;
    return wishes;
}

std::string ArrayLink::reason(const std::optional<Error>& why) const {
    if (termination()) return to_text(*termination());
    return why ? to_text(*why) : "the connection has ended";
}

Result<void> InboundLink::accept(verbs::ConnectionRequest& request,
                                 const wire::ArrayGreeting& greeting, wire::Epoch epoch,
                                 std::shared_ptr<verbs::ProtectionDomain> domain) {
    greeting_ = greeting;
    welcome_ = {.epoch = epoch, .fresh = octets_of_chance<32>(world_), .proof = {}};
    welcome_.proof = array_proof(secret_, greeting_, welcome_, Prover::accepting);
    std::array<std::byte, wire_size<wire::ArrayWelcome>()> octets;
    encode(welcome_, octets);
    if (auto ready = prepare_link(std::move(domain), wire_size<wire::ArrayProof>()); !ready)
        return ready;
    timer_ = world_.make_timer([this] { refuse("its proof did not come in time"); });
    timer_->set(world_.now() + options_.patience);
    return RdmaEnd::accept(request, connect_options(octets));
}

void InboundLink::completed(const verbs::Completion& completion) {
    if (completion.what == verbs::Ended::sent || completion.status != verbs::Status::success)
        return;  // if it is the end, that will be told too
    auto said = decode<wire::ArrayProof>(ConstBuffer(received_->bytes).first(completion.bytes));
    const auto expected = array_proof(secret_, greeting_, welcome_, Prover::connecting);
    if (!said || !is_same_proof(said->proof, expected))
        return refuse("its proof is not one of who knows the secret");
    timer_->cancel();
    proved_ = true;
    queue_pair().limit_peer(peers_rights);
    std::array<std::byte, wire_size<wire::ArrayReady>()> octets;
    encode(wire::ArrayReady{}, octets);
    if (!send_inline(octets)) return refuse("the connection has ended");
    owner_.proved(*this);
}

void InboundLink::describe(ArrayLinkFacts& facts) const {
    facts.state = ArrayLinkFacts::State::idle;
    facts.local = RdmaEnd::facts().local;
    facts.remote = RdmaEnd::facts().remote;
    count_traffic(facts.counters);
    facts.network = condition();
    if (facts.network && facts.network->segments_sent > 0)
        facts.resent_per_mille = static_cast<std::uint32_t>(facts.network->segments_resent * 1000 /
                                                            facts.network->segments_sent);
}

void InboundLink::count_traffic(ArrayLinkCounters& counters) const {
    const auto moved = traffic();
    counters.octets_sent += moved.octets_sent;
    counters.octets_received += moved.octets_received;
}

void InboundLink::ended(std::optional<Error> why, bool) {
    refuse(reason(why));
}

}  // namespace weft::node
