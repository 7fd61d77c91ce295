// SPDX-License-Identifier: Apache-2.0
#include "node/volume_session.hpp"

#include <algorithm>

#include "base/error_text.hpp"
#include "iscsi/command_fate.hpp"
#include "node/array_address.hpp"

namespace weft::node {

namespace {

constexpr Duration first_pause = std::chrono::milliseconds(100);
constexpr Duration longest_pause = std::chrono::seconds(2);
/// Where there are several controllers, one of them will be in office soon.
constexpr Duration longest_pause_of_several = std::chrono::milliseconds(250);
/// And one that is paused, or has lost its power, is not waited for as long as if it were the only.
constexpr Duration silence_of_several = std::chrono::seconds(3);
/// Nor is its welcome: one that is paused takes connections, and says nothing on them. Every round
/// in vain waits a little longer, for the one in office may be slow.
constexpr Duration first_welcome_of_several = std::chrono::milliseconds(1500);
constexpr Duration more_welcome_of_several = std::chrono::milliseconds(500);
constexpr Duration longest_welcome_of_several = std::chrono::seconds(10);
/// A session begins with news of the unit, told once for each.
constexpr unsigned attempts_max = 8;

IscsiInitiatorOptions initiator_options(const VolumeSession::Options& options,
                                        const Address& controller) {
    IscsiInitiatorOptions made;
    made.url.over_rdma = options.over_rdma;
    made.url.address = controller;
    made.url.target_name = wire::volume_target_name(options.volume);
    made.initiator_name = "iqn.2026-11.io.weft:host." + options.host_name;
    made.send_writes_again = false;
    made.command_patience = options.command_patience;
    if (options.controllers.size() > 1) {
        made.silence = silence_of_several;
        made.ping_interval = silence_of_several / 4;
    }
    made.patience = Duration{};  // the first loss is the end: a new session is another object
    return made;
}

std::string sentence_of(wire::HostOutcome outcome) {
    switch (outcome) {
        case wire::HostOutcome::later:
            return "the volume is not ready; some of its boxes may not be there";
        case wire::HostOutcome::host_unreachable:
            return "boxes cannot reach this host";
        case wire::HostOutcome::failed:
            return "the volume has lost more boxes than it can do without";
        default:
            return "the controller does not take this host's hello (" +
                   std::to_string(static_cast<unsigned>(outcome)) + ")";
    }
}

}  // namespace

/// Hello, and goodbye.
class VolumeSession::Greeting final : public iscsi::InitiatorCommand {
public:
    Greeting(VolumeSession& owner, std::shared_ptr<bool> owner_lives)
        : owner_(owner), owner_lives_(std::move(owner_lives)) {}

    template <class Parameters>
    void submit(iscsi::InitiatorSession& session, wire::HostAction action,
                const Parameters& parameters) {
        const auto octets = encoded(parameters);
        parameters_.assign(octets.begin(), octets.end());
        const auto block = encoded(wire::HostCommandBlock{
            .action = action,
            .command = 0,
            .parameter_length = static_cast<std::uint32_t>(parameters_.size()),
            .control = {}});
        prepare(wire::LogicalUnit{}, block, iscsi::Effect::once);
        piece_ = parameters_;
        set_data_out({&piece_, 1}, static_cast<std::uint32_t>(parameters_.size()));
        session.submit(*this);
    }
    void ended(const iscsi::CommandEnd& end) override {
        if (*owner_lives_) owner_.greeting_ended(end);
    }

