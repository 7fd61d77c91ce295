// SPDX-License-Identifier: Apache-2.0
// Any octets as what an iSCSI target says to our initiator: its login, what it is, and the answers
// to one request of every kind, twice. Whatever it hears, each completes exactly once.
#include <deque>
#include <vector>

#include "fuzz/drive.hpp"
#include "iscsi/initiator_disk.hpp"
#include "iscsi/tcp_initiator_mover.hpp"

namespace weft {
namespace {

class Request final : public BlockRequest {
public:
    explicit Request(std::size_t kind) : memory_(kind < 2 ? 1024 : 0) {
        operation = static_cast<BlockOperation>(kind);
        length = operation == BlockOperation::flush ? 0 : 1024;
        offset = operation == BlockOperation::flush ? 0 : 512 * kind;
        pieces_ = {Buffer(memory_).first(memory_.size() / 3),
                   Buffer(memory_).subspan(memory_.size() / 3)};
        memory = pieces_;
        if (operation == BlockOperation::status) extents = room_;
    }
    void completed(Result<void>) override { ++completions; }
    int completions = 0;

private:
    std::vector<std::byte> memory_;
    std::array<Buffer, 2> pieces_;
    std::array<Extent, 3> room_;
};

class Host final : public iscsi::InitiatorSessionUser {
public:
    explicit Host(bool digests) : session_(options(digests), *this) {}

    static iscsi::SessionOptions options(bool digests) {
        iscsi::SessionOptions options;
        options.initiator_name = "iqn.a";
        options.target_name = "iqn.b";
        options.initiator_session_id = {0x80, 0, 0, 0, 0, 1};
        options.wishes.terms.initial_r2t = false;
        options.wishes.terms.max_outstanding_r2t = 2;
        options.wishes.header_digest = options.wishes.data_digest =
            digests ? iscsi::DigestWish::if_wanted : iscsi::DigestWish::never;
        return options;
    }
    void connection_wanted(std::size_t index) override {
        mover.emplace(session_.connection(index));
        session_.attach(index, *mover);
    }
    void connection_unwanted(std::size_t) override {}
    void fill_with_chance(Buffer octets) override { std::ranges::fill(octets, std::byte{9}); }
    Instant time() const override { return {}; }
    void session_up() override {
        disk_.session_up([](Result<void>) {});
    }
    void session_down(Error) override { ++downs; }
    void deadline_changed() override {}

    int downs = 0;
    std::optional<iscsi::TcpInitiatorMover> mover;
    iscsi::InitiatorSession session_;
    iscsi::InitiatorDisk disk_{session_, wire::LogicalUnit::first, 65536};
};

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace weft;
    std::deque<Request> requests;
    Host host(size > 0 && (data[0] & 1) != 0);
    auto submit_all = [&] {
        for (std::size_t kind = 0; kind <= static_cast<std::size_t>(BlockOperation::status); ++kind)
            host.disk_.submit(requests.emplace_back(kind));
    };
    submit_all();
    submit_all();
    host.session_.begin();
    host.mover->opened();
    fuzz::drive(*host.mover, std::as_bytes(std::span(data, size)), [&, pieces = 0]() mutable {
        if (++pieces == 200) host.session_.leave();
        return false;
    });
    WEFT_CHECK(host.downs == 1 && host.session_.down());
    host.disk_.give_up({.code = Code::disconnected});
    for (const auto& request : requests) WEFT_CHECK(request.completions == 1);
    return 0;
}
