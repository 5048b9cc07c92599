// SPDX-License-Identifier: BSD-2-Clause
// USDT probes as a file has them: Site is one note, one place where a probe was compiled in, with its addresses and its
// instruction bytes. ElfFile::scan() reads all sites of a file, ArgDecoder::decode() makes Args of Site::args_text, and
// to_string(SiteClass) prints what is at the site.
// Threads: plain values that own their strings; the description is shared and never changes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "usdt/address.hpp"
#include "usdt/machine.hpp"

namespace usdt {
inline namespace v1 {

/// Classifies the instruction at a site by its bytes, on which the cost of a hit depends. It does not depend on the
/// kernel: which nop the running kernel can turn into a call is the planner's business (site_cost()).
enum class SiteClass : std::uint8_t {
  unknown,      ///< the bytes are not in this file (separate debug file, archive member, outside any segment)
  nop,          ///< one plain nop: a breakpoint, emulated by the kernel
  nop_nop5,     ///< x86-64: `nop; nopl 0(%rax,%rax,1)` (libbpf/usdt Feb..May 2026)
  nop_nop10,    ///< x86-64: `nop; cs nopw 0(%rax,%rax,1)` (libbpf/usdt since July 2026)
  nop5,         ///< x86-64: a bare 5-byte nop; Linux 6.18 turns it into a call that writes below %rsp
  nop10,        ///< x86-64: a bare 10-byte nop
  emulated,     ///< another instruction the kernel emulates (push, jmp, call, multi-byte nop)
  single_step,  ///< anything else: executed out of line under single-step, about 10 times a nop
};
/// Returns "nop", "nop,nop5", ...: the words of `site.class` in JSON.
[[nodiscard]] std::string_view to_string(SiteClass site_class) noexcept;

/// Holds the instruction bytes at a site, up to 16 of them.
struct SiteBytes {
  std::array<std::uint8_t, 16> data{};
  std::uint8_t size = 0;
};

/// Holds the provider's own description of a site, which stands beside its stapsdt note (docs/provider-note.md).
struct SiteDescription {
  std::string file;        ///< of the source, as the compiler was given it
  std::uint32_t line = 0;  ///< from 1 on; 0: not known
  std::string types;       ///< a byte for each argument
  std::string written;     ///< the arguments as the source has them: "request->sql, rows"
  std::string declared;    ///< the declaration of the probe: "sql:string, rows"

  friend bool operator==(const SiteDescription&, const SiteDescription&) = default;
};

/// Describes one stapsdt note: one place in one file where a probe was compiled in. Owns its strings.
struct Site {
  std::string provider;
  std::string name;
  std::string args_text;  ///< the note's third string, untouched
  /// The note's three words as they stand (an archive member's after its relocations), the first of which is the
  /// address of the site.
  VirtAddr pc;
  VirtAddr base;
  VirtAddr semaphore;  ///< 0: none
  /// Whether there is a semaphore. It differs from semaphore != 0 only in an archive member, where the address may be
  /// 0.
  bool has_semaphore = false;
  /// `pc` and `semaphore` after the prelink correction (address of section .stapsdt.base, less `base`).
  VirtAddr pc_adjusted;
  VirtAddr semaphore_adjusted;
  /// File offset of the site through its executable PT_LOAD; absent for separate debug files, archive members,
  /// and addresses no segment covers.
  std::optional<FileOffset> offset;
  /// File offset of the semaphore's 2-byte counter through its writable PT_LOAD.
  std::optional<FileOffset> semaphore_offset;
  SiteBytes bytes;
  SiteClass site_class = SiteClass::unknown;
  /// The archive member the note is in ("malloc.o"); empty elsewhere.
  std::string member;
  /// The provider's description, which sites with equal descriptions share. Null: there is none.
  std::shared_ptr<const SiteDescription> description = {};
};

/// Reports something that a scan passed over and went on: "note at file offset 0x1f40: name is not terminated".
struct ScanWarning {
  FileOffset where;
  std::string message;
};

}  // namespace v1
}  // namespace usdt
