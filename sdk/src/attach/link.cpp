// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/link.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <unordered_map>
#include <unordered_set>

#include "attach/backend.hpp"
#include "attach/bpf_object_impl.hpp"
#include "attach/kernel_backend.hpp"
#include "attach/link_impl.hpp"
#include "attach/specialise.hpp"
#include "sys/syscalls.hpp"
#include "sys/uapi.hpp"
#include "usdt/discover.hpp"
#include "usdt/features.hpp"
#include "usdt/privilege.hpp"

namespace usdt {

Link::Link(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Link::Link(Link&&) noexcept = default;
Link& Link::operator=(Link&& other) noexcept {
  if (impl_ && this != &other) detach();
  impl_ = std::move(other.impl_);
  return *this;
}
Link::~Link() {
  if (impl_) detach();
}

Backend Link::backend() const noexcept { return impl_->backend; }
std::string Link::backend_text() const {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->by_backend.size() < 2) return std::string(to_string(impl_->backend));
  std::string text;
  for (const auto& [backend, sites] : impl_->by_backend)
    text += fmt::format("{}{} ({} site{})", text.empty() ? "" : ", ", to_string(backend), sites, sites == 1 ? "" : "s");
  return text;
}
Carrier Link::carrier() const noexcept { return impl_->carrier; }
const std::string& Link::carrier_text() const noexcept { return impl_->carrier_text; }
std::size_t Link::attached() const noexcept {
  const std::lock_guard lock(impl_->mutex);
  return impl_->attached;
}
const std::vector<SkippedSite>& Link::refused() const noexcept { return impl_->refused; }
void Link::detach() noexcept {
  impl_->guard.reset();
  if (!impl_->fds.empty()) impl_->missed_by_links = impl_->ask_links();
  backends::close_together(impl_->fds, impl_->events);
  impl_->attached = 0;
}

namespace {

bool has_ended(pid_t pid) { return ::kill(pid, 0) != 0 && errno == ESRCH; }

/// Two of them run in one memory, as after vfork(): a link for each would count the hits of both.
bool share_memory(const std::vector<pid_t>& pids) {
  for (std::size_t i = 0; i < pids.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k)
      if (::syscall(SYS_kcmp, pids[i], pids[k], KCMP_VM, 0, 0) == 0) return true;
  }
  return false;
}

/// The pids the kernel shall filter by, with a link for each; only 0, where it cannot (before 6.10 uprobe_multi
/// compared threads; it puts breakpoints into the memory of the first thread, which one that has ended lacks) or need
/// not. Those that have ended are left out. Errors: not_found (all have).
Result<std::vector<pid_t>> kernel_pid_filter(const Scope& scope, Backend backend) {
  std::vector<pid_t> pids = pids_of(scope);
  if (pids.empty()) return std::vector<pid_t>{0};
  const std::string all = fmt::format("{}", fmt::join(pids, ", "));
  std::erase_if(pids, has_ended);
  if (pids.empty()) return fail(ErrorKind::not_found, fmt::format("no process {}", all));
  const bool exact = backend == Backend::perf_uprobe || probe_feature(Feature::uprobe_multi_pid).answer == Answer::yes;
  if (!exact || std::ranges::any_of(pids, first_thread_has_ended) || share_memory(pids)) return std::vector<pid_t>{0};
  return pids;
}

std::string errno_text(int os_error) {
  // Of kprobes: can_probe(), arch/x86/kernel/kprobes/core.c.
  if (os_error == EILSEQ)
    return "no instruction begins there, as far as the kernel can tell, or another tool has put a breakpoint there "
           "(EILSEQ)";
  return os_error == sys::enotsupp ? "ENOTSUPP" : std::strerror(os_error);
}

Error explain(const Error& error, std::string_view what, Backend backend) {
  if (error.kind == ErrorKind::no_permission) {
    if (auto privilege = check_privilege(backend); !privilege) return privilege.error();
  }
  return error.within(fmt::format("attach {} by {}", what, to_string(backend)));
}

}  // namespace

/// Every function of `link` refused: their module went after they were planned.
backends::FileLinks refuse_all(const PlannedLink& link) {
  backends::FileLinks links;
  for (std::size_t i = 0; i < link.sites.size(); ++i) links.refused.push_back({i, ENOENT});
  return links;
}

std::string why_refused(const PlannedKernel& group, int os_error) {
  if (os_error == ENOENT && !group.module.empty()) return fmt::format("it, or its module '{}', is gone", group.module);
  return fmt::format("the kernel refuses it: {}", errno_text(os_error));
}

/// One plan being attached.
class Attachment {
 public:
  /// `program`: empty: those that the plan names.
  Attachment(const LoadedObject::Impl& object, std::string_view program, std::vector<pid_t> pids)
      : object_(object), program_(program), plan_(*object.plan), pids_(std::move(pids)) {}

