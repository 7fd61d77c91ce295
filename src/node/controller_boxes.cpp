// SPDX-License-Identifier: Apache-2.0
// The boxes of a controller: added and removed, up and down, and known to each other.
#include <algorithm>
#include <cerrno>

#include "base/error_text.hpp"
#include "node/array_address.hpp"
#include "node/chance.hpp"
#include "node/controller_node.hpp"
#include "node/stranger.hpp"
#include "raid/records.hpp"
#include "raid/superblock.hpp"
#include "wire/array_names.hpp"

namespace weft::node {
namespace {

/// Boxes and networks, in one list of whom to meet.
constexpr std::size_t peers_told_max = 255;

}  // namespace

/// A box that was named and has not shown yet what it is.
struct ControllerNode::Adding {
    std::unique_ptr<ControllerBox> box;
    std::string address_text;
    std::unique_ptr<Timer> patience;
    std::unique_ptr<Stranger> stranger;  ///< who seems to be there instead
    bool joins = false;
    bool keeping = false;  ///< it is what it should be, and is being remembered
    Told told;
};

void ControllerNode::forget_later(std::unique_ptr<ControllerBox> box) {
    std::shared_ptr<ControllerBox> over = std::move(box);
    world_.defer([over] {});  // it may be telling us something right now
}

ControllerBox* ControllerNode::find_box(const wire::BoxIdentity& box) {
    auto found = boxes_.find(box);
    return found == boxes_.end() ? nullptr : found->second.get();
}

ControllerBox* ControllerNode::find_box(const std::string& name) {
    for (const auto& [identity, box] : boxes_)
        if (box->name() == name) return box.get();
    return nullptr;
}

std::string ControllerNode::box_name(const wire::BoxIdentity& box) const {
    auto found = boxes_.find(box);
    return found == boxes_.end() ? to_digits(box) : found->second->name();
}

bool ControllerNode::is_member(const wire::BoxIdentity& box) const {
    return std::ranges::any_of(volumes_, [&](const auto& each) { return claims(each.first, box); });
}

// ----------------------------------------------------------------------------- add and remove

void ControllerNode::add_box(const std::string& name, const Address& address, bool join,
                             Told told) {
    if (auto refusal = wire::refusal_of_box_name(name)) return told(std::move(refusal));
    const bool comes = std::ranges::any_of(
        adding_, [&](const auto& each) { return each.second->box->name() == name; });
    // One that is away may be somewhere else by now.
    const auto* known = find_box(name);
    const bool moved = known != nullptr && !known->is_up() && known->address() != address;
    if ((known != nullptr && !moved) || comes) return told("there is a box " + name + " already");
    if (boxes_.size() + adding_.size() >= boxes_max) return told("there are too many boxes");
    const auto text = written(address);
    if (wire::ArrayBoxRecord record; !raid::set_field(record.address, text))
        return told(text + " is too long for an address");
    if (auto resolved = world_.resolve(address); !resolved)
        return told(text + " cannot be found: " + to_text(resolved.error()));
    const auto number = ++adding_number_;
    auto adding = std::make_shared<Adding>();
    adding->address_text = text;
    adding->joins = join;
    adding->told = std::move(told);
    adding->patience = world_.make_timer(
        [this, number] { added(number, "it has not answered in all that time"); });
    adding->patience->set(world_.now() + options_.add_patience);
    adding->box = std::make_unique<ControllerBox>(world_, transport_, box_owner(), name,
                                                  std::vector{address}, box_access(), std::nullopt);
    adding_[number] = std::move(adding);
}

/// No session comes to be with it. People may have mistaken its name, or where it is.
void ControllerNode::look_who_is_there(std::uint64_t number, Error why) {
    auto& adding = *adding_[number];
    if (adding.stranger) return;  // it is being asked
    if (why.code == Code::io_failed && why.detail == ECONNREFUSED)
        return added(number, "nothing listens there: " + to_text(why));
    if (why.code == Code::io_failed || why.code == Code::timed_out)
        return added(number, adding.box->trouble());
    adding.stranger =
        std::make_unique<Stranger>(world_, adding.box->address(), adding.box->name(),
                                   [this, number](const std::string& sentence) {
                                       const auto found = adding_.find(number);
                                       if (found != adding_.end() && !found->second->keeping)
                                           added(number, sentence);
                                   });
}

/// It is what it should be: remember it, and only then count on it.
void ControllerNode::keep_box(std::uint64_t number) {
    auto& adding = *adding_[number];
    adding.patience->cancel();
    adding.keeping = true;
    const auto identity = *adding.box->identity();
    const auto* namesake = find_box(adding.box->name());
    if (namesake != nullptr && namesake->identity() != identity)
        return added(number, "another box has that name, and is only away");
    if (auto* known = find_box(identity); known != nullptr && (known != namesake || known->is_up()))
        return added(number, "it is the box that is known as " + box_name(identity));
    wire::ArrayBoxRecord record{
        .box = identity, .name = {}, .address = {}, .size = adding.box->facts()->box.size};
    (void)raid::set_field(record.name, adding.box->name());
    (void)raid::set_field(record.address, adding.box->places_text(record.address.size()));
    keep({{box_record_name(identity), raid::encode_record(record)}},
         [this, number, record, alive = alive_](Result<void> kept) {
             if (!*alive) return;
             if (!kept) return added(number, "that could not be kept: " + to_text(kept.error()));
             box_records_[record.box] = record;
             added(number, std::nullopt);
         });
}

void ControllerNode::added(std::uint64_t number, Refusal refusal) {
    auto found = adding_.find(number);
    if (found == adding_.end()) return;
    auto adding = std::move(found->second);
    adding_.erase(found);
    if (refusal) {
        auto sentence = adding->box->name() + " at " + adding->address_text + ": " + *refusal;
        forget_later(std::move(adding->box));
        world_.defer([adding] {});  // its timer may be calling us
        return adding->told(sentence);
    }
    const auto identity = *adding->box->identity();
    auto before = std::exchange(boxes_[identity], std::move(adding->box));
    auto& box = *boxes_[identity];
    const bool moved = before != nullptr;
    note("", box.name(), moved ? "is at " + adding->address_text + " now" : "added");
    if (moved) forget_later(std::move(before));
    if (links_) links_->let_in(wire::host_end(own_session), wire::box_end(identity));
    // One that has a place already was not introduced, here, to those who have the others.
    if (!acquaintances_[identity].empty())
        box.begin_again();
    else if (box.is_up())
        for (const auto& [each, volume] : volumes_) volume->box_up(box);
    adding->told(std::nullopt);
}

void ControllerNode::remove_box(const std::string& name, Told told) {
    auto* box = find_box(name);
    if (box == nullptr) return told("there is no box " + name);
    const auto identity = *box->identity();
    if (is_member(identity)) return told(name + " is part of a volume; replace it there first");
    keep({{box_record_name(identity), std::nullopt}, {spare_record_name(identity), std::nullopt}},
         [this, identity, told = std::move(told), alive = alive_](Result<void> kept) {
             if (!*alive) return;
             if (!kept) return told("that could not be kept: " + to_text(kept.error()));
             note("", box_name(identity), "removed");
             box_records_.erase(identity);
             spares_.erase(identity);
             acquaintances_.erase(identity);
             std::erase_if(stand_ins_, [&](const auto& each) {
                 return each.first == identity || each.second == identity;
             });
             troubles_.erase(box_name(identity));
             for (const auto& [each, volume] : volumes_) volume->box_down(identity);
             if (auto found = boxes_.find(identity); found != boxes_.end()) {
                 forget_later(std::move(found->second));
                 boxes_.erase(found);
             }
             told(std::nullopt);
         });
}

// ------------------------------------------------------------------------- a cluster whose state
// is lost

/// Office in a cluster whose boxes have obeyed a later controller than ours is won by being later
/// still.
class ControllerNode::Joining final : public raid::MetadataElection {
public:
    Joining(ControllerNode& owner, wire::ClusterIdentity cluster, wire::Epoch later_than,
            std::function<void(bool)> told)
        : owner_(owner), cluster_(cluster), asked_(owner.world_.now()), told_(std::move(told)) {
        beyond = later_than;
        owner.lease_.fill_in(*this);
    }

