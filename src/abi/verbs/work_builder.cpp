// SPDX-License-Identifier: Apache-2.0
#include "abi/verbs/work_builder.hpp"

#include <algorithm>
#include <new>

#include "abi/verbs/acknowledgements.hpp"
#include "abi/verbs/work_request.hpp"

namespace weft::abi {

/// Requests of one batch. Its vectors keep their room, so a program that sends batches of one size
/// allocates in the first of them only.
struct WorkBuilder {
    struct Part {
        std::size_t first_piece = 0, pieces = 0;
        std::size_t first_byte = 0, bytes = 0;  ///< inlined: copied already
        std::optional<verbs::WindowBinding> binding{};
        ibv_mw* window = nullptr;
    };

    std::vector<verbs::SendRequest> requests;
    std::vector<Part> parts;  ///< one for each of them: what it points to
    std::vector<verbs::LocalMemory> pieces;
    std::vector<std::byte> inlined;
    verbs::SendRequest spare;  ///< described where there was no room for one more
    int failed = 0;            ///< the first errno: the batch is then refused as a whole
    pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;  ///< of the thread that builds

    void clear() {
        requests.clear();
        parts.clear();
        pieces.clear();
        inlined.clear();
        failed = 0;
    }
    void fail(int why) {
        if (!failed) failed = why;
    }
    /// Adds something; what there is no memory for is told at the end, as all of a batch is.
    template <class Add>
    void add(Add what) {
        if (failed) return;
        try {
            what();
        } catch (const std::bad_alloc&) {
            fail(ENOMEM);
        }
    }
    /// The vectors have stopped moving: now the requests can point into them.
    void join() {
        for (std::size_t i = 0; i < requests.size(); ++i) {
            auto& part = parts[i];
            if (part.bytes > 0)
                pieces[part.first_piece].address =
                    reinterpret_cast<std::uintptr_t>(inlined.data() + part.first_byte);
            requests[i].local = std::span(pieces).subspan(part.first_piece, part.pieces);
            if (part.binding) requests[i].binding = &*part.binding;
        }
    }
};

namespace {

QueuePair& of(ibv_qp_ex* face) {
    return static_cast<QueuePair&>(*face);
}

verbs::SendRequest& begin(ibv_qp_ex* face, verbs::Operation operation) {
    auto& queue_pair = of(face);
    auto& builder = *queue_pair.builder;
    if (builder.requests.size() >= queue_pair.limits.max_send_wr) builder.fail(ENOMEM);
    builder.add([&] {
        builder.parts.push_back({.first_piece = builder.pieces.size()});
        builder.requests.push_back(
            {.id = face->wr_id,
             .operation = operation,
             .signalled = queue_pair.all_signalled || (face->wr_flags & IBV_SEND_SIGNALED),
             .solicited = (face->wr_flags & IBV_SEND_SOLICITED) != 0,
             .fenced = (face->wr_flags & IBV_SEND_FENCE) != 0});
    });
    return builder.failed ? builder.spare : builder.requests.back();
}

verbs::SendRequest& begin_remote(ibv_qp_ex* face, verbs::Operation operation, std::uint32_t key,
                                 std::uint64_t address) {
    auto& request = begin(face, operation);
    request.remote = {address, SteeringTag{key}};
    return request;
}

/// Of the request named last, which may have them once.
void set_pieces(ibv_qp_ex* face, std::span<const ibv_sge> list) {
    auto& queue_pair = of(face);
    auto& builder = *queue_pair.builder;
    bool wanted = !builder.parts.empty() && builder.parts.back().pieces == 0;
    if (!wanted || list.size() > queue_pair.limits.max_send_sge) return builder.fail(EINVAL);
    builder.add([&] {
        for (auto& each : list)
            builder.pieces.push_back({each.addr, each.length, SteeringTag{each.lkey}});
        builder.parts.back().pieces = list.size();
    });
}

void set_inlined(ibv_qp_ex* face, std::span<const ibv_data_buf> list) {
    auto& queue_pair = of(face);
    auto& builder = *queue_pair.builder;
    std::size_t bytes = 0, room = queue_pair.limits.max_inline_data;
    for (auto& each : list) {
        if (each.length > room - bytes) return builder.fail(EINVAL);
        bytes += each.length;
    }
    bool wanted = !builder.parts.empty() && builder.parts.back().pieces == 0;
    if (!wanted) return builder.fail(EINVAL);
    builder.add([&] {
        auto& part = builder.parts.back();
        part.first_byte = builder.inlined.size();
        for (auto& each : list) {
            auto* from = static_cast<const std::byte*>(each.addr);
            builder.inlined.insert(builder.inlined.end(), from, from + each.length);
        }
        part.bytes = bytes;
        builder.requests.back().inlined = true;
        if (bytes == 0) return;
        builder.pieces.push_back({.size = static_cast<std::uint32_t>(bytes)});
        part.pieces = 1;
    });
}

void bind(ibv_qp_ex* face, ibv_mw* window, std::uint32_t key, const ibv_mw_bind_info* info) {
    begin(face, verbs::Operation::bind_window);
    auto& builder = *of(face).builder;
    if (!window || window->type != IBV_MW_TYPE_2) return builder.fail(EINVAL);
    if (builder.failed) return;
    builder.parts.back().binding = binding_of(key, *info);
    builder.parts.back().window = window;
}

void start(ibv_qp_ex* face) {
    auto& builder = *of(face).builder;
    ::pthread_mutex_lock(&builder.turn);
    builder.clear();
}

void abort(ibv_qp_ex* face) {
    ::pthread_mutex_unlock(&of(face).builder->turn);
}

int post(QueuePair& queue_pair, WorkBuilder& builder) {
    if (builder.failed) return builder.failed;
    builder.join();
    Hold hold;
    if (int wrong = why_unusable(queue_pair)) return wrong;
    auto good = queue_pair.engine_side->check(builder.requests);
    if (!good) return errno_of(good.error());
    for (std::size_t i = 0; i < builder.requests.size(); ++i) {
        auto posted = queue_pair.engine_side->post(builder.requests[i]);
        if (!posted) return errno_of(posted.error());
        auto& part = builder.parts[i];
        if (part.window) part.window->rkey = static_cast<std::uint32_t>(part.binding->window);
    }
    Engine::get().push();
    return 0;
}

int complete(ibv_qp_ex* face) {
    auto& queue_pair = of(face);
    int failed = post(queue_pair, *queue_pair.builder);
    ::pthread_mutex_unlock(&queue_pair.builder->turn);
    return failed;
}

void refuse_work(ibv_qp_ex* face) {
    of(face).builder->fail(EOPNOTSUPP);
}

/// What exists on other transports only.
void fill_refusals(ibv_qp_ex& face) {
    face.wr_send_imm = [](ibv_qp_ex* pair, __be32) { refuse_work(pair); };
    face.wr_send_tso = [](ibv_qp_ex* pair, void*, std::uint16_t, std::uint16_t) {
        refuse_work(pair);
    };
    face.wr_set_ud_addr = [](ibv_qp_ex* pair, ibv_ah*, std::uint32_t, std::uint32_t) {
        refuse_work(pair);
    };
    face.wr_set_xrc_srqn = [](ibv_qp_ex* pair, std::uint32_t) { refuse_work(pair); };
    face.wr_atomic_write = [](ibv_qp_ex* pair, std::uint32_t, std::uint64_t, const void*) {
        refuse_work(pair);
    };
}

void fill_operations(ibv_qp_ex& face) {
    using enum verbs::Operation;
    using Key = std::uint32_t;
    using Address = std::uint64_t;
    face.wr_atomic_cmp_swp = [](ibv_qp_ex* pair, Key key, Address at, std::uint64_t compare,
                                std::uint64_t swap) {
        auto& request = begin_remote(pair, compare_and_swap, key, at);
        request.compare = compare;
        request.operand = swap;
    };
    face.wr_atomic_fetch_add = [](ibv_qp_ex* pair, Key key, Address at, std::uint64_t add) {
        begin_remote(pair, fetch_and_add, key, at).operand = add;
    };
    face.wr_bind_mw = bind;
    face.wr_local_inv = [](ibv_qp_ex* pair, Key key) {
        begin(pair, local_invalidate).invalidate = SteeringTag{key};
    };
    face.wr_rdma_read = [](ibv_qp_ex* pair, Key key, Address at) {
        begin_remote(pair, read, key, at);
    };
    face.wr_rdma_write = [](ibv_qp_ex* pair, Key key, Address at) {
        begin_remote(pair, write, key, at);
    };
    face.wr_rdma_write_imm = [](ibv_qp_ex* pair, Key key, Address at, __be32 immediate) {
        begin_remote(pair, write_immediate, key, at).immediate = ntohl(immediate);
    };
    face.wr_send = [](ibv_qp_ex* pair) { begin(pair, send); };
    face.wr_send_inv = [](ibv_qp_ex* pair, Key key) {
        begin(pair, send_invalidate).invalidate = SteeringTag{key};
    };
}

void fill_setters(ibv_qp_ex& face) {
    face.wr_set_inline_data = [](ibv_qp_ex* pair, void* at, std::size_t length) {
        ibv_data_buf one{at, length};
        set_inlined(pair, {&one, 1});
    };
    face.wr_set_inline_data_list = [](ibv_qp_ex* pair, std::size_t count,
                                      const ibv_data_buf* list) {
        set_inlined(pair, {list, count});
    };
    face.wr_set_sge = [](ibv_qp_ex* pair, std::uint32_t key, std::uint64_t at,
                         std::uint32_t length) {
        ibv_sge one{at, length, key};
        set_pieces(pair, {&one, 1});
    };
    face.wr_set_sge_list = [](ibv_qp_ex* pair, std::size_t count, const ibv_sge* list) {
        set_pieces(pair, {list, count});
    };
}

}  // namespace

bool can_build(std::uint64_t send_ops_flags) {
    constexpr std::uint64_t all = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                                  IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ |
                                  IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV |
                                  IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV;
    return (send_ops_flags & ~all) == 0;
}

void add_builder(QueuePair& queue_pair) {
    constexpr std::uint32_t usual_batch = 64;
    auto batch = std::min(queue_pair.limits.max_send_wr, usual_batch);
    queue_pair.builder = {new WorkBuilder, [](WorkBuilder* builder) { delete builder; }};
    auto& builder = *queue_pair.builder;
    builder.requests.reserve(batch);
    builder.parts.reserve(batch);
    builder.pieces.reserve(std::size_t{batch} * queue_pair.limits.max_send_sge);
    builder.inlined.reserve(std::size_t{batch} * queue_pair.limits.max_inline_data);
    fill_operations(queue_pair);
    fill_refusals(queue_pair);
    fill_setters(queue_pair);
    queue_pair.wr_start = start;
    queue_pair.wr_complete = complete;
    queue_pair.wr_abort = abort;
}

}  // namespace weft::abi