  Result<std::unique_ptr<Link::Impl>> run() {
    impl_->plan = object_.plan;
    impl_->backend = object_.backend;
    impl_->carrier = object_.carriers.carrier;
    impl_->carrier_text = object_.carriers.describe();
    for (const PlannedLink& planned : object_.carriers.links) {
      if (!is_wanted(planned)) continue;
      if (auto added = add(planned); !added) return fail(added.error());
    }
    if (impl_->attached > 0) return std::move(impl_);
    if (impl_->refused.empty()) return fail(ErrorKind::not_found, "the plan has no site to attach");
    return fail(ErrorKind::not_supported, fmt::format("no site could be attached: {}", impl_->refused.front().reason));
  }

 private:
  /// The C function that sites of program `number` run.
  [[nodiscard]] const std::string& name_of(std::uint32_t number) const {
    const std::uint32_t named = object_.carriers.programs[number].kind.program;
    return named == kNone ? program_ : plan_.programs[named];
  }
  [[nodiscard]] bool is_wanted(const PlannedLink& planned) const {
    return program_.empty() || name_of(planned.program) == program_;
  }
  [[nodiscard]] const bpf_program* program_of(std::uint32_t number) const {
    return bpf_object__find_program_by_name(object_.copies[number].get(), name_of(number).c_str());
  }
  [[nodiscard]] Result<int> fd_of(std::uint32_t number) const {
    const bpf_program* program = program_of(number);
    const int fd = program ? bpf_program__fd(program) : -1;
    if (fd < 0)
      return fail(ErrorKind::not_found, fmt::format("the BPF object has no program '{}' loaded", name_of(number)));
    return fd;
  }

  Result<void> add(const PlannedLink& planned) {
    const bool of_file = planned.kernel == kNone;
    if (of_file && !runs_here(plan_.files[planned.file].elf->machine())) {
      refuse_foreign(planned);
      return {};
    }
    auto program_fd = fd_of(planned.program);
    if (!program_fd) return fail(program_fd.error());
    const ProgramKind& kind = object_.carriers.programs[planned.program].kind;
    const PlannedLink link = of_file ? planned : without_endless(planned);
    if (link.sites.empty()) return {};
    auto links = of_file ? attach_file(*program_fd, link) : attach_kernel(*program_fd, link, kind);
    if (!links) return fail(links.error());
    const Backend way = of_file ? object_.backend : kind.backend;
    const std::vector<std::uint32_t> probes = of_file ? std::vector<std::uint32_t>{} : attached_probes(link, *links);
    impl_->note_served(*links, way, probes);
    if (auto kept = keep_program(planned.program, *program_fd, *links, way, probes); !kept) return kept;
    take(link, kind, std::move(*links));
    return {};
  }

  /// The kernel would put its own machine's breakpoint into the file, and no process that it runs would come by.
  void refuse_foreign(const PlannedLink& planned) {
    for (const std::uint32_t number : planned.sites) {
      const PlannedSite& site = plan_.sites[number];
      impl_->refused.push_back(
          {site.probe, site.file, site.pc,
           fmt::format("{} is for {}, which this kernel does not run", plan_.files[planned.file].target.path.string(),
                       to_string(plan_.files[planned.file].elf->machine()))});
    }
  }

  /// Of a pair, the program at the entry is not attached where the one at the return was refused.
  PlannedLink without_endless(const PlannedLink& planned) const {
    if (endless_.empty()) return planned;
    PlannedLink link = planned;
    link.offsets.clear();
    link.cookies.clear();
    link.sites.clear();
    for (std::size_t i = 0; i < planned.sites.size(); ++i) {
      if (endless_.contains(planned.sites[i])) continue;
      link.offsets.push_back(planned.offsets[i]);
      link.cookies.push_back(planned.cookies[i]);
      link.sites.push_back(planned.sites[i]);
    }
    return link;
  }

  /// The probe of each function that was attached.
  std::vector<std::uint32_t> attached_probes(const PlannedLink& link, const backends::FileLinks& links) const {
    std::vector<std::uint32_t> probes;
    std::unordered_set<std::size_t> refused;
    for (const backends::Refusal& refusal : links.refused) refused.insert(refusal.index);
    for (std::size_t i = 0; i < link.sites.size(); ++i) {
      if (!refused.contains(i)) probes.push_back(plan_.sites[link.sites[i]].probe);
    }
    return probes;
  }

