// SPDX-License-Identifier: Apache-2.0
// A host's session with the controller of its volume: an iSCSI session on which it has said hello.
// A session that is lost is begun anew, again and again, and says which one it was before. Where
// several controllers are known it goes from one to the next until one that is in office takes it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "node/iscsi_initiator.hpp"
#include "wire/array_host.hpp"

namespace weft::node {

class VolumeSession {
public:
    struct Options {
        std::vector<Address> controllers;  ///< one at least
        std::string volume;
        std::string host_name;
        wire::HostIdentity identity{};
        bool over_rdma = true;
        /// Where boxes reach the host.
        Octets<16> network_address{};
        std::uint16_t port = 0;
        /// A command that takes longer is broken off, and may be sent again. Zero: none is, as long
        /// as the controller answers pings. How long a request waits is for the controller to say.
        Duration command_patience{};
    };
    /// Whether it may help to wait: where one of several controllers is about to take office.
    enum class Hope : std::uint8_t { none, some };
    struct Holder {
        /// For the first time, or again.
        std::function<void(const wire::HostWelcome&)> welcomed;
        /// session() is over; its commands end after this. Told also where there never was one,
        /// with none of the controllers: `why` is a sentence.
        std::function<void(const std::string& why, Hope hope)> lost;
    };

    /// Nothing is told from inside, and it must not be destroyed from inside what it tells.
    VolumeSession(World& world, std::shared_ptr<IscsiTransport> transport, Options options,
                  Holder holder);
    VolumeSession(const VolumeSession&) = delete;
    VolumeSession& operator=(const VolumeSession&) = delete;
    /// No command may be under way but our own. The connection ends soon after.
    ~VolumeSession();

    /// From welcomed() to lost().
    iscsi::InitiatorSession& session();
    /// The controller has forgotten us.
    void hello_again();
    /// Ends the session there is, and all its commands.
    void break_off();
    /// Says goodbye and logs out, if there is a session; nothing more is told. finished() will be.
    void leave();
    bool finished() const { return leaving_ && !attempt_; }

private:
    class Greeting;
    struct Attempt;
    enum class From : std::uint8_t { another, in_office };
    /// What one of the controllers, or what is in its place, had to say.
    struct Answer {
        std::string sentence;
        From from = From::another;
        Hope hope = Hope::none;
    };

    void begin();
    void say_hello();
    void greeting_ended(const iscsi::CommandEnd& end);
    void gave_up(Error why);
    Answer answer_for(Error why, wire::LoginStatus status);
    void begin_round();
    void take(const Answer& answer);
    Answer of_them_all(const Answer& last) const;

    World& world_;
    std::shared_ptr<IscsiTransport> transport_;
    Options options_;
    Holder holder_;
    std::shared_ptr<Attempt> attempt_;  ///< none between two
    wire::HostSession number_{};        ///< of the last session there was
    std::optional<Answer> trouble_;     ///< why we end the session ourselves
    std::size_t at_ = 0;                ///< which of the controllers
    std::size_t tried_ = 0;             ///< in vain, one after the other
    std::optional<Answer> in_office_;   ///< of those that were tried
    std::string others_;                ///< what the rest of them said, and where
    std::unique_ptr<Timer> retry_;
    std::unique_ptr<Timer> unheard_;  ///< of several controllers this one says nothing
    Duration pause_;
    Duration welcome_patience_;
    bool welcomed_ = false;
    bool leaving_ = false;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace weft::node
