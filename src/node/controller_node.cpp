// SPDX-License-Identifier: Apache-2.0
// Taking office, what a controller remembers, and what its parts need of each other.
#include "node/controller_node.hpp"

#include <algorithm>

#include "base/error_text.hpp"
#include "node/array_address.hpp"
#include "node/chance.hpp"
#include "raid/records.hpp"
#include "raid/superblock.hpp"

namespace weft::node {
struct ControllerNode::Start final {
    struct Reading final : raid::MetadataReading {
        explicit Reading(ControllerNode& node) : owner(node) {}
        void completed(Result<void> outcome) override { owner.remembered(outcome); }
        ControllerNode& owner;
    };
    explicit Start(ControllerNode& owner) : reading(owner) {}

    Reading reading;
    std::function<void(Result<Address>)> told;
};

/// One change of the store; owns itself until it is told.
class ControllerNode::Commit final : public raid::MetadataCommit {
public:
    Commit(ControllerNode& owner, std::function<void(Result<void>)> told)
        : owner_(owner), told_(std::move(told)) {
        ++owner_.commits_;
    }
    void completed(Result<void> outcome) override {
        const std::unique_ptr<Commit> self(this);
        --owner_.commits_;
        if (!outcome && outcome.error().code == Code::access_denied) owner_.lease_.depose();
        told_(outcome);
    }

private:
    ControllerNode& owner_;
    std::function<void(Result<void>)> told_;
};

namespace {

/// "HOST:PORT", with commas where a box is in several networks.
Result<std::vector<Address>> parse_places(std::string_view text) {
    std::vector<Address> places;
    for (std::size_t at = 0; at <= text.size();) {
        const auto comma = std::min(text.find(',', at), text.size());
        WEFT_TRY(auto place, iscsi::parse_portal(text.substr(at, comma - at)));
        places.push_back(std::move(place));
        at = comma + 1;
    }
    return places;
}

}  // namespace

ControllerNode::ControllerNode(World& world, raid::MetadataStore& store, Options options)
    : world_(world),
      store_(store),
      options_(std::move(options)),
      transport_(world, {}),
      server_(std::make_unique<IscsiServer>(world, options_.server)),
      lease_(world, store, options_.office,
             {.won = [this](Result<wire::Epoch> epoch) { elected(epoch); },
              .news =
                  [this](const std::string& sentence) {
                      if (waiting_) waiting_(sentence);
                  },
              .doubtful = [this](bool doubtful) { doubted(doubtful); },
              .deposed = [this] { lost_office(); }}),
      step_down_timer_(world.make_timer([this] { step_down_when_idle(); })),
      events_(world,
              [this](auto changes, auto told) { keep(std::move(changes), std::move(told)); }) {
    link_timer_ = world_.make_timer([this] { watch_links(); });
    if (auto* device = server_->rdma_device())
        links_ = std::make_unique<ArrayLinks>(world, *device, ArrayLinks::Options{});
    server_->on_event([this](const IscsiServer::Event& event) { hear(event); });
    server_->on_rdma_request([this](std::unique_ptr<verbs::ConnectionRequest>& request) {
        if (links_ && ArrayLinks::is_greeting(request->private_data()))
            links_->take(std::move(request));
    });
}

ControllerNode::~ControllerNode() {
    *alive_ = false;
    step_down_timer_.reset();
    link_timer_.reset();
    server_->on_rdma_request({});
    server_->on_event({});
    for (auto& timer : timers_) timer->reset();
    // What is told on the way finds no box any more; transfers end before what they are about, and
    // who waited for them begins none.
    const auto boxes = std::move(boxes_);
    boxes_.clear();
    const auto adding = std::move(adding_);
    adding_.clear();
    if (links_) links_->forget_all();
    leaving_.clear();
    volumes_.clear();
    links_.reset();
}

void ControllerNode::start(std::function<void(Result<Address>)> told) {
    // Whoever comes too early is told to come later; management may ask what it waits for.
    server_->node().refuse_logins();
    auto listening = server_->listen(options_.listen);
    if (!listening) {
        world_.defer([told = std::move(told), why = listening.error()] { told(why); });
        return;
    }
    address_ = *listening;
    for (const auto& also : options_.also_listen)
        if (auto more = server_->listen(also); !more) {
            world_.defer([told = std::move(told), why = more.error()] { told(why); });
            return;
        }
    start_ = std::make_shared<Start>(*this);
    start_->told = std::move(told);
    lease_.seek("at " + written(address_));
}

void ControllerNode::elected(Result<wire::Epoch> outcome) {
    if (!outcome) return std::exchange(start_, nullptr)->told(outcome.error());
    epoch_ = *outcome;
    ++commits_;  // the store is at work
    store_.read(start_->reading);
}

void ControllerNode::remembered(Result<void> outcome) {
    --commits_;
    auto fail = [this](Error why) { std::exchange(start_, nullptr)->told(why); };
    if (!outcome) return fail(outcome.error());
    const auto& records = start_->reading.records;
    auto unreadable = [&](const std::string& record, Error why) {
        unreadable_ = record;
        fail(why);
    };
    auto known = read_controller_records(records);
    if (!known) return unreadable(records[known.error().where - 1].first, known.error());
    cluster_ = known->cluster ? known->cluster->cluster
                              : wire::ClusterIdentity{octets_of_chance<16>(world_)};
    controller_ = known->cluster ? known->cluster->controller : octets_of_chance<16>(world_);
    box_records_ = std::move(known->boxes);
    spares_ = std::move(known->spares);
    events_.recall(std::move(known->events));
    link_timer_->set(world_.now() + LinkWatch::period);
    note("", "",
         "took office at " + written(address_) + ", epoch " +
             std::to_string(static_cast<std::uint64_t>(epoch_)));
    if (auto opened = open(); !opened) return fail(opened.error());
    for (const auto& [identity, volume] : known->volumes) {
        if (auto added = add_volume(volume, known->of_volumes[identity], {}); !added)
            return unreadable(raid::volume_record_name(identity), added.error());
    }
    for (const auto& [identity, record] : box_records_) {
        auto addresses = parse_places(raid::text_of_field(record.address));
        if (!addresses) return unreadable(box_record_name(identity), addresses.error());
        boxes_[identity] = std::make_unique<ControllerBox>(world_, transport_, box_owner(),
                                                           raid::text_of_field(record.name),
                                                           *addresses, box_access(), identity);
    }
    const wire::ArrayClusterRecord record{
        .cluster = cluster_, .epoch = epoch_, .controller = controller_};
    keep({{cluster_record_name, raid::encode_record(record)}},
         [this, alive = alive_](Result<void> kept) {
             if (!*alive) return;
             if (kept) server_->node().take_logins();
             auto told = std::move(std::exchange(start_, nullptr)->told);
             told(kept ? Result<Address>(address_) : Result<Address>(kept.error()));
         });
}

/// Becomes a host of its own volumes where boxes can reach it.
Result<void> ControllerNode::open() {
    if (!links_) return {};
    links_->set_office(cluster_, epoch_);
    auto reach = options_.reach.value_or(address_);
    if (reach.port == 0) reach.port = address_.port;
    // All zero: where boxes see us come from.
    std::optional<Octets<16>> octets = Octets<16>{};
    if (!is_every_address(reach.host)) {
        WEFT_TRY(auto numbers, world_.resolve(reach));
        octets = network_address_of(numbers.front().host);
    }
    if (!octets) return {};
    const wire::ArrayHostAdmission self{.address = {},
                                        .host = own_session,
                                        .port = reach.port,
                                        .network_address = *octets,
                                        .secret = octets_of_chance<32>(world_)};
    links_->appear_as(wire::host_end(own_session), self.secret);
    admitted_[own_session] = {.host = self, .volume = std::nullopt};
    return {};
}

void ControllerNode::keep(std::vector<raid::MetadataChange> changes,
                          std::function<void(Result<void>)> told) {
    if (deposed_) {
        world_.defer([told = std::move(told)] { told(Error{.code = Code::access_denied}); });
        return;
    }
    auto& commit = *new Commit(*this, std::move(told));
    commit.epoch = epoch_;
    commit.changes = std::move(changes);
    store_.commit(commit);
}

void ControllerNode::note(const std::string& volume, const std::string& box,
                          const std::string& what) {
    events_.note(volume, box, what);
}

void ControllerNode::happened(const ControllerVolume& volume, const raid::VolumeEvent& event) {
    const bool about_two = event.other != wire::BoxIdentity{};
    const auto what = raid::to_text(event, about_two ? box_name(event.other) : "");
    const bool about_a_box = event.box != wire::BoxIdentity{};
    note(volume.name(), about_a_box ? box_name(event.box) : "", what);
    if (event.kind == raid::VolumeEventKind::deposed) lease_.depose();
    if (event.kind == raid::VolumeEventKind::started)
        world_.defer([this, identity = volume.identity(), alive = alive_] {
            if (*alive) tell_started(identity);
        });
}

/// Whoever is refused comes again, and often: that is told now and then.
void ControllerNode::hear(const IscsiServer::Event& event) {
    const auto refusal = IscsiServer::refusal_in(event);
    const auto now = world_.now();
    if (!refusal || !in_office() || now < next_refusal_) return;
    next_refusal_ = now + IscsiServer::refusal_pause;
    note("", "", *refusal);
}

// ---------------------------------------------------------------------------------------- hosts

void ControllerNode::admit_host(const wire::VolumeIdentity& volume, wire::ArrayHostAdmission host,
                                std::function<void(std::optional<wire::ArrayHostAdmission>)> told) {
    if (admitted_.size() >= hosts_max) return told(std::nullopt);
    // Never the number of another controller's session: a box could still have that one's secret.
    host.host = wire::HostSession{static_cast<std::uint64_t>(epoch_) << 32 | (++sessions_ + 1)};
    host.secret = octets_of_chance<32>(world_);
    admitted_[host.host] = {.host = host, .volume = volume};
    // Where a box does not reach the host, its data goes by way of us.
    if (links_)
        (void)links_->know(wire::host_end(host.host),
                           secret_for(host.secret, wire::host_end(own_session)),
                           address_of(host.network_address, host.port));
    auto round = Round::make([told = std::move(told), host] { told(host); });
    // A box that is lost over it, or about to be up, hears of the host when it is.
    for (const auto& [identity, box] : boxes_)
        if (box->is_up() && counts_on(volume, identity))
            box->admit(admission_for(*box, host),
                       [step = round->step()](std::optional<wire::ArrayAnswer>) { step(); });
    round->end();
}

void ControllerNode::dismiss_host(wire::HostSession host) {
    if (admitted_.erase(host) == 0) return;
    if (links_) links_->forget(wire::host_end(host));
    for (const auto& [identity, box] : boxes_)
        if (box->is_up()) box->dismiss(host);
}

/// What of the session's secret is this box's.
wire::ArrayHostAdmission ControllerNode::admission_for(const ControllerBox& box,
                                                       wire::ArrayHostAdmission host) {
    host.secret = secret_for(host.secret, wire::box_end(*box.identity()));
    return host;
}

std::vector<wire::ArrayHostAdmission> ControllerNode::hosts_of(const ControllerBox& box) {
    std::vector<wire::ArrayHostAdmission> hosts;
    for (const auto& [session, each] : admitted_)
        if (!each.volume || counts_on(*each.volume, *box.identity()))
            hosts.push_back(admission_for(box, each.host));
    return hosts;
}

void ControllerNode::admit_hosts_at(ControllerBox& box, const wire::VolumeIdentity& volume) {
    for (const auto& [session, each] : admitted_)
        if (each.volume == volume)
            box.admit(admission_for(box, each.host), [](std::optional<wire::ArrayAnswer>) {});
}

void ControllerNode::dismiss_hosts_at(const wire::BoxIdentity& box,
                                      const wire::VolumeIdentity& volume) {
    auto* found = find_box(box);
    if (found == nullptr || !found->is_up()) return;
    for (const auto& [session, each] : admitted_)
        if (each.volume == volume) found->dismiss(session);
}

bool ControllerNode::counts_on(const wire::VolumeIdentity& volume,
                               const wire::BoxIdentity& box) const {
    auto found = volumes_.find(volume);
    if (found == volumes_.end()) return false;
    const auto& members = found->second->manager().volume().members;
    return std::ranges::any_of(members, [&](const auto& member) {
        return member.box == box && member.state != wire::ArrayMemberState::none &&
               member.state != wire::ArrayMemberState::absent;
    });
}

}  // namespace weft::node
