// SPDX-License-Identifier: Apache-2.0
#include "iscsi/iser_target.hpp"

#include <algorithm>
#include <array>

#include "iscsi/iser_target_mover.hpp"

namespace weft::iscsi {

IserTarget::IserTarget(World& world, const Options& options) : world_(world), options_(options) {
    if (options_.receives_first == 0) options_.receives_first = iser::receives_first;
    if (options_.receives_max == 0) options_.receives_max = iser::receives_max;
}

IserTarget::~IserTarget() {
    *alive_ = false;
}

void IserTarget::see_off(std::unique_ptr<IserEars> ears,
                         std::unique_ptr<verbs::QueuePair> queue_pair,
                         std::unique_ptr<verbs::Connection> connection) {
    if (departing_.size() >= iser::departing_max) return;  // then it is closed at once
    auto one = departing_.emplace(departing_.end());
    one->ears = std::move(ears);
    one->queue_pair = std::move(queue_pair);
    one->connection = std::move(connection);
    one->ears->outlive_mover([this, one] {
        world_.defer([this, one, alive = alive_] {
            if (*alive) departing_.erase(one);
        });
    });
    one->patience = world_.make_timer([one] { one->connection->disconnect(); });
    one->patience->set(world_.now() + iser::farewell_patience);
}

Result<std::unique_ptr<IserTarget>> IserTarget::make(World& world, const Options& options,
                                                     Requested requested) {
    std::unique_ptr<IserTarget> made(new IserTarget(world, options));
    if (auto good = made->set_up(std::move(requested)); !good) return good.error();
    return made;
}

Result<void> IserTarget::set_up(Requested requested) {
    device_ = verbs::make_device(world_, {.on_event = [this](const verbs::AsyncEvent& event) {
                                     if (event.kind == verbs::AsyncEvent::Kind::receives_low)
                                         refill();
                                 }});
    domain_ = device_->make_domain();
    WEFT_TRY(completions_, device_->make_completion_queue(
                               options_.receives_max + iser::target_sends, [this] { poll(); }));
    WEFT_TRY(shared_receives_, device_->make_shared_receive_queue(options_.receives_max, 1));
    receives_ = std::make_unique<iser::Receives>(
        domain_, iser::receive_bytes, options_.receives_max,
        [this](const verbs::ReceiveRequest& request) { return shared_receives_->post(request); });
    refill();
    if (receives_->count() == 0) return Error{.code = Code::exhausted};
    completions_->arm(verbs::CompletionQueue::Wanted::any);
    responder_ = device_->make_responder(std::move(requested), {});
    return {};
}

/// The mark fires once: it is set again as long as there is something to add when it does.
void IserTarget::refill() {
    auto more = receives_->count() == 0 ? options_.receives_first : iser::receives_more;
    (void)receives_->add(more);  // at the bound, initiators wait until others give theirs back
    if (!receives_->is_full())
        (void)shared_receives_->set_low_water(
            std::min(iser::receives_low, options_.receives_first / 4));
}

/// Who holds the most gives them back: or a few connections could leave all others none.
void IserTarget::relieve() {
    if (receives_held_ < options_.receives_max / 4 * 3) return;
    auto most = std::ranges::max_element(movers_, {},
                                         [](auto& each) { return each.second->receives_held(); });
    if (most != movers_.end()) most->second->take_too_much();
}

Result<std::unique_ptr<IserTargetMover>> IserTarget::make_mover(TargetDatamoverUser& user) {
    auto most = options_.receives_max + (movers_.size() + 1) * iser::target_sends;
    if (completions_->capacity() < most)
        if (auto larger = completions_->resize(most * 2); !larger) return larger.error();
    WEFT_TRY(auto queue_pair, device_->make_queue_pair({.domain = domain_,
                                                        .send_completions = completions_,
                                                        .receive_completions = completions_,
                                                        .shared_receives = shared_receives_,
                                                        .sends = iser::target_sends,
                                                        .receives = 0,
                                                        .pieces = IserTargetMover::pieces,
                                                        .inline_bytes = 0,
                                                        .sends_own_memory = true}));
    auto number = queue_pair->number();
    auto mover = std::make_unique<IserTargetMover>(*this, std::move(queue_pair), user);
    movers_[number] = mover.get();
    return mover;
}

Result<std::unique_ptr<TargetDatamover>> IserTarget::accept(
    std::unique_ptr<verbs::ConnectionRequest> request, TargetDatamoverUser& user) {
    WEFT_TRY(auto mover, make_mover(user));
    if (auto accepted = mover->accept(*request, IserTargetMover::Style::rdma_first); !accepted)
        return accepted.error();
    return std::unique_ptr<TargetDatamover>(std::move(mover));
}

Result<std::unique_ptr<TargetDatamover>> IserTarget::switch_over(std::unique_ptr<Stream> stream,
                                                                 TargetDatamoverUser& user,
                                                                 const ConnectionTerms& terms) {
    WEFT_TRY(auto mover, make_mover(user));
    mover->begin_full_feature(terms);
    if (auto waits = mover->wait_for_request(std::move(stream)); !waits) return waits.error();
    return std::unique_ptr<TargetDatamover>(std::move(mover));
}

void IserTarget::poll() {
    std::array<verbs::Completion, 64> completions;
    while (auto count = completions_->poll(completions))
        for (auto& each : std::span(completions).first(count)) give_out(each);
    completions_->arm(verbs::CompletionQueue::Wanted::any);
}

void IserTarget::give_out(const verbs::Completion& completion) {
    auto found = movers_.find(completion.queue_pair);
    if (completion.what == verbs::Ended::sent) {
        if (found != movers_.end()) found->second->sent(completion);
        return;
    }
    auto& receive = receives_->filled(completion);
    bool is_good = completion.status == verbs::Status::success && found != movers_.end();
    is_good ? found->second->received(receive) : receives_->give_back(receive);
}

}  // namespace weft::iscsi
