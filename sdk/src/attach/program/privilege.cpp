// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/privilege.hpp"

#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "backend/table.hpp"
#include "base/try.hpp"
#include "features/trivial_program.hpp"
#include "sys/bpf_token.hpp"
#include "sys/mounts.hpp"
#include "sys/probe_source.hpp"
#include "sys/read.hpp"
#include "sys/syscalls.hpp"
#include "sys/uapi.hpp"
#include "sys/unique_fd.hpp"
#include "usdt/features.hpp"

namespace usdt {
inline namespace v1 {
namespace {

struct Capability {
  unsigned number;
  const char* name;        ///< as people write it: "CAP_BPF"
  const char* unprefixed;  ///< as `docker run --cap-add` and the like take it
};
constexpr Capability kBpf{CAP_BPF, "CAP_BPF", "BPF"};
constexpr Capability kPerfmon{CAP_PERFMON, "CAP_PERFMON", "PERFMON"};
constexpr Capability kSysAdmin{CAP_SYS_ADMIN, "CAP_SYS_ADMIN", "SYS_ADMIN"};
constexpr Capability kSysPtrace{CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "SYS_PTRACE"};
constexpr Capability kReadSearch{CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH", "DAC_READ_SEARCH"};
constexpr Capability kLease{CAP_LEASE, "CAP_LEASE", "LEASE"};
constexpr Capability kCheckpoint{CAP_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE", "CHECKPOINT_RESTORE"};

/// The capabilities this thread can use.
class Effective {
 public:
  Effective() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    if (::syscall(SYS_capget, &header, sets_.data()) < 0) sets_ = {};
  }
  [[nodiscard]] bool has(const Capability& capability) const { return has(capability.number); }
  /// Whether it has that one, or one that includes it (capabilities(7)).
  [[nodiscard]] bool may(const Capability& capability) const {
    switch (capability.number) {
      case CAP_BPF:
      case CAP_PERFMON:
      case CAP_CHECKPOINT_RESTORE:
        return has(capability) || has(kSysAdmin);
      case CAP_DAC_READ_SEARCH:
        return has(capability) || has(CAP_DAC_OVERRIDE);
      default:
        return has(capability);
    }
  }

 private:
  [[nodiscard]] bool has(unsigned number) const { return (sets_[number / 32].effective >> (number % 32) & 1) != 0; }

  std::array<__user_cap_data_struct, 2> sets_{};
};

bool refused(int result) { return result == -EPERM || result == -EACCES; }

/// Returns the capabilities that loading a program needs and this process lacks.
std::vector<Capability> missing_to_load() {
  const Effective own;
  if (own.has(kSysAdmin)) return {};
  // A kernel that does not know CAP_BPF (before 5.8) answers EINVAL.
  if (::prctl(PR_CAPBSET_READ, CAP_BPF) < 0) return {kSysAdmin};
  std::vector<Capability> missing;
  for (const Capability& each : {kBpf, kPerfmon})
    if (!own.has(each)) missing.push_back(each);
  return missing;
}

/// True where capabilities are of a user namespace of its own: the kernel asks for those of the initial one. Its inode
/// number is fixed (PROC_USER_INIT_INO, include/linux/proc_ns.h).
bool in_user_namespace() {
  std::error_code none;
  const std::string name = std::filesystem::read_symlink("/proc/self/ns/user", none).string();
  return !name.empty() && name != "user:[4026531837]";
}

/// kernel_lockdown(7): "none integrity [confidentiality]".
bool locked_down() {
  const auto mode = sys::read_text("/sys/kernel/security/lockdown", 256);
  return mode && mode->find("[confidentiality]") != std::string::npos;
}

/// How to get the capabilities that are missing.
std::string remedy(const std::vector<Capability>& missing) {
  if (::geteuid() != 0) {
    if (missing.front().number == CAP_SYS_ADMIN) return "run as root";
    return "run as root, or `setcap cap_bpf,cap_perfmon,cap_dac_read_search+ep` on the program";
  }
  std::string options;
  for (const Capability& each : missing) options += fmt::format(" --cap-add {}", each.unprefixed);
  return fmt::format("this root was started without (of a container: `{}`)", options.substr(1));
}

Error lack_of(std::string_view what, const std::vector<Capability>& missing) {
  std::string names;
  for (const Capability& each : missing) names += fmt::format("{}{}", names.empty() ? "" : " and ", each.name);
  return {ErrorKind::no_permission, fmt::format("{} {}: {}", what, names, remedy(missing)), EPERM};
}

/// Asks libbpf, which loads what this library does not load by itself. Before 1.5 it knows no token.
Result<void> libbpf_takes_tokens() {
  if (std::pair(libbpf_major_version(), libbpf_minor_version()) >= std::pair(1U, 5U)) return {};
  return fail(
      ErrorKind::no_permission,
      fmt::format("the BPF token of {} lets this process trace, but libbpf {}.{}, which it is built with, makes "
                  "no use of it: libbpf 1.5 or later does",
                  sys::token_directory(), libbpf_major_version(), libbpf_minor_version()));
}

/// `what` was refused to a process that has the capabilities for it.
Error refused_nevertheless(std::string_view what, int os_error) {
  std::string why = "a security module or a seccomp filter forbids it (of a container: see its runtime's options)";
  if (locked_down()) why = "the kernel is locked down (kernel_lockdown(7): confidentiality)";
  return {ErrorKind::no_permission, fmt::format("{} is refused although no capability is missing: {}", what, why),
          os_error};
}

Error in_namespace(std::string_view what, std::string_view remedy, int os_error) {
  return {ErrorKind::no_permission,
          fmt::format("{} is refused: this process is in a user namespace, whose capabilities do not count {}", what,
                      remedy),
          os_error};
}

/// Whether a program of this kind is loaded, by a token or without.
Result<void> load_one(const features::TrivialProgram& as) {
  const int program = features::load_trivial_program(features::kInsnMoveR0, as);
  const sys::UniqueFd owner(program);
  if (!refused(program)) return in_user_namespace() ? libbpf_takes_tokens() : Result<void>{};
  constexpr std::string_view what = "loading tracing programs";
  if (in_user_namespace())
    return fail(in_namespace(
        what, "without a BPF token that the machine's root delegates (Linux 6.9, docs/containers.md)", -program));
  if (const auto missing = missing_to_load(); !missing.empty()) return fail(lack_of("tracing needs", missing));
  return fail(refused_nevertheless(what, -program));
}

Result<void> may_load() { return load_one({}); }

/// Opens a perf uprobe on "/". A directory is no target: EINVAL, once the kernel has found the caller privileged.
int provoke_perf_uprobe() {
  const auto source = sys::probe_source("uprobe");
  if (!source) return 0;
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = source->type;
  attr.config1 = reinterpret_cast<std::uintptr_t>("/");
  const int event = sys::syscalls().perf_event_open(&attr, 0, -1, -1, 0);
  const sys::UniqueFd owner(event);
  return event;
}

Result<void> may_open_perf_uprobes() {
  const int event = provoke_perf_uprobe();
  if (!refused(event)) return {};
  if (in_user_namespace()) return fail(in_namespace("opening perf uprobes", "for it: run outside of it", -event));
  if (Effective().has(kSysAdmin)) return fail(refused_nevertheless("opening perf uprobes", -event));
  return fail(
      lack_of("uprobe_multi (Linux 6.6) needs only CAP_BPF and CAP_PERFMON, but perf uprobes on this kernel "
              "need",
              {kSysAdmin}));
}

bool opens_perf_uprobes(Backend backend) {
  const backends::BackendRow& row = backends::row_of(backend);
  return row.on_perf_event && row.info.points == PointKind::file;
}

/// Whether a token lets this process load programs of a kind.
bool by_token(const features::TrivialProgram& as) { return in_user_namespace() && load_one(as).has_value(); }

/// Returns the backend for files unless one is asked for: the first that the kernel is not known to lack.
Backend likely_backend() {
  const auto likely = std::ranges::find_if(backends::kBackends, [](const backends::BackendRow& row) {
    return row.info.points == PointKind::file && (!row.feature || probe_feature(*row.feature).answer != Answer::no);
  });
  return likely->backend;
}

}  // namespace

Result<void> check_privilege(Backend backend) {
  TRY(may_load());
  return opens_perf_uprobes(backend == Backend::automatic ? likely_backend() : backend) ? may_open_perf_uprobes()
                                                                                        : Result<void>{};
}

std::optional<BpfToken> find_bpf_token() {
  if (!in_user_namespace()) return std::nullopt;
  BpfToken token{.directory = sys::token_directory()};
  for (const sys::Mount& mount : sys::mounts()) {
    if (mount.type != "bpf" || mount.place != token.directory) continue;
    token.delegates.clear();  // a later mount covers an earlier one
    std::string_view rest = mount.options;
    while (!rest.empty()) {
      const std::string_view option = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(option.size() + 1, rest.size()));
      if (option.starts_with("delegate_")) token.delegates.emplace_back(option);
    }
  }
  if (token.delegates.empty()) return std::nullopt;
  if (const int made = sys::bpf_token(); made == -EPERM)
    token.why_not = "making it takes CAP_BPF in this user namespace, and in no other";
  else if (made < 0)
    token.why_not = std::generic_category().message(-made);
  else if (auto loaded = load_one({}); !loaded)
    token.why_not = loaded.error().message;
  return token;
}

std::vector<Right> list_rights() {
  const Effective own;
  const bool counts = !in_user_namespace();
  std::vector<Right> rights;
  const auto add = [&](std::string_view purpose, std::initializer_list<Capability> needed, bool by_token = false) {
    Right& right = rights.emplace_back(Right{.purpose = purpose});
    for (const Capability& each : needed) {
      right.needs.emplace_back(each.name);
      if (!(counts || by_token) || !own.may(each)) right.lacks.emplace_back(each.name);
    }
  };
  constexpr std::string_view files = "probes and functions of files that everybody may read";
  if (opens_perf_uprobes(likely_backend()))
    add(files, {kBpf, kPerfmon, kSysAdmin});
  else
    add(files, {kBpf, kPerfmon}, by_token({}));
  add("functions of the kernel", {kBpf, kPerfmon}, by_token({.attach_type = sys::kBpfAttachTraceKprobeMulti}));
  add("processes of other users", {kSysPtrace});
  add("programs that only their users may read", {kReadSearch});
  add("nobody writes to a traced file before it is let go", {kLease});
  add("a command's breakpoints in it alone; programs held until they are traced", {kSysAdmin});
  add("files that nobody has mapped any more are let go", {kCheckpoint});
  return rights;
}

}  // namespace v1
}  // namespace usdt
