// SPDX-License-Identifier: Apache-2.0
// A controller as a host sees it, without an array: it keeps the volume in memory and is its own
// one box, which moves the bytes by third-party transfers. It can be made to misbehave.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "node/array_address.hpp"
#include "node/array_links.hpp"
#include "node/iscsi_server.hpp"
#include "scsi/no_medium.hpp"
#include "scsi/vendor_commands.hpp"
#include "sim/world.hpp"
#include "wire/array_host.hpp"

namespace weft::test {

class HostController final : private scsi::VendorCommands {
public:
    static constexpr const char* machine = "10.0.0.1";
    static constexpr wire::ClusterIdentity cluster{{7, 7}};
    static constexpr wire::VolumeIdentity volume{{8, 8}};
    static Address where() { return Address::tcp(machine, 3260); }

    HostController(sim::World& the_world, std::size_t size)
        : memory(size), world_(the_world.host(machine)) {
        start();
    }
    ~HostController() { halt(); }

    /// As after a crash: sessions are forgotten, connections end; the volume is still there.
    void restart() {
        halt();
        start();
    }
    void halt() {
        if (!server_) return;
        links_.reset();  // what was under way ends
        server_->stop();
        for (int i = 0; i < 100000 && !server_->quiet(); ++i) world_step();
        server_.reset();
        moves_.clear();
    }
    void start() {
        ++epoch_;
        server_ = std::make_unique<node::IscsiServer>(world_, node::IscsiServer::Options{});
        links_ = std::make_unique<node::ArrayLinks>(world_, *server_->rdma_device(),
                                                    node::ArrayLinks::Options{});
        links_->set_office(cluster, wire::Epoch{epoch_});
        links_->appear_as(box_, std::nullopt);
        const auto target = wire::volume_target_name("photos");
        scsi::UnitOptions unit;
        unit.vendor_commands = this;
        unit.has_medium = false;
        EXPECT_TRUE(server_->add_target(target, {}));
        EXPECT_TRUE(server_->add_unit(target, 0, no_medium_, unit));
        EXPECT_TRUE(server_->listen(where()));
    }

    std::function<void()> world_step;  ///< how time passes while the server stops
    std::vector<std::byte> memory;
    std::map<std::uint64_t, int> seen;          ///< commands, by number
    std::vector<wire::HostTransfer> transfers;  ///< all that came
    wire::HostHello last_hello{};
    unsigned hellos = 0, flushes = 0, goodbyes = 0, repeats = 0;
    unsigned answer_later = 0;  ///< so many commands are asked to come again
    bool refuse_hello = false;
    bool swallow = false;  ///< commands are carried out and not answered
    std::optional<wire::HostOutcome> fail_with;
    bool forget_sessions = false;      ///< the next command finds its session unknown
    std::vector<wire::HostNews> news;  ///< told with every answer
    bool leave_writers = false;        ///< what is answered to a read says that it does
    /// Told with every answer, until the host has heard of them; the first has number 1.
    std::vector<std::uint64_t> releases;
    std::optional<wire::HostOutcome> answer_moves_with;  ///< whatever came of them

    /// What is under way is answered so, whatever comes of it.
    void fail_moves() {
        for (auto& move : moves_) move.fail();
    }

    std::size_t links() const { return links_->links(); }
    node::ArrayLinks& array_links() { return *links_; }
    wire::HostSession session() const { return session_; }
    const wire::ArrayConnectionEnd& box() const { return box_; }

private:
    class Move final : public raid::PeerTransfer {
    public:
        Move(HostController& owner, scsi::VendorCall& call, const wire::HostTransfer& asked)
            : owner_(owner), call_(&call), asked_(asked) {}
        void completed(Result<void> outcome) override {
            if (!call_) return;
            if (owner_.swallow) return owner_.swallowed_.push_back(call_);
            owner_.answer(
                *call_, asked_.command,
                owner_.answer_moves_with.value_or(outcome ? wire::HostOutcome::done
                                                          : wire::HostOutcome::host_unreachable));
            call_ = nullptr;
        }
        bool is_for(const scsi::VendorCall& call) const { return call_ == &call; }
        void forget() { call_ = nullptr; }
        void fail() {
            if (auto* call = std::exchange(call_, nullptr))
                owner_.answer(*call, asked_.command, wire::HostOutcome::failed);
        }

    private:
        HostController& owner_;
        scsi::VendorCall* call_;
        wire::HostTransfer asked_;
    };

