// SPDX-License-Identifier: Apache-2.0
// One connection of the software RNIC: a stream, MPA's opening on it, and then the session of the
// queue pair it was made for. It is the engine the world drives, from the first octet to the last.
//
// An accepted one begins without a queue pair: that comes when the application has seen the request
// and accepts it.
#pragma once

#include <optional>
#include <vector>

#include "iwarp/startup.hpp"
#include "verbs/queue_pair.hpp"
#include "weft/rdma.hpp"
#include "weft/takes_ahead.hpp"

namespace weft::verbs {

/// Who hears of a connection before an application does: its listener.
class RequestSink {
public:
    virtual void requested(class ConnectionObject& connection) = 0;
    /// It ended before the application could be asked.
    virtual void abandoned(class ConnectionObject& connection) = 0;

protected:
    ~RequestSink() = default;
};

class ConnectionObject final : public Connection,
                               public StreamEngine,
                               public TakesAhead,
                               public Departing,
                               private QueuePairLink,
                               private Announced {
public:
    /// As initiator: connects, and joins the queue pair when the peer has accepted.
    static Result<std::unique_ptr<ConnectionObject>> connect(std::shared_ptr<DeviceCore> core,
                                                             const Address& address,
                                                             QueuePairObject& queue_pair,
                                                             const ConnectOptions& options,
                                                             ConnectionEvents& events);
    /// The same over a stream that is open: the request goes at once.
    static Result<std::unique_ptr<ConnectionObject>> connect_over(std::shared_ptr<DeviceCore> core,
                                                                  std::unique_ptr<Stream> stream,
                                                                  QueuePairObject& queue_pair,
                                                                  const ConnectOptions& options,
                                                                  ConnectionEvents& events);
    /// As responder: reads the request, of which `read_already` is the beginning, and tells the
    /// sink.
    static Result<std::unique_ptr<ConnectionObject>> respond(std::shared_ptr<DeviceCore> core,
                                                             std::unique_ptr<Stream> stream,
                                                             ConstBuffer read_already,
                                                             RequestSink& sink);
    explicit ConnectionObject(std::shared_ptr<DeviceCore> core) : core_(std::move(core)) {}
    ~ConnectionObject() override;

    void disconnect() override;
    ConstBuffer peer_private_data() const override { return peer_private_data_; }
    const ConnectionFacts& facts() const override { return facts_; }
    ConnectionTraffic traffic() const override { return traffic_; }
    std::optional<StreamCondition> condition() const override {
        return stream_ ? stream_->condition() : std::nullopt;
    }

    // For the request it came as.
    const iwarp::Startup& startup() const { return *startup_; }
    Address local() const { return stream_ ? stream_->local() : Address{}; }
    Address remote() const { return stream_ ? stream_->remote() : Address{}; }
    bool is_open() const { return stream_ != nullptr; }
    /// Whether the peer's request is here whole.
    bool has_request() const { return has_request_; }
    /// The application has it now: the sink hears nothing more.
    void leave_sink() { sink_ = nullptr; }
    Result<void> accept(QueuePairObject& queue_pair, const ConnectOptions& options,
                        ConnectionEvents& events);
    /// On success the device keeps the connection until its last word is sent.
    static Result<void> reject(std::unique_ptr<ConnectionObject>& connection,
                               ConstBuffer private_data);

    // What the world asks.
    void opened() override;
    Buffer want() override;
    void filled(std::size_t count) override;
    std::size_t take_ahead(ConstBuffer bytes) override;
    std::size_t pending(std::span<ConstBuffer> pieces) override;
    void sent(std::size_t count) override;
    bool finished() const override;
    std::optional<Instant> deadline() const override;
    void tick(Instant now) override;
    void closed(std::optional<Error> why) override;

private:
    enum class Stage : std::uint8_t { starting, running, over };
    enum class News : std::uint8_t { established, rejected, failed, disconnected };

    void wake() override;
    void peer_spoke() override;
    void queue_pair_failed() override { disconnect(); }
    void queue_pair_gone() override;
    void drop_stream() override;
    void announce() override;

    void prepare(QueuePairObject& queue_pair, const ConnectOptions& options,
                 ConnectionEvents& events);
    Result<void> take(ConstBuffer octets);
    void note(std::optional<iwarp::StartupEvent> event);
    void begin_session();
    void give_up(Error why);
    void hurry_close(Instant now);
    void tell(News news);
    void depart();
    void end(LifeEvent how, std::optional<Error> why);
    void release_queue_pair(LifeEvent how);
    iwarp::Session* session() { return queue_pair_ ? queue_pair_->session() : nullptr; }

    std::shared_ptr<DeviceCore> core_;
    std::unique_ptr<Stream> stream_;
    Stage stage_ = Stage::starting;
    iwarp::Role role_ = iwarp::Role::initiator;
    bool has_request_ = false;
    bool rejecting_ = false;
    bool established_told_ = false;
    ConnectOptions options_;                   ///< its private data is in ours
    std::vector<std::byte> private_data_;      ///< until the start-up has it
    std::unique_ptr<iwarp::Startup> startup_;  ///< until full operation
    std::optional<Error> failure_;             ///< why the start-up failed: close, and say so
    std::optional<Instant> close_by_;          ///< the session has ended, and its last words wait
    std::optional<Instant> hang_up_at_;  ///< after our rejection; until then the peer may read it
    QueuePairObject* queue_pair_ = nullptr;
    RequestSink* sink_ = nullptr;
    ConnectionEvents* events_ = nullptr;
    bool established_due_ = false;  ///< to be told, and before the end
    std::optional<News> end_due_;
    std::vector<std::byte> peer_private_data_;
    ConnectionFacts facts_;
    ConnectionTraffic traffic_;
};

}  // namespace weft::verbs
