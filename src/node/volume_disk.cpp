// SPDX-License-Identifier: Apache-2.0
#include "node/volume_disk.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "block/admission.hpp"
#include "raid/code.hpp"
#include "wire/array_host.hpp"

namespace weft::node {

class VolumeDisk::Run final : public raid::HostRequest {
public:
    Run(VolumeDisk& owner, BlockRequest& request)
        : owner_(owner), request_(request), since_(owner.world_.now()) {}

    Result<void> prepare() {
        durable = request_.durable;
        session = owner_.self_;
        command = ++owner_.commands_;
        if (request_.operation == BlockOperation::flush) {
            operation = raid::HostOperation::flush;
            return {};
        }
        const bool reads = request_.operation == BlockOperation::read;
        operation = reads ? raid::HostOperation::read : raid::HostOperation::write;
        range = {.offset = request_.offset, .length = request_.length};
        if (!owner_.domain_) return copy_in(), Result<void>();
        WEFT_TRY(region_, owner_.domain_->allocate_tag(request_.memory.size()));
        if (auto opened = region_->open(
                {.tag = region_->tag(),
                 .pieces = {request_.memory.begin(), request_.memory.end()},
                 .address = 0,
                 .rights = reads ? Rights::local_write | Rights::remote_write : Rights::remote_read,
                 .addressing = Addressing::from_zero});
            !opened)
            return opened;
        memory = {.party = raid::the_host,
                  .tag = region_->tag(),
                  .base = 0,
                  .identity = wire::identity_of(owner_.self_)};
        return {};
    }

    /// One piece, as the controller's own orders want it.
    void copy_in() {
        in_band = true;
        copy_.resize(request_.length);
        local = copy_;
        if (operation == raid::HostOperation::read) return;
        auto to = copy_.begin();
        for (const Buffer& piece : request_.memory) to = std::copy(piece.begin(), piece.end(), to);
    }
    void copy_out() {
        auto from = copy_.begin();
        for (const Buffer& piece : request_.memory) {
            const auto end = from + static_cast<std::ptrdiff_t>(piece.size());
            std::copy(from, end, piece.begin());
            from = end;
        }
    }

    /// Its memory is the maker's again only when the network has let go of it.
    void completed(Result<void> outcome) override {
        if (outcome && !copy_.empty() && operation == raid::HostOperation::read) copy_out();
        if (!region_) return owner_.over(*this, outcome);
        if (leaves_writers && operation == raid::HostOperation::read) {
            if (owner_.kept_.size() >= kept_max) {
                waits_for_writers_ = outcome;
                return;
            }
            if (region_->discard()) {
                owner_.kept_[command] = std::move(region_);
                return owner_.over(*this, outcome);
            }
        }
        end(outcome);
    }
    /// It was not answered, for too many tags were kept.
    void writers_gone() {
        if (waits_for_writers_) end(*waits_for_writers_);
    }

    BlockRequest& request() { return request_; }
    SlowOperation report(bool under_way) const {
        return {.since = since_,
                .took = owner_.world_.now() - since_,
                .under_way = under_way,
                .volume = {},
                .operation = operation,
                .offset = range.offset,
                .length = range.length,
                .session = session,
                .story = story};
    }

private:
    void end(Result<void> outcome) {
        auto closed = region_->deregister([this, outcome] { owner_.over(*this, outcome); });
        WEFT_CHECK(closed.has_value());  // no window was ever bound to it
        if (region_->is_still_lent() && owner_.lent_) owner_.lent_(region_->tag());
    }

    VolumeDisk& owner_;
    BlockRequest& request_;
    Instant since_;
    std::unique_ptr<verbs::MemoryRegion> region_;
    std::vector<std::byte> copy_;
    std::optional<Result<void>> waits_for_writers_;
};

VolumeDisk::VolumeDisk(World& world, std::shared_ptr<verbs::ProtectionDomain> domain,
                       wire::HostSession self, std::function<void(raid::HostRequest&)> ask)
    : world_(world), domain_(std::move(domain)), self_(self), ask_(std::move(ask)) {}

VolumeDisk::~VolumeDisk() {
    WEFT_CHECK(runs_.empty());
}

void VolumeDisk::set_size(std::uint64_t size) {
    if (std::exchange(size_, size) != size) announce_size(size);
}

BlockTraits VolumeDisk::traits() const {
    return {.size = size_,
            .minimum_block = raid::slice_size,
            .preferred_block = raid::slice_size,
            .maximum_transfer = raid::limits::request_bytes};
}

void VolumeDisk::submit(BlockRequest& request) {
    if (auto refusal = block::refusal_of(request, traits())) return request.completed(*refusal);
    if (request.operation == BlockOperation::prefetch ||
        (request.length == 0 && request.operation != BlockOperation::flush))
        return request.completed({});
    auto run = std::make_unique<Run>(*this, request);
    if (auto prepared = run->prepare(); !prepared) return request.completed(prepared.error());
    auto& asked = *runs_.emplace_back(std::move(run));
    ask_(asked);
}

void VolumeDisk::over(Run& run, Result<void> outcome) {
    auto& request = run.request();
    if (ended_) ended_(run.report(false));
    if (outcome && request.operation != BlockOperation::flush) octets_ += request.length;
    std::erase_if(runs_, [&](const auto& each) { return each.get() == &run; });
    request.completed(outcome);
}

void VolumeDisk::writers_gone(std::uint64_t command) {
    if (kept_.erase(command) > 0) return;
    const auto run =
        std::ranges::find(runs_, command, [](const auto& each) { return each->command; });
    if (run != runs_.end()) (*run)->writers_gone();
}

std::vector<SlowOperation> VolumeDisk::under_way() const {
    std::vector<SlowOperation> found;
    for (const auto& run : runs_) found.push_back(run->report(true));
    return found;
}

}  // namespace weft::node
