// SPDX-License-Identifier: BSD-2-Clause
// How programs in the kernel read what is known of every hit: a row for each field. Private to expr/.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "expr/instructions.hpp"
#include "usdt/bpf/filter.h"
#include "usdt/hit_field.hpp"

namespace usdt::expr {

/// How one field is read.
struct FieldReader {
  enum class From : std::uint8_t {
    helper,    ///< the helper `helper` returns it
    task,      ///< by bpf_get_ns_current_pid_tgid() where the tracer has a pid namespace of its own
    parent,    ///< by the task's pointer to its parent, with Surroundings::parents
    duration,  ///< the caller has it
    site,      ///< as a key it is the number of the site; else at_site() makes a literal of it
    text,      ///< it is compared piece by piece, and has no number
    other,     ///< check() makes a difference of it
    row,       ///< the program puts it into the row (put_stacks() of bpf/trace/stacks.h)
  };
  enum class Half : std::uint8_t { both, low, high };

  HitField field;
  From from;
  Half half = Half::both;
  std::int32_t helper = 0;
  /// enum usdt_begin_fact: the program at the end of a span has it of the beginning. 0: it reads it itself. A text has
  /// two, of which this is the first.
  std::uint8_t beginning = 0;
};

inline constexpr auto kFieldReaders = [] {
  using Reader = FieldReader;
  using From = FieldReader::From;
  using Half = FieldReader::Half;
  return std::array{Reader{.field = HitField::pid, .from = From::task, .half = Half::high, .beginning = USDT_BEGIN_PID},
                    Reader{.field = HitField::tid, .from = From::task, .half = Half::low, .beginning = USDT_BEGIN_TID},
                    Reader{.field = HitField::comm, .from = From::text, .beginning = USDT_BEGIN_COMM},
                    Reader{.field = HitField::cpu,
                           .from = From::helper,
                           .helper = BPF_FUNC_get_smp_processor_id,
                           .beginning = USDT_BEGIN_CPU},
                    Reader{.field = HitField::uid,
                           .from = From::helper,
                           .half = Half::low,
                           .helper = BPF_FUNC_get_current_uid_gid,
                           .beginning = USDT_BEGIN_UID},
                    Reader{.field = HitField::gid,
                           .from = From::helper,
                           .half = Half::high,
                           .helper = BPF_FUNC_get_current_uid_gid,
                           .beginning = USDT_BEGIN_GID},
                    Reader{.field = HitField::ppid, .from = From::parent, .beginning = USDT_BEGIN_PPID},
                    Reader{.field = HitField::cgroup,
                           .from = From::helper,
                           .helper = BPF_FUNC_get_current_cgroup_id,
                           .beginning = USDT_BEGIN_CGROUP},
                    Reader{.field = HitField::nsecs, .from = From::helper, .helper = BPF_FUNC_ktime_get_ns},
                    Reader{.field = HitField::elapsed, .from = From::other},
                    Reader{.field = HitField::duration, .from = From::duration},
                    Reader{.field = HitField::provider, .from = From::site},
                    Reader{.field = HitField::name, .from = From::site},
                    Reader{.field = HitField::probe, .from = From::site},
                    Reader{.field = HitField::ip, .from = From::site},
                    Reader{.field = HitField::ustack, .from = From::row},
                    Reader{.field = HitField::kstack, .from = From::row},
                    Reader{.field = HitField::trace_id, .from = From::text, .beginning = USDT_BEGIN_TRACE},
                    Reader{.field = HitField::span_id, .from = From::text, .beginning = USDT_BEGIN_TRACE_SPAN}};
}();
static_assert(kFieldReaders.size() == kHitFields.size() && are_in_order(kFieldReaders),
              "each field has a reader, in its place");

[[nodiscard]] constexpr const FieldReader& reader_of(HitField field) noexcept {
  return kFieldReaders[static_cast<std::size_t>(field)];
}

}  // namespace usdt::expr
