// SPDX-License-Identifier: Apache-2.0
#include "node/box_windows.hpp"

namespace weft::node {
namespace {

constexpr SteeringTag without_key(SteeringTag tag) {
    return SteeringTag{static_cast<std::uint32_t>(tag) / raid::window_keys * raid::window_keys};
}

}  // namespace

Result<std::unique_ptr<BoxWindows>> BoxWindows::make(ArrayLinks& links, const Options& options) {
    std::unique_ptr<BoxWindows> made(new BoxWindows(links, options));
    const std::size_t whole = options.windows * (options.bytes + landing_size);
    // Not zeroed: a page that was never written to costs nothing.
    made->memory_.reset(static_cast<std::byte*>(::operator new[](whole, alignment, std::nothrow)));
    if (!made->memory_) return Error{.code = Code::exhausted};
    for (std::uint32_t i = 0; i < options.windows; ++i) {
        WEFT_TRY(auto region, links.domain()->allocate_tag(1));
        made->regions_.push_back(std::move(region));
    }
    if (auto ready = links.keep_ready({made->memory_.get(), whole}); !ready) return ready.error();
    return made;
}

Buffer BoxWindows::memory(std::uint32_t window) const {
    return {memory_.get() + std::size_t{window} * options_.bytes, options_.bytes};
}

Buffer BoxWindows::landing(std::uint32_t window) {
    const auto windows_end = regions_.size() * options_.bytes;
    return {memory_.get() + windows_end + std::size_t{window} * landing_size, landing_size};
}

/// The keys of a window count with the transactions and are not left to chance: one by chance would
/// open a dead tag again once in 256 times. What nobody can guess is the index, which only parties
/// of the array are told.
SteeringTag BoxWindows::tag_of(std::uint32_t window) const {
    return without_key(regions_[window]->tag());
}

Result<Buffer> BoxWindows::open(std::uint32_t window, SteeringTag tag, std::uint32_t length) {
    if (length > options_.bytes) return Error{.code = Code::exhausted};
    if (without_key(tag) != tag_of(window)) return Error{.code = Code::malformed};
    take_back_in_time(window);
    const auto opened = memory(window).first(length);
    const auto put = regions_[window]->open(
        {.tag = tag,
         .pieces = {opened},
         .rights = Rights::local_write | Rights::remote_read | Rights::remote_write,
         .addressing = Addressing::from_zero});
    if (!put) return Error{.code = Code::exhausted};
    lent_since_[window].reset();
    return opened;
}

/// TCP may try for a quarter of an hour to bring the last bytes to a box that has lost its power.
void BoxWindows::take_back_in_time(std::uint32_t window) {
    if (!regions_[window]->is_still_lent()) return;
    auto& since = lent_since_[window];
    const auto now = links_.world().now();
    if (!since) since = now;
    if (now - *since >= options_.patience) links_.take_back(regions_[window]->tag());
}

void BoxWindows::close(std::uint32_t window) {
    const auto closed = regions_[window]->close();
    static_cast<void>(closed);  // a peer may have invalidated it before: it is closed all the same
}

void BoxWindows::close_all() {
    for (std::uint32_t window = 0; window < regions_.size(); ++window) close(window);
}

}  // namespace weft::node
