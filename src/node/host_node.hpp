// SPDX-License-Identifier: Apache-2.0
// A host of an array: attached to one volume by way of its controller, reached by its boxes, and
// giving the volume as a BlockDevice to whoever exports it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "node/array_links.hpp"
#include "node/host_disk.hpp"
#include "node/volume_session.hpp"

namespace weft::node {

class HostNode {
public:
    struct Options {
        Address controller;
        /// Others that may be in office when that one is not.
        std::vector<Address> others{};
        std::string volume;
        std::string name;       ///< of this host, for people
        bool over_rdma = true;  ///< to the controller; between boxes and us it always is
        /// Where boxes connect to. No host: the address by which the controller is reached; the
        /// same is told to boxes where it is all addresses. No port: any.
        Address listen{};
        std::string reach{};  ///< not empty: what boxes are told instead
        /// How long to ask again, at first, where none of several controllers is in office, or the
        /// one that is waits for boxes: it may have taken over just now.
        Duration opening_patience = std::chrono::seconds(30);
        HostDisk::Options disk{};
        ArrayLinks::Options links{};
    };
    struct Holder {
        /// Once: device() is ready; or why it will not be, a sentence.
        std::function<void(std::optional<std::string>)> opened;
        /// Later, what people may want to know: the session was lost, and why, or is there again.
        std::function<void(const std::string&)> news;
    };

    /// Nothing is told from inside. Not to be destroyed from inside what it tells.
    HostNode(World& world, Options options, Holder holder);
    HostNode(const HostNode&) = delete;
    HostNode& operator=(const HostNode&) = delete;
    /// All requests must have completed.
    ~HostNode();

    HostDisk& device() { return *disk_; }
    ArrayLinks& links() { return *links_; }
    bool is_attached() const { return attached_; }
    /// Which it is, whatever it is called; once it was attached.
    const wire::VolumeIdentity& volume() const { return volume_; }

    /// All requests fail now: for an owner who cannot wait any longer. What may still be under way
    /// at the boxes does not reach our memory any more.
    void break_off();
    /// Says goodbye to the controller. Run the world until finished().
    void leave();
    bool finished() const { return !session_ || session_->finished(); }

private:
    class OwnAddress;

    void ask_for_own_address();
    void found_own_address(Result<std::string> host);
    void begin(const std::string& bind_to, const std::string& own_address);
    void welcomed(const wire::HostWelcome& welcome);
    void heard(const wire::HostNews& news);
    void lost(const std::string& why, VolumeSession::Hope hope);
    void end(const std::string& why);

    World& world_;
    Options options_;
    Holder holder_;
    Instant began_;
    bool told_to_wait_ = false;
    std::unique_ptr<verbs::Device> device_;
    std::unique_ptr<ArrayLinks> links_;
    std::unique_ptr<Listener> listener_;
    std::shared_ptr<IscsiTransport> transport_;
    std::unique_ptr<HostDisk> disk_;
    std::unique_ptr<VolumeSession> session_;
    std::unique_ptr<OwnAddress> own_address_;
    std::size_t asked_for_address_ = 0;             ///< controllers, one after the other
    std::optional<wire::ArrayConnectionEnd> self_;  ///< as boxes know us
    wire::VolumeIdentity volume_{};
    bool attached_ = false;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace weft::node
