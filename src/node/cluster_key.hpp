// SPDX-License-Identifier: Apache-2.0
// The key of a cluster: what its boxes know their controller by, and it them. Neither says it; each
// proves by CHAP that it knows what is made of it, when the controller logs in.
#pragma once

#include <string>
#include <string_view>

#include "iscsi/chap.hpp"

namespace weft::node {

/// What the controller logs in to boxes with, and what boxes prove themselves with.
iscsi::ChapCredentials controller_credentials(std::string_view key);
iscsi::ChapCredentials box_credentials(std::string_view key);

}  // namespace weft::node
