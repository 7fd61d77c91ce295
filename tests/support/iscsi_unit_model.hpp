// SPDX-License-Identifier: Apache-2.0
// A target for tests of the initiator that need no bytes on a wire: real login machine, a logical
// unit that is a vector, and a datamover that does one thing at a time, in the order a test likes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <list>
#include <random>
#include <set>
#include <vector>

#include "block/scatter.hpp"
#include "iscsi/datamover.hpp"
#include "iscsi/login_target.hpp"
#include "support/golden.hpp"
#include "wire/iscsi.hpp"
#include "wire/scsi.hpp"

namespace weft::test {

class UnitModel {
public:
    static constexpr std::uint32_t block = 512;

    explicit UnitModel(std::size_t blocks) : memory(blocks * block) {}

    struct Answer {
        wire::ScsiStatus status = wire::ScsiStatus::good;
        Bytes sense{};
        Bytes data{};
    };

    Bytes memory;
    std::deque<wire::AdditionalSense> attentions;  ///< each is told once, to the next command
    int busy = 0;                                  ///< so many commands are turned away
    bool thin = true;
    bool knows_flush = true;
    std::string serial = "model-1";
    std::vector<wire::ScsiOperation> seen;
    /// Called for every write that is carried out.
    std::function<void(std::uint64_t offset, ConstBuffer data)> applied;

