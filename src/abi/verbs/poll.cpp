// SPDX-License-Identifier: Apache-2.0
// The way out of all work: ibv_poll_cq(), and the readers of ibv_cq_ex.
#include "abi/verbs/poll.hpp"

#include <algorithm>
#include <array>

#include "abi/verbs/completion.hpp"
#include "abi/verbs/context.hpp"

namespace weft::abi {
namespace {

/// Between the engine's form and the application's. Polling is inside a Hold, so one is enough, and
/// nobody has to clear it for each look in vain.
constinit std::array<verbs::Completion, 16> taken;

int take(CompletionQueue& queue, int most, ibv_wc* into) {
    int count = 0;
    while (count < most) {
        auto room = std::min<std::size_t>(taken.size(), static_cast<std::size_t>(most - count));
        auto found = queue.engine_side->poll(std::span(taken).first(room));
        for (std::size_t i = 0; i < found; ++i) show(taken[i], into[count++]);
        if (found < room) break;
    }
    return count;
}

CompletionQueue& of(ibv_cq_ex* face) {
    return static_cast<CompletionQueue&>(*face);
}

bool take_one(CompletionQueue& queue) {
    if (queue.engine_side->poll({&queue.current, 1}) == 0) return false;
    queue.wr_id = queue.current.id;
    queue.status = status_of(queue.current);
    return true;
}

bool find_one(CompletionQueue& queue) {
    Hold hold;
    if (!queue.engine_side) return false;
    if (take_one(queue)) return true;
    Engine::get().poll();
    return take_one(queue);
}

void end_poll(ibv_cq_ex* face) {
    auto& queue = of(face);
    if (queue.turn) ::pthread_mutex_unlock(&*queue.turn);
}

/// What it finds is this thread's to read until end_poll().
int start_poll(ibv_cq_ex* face, ibv_poll_cq_attr* attributes) {
    if (attributes && attributes->comp_mask) return EINVAL;
    auto& queue = of(face);
    if (queue.is_inherited()) return EIO;
    if (queue.turn) ::pthread_mutex_lock(&*queue.turn);
    if (find_one(queue)) return 0;
    end_poll(face);
    return ENOENT;
}

int next_poll(ibv_cq_ex* face) {
    Hold hold;
    auto& queue = of(face);
    return queue.engine_side && take_one(queue) ? 0 : ENOENT;
}

}  // namespace

int poll_completions(ibv_cq* face, int most, ibv_wc* into) {
    Hold hold;
    auto& queue = of(*face);
    if (queue.is_inherited() || most < 0) {
        errno = most < 0 ? EINVAL : EIO;
        return -1;
    }
    if (!queue.engine_side) return 0;
    if (int found = take(queue, most, into)) return found;
    Engine::get().poll();
    return take(queue, most, into);
}

void fill_readers(ibv_cq_ex& face) {
    face.start_poll = start_poll;
    face.next_poll = next_poll;
    face.end_poll = end_poll;
    face.read_opcode = [](ibv_cq_ex* queue) { return opcode_of(of(queue).current); };
    face.read_vendor_err = [](ibv_cq_ex*) -> std::uint32_t { return 0; };
    face.read_byte_len = [](ibv_cq_ex* queue) { return of(queue).current.bytes; };
    face.read_imm_data = [](ibv_cq_ex* queue) -> __be32 { return word_of(of(queue).current); };
    face.read_qp_num = [](ibv_cq_ex* queue) { return of(queue).current.queue_pair; };
    face.read_src_qp = [](ibv_cq_ex*) -> std::uint32_t { return 0; };
    face.read_wc_flags = [](ibv_cq_ex* queue) { return flags_of(of(queue).current); };
    face.read_slid = [](ibv_cq_ex*) -> std::uint32_t { return 0; };
    face.read_sl = [](ibv_cq_ex*) -> std::uint8_t { return 0; };
    face.read_dlid_path_bits = [](ibv_cq_ex*) -> std::uint8_t { return 0; };
}

}  // namespace weft::abi
