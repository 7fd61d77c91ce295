// SPDX-License-Identifier: Apache-2.0
// Asks a logical unit what it is: size, blocks, limits, who made it. One command after another,
// since each may be met by a unit attention and has to be repeated then.
//
// When a session was lost and begun again it looks once more, and says if this is another disk.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "iscsi/initiator_session.hpp"
#include "wire/scsi_capacity.hpp"
#include "wire/scsi_vital_product_data.hpp"

namespace weft::iscsi {

struct UnitFacts {
    wire::PeripheralQualifier qualifier{};
    wire::PeripheralType type{};
    std::string vendor, product, revision, serial;
    std::vector<std::byte> identity;  ///< page 83h as it came; empty: it has none
    std::uint64_t block_count = 0;
    std::uint32_t block_bytes = 0;
    std::uint8_t blocks_per_physical_exponent = 0;
    bool provisioning_management = false;
    bool unmapped_reads_zero = false;
    std::vector<std::uint8_t> pages;  ///< of vital product data
    std::optional<wire::BlockLimits> limits;
    std::optional<wire::LogicalBlockProvisioning> provisioning;
    std::optional<std::uint16_t> rotation_rate;
    bool write_protected = false;
    bool can_force_unit_access = false;
};

class UnitProbe final : public InitiatorCommand {
public:
    UnitProbe(InitiatorSession& session, wire::LogicalUnit unit);
    UnitProbe(const UnitProbe&) = delete;
    UnitProbe& operator=(const UnitProbe&) = delete;
    /// Nobody wants to know any more. If its command is under way, it ends itself with that.
    static void leave(std::unique_ptr<UnitProbe> probe);

    using Told = std::function<void(Result<void>)>;
    /// Finds out everything.
    void explore(Told told);
    /// Finds out whether it is still the same disk, ahead of all other commands: refused as
    /// access_denied if it is not. The number of blocks may have changed.
    void look_again(Told told);
    bool busy() const { return static_cast<bool>(told_); }

    const UnitFacts& facts() const { return facts_; }

    void ended(const CommandEnd& end) override;

private:
    enum class Step : std::uint8_t {
        ready,
        inquiry,
        capacity_16,
        capacity_10,
        pages,
        serial,
        identity,
        limits,
        provisioning,
        characteristics,
        mode,
        over,
    };

    void run(Step step);
    Step after(Step step) const;
    bool has_page(wire::VitalProductPage page) const;
    void ask();
    template <class Block>
    void ask_with(const Block& block, std::uint32_t size);
    void ask_for_page(wire::VitalProductPage page);
    /// False: the answer makes no sense.
    bool read(ConstBuffer data);
    bool read_page(ConstBuffer data, wire::VitalProductPage page);
    void retry_or_skip(const CommandEnd& end);
    void finish(Result<void> outcome);

    InitiatorSession& session_;
    wire::LogicalUnit unit_;
    UnitFacts facts_;
    std::vector<std::byte> known_identity_;
    std::uint32_t known_block_bytes_ = 0;
    bool again_ = false;
    bool left_ = false;
    Step step_ = Step::over;
    unsigned attempts_ = 0;
    Told told_;
    std::array<std::byte, 1024> answer_{};
    Buffer piece_;
};

}  // namespace weft::iscsi
