// SPDX-License-Identifier: Apache-2.0
// A box of an array in a world: an iSCSI target whose only unit takes the controller's commands, on
// the same port the connections over which boxes and hosts move data among themselves, and a folder
// with a file that says who the box is and one disk for every volume it is part of.
//
// Commands name their volume and go to that part; those that name none are about the box as a
// whole. A box that is nobody's obeys the first controller that announces itself, and no other
// cluster's ever after.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "node/array_links.hpp"
#include "node/box_facts.hpp"
#include "node/box_part.hpp"
#include "node/iscsi_server.hpp"
#include "scsi/no_medium.hpp"
#include "scsi/vendor_commands.hpp"

namespace weft::node {

class BoxNode final : private scsi::VendorCommands, private BoxPartOwner {
public:
    struct Options {
        std::string name;
        std::string folder;
        std::uint64_t size = 0;  ///< what the disks of its parts may have together
        /// What the folder's file system has left for them; none: it does not say.
        std::function<std::optional<std::uint64_t>()> room{};
        /// Of the cluster: only who proves to know it gives commands. Empty: whoever comes.
        std::string key{};
        BoxPart::Options parts{};
        BoxWindows::Options windows{};
        ArrayLinks::Options links{};
        IscsiServer::Options server{};
    };
    /// Why a box cannot start, as a sentence; or nothing.
    using Started = std::function<void(std::optional<std::string> refusal)>;

    BoxNode(World& world, Options options);
    BoxNode(const BoxNode&) = delete;
    BoxNode& operator=(const BoxNode&) = delete;
    /// Run the world until quiet() after stop().
    ~BoxNode();

    /// Finds out who it is, or becomes somebody. `told` is never called from inside.
    void start(Started told);
    /// Once it has started. Again for every further network: the first is the preferred one.
    Result<Address> listen(const Address& address);
    /// What people may want to know, a sentence each.
    void on_event(std::function<void(const std::string&)> hear) { hear_ = std::move(hear); }

    /// Stops listening, and asks its controller to log out.
    void drain() { server_.drain(); }
    void stop();
    bool quiet() const;

    const BoxFacts& facts() const { return facts_; }
    /// What it may still take of its size, and its file system has.
    std::uint64_t free_bytes() const;
    IscsiServer& server() { return server_; }
    ArrayLinks& links() { return *links_; }

private:
    using Outcome = wire::ArrayOutcome;
    using Call = scsi::VendorCall;
    struct Command {
        wire::ArrayCommandBlock block{};
        wire::ArrayAddress address{};
        ConstBuffer parameters{};
    };
    /// Of commands the box gives its own parts: no call is at an odd address.
    static constexpr raid::CommandTicket epoch_ticket{1};
    using Parts = std::vector<std::unique_ptr<BoxPart>>;
    /// Why a part is not served though the box's file names it.
    enum class LeftOut : std::uint8_t {
        damaged,  ///< it was read, and is broken or not there: a new one may take its place
        kept,     ///< it could not be read: it may be whole, and nothing may take its place
    };

    // scsi::VendorCommands
    void receive(Call& call) override;
    void forget(Call&) override {}  // its work cannot be broken off, and answers when it has ended
    // BoxPartOwner
    void part_answered(BoxPart& part, raid::CommandTicket ticket, const wire::ArrayAnswer& answer,
                       ConstBuffer data) override;
    void meet(std::span<const wire::ArrayPeer> boxes) override;
    void admit(const wire::ArrayHostAdmission& host) override;
    void dismiss(wire::HostSession host) override;

    // Starting.
    std::string path_of(const wire::ArrayBoxPart& entry) const {
        return options_.folder + "/" + file_name_of(entry);
    }
    std::string path_of(const wire::VolumeIdentity& volume) {
        return path_of(*facts_.find(volume));
    }
    std::string facts_path() const { return options_.folder + "/box"; }
    void become_somebody();
    std::optional<std::string> take_facts(ConstBuffer octets);
    void remove_begun_parts(std::size_t from);
    void take_back(const wire::VolumeIdentity& volume, std::function<void(Result<void>)> then);
    void load_parts();
    void load_part(const wire::ArrayBoxPart& entry);
    void part_read(std::unique_ptr<BoxPart> part, const std::string& path, Result<void> read);
    void wait_for_room(const BoxPart* part);
    void part_read_late(std::unique_ptr<BoxPart> part, const wire::VolumeIdentity& volume,
                        Result<void> read);
    void take_part(std::unique_ptr<BoxPart> part, std::unique_ptr<BoxWindows> windows);
    bool waits_for_room(const wire::VolumeIdentity& volume) const {
        return std::ranges::find(waiting_, volume, &Waiting::volume) != waiting_.end();
    }
    void leave_out_part(LeftOut how, const std::string& why);
    std::optional<std::string> judge(const BoxPart& part, const wire::ArrayBoxPart& entry) const;
    void catch_up_parts();
    void start_serving();
    void refuse_to_start(std::string why);

