// SPDX-License-Identifier: Apache-2.0
// The part of what was agreed on that movers care about, as each side sees it.
#pragma once

#include "iscsi/datamover.hpp"
#include "iscsi/negotiation.hpp"

namespace weft::iscsi {

ConnectionTerms target_connection_terms(const Terms& terms);
ConnectionTerms initiator_connection_terms(const Terms& terms);

}  // namespace weft::iscsi
