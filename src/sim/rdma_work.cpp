// SPDX-License-Identifier: Apache-2.0
#include "sim/rdma_work.hpp"

#include <algorithm>
#include <cstring>

#include "sim/rdma_endpoint.hpp"

namespace weft::sim {

using verbs::Operation;

bool Work::takes_receive() const {
    return operation == Operation::send || operation == Operation::send_invalidate ||
           operation == Operation::write_immediate;
}
bool Work::changes_memory() const {
    return operation == Operation::write || operation == Operation::write_immediate ||
           operation == Operation::compare_and_swap || operation == Operation::fetch_and_add;
}
bool Work::awaits_answer() const {
    return operation >= Operation::read && operation <= Operation::fetch_and_add;
}

namespace {

constexpr std::size_t word = sizeof(std::uint64_t);

Rights draw_remote_rights(Random& random) {
    auto rights = Rights::remote_read;
    if (random.chance(70)) rights = rights | Rights::remote_write;
    if (random.chance(50)) rights = rights | Rights::remote_atomic;
    return rights;
}

/// Drafts one piece of work. Its functions say false where chance would have what cannot be.
class Drafting {
public:
    explicit Drafting(Endpoint& endpoint)
        : endpoint_(endpoint),
          station_(endpoint.station),
          far_(endpoint.peer().station),
          random_(endpoint.station.random()) {
        auto& request = draft.request;
        request.signalled = random_.chance(70);
        request.fenced = random_.chance(15);
    }

    Draft draft;

    bool send(Operation operation) {
        draft.request.operation = operation;
        draft.request.solicited = random_.chance(30);
        if (operation == Operation::send_invalidate && !choose_to_invalidate()) return false;
        if (random_.chance(25) && send_what_is_being_read()) return true;
        return gather(draw_size(station_.receive_size));
    }

    bool write(Operation operation) {
        draft.request.operation = operation;
        if (operation == Operation::write_immediate) {
            draft.request.solicited = random_.chance(30);
            draft.request.immediate = static_cast<std::uint32_t>(random_.next());
        }
        auto size = draw_size(endpoint_.habits.message_max);
        if (size > 0) {
            if (!choose_target(Rights::remote_write, size)) return false;
            size = draft.work->remote->lease->size();
        }
        if (!gather(size)) return false;
        draft.changed = draft.work->payload;
        return true;
    }

    bool read() {
        draft.request.operation = Operation::read;
        auto size = draw_size(endpoint_.habits.message_max);
        if (size == 0) return true;
        if (!choose_target(Rights::remote_read, size)) return false;
        draft.work->payload = draft.work->remote->lease->last_version();
        return choose_sink(draft.work->payload.size());
    }

    bool read_invalidate() {
        draft.request.operation = Operation::read_invalidate;
        for (auto& fast : endpoint_.tags.fast_tags) {
            auto grant = fast.grant;
            if (!grant->usable || grant->uses > 0 || !allows(grant->rights, Rights::local_write))
                continue;
            auto size = random_.between(1, grant->size);
            if (!choose_target(Rights::remote_read, size)) return false;
            draft.work->payload = draft.work->remote->lease->last_version();
            if (draft.work->payload.size() > grant->size) return false;
            draft.work->closes = grant;
            return sink_at({grant, 0, part_of(grant->stretches, 0, draft.work->payload.size())});
        }
        return false;
    }

    bool atomic(Operation operation) {
        draft.request.operation = operation;
        if (!choose_target(Rights::remote_atomic, word) || !choose_sink(word)) return false;
        auto& lease = *draft.work->remote->lease;
        if (lease.size() != word || lease.stretches().size() != 1) return false;
        auto& request = draft.request;
        draft.work->payload = lease.last_version();
        draft.changed = draft.work->payload;
        std::uint64_t original = 0;
        std::memcpy(&original, draft.changed.data(), word);
        request.operand = random_.next();
        request.compare = random_.chance(50) ? original : random_.next();
        auto changed = operation == Operation::fetch_and_add ? original + request.operand
                       : request.compare == original         ? request.operand
                                                             : original;
        std::memcpy(draft.changed.data(), &changed, word);
        return true;
    }

