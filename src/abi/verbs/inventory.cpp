// SPDX-License-Identifier: Apache-2.0
#include "abi/verbs/inventory.hpp"

#include "abi/limits.hpp"
#include "abi/verbs/context.hpp"

namespace weft::abi {
namespace {

std::size_t limit_of(Kind kind) {
    switch (kind) {
        case Kind::domain:
            return limits::domains;
        case Kind::region:
            return limits::regions;
        case Kind::window:
            return limits::windows;
        case Kind::completion_queue:
            return limits::completion_queues;
        case Kind::shared_receive_queue:
            return limits::shared_receive_queues;
        case Kind::queue_pair:
            return limits::queue_pairs;
        case Kind::channel:
            return SIZE_MAX;  // the system bounds descriptors
    }
    return 0;
}

std::size_t& count_of(Kind kind) {
    return Inventory::get().counts[static_cast<std::size_t>(kind)];
}

void leave(Context& context) {
    if (--context.users == 0 && context.is_closed) free_context(context);
}

}  // namespace

Inventory& Inventory::get() {
    static Inventory* inventory = nullptr;
    static unsigned generation = 0;
    if (!inventory || generation != Engine::generation()) {
        inventory = new Inventory;  // the parent's is left alone: it names what is not ours
        generation = Engine::generation();
    }
    return *inventory;
}

bool has_room_for(Kind kind) {
    return count_of(kind) < limit_of(kind);
}

Stay::Stay(Context& context) : context_(context) {
    ++context_.users;
}

Stay::~Stay() {
    Hold hold;
    leave(context_);
}

Tenant::Tenant(Context& context, Kind kind) : context_(context), kind_(kind) {
    ++context_.users;
    ++count_of(kind_);
}

Tenant::~Tenant() {
    --count_of(kind_);
    leave(context_);
}

}  // namespace weft::abi