  /// The programs loaded for these links, or else the object's.
  Result<void> keep_program(std::uint32_t number, int fd, backends::FileLinks& links, Backend way,
                            const std::vector<std::uint32_t>& probes) {
    std::move(links.programs.begin(), links.programs.end(), std::back_inserter(impl_->programs));
    if (!links.programs.empty()) return {};
    const auto [kept, fresh] = kept_.try_emplace(number, impl_->programs.size());
    impl_->note_program(kept->second, way, probes);
    if (!fresh) return {};
    sys::UniqueFd own(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!own) return fail(os_failure(ErrorKind::limit, "keep the program", errno));
    impl_->programs.push_back(std::move(own));
    return {};
  }

  void take(const PlannedLink& planned, const ProgramKind& kind, backends::FileLinks links) {
    const Backend backend = planned.kernel == kNone ? object_.backend : kind.backend;
    // Of a pair, the program at the entry is the one that counts.
    const bool second = kind.calls && kind.moment == USDT_AT_RETURN;
    const std::size_t attached = second ? 0 : planned.offsets.size() - links.refused.size();
    impl_->attached += attached;
    impl_->by_backend[backend] += attached;
    if (impl_->backend == Backend::automatic) impl_->backend = backend;
    for (backends::LinkFd& fd : links.fds) {
      fd.backend = backend;
      fd.file = planned.file;
      if (second) fd.sites = 0;
    }
    std::move(links.fds.begin(), links.fds.end(), std::back_inserter(impl_->fds));
    if (planned.kernel == kNone) impl_->sites_of_file[planned.file] += attached;
    std::move(links.events.begin(), links.events.end(), std::back_inserter(impl_->events));
    impl_->event_files.resize(impl_->events.size(), planned.file);
    for (const backends::Refusal& refusal : links.refused) {
      const PlannedSite& site = plan_.sites[planned.sites[refusal.index]];
      if (second) endless_.insert(planned.sites[refusal.index]);
      std::string reason = planned.kernel == kNone
                               ? fmt::format("the kernel refuses file offset 0x{:x}: {}",
                                             planned.offsets[refusal.index], errno_text(refusal.os_error))
                               : why_refused(plan_.kernels[planned.kernel], refusal.os_error);
      impl_->refused.push_back({site.probe, site.file, site.pc, std::move(reason)});
    }
  }

  Result<backends::FileLinks> attach_file(int program_fd, const PlannedLink& link) const {
    const PlannedFile& file = plan_.files[link.file];
    const Backend backend = object_.backend;
    const backends::SiteArrays sites{link.offsets, link.ref_ctr_offsets, link.cookies};
    backends::FileLinks links;
    bool attached = false;
    for (const pid_t pid : pids_) {
      const backends::AttachTarget target{program_fd, fmt::format("/proc/self/fd/{}", file.elf->fd()), pid};
      auto more = backend == Backend::uprobe_multi ? backends::attach_uprobe_multi(target, sites)
                                                   : backends::attach_perf_uprobe(target, sites);
      if (!more && pids_.size() > 1 && has_ended(pid)) continue;
      if (!more) return fail(explain(more.error(), file.target.path.string(), backend));
      attached = true;
      links.append(std::move(*more));
    }
    if (!attached) return fail(ErrorKind::not_found, "the processes to trace have ended");
    if (!file.elf->unchanged())
      return fail(ErrorKind::changed,
                  fmt::format("{} changed on disk while it was being attached: run again", file.target.path.string()));
    return links;
  }

  Result<backends::FileLinks> attach_kernel(int program_fd, const PlannedLink& link, const ProgramKind& kind) {
    const PlannedKernel& group = plan_.kernels[link.kernel];
    backends::KernelProgram program{.fd = program_fd,
                                    .type = backends::program_type(kind, Backend::automatic),
                                    .returns = kind.moment == USDT_AT_RETURN,
                                    .has_cookies = group.cookies,
                                    .clone = {}};
    sys::UniqueFd owner;  // of a clone that does for all
    sys::UniqueFd module;
    if (auto cloned = prepare_clones(link, group, program, module, owner); !cloned) {
      if (cloned.error().kind == ErrorKind::not_found) return refuse_all(link);
      return fail(cloned.error());
    }
    const backends::FunctionArrays functions = functions_of(link, group);
    auto links = attach_functions(kind.backend, program, functions);
    if (!links) return fail(explain(links.error(), to_string(group.kind), kind.backend));
    if (owner) links->programs.push_back(std::move(owner));
    return links;
  }