    bool bind() {
        auto& windows = endpoint_.tags.windows;
        auto& one = random_.chance(50) ? windows.front() : windows.back();
        bool second_kind = one.kind == verbs::WindowKind::by_queue_pair;
        if (one.grant->changing || one.grant->uses > 0 || (second_kind && one.grant->usable))
            return false;
        auto place = station_.choose(Rights::bind_windows | Rights::local_write,
                                     random_.between(word, 2000));
        if (!place) return false;
        auto& binding = draft.binding;
        binding.window = one.window->tag();
        if (second_kind) binding.window = with_drawn_key(binding.window);
        binding.region = place->grant->tag;
        binding.address = place->grant->first + place->offset;
        binding.size = size_of(place->stretches);
        binding.rights = draw_remote_rights(random_);
        binding.addressing = random_.chance(50) ? Addressing::from_zero : Addressing::by_address;
        draft.request.operation = Operation::bind_window;
        draft.request.binding = &binding;

        auto grant = std::make_shared<Grant>();
        grant->first = binding.addressing == Addressing::from_zero ? 0 : binding.address;
        grant->stretches = place->stretches;
        grant->size = binding.size;
        grant->rights = binding.rights;
        grant->can_be_invalidated = second_kind;
        one.grant->usable = false;  // what it showed before, it shows no more
        one.grant = grant;
        draft.work->opens = grant;
        draft.work->tag_of_opened = [&one, second_kind, tag = binding.window] {
            return second_kind ? tag : one.window->tag();
        };
        use(place->grant);
        return true;
    }

    bool fast_register() {
        auto& tags = endpoint_.tags.fast_tags;
        auto& one = random_.chance(50) ? tags.front() : tags.back();
        if (one.grant->changing || one.grant->usable || one.grant->uses > 0) return false;
        auto size = random_.between(1, WorkTags::fast_memory);
        auto memory = part_of(one.memory, random_.between(0, WorkTags::fast_memory - size), size);
        auto& registration = draft.registration;
        registration.tag = with_drawn_key(one.region->tag());
        registration.pieces = station_.buffers(memory);
        registration.address = random_.next() >> random_.between(1, 60);
        registration.rights = draw_remote_rights(random_) | Rights::local_write;
        registration.addressing =
            random_.chance(50) ? Addressing::from_zero : Addressing::by_address;
        draft.request.operation = Operation::fast_register;
        draft.request.registration = &registration;

        auto grant = std::make_shared<Grant>();
        grant->first = registration.addressing == Addressing::from_zero ? 0 : registration.address;
        grant->stretches = memory;
        grant->size = size;
        grant->rights = registration.rights;
        grant->can_be_invalidated = true;
        one.grant = grant;
        draft.work->opens = grant;
        draft.work->tag_of_opened = [tag = registration.tag] { return tag; };
        return true;
    }

    bool local_invalidate() {
        for (auto& grant : endpoint_.tags.grants()) {
            if (!grant->usable || !grant->can_be_invalidated || grant->uses > 0) continue;
            draft.request.operation = Operation::local_invalidate;
            draft.request.invalidate = grant->tag;
            draft.work->closes = grant;
            return true;
        }
        return false;
    }

    /// Spoils what was drafted so that the peer must refuse it.
    bool spoil_there() {
        auto& request = draft.request;
        auto& work = *draft.work;
        if (request.operation == Operation::send_invalidate) {
            work.closes.reset();
            request.invalidate = with_other_key(request.invalidate);
            return work.fails_there = true;
        }
        if (!work.remote) return false;
        auto target = std::exchange(work.remote, nullptr);
        switch (random_.below(5)) {
            case 0:
                request.remote.tag = with_other_key(request.remote.tag);
                break;
            case 1:
                if (!run_over_the_end(std::move(target))) return false;
                break;
            case 2:
                request.remote = far_.foreign->remote(0);
                break;
            case 3:
                if (!name_without_rights()) return false;
                break;
            default:
                request.remote.address += target->place.grant->size;
                break;
        }
        return work.fails_there = true;
    }

