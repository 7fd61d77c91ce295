// SPDX-License-Identifier: Apache-2.0
// Any octets as what an initiator says once it is let in: a real target with a disk that lends its
// memory and answers at once, and one that does neither. Whatever is said, on one connection or on
// two of the same session, in the end every task has come back and nothing is left of the session.
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "block/heap_memory.hpp"
#include "block/memory_disk.hpp"
#include "fuzz/drive.hpp"
#include "fuzz/slow_disk.hpp"
#include "iscsi/target_connection.hpp"
#include "iscsi/tcp_target_mover.hpp"
#include "scsi/target.hpp"
#include "wire/iscsi_login.hpp"
#include "wire/iscsi_text.hpp"

namespace weft::iscsi {
namespace {

constexpr std::size_t disk_bytes = 256u << 10;
constexpr const char* target_name = "iqn.a";
/// Far more than any run needs before all is over.
constexpr std::size_t turns_max = 100'000;

/// How the session is to be, by the bits of one octet.
struct Manner {
    bool recovering, asked_for_all, two_connections, small_segments, thin, slow_erasure;

    explicit Manner(unsigned bits)
        : recovering((bits & 1) != 0),
          asked_for_all((bits & 2) != 0),
          two_connections((bits & 4) != 0),
          small_segments((bits & 8) != 0),
          thin((bits & 16) == 0),
          slow_erasure((bits & 32) != 0) {}
};

class Bench {
public:
    explicit Bench(const Manner& manner)
        : memory_(std::make_unique<block::HeapMemory>(disk_bytes), disk_bytes),
          slow_(memory_),
          pool_({.bytes = 64u << 20, .reserve_bytes = 64u << 10, .idle_bytes = 1u << 20}),
          target_({.name = target_name,
                   .pool = &pool_,
                   .surroundings = {.now = [this] { return now_; },
                                    .call_later =
                                        [this](Duration, std::function<void()> task) {
                                            deferred_.push_back(std::move(task));
                                        }}}),
          node_({.now = [this] { return now_; },
                 .defer =
                     [this](std::function<void()> task) { deferred_.push_back(std::move(task)); },
                 .chance = [](Buffer octets) { std::ranges::fill(octets, std::byte{9}); }}) {
        target_.add_port(1, 1);
        scsi::UnitOptions options{.thin = manner.thin, .removable = true};
        if (manner.slow_erasure) options.erasure_time = std::chrono::seconds(2);
        WEFT_CHECK(target_.add_unit(0, memory_, options));
        WEFT_CHECK(target_.add_unit(1, slow_, options));
        WEFT_CHECK(node_.offer(target_name, target_, {}));
    }
    ~Bench() {
        run_until([this] { return node_.quiet(); });
        bool drained = false;
        target_.drain([&] { drained = true; });
        run_until([&] { return drained; });
    }

    TargetNode& node() { return node_; }
    /// Time goes by, the slow disk may answer, and what was put off happens.
    bool take_a_turn() {
        now_ = now_ + std::chrono::milliseconds(10);
        bool moved = ++turns_ % 4 == 0 && slow_.answer();
        for (auto left = deferred_.size(); left > 0; --left) {
            auto task = std::move(deferred_.front());
            deferred_.pop_front();
            task();
        }
        return moved;
    }
    Instant now() const { return now_; }

private:
    void run_until(const std::function<bool()>& over) {
        for (std::size_t turn = 0; !over(); ++turn) {
            WEFT_CHECK(turn < turns_max);
            take_a_turn();
        }
    }

    Instant now_{1'000'000'000};
    std::size_t turns_ = 0;
    std::deque<std::function<void()>> deferred_;
    block::MemoryDisk memory_;
    fuzz::SlowDisk slow_;
    block::BufferPool pool_;
    scsi::Target target_;
    TargetNode node_;
};

/// One connection, logged in, and what its initiator will say.
class Side {
public:
    explicit Side(TargetNode& node)
        : connection_(node, {.peer = "fuzz", .local = Address::tcp("192.0.2.1", 3260)},
                      {.logged_in = {}, .gone = [this] { gone_ = true; }}),
          mover_(connection_, [] {}) {
        connection_.use(mover_);
    }
    ~Side() {
        mover_.closed(std::nullopt);
        WEFT_CHECK(gone_);
    }

