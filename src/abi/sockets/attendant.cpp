// SPDX-License-Identifier: Apache-2.0
#include "abi/sockets/attendant.hpp"

#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "abi/engine.hpp"
#include "abi/sockets/opening.hpp"
#include "abi/sockets/table.hpp"

namespace weft::abi::sockets {
namespace {

/// Never destroyed: its thread ends with the process.
struct Office {
    const unsigned generation = current_generation();
    std::mutex lock;
    std::vector<SocketPointer> listeners;
    Bell bell{Bell::Kind::once};

    std::vector<SocketPointer> those_with_room();
    void work();
};

std::atomic<Office*> the_office{nullptr};

std::vector<SocketPointer> Office::those_with_room() {
    std::lock_guard locked(lock);
    std::vector<SocketPointer> found;
    for (const auto& listener : listeners) {
        std::lock_guard its(listener->lock);
        if (!listener->backlog->is_full()) found.push_back(listener);
    }
    return found;
}

void answer(Socket& listener) {
    std::lock_guard watch(listener.watch);
    auto newcomer = answer_request(listener);
    if (!newcomer) return;
    std::lock_guard locked(listener.lock);
    if (listener.stage == Stage::closed) return;
    listener.backlog->sockets.push_back(std::move(newcomer));
    listener.backlog->bell.ring();
}

void Office::work() {
    for (;;) {
        auto served = those_with_room();
        std::vector<pollfd> sources{{bell.descriptor(), POLLIN, 0}};
        for (const auto& listener : served) sources.push_back({listener->number(), POLLIN, 0});
        if (::poll(sources.data(), sources.size(), -1) <= 0) continue;
        // The application has closed all descriptors there were. Its next listener gets another.
        if ((sources[0].revents & POLLNVAL) || generation != current_generation()) break;
        bell.answer();
        for (std::size_t i = 0; i < served.size(); ++i)
            if (sources[i + 1].revents != 0) answer(*served[i]);
    }
    auto* itself = this;
    the_office.compare_exchange_strong(itself, nullptr);
}

bool start(Office& office) {
    SignalsLeftToOthers left;
    pthread_t thread;
    int failed = ::pthread_create(
        &thread, nullptr,
        [](void* the) -> void* {
            static_cast<Office*>(the)->work();
            return nullptr;
        },
        &office);
    if (failed) return errno = failed, false;
    ::pthread_setname_np(thread, "weft-attendant");
    ::pthread_detach(thread);
    return true;
}

}  // namespace

int Attendant::serve(SocketPointer listener) {
    static std::mutex starting;
    std::lock_guard one_at_a_time(starting);
    auto* office = the_office.load();
    if (!office || office->generation != current_generation()) {
        auto made = std::make_unique<Office>();
        if (made->bell.descriptor() < 0 || !start(*made)) return errno;
        the_office = office = made.release();
    }
    std::lock_guard locked(office->lock);
    auto& all = office->listeners;
    if (std::find(all.begin(), all.end(), listener) != all.end()) return 0;
    all.push_back(std::move(listener));
    office->bell.ring();
    return 0;
}

void Attendant::leave(const Socket& listener) {
    auto* office = the_office.load();
    if (!office) return;
    std::lock_guard locked(office->lock);
    std::erase_if(office->listeners, [&](auto& one) { return one.get() == &listener; });
    office->bell.ring();
}

void Attendant::look_again() {
    if (auto* office = the_office.load()) office->bell.ring();
}

void Attendant::forget() {
    the_office = nullptr;
}

}  // namespace weft::abi::sockets