    void completed(Result<void> outcome) override {
        const std::unique_ptr<Joining> self(this);
        --owner_.commits_;
        owner_.joining_ = false;
        if (!outcome) return told_(false);
        owner_.lease_.moved_to(epoch, asked_);
        owner_.joined(cluster_, epoch, told_);
    }

private:
    ControllerNode& owner_;
    wire::ClusterIdentity cluster_;
    Instant asked_;
    std::function<void(bool)> told_;
};

bool ControllerNode::join(const ControllerBox& box, wire::ClusterIdentity cluster,
                          wire::Epoch epoch, std::function<void(bool)> told) {
    const bool wished = std::ranges::any_of(adding_, [&](const auto& each) {
        return each.second->box.get() == &box && each.second->joins;
    });
    const bool free = cluster == cluster_ || boxes_.empty();
    if (!wished || !free || !volumes_.empty() || joining_) return false;
    joining_ = true;
    ++commits_;  // the store is at work
    store_.elect(*new Joining(*this, cluster, epoch, std::move(told)));
    return true;
}

void ControllerNode::joined(wire::ClusterIdentity cluster, wire::Epoch epoch,
                            const std::function<void(bool)>& told) {
    epoch_ = epoch;  // the store obeys no other from now on
    for (const auto& [identity, box] : boxes_) box->begin_again();  // they are to hear of it
    const wire::ArrayClusterRecord record{
        .cluster = cluster, .epoch = epoch_, .controller = controller_};
    keep({{cluster_record_name, raid::encode_record(record)}},
         [this, cluster, told, alive = alive_](Result<void> kept) {
             if (!*alive) return;
             if (kept) cluster_ = cluster;
             if (links_) links_->set_office(cluster_, epoch_);
             if (kept) note("", "", "is the controller of " + to_digits(cluster));
             told(kept.has_value());
         });
}

// -------------------------------------------------------------------------------- up and down

/// What boxes were to be told, and could not while our office was in doubt.
void ControllerNode::go_on() {
    for (const auto& [identity, box] : boxes_) box->go_on();
    for (const auto& [number, adding] : adding_) adding->box->go_on();
}

void ControllerNode::box_up(ControllerBox& box) {
    for (const auto& [number, adding] : adding_)
        if (adding->box.get() == &box) return adding->keeping ? void() : keep_box(number);
    troubles_.erase(box.name());
    stand_ins_.erase(*box.identity());  // it has what nobody else was given
    note("", box.name(), "up");
    for (const auto& [volume, part] : box.facts()->left_out)
        note(volumes_.contains(volume) ? name_of(volume) : "", box.name(),
             "its part of " + name_of(volume) +
                 (part.damaged ? " is damaged" : " cannot be read, and is kept as it is"));
    if (links_) links_->let_in(wire::host_end(own_session), wire::box_end(*box.identity()));
    for (const auto& [identity, volume] : volumes_) volume->box_up(box);
    // Those that came earlier have not heard of it if it is new to the volume, or they are.
    look_at_spares();
}

void ControllerNode::box_down(ControllerBox& box, const std::string& why) {
    for (const auto& [number, adding] : adding_)
        if (adding->box.get() == &box) {
            if (adding->keeping) return;
            if (const auto& lost = box.unreached(); lost && !box.facts())
                return look_who_is_there(number, *lost);
            return added(number, why);
        }
    // A box that is away is looked for again and again, and found missing in other ways: first its
    // session ends, then nothing listens. That is one fact, and told once.
    const auto fact = box.unreached() ? std::string("it cannot be reached") : why;
    if (auto [said, first] = troubles_.try_emplace(box.name()); first || said->second != fact) {
        said->second = fact;
        note("", box.name(), "down: " + why);
    }
    if (!box.identity()) return;
    // Our own memory, where we are the host, is closed to it as that of other hosts is.
    if (links_) links_->bar(wire::host_end(own_session), wire::box_end(*box.identity()));
    // Commands of a session keep their order: whatever volumes tell the others next, they have
    // forgotten the box by then.
    introduce(box, [] {});
    for (const auto& [identity, volume] : volumes_) volume->box_down(*box.identity());
}

void ControllerNode::introduce(ControllerBox& box, std::function<void()> told) {
    auto round = Round::make(std::move(told));
    for (const auto& other : acquaintances_[*box.identity()])
        if (auto* known = find_box(other); known != nullptr && known->is_up())
            known->meet([step = round->step()](bool) { step(); });
    round->end();
}

// --------------------------------------------------------------------------------- introductions

const ArraySecret& ControllerNode::secret_of(const wire::BoxIdentity& one,
                                             const wire::BoxIdentity& other) {
    const auto pair = one < other ? BoxPair{one, other} : BoxPair{other, one};
    auto [found, made] = secrets_.try_emplace(pair);
    if (made) found->second = octets_of_chance<32>(world_);
    return found->second;
}

std::vector<wire::ArrayPeer> ControllerNode::peers_of(const ControllerBox& box) {
    std::vector<wire::ArrayPeer> peers, further;
    if (!box.identity()) return peers;
    for (const auto& other : acquaintances_[*box.identity()]) {
        // Who is away is nobody's peer: what it still sends from before must find no door.
        auto* known = find_box(other);
        if (known == nullptr || !known->is_met()) continue;
        bool is_first = true;
        for (const auto& end : known->networks())
            (std::exchange(is_first, false) ? peers : further)
                .push_back({.box = other,
                            .place = 0,
                            .port = end.port,
                            .address = end.address,
                            .secret = secret_of(*box.identity(), other)});
    }
    // The list counts no more than that; then some are known in one network alone.
    for (const auto& each : further)
        if (peers.size() < peers_told_max) peers.push_back(each);
    return peers;
}

void ControllerNode::acquaint(const wire::ArrayVolume& volume, std::function<void()> told) {
    std::vector<wire::BoxIdentity> members;
    for (std::size_t place = 0; place < volume.boxes; ++place)
        if (volume.members[place].state != wire::ArrayMemberState::none)
            members.push_back(volume.members[place].box);
    auto round = Round::make(std::move(told));
    for (const auto& one : members) {
        auto& known = acquaintances_[one];
        const auto before = known.size();
        for (const auto& other : members)
            if (other != one) known.insert(other);
        auto* box = find_box(one);
        if (known.size() == before || box == nullptr || !box->is_up()) continue;
        box->meet([step = round->step()](bool) { step(); });
    }
    round->end();
}

void ControllerNode::make_part(ControllerBox& box, const wire::ArraySuperblock& superblock,
                               ControllerBox::Told told) {
    auto address = box.whole();
    address.volume = superblock.volume.volume;
    address.generation = superblock.volume.generation;
    admit_hosts_at(box, superblock.volume.volume);
    box.send(wire::ArrayAction::create_part, address, encoded(superblock),
             [this, identity = *box.identity(), volume = superblock.volume, told = std::move(told),
              alive = alive_](std::optional<wire::ArrayAnswer> answer) {
                 auto* found = *alive ? find_box(identity) : nullptr;
                 if (!answer || answer->outcome != wire::ArrayOutcome::done || found == nullptr)
                     return told(answer);
                 found->describe([this, volume, told, answer, alive](bool well) {
                     if (!*alive || !well) return told(std::nullopt);
                     if (!spares_wanted_.empty()) look_at_spares();  // its room is known now
                     acquaint(volume, [told, answer] { told(answer); });
                 });
             });
}

}  // namespace weft::node
