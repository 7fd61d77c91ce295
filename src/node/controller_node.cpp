// SPDX-License-Identifier: Apache-2.0
// Taking office, and what the parts of a controller need of each other.
#include "node/controller_node.hpp"

#include <algorithm>

#include "base/error_text.hpp"
#include "node/array_address.hpp"
#include "node/chance.hpp"
#include "raid/records.hpp"
#include "raid/superblock.hpp"

namespace weft::node {
struct ControllerNode::Start final {
    struct Election final : raid::MetadataElection {
        explicit Election(ControllerNode& node) : owner(node) {}
        void completed(Result<void> outcome) override { owner.elected(outcome); }
        ControllerNode& owner;
    };
    struct Reading final : raid::MetadataReading {
        explicit Reading(ControllerNode& node) : owner(node) {}
        void completed(Result<void> outcome) override { owner.remembered(outcome); }
        ControllerNode& owner;
    };
    explicit Start(ControllerNode& owner) : election(owner), reading(owner) {}

    Election election;
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
        if (!outcome && outcome.error().code == Code::access_denied && !owner_.deposed_) {
            owner_.deposed_ = true;
            owner_.note("", "", "another controller has taken office: this one changes nothing");
        }
        told_(outcome);
    }

private:
    ControllerNode& owner_;
    std::function<void(Result<void>)> told_;
};

ControllerNode::ControllerNode(World& world, raid::MetadataStore& store, Options options)
    : world_(world),
      store_(store),
      options_(std::move(options)),
      transport_(world, {}),
      server_(std::make_unique<IscsiServer>(world, options_.server)) {
    if (auto* device = server_->rdma_device())
        links_ = std::make_unique<ArrayLinks>(world, *device, ArrayLinks::Options{});
    server_->on_rdma_request([this](std::unique_ptr<verbs::ConnectionRequest>& request) {
        if (links_ && ArrayLinks::is_greeting(request->private_data()))
            links_->take(std::move(request));
    });
}

ControllerNode::~ControllerNode() {
    *alive_ = false;
    server_->on_rdma_request({});
    for (auto& timer : timers_) timer->reset();
    // What is told on the way finds no box any more; transfers end before what they are about.
    const auto boxes = std::move(boxes_);
    boxes_.clear();
    const auto adding = std::move(adding_);
    adding_.clear();
    if (links_) links_->cut_all();
    leaving_.clear();
    volumes_.clear();
    links_.reset();
}

void ControllerNode::start(std::function<void(Result<Address>)> told) {
    start_ = std::make_shared<Start>(*this);
    start_->told = std::move(told);
    store_.elect(start_->election);
}

void ControllerNode::elected(Result<void> outcome) {
    if (!outcome) return std::exchange(start_, nullptr)->told(outcome.error());
    epoch_ = start_->election.epoch;
    store_.read(start_->reading);
}

void ControllerNode::remembered(Result<void> outcome) {
    auto fail = [this](Error why) { std::exchange(start_, nullptr)->told(why); };
    if (!outcome) return fail(outcome.error());
    auto known = read_controller_records(start_->reading.records);
    if (!known) return fail(known.error());
    cluster_ = known->cluster ? known->cluster->cluster
                              : wire::ClusterIdentity{octets_of_chance<16>(world_)};
    controller_ = known->cluster ? known->cluster->controller : octets_of_chance<16>(world_);
    box_records_ = std::move(known->boxes);
    spares_ = std::move(known->spares);
    auto opened = open();
    if (!opened) return fail(opened.error());
    for (const auto& [identity, volume] : known->volumes) {
        if (auto added = add_volume(volume, known->of_volumes[identity]); !added)
            return fail(added.error());
    }
    for (const auto& [identity, record] : box_records_) {
        auto address = iscsi::parse_portal(raid::text_of_field(record.address));
        if (!address) return fail(address.error());
        boxes_[identity] = std::make_unique<ControllerBox>(world_, transport_, box_owner(),
                                                           raid::text_of_field(record.name),
                                                           *address, options_.key, identity);
    }
    const wire::ArrayClusterRecord record{
        .cluster = cluster_, .epoch = epoch_, .controller = controller_};
    keep({{cluster_record_name, raid::encode_record(record)}},
         [this, address = *opened, alive = alive_](Result<void> kept) {
             if (!*alive) return;
             auto told = std::move(std::exchange(start_, nullptr)->told);
             told(kept ? Result<Address>(address) : Result<Address>(kept.error()));
         });
}

