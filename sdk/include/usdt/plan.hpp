// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "usdt/backend.hpp"
#include "usdt/bpf/processes.h"
#include "usdt/bpf/spec.h"
#include "usdt/decode.hpp"
#include "usdt/discover.hpp"
#include "usdt/elf_file.hpp"
#include "usdt/kernel.hpp"
#include "usdt/machine.hpp"
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
[[nodiscard]] Result<ProbeFile> find_probes(const TargetFile& target, const std::vector<ProbePattern>& patterns,
                                            const OpenOptions& options = {});

/// Whose hits count.
struct AllProcesses {};
class OneProcess {
 public:
  /// A process (thread group), by its number in the caller's pid namespace; whether there is one is seen when it is
  /// attached to. Errors: invalid_argument (0 or less, which the kernel's interfaces take for every process).
  [[nodiscard]] static Result<OneProcess> of(pid_t pid);
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

 private:
  explicit OneProcess(pid_t pid) noexcept : pid_(pid) {}
  pid_t pid_;
};
/// One process or several, each once.
class Processes {
 public:
  /// At most so many: programs compare each hit's process with all of them, where the kernel does not.
  static constexpr std::size_t kMost = USDT_MAX_PROCESSES;
  /// As OneProcess::of(), in any order. Errors: invalid_argument (none; 0 or less; one twice), limit (more than kMost).
  [[nodiscard]] static Result<Processes> of(std::vector<pid_t> pids);
  Processes(OneProcess process) : pids_{process.pid()} {}  // NOLINT(google-explicit-constructor): one is a case of some
  [[nodiscard]] const std::vector<pid_t>& pids() const noexcept { return pids_; }

 private:
  explicit Processes(std::vector<pid_t> pids) noexcept : pids_(std::move(pids)) {}
  std::vector<pid_t> pids_;
};
using Scope = std::variant<AllProcesses, OneProcess, Processes>;
/// Their numbers, as they were given; none: every process.
[[nodiscard]] std::vector<pid_t> pids_of(const Scope& scope);

/// How a kernel treats x86-64 multi-byte nops.
enum class NopOptimisation : std::uint8_t {
  none,   ///< every nop is a breakpoint: sit on the first one
  nop5,   ///< 6.18..: a nop5 becomes a call that writes below %rsp: never sit on one (truth rule 4)
  nop10,  ///< 7.2..: a nop10 is optimised safely: sit on the nop10 of `nop,nop10`
};

/// What a kernel can do at its own functions (kernel_abilities() asks the running one).
struct KernelAbilities {
  Machine machine = Machine::x86_64;  ///< the kernel's own
  bool perf_kprobe = true;            ///< CONFIG_KPROBE_EVENTS; false only where the kernel is seen to lack it
  bool kprobe_multi = false;          ///< 5.18, CONFIG_FPROBE
  bool kprobe_session = false;        ///< 6.10
  bool tracing = false;               ///< fentry and fexit: 5.5, arm64 6.4 or so
  bool tracing_session = false;       ///< fsession: 7.0
  bool tracing_multi = false;         ///< fentry, fexit and fsession: 7.2, x86-64
  bool func_arg = false;              ///< bpf_get_func_arg(): 5.17
  bool tp_btf_func_arg = false;       ///< the same in tp_btf programs: 7.2
  bool perf_cookies = false;          ///< attach cookies of perf events and kprobe_multi: 5.15
  bool tracing_cookies = false;       ///< of trampolines: 5.19
  bool raw_tp_cookies = false;        ///< of raw tracepoints: 6.10
  bool kernel_btf = false;

  friend bool operator==(const KernelAbilities&, const KernelAbilities&) = default;
};

/// What plans depend on of the kernel they are for: kernel_facts() asks the running one, and here it is a plain value,
/// so that planning stays a pure function. What was not asked is taken for the worst: nops are not safe to sit on, and
/// nothing can be done.
struct KernelFacts {
  NopOptimisation nops = NopOptimisation::nop5;
  KernelAbilities abilities = {};
};

/// An argument by its number, or by its name (Arg::name; "retval": the return value of a kernel function).
using ArgName = std::variant<std::uint8_t, std::string>;
/// Position of an argument in a site's list.
[[nodiscard]] std::optional<std::size_t> find_arg(const std::vector<Arg>& args, const ArgName& name);

/// Text that need not end in a NUL: as many bytes as argument `length` says, or up to a NUL before.
struct BoundedString {
  ArgName text;
  ArgName length;
};

struct PlanOptions {
  Scope scope = AllProcesses{};
  std::uint64_t user_cookie = 0;  ///< what usdt_cookie() returns in the program
  /// The same for each site of its own (by provider and name, say); goes before `user_cookie`.
  std::function<std::uint64_t(const Site&)> user_cookie_of = {};
  /// The same for kernel functions.
  std::function<std::uint64_t(const KernelFunction&)> user_cookie_of_function = {};
  /// Of kernel functions; automatic: the cheapest that can do what is asked.
  Backend kernel_backend = Backend::automatic;
  /// Attach to bare nop5 sites even where the kernel's optimisation may corrupt the traced program.
  bool allow_unsafe_nop5 = false;
  /// Argument numbers the stock program also fetches as text (char pointers); empty: none.
  std::vector<std::uint8_t> strings = {};
  /// The same by name (Arg::name).
  std::vector<std::string> string_names = {};
  /// The same with lengths. Texts of probes whose documentation says where their lengths are (known_lengths()) have
  /// them unasked.
  std::vector<BoundedString> bounded_strings = {};
  /// The same for return values.
  bool string_results = false;
  /// The same for every argument whose type is known to be a pointer to characters.
  bool capture_text = false;
};

