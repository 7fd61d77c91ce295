// SPDX-License-Identifier: Apache-2.0
#include "node/box_part.hpp"

#include <algorithm>

namespace weft::node {

using wire::ArrayAction;

constexpr Duration marks_wait_for = std::chrono::milliseconds(1);

BoxPart::BoxPart(BoxPartOwner& owner, World& world, std::unique_ptr<BlockDevice> disk,
                 const Options& options)
    : owner_(owner),
      world_(world),
      file_(std::make_unique<GrowingDisk>(std::move(disk))),
      disk_watch_(std::make_unique<block::HangFilter>(*file_, world, options.disk_patience)),
      disk_(std::make_unique<block::PatientFilter>(*disk_watch_, world)),
      group_commit_(options.group_commit) {
    disk_watch_->on_change([this](bool hangs) { disk_hangs(hangs); });
}

// ------------------------------------------------------------------------------------- commands

void BoxPart::receive(raid::CommandTicket ticket, const wire::ArrayCommandBlock& block,
                      ConstBuffer parameters) {
    box_->tick(world_.now());
    if (!is_failing()) {
        open_.push_back({ticket, block.transaction});
        return box_->receive(ticket, block, parameters);
    }
    // A transaction that is to end ends when the disk lets it: its window is not to stay open.
    if (block.action == ArrayAction::abort || block.action == ArrayAction::release) {
        answered_early_.push_back(ticket);
        box_->receive(ticket, block, parameters);
    }
    refuse({ticket, block.transaction});
}

bool BoxPart::is_awaited(raid::CommandTicket ticket) {
    if (auto found = std::ranges::find(open_, ticket, &Open::ticket); found != open_.end()) {
        *found = open_.back();
        open_.pop_back();
        return true;
    }
    auto early = std::ranges::find(answered_early_, ticket);
    WEFT_CHECK(early != answered_early_.end());
    answered_early_.erase(early);
    return false;
}

void BoxPart::refuse(const Open& command) {
    owner_.part_answered(*this, command.ticket,
                         {.outcome = wire::ArrayOutcome::disk_failed,
                          .transaction = command.transaction,
                          .generation = superblock().volume.generation,
                          .epoch = superblock().epoch},
                         {});
}

/// Whoever waits for the disk is told that it has failed, and the volume goes on without this box.
void BoxPart::disk_hangs(bool hangs) {
    if (hear_hang_) hear_hang_(hangs);
    if (!hangs) return;
    const auto open = std::exchange(open_, {});
    for (const auto& each : open) answered_early_.push_back(each.ticket);
    for (const auto& each : open) refuse(each);
}

// -------------------------------------------------------------------------------------- its disk

void BoxPart::load(Told told) {
    told_ = std::move(told);
    if (size() < image_.size())  // it was read, as far as it goes
        return std::exchange(told_, nullptr)(Error{.code = Code::not_found});
    disk_->be_patient();  // what is recovered is not asked for again
    move(Stage::reading, BlockOperation::read, 0, image_);
}

void BoxPart::create(const wire::ArraySuperblock& superblock, Told told) {
    told_ = std::move(told);
    superblock_ = superblock;
    // Both copies: most volumes never change, and one of them alone could be lost with a sector.
    const auto encoded = raid::encode_superblock(superblock);
    std::ranges::copy(encoded, image_.begin());
    std::ranges::copy(encoded, image_.begin() + wire::superblock_size);
    move(Stage::creating, BlockOperation::write, 0, image_);
}

void BoxPart::move(Stage stage, BlockOperation what, std::uint64_t at, Buffer octets) {
    stage_ = stage;
    memory_ = octets;
    operation = what;
    durable = what == BlockOperation::write;
    offset = at;
    length = octets.size();
    memory = {&memory_, 1};
    disk_->submit(*this);
}

void BoxPart::completed(Result<void> outcome) {
    if (outcome && stage_ == Stage::reading) outcome = take_superblocks();
    if (outcome && stage_ == Stage::reading && copies_differ()) return mend_superblocks();
    // The good copy is as good as it was: what is next kept goes where the other is.
    if (stage_ == Stage::mending) outcome = {};
    if (!outcome || !raid::has_journal(superblock_)) return std::exchange(told_, nullptr)(outcome);
    open_journal();
    if (stage_ != Stage::creating)
        journaled_->recover([this](Result<void>) { std::exchange(told_, nullptr)({}); });
    else
        journaled_->format(
            [this](Result<void> formatted) { std::exchange(told_, nullptr)(formatted); });
}

/// Marks wait a moment for the next record: no flush is for them alone while there is work.
void BoxPart::open_journal() {
    raid::JournaledDisk::Options options;
    options.journal.groups = group_commit_;
    if (stage_ == Stage::creating)
        options.journal_number = static_cast<std::uint32_t>(world_.random());
    options.journal.marks_wait = [this] { marks_timer_->set(world_.now() + marks_wait_for); };
    journaled_ = std::make_unique<raid::JournaledDisk>(*disk_, superblock_, options);
    marks_timer_ = world_.make_timer([this] { journaled_->write_marks(); });
}

bool BoxPart::copies_differ() const {
    const auto whole = ConstBuffer(image_);
    return !std::ranges::equal(whole.first(wire::superblock_size),
                               whole.subspan(wire::superblock_size));
}

/// The power went between the two, or one has rotted since. They are made the same before anything
/// depends on what the better one says: if that rotted next, the other would be believed.
void BoxPart::mend_superblocks() {
    const auto good = Buffer(image_).subspan(copy_ * wire::superblock_size, wire::superblock_size);
    move(Stage::mending, BlockOperation::write, (copy_ ^ 1) * wire::superblock_size, good);
}

Result<void> BoxPart::take_superblocks() {
    const auto whole = ConstBuffer(image_);
    const auto first = whole.first(wire::superblock_size);
    const auto second = whole.subspan(wire::superblock_size);
    WEFT_TRY(superblock_, raid::newest_superblock(first, second));
    copy_ = raid::copy_to_write(first, second) ^ 1;
    return {};
}

std::optional<std::uint64_t> BoxPart::room_for(const wire::ArrayVolume& volume) const {
    auto grown = superblock();
    const auto most = ~std::uint64_t{0} / 2 - grown.data_offset;  // with checksums it takes more
    if (volume.chunk_bytes == 0 || volume.stripes > most / volume.chunk_bytes) return std::nullopt;
    grown.volume = volume;
    grown.data_length = volume.stripes * volume.chunk_bytes;
    return raid::part_length(grown);
}

/// The disk has grown already, if it could (BoxNode::grow_part).
Result<void> BoxPart::make_room(std::uint64_t octets) {
    if (octets <= size()) return {};
    return Error{.code = Code::exhausted};
}

void BoxPart::start(std::unique_ptr<BoxWindows> windows, raid::PeerTransfers& peers) {
    windows_ = std::move(windows);
    // Of what goes home the controller is told, and asks again; a journal could not go on.
    const bool ends_with_journal = superblock_.journal_offset > superblock_.data_offset;
    disk_->be_patient({.begin = superblock_.data_offset,
                       .end = ends_with_journal ? superblock_.journal_offset : ~std::uint64_t{0}});
    raid::BoxOwner& owner = *this;
    box_ = std::make_unique<raid::Box>(owner, *disk_, *windows_, peers, superblock_, copy_,
                                       journaled_.get());
}

std::unique_ptr<BoxWindows> BoxPart::stop() {
    WEFT_CHECK(idle());
    superblock_ = box_->superblock();
    box_.reset();
    windows_->close_all();
    return std::move(windows_);
}

}  // namespace weft::node
