// SPDX-License-Identifier: Apache-2.0
#include "abi/sockets/endpoint.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/check.hpp"

namespace weft::abi::sockets {
namespace {

constexpr std::uint64_t is_receive = 1ull << 63;
/// So that descriptions and messages always go inline, whatever the application asks for.
constexpr std::uint32_t inline_bytes_min = sizeof(Mapping);

std::uint64_t address_of(const void* memory) {
    return reinterpret_cast<std::uintptr_t>(memory);
}

}  // namespace

bool set_nonblocking(int descriptor) {
    int flags = ::fcntl(descriptor, F_GETFL);
    return flags >= 0 && ::fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0;
}

bool RegisteredMemory::allocate(ibv_pd* domain, std::size_t bytes, int access) {
    bytes_.resize(bytes);
    region_ = ibv_reg_mr(domain, bytes_.data(), bytes, access);
    return region_ != nullptr;
}

RegisteredMemory::~RegisteredMemory() {
    if (region_) ibv_dereg_mr(region_);
}

std::unique_ptr<Endpoint> Endpoint::make(rdma_cm_id& id, Settings& settings) {
    auto made = std::make_unique<Endpoint>(id);
    if (!made->make_queues(settings) || !made->make_memory(settings)) {
        int why = errno;
        made.reset();
        errno = why;
    }
    return made;
}

Endpoint::~Endpoint() {
    if (has_queue_pair_) rdma_destroy_qp(&id_);
    if (completions_) {
        ibv_ack_cq_events(completions_, events_taken_);
        ibv_destroy_cq(completions_);
    }
    if (channel_) ibv_destroy_comp_channel(channel_);
}

bool Endpoint::make_queues(Settings& settings) {
    ibv_device_attr device{};
    if (int why = ibv_query_device(id_.verbs, &device); why != 0) {
        errno = why;
        return false;
    }
    auto most = std::min(static_cast<std::uint32_t>(device.max_qp_wr), limits::queue_entries_max);
    settings.send_entries = std::clamp(settings.send_entries, limits::queue_entries_min, most);
    settings.receive_entries = std::clamp(settings.receive_entries, limits::queue_entries_min,
                                          most - limits::control_receives);
    auto receives = settings.receive_entries + limits::control_receives;

    channel_ = ibv_create_comp_channel(id_.verbs);
    if (!channel_ || !set_nonblocking(channel_->fd)) return false;
    completions_ = ibv_create_cq(id_.verbs, static_cast<int>(settings.send_entries + receives),
                                 nullptr, channel_, 0);
    if (!completions_) return false;

    ibv_qp_init_attr wishes{};
    wishes.send_cq = wishes.recv_cq = completions_;
    wishes.qp_type = IBV_QPT_RC;
    wishes.cap = {.max_send_wr = settings.send_entries,
                  .max_recv_wr = receives,
                  .max_send_sge = 2,
                  .max_recv_sge = 1,
                  .max_inline_data = std::max(settings.inline_bytes, inline_bytes_min)};
    if (rdma_create_qp(&id_, nullptr, &wishes) != 0) return false;
    has_queue_pair_ = true;
    inline_bytes_ =
        std::min(wishes.cap.max_inline_data, std::max(settings.inline_bytes, inline_bytes_min));
    if (inline_bytes_ < inline_bytes_min) {
        errno = ENOTSUP;
        return false;
    }
    return true;
}

bool Endpoint::make_memory(const Settings& settings) {
    constexpr int from_afar = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    auto receives = settings.receive_entries + limits::control_receives;
    if (!send_ring_.allocate(id_.pd, settings.send_bytes, IBV_ACCESS_LOCAL_WRITE) ||
        !receive_ring_.allocate(id_.pd, settings.receive_bytes, from_afar) ||
        !slots_.allocate(id_.pd, StreamMemory::slots_size(settings.mappings), from_afar) ||
        !inbox_.allocate(id_.pd, receives * sizeof(std::uint32_t), IBV_ACCESS_LOCAL_WRITE))
        return false;
    StreamMemory memory{.send_ring = send_ring_.bytes(),
                        .receive_ring = receive_ring_.bytes(),
                        .slots = slots_.bytes(),
                        .receive_key = receive_ring_->rkey,
                        .slots_key = slots_->rkey};
    stream_ = std::make_unique<Stream>(static_cast<Carrier&>(*this), memory, settings.send_entries,
                                       static_cast<std::uint16_t>(settings.receive_entries));
    emptied_.resize(receives);
    std::iota(emptied_.begin(), emptied_.end(), 0u);
    bool posted = post_receives(emptied_);
    emptied_.clear();
    return posted;
}

bool Endpoint::post_receives(std::span<const std::uint32_t> slots) {
    constexpr std::size_t at_a_time = 32;
    std::array<ibv_recv_wr, at_a_time> requests;
    std::array<ibv_sge, at_a_time> places;
    while (!slots.empty()) {
        auto batch = slots.first(std::min(slots.size(), at_a_time));
        for (std::size_t i = 0; i < batch.size(); ++i) {
            places[i] = {address_of(inbox_.bytes().data()) + batch[i] * sizeof(std::uint32_t),
                         sizeof(std::uint32_t), inbox_->lkey};
            bool is_last = i + 1 == batch.size();
            requests[i] = {is_receive | batch[i], is_last ? nullptr : &requests[i + 1], &places[i],
                           1};
        }
        ibv_recv_wr* refused = nullptr;
        if (int why = ibv_post_recv(id_.qp, requests.data(), &refused); why != 0) {
            errno = why;
            return false;
        }
        slots = slots.subspan(batch.size());
    }
    return true;
}

void Endpoint::digest() {
    std::array<ibv_wc, 32> completions;
    int count = 0;
    do {
        count = ibv_poll_cq(completions_, static_cast<int>(completions.size()), completions.data());
        for (int i = 0; i < count; ++i) digest(completions[static_cast<std::size_t>(i)]);
    } while (count == static_cast<int>(completions.size()));
    if (count < 0) stream_->lost();
    if (stream_->is_connected() && !post_receives(emptied_)) stream_->lost();
    emptied_.clear();
    stream_->grant();
}

void Endpoint::digest(const ibv_wc& completion) {
    bool is_good = completion.status == IBV_WC_SUCCESS;
    if (!(completion.wr_id & is_receive))
        return is_good ? stream_->done(Receipt::of(completion.wr_id)) : stream_->failed();
    // Receives end so with every connection, and that may be all there is to say.
    if (!is_good) return stream_->lost();
    auto slot = static_cast<std::uint32_t>(completion.wr_id);
    std::uint32_t word = 0;
    std::memcpy(&word, inbox_.bytes().data() + slot * sizeof word, sizeof word);
    emptied_.push_back(slot);
    stream_->heard(Message::of(word));
}

bool Endpoint::arm() {
    if (is_armed_) return false;
    is_armed_ = true;
    if (ibv_req_notify_cq(completions_, 0) != 0) stream_->lost();
    return true;
}

bool Endpoint::disarm() {
    ibv_cq* queue = nullptr;
    void* context = nullptr;
    // There is at most one: it is armed only when the last has been taken.
    if (ibv_get_cq_event(channel_, &queue, &context) != 0) return false;
    is_armed_ = false;
    if (++events_taken_ == limits::events_unacknowledged)
        ibv_ack_cq_events(completions_, std::exchange(events_taken_, 0u));
    return true;
}

namespace {

/// A chain of one or two requests, and what they point to.
struct Requests {
    std::array<ibv_send_wr, 2> list{};
    std::array<ibv_sge, 2> pieces{};
    ibv_sge word_place{};
    std::uint32_t word = 0;