/// In place of an index: none.
inline constexpr std::uint32_t kNone = 0xffffffff;

/// A site that will be attached: a place in a file, or a kernel function.
struct PlannedSite {
  std::uint32_t probe = 0;         ///< index into AttachPlan::probes
  std::uint32_t file = kNone;      ///< index into AttachPlan::files
  std::uint32_t function = kNone;  ///< index into AttachPlan::functions
  std::uint32_t spec = 0;          ///< index into AttachPlan::specs
  VirtAddr pc;                     ///< the note's; kernel functions: the address
  FileOffset offset;               ///< where the breakpoint goes: the site, or its nop10
  std::uint32_t args = 0;          ///< index into AttachPlan::args
  std::uint32_t program = kNone;   ///< index into AttachPlan::programs; kNone: for any program
  std::uint8_t tracer_frames = 0;  ///< innermost frames of its kernel stacks that are the program's and trampoline's
};

/// A site that will not be attached, and why.
struct SkippedSite {
  std::uint32_t probe = 0;
  std::uint32_t file = kNone;
  VirtAddr pc;
  std::string reason;
};

/// One provider:name of one file, whose sites may differ in signature; or one kernel function.
struct PlannedProbe {
  std::uint32_t file = kNone;  ///< kNone: of the kernel
  std::string provider;        ///< of the kernel: the prefix, "fentry"
  std::string name;            ///< of the kernel: "vfs_read", "nf_tables:nft_do_chain" in a module
};

/// One file and its sites: entry i of each array describes site `sites[i]`.
struct PlannedFile {
  TargetFile target;
  std::shared_ptr<const ElfFile> elf;  ///< keeps the scanned inode open: attaching goes to /proc/self/fd/N
  std::vector<std::uint64_t> offsets;
  std::vector<std::uint64_t> ref_ctr_offsets;  ///< 0: no semaphore
  std::vector<std::uint32_t> sites;            ///< indices into AttachPlan::sites
};

/// A kernel function or raw tracepoint of the plan.
struct PlannedFunction {
  std::string name;
  std::string module;         ///< empty: vmlinux
  std::uint64_t address = 0;  ///< 0: not known, or a tracepoint
  std::uint32_t btf_id = 0;
};

/// Kernel functions of one module that are attached in one way. Where the kernel has no program that runs at both ends
/// of a call, `calls` are two: one program at the entry, another at the return.
struct PlannedKernel {
  KernelKind kind;
  Backend backend = Backend::kprobe_multi;
  usdt_source source = USDT_SOURCE_KERNEL;
  bool cookies = true;   ///< this backend has attach cookies here
  bool session = false;  ///< calls: one program at both ends
  std::string module;
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
  std::vector<PlannedFunction> functions;
  std::vector<PlannedKernel> kernels;
  Machine kernel_machine = Machine::x86_64;
  std::vector<PlannedProbe> probes;
  std::vector<PlannedSite> sites;  ///< a site's index is the site number of usdt_site()
  std::vector<SkippedSite> skipped;
  std::vector<EncodedSpec> specs;
  std::vector<std::vector<Arg>> args;  ///< distinct decoded argument lists
  std::uint32_t max_args = 0;          ///< of any spec
  std::uint32_t string_slots = 0;      ///< of any spec (PlanOptions::strings)
  std::vector<std::string> programs;   ///< of one BPF object, each for sites of its own (join_plans())
};

/// Plans the attachment of all sites of `files` and of `selection`'s functions to `kernel`. A site that cannot be
/// attached becomes SkippedSite; that every site was skipped is an error (not_supported, naming the first reason), as
/// is an empty input (not_found).
[[nodiscard]] Result<AttachPlan> plan_attach(const std::vector<ProbeFile>& files, const KernelFacts& kernel,
                                             const PlanOptions& options = {});
[[nodiscard]] Result<AttachPlan> plan_attach(const std::vector<ProbeFile>& files, const KernelSelection& selection,
                                             const KernelFacts& kernel, const PlanOptions& options = {});

/// A program of a BPF object, and the sites it is for.
struct ProgramPlan {
  std::string program;  ///< name of the C function
  AttachPlan plan;
};
/// One plan of several, so that one object is loaded once for all of them and its programs share their maps. Sites,
/// probes and so on keep their order, those of the first part first. Errors: invalid_argument (no part; a part without
/// a program's name, or joined already; scopes that differ), limit (more sites than can be told apart).
[[nodiscard]] Result<AttachPlan> join_plans(std::vector<ProgramPlan> parts);

/// A kernel function or raw tracepoint as it would be attached, for people to choose from.
struct KernelPoint {
  std::string name;           ///< "fentry:vfs_read", "kprobe:nf_tables:nft_do_chain": pastes into usdt-trace
  std::string signature;      ///< "ssize_t (struct file *file, ...)"; empty: types are not known
  std::vector<Arg> args;      ///< those a program of this kind can ask for; `any`: as a kprobe has them
  std::optional<Arg> result;  ///< where the kind has one
  std::string refused;        ///< why it cannot be attached; empty: it can, if the kernel has such programs
};
/// One of `selection`'s entries on a kernel of `machine`. Reads no more than the selection did.
[[nodiscard]] KernelPoint describe_point(const KernelSelection& selection, const KernelSelection::Entry& entry,
                                         Machine machine);
/// "fentry:vfs_read", "kprobe:nf_tables:nft_do_chain".
[[nodiscard]] std::string kernel_name(KernelKind kind, std::string_view module, std::string_view name);

/// The machine whose registers a site's specs name.
[[nodiscard]] Machine machine_of(const AttachPlan& plan, const PlannedSite& site);

}  // namespace usdt
