// SPDX-License-Identifier: BSD-2-Clause
// Reads what a process says of all its threads: OpenTelemetry's process context (OTEP 4719), as far as it is about the
// records of threads (OTEP 4947). A process may write anything there, and may change it while it is read.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/address.hpp"
#include "usdt/result.hpp"

namespace usdt::proc {

inline constexpr std::size_t kMostContextBytes = 65536;  ///< of a payload
inline constexpr std::size_t kMostContextKeys = 256;     ///< a thread's record has a byte for the number of a key

/// What the payload says of threads' records.
struct ProcessContext {
  std::string schema;             ///< "threadlocal.schema_version"; empty: none
  std::vector<std::string> keys;  ///< "threadlocal.attribute_key_map": what attributes are called, by their numbers
  friend bool operator==(const ProcessContext&, const ProcessContext&) = default;
};

/// Reads a payload, a message of protobuf. Errors: malformed (it is none, or says one of the two twice), limit (it is
/// too long, or has too many keys).
[[nodiscard]] Result<ProcessContext> parse_process_context(std::string_view payload);

/// A context with where and when it was published.
struct PublishedContext {
  ProcessAddr page;                ///< at which its header is
  std::uint64_t published_at = 0;  ///< ns of CLOCK_BOOTTIME, as the process says; another one for each change
  ProcessContext context;
};
/// The byte of the header at which `published_at` is; 0 there: the process is changing it.
inline constexpr std::size_t kPublishedAt = 16;

/// Reads the context of process `pid`: whole, as it was at one time. `page`: where it was found before; 0: it is looked
/// for. Errors: not_found (it publishes none, or is gone), no_permission, not_supported (a version of the header or a
/// form of records that is not known), malformed, limit, io (it cannot be read, or was changed again and again).
[[nodiscard]] Result<PublishedContext> read_process_context(pid_t pid, ProcessAddr page = ProcessAddr(0));

}  // namespace usdt::proc
