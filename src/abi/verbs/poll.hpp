// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

namespace weft::abi {

/// Gives a completion queue the functions by which ibv_start_poll() and ibv_wc_read_*() work.
void fill_readers(ibv_cq_ex& face);

}  // namespace weft::abi
