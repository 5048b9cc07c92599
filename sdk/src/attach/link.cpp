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
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "attach/attach_table.hpp"
#include "attach/backend.hpp"
#include "attach/bpf_object_impl.hpp"
#include "attach/kernel_backend.hpp"
#include "attach/link_impl.hpp"
#include "attach/specialise.hpp"
#include "backend/table.hpp"
#include "sys/syscalls.hpp"
#include "sys/uapi.hpp"
#include "usdt/discover.hpp"
#include "usdt/features.hpp"
#include "usdt/privilege.hpp"

namespace usdt {
inline namespace v1 {

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
  if (impl_->by_backend.empty()) return std::string(to_string(impl_->backend));
  if (impl_->by_backend.size() == 1) return std::string(to_string(impl_->by_backend.begin()->first));
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
void Link::pause() noexcept {
  std::unique_lock lock(impl_->mutex);
  std::vector<backends::LinkFd> links = std::exchange(impl_->fds, {});
  std::vector<sys::AttachedFd> events = std::exchange(impl_->events, {});
  impl_->event_files.clear();
  impl_->served_by_links.clear();
  lock.unlock();
  backends::close_together(links, events);
}
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
Result<std::vector<pid_t>> kernel_pid_filter(const AttachPlan& plan, Backend files) {
  std::vector<pid_t> pids = pids_of(plan.scope);
  if (pids.empty()) return std::vector<pid_t>{0};
  const std::string all = fmt::format("{}", fmt::join(pids, ", "));
  std::erase_if(pids, has_ended);
  if (pids.empty()) return fail(ErrorKind::not_found, fmt::format("no process {}", all));
  const bool exact = std::ranges::all_of(plan.groups, [&](const AttachGroup& group) {
    const Backend backend = group.backend == Backend::automatic ? files : group.backend;
    const auto& fix = backends::row_of(backend).exact_pid;
    return !fix || probe_feature(*fix).answer == Answer::yes;
  });
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

std::string why_refused(const KernelModule& module, int os_error) {
  if (os_error == ENOENT && !module.name.empty()) return fmt::format("it, or its module '{}', is gone", module.name);
  return fmt::format("the kernel refuses it: {}", errno_text(os_error));
}
std::string why_refused(std::uint64_t file_offset, int os_error) {
  return fmt::format("the kernel refuses file offset 0x{:x}: {}", file_offset, errno_text(os_error));
}

/// One plan being attached.
class Attachment {
 public:
  /// `program`: empty: those that the plan names. `without`: files whose sites are left out.
  Attachment(const LoadedObject::Impl& object, std::string_view program, std::vector<pid_t> pids,
             std::set<Index<PlannedFile>> without = {})
      : object_(object),
        program_(program),
        plan_(*object.plan),
        pids_(std::move(pids)),
        without_(std::move(without)),
        links_(object.carriers.links.size()) {}

  Result<std::unique_ptr<Link::Impl>> run() {
    impl_->plan = object_.plan;
    impl_->backend = object_.backend;
    impl_->carrier = object_.carriers.carrier;
    impl_->carrier_text = object_.carriers.describe();
    impl_->program = program_;
    for (const Index<PlannedLink> number : object_.carriers.links.indices()) {
      if (!is_wanted(object_.carriers.links[number])) continue;
      if (auto added = add(number); !added) return fail(added.error());
    }
    if (impl_->attached > 0) return std::move(impl_);
    if (first_refusal_) return fail(*first_refusal_);
    if (impl_->refused.empty()) return fail(ErrorKind::not_found, "the plan has no site to attach");
    return fail(ErrorKind::not_supported, fmt::format("no site could be attached: {}", impl_->refused.front().reason));
  }

 private:
  /// The outcome of making one link.
  struct Done {
    bool added = false;
    std::unordered_set<std::uint32_t> refused;  ///< sites
  };
  using Program = Index<PlannedProgram>;

  /// The C function that sites of program `number` run.
  [[nodiscard]] const std::string& name_of(Program number) const {
    const auto named = object_.carriers.programs[number].kind.program;
    return named ? plan_.programs[*named] : program_;
  }
  [[nodiscard]] bool is_wanted(const PlannedLink& planned) const {
    const auto* file = std::get_if<Index<PlannedFile>>(&plan_.groups[planned.group].of);
    if (file && without_.contains(*file)) return false;
    return program_.empty() || name_of(planned.program) == program_;
  }
  [[nodiscard]] const bpf_program* program_of(Program number) const {
    return bpf_object__find_program_by_name(object_.copies[number.value].get(), name_of(number).c_str());
  }
  [[nodiscard]] Result<int> fd_of(Program number) const {
    const bpf_program* program = program_of(number);
    const int fd = program ? bpf_program__fd(program) : -1;
    if (fd < 0)
      return fail(ErrorKind::not_found, fmt::format("the BPF object has no program '{}' loaded", name_of(number)));
    return fd;
  }

  /// Attaches one link, that at the other end of its calls before.
  Result<void> add(Index<PlannedLink> number) {
    if (std::exchange(links_[number.value].added, true)) return {};
    const PlannedLink& planned = object_.carriers.links[number];
    if (!planned.ends) return attach(number, planned);
    if (auto ended = add(*planned.ends); !ended) return ended;
    const auto& endless = links_[planned.ends->value].refused;
    return endless.empty() ? attach(number, planned) : attach(number, without(endless, planned));
  }

  Result<void> attach(Index<PlannedLink> number, const PlannedLink& link) {
    if (link.sites.empty()) return {};
    const auto* file = std::get_if<Index<PlannedFile>>(&plan_.groups[link.group].of);
    if (file && !runs_here(plan_.files[*file].elf->machine())) {
      refuse_foreign(link, plan_.files[*file]);
      return {};
    }
    auto program_fd = fd_of(link.program);
    if (!program_fd) return fail(program_fd.error());
    auto links = file ? attach_file(*program_fd, link, plan_.files[*file]) : attach_kernel(*program_fd, link);
    if (!links) return fail(links.error());
    if (!first_refusal_) first_refusal_ = links->first_refusal;
    const auto probes = file ? std::vector<Index<PlannedProbe>>{} : attached_probes(link, *links);
    const Backend way = backend_of(link);
    impl_->note_served(*links, way, probes);
    if (auto kept = keep_program(number, *program_fd, *links, way, probes); !kept) return kept;
    take(number, link, std::move(*links));
    return {};
  }

  [[nodiscard]] Backend backend_of(const PlannedLink& link) const {
    const Backend planned = plan_.groups[link.group].backend;
    const ProgramKind& kind = object_.carriers.programs[link.program].kind;
    const Moment moment = kind.returns == ReturnBy::probe ? kind.moment : Moment::entry;  // on RET: as anywhere
    return backends::row_of(planned == Backend::automatic ? object_.backend : planned, moment).backend;
  }

  /// The kernel would put its own machine's breakpoint into the file, and no process that it runs would come by.
  void refuse_foreign(const PlannedLink& link, const PlannedFile& file) {
    for (const Index<PlannedSite> site : link.sites)
      refuse(site, fmt::format("{} is for {}, which this kernel does not run", file.target.path.string(),
                               to_string(file.elf->machine())));
  }
  void refuse(Index<PlannedSite> site, std::string reason) {
    impl_->refused.push_back({plan_.sites[site].probe, pc_of(plan_, plan_.sites[site]), std::move(reason)});
  }

  static PlannedLink without(const std::unordered_set<std::uint32_t>& sites, const PlannedLink& planned) {
    PlannedLink link{.group = planned.group, .program = planned.program};
    for (std::size_t i = 0; i < planned.sites.size(); ++i) {
      if (sites.contains(planned.sites[i].value)) continue;
      link.offsets.push_back(planned.offsets[i]);
      if (!planned.ref_ctr_offsets.empty()) link.ref_ctr_offsets.push_back(planned.ref_ctr_offsets[i]);
      link.cookies.push_back(planned.cookies[i]);
      link.sites.push_back(planned.sites[i]);
    }
    return link;
  }

  /// The probe of each function that was attached.
  std::vector<Index<PlannedProbe>> attached_probes(const PlannedLink& link, const backends::FileLinks& links) const {
    std::vector<Index<PlannedProbe>> probes;
    std::unordered_set<std::size_t> refused;
    for (const backends::Refusal& refusal : links.refused) refused.insert(refusal.index);
    for (std::size_t i = 0; i < link.sites.size(); ++i) {
      if (!refused.contains(i)) probes.push_back(plan_.sites[link.sites[i]].probe);
    }
    return probes;
  }

  /// The programs loaded for these links, or else the object's.
  Result<void> keep_program(Index<PlannedLink> link, int fd, backends::FileLinks& links, Backend way,
                            const std::vector<Index<PlannedProbe>>& probes) {
    std::move(links.programs.begin(), links.programs.end(), std::back_inserter(impl_->programs));
    if (!links.programs.empty()) return {};
    const auto [kept, fresh] = kept_.try_emplace(object_.carriers.links[link].program.value, impl_->programs.size());
    const auto* file = std::get_if<Index<PlannedFile>>(&plan_.groups[object_.carriers.links[link].group].of);
    impl_->note_program(kept->second, way, probes, file ? std::optional(*file) : std::nullopt);
    if (!fresh) return {};
    sys::UniqueFd own(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!own) return fail(os_failure(ErrorKind::limit, "keep the program", errno));
    impl_->programs.push_back(std::move(own));
    return {};
  }

  /// Those of a link that are at some place at least: of a function that returns at several, one.
  static std::size_t count_sites(const PlannedLink& link, const std::vector<backends::Refusal>& refused) {
    std::vector<bool> taken(link.sites.size(), true);
    for (const backends::Refusal& each : refused) taken[each.index] = false;
    std::unordered_set<std::uint32_t> sites;
    for (std::size_t i = 0; i < taken.size(); ++i)
      if (taken[i]) sites.insert(link.sites[i].value);
    return sites.size();
  }

  void take(Index<PlannedLink> number, const PlannedLink& link, backends::FileLinks links) {
    const Backend backend = backend_of(link);
    const AttachGroup& group = plan_.groups[link.group];
    const auto* file = std::get_if<Index<PlannedFile>>(&group.of);
    // Of calls that two programs share, the one at the entry is the one that counts.
    const PlannedProgram& program = object_.carriers.programs[link.program];
    const bool counts = !program.partner || program.kind.moment == Moment::entry;
    const std::size_t attached = counts ? count_sites(link, links.refused) : 0;
    impl_->attached += attached;
    if (counts) impl_->by_backend[backend] += attached;
    if (impl_->backend == Backend::automatic) impl_->backend = backend;
    for (backends::LinkFd& fd : links.fds) {
      fd.backend = backend;
      if (file) fd.file = *file;
      if (!counts) fd.sites = 0;
    }
    std::move(links.fds.begin(), links.fds.end(), std::back_inserter(impl_->fds));
    if (file && counts) impl_->sites_of_file[{*file, backend}] += attached;
    std::move(links.events.begin(), links.events.end(), std::back_inserter(impl_->events));
    impl_->event_files.resize(impl_->events.size(), file ? std::optional(*file) : std::nullopt);
    for (const backends::Refusal& refusal : links.refused) {
      links_[number.value].refused.insert(link.sites[refusal.index].value);
      refuse(link.sites[refusal.index], file ? why_refused(link.offsets[refusal.index], refusal.os_error)
                                             : why_refused(std::get<KernelModule>(group.of), refusal.os_error));
    }
  }

  Result<backends::FileLinks> attach_file(int program_fd, const PlannedLink& link, const PlannedFile& file) const {
    const Backend backend = backend_of(link);
    const backends::SiteArrays sites{link.offsets, link.ref_ctr_offsets, link.cookies};
    backends::FileLinks links;
    bool attached = false;
    for (const pid_t pid : pids_) {
      const backends::AttachTarget target{program_fd, fmt::format("/proc/self/fd/{}", file.elf->fd()), pid};
      auto more = backends::attach_row(backend).to_file(target, sites);
      if (!more && pids_.size() > 1 && has_ended(pid)) continue;
      if (!more) return fail(explain(more.error(), file.target.path.string(), backend));
      attached = true;
      links.append(std::move(*more));
    }
    if (!attached) return fail(ErrorKind::not_found, "the processes to trace have ended");
    if (!file.elf->unchanged())
      return fail(ErrorKind::changed,
                  fmt::format("{} changed on disk while it was being attached: is somebody writing it?",
                              file.target.path.string()));
    return links;
  }

  Result<backends::FileLinks> attach_kernel(int program_fd, const PlannedLink& link) {
    const AttachGroup& group = plan_.groups[link.group];
    const ProgramKind& kind = object_.carriers.programs[link.program].kind;
    backends::KernelProgram program{.fd = program_fd,
                                    .type = backends::program_type(kind, Backend::automatic),
                                    .returns = kind.moment == Moment::exit,
                                    .has_cookies = group.cookies,
                                    .clone = {}};
    sys::UniqueFd owner;  // of a clone that does for all
    sys::UniqueFd module;
    if (auto cloned = prepare_clones(link, group, program, module, owner); !cloned) {
      if (cloned.error().kind == ErrorKind::not_found) return refuse_all(link);
      return fail(cloned.error());
    }
    auto links = backends::attach_row(group.backend).to_kernel(program, functions_of(link, group));
    if (!links) return fail(explain(links.error(), to_string(std::get<KernelModule>(group.of).kind), group.backend));
    if (owner) links->programs.push_back(std::move(owner));
    return links;
  }

  /// Programs that are tied to one attach point or one module when they are loaded are loaded again for each. Errors:
  /// not_found (the module is gone).
  Result<void> prepare_clones(const PlannedLink& link, const AttachGroup& group, backends::KernelProgram& program,
                              sys::UniqueFd& module, sys::UniqueFd& owner) {
    const PlannedProgram& planned = object_.carriers.programs[link.program];
    const std::string& module_name = std::get<KernelModule>(group.of).name;
    const backends::TiedTo tied = backends::row_of(group.backend).tied;
    const bool fixed = (planned.carriers & USDT_CARRIER_BIT(USDT_CARRIER_FIXED)) != 0;
    const bool to_point = tied == backends::TiedTo::point;
    const bool to_module = tied == backends::TiedTo::module && !module_name.empty();
    if (!fixed && !to_point && !to_module) return {};
    if (tied != backends::TiedTo::nothing && !module_name.empty()) {
      auto btf = backends::open_module_btf(module_name);
      if (!btf) return fail(btf.error());
      module = std::move(*btf);
    }
    const auto clone = [original = program_of(link.program), license = object_.license, fixed, to_point,
                        type = program.type,
                        btf_fd = module ? module.get() : 0](std::uint32_t btf_id, std::uint64_t cookie) {
      return backends::clone_program(original, license,
                                     {.type = type,
                                      .btf_id = to_point ? btf_id : 0,
                                      .btf_fd = btf_fd,
                                      .cookie = fixed ? std::optional(cookie) : std::nullopt});
    };
    if (!to_module) {
      program.clone = clone;
      return {};
    }
    auto one = clone(0, 0);
    if (!one) return fail(one.error());
    owner = std::move(*one);
    program.fd = owner.get();
    return {};
  }

  backends::FunctionArrays functions_of(const PlannedLink& link, const AttachGroup& group) const {
    backends::FunctionArrays functions;
    functions.addresses = link.offsets;
    functions.cookies = link.cookies;
    for (const Index<PlannedSite> site : link.sites) {
      const PlannedFunction& function = *function_of(plan_, plan_.sites[site]);
      const bool qualified = backends::row_of(group.backend).on_perf_event && !function.module.empty();
      functions.names.push_back(qualified ? function.module + ":" + function.name : function.name);
      functions.btf_ids.push_back(function.btf_id);
    }
    return functions;
  }

  const LoadedObject::Impl& object_;
  std::string program_;
  const AttachPlan& plan_;
  std::vector<pid_t> pids_;  ///< kernel_pid_filter()
  std::set<Index<PlannedFile>> without_;
  std::vector<Done> links_;                              ///< by link of the carrier plan
  std::optional<Error> first_refusal_;                   ///< of a program that was loaded for one function
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
  const Table<std::string>& named = impl_->plan->programs;
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

Result<Link> LoadedObject::attach_unguarded(std::string_view program) const {
  auto pids = kernel_pid_filter(*impl_->plan, impl_->backend);
  if (!pids) return fail(pids.error());
  auto attached = Attachment(*impl_, program, std::move(*pids)).run();
  if (attached) return Link(std::move(*attached));
  // A process that has ended meanwhile is the reason, whatever the kernel called it.
  if (auto there = kernel_pid_filter(*impl_->plan, impl_->backend); !there) return fail(there.error());
  return fail(attached.error());
}

Result<void> LoadedObject::resume(Link& link) const {
  Link::Impl& paused = *link.impl_;
  std::unique_lock lock(paused.mutex);
  const bool same = paused.plan == impl_->plan && !paused.joined;
  const bool attached = !paused.fds.empty() || !paused.events.empty();
  const std::set<Index<PlannedFile>> changed = paused.given_up;
  lock.unlock();
  if (!same || attached || has_kernel_points(*impl_->plan))
    return fail(ErrorKind::invalid_argument,
                attached ? "the link is not paused" : "only links to files, of one object, can be attached again");
  auto pids = kernel_pid_filter(*impl_->plan, impl_->backend);
  if (!pids) return fail(pids.error());
  auto again = Attachment(*impl_, paused.program, std::move(*pids), changed).run();
  if (!again) return fail(again.error());
  paused.take_links(**again);
  return {};
}

Result<Link> LoadedObject::attach_program(std::string_view program) const {
  auto link = attach_unguarded(program);
  if (!link) return link;
  if (auto guarded = link->impl_->guard_files(); !guarded) return fail(guarded.error());
  return link;
}

Result<void> LoadedObject::attach_to(Link& link, std::string_view program,
                                     std::shared_ptr<const AttachPlan> whole) const {
  const AttachPlan& part = *impl_->plan;
  if (!whole || whole->files.size() < part.files.size() || whole->probes.size() < part.probes.size())
    return fail(ErrorKind::invalid_argument, "the whole plan lacks the part that is to be attached");
  const auto files = static_cast<std::uint32_t>(whole->files.size() - part.files.size());
  const auto probes = static_cast<std::uint32_t>(whole->probes.size() - part.probes.size());
  auto more = attach_unguarded(program);
  if (!more) return fail(more.error());
  link.impl_->absorb(*more->impl_, std::move(whole), files, probes);
  return link.impl_->guard_files();
}

}  // namespace v1
}  // namespace usdt
