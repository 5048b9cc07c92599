// SPDX-License-Identifier: BSD-2-Clause
// Kinds of the entries that definitions are a sequence of. Private to record/.
#pragma once

#include <cstdint>

namespace usdt::record {

enum class Tag : std::uint8_t {
  info = 1,
  property = 2,
  file = 3,
  function = 4,
  probe = 5,
  arguments = 6,
  spec = 7,
  group = 8,
  site = 9,
  notice = 10,
  ledger = 11,  ///< an account begins
  counts = 12,  ///< of one probe
  missed = 13,
  skipped = 14,
  change = 15,
  ledger_end = 16,  ///< it is complete
  string_size = 17,
  weight = 18,
  followed = 19,
  owners = 20,      ///< threads have a user, a group and a cgroup, and perhaps a parent
  enders = 21,      ///< events of spans have the thread that ended them
  contexts = 22,    ///< events have the trace and span that their threads work for
  attributes = 23,  ///< and the attributes of these contexts
};

}  // namespace usdt::record