    unsigned attempts = 0;

private:
    VolumeSession& owner_;
    std::shared_ptr<bool> owner_lives_;
    std::vector<std::byte> parameters_;
    Buffer piece_{};
};

/// A session and all it needs, which may outlive us until its connection has ended.
struct VolumeSession::Attempt {
    std::shared_ptr<IscsiTransport> transport;
    Greeting greeting;
    std::unique_ptr<IscsiInitiator> initiator;
    std::shared_ptr<Attempt> kept;  ///< itself, when nobody else does
};

VolumeSession::VolumeSession(World& world, std::shared_ptr<IscsiTransport> transport,
                             Options options, Holder holder)
    : world_(world),
      transport_(std::move(transport)),
      options_(std::move(options)),
      holder_(std::move(holder)),
      retry_(world.make_timer([this] { begin(); })),
      unheard_(world.make_timer([this] {
          trouble_ = Answer{.sentence = "it says nothing"};
          break_off();
      })),
      pause_(first_pause),
      welcome_patience_(first_welcome_of_several) {
    retry_->set(world_.now());
}

VolumeSession::~VolumeSession() {
    *alive_ = false;
    if (!attempt_) return;
    attempt_->kept = attempt_;
    attempt_->initiator->leave();  // if there is nothing to leave yet, that is all the better
    attempt_->initiator->session().drop({.code = Code::disconnected});
}

iscsi::InitiatorSession& VolumeSession::session() {
    return attempt_->initiator->session();
}

void VolumeSession::begin() {
    attempt_ = std::make_shared<Attempt>(
        Attempt{.transport = transport_, .greeting = {*this, alive_}, .initiator = {}, .kept = {}});
    auto gave = [this, alive = alive_, attempt = attempt_.get(), &world = world_](Error why) {
        if (*alive) return gave_up(why);
        attempt->initiator->session().give_up(why);
        world.defer([last = std::move(attempt->kept)] {});  // it is calling us
    };
    attempt_->initiator = std::make_unique<IscsiInitiator>(
        world_, *transport_, initiator_options(options_, options_.controllers[at_]),
        IscsiInitiator::Holder{.up =
                                   [this, alive = alive_] {
                                       if (*alive) say_hello();
                                   },
                               .gave_up = gave});
    attempt_->initiator->begin();
    if (options_.controllers.size() > 1) unheard_->set(world_.now() + welcome_patience_);
}

void VolumeSession::say_hello() {
    wire::HostHello hello{.name = {},
                          .previous = number_,
                          .port = options_.port,
                          .network_address = options_.network_address,
                          .identity = options_.identity};
    std::copy_n(options_.host_name.begin(),
                std::min(options_.host_name.size(), hello.name.size() - 1), hello.name.begin());
    attempt_->greeting.submit(session(), wire::HostAction::hello, hello);
}

void VolumeSession::hello_again() {
    if (!std::exchange(welcomed_, false) || leaving_) return;
    attempt_->greeting.attempts = 0;
    say_hello();
}

void VolumeSession::greeting_ended(const iscsi::CommandEnd& end) {
    if (leaving_) return;
    if (!end.delivered) return;  // the session's end will be told
    constexpr std::size_t head = wire_size<wire::DescriptorSense>();
    const auto welcome = end.sense.size() > head
                             ? decode<wire::HostWelcome>(end.sense.subspan(head))
                             : Result<wire::HostWelcome>(Error{.code = Code::truncated});
    if (welcome && welcome->outcome == wire::HostOutcome::done) {
        number_ = welcome->session;
        unheard_->cancel();
        pause_ = first_pause;
        welcome_patience_ = first_welcome_of_several;
        begin_round();
        welcomed_ = true;
        attempt_->initiator->works();
        return holder_.welcomed(*welcome);
    }
    const auto kind = iscsi::fate_of(end).kind;
    const bool passes = kind == iscsi::FateKind::again || kind == iscsi::FateKind::later;
    if (!welcome && passes && ++attempt_->greeting.attempts < attempts_max)
        return session().submit_later(attempt_->greeting);
    trouble_ = welcome ? Answer{.sentence = sentence_of(welcome->outcome),
                                .from = From::in_office,
                                .hope = welcome->outcome == wire::HostOutcome::later ? Hope::some
                                                                                     : Hope::none}
                       : Answer{.sentence = "what answers there is not the controller of a volume"};
    // From inside an answer the session cannot be ended.
    world_.defer([this, alive = alive_, attempt = attempt_] {
        if (*alive && attempt == attempt_) session().drop({.code = Code::access_denied});
    });
}

void VolumeSession::gave_up(Error why) {
    unheard_->cancel();
    auto over = std::exchange(attempt_, nullptr);
    world_.defer([over] {});  // it is calling us
    auto& ended = over->initiator->session();
    const auto answer = answer_for(why, ended.login_status());
    const bool was_welcome = std::exchange(welcomed_, false);
    take(answer);
    at_ = (at_ + 1) % options_.controllers.size();
    const bool all_tried = tried_ >= options_.controllers.size();
    // Who has another to ask does so at once, before it is bad news.
    if (!leaving_ && (was_welcome || all_tried)) {
        const auto said = was_welcome ? answer : of_them_all(answer);
        holder_.lost(said.sentence, said.hope);
    }
    ended.give_up(why);
    if (leaving_) return;
    if (!all_tried) return retry_->set(world_.now());
    begin_round();
    welcome_patience_ =
        std::min(welcome_patience_ + more_welcome_of_several, longest_welcome_of_several);
    retry_->set(world_.now() + pause_);
    pause_ = std::min(pause_ * 2,
                      options_.controllers.size() > 1 ? longest_pause_of_several : longest_pause);
}

VolumeSession::Answer VolumeSession::answer_for(Error why, wire::LoginStatus status) {
    if (trouble_) return *std::exchange(trouble_, std::nullopt);
    if (status == wire::LoginStatus::not_found)
        return {.sentence = "there is no volume of that name", .from = From::in_office};
    if (status == wire::LoginStatus::service_unavailable)
        return {.sentence = "the controller there is not in office, or has only begun"};
    return {.sentence = to_text(why)};
}

void VolumeSession::begin_round() {
    tried_ = 0;
    in_office_.reset();
    others_.clear();
}

void VolumeSession::take(const Answer& answer) {
    ++tried_;
    if (answer.from == From::in_office)
        in_office_ = answer;
    else
        others_ += (others_.empty() ? "" : "; ") + written(options_.controllers[at_]) + ": " +
                   answer.sentence;
}

/// What counts is what the one in office says; what the others say, where there is none.
VolumeSession::Answer VolumeSession::of_them_all(const Answer& last) const {
    if (options_.controllers.size() == 1) return {.sentence = last.sentence, .hope = Hope::none};
    if (in_office_) return *in_office_;
    return {.sentence = "no controller is in office: " + others_, .hope = Hope::some};
}

void VolumeSession::break_off() {
    if (attempt_) session().drop({.code = Code::disconnected});
}

void VolumeSession::leave() {
    if (std::exchange(leaving_, true)) return;
    retry_->cancel();
    unheard_->cancel();
    if (!attempt_) return;
    if (welcomed_) {
        wire::HostTransfer goodbye;
        goodbye.session = number_;
        attempt_->greeting.submit(session(), wire::HostAction::goodbye, goodbye);
    }
    attempt_->initiator->leave();
}

}  // namespace weft::node