    // Commands.
    static Result<Command> parse(Call& call);
    BoxPart* find_part(const wire::VolumeIdentity& volume);
    Outcome check(const wire::ArrayAddress& address) const;
    void answer(Call& call, Outcome outcome);
    void describe(Call& call);
    void give_to_part(Call& call, const Command& command);
    void take_peers(Call& call, const Command& command);
    bool know(std::span<const wire::ArrayPeer> boxes);
    bool know(const wire::ArrayHostAdmission& host);

    // Changes of what the box is, one at a time (box_node_changes.cpp).
    void change(Call& call);
    void begin_change(Call& call);
    void end_change(Call& call, Outcome outcome);
    void next_change();
    void save(std::function<void(Result<void>)> then);
    void take_epoch(Call& call, const Command& command);
    std::vector<BoxPart*> parts_behind() const;
    void tell_parts_of_epoch(std::function<void(Outcome)> then);
    void part_told_of_epoch(Outcome outcome);
    void create_part(Call& call, const Command& command);
    Outcome judge_superblock(const wire::ArraySuperblock& superblock,
                             const wire::ArrayAddress& address);
    void make_part(Call& call, const wire::ArraySuperblock& superblock);
    void provide_part(const wire::VolumeIdentity& volume, std::function<void(Result<void>)> made);
    void disk_made(Call& call, const wire::ArraySuperblock& superblock, Result<void> made);
    void keep_part(Call& call, std::unique_ptr<BoxPart> part);
    void undo_part(Call& call, const wire::VolumeIdentity& volume, Outcome outcome);
    /// The disk of a part that is to have more: none if it has enough, or cannot.
    std::optional<std::uint64_t> room_wanted(const Command& command);
    void grow_part(Call& call, const Command& command);
    void delete_part(Call& call, const Command& command);
    void remove_part(Call& call, const wire::VolumeIdentity& volume);
    void keep_after_all(Call& call, const wire::VolumeIdentity& volume, Result<void> why);
    Result<std::unique_ptr<BoxWindows>> take_windows();
    std::unique_ptr<BoxPart> make_part_on(std::unique_ptr<BlockDevice> disk) {
        BoxPartOwner& owner = *this;
        return std::make_unique<BoxPart>(owner, world_, std::move(disk), options_.parts);
    }
    void watch_disk(BoxPart& part, const std::string& path) {
        part.on_full([this, path](bool full) { tell_room(path, full); });
        part.on_hang([this, path](bool hangs) { tell_hang(path, hangs); });
    }
    void tell_hang(const std::string& path, bool hangs);
    void tell_room(const std::string& path, bool full) {
        tell(path + (full ? ": its file system is full; writes wait for room"
                          : ": there is room again, and writes go on"));
    }
    std::uint64_t size_left() const {
        return options_.size - std::min(options_.size, facts_.taken());
    }
    void tell(const std::string& what) {
        if (hear_) hear_(what);
    }

    World& world_;
    Options options_;
    scsi::NoMedium no_medium_;
    IscsiServer server_;
    std::vector<std::unique_ptr<BoxWindows>> spare_windows_;  ///< outlive the links
    Parts parts_;
    std::unique_ptr<ArrayLinks> links_;
    BoxFacts facts_;
    std::uint64_t boot_;  ///< by which a controller knows that this process is another
    Started started_;
    std::size_t loaded_ = 0;  ///< of the parts that the facts name
    std::map<wire::VolumeIdentity, LeftOut> left_out_;
    /// A part that is being read, and has no room for what its journal has to bring home.
    struct Waiting {
        wire::VolumeIdentity volume;
        std::unique_ptr<BoxPart> part;
    };
    std::vector<Waiting> waiting_;
    std::unique_ptr<BoxPart> making_;
    std::deque<Call*> changes_;  ///< the first is under way
    std::size_t epochs_awaited_ = 0;
    Outcome epoch_outcome_{};
    std::function<void(Outcome)> epoch_told_;
    bool stopping_ = false;  ///< perhaps before it has started
    bool saving_ = false;
    std::set<wire::BoxIdentity> met_;
    std::vector<wire::ArrayNetworkEnd>
        networks_;  ///< where it listens, as far as others can be told
    std::function<void(const std::string&)> hear_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace weft::node
