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
                             count_fork();
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

}  // namespace

void Table::add(SocketPointer socket) {
    auto& table = contents();
    std::lock_guard locked(table.lock);
    auto index = static_cast<std::size_t>(socket->number());
    if (index >= table.sockets.size()) table.sockets.resize(index + 1);
    table.sockets[index] = std::move(socket);
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
    // Its locks may be held by threads that exist in the parent alone.
    new SocketPointer(std::move(removed));
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
