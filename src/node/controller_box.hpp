// SPDX-License-Identifier: Apache-2.0
// A box as its controller knows it: where it is, what it says of itself, and whether it can be
// counted on. A session alone does not make it so: the box is asked what it is, must be the one we
// know and of our cluster, is told our epoch, whom to meet and which hosts to admit; only then it
// is up.
#pragma once

#include <map>
#include <optional>

#include "node/array_link_facts.hpp"
#include "node/array_proof.hpp"
#include "node/box_session.hpp"
#include "raid/order_codec.hpp"
#include "wire/array_box.hpp"
#include "wire/array_connection.hpp"
#include "wire/array_superblock.hpp"

namespace weft::node {

/// What a box said of itself, with its parts.
struct BoxDescription {
    wire::ArrayBoxDescription box;
    struct Part {
        wire::ArraySuperblock superblock;
        std::vector<SteeringTag> window_tags;  ///< without their key
    };
    std::map<wire::VolumeIdentity, Part> parts;
    std::map<wire::VolumeIdentity, wire::ArrayLeftOutPart> left_out;
    std::vector<wire::ArrayNetworkEnd> networks;

    /// It has a part that it cannot read now and that may be whole: as if it were away.
    bool keeps_unread(const wire::VolumeIdentity& volume) const {
        auto found = left_out.find(volume);
        return found != left_out.end() && !found->second.damaged;
    }
};
/// `truncated` or `malformed`.
Result<BoxDescription> parse_box_description(ConstBuffer octets);

class ControllerBox;

class ControllerBoxOwner {
public:
    virtual wire::ClusterIdentity cluster() const = 0;
    virtual wire::Epoch epoch() const = 0;
    /// We are in office, and sure of it at this moment: boxes may be told something.
    virtual bool may_act() const = 0;
    /// How much longer, for the boxes to know; 0: without end.
    virtual std::uint32_t lease_ms() const = 0;
    virtual std::vector<wire::ArrayPeer> peers_of(const ControllerBox& box) = 0;
    virtual std::vector<wire::ArrayHostAdmission> hosts_of(const ControllerBox& box) = 0;
    /// The others are to meet this box; told when all of them that are up have heard of it.
    virtual void introduce(ControllerBox& box, std::function<void()> told) = 0;
    virtual void box_up(ControllerBox& box) = 0;
    /// Not told before it was up, but for the first attempt: `why` is a sentence.
    virtual void box_down(ControllerBox& box, const std::string& why) = 0;
    /// The box obeys another cluster, or a later controller: whether we become that. If so, told
    /// when it has been tried.
    virtual bool join(const ControllerBox& box, wire::ClusterIdentity cluster, wire::Epoch epoch,
                      std::function<void(bool)> told) = 0;

protected:
    ~ControllerBoxOwner() = default;
};

class ControllerBox {
public:
    /// What became of a command: none if the session was lost over it.
    using Told = std::function<void(std::optional<wire::ArrayAnswer>)>;
    /// The same, with what came along.
    using ToldData = std::function<void(std::optional<wire::ArrayAnswer>, ConstBuffer)>;

    struct Access {
        std::string key{};  ///< of the cluster
        Duration silence = BoxSession::silence_usual;
    };

    /// `identity`: who it must be; none: whoever it is, as long as it has that name. The box must
    /// not be destroyed from inside what it tells. `addresses`: in each network that is known, the
    /// preferred first; one at least.
    ControllerBox(World& world, IscsiTransport& transport, ControllerBoxOwner& owner,
                  std::string name, const std::vector<Address>& addresses, const Access& access,
                  std::optional<wire::BoxIdentity> identity);
    ~ControllerBox();

    const std::string& name() const { return name_; }
    const Address& address() const { return address_; }
    bool is_up() const { return up_; }
    /// Obeys us, and may be reached by the others: it is up, or about to be.
    bool is_met() const { return met_; }
    /// Where its peers reach it, in each network it is in; the preferred first, which is the one it
    /// was added by.
    std::vector<wire::ArrayNetworkEnd> networks();
    /// The same as text, as far as it has a place in a record.
    std::string places_text(std::size_t room);
    /// Why it is not up: a sentence for people.
    const std::string& trouble() const { return trouble_; }
    /// There is no session, for this reason. None: it is the box that does not suit us.
    const std::optional<Error>& unreached() const { return unreached_; }
    /// As of when it came up, or was last asked.
    const std::optional<BoxDescription>& facts() const { return facts_; }
    std::optional<wire::BoxIdentity> identity() const { return identity_; }

    /// Of a volume's: the address stands in the parameters.
    void send(const raid::EncodedOrder& command, Told told);
    /// The same, made here.
    void send(wire::ArrayAction action, const wire::ArrayAddress& address,
              std::span<const std::byte> rest, Told told);
    /// What was held back while it was doubtful whether we may act goes now.
    void go_on();
    /// Of a volume's, where data comes back: recall.
    void ask(const raid::EncodedOrder& command, ToldData told);
    /// With a new session: it is to hear of another epoch.
    void begin_again() { link_.drop({.code = Code::disconnected}); }
    /// Asks what it is again: free space and parts have changed.
    void describe(std::function<void(bool)> told);
    /// Asks how its connections to others are; told nothing if it does not answer, or not well.
    using ToldLinks = std::function<void(std::optional<std::vector<ArrayLinkFacts>>)>;
    void list_links(ToldLinks told);
    /// Tells it whom to meet, all of them.
    void meet(std::function<void(bool)> told);
    void admit(wire::ArrayHostAdmission host, Told told);
    void dismiss(wire::HostSession host);
    /// The address of a command about the box as a whole.
    wire::ArrayAddress whole() const;

    /// The tag of a window of its part of this volume; 0 if it has none.
    SteeringTag window_tag(const wire::VolumeIdentity& volume, std::uint32_t window,
                           wire::TransactionNumber transaction) const;

private:
    /// A command while it is doubtful whether we may act.
    struct Held {
        wire::ArrayCommandBlock block;
        std::vector<std::byte> parameters;
        std::size_t room_in;
        BoxSession::Told told;
    };

    /// All commands go this way: at once, or when we may.
    void pass(const wire::ArrayCommandBlock& block, std::vector<std::byte> parameters,
              std::size_t room_in, BoxSession::Told told);
    void tell_held(Error why);
    void session_up();
    void session_down(Error why);
    void described();
    void introduce();
    void refuse(const std::string& why);
    bool joins();
    void set_epoch();
    void finish(bool well);

    World& world_;
    ControllerBoxOwner& owner_;
    std::string name_;
    std::optional<Error> unreached_;
    Address address_;
    std::optional<wire::BoxIdentity> identity_;
    std::optional<BoxDescription> facts_;
    std::string trouble_ = "it has not answered yet";
    bool up_ = false;
    bool met_ = false;
    std::optional<Octets<16>> network_address_;         ///< of address_; asked for once
    std::vector<wire::ArrayHostAdmission> told_hosts_;  ///< with this session
    std::vector<wire::ArrayPeer> told_peers_;
    std::size_t introductions_ = 0;  ///< commands of coming up that are not answered yet
    bool introduced_well_ = true;
    std::uint64_t session_ = 0;  ///< counts them: an answer of an old one means nothing
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
    std::unique_ptr<Timer> ask_again_;
    std::vector<Held> held_;  ///< no more than a session takes
    BoxSession link_;
};

}  // namespace weft::node
