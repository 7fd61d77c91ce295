// SPDX-License-Identifier: Apache-2.0
// An application says when it has done with an event. What the event was about is destroyed only
// then: whoever destroys it waits. Counted under the mutex that the public structs have for it,
// outside any Hold.
#pragma once

#include <pthread.h>

#include <cstdint>

namespace weft::abi {

/// Also undone if the thread is cancelled in its wait.
class Locked {
public:
    explicit Locked(pthread_mutex_t& mutex) : mutex_(mutex) { ::pthread_mutex_lock(&mutex_); }
    ~Locked() { ::pthread_mutex_unlock(&mutex_); }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

private:
    pthread_mutex_t& mutex_;
};

template <class Face>
void acknowledge(Face& face, std::uint32_t& acknowledged, unsigned count) {
    Locked locked(face.mutex);
    acknowledged += count;
    ::pthread_cond_broadcast(&face.cond);
}

template <class Face>
void await_acknowledgements(Face& face, const std::uint32_t& acknowledged,
                            std::uint32_t delivered) {
    Locked locked(face.mutex);
    while (acknowledged != delivered) ::pthread_cond_wait(&face.cond, &face.mutex);
}

}  // namespace weft::abi
