// SPDX-License-Identifier: Apache-2.0
// Any octets as a program for the memory table: an operation and its operands, again and again.
// After each the table must have said what the naive model says, and bytes that are lent must still
// be the bytes they were.
#include <array>

#include "fuzz/memory_model.hpp"

namespace weft::fuzz {
namespace {

constexpr std::size_t capacity = 6;
constexpr std::uint64_t seed = 1;
constexpr std::size_t steps_max = 2000;  // what follows finds nothing new, and only takes time

class Octets {
public:
    explicit Octets(ConstBuffer octets) : octets_(octets) {}
    bool empty() const { return octets_.empty(); }
    std::uint8_t next() {
        if (octets_.empty()) return 0;
        auto octet = std::to_integer<std::uint8_t>(octets_[0]);
        octets_ = octets_.subspan(1);
        return octet;
    }

private:
    ConstBuffer octets_;
};

std::vector<std::byte*> addresses(iwarp::MemoryRange range) {
    std::vector<std::byte*> all;
    for (; !range.empty(); range.drop_front(1)) all.push_back(range.front().data());
    return all;
}

/// Bytes that were resolved, and what they were then.
struct Lent {
    iwarp::MemoryRange range;
    std::vector<std::byte*> bytes;
    SteeringTag held{};
    Thing* thing = nullptr;

    void check() const { WEFT_CHECK(addresses(range) == bytes); }
};

class Run {
public:
    explicit Run(ConstBuffer program) : program_(program) {}

    void all() {
        for (std::size_t i = 0; i < steps_max && !program_.empty(); ++i) {
            step();
            WEFT_CHECK(table_.size() == model_.size());
            // The tag of all memory is for the senders of some queue pairs, and nobody's here.
            WEFT_CHECK(!table_.resolve(own_memory, 0, 1, Rights::local_read, {}));
            WEFT_CHECK(!table_.invalidate(own_memory, {}));
            for (const auto& lent : lent_) lent.check();
            if (table_.revocations() == latest_at_) latest_.check();
        }
        while (!lent_.empty()) release(0);
        for (bool windows : {true, false})
            for (auto tag : tags_)
                if (Thing* thing = model_.with_index(tag); thing && thing->is_window() == windows)
                    remove(thing->tag);
        WEFT_CHECK(table_.size() == 0 && model_.size() == 0);
    }

private:
    void step() {
        switch (program_.next() % 12) {
            case 0:
                return add_region();
            case 1:
                return allocate();
            case 2:
                return fast_register();
            case 3:
                return add_window();
            case 4:
                return bind();
            case 5:
                return invalidate();
            case 6:
                return remove(tag());
            case 7:
                return hold(tag());
            case 8:
                return release(program_.next());
            case 9:
                return discard();
            default:
                return resolve();
        }
    }

    // Operands.

    /// One of the latest that were given out, or a little beside it.
    SteeringTag tag() {
        auto octet = program_.next();
        if (tags_.empty()) return SteeringTag{octet};
        auto back = octet % 32 % tags_.size();
        auto known = static_cast<std::uint32_t>(tags_[tags_.size() - 1 - back]);
        switch (octet / 32) {
            case 4:
                return SteeringTag{known + 1};
            case 5:
                return SteeringTag{known + 2};
            case 6:
                return SteeringTag{known + 0x100};
            case 7:
                return SteeringTag{known & 0xff};  // index 0
            default:
                return SteeringTag{known};
        }
    }
    Asker asker() {
        auto octet = program_.next();
        return {domain(octet), static_cast<iwarp::QueuePairId>(octet >> 1 & 1)};
    }
    static iwarp::DomainId domain(std::uint8_t octet) {
        return static_cast<iwarp::DomainId>(octet & 1);
    }
    Rights rights() { return static_cast<Rights>(program_.next() & 0x1f); }
    Addressing addressing() {
        return program_.next() % 2 == 0 ? Addressing::by_address : Addressing::from_zero;
    }
    /// Small, or so large that sums do not fit.
    std::uint64_t number() {
        auto octet = program_.next();
        return octet < 192 ? octet : UINT64_MAX - (octet - 192u);
    }
    std::vector<Buffer> pieces() {
        std::vector<Buffer> all(program_.next() % 6);
        for (auto& piece : all) {
            auto octet = program_.next();
            piece = Buffer(memory_).subspan(octet / 8, octet % 8);
        }
        return all;
    }