    Answer execute(const wire::ScsiCommandPdu& command, ConstBuffer out) {
        Bytes cdb;
        for (auto octet : command.command_block) cdb.push_back(static_cast<std::byte>(octet));
        const auto operation = static_cast<wire::ScsiOperation>(command.command_block[0]);
        seen.push_back(operation);
        if (busy > 0 && busy-- > 0) return {.status = wire::ScsiStatus::busy};
        if (!attentions.empty() && operation != wire::ScsiOperation::inquiry) {
            const auto attention = attentions.front();
            attentions.pop_front();
            return check(wire::SenseKey::unit_attention, attention);
        }
        switch (operation) {
            case wire::ScsiOperation::test_unit_ready:
                return {};
            case wire::ScsiOperation::inquiry:
                return inquiry(*decode<wire::Inquiry>(cdb));
            case wire::ScsiOperation::service_action_in_16:
                return service_action(cdb);
            case wire::ScsiOperation::mode_sense_6:
                return data_of(
                    wire::ModeHeader6{.data_length = 3, .device = {.cache_control = true}});
            case wire::ScsiOperation::read_16: {
                const auto read = *decode<wire::Read16>(cdb);
                Buffer range = range_of(read.block_address, read.block_count);
                if (range.empty()) return out_of_range();
                return {.data = Bytes(range.begin(), range.end())};
            }
            case wire::ScsiOperation::write_16: {
                const auto write = *decode<wire::Write16>(cdb);
                return write_to(write.block_address, write.block_count, out);
            }
            case wire::ScsiOperation::write_same_16: {
                const auto same = *decode<wire::WriteSame16>(cdb);
                Bytes all;
                for (std::uint32_t i = 0; i < same.block_count; ++i)
                    all.insert(all.end(), out.begin(), out.end());
                return write_to(same.block_address, same.block_count, all);
            }
            case wire::ScsiOperation::unmap: {
                const auto range = *decode<wire::UnmapDescriptor>(out.subspan(8));
                return write_to(range.first_block, range.block_count,
                                Bytes(std::size_t{range.block_count} * block));
            }
            case wire::ScsiOperation::synchronize_cache_10:
                if (knows_flush) return {};
                [[fallthrough]];
            default:
                return check(wire::SenseKey::illegal_request,
                             wire::AdditionalSense::invalid_operation_code);
        }
    }

private:
    static Answer check(wire::SenseKey key, wire::AdditionalSense additional) {
        Answer answer{.status = wire::ScsiStatus::check_condition, .sense = Bytes(18)};
        encode(wire::FixedSense{.key = key, .additional = additional}, answer.sense);
        return answer;
    }
    static Answer out_of_range() {
        return check(wire::SenseKey::illegal_request,
                     wire::AdditionalSense::block_address_out_of_range);
    }
    template <class Header>
    static Answer data_of(const Header& header) {
        Answer answer;
        answer.data.resize(wire_size<Header>());
        encode(header, answer.data);
        return answer;
    }
    Buffer range_of(std::uint64_t first, std::uint64_t count) {
        if (count == 0 || !within(first * block, count * block, memory.size())) return {};
        return Buffer(memory).subspan(first * block, count * block);
    }
    Answer write_to(std::uint64_t first, std::uint64_t count, ConstBuffer data) {
        Buffer range = range_of(first, count);
        if (range.empty() || data.size() != range.size()) return out_of_range();
        std::ranges::copy(data, range.begin());
        if (applied) applied(first * block, data);
        return {};
    }
    Answer inquiry(const wire::Inquiry& asked) {
        if (!asked.vital_product_data)
            return data_of(wire::StandardInquiryData{.vendor = wire::left_aligned<8>("WEFT"),
                                                     .product = wire::left_aligned<16>("MODEL"),
                                                     .revision = wire::left_aligned<4>("1")});
        const auto page = static_cast<wire::VitalProductPage>(asked.page_code);
        Bytes body;
        if (page == wire::VitalProductPage::supported_pages) {
            body = from_hex("00 80 83 b0 b2");
        } else if (page == wire::VitalProductPage::unit_serial_number ||
                   page == wire::VitalProductPage::device_identification) {
            const ConstBuffer octets = bytes_of(serial);
            body.assign(octets.begin(), octets.end());
        } else if (page == wire::VitalProductPage::block_limits) {
            body = data_of(wire::BlockLimits{.max_transfer = 64,
                                             .max_unmap_blocks = 8,
                                             .max_unmap_descriptors = 1,
                                             .max_write_same = 5})
                       .data;
        } else {
            body = data_of(wire::LogicalBlockProvisioning{.unmap = thin, .reads_zero = 1}).data;
        }
        Answer answer = data_of(wire::VitalProductPageStart{
            .page = page, .length = static_cast<std::uint16_t>(body.size())});
        answer.data.insert(answer.data.end(), body.begin(), body.end());
        return answer;
    }
    Answer service_action(const Bytes& cdb) {
        if (decode<wire::ReadCapacity16>(cdb))
            return data_of(wire::Capacity16{.last_block = memory.size() / block - 1,
                                            .block_bytes = block,
                                            .provisioning_management = thin,
                                            .unmapped_reads_zero = true});
        const auto asked = *decode<wire::GetLbaStatus>(cdb);
        Answer answer = data_of(wire::LbaStatusHeader{.length_after = 4 + 32});
        const auto blocks = static_cast<std::uint32_t>(memory.size() / block);
        Bytes descriptors(32);
        encode(wire::LbaStatusDescriptor{.first_block = asked.first_block, .block_count = 3},
               descriptors);
        encode(wire::LbaStatusDescriptor{.first_block = asked.first_block + 3,
                                         .block_count = blocks,
                                         .provisioning = wire::Provisioning::deallocated},
               Buffer(descriptors).subspan(16));
        answer.data.insert(answer.data.end(), descriptors.begin(), descriptors.end());
        return answer;
    }
};

/// Lets everybody in.
class OpenPolicy final : public iscsi::LoginPolicy {
public:
    iscsi::LoginAdmission admission;
    std::optional<iscsi::Terms> session_terms;
    std::uint16_t handle = 1;
    int logins = 0;

    iscsi::LoginAdmission admit(const iscsi::LoginName& name) override {
        auto result = admission;
        if (name.target_session_handle != 0) result.session_terms = session_terms;
        return result;
    }
    std::optional<std::string> secret_of(const iscsi::LoginName&, std::string_view) override {
        return "a secret for tests";
    }
    std::optional<iscsi::ChapCredentials> own_credentials(const iscsi::LoginName&) override {
        return std::nullopt;
    }
    void fill_with_chance(Buffer octets) override { std::ranges::fill(octets, std::byte{7}); }
    std::optional<iscsi::LoginSeat> seat(const iscsi::LoginName& name,
                                         const iscsi::Terms& terms) override {
        ++logins;
        if (name.target_session_handle == 0) session_terms = terms, ++handle;
        return iscsi::LoginSeat{.target_session_handle = handle};
    }
};

/// The target's numbers of commands: one window for all connections of a session.
struct CommandCount {
    std::uint32_t expected = 1, window = 16;
    std::set<std::uint32_t> early;  ///< came before one with a smaller number

