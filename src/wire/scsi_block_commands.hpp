// SPDX-License-Identifier: Apache-2.0
// The command blocks that move or touch blocks: read, write, verify and their kin (SBC-4).
//
// Commands of one layout share one description; the operation code is a template argument, so that
// a Read10 is never taken for a Write10 and a switch over codes decodes the type it names. The 32
// octet forms are in scsi_block_commands_32.hpp.
#pragma once

#include "wire/scsi_operation.hpp"

namespace weft::wire {

/// READ(6) and WRITE(6). A length of zero means 256 blocks.
template <ScsiOperation operation>
struct Transfer6 {
    std::uint32_t block_address = 0;  ///< 21 bits
    std::uint8_t block_count = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<8>("operation", static_cast<std::uint64_t>(operation)), reserved<3>,
               bits<21>("block address", h.block_address));
        v("block count", h.block_count);
        v.nested("control", h.control);
    }
    bool operator==(const Transfer6&) const = default;

    constexpr std::uint32_t blocks() const { return block_count == 0 ? 256 : block_count; }
};
using Read6 = Transfer6<ScsiOperation::read_6>;
using Write6 = Transfer6<ScsiOperation::write_6>;
static_assert(wire_size<Read6>() == 6);

/// What READ and WRITE of every length say in their second octet.
struct TransferFlags {
    std::uint8_t protect = 0;  ///< RDPROTECT or WRPROTECT: what to do with protection information
    bool disable_page_out = false;   ///< DPO: not worth caching
    bool force_unit_access = false;  ///< FUA: past the cache, to the medium
    bool rebuild_assist = false;     ///< RARC; reads only

    static constexpr void describe(auto& v, auto& h) {
        v.pack(bits<3>("protect", h.protect), bits<1>("disable page out", h.disable_page_out),
               bits<1>("force unit access", h.force_unit_access),
               bits<1>("rebuild assist", h.rebuild_assist), reserved<2>);
    }
    bool operator==(const TransferFlags&) const = default;
};

/// BYTCHK: what VERIFY compares with.
enum class ByteCheck : std::uint8_t {
    medium_only = 0,   ///< nothing: is the medium readable
    every_block = 1,   ///< as many blocks as it names
    single_block = 3,  ///< one block, over and over
};

/// What VERIFY and WRITE AND VERIFY of every length say in their second octet.
struct VerifyFlags {
    std::uint8_t protect = 0;
    bool disable_page_out = false;
    ByteCheck byte_check{};

    static constexpr void describe(auto& v, auto& h) {
        v.pack(bits<3>("protect", h.protect), bits<1>("disable page out", h.disable_page_out),
               reserved<1>, bits<2>("byte check", h.byte_check), reserved<1>);
    }
    bool operator==(const VerifyFlags&) const = default;
};

/// What WRITE SAME of every length says in its second octet.
struct WriteSameFlags {
    std::uint8_t protect = 0;
    bool anchor = false;          ///< with unmap: keep the space reserved
    bool unmap = false;           ///< may deallocate instead of writing
    bool no_data_buffer = false;  ///< NDOB: zeroes, and no data is sent; not in the 10 octet form

    static constexpr void describe(auto& v, auto& h) {
        v.pack(bits<3>("protect", h.protect), bits<1>("anchor", h.anchor),
               bits<1>("unmap", h.unmap), reserved<2>, bits<1>("no data buffer", h.no_data_buffer));
    }
    bool operator==(const WriteSameFlags&) const = default;
};

/// What PRE-FETCH and SYNCHRONIZE CACHE say in their second octet.
struct CacheFlags {
    bool immediate = false;  ///< answer before it is done

    static constexpr void describe(auto& v, auto& h) {
        v.pack(reserved<6>, bits<1>("immediate", h.immediate), reserved<1>);
    }
    bool operator==(const CacheFlags&) const = default;
};

/// What XDWRITEREAD and its kin say in their second octet.
struct XorFlags {
    std::uint8_t protect = 0;
    bool disable_page_out = false;
    bool force_unit_access = false;
    bool disable_write = false;  ///< only the difference is wanted
    bool parity_only = false;    ///< XPWRITE, XDREAD: XORPINFO

    static constexpr void describe(auto& v, auto& h) {
        v.pack(bits<3>("protect", h.protect), bits<1>("disable page out", h.disable_page_out),
               bits<1>("force unit access", h.force_unit_access),
               bits<1>("disable write", h.disable_write), reserved<1>,
               bits<1>("parity only", h.parity_only));
    }
    bool operator==(const XorFlags&) const = default;
};