    /// Spoils what was drafted so that it is found to be wrong before anything is sent.
    bool spoil_here() {
        auto& work = *draft.work;
        if (work.opens || draft.request.operation == Operation::local_invalidate) {
            draft.binding.region = with_other_key(draft.binding.region);
            draft.registration.tag = station_.receiving->tag;
            draft.request.invalidate = station_.receiving->tag;
            work.opens = work.closes = nullptr;
            return work.fails_here = true;
        }
        if (draft.request.inlined || draft.local.empty()) return false;
        auto& piece = draft.local[random_.below(draft.local.size())];
        if (piece.size == 0) return false;
        piece.tag = random_.chance(50) ? with_other_key(piece.tag) : station_.foreign->tag;
        return work.fails_here = true;
    }

private:
    std::size_t draw_size(std::size_t most) {
        switch (random_.below(8)) {
            case 0:
                return 0;
            case 1:
            case 2:
                return random_.between(1, std::min<std::size_t>(most, 16));
            case 3:
            case 4:
            case 5:
                return random_.between(1, std::min<std::size_t>(most, 2000));
            default:
                return random_.between(1, most);
        }
    }

    SteeringTag with_drawn_key(SteeringTag tag) {
        auto index = static_cast<std::uint32_t>(tag) & ~0xffu;
        return static_cast<SteeringTag>(index | static_cast<std::uint8_t>(random_.next()));
    }

    void use(const std::shared_ptr<Grant>& grant) {
        draft.work->uses.push_back(std::make_shared<GrantUse>(grant));
    }

    bool choose_to_invalidate() {
        for (auto& grant : endpoint_.peer().tags.grants()) {
            if (!grant->usable || !grant->can_be_invalidated) continue;
            // What is still being read of it must have come before it is closed.
            if (grant->uses > 0) draft.request.fenced = true;
            draft.request.invalidate = grant->tag;
            draft.work->closes = grant;
            return true;
        }
        return false;
    }

    /// The bytes to send or write, from one or more places.
    bool gather(std::size_t size) {
        auto& habits = station_.habits.queues;
        draft.request.inlined = size <= habits.inline_bytes && random_.chance(40);
        Stretches all;
        auto pieces = random_.between(size > 0 ? 1 : 0, habits.pieces);
        for (std::size_t left = size; pieces > 0; --pieces) {
            auto count = pieces == 1 ? left : random_.between(0, left);
            auto place = station_.choose(Rights::local_read, count);
            if (!place || overlap(all, place->stretches)) return false;
            if (draft.request.inlined && place->stretches.size() > 1) return false;
            all.insert(all.end(), place->stretches.begin(), place->stretches.end());
            draft.local.push_back(place->grant->local(place->offset, count));
            if (draft.request.inlined && count > 0)
                draft.local.back().address = reinterpret_cast<std::uint64_t>(
                    station_.memory.memory().data() + place->stretches[0].at);
            left -= count;
        }
        if (!station_.memory.lease(all)) return false;
        draft.work->payload = station_.memory.random_bytes(size);
        station_.memory.write(all, draft.work->payload);
        draft.work->local = station_.memory.lease(all);
        return true;
    }

    bool send_what_is_being_read() {
        auto read = endpoint_.last_read.lock();
        if (!read || read->ended || !read->local || read->local->has_ended() || read->fails_here ||
            read->overtaken || read->operation != Operation::read ||
            read->payload.size() > station_.receive_size)
            return false;
        read->passed_on = true;
        draft.request.fenced = true;
        draft.local = {read->sink};
        draft.work->local = read->local;
        draft.work->payload = read->payload;
        return true;
    }

    bool choose_target(Rights rights, std::size_t size) {
        auto known = endpoint_.last_target.lock();
        bool reads = rights == Rights::remote_read;
        if (known && random_.chance(40) && !known->lease->has_ended() &&
            known->place.grant->usable && allows(known->place.grant->rights, rights) &&
            (reads || may_overtake(*known)) &&
            (rights != Rights::remote_atomic || is_word(*known))) {
            draft.work->remote = known;
        } else {
            auto grants = endpoint_.peer().tags.grants();
            auto place = far_.choose(rights, size, grants);
            if (!place) return false;
            auto lease = far_.memory.lease(place->stretches);
            if (!lease) return false;
            draft.work->remote = std::make_shared<Target>(Target{*place, lease});
        }
        auto& place = draft.work->remote->place;
        draft.request.remote = place.grant->remote(place.offset);
        use(place.grant);
        return true;
    }

