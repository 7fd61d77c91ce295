// SPDX-License-Identifier: Apache-2.0
// Where a disk is, in the form libiscsi, qemu and others write it:
//
//     iscsi://[user[%secret]@]host[:port]/target-name/unit
//     iscsi://[user[%secret]@]host[:port]                    all targets there
//
// iser:// is the same over RDMA, and so is ?iser at the end; ?iser=login logs in over TCP and turns
// to RDMA behind that, as RFC 7145 has it, if the target knows how. Other options, joined by &,
// that are known: target_user, target_password (the target must prove itself),
// header_digest=crc32c, data_digest=crc32c.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "iscsi/chap.hpp"
#include "weft/world.hpp"

namespace weft::iscsi {

struct InitiatorUrl {
    bool over_rdma = false;
    bool rdma_after_login = false;
    Address address;
    std::string target_name;  ///< empty: which targets there are is the question
    std::uint32_t unit = 0;
    std::optional<ChapCredentials> credentials{};
    std::optional<ChapCredentials> expected_of_target{};
    bool header_digest = false;
    bool data_digest = false;
};

/// Whether a text means to be such a URL.
bool looks_like_initiator_url(std::string_view text);
Result<InitiatorUrl> parse_initiator_url(std::string_view text);

/// "host[:port]" or "[address]:port", and what follows a comma is left out: TargetAddress too.
Result<Address> parse_portal(std::string_view text);

}  // namespace weft::iscsi
