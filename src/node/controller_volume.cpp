// SPDX-License-Identifier: Apache-2.0
#include "node/controller_volume.hpp"

#include "node/controller_records.hpp"
#include "raid/superblock.hpp"

namespace weft::node {
namespace {

std::unique_ptr<BoxWindows> own_windows(const ControllerVolume::Surroundings& around,
                                        const raid::VolumeManagerOptions& options) {
    if (around.links == nullptr) return nullptr;
    if (!around.spare_windows->empty()) {
        auto windows = std::move(around.spare_windows->back());
        around.spare_windows->pop_back();
        return windows;
    }
    auto made = BoxWindows::make(
        *around.links,
        {.windows = static_cast<std::uint16_t>(raid::own_windows_for(options.windows))});
    return made ? std::move(*made) : nullptr;
}

/// Where data goes by way of the controller it has a share in every plan; else in those that lead
/// around a link which is broken.
raid::VolumeManagerOptions options_for(const wire::ArrayVolume& volume,
                                       raid::VolumeManagerOptions options,
                                       const ControllerVolume::Surroundings& around,
                                       BoxWindows* windows) {
    if (volume.topology == wire::ArrayTopology::binary_tree)
        options.plan.topology = raid::Topology::binary_tree;
    if (windows == nullptr) return options;
    if (around.in_band) options.plan.path = raid::DataPath::in_band;
    options.own = {
        .windows = windows, .transfers = around.links, .identity = wire::identity_of(around.self)};
    return options;
}

/// None: what they read and write is copied, as all data goes by way of the controller.
std::shared_ptr<verbs::ProtectionDomain> domain_for_initiators(
    const ControllerVolume::Surroundings& around, const BoxWindows* windows) {
    if (around.links == nullptr || (around.in_band && windows != nullptr)) return nullptr;
    return around.links->domain();
}

}  // namespace

ControllerVolume::ControllerVolume(const Surroundings& around,
                                   const raid::VolumeManagerOptions& options,
                                   const wire::ArrayVolume& volume)
    : around_(around),
      name_(raid::text_of_field(volume.name)),
      identity_(volume.volume),
      first_(volume),
      windows_(own_windows(around, options)),
      manager_(*this, options_for(volume, options, around, windows_.get())),
      disk_(around.world, domain_for_initiators(around, windows_.get()), around.self,
            [this](raid::HostRequest& request) {
                manager().submit(request);
                watch();
            }),
      timer_(around.world.make_timer([this] {
          manager_.tick(around_.world.now());
          deadline_changed();
      })),
      host_timer_(around.world.make_timer([this] { look_after_hosts(); })),
      watch_timer_(around.world.make_timer([this] { look_for_silent_boxes(); })),
      cut_off_timer_(around.world.make_timer([this] { tell_cut_offs(); })) {
    disk_.on_end([this](const SlowOperation& each) { note_slow(each); });
    if (around.links)
        disk_.on_lent([links = around.links](SteeringTag tag) { links->take_back_later(tag); });
}

ControllerVolume::~ControllerVolume() {
    *alive_ = false;
    if (!windows_) return;
    windows_->close_all();
    around_.spare_windows->push_back(std::move(windows_));
}

Result<void> ControllerVolume::start(const raid::VolumeRecords& records) {
    manager_.tick(around_.world.now());
    if (auto begun =
            manager_.start(around_.office.cluster(), around_.office.epoch(), first_, records);
        !begun)
        return begun;
    disk_.set_size(manager_.size());
    (void)roster_.follow(manager_.volume());
    const auto target = wire::volume_target_name(name_);
    if (auto added = around_.server.add_target(target, {}); !added) return added;
    scsi::UnitOptions options;
    options.seed = to_digits(identity_);
    options.product = "volume";
    options.block_bytes = raid::slice_size;
    options.transfer_bytes = raid::limits::request_bytes;
    options.vendor_commands = this;
    if (auto added = around_.server.add_unit(target, 0, disk_, options); !added) {
        (void)around_.server.remove_target(target, {});
        return added;
    }
    deadline_changed();
    return {};
}

void ControllerVolume::remove(std::function<void()> gone) {
    for (const auto& [session, host] : hosts_) around_.office.dismiss_host(session);
    hosts_.clear();
    auto removed = around_.server.remove_target(wire::volume_target_name(name_), gone);
    if (!removed) around_.world.defer(std::move(gone));
}

// ------------------------------------------------------------------------------ boxes and store

void ControllerVolume::box_up(const ControllerBox& box) {
    if (box.facts()->keeps_unread(identity_)) return;
    raid::BoxStanding standing;
    const auto& parts = box.facts()->parts;
    if (auto part = parts.find(identity_); part != parts.end())
        standing = {.has_part = true,
                    .generation = part->second.superblock.volume.generation,
                    .data_length = part->second.superblock.data_length,
                    .boot = 0};
    standing.boot = box.facts()->box.boot;
    manager().box_up(*box.identity(), standing);
}

void ControllerVolume::box_down(const wire::BoxIdentity& box) {
    manager().box_down(box);
}

void ControllerVolume::carry(const wire::BoxIdentity& box, raid::CommandTicket ticket,
                             const raid::EncodedOrder& command) {
    auto* found = around_.office.find_box(box);
    if (found == nullptr || !found->is_up()) {
        around_.world.defer([this, alive = alive_, ticket] {
            if (*alive) manager().lost(ticket);
        });
        return;
    }
    ++orders_;
    // Whoever is told what the volume is now is counted on from now on, or still.
    if (command.command_block.action == wire::ArrayAction::store_volume)
        around_.office.admit_hosts_at(*found, identity_);
    if (command.command_block.action == wire::ArrayAction::recall)
        return found->ask(command, [this, alive = alive_, ticket](
                                       std::optional<wire::ArrayAnswer> answer, ConstBuffer data) {
            if (*alive && answer) manager().answered(ticket, *answer, data);
        });
    found->send(command, [this, alive = alive_, ticket](std::optional<wire::ArrayAnswer> answer) {
        // No answer: the session is lost, and the box's going down says so of all its commands.
        if (*alive && answer) manager().answered(ticket, *answer);
    });
}

void ControllerVolume::create_part(const wire::BoxIdentity& box, raid::CommandTicket ticket,
                                   const wire::ArraySuperblock& superblock) {
    auto told = [this, alive = alive_, ticket](std::optional<wire::ArrayAnswer> answer) {
        if (*alive && answer) manager().answered(ticket, *answer);
        if (*alive && !answer) manager().lost(ticket);
    };
    if (auto* found = around_.office.find_box(box); found != nullptr && found->is_up())
        return around_.office.make_part(*found, superblock, std::move(told));
    around_.world.defer([told] { told(std::nullopt); });
}

SteeringTag ControllerVolume::window_tag(const wire::BoxIdentity& box, std::uint32_t window,
                                         wire::TransactionNumber transaction) {
    if (windows_ && box == wire::identity_of(around_.self))
        return raid::tag_in(windows_->tag_of(window), transaction);
    const auto* found = around_.office.find_box(box);
    return found == nullptr ? SteeringTag{} : found->window_tag(identity_, window, transaction);
}

void ControllerVolume::store(std::vector<raid::MetadataChange> changes) {
    if (keeps_nothing_) return;  // it is being deleted, and must not rise again
    around_.office.keep(std::move(changes), [this, alive = alive_](Result<void> outcome) {
        if (*alive) manager().stored(outcome);
    });
}

void ControllerVolume::needs_spare(std::uint8_t place) {
    around_.office.spare_wanted(*this, place);
}

void ControllerVolume::event(const raid::VolumeEvent& event) {
    if (event.kind == raid::VolumeEventKind::grown) disk_.set_size(manager_.size());
    if (event.kind == raid::VolumeEventKind::host_cut_off) return hold_cut_off(event);
    const auto held =
        std::ranges::find(cut_offs_, event.box, [](const auto& each) { return each.event.box; });
    if (event.kind == raid::VolumeEventKind::host_reached && held != cut_offs_.end()) {
        cut_offs_.erase(held);  // nobody has heard of it yet
        return;
    }
    around_.office.happened(*this, event);
}

void ControllerVolume::deadline_changed() {
    if (auto when = manager_.deadline())
        timer_->set(*when);
    else
        timer_->cancel();
}

}  // namespace weft::node