template <ScsiOperation operation, class Flags>
struct Transfer10 {
    Flags flags{};
    std::uint32_t block_address = 0;
    std::uint8_t group_number = 0;
    std::uint16_t block_count = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<operation>(v);
        v.nested("flags", h.flags);
        v("block address", h.block_address);
        v.pack(reserved<3>, bits<5>("group number", h.group_number));
        v("block count", h.block_count);
        v.nested("control", h.control);
    }
    bool operator==(const Transfer10&) const = default;
};
using Read10 = Transfer10<ScsiOperation::read_10, TransferFlags>;
using Write10 = Transfer10<ScsiOperation::write_10, TransferFlags>;
using WriteAndVerify10 = Transfer10<ScsiOperation::write_and_verify_10, VerifyFlags>;
using Verify10 = Transfer10<ScsiOperation::verify_10, VerifyFlags>;
using WriteSame10 = Transfer10<ScsiOperation::write_same_10, WriteSameFlags>;
using Prefetch10 = Transfer10<ScsiOperation::prefetch_10, CacheFlags>;
using SynchronizeCache10 = Transfer10<ScsiOperation::synchronize_cache_10, CacheFlags>;
using XorWriteRead10 = Transfer10<ScsiOperation::xor_write_read_10, XorFlags>;
using XorParityWrite10 = Transfer10<ScsiOperation::xor_parity_write_10, XorFlags>;
using XorWrite10 = Transfer10<ScsiOperation::xor_write_10, XorFlags>;
using XorRead10 = Transfer10<ScsiOperation::xor_read_10, XorFlags>;
static_assert(wire_size<Read10>() == 10 && wire_size<Verify10>() == 10);

template <ScsiOperation operation, class Flags>
struct Transfer12 {
    Flags flags{};
    std::uint32_t block_address = 0;
    std::uint32_t block_count = 0;
    std::uint8_t group_number = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<operation>(v);
        v.nested("flags", h.flags);
        v("block address", h.block_address);
        v("block count", h.block_count);
        v.pack(reserved<3>, bits<5>("group number", h.group_number));
        v.nested("control", h.control);
    }
    bool operator==(const Transfer12&) const = default;
};
using Read12 = Transfer12<ScsiOperation::read_12, TransferFlags>;
using Write12 = Transfer12<ScsiOperation::write_12, TransferFlags>;
using WriteAndVerify12 = Transfer12<ScsiOperation::write_and_verify_12, VerifyFlags>;
using Verify12 = Transfer12<ScsiOperation::verify_12, VerifyFlags>;
static_assert(wire_size<Read12>() == 12);

template <ScsiOperation operation, class Flags>
struct Transfer16 {
    Flags flags{};
    std::uint64_t block_address = 0;
    std::uint32_t block_count = 0;
    std::uint8_t group_number = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<operation>(v);
        v.nested("flags", h.flags);
        v("block address", h.block_address);
        v("block count", h.block_count);
        v.pack(reserved<3>, bits<5>("group number", h.group_number));
        v.nested("control", h.control);
    }
    bool operator==(const Transfer16&) const = default;
};
using Read16 = Transfer16<ScsiOperation::read_16, TransferFlags>;
using Write16 = Transfer16<ScsiOperation::write_16, TransferFlags>;
using OrWrite16 = Transfer16<ScsiOperation::or_write_16, TransferFlags>;
using WriteAndVerify16 = Transfer16<ScsiOperation::write_and_verify_16, VerifyFlags>;
using Verify16 = Transfer16<ScsiOperation::verify_16, VerifyFlags>;
using WriteSame16 = Transfer16<ScsiOperation::write_same_16, WriteSameFlags>;
using Prefetch16 = Transfer16<ScsiOperation::prefetch_16, CacheFlags>;
using SynchronizeCache16 = Transfer16<ScsiOperation::synchronize_cache_16, CacheFlags>;
static_assert(wire_size<Read16>() == 16);

/// COMPARE AND WRITE: twice as many blocks as counted are sent, first those to compare with.
struct CompareAndWrite {
    TransferFlags flags{};
    std::uint64_t block_address = 0;
    std::uint8_t block_count = 0;
    std::uint8_t group_number = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::compare_and_write>(v);
        v.nested("flags", h.flags);
        v("block address", h.block_address);
        v.pack(reserved<24>);
        v("block count", h.block_count);
        v.pack(reserved<3>, bits<5>("group number", h.group_number));
        v.nested("control", h.control);
    }
    bool operator==(const CompareAndWrite&) const = default;
};
static_assert(wire_size<CompareAndWrite>() == 16);

/// WRITE ATOMIC(16): all of it or none of it, whatever happens.
struct WriteAtomic16 {
    TransferFlags flags{};
    std::uint64_t block_address = 0;
    std::uint16_t atomic_boundary = 0;  ///< zero: the whole write is one atom
    std::uint16_t block_count = 0;
    std::uint8_t group_number = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::write_atomic_16>(v);
        v.nested("flags", h.flags);
        v("block address", h.block_address);
        v("atomic boundary", h.atomic_boundary);
        v("block count", h.block_count);
        v.pack(reserved<3>, bits<5>("group number", h.group_number));
        v.nested("control", h.control);
    }
    bool operator==(const WriteAtomic16&) const = default;
};
static_assert(wire_size<WriteAtomic16>() == 16);

}  // namespace weft::wire