    static Bytes bytes_of(const std::vector<Buffer>& pieces, std::uint64_t first) {
        Bytes bytes;
        for (Buffer piece : pieces)
            for (auto& octet : piece) bytes[first++] = &octet;
        return bytes;
    }
    /// Whether the last of these bytes would lie behind the last offset there is.
    static bool wraps(const std::vector<Buffer>& pieces, std::uint64_t first) {
        auto size = bytes_of(pieces, 0).size();
        return size > 0 && first + size - 1 < first;
    }

    /// Both must say the same; true if they agree that it was done.
    static bool agree(const auto& outcome, std::optional<MemoryFault> expected) {
        WEFT_CHECK(outcome.has_value() == !expected);
        if (expected) WEFT_CHECK(iwarp::fault_of(outcome.error()) == *expected);
        return !expected;
    }
    Thing& note(Thing thing) {
        tags_.push_back(thing.tag);
        return model_.add(std::move(thing));
    }
    std::optional<MemoryFault> full() const {
        return model_.is_full() ? std::optional(MemoryFault::table_full) : std::nullopt;
    }

    // Operations.

    void add_region() {
        auto owner = domain(program_.next());
        auto memory = pieces();
        auto address = number();
        auto allowed = rights();
        auto counted = addressing();
        auto added = table_.add_region(owner, memory, address, allowed, counted);
        auto first = counted == Addressing::from_zero ? 0 : address;
        auto expected = wraps(memory, first) ? MemoryFault::offset_wraps : full();
        if (!agree(added, expected)) return;
        Thing& thing = note({.kind = Thing::region, .tag = *added, .domain = owner});
        open(thing, bytes_of(memory, first), allowed);
    }
    void allocate() {
        auto owner = domain(program_.next());
        std::size_t pieces_max = program_.next() % 5;
        auto added = table_.allocate(owner, pieces_max);
        if (agree(added, full())) note({Thing::allocated, *added, owner, pieces_max});
    }
    void add_window() {
        auto octet = program_.next();
        bool by_domain = octet / 2 % 2 == 0;
        auto added = table_.add_window(domain(octet), by_domain ? verbs::WindowKind::by_domain
                                                                : verbs::WindowKind::by_queue_pair);
        auto kind = by_domain ? Thing::window_by_domain : Thing::window_by_queue_pair;
        if (agree(added, full())) note({.kind = kind, .tag = *added, .domain = domain(octet)});
    }
    static void open(Thing& thing, Bytes bytes, Rights rights) {
        thing.open = true;
        thing.bytes = std::move(bytes);
        thing.rights = rights;
    }

    void fast_register() {
        auto who = asker();
        verbs::FastRegistration wanted{tag(), pieces(), number(), rights(), addressing()};
        auto first = wanted.addressing == Addressing::from_zero ? 0 : wanted.address;
        Thing* thing = model_.with_index(wanted.tag);
        auto expected = [&]() -> std::optional<MemoryFault> {
            if (!thing || thing->kind != Thing::allocated) return MemoryFault::invalid_tag;
            if (thing->domain != who.domain) return MemoryFault::wrong_domain;
            if (thing->open || thing->discarding) return MemoryFault::already_open;
            if (thing->holds > 0) return MemoryFault::still_lent;
            if (wanted.pieces.size() > thing->pieces_max) return MemoryFault::too_many_pieces;
            if (wraps(wanted.pieces, first)) return MemoryFault::offset_wraps;
            return std::nullopt;
        }();
        if (!agree(table_.fast_register(wanted, who), expected)) return;
        thing->tag = wanted.tag;
        tags_.push_back(wanted.tag);
        open(*thing, bytes_of(wanted.pieces, first), wanted.rights);
    }

