// SPDX-License-Identifier: Apache-2.0
#include "node/host_node.hpp"

#include "base/error_text.hpp"
#include "node/array_address.hpp"
#include "node/chance.hpp"
#include "node/iscsi_iser_transport.hpp"

namespace weft::node {

namespace {

std::shared_ptr<IscsiTransport> make_transport(World& world, bool over_rdma) {
    if (over_rdma)
        return std::make_shared<IscsiIserTransport>(world, iscsi::IserInitiator::Options{});
    return std::make_shared<IscsiTcpTransport>(world);
}

}  // namespace

/// Connects to the controller only to see from which of our addresses, and says nothing.
class HostNode::OwnAddress final : public StreamEngine {
public:
    OwnAddress(HostNode& owner, Instant until) : owner_(owner), until_(until) {}

    Result<void> ask(const Address& controller) {
        WEFT_TRY(stream_, owner_.world_.connect(controller, *this));
        return {};
    }
    void opened() override { tell(stream_->local().host); }
    Buffer want() override { return nothing_; }
    void filled(std::size_t) override {}
    std::size_t pending(std::span<ConstBuffer>) override { return 0; }
    void sent(std::size_t) override {}
    bool finished() const override { return told_; }
    std::optional<Instant> deadline() const override { return until_; }
    void tick(Instant now) override {
        if (now >= until_) tell(Error{.code = Code::timed_out});
    }
    void closed(std::optional<Error> why) override {
        tell(why.value_or(Error{.code = Code::disconnected}));
    }

private:
    void tell(Result<std::string> host) {
        if (std::exchange(told_, true)) return;
        // The stream is calling us, and this ends it.
        owner_.world_.defer([&owner = owner_, alive = owner_.alive_, host] {
            if (*alive) owner.found_own_address(host);
        });
    }

    HostNode& owner_;
    Instant until_;
    std::unique_ptr<Stream> stream_;
    std::array<std::byte, 1> nothing_{};
    bool told_ = false;
};

HostNode::HostNode(World& world, Options options, Holder holder)
    : world_(world),
      options_(std::move(options)),
      holder_(std::move(holder)),
      began_(world.now()),
      device_(verbs::make_device(world, {})),
      links_(std::make_unique<ArrayLinks>(world, *device_, options_.links)),
      transport_(make_transport(world, options_.over_rdma)),
      disk_(std::make_unique<HostDisk>(
          world, links_->domain(), options_.disk,
          HostDisk::Holder{.hello_again =
                               [this] {
                                   if (session_) session_->hello_again();
                               },
                           .take_back = [this](SteeringTag tag) { links_->take_back(tag); },
                           .heard = [this](const wire::HostNews& news) { heard(news); }})) {
    world_.defer([this, alive = alive_] {
        if (!*alive) return;
        const auto& host = options_.listen.host;
        if (!is_every_address(host)) return begin(host, host);
        ask_for_own_address();
    });
}

void HostNode::ask_for_own_address() {
    constexpr Duration patience = std::chrono::seconds(10);
    const auto number = asked_for_address_++;
    own_address_ = std::make_unique<OwnAddress>(*this, world_.now() + patience);
    if (auto asked =
            own_address_->ask(number == 0 ? options_.controller : options_.others[number - 1]);
        !asked)
        found_own_address(asked.error());
}

HostNode::~HostNode() {
    *alive_ = false;
    session_.reset();  // while there is a disk to end its commands
}

void HostNode::found_own_address(Result<std::string> host) {
    own_address_.reset();
    if (!host && asked_for_address_ <= options_.others.size()) return ask_for_own_address();
    if (!host) return end("the controller cannot be reached: " + to_text(host.error()));
    begin(options_.listen.host.empty() ? *host : options_.listen.host, *host);
}

void HostNode::begin(const std::string& bind_to, const std::string& own_address) {
    const auto& reached_at = options_.reach.empty() ? own_address : options_.reach;
    const auto number = network_address_of(reached_at);
    if (!number)
        return end("boxes cannot be told '" + reached_at + "': it is no address in numbers");
    auto listening = device_->listen(Address::tcp(bind_to, options_.listen.port),
                                     [this](std::unique_ptr<verbs::ConnectionRequest> request) {
                                         links_->take(std::move(request));
                                     });
    if (!listening)
        return end("boxes could not connect to " + bind_to + ": " + to_text(listening.error()));
    listener_ = std::move(*listening);
    std::vector<Address> controllers{options_.controller};
    controllers.insert(controllers.end(), options_.others.begin(), options_.others.end());
    session_ = std::make_unique<VolumeSession>(
        world_, transport_,
        VolumeSession::Options{.controllers = std::move(controllers),
                               .volume = options_.volume,
                               .host_name = options_.name,
                               .identity = {octets_of_chance<16>(world_)},
                               .over_rdma = options_.over_rdma,
                               .network_address = *number,
                               .port = listener_->address().port},
        VolumeSession::Holder{
            .welcomed = [this](const wire::HostWelcome& welcome) { welcomed(welcome); },
            .lost = [this](const std::string& why, VolumeSession::Hope hope) { lost(why, hope); }});
}

void HostNode::welcomed(const wire::HostWelcome& welcome) {
    // First the door, then the requests that bring boxes to it.
    const wire::ArrayConnectionEnd self{wire::ArrayRole::host, wire::identity_of(welcome.session)};
    links_->set_office(welcome.cluster, welcome.epoch);
    if (self_ && *self_ != self) links_->disappear(*self_);
    links_->appear_as(self, welcome.secret);
    self_ = self;
    attached_ = true;
    volume_ = welcome.volume;
    disk_->welcomed(session_->session(), welcome);
    if (holder_.opened)
        std::exchange(holder_.opened, nullptr)(std::nullopt);
    else if (holder_.news)
        holder_.news("attached again");
}

void HostNode::heard(const wire::HostNews& news) {
    const auto box = wire::box_end(news.box);
    news.may_come ? links_->let_in(*self_, box) : links_->bar(*self_, box);
}

void HostNode::lost(const std::string& why, VolumeSession::Hope hope) {
    if (holder_.opened) {
        const bool waits =
            hope == VolumeSession::Hope::some && world_.now() - began_ < options_.opening_patience;
        if (!waits) return end(why);
        if (!std::exchange(told_to_wait_, true) && holder_.news)
            holder_.news(why + "; asking again for a while");
        return;
    }
    disk_->lost();
    if (std::exchange(attached_, false) && holder_.news)
        holder_.news("the controller is lost: " + why);
}

/// It never was attached, and will not be.
void HostNode::end(const std::string& why) {
    if (session_) session_->leave();
    disk_->give_up({.code = Code::disconnected});
    if (holder_.opened) std::exchange(holder_.opened, nullptr)(why);
}

void HostNode::break_off() {
    disk_->give_up({.code = Code::disconnected});
    links_->cut_all();
    if (session_) session_->break_off();
}

void HostNode::leave() {
    attached_ = false;
    disk_->lost();
    if (session_) session_->leave();
}

}  // namespace weft::node
