// SPDX-License-Identifier: Apache-2.0
#include "node/box_session.hpp"

#include <algorithm>

#include "node/cluster_key.hpp"
#include "wire/scsi_sense.hpp"

namespace weft::node {
namespace {

constexpr Duration first_pause = std::chrono::milliseconds(200);
constexpr Duration longest_pause = std::chrono::seconds(2);
/// Of a box in several networks: how long one may be silent, or take to let a session begin.
constexpr Duration silence_of_several = std::chrono::milliseconds(2000);
constexpr Duration beginning_of_several = std::chrono::milliseconds(2500);
/// A session begins with news of the unit, told once for each.
constexpr unsigned attentions_max = 8;

IscsiInitiatorOptions initiator_options(const BoxSession::Options& options, const Address& address,
                                        std::uint64_t session_number) {
    IscsiInitiatorOptions made;
    made.url.over_rdma = true;
    made.url.address = address;
    if (options.addresses.size() > 1) made.silence = silence_of_several;
    made.url.target_name = options.target_name;
    made.initiator_name = options.initiator_name;
    if (!options.key.empty()) {
        made.url.credentials = controller_credentials(options.key);
        made.url.expected_of_target = box_credentials(options.key);
    }
    made.session_number = session_number;
    made.send_writes_again = false;
    made.command_patience = Duration{};
    made.silence = options.silence;
    made.ping_interval = std::min(options.silence / 4, BoxSession::ping_interval_most);
    made.patience = Duration{};  // the first loss is the end: a new session is another object
    return made;
}

bool is_attention(ConstBuffer sense) {
    auto found = wire::summarize_sense(sense);
    return found && found->key == wire::SenseKey::unit_attention;
}

}  // namespace

class BoxSession::Command final : public iscsi::InitiatorCommand {
public:
    Command(BoxSession& owner, const wire::ArrayCommandBlock& block,
            std::vector<std::byte> parameters, std::size_t room_in, Told told)
        : owner_(owner),
          block_(encoded(block)),
          parameters_(std::move(parameters)),
          room_(room_in),
          told_(std::move(told)) {}

    void submit(iscsi::InitiatorSession& session) {
        session_ = &session;
        prepare(wire::LogicalUnit{}, block_, iscsi::Effect::once);
        out_ = parameters_;
        in_ = room_;
        const auto size_out = static_cast<std::uint32_t>(out_.size());
        const auto size_in = static_cast<std::uint32_t>(in_.size());
        if (!out_.empty() && !in_.empty())
            set_data_both({&out_, 1}, size_out, {&in_, 1}, size_in);
        else if (!out_.empty())
            set_data_out({&out_, 1}, size_out);
        else if (!in_.empty())
            set_data_in({&in_, 1}, size_in);
        session.submit(*this);
    }

    void ended(const iscsi::CommandEnd& end) override {
        if (!end.delivered) return owner_.retire(*this, end.delivered.error());
        if (end.status == wire::ScsiStatus::check_condition && is_attention(end.sense) &&
            ++attentions_ <= attentions_max)
            return session_->submit_again(*this);
        auto answer =
            end.sense.size() < wire_size<wire::DescriptorSense>()
                ? Result<wire::ArrayAnswer>(Error{.code = Code::malformed})
                : decode<wire::ArrayAnswer>(end.sense.subspan(wire_size<wire::DescriptorSense>()));
        if (!answer) return owner_.retire(*this, answer.error());
        owner_.retire(*this, BoxReply{.answer = *answer,
                                      .data = ConstBuffer(room_).first(
                                          std::min<std::size_t>(end.placed, room_.size()))});
    }

    Told take_told() { return std::exchange(told_, nullptr); }

private:
    BoxSession& owner_;
    std::array<std::byte, wire_size<wire::ArrayCommandBlock>()> block_;
    std::vector<std::byte> parameters_, room_;
    Buffer out_{}, in_{};
    Told told_;
    iscsi::InitiatorSession* session_ = nullptr;
    unsigned attentions_ = 0;
};

BoxSession::BoxSession(World& world, IscsiTransport& transport, Options options, Holder holder)
    : world_(world),
      transport_(transport),
      options_(std::move(options)),
      holder_(std::move(holder)),
      session_number_(world.random()),
      pause_(first_pause) {
    retry_ = world_.make_timer([this] { begin(); });
    unheard_ = world_.make_timer([this] { drop({.code = Code::timed_out}); });
    retry_->set(world_.now());
}

BoxSession::~BoxSession() {
    *alive_ = false;
    if (initiator_) initiator_->session().forget_all();
    initiator_.reset();  // and with it goes what could still touch the commands' memory
    for (auto& command : commands_)
        if (auto told = command->take_told()) told(Error{.code = Code::disconnected});
}

void BoxSession::begin() {
    initiator_ = std::make_shared<IscsiInitiator>(
        world_, transport_, initiator_options(options_, options_.addresses[at_], session_number_),
        IscsiInitiator::Holder{.up = [this] { came_up(); },
                               .gave_up = [this](Error why) { gave_up(why); }});
    initiator_->begin();
    if (options_.addresses.size() > 1) unheard_->set(world_.now() + beginning_of_several);
}

void BoxSession::reach_at(const std::vector<Address>& addresses) {
    if (addresses.empty() || addresses == options_.addresses) return;
    const auto now = options_.addresses[at_];
    options_.addresses = addresses;
    const auto found = std::ranges::find(addresses, now);
    at_ = found == addresses.end() ? 0 : static_cast<std::size_t>(found - addresses.begin());
}

void BoxSession::came_up() {
    up_ = true;
    unheard_->cancel();
    initiator_->works();
    holder_.up();
}

void BoxSession::gave_up(Error why) {
    up_ = false;
    unheard_->cancel();
    at_ = (at_ + 1) % options_.addresses.size();
    auto over = std::exchange(initiator_, nullptr);
    over->session().give_up(why);
    world_.defer([over] {});  // it is calling us
    retry_->set(world_.now() + pause_);
    pause_ = std::min(pause_ * 2, longest_pause);
    holder_.down(why);
}

void BoxSession::send(const wire::ArrayCommandBlock& block, std::vector<std::byte> parameters,
                      std::size_t room_in, Told told) {
    if (!up_ || commands_.size() >= commands_max) {
        const Error why{.code = up_ ? Code::exhausted : Code::disconnected};
        if (up_) drop(why);  // a box so far behind is of no use
        world_.defer([told = std::move(told), why] { told(why); });
        return;
    }
    commands_.push_back(
        std::make_unique<Command>(*this, block, std::move(parameters), room_in, std::move(told)));
    commands_.back()->submit(initiator_->session());
}

void BoxSession::drop(Error why) {
    if (!initiator_) return;
    // From inside an answer it could not be ended.
    world_.defer([this, alive = alive_, why] {
        if (*alive && initiator_) initiator_->session().drop(why);
    });
}

void BoxSession::retire(Command& command, Result<BoxReply> reply) {
    if (reply) pause_ = first_pause;
    // What the box answered makes no sense, or was lost on its way: what it has done is not known.
    if (!reply && reply.error().code != Code::disconnected && up_) drop(reply.error());
    auto told = command.take_told();
    auto place =
        std::ranges::find_if(commands_, [&](auto& each) { return each.get() == &command; });
    std::shared_ptr<Command> over = std::move(*place);
    commands_.erase(place);
    world_.defer([over] {});  // the session is calling it
    told(reply);
}

}  // namespace weft::node