/// Listens, and becomes a host of its own volumes where boxes can reach it.
Result<Address> ControllerNode::open() {
    WEFT_TRY(auto address, server_->listen(options_.listen));
    if (!links_) return address;
    links_->set_office(cluster_, epoch_);
    auto reach = options_.reach.value_or(address);
    if (reach.port == 0) reach.port = address.port;
    if (is_every_address(reach.host)) return address;
    WEFT_TRY(auto numbers, world_.resolve(reach));
    auto octets = network_address_of(numbers.front().host);
    if (!octets) return address;
    const wire::ArrayHostAdmission self{.address = {},
                                        .host = own_session,
                                        .port = reach.port,
                                        .network_address = *octets,
                                        .secret = octets_of_chance<32>(world_)};
    links_->appear_as(wire::host_end(own_session), self.secret);
    admitted_[own_session] = self;
    return address;
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
    events_.push_back({.number = ++event_number_,
                       .when = world_.now(),
                       .volume = volume,
                       .box = box,
                       .what = what});
    if (events_.size() > events_kept) events_.pop_front();
    if (hear_) hear_(events_.back());
}

void ControllerNode::happened(const ControllerVolume& volume, const raid::VolumeEvent& event) {
    auto what = raid::to_text(event.kind);
    if (event.why != wire::ArrayOutcome::done) what += ": " + raid::to_text(event.why);
    if (event.number != 0) what += " (" + std::to_string(event.number) + ")";
    if (event.kind == raid::VolumeEventKind::deposed) deposed_ = true;
    const bool about_a_box = event.box != wire::BoxIdentity{};
    note(volume.name(), about_a_box ? box_name(event.box) : "", what);
}

// ---------------------------------------------------------------------------------------- hosts

void ControllerNode::admit_host(wire::ArrayHostAdmission host,
                                std::function<void(std::optional<wire::ArrayHostAdmission>)> told) {
    if (admitted_.size() >= hosts_max) return told(std::nullopt);
    // Never the number of another controller's session: a box could still have that one's secret.
    host.host = wire::HostSession{static_cast<std::uint64_t>(epoch_) << 32 | (++sessions_ + 1)};
    host.secret = octets_of_chance<32>(world_);
    admitted_[host.host] = host;
    if (links_ && options_.in_band)
        (void)links_->know(wire::host_end(host.host), host.secret,
                           address_of(host.network_address, host.port));
    auto round = Round::make([told = std::move(told), host] { told(host); });
    // A box that is lost over it, or about to be up, hears of the host when it is.
    for (const auto& [identity, box] : boxes_)
        if (box->is_up())
            box->admit(host, [step = round->step()](std::optional<wire::ArrayAnswer>) { step(); });
    round->end();
}

void ControllerNode::dismiss_host(wire::HostSession host) {
    if (admitted_.erase(host) == 0) return;
    if (links_) links_->forget(wire::host_end(host));
    for (const auto& [identity, box] : boxes_)
        if (box->is_up()) box->dismiss(host);
}

std::vector<wire::ArrayHostAdmission> ControllerNode::hosts_of(const ControllerBox&) {
    std::vector<wire::ArrayHostAdmission> hosts;
    for (const auto& [session, host] : admitted_) hosts.push_back(host);
    return hosts;
}

}  // namespace weft::node