    void take(std::uint32_t number) {
        early.insert(number);
        while (early.erase(expected) > 0) ++expected;
    }
};

class ModelMover final : public iscsi::InitiatorDatamover {
public:
    ModelMover(UnitModel& unit, OpenPolicy& policy, CommandCount& count,
               iscsi::InitiatorDatamoverUser& user)
        : unit_(unit), count_(count), user_(user), login_(policy, count.window) {}

    void begin_full_feature(const iscsi::ConnectionTerms&) override {}
    void send(const iscsi::ControlPdu& pdu) override {
        if (!closed_)
            controls_.push_back(
                {{pdu.header.begin(), pdu.header.end()}, {pdu.data.begin(), pdu.data.end()}});
    }
    void start(iscsi::InitiatorMoverTask& task) override {
        if (!closed_) tasks_.push_back({&task, false});
    }
    void abandon(iscsi::InitiatorMoverTask& task) override {
        std::erase_if(tasks_, [&](const Work& work) { return work.task == &task; });
        user_.retired(task);
    }
    void close_when_sent() override { closed_ = left_ = true; }
    void close() override { closed_ = true; }

    bool answers_pings = true;
    bool stuck = false;  ///< no command is carried out or answered
    /// How task management is answered; none: it is not.
    std::optional<wire::TaskManagementResult> managed = wire::TaskManagementResult::complete;
    std::vector<wire::TaskManagementFunction> managements;
    std::size_t tasks() const { return tasks_.size(); }
    bool lost() const { return lost_; }
    bool left() const { return left_; }

    /// The target would like us to go.
    void ask_to_leave() {
        say(wire::AsynchronousMessagePdu{.numbers = numbers(),
                                         .event = wire::AsynchronousEvent::logout_requested,
                                         .parameter3 = 5},
            {});
    }
    /// The connection breaks: what was not carried out never is.
    void cut() {
        lost_ = closed_ = true;
        tasks_.clear();
        user_.lost(Error{.code = Code::io_failed});
    }
    /// Does one thing, chosen by chance; false if there is nothing to do.
    bool step(std::mt19937& chance) {
        if (lost_) return false;
        if (closed_) {
            cut();
            return true;
        }
        if (!opened_) {
            opened_ = true;
            user_.opened();
            return true;
        }
        if (!controls_.empty()) {
            auto pdu = std::move(controls_.front());
            controls_.pop_front();
            take(pdu.header, pdu.data);
            return true;
        }
        if (tasks_.empty() || stuck) return false;
        auto chosen = std::next(tasks_.begin(), chance() % tasks_.size());
        if (!chosen->executed) {
            execute(*chosen);
        } else {
            const Work work = *chosen;
            tasks_.erase(chosen);
            answer(work);
        }
        return true;
    }

private:
    struct Control {
        Bytes header, data;
    };
    struct Work {
        iscsi::InitiatorMoverTask* task;
        bool executed;
        UnitModel::Answer outcome{};
    };