    void bind() {
        auto who = asker();
        verbs::WindowBinding wanted{tag(), tag(), number(), number(), rights(), addressing()};
        auto expected = model_.check_bind(wanted, who);
        auto bound = table_.bind(wanted, who);
        if (!agree(bound, expected)) return;
        Thing& window = *model_.with_index(wanted.window);
        WEFT_CHECK(index_of(*bound) == index_of(wanted.window));
        bool by_domain = window.kind == Thing::window_by_domain;
        WEFT_CHECK(by_domain == (*bound != wanted.window));
        tags_.push_back(*bound);
        model_.close(window);
        window.tag = *bound;
        if (wanted.size == 0) return;
        window.shows = model_.opened_by(wanted.region);
        window.queue_pair = who.queue_pair;
        Bytes bytes;
        auto first = wanted.addressing == Addressing::from_zero ? 0 : wanted.address;
        for (std::uint64_t i = 0; i < wanted.size; ++i)
            bytes[first + i] = window.shows->bytes.at(wanted.address + i);
        open(window, std::move(bytes), wanted.rights);
    }

    void invalidate() {
        auto gone = tag();
        auto who = asker();
        auto expected = model_.check_invalidate(gone, who);
        if (agree(table_.invalidate(gone, who), expected)) model_.close(*model_.valid_by(gone));
    }

    void discard() {
        auto gone = tag();
        auto who = asker();
        auto expected = model_.check_discard(gone, who);
        if (!agree(table_.discard(gone, who), expected)) return;
        Thing& thing = *model_.valid_by(gone);
        thing.open = false;
        thing.discarding = true;
    }

    void remove(SteeringTag gone) {
        Thing* thing = model_.with_index(gone);
        if (thing && thing->kind == Thing::region && thing->tag != gone) thing = nullptr;
        std::optional<MemoryFault> expected;
        if (!thing) expected = MemoryFault::invalid_tag;
        if (thing && model_.has_windows(*thing)) expected = MemoryFault::has_windows;
        if (agree(table_.remove(gone), expected)) model_.remove(*thing);
        WEFT_CHECK(table_.is_held(gone) == (model_.held_under(gone) > 0));
    }

    /// Lends all of what a tag opens.
    void hold(SteeringTag kept) {
        Thing* thing = model_.opened_by(kept);
        if (!thing || thing->bytes.empty()) return;
        Thing& region = thing->shows ? *thing->shows : *thing;
        auto first = thing->bytes.begin()->first;
        auto right =
            thing->rights & (Rights::remote_read | Rights::remote_write | Rights::remote_atomic);
        Asker who{thing->domain, thing->queue_pair};
        if (model_.check_use(kept, first, 1, right, who)) return;
        auto range = table_.resolve(kept, first, thing->bytes.size(), right, who);
        WEFT_CHECK(range);
        lent_.push_back({*range, addresses(*range), table_.hold(kept), &region});
        WEFT_CHECK(lent_.back().held == region.tag && table_.is_held(region.tag));
        ++region.holds;
    }
    void release(std::size_t which) {
        if (lent_.empty()) return;
        auto chosen = lent_.begin() + static_cast<std::ptrdiff_t>(which % lent_.size());
        table_.release(chosen->held);
        model_.release(*chosen->thing);
        lent_.erase(chosen);
    }

    void resolve() {
        auto who = asker();
        auto used = tag();
        auto offset = number();
        auto size = number();
        auto asked = rights();
        auto expected = model_.check_use(used, offset, size, asked, who);
        auto range = table_.resolve(used, offset, size, asked, who);
        if (!agree(range, expected)) return;
        WEFT_CHECK(range->size() == size);
        latest_ = {*range, addresses(*range)};
        latest_at_ = table_.revocations();
        if (model_.discarded_by(used)) return check_nowhere();
        for (std::uint64_t i = 0; i < size; ++i)
            WEFT_CHECK(latest_.bytes[i] == model_.opened_by(used)->bytes.at(offset + i));
    }

    /// Nobody's memory.
    void check_nowhere() const {
        for (auto* each : latest_.bytes)
            WEFT_CHECK(each < memory_.data() || each >= memory_.data() + memory_.size());
    }

    Octets program_;
    std::array<std::byte, 40> memory_{};
    iwarp::MemoryTable table_{capacity, seed};
    MemoryModel model_{capacity};
    std::vector<SteeringTag> tags_;  ///< all that were ever given out
    std::vector<Lent> lent_;         ///< and held
    Lent latest_;                    ///< resolved, not held
    std::uint64_t latest_at_ = 0;
};

}  // namespace
}  // namespace weft::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    weft::fuzz::Run(std::as_bytes(std::span(data, size))).all();
    return 0;
}
