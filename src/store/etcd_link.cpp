// SPDX-License-Identifier: Apache-2.0
#include "store/etcd_link.hpp"

#include "base/check.hpp"
#include "store/etcd_codec.hpp"
#include "store/http_client.hpp"

namespace weft::store {
namespace {

constexpr Duration pause_after_all = std::chrono::milliseconds(100);

}  // namespace

/// A connection to a member, and the question that is put to it.
class EtcdLink::Exchange final : public StreamEngine {
public:
    Exchange(EtcdLink& owner, const Address& member) : owner_(owner), member_(member) {}
    ~Exchange() { *alive_ = false; }

    Result<void> connect() {
        WEFT_TRY(stream_, owner_.world_.connect(member_, *this));
        return {};
    }
    void ask(const std::string& path, const std::string& body) {
        outgoing_ = http_post(member_.host, path, body);
        gone_ = 0;
        reader_ = {};
        asked_ = true;
        until_ = owner_.world_.now() + owner_.patience_;
        stream_->wake();
    }

    Buffer want() override { return scratch_; }
    void filled(std::size_t count) override {
        auto complete = asked_
                            ? reader_.take({reinterpret_cast<const char*>(scratch_.data()), count})
                            : Result<bool>(Error{.code = Code::malformed});
        if (!complete) return end(complete.error());
        if (*complete) answered();
    }
    std::size_t pending(std::span<ConstBuffer> pieces) override {
        if (gone_ == outgoing_.size()) return 0;
        pieces[0] = std::as_bytes(std::span(outgoing_)).subspan(gone_);
        return 1;
    }
    void sent(std::size_t count) override { gone_ += count; }
    bool finished() const override { return over_; }
    std::optional<Instant> deadline() const override {
        return asked_ ? std::optional(until_) : std::nullopt;
    }
    void tick(Instant now) override {
        if (asked_ && now >= until_) end({.code = Code::timed_out});
    }
    void closed(std::optional<Error> why) override {
        if (asked_ && reader_.ends_with_connection()) answered();
        end(why.value_or(Error{.code = Code::disconnected}));
    }
    bool over() const { return over_; }

private:
    void answered() {
        asked_ = false;
        over_ = over_ || !reader_.stays_open();
        if (reader_.status() == 200) return tell(reader_.body());
        // Of a question that another member may have carried out already, want of space says
        // nothing.
        if (auto refusal = parse_etcd_refusal(reader_.status(), reader_.body());
            refusal && (owner_.tried_ == 0 || refusal->code != Code::exhausted))
            return tell(*refusal);
        over_ = true;
        later([](EtcdLink& link) { link.failed({.code = Code::exhausted}); });
    }
    void end(Error why) {
        over_ = true;
        if (!std::exchange(asked_, false)) return;
        later([why](EtcdLink& link) { link.failed(why); });
    }
    void tell(Result<std::string> body) {
        later([body = std::move(body)](EtcdLink& link) { link.heard(body); });
    }
    /// The world is calling us, and what follows may end us.
    void later(auto task) {
        owner_.world_.defer([owner = &owner_, alive = alive_, task = std::move(task)] {
            if (*alive) task(*owner);
        });
    }

    EtcdLink& owner_;
    Address member_;
    std::unique_ptr<Stream> stream_;
    std::array<std::byte, 16384> scratch_{};
    std::string outgoing_;
    std::size_t gone_ = 0;
    HttpAnswerReader reader_;
    Instant until_{};
    bool asked_ = false;
    bool over_ = false;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

EtcdLink::EtcdLink(World& world, std::vector<Address> members, Duration patience)
    : world_(world),
      members_(std::move(members)),
      patience_(patience),
      retry_(world.make_timer([this] { put(); })) {
    WEFT_CHECK(!members_.empty());
}

EtcdLink::~EtcdLink() {
    *alive_ = false;
}

void EtcdLink::ask(const char* path, std::string body, Told told) {
    WEFT_CHECK(!told_);
    path_ = path;
    body_ = std::move(body);
    told_ = std::move(told);
    tried_ = 0;
    put();
}

void EtcdLink::put() {
    if (!told_) return;
    if (exchange_ && exchange_->over()) exchange_.reset();
    if (!exchange_) {
        exchange_ = std::make_unique<Exchange>(*this, members_[at_]);
        if (auto connected = exchange_->connect(); !connected) {
            world_.defer([this, alive = alive_, why = connected.error()] {
                if (*alive) failed(why);
            });
            return;
        }
    }
    exchange_->ask(path_, body_);
}

void EtcdLink::heard(Result<std::string> body) {
    auto told = std::exchange(told_, nullptr);
    if (told) told(std::move(body));
}

void EtcdLink::failed(Error why) {
    trouble_ = why;
    exchange_.reset();
    at_ = (at_ + 1) % members_.size();
    if (++tried_ % members_.size() != 0) return put();
    retry_->set(world_.now() + pause_after_all);
}

void EtcdLink::give_up() {
    told_ = nullptr;
    retry_->cancel();
    exchange_.reset();
}

}  // namespace weft::store
