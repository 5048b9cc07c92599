// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "usdt/bpf/spec.h"
#include "usdt/decode.hpp"
#include "usdt/discover.hpp"
#include "usdt/elf_file.hpp"
#include "usdt/pattern.hpp"
#include "usdt/probe.hpp"
#include "usdt/result.hpp"

namespace usdt {

/// One scanned file with the sites asked for.
struct ProbeFile {
  TargetFile target;
  std::shared_ptr<const ElfFile> elf;
  std::vector<Site> sites;
  std::vector<ScanWarning> warnings;
};

/// Scans `target` and keeps the sites that one of `patterns` matches by provider and name (all if there are none).
[[nodiscard]] Result<ProbeFile> find_probes(const TargetFile& target, const std::vector<ProbePattern>& patterns);

/// Whose hits count.
struct AllProcesses {};
struct OneProcess {
  pid_t pid = 0;  ///< a process (thread group), in the caller's pid namespace
};
using Scope = std::variant<AllProcesses, OneProcess>;

/// How the running kernel treats x86-64 multi-byte nops (probed by features.hpp; here a plain value so that
/// planning stays a pure function).
enum class NopOptimisation : std::uint8_t {
  none,   ///< every nop is a breakpoint: sit on the first one
  nop5,   ///< 6.18..: a nop5 becomes a call that writes below %rsp: never sit on one (truth rule 4)
  nop10,  ///< 7.2..: a nop10 is optimised safely: sit on the nop10 of `nop,nop10`
};

struct PlanOptions {
  Scope scope = AllProcesses{};
  std::uint64_t user_cookie = 0;  ///< what usdt_cookie() returns in the program
  /// The same for each site of its own (by provider and name, say); goes before `user_cookie`.
  std::function<std::uint64_t(const Site&)> user_cookie_of = {};
  NopOptimisation nops = NopOptimisation::none;
  /// Attach to bare nop5 sites even where the kernel's optimisation may corrupt the traced program.
  bool allow_unsafe_nop5 = false;
  /// Argument numbers the stock program also fetches as text (char pointers); empty: none.
  std::vector<std::uint8_t> strings = {};
};

/// A site that will be attached.
struct PlannedSite {
  std::uint32_t probe = 0;  ///< index into AttachPlan::probes
  std::uint32_t file = 0;   ///< index into AttachPlan::files
  std::uint32_t spec = 0;   ///< index into AttachPlan::specs
  VirtAddr pc;              ///< the note's
  FileOffset offset;        ///< where the breakpoint goes: the site, or its nop10
  std::uint32_t args = 0;   ///< index into AttachPlan::args
};

/// A site that will not be attached, and why.
struct SkippedSite {
  std::uint32_t probe = 0;
  std::uint32_t file = 0;
  VirtAddr pc;
  std::string reason;
};

/// One provider:name of one file; its sites may differ in signature.
struct PlannedProbe {
  std::uint32_t file = 0;
  std::string provider;
  std::string name;
};

/// One file and its sites: entry i of each array describes site `sites[i]`.
struct PlannedFile {
  TargetFile target;
  std::shared_ptr<const ElfFile> elf;  ///< keeps the scanned inode open: attaching goes to /proc/self/fd/N
  std::vector<std::uint64_t> offsets;
  std::vector<std::uint64_t> ref_ctr_offsets;  ///< 0: no semaphore
  std::vector<std::uint32_t> sites;  ///< indices into AttachPlan::sites
};

/// An encoded spec, deduplicated over all sites of the plan.
struct EncodedSpec {
  std::uint64_t user_cookie = 0;
  std::vector<usdt_arg_spec> args;
};

/// Everything attaching needs, computed from files alone: print it, test it, attach it.
struct AttachPlan {
  Scope scope;
  std::vector<PlannedFile> files;
  std::vector<PlannedProbe> probes;
  std::vector<PlannedSite> sites;  ///< a site's index is the site number of usdt_site()
  std::vector<SkippedSite> skipped;
  std::vector<EncodedSpec> specs;
  std::vector<std::vector<Arg>> args;  ///< distinct decoded argument lists
  std::uint32_t max_args = 0;          ///< of any spec
  std::uint32_t string_slots = 0;      ///< of any spec (PlanOptions::strings)
};

/// Plans the attachment of all sites of `files`. A site that cannot be attached becomes SkippedSite; that every site
/// was skipped is an error (not_supported, naming the first reason), as is an empty input (not_found).
[[nodiscard]] Result<AttachPlan> plan_attach(const std::vector<ProbeFile>& files, const PlanOptions& options = {});

}  // namespace usdt