    void receive(scsi::VendorCall& call) override {
        auto block = decode<wire::HostCommandBlock>(call.command_block());
        ASSERT_TRUE(block);
        if (block->action == wire::HostAction::hello) return welcome(call);
        auto asked = decode<wire::HostTransfer>(call.parameters());
        ASSERT_TRUE(asked);
        if (block->action == wire::HostAction::goodbye) {
            ++goodbyes;
            return answer(call, asked->command, wire::HostOutcome::done);
        }
        transfers.push_back(*asked);
        if (block->action == wire::HostAction::read) asks_for_read_.insert(asked->command);
        repeats += asked->repeated;
        if (std::exchange(forget_sessions, false)) session_ = {};
        if (asked->session != session_)
            return answer(call, asked->command, wire::HostOutcome::unknown_session);
        if (answer_later > 0) {
            --answer_later;
            return answer(call, asked->command, wire::HostOutcome::later);
        }
        ++seen[asked->command];
        if (fail_with) return answer(call, asked->command, *fail_with);
        if (block->action == wire::HostAction::flush) {
            ++flushes;
            return answer(call, asked->command, wire::HostOutcome::done);
        }
        ASSERT_LE(asked->offset + asked->length, memory.size());
        moves_.emplace_back(*this, call, *asked);
        auto& move = moves_.back();
        move.peer = {.party = raid::the_host,
                     .tag = asked->tag,
                     .base = asked->base,
                     .identity = wire::identity_of(asked->session)};
        move.memory = Buffer(memory).subspan(asked->offset, asked->length);
        block->action == wire::HostAction::read ? links_->send(move) : links_->fetch(move);
    }
    void forget(scsi::VendorCall& call) override {
        for (auto& move : moves_)
            if (move.is_for(call)) move.forget();
        std::erase(swallowed_, &call);
        call.answer(wire::ScsiStatus::good, {}, {});
    }
    void welcome(scsi::VendorCall& call) {
        ++hellos;
        auto hello = decode<wire::HostHello>(call.parameters());
        ASSERT_TRUE(hello);
        last_hello = *hello;
        wire::HostWelcome welcome{};
        welcome.outcome = refuse_hello ? wire::HostOutcome::later : wire::HostOutcome::done;
        session_ = wire::HostSession{1000 + hellos};
        welcome.session = session_;
        welcome.cluster = cluster;
        welcome.volume = volume;
        welcome.epoch = wire::Epoch{epoch_};
        welcome.size = memory.size();
        welcome.request_limit = 1 << 20;
        welcome.secret.fill(static_cast<std::uint8_t>(hellos));
        EXPECT_TRUE(links_->know({wire::ArrayRole::host, wire::identity_of(session_)},
                                 node::secret_for(welcome.secret, box_),
                                 node::address_of(hello->network_address, hello->port)));
        call.answer(wire::ScsiStatus::good, encoded(welcome), {});
    }
    void answer(scsi::VendorCall& call, std::uint64_t command, wire::HostOutcome outcome) {
        const bool leaves = leave_writers && asks_for_read_.contains(command);
        const wire::HostAnswer said{.outcome = outcome,
                                    .command = command,
                                    .size = memory.size(),
                                    .leaves_writers = leaves};
        const bool good = outcome == wire::HostOutcome::done;
        const auto head = encoded(said);
        std::vector<std::byte> descriptors(head.begin(), head.end());
        for (const auto& each : news) {
            const auto octets = encoded(each);
            descriptors.insert(descriptors.end(), octets.begin(), octets.end());
        }
        const std::size_t heard = transfers.empty() ? 0 : transfers.back().released;
        for (std::size_t i = heard; i < std::min(releases.size(), heard + 5); ++i) {
            const auto octets = encoded(wire::HostRelease{
                .number = static_cast<std::uint32_t>(i + 1), .command = releases[i]});
            descriptors.insert(descriptors.end(), octets.begin(), octets.end());
        }
        call.answer(good ? wire::ScsiStatus::good : wire::ScsiStatus::check_condition, descriptors,
                    {});
    }

    sim::Host& world_;
    const wire::ArrayConnectionEnd box_{wire::ArrayRole::box, {{1}}};
    std::uint64_t epoch_ = 0;
    wire::HostSession session_{};
    scsi::NoMedium no_medium_;
    std::list<Move> moves_;
    std::vector<scsi::VendorCall*> swallowed_;
    std::set<std::uint64_t> asks_for_read_;  ///< commands
    std::unique_ptr<node::IscsiServer> server_;
    std::unique_ptr<node::ArrayLinks> links_;
};

}  // namespace weft::test