    /// Whether the reads of it bear being answered with what is written behind them: not if others
    /// count on their bytes, nor if the answer is lent from the memory itself, which the network
    /// here wants to stay as it is.
    bool may_overtake(const Target& target) const {
        bool is_read = !target.reads.empty() || station_.world.now() < target.lent_until;
        if (!is_read) return true;
        if (!endpoint_.connection) return false;
        auto& facts = endpoint_.connection->facts();
        if (!facts.checksums && !facts.markers_in) return false;
        return std::none_of(target.reads.begin(), target.reads.end(), [](auto& each) {
            auto read = each.lock();
            return !read || read->passed_on;
        });
    }

    static bool is_word(const Target& target) {
        return (target.place.grant->first + target.place.offset) % word == 0 &&
               target.lease->size() == word && target.lease->stretches().size() == 1;
    }

    bool choose_sink(std::size_t size) {
        auto place = station_.choose(Rights::local_write, size);
        return place && sink_at(*place);
    }

    bool sink_at(const Place& place) {
        draft.work->local = station_.memory.lease(place.stretches);
        if (!draft.work->local) return false;
        auto size = draft.work->local->size();
        draft.local = {place.grant->local(place.offset, size)};
        draft.work->sink = draft.local[0];
        return true;
    }

    /// Only the last bytes are outside; what lies before the end may change.
    bool run_over_the_end(std::shared_ptr<Target> target) {
        auto place = target->place;
        auto size = target->lease->size();
        target.reset();
        if (size < 2 || size > place.grant->size) return false;
        auto inside = random_.between(1, size - 1);
        place.offset = place.grant->size - inside;
        place.stretches = part_of(place.grant->stretches, place.offset, inside);
        auto lease = far_.memory.lease(place.stretches);
        if (!lease) return false;
        draft.request.remote = place.grant->remote(place.offset);
        if (draft.request.operation == Operation::write ||
            draft.request.operation == Operation::write_immediate)
            draft.changed.resize(inside);
        else
            draft.changed = lease->last_version();
        draft.work->remote = std::make_shared<Target>(Target{place, lease});
        return true;
    }

    bool name_without_rights() {
        auto operation = draft.request.operation;
        auto needed = operation == Operation::read || operation == Operation::read_invalidate
                          ? Rights::remote_read
                      : operation == Operation::write || operation == Operation::write_immediate
                          ? Rights::remote_write
                          : Rights::remote_atomic;
        for (auto& region : far_.regions) {
            if (!region->usable || allows(region->rights, needed)) continue;
            draft.request.remote = region->remote(0);
            return true;
        }
        return false;
    }

    Endpoint& endpoint_;
    Station& station_;
    Station& far_;
    Random& random_;
};

bool draft_random(Drafting& drafting, Random& random, bool extensions) {
    switch (random.below(extensions ? 16 : 12)) {
        case 0:
        case 1:
        case 2:
            return drafting.send(Operation::send);
        case 3:
            return drafting.send(Operation::send_invalidate);
        case 4:
        case 5:
            return drafting.write(Operation::write);
        case 6:
        case 7:
            return drafting.read();
        case 8:
            return drafting.read_invalidate();
        case 9:
            return drafting.bind();
        case 10:
            return drafting.fast_register();
        case 11:
            return drafting.local_invalidate();
        case 12:
        case 13:
            return drafting.write(Operation::write_immediate);
        case 14:
            return drafting.atomic(Operation::compare_and_swap);
        default:
            return drafting.atomic(Operation::fetch_and_add);
    }
}

}  // namespace

void post_random_work(Endpoint& endpoint) {
    Drafting drafting(endpoint);
    if (draft_random(drafting, endpoint.station.random(), endpoint.speaks_extensions()))
        endpoint.post(drafting.draft);
}

bool post_last_word(Endpoint& endpoint) {
    Draft draft;
    return endpoint.post(draft);
}

void post_bad_work(Endpoint& endpoint) {
    Drafting drafting(endpoint);
    auto& random = endpoint.station.random();
    if (!draft_random(drafting, random, endpoint.speaks_extensions())) return;
    if (!(random.chance(70) ? drafting.spoil_there() : drafting.spoil_here())) return;
    endpoint.excuse();
    endpoint.post(drafting.draft);
}

}  // namespace weft::sim