    ibv_send_wr& write(std::span<const ConstBuffer> data, std::uint32_t key,
                       std::size_t inline_bytes, const Window& to) {
        WEFT_CHECK(data.size() <= pieces.size());
        std::size_t total = 0;
        for (std::size_t i = 0; i < data.size(); ++i) {
            pieces[i] = {address_of(data[i].data()), static_cast<std::uint32_t>(data[i].size()),
                         key};
            total += data[i].size();
        }
        auto& request = list[0];
        request.sg_list = pieces.data();
        request.num_sge = static_cast<int>(data.size());
        request.opcode = IBV_WR_RDMA_WRITE;
        request.send_flags = total <= inline_bytes ? IBV_SEND_INLINE : 0;
        request.wr.rdma = {to.address, to.key};
        return request;
    }
    ibv_send_wr& message(Message what, Receipt receipt) {
        word = what.word();
        word_place = {address_of(&word), sizeof word, 0};
        auto& request = list[1];
        request.wr_id = receipt.id();
        request.sg_list = &word_place;
        request.num_sge = 1;
        request.opcode = IBV_WR_SEND;
        request.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
        return request;
    }
};

bool post(ibv_qp* queue_pair, ibv_send_wr& first) {
    ibv_send_wr* refused = nullptr;
    return ibv_post_send(queue_pair, &first, &refused) == 0;
}

}  // namespace

bool Endpoint::say(Message message, Receipt receipt) {
    Requests requests;
    return post(id_.qp, requests.message(message, receipt));
}

bool Endpoint::write_and_say(std::span<const ConstBuffer> pieces, const Window& to, Message message,
                             Receipt receipt) {
    Requests requests;
    auto& first = requests.write(pieces, send_ring_->lkey, inline_bytes_, to);
    first.next = &requests.message(message, receipt);
    return post(id_.qp, first);
}

bool Endpoint::write(std::span<const ConstBuffer> pieces, const Window& to, Receipt receipt) {
    Requests requests;
    auto& only = requests.write(pieces, send_ring_->lkey, inline_bytes_, to);
    only.wr_id = receipt.id();
    only.send_flags |= IBV_SEND_SIGNALED;
    return post(id_.qp, only);
}

}  // namespace weft::abi::sockets