  /// Programs that are tied to one attach point or one module when they are loaded are loaded again for each. Errors:
  /// not_found (the module is gone).
  Result<void> prepare_clones(const PlannedLink& link, const PlannedKernel& group, backends::KernelProgram& program,
                              sys::UniqueFd& module, sys::UniqueFd& owner) {
    const PlannedProgram& planned = object_.carriers.programs[link.program];
    const bool fixed = (planned.carriers & USDT_CARRIER_BIT(USDT_CARRIER_FIXED)) != 0;
    const bool tracing = group.backend == Backend::tracing || group.backend == Backend::tp_btf;
    const bool of_module = group.backend == Backend::tracing_multi && !group.module.empty();
    if (!fixed && !tracing && !of_module) return {};
    if ((tracing || of_module) && !group.module.empty()) {
      auto btf = backends::open_module_btf(group.module);
      if (!btf) return fail(btf.error());
      module = std::move(*btf);
    }
    const auto clone = [original = program_of(link.program), license = object_.license, fixed, tracing,
                        type = program.type,
                        btf_fd = module ? module.get() : 0](std::uint32_t btf_id, std::uint64_t cookie) {
      return backends::clone_program(original, license,
                                     {.type = type,
                                      .btf_id = tracing ? btf_id : 0,
                                      .btf_fd = btf_fd,
                                      .cookie = fixed ? std::optional(cookie) : std::nullopt});
    };
    if (!of_module) {
      program.clone = clone;
      return {};
    }
    auto one = clone(0, 0);
    if (!one) return fail(one.error());
    owner = std::move(*one);
    program.fd = owner.get();
    return {};
  }

  backends::FunctionArrays functions_of(const PlannedLink& link, const PlannedKernel& group) const {
    backends::FunctionArrays functions;
    functions.addresses = link.offsets;
    functions.cookies = link.cookies;
    for (const std::uint32_t site : link.sites) {
      const PlannedFunction& function = plan_.functions[plan_.sites[site].function];
      const bool qualified = group.backend == Backend::perf_kprobe && !function.module.empty();
      functions.names.push_back(qualified ? function.module + ":" + function.name : function.name);
      functions.btf_ids.push_back(function.btf_id);
    }
    return functions;
  }

  static Result<backends::FileLinks> attach_functions(Backend backend, const backends::KernelProgram& program,
                                                      const backends::FunctionArrays& functions) {
    switch (backend) {
      case Backend::kprobe_multi:
      case Backend::kprobe_session:
        return backends::attach_kprobe_multi(program, functions);
      case Backend::tracing_multi:
        return backends::attach_tracing_multi(program, functions);
      case Backend::perf_kprobe:
        return backends::attach_perf_kprobe(program, functions);
      case Backend::raw_tp:
        return backends::attach_raw_tp(program, functions);
      default:
        return backends::attach_tracing(program, functions);
    }
  }

  const LoadedObject::Impl& object_;
  std::string program_;
  const AttachPlan& plan_;
  std::vector<pid_t> pids_;                              ///< kernel_pid_filter()
  std::unordered_set<std::uint32_t> endless_;            ///< sites whose return could not be attached to
  std::unordered_map<std::uint32_t, std::size_t> kept_;  ///< programs of the object: where among the link's they are
  std::unique_ptr<Link::Impl> impl_ = std::make_unique<Link::Impl>();
};

namespace {

/// The one program for sites that is loaded, of an object whose plan names none. invalid_argument: there are several.
Result<std::string> only_program(const ObjectCopy& object) {
  std::vector<std::string> loaded;
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object.get()) {
    if (backends::is_site_program(program) && bpf_program__fd(program) >= 0)
      loaded.emplace_back(bpf_program__name(program));
  }
  if (loaded.size() == 1) return loaded.front();
  if (loaded.empty()) return fail(ErrorKind::not_found, "the BPF object has no program for attach points");
  return fail(ErrorKind::invalid_argument,
              fmt::format("the plan names no program, and there are {}: say which", fmt::join(loaded, ", ")));
}

}  // namespace

Result<Link> LoadedObject::attach(std::string_view program) const {
  const std::vector<std::string>& named = impl_->plan->programs;
  if (!named.empty() && std::ranges::find(named, program) == named.end())
    return fail(ErrorKind::not_found,
                fmt::format("the plan has no sites for '{}', but for {}", program, fmt::join(named, ", ")));
  return attach_program(program);
}

Result<Link> LoadedObject::attach() const {
  if (!impl_->plan->programs.empty()) return attach_program({});
  auto only = only_program(impl_->first());
  if (!only) return fail(only.error());
  return attach_program(*only);
}

Result<Link> LoadedObject::attach_program(std::string_view program) const {
  auto pids = kernel_pid_filter(impl_->plan->scope, impl_->backend);
  if (!pids) return fail(pids.error());
  auto attached = Attachment(*impl_, program, std::move(*pids)).run();
  if (!attached) {
    // A process that has ended meanwhile is the reason, whatever the kernel called it.
    if (auto there = kernel_pid_filter(impl_->plan->scope, impl_->backend); !there) return fail(there.error());
    return fail(attached.error());
  }
  if (auto guarded = (*attached)->guard_files(); !guarded) return fail(guarded.error());
  return Link(std::move(*attached));
}

}  // namespace usdt
