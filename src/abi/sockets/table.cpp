// SPDX-License-Identifier: Apache-2.0
#include "abi/sockets/table.hpp"

#include <pthread.h>

#include <cerrno>
#include <mutex>
#include <vector>

#include "abi/sockets/attendant.hpp"

namespace weft::abi::sockets {
namespace {

/// Never destroyed: threads of the application may outlive main().
struct Contents {
    std::mutex lock;
    std::vector<SocketPointer> sockets;
};

Contents& contents() {
    static auto* made = [] {
        // Nobody shall be amid a change when a process is copied.
        ::pthread_atfork([] { contents().lock.lock(); }, [] { contents().lock.unlock(); },
                         [] {
                             contents().lock.unlock();
                             Attendant::forget();
                         });
        return new Contents;
    }();
    return *made;
}

SocketPointer* place_of(Contents& table, int number) {
    auto index = static_cast<std::size_t>(number);
    if (number < 0 || index >= table.sockets.size() || !table.sockets[index]) {
        errno = EBADF;
        return nullptr;
    }
    return &table.sockets[index];
}

/// Not freed: its locks may be held by threads that exist in the parent alone.
void leave_behind(SocketPointer socket) {
    new SocketPointer(std::move(socket));
}

}  // namespace

void Table::add(SocketPointer socket) {
    auto& table = contents();
    std::lock_guard locked(table.lock);
    auto index = static_cast<std::size_t>(socket->number());
    if (index >= table.sockets.size()) table.sockets.resize(index + 1);
    auto& place = table.sockets[index];
    // A parent's, whose descriptor the application has closed by itself: the number is ours now.
    if (place) leave_behind(std::move(place));
    place = std::move(socket);
}

SocketPointer Table::find(int number) {
    auto& table = contents();
    std::lock_guard locked(table.lock);
    auto* place = place_of(table, number);
    if (!place) return nullptr;
    if ((*place)->generation != current_generation()) {
        errno = EIO;
        return nullptr;
    }
    return *place;
}

SocketPointer Table::remove(int number) {
    auto& table = contents();
    std::lock_guard locked(table.lock);
    auto* place = place_of(table, number);
    if (!place) return nullptr;
    auto removed = std::move(*place);
    place->reset();
    if (removed->generation == current_generation()) return removed;
    if (removed->generation >= Engine::first_with_descriptors()) removed->close_descriptors();
    leave_behind(std::move(removed));
    errno = 0;
    return nullptr;
}

bool Table::has(int number) {
    auto& table = contents();
    std::lock_guard locked(table.lock);
    auto saved = errno;
    bool found = place_of(table, number) != nullptr;
    errno = saved;
    return found;
}

}  // namespace weft::abi::sockets