    /// The session's handle, which the second connection names.
    std::uint16_t log_in(const Manner& manner, std::uint16_t handle) {
        std::array<std::byte, 512> text{};
        wire::TextWriter writer(text);
        auto add = [&](const char* key, const char* value) { WEFT_CHECK(writer.add(key, value)); };
        add("InitiatorName", "iqn.b");
        add("TargetName", target_name);
        if (manner.small_segments) add("MaxRecvDataSegmentLength", "512");
        if (handle == 0) {
            add("MaxConnections", "2");
            if (manner.recovering) add("ErrorRecoveryLevel", "1");
            add("InitialR2T", manner.asked_for_all ? "Yes" : "No");
            if (manner.asked_for_all) add("ImmediateData", "No");
        }
        text[writer.size()] = std::byte{};
        std::array<std::byte, wire::basic_header_size> header{};
        encode(wire::LoginRequestPdu{.transit = true,
                                     .current_stage = wire::LoginStage::operational_negotiation,
                                     .next_stage = wire::LoginStage::full_feature_phase,
                                     .data_length = static_cast<std::uint32_t>(writer.size()),
                                     .initiator_session_id = {0x80, 0, 0, 0, 0, 1},
                                     .target_session_handle = handle,
                                     .connection_id = static_cast<std::uint16_t>(handle != 0)},
               header);
        give(header);
        give(ConstBuffer(text).first((writer.size() + 3) / 4 * 4));
        WEFT_CHECK(connection_.session() != nullptr);
        while (fuzz::send_some(mover_, 4096)) continue;
        return connection_.session()->handle();
    }
    void listen_to(ConstBuffer words) { words_ = words; }
    /// A piece of what is said and a piece of what is answered. False: nothing moved.
    bool move(std::size_t step) {
        if (mover_.finished()) return false;
        bool moved = fuzz::send_some(mover_, step);
        const Buffer place = mover_.want();
        const auto count = std::min({place.size(), words_.size(), step});
        if (count == 0) return moved;
        give(words_.first(count));
        words_ = words_.subspan(count);
        return true;
    }
    void tick(Instant now) {
        if (!gone_) connection_.tick(now);
    }

private:
    void give(ConstBuffer octets) {
        while (!octets.empty()) {
            const Buffer place = mover_.want();
            const auto count = std::min(place.size(), octets.size());
            WEFT_CHECK(count > 0);
            std::memcpy(place.data(), octets.data(), count);
            octets = octets.subspan(count);
            mover_.filled(count);
            if (mover_.finished()) return;
        }
    }

    bool gone_ = false;
    TargetConnection connection_;
    TcpTargetMover mover_;
    ConstBuffer words_;
};

void converse(const Manner& manner, std::size_t step, ConstBuffer first, ConstBuffer second) {
    Bench bench(manner);
    std::optional<Side> one(std::in_place, bench.node()), two;
    auto handle = one->log_in(manner, 0);
    one->listen_to(first);
    if (manner.two_connections) {
        two.emplace(bench.node());
        two->log_in(manner, handle);
        two->listen_to(second);
    }
    for (bool moved = true; moved;) {
        moved = one->move(step);
        if (two) moved |= two->move(step);
        moved |= bench.take_a_turn();
        one->tick(bench.now());
        if (two) two->tick(bench.now());
    }
}

}  // namespace
}  // namespace weft::iscsi

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace weft;
    if (size < 4) return 0;
    const iscsi::Manner manner(data[0]);
    const std::size_t step = 1 + std::size_t{data[1]} * 8;
    const auto words = std::as_bytes(std::span(data, size)).subspan(4);
    const std::size_t cut =
        manner.two_connections ? (data[2] * 256u + data[3]) % (words.size() + 1) : words.size();
    iscsi::converse(manner, step, words.first(cut), words.subspan(cut));
    return 0;
}