    wire::TargetNumbers numbers() {
        return {.status_number = status_number_++,
                .expected_command_number = count_.expected,
                .max_command_number = count_.expected + count_.window - 1};
    }
    template <class Pdu>
    void say(const Pdu& pdu, ConstBuffer data) {
        Bytes header(wire::basic_header_size);
        encode(pdu, header);
        say_octets(header, data);
    }
    void say_octets(ConstBuffer header, ConstBuffer data) {
        const auto numbers = *decode<wire::TargetNumbers>(header.subspan(wire::target_numbers_at));
        user_.heard(numbers, iscsi::StatusCount::counts);
        user_.control({.basic = *decode<wire::BasicHeader>(header),
                       .header = header,
                       .additional_headers = {},
                       .data = data});
    }
    void take(const Bytes& header, const Bytes& data) {
        const auto basic = *decode<wire::BasicHeader>(header);
        switch (basic.opcode) {
            case wire::IscsiOpcode::login_request: {
                const auto request = *decode<wire::LoginRequestPdu>(header);
                if (request.target_session_handle == 0) {
                    count_.expected = request.numbers.command_number;
                    count_.early.clear();
                }
                login_.take(header, data);
                status_number_ = login_.next_status_number();
                const Bytes answer(login_.response_data().begin(), login_.response_data().end());
                const auto response = login_.response_header();
                return say_octets(response, answer);
            }
            case wire::IscsiOpcode::nop_out:
                if (answers_pings)
                    say(wire::NopInPdu{.task_tag = basic.task_tag,
                                       .transfer_tag = wire::TargetTransferTag::none,
                                       .numbers = numbers()},
                        {});
                return;
            case wire::IscsiOpcode::task_management_request:
                managements.push_back(decode<wire::TaskManagementRequestPdu>(header)->function);
                if (managed)
                    say(
                        wire::TaskManagementResponsePdu{
                            .result = *managed, .task_tag = basic.task_tag, .numbers = numbers()},
                        {});
                return;
            case wire::IscsiOpcode::logout_request:
                say(wire::LogoutResponsePdu{.task_tag = basic.task_tag, .numbers = numbers()}, {});
                return;
            case wire::IscsiOpcode::text_request:
                return take_text(*decode<wire::TextRequestPdu>(header));
            default:
                ADD_FAILURE() << "an unexpected PDU";
        }
    }
    void take_text(const wire::TextRequestPdu& request) {
        count_.take(request.numbers.command_number);
        const bool first = request.transfer_tag == wire::TargetTransferTag::none;
        std::string text = first ? std::string(
                                       "TargetName=iqn.one|TargetAddress=10.0.0.1:3260,1|"
                                       "TargetAddress=[fd00::1]:3260,1|TargetNa")
                                 : std::string("me=iqn.two|");
        std::ranges::replace(text, '|', '\0');
        say(wire::TextResponsePdu{.final = !first,
                                  .data_length = static_cast<std::uint32_t>(text.size()),
                                  .task_tag = request.task_tag,
                                  .transfer_tag = first ? wire::TargetTransferTag{5}
                                                        : wire::TargetTransferTag::none,
                                  .numbers = numbers()},
            bytes_of(text));
    }
    void execute(Work& work) {
        work.executed = true;
        const auto& command = work.task->command;
        count_.take(command.numbers.command_number);
        Bytes out(command.write ? command.expected_transfer_length : 0);
        block::copy_out({work.task->data_out, 0, out.size()}, out);
        work.outcome = unit_.execute(command, out);
    }
    void answer(const Work& work) {
        const auto& command = work.task->command;
        const std::size_t room = command.read ? command.expected_transfer_length : 0;
        const std::size_t placed = std::min(room, work.outcome.data.size());
        block::copy_in(ConstBuffer(work.outcome.data).first(placed),
                       {work.task->data_in, 0, placed});
        iscsi::InitiatorAnswer said;
        said.response = {
            .residual = placed < room ? wire::Residual::underflow : wire::Residual::none,
            .status = work.outcome.status,
            .task_tag = command.task_tag,
            .numbers = numbers(),
            .residual_count = static_cast<std::uint32_t>(room - placed)};
        said.sense = work.outcome.sense;
        said.placed = placed;
        user_.heard(said.response.numbers, iscsi::StatusCount::counts);
        user_.responded(*work.task, said);
        user_.retired(*work.task);
    }

    UnitModel& unit_;
    CommandCount& count_;
    iscsi::InitiatorDatamoverUser& user_;
    iscsi::LoginTarget login_;
    bool opened_ = false, closed_ = false, left_ = false, lost_ = false;
    std::uint32_t status_number_ = 0;
    std::deque<Control> controls_;
    std::list<Work> tasks_;
};

}  // namespace weft::test
