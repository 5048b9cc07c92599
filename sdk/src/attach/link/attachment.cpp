// SPDX-License-Identifier: BSD-2-Clause
#include "link/attachment.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "backend/table.hpp"
#include "base/symbol_name.hpp"
#include "base/try.hpp"
#include "link/attach_table.hpp"
#include "link/return_depth.hpp"
#include "program/process_list.hpp"
#include "sys/descriptor_room.hpp"
#include "sys/uapi.hpp"
#include "usdt/discover.hpp"
#include "usdt/privilege.hpp"

namespace usdt {
inline namespace v1 {
namespace {

std::string errno_text(int os_error) {
  // Kprobes get this error from can_probe(), arch/x86/kernel/kprobes/core.c.
  if (os_error == EILSEQ)
    return "no instruction begins there, as far as the kernel can tell, or another tool has put a breakpoint there "
           "(EILSEQ)";
  return os_error == sys::kEnotsupp ? "ENOTSUPP" : std::strerror(os_error);
}

PlannedLink without(const std::unordered_set<std::uint32_t>& sites, const PlannedLink& planned) {
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

/// Counts the sites of a link that are attached at one place at least: a function that returns at several counts once.
std::size_t count_sites(const PlannedLink& link, const std::vector<backends::Refusal>& refused) {
  std::vector<bool> taken(link.sites.size(), true);
  for (const backends::Refusal& each : refused) taken[each.index] = false;
  std::unordered_set<std::uint32_t> sites;
  for (std::size_t i = 0; i < taken.size(); ++i)
    if (taken[i]) sites.insert(link.sites[i].value);
  return sites.size();
}

std::string why_refused(const KernelModule& module, int os_error) {
  if (os_error == ENOENT && !module.name.empty()) return fmt::format("it, or its module '{}', is gone", module.name);
  return fmt::format("the kernel refuses it: {}", errno_text(os_error));
}
std::string why_refused(std::uint64_t file_offset, int os_error) {
  return fmt::format("the kernel refuses file offset 0x{:x}: {}", file_offset, errno_text(os_error));
}

}  // namespace

Error Attachment::explain(const Error& error, std::string_view what, Backend backend) {
  if (error.kind == ErrorKind::no_permission) {
    if (auto privilege = check_privilege(backend); !privilege) return privilege.error();
  }
  return error.within(fmt::format("attach {} by {}", what, to_string(backend)));
}

Result<std::unique_ptr<Link::Impl>> Attachment::run() {
  impl_->plan = object_.plan;
  impl_->backend = object_.backend;
  impl_->carrier = object_.carriers.carrier;
  impl_->carrier_text = object_.carriers.describe();
  impl_->program = program_;
  if (object_.there) impl_->there.push_back(object_.there);
  TRY(make_room());
  for (const Index<PlannedLink> number : object_.carriers.links.indices()) {
    if (stop_.stop_requested()) return fail(ErrorKind::stopped, "not all sites were attached, and none stays so");
    if (!is_wanted(object_.carriers.links[number])) continue;
    TRY(add(number));
  }
  refuse_changed();
  if (impl_->sites.all() > 0) return std::move(impl_);
  if (!changed_.empty()) return fail(changed_.begin()->second);
  if (first_refusal_) return fail(*first_refusal_);
  if (impl_->refused.empty()) return fail(ErrorKind::not_found, "the plan has no site to attach");
  return fail(ErrorKind::not_supported, fmt::format("no site could be attached: {}", impl_->refused.front().reason));
}

Result<void> Attachment::make_room() const {
  std::size_t needed = 0;
  for (const PlannedLink& link : object_.carriers.links)
    if (is_wanted(link))
      needed += std::holds_alternative<Index<PlannedFile>>(plan_.groups[link.group].of) ? pids_.size() : 1;
  constexpr std::size_t spare = 64;
  const std::size_t room = sys::make_room_for_more(needed + spare);
  if (room >= needed + spare) return {};
  return fail(ErrorKind::limit,
              fmt::format("{} need {} descriptors, and {} are left: raise `ulimit -n`, or trace fewer "
                          "files at once",
                          needed == 1 ? "1 link and what is opened on the way"
                                      : fmt::format("{} links and what is opened on the way", needed),
                          needed + spare, room));
}

const std::string& Attachment::name_of(Program number) const {
  const auto named = object_.carriers.programs[number].kind.program;
  return named ? plan_.programs[*named] : program_;
}

bool Attachment::is_wanted(const PlannedLink& planned) const {
  const auto* file = std::get_if<Index<PlannedFile>>(&plan_.groups[planned.group].of);
  if (file && without_.contains(*file)) return false;
  return program_.empty() || name_of(planned.program) == program_;
}

const bpf_program* Attachment::program_of(Program number) const {
  return bpf_object__find_program_by_name(object_.copies[number.value].get(), name_of(number).c_str());
}

Result<int> Attachment::fd_of(Program number) const {
  const bpf_program* program = program_of(number);
  const int fd = program ? bpf_program__fd(program) : -1;
  if (fd < 0)
    return fail(ErrorKind::not_found, fmt::format("the BPF object has no program '{}' loaded", name_of(number)));
  return fd;
}

Result<void> Attachment::add(Index<PlannedLink> number) {
  if (std::exchange(links_[number.value].added, true)) return {};
  const PlannedLink& planned = object_.carriers.links[number];
  if (!planned.ends) return attach(number, planned);
  TRY(add(*planned.ends));
  const auto& endless = links_[planned.ends->value].refused;
  return endless.empty() ? attach(number, planned) : attach(number, without(endless, planned));
}

Result<void> Attachment::attach(Index<PlannedLink> number, const PlannedLink& link) {
  if (link.sites.empty()) return {};
  const auto* file = std::get_if<Index<PlannedFile>>(&plan_.groups[link.group].of);
  if (file && !runs_here(plan_.files[*file].elf->machine())) {
    refuse_foreign(link, plan_.files[*file]);
    return {};
  }
  if (file && changed_.contains(*file)) return {};
  TRY(check_return_places(link));
  const int program_fd = TRY(object_.there ? Result<int>(-1) : fd_of(link.program));
  auto made = !file           ? attach_kernel(program_fd, link)
              : object_.there ? attach_there(number, link, plan_.files[*file])
                              : attach_file(program_fd, link, plan_.files[*file]);
  if (!made && made.error().kind == ErrorKind::changed && file && object_.leave_out_changed) {
    changed_.emplace(*file, made.error());
    return {};
  }
  auto links = TRY(std::move(made));
  if (object_.there) {
    if (!object_.family.roots.empty()) note_of_family(number, link);
    take(number, link, std::move(links), {});
    return {};
  }
  if (!first_refusal_) first_refusal_ = links.first_refusal;
  const bool counts = !file || std::ranges::any_of(links.fds, [](const backends::LinkFd& each) {
    return static_cast<bool>(each.deep_calls);
  });
  const auto probes = counts ? attached_probes(link, links) : std::vector<Index<PlannedProbe>>{};
  TRY(keep_program(number, program_fd, links, probes));
  take(number, link, std::move(links), probes);
  return {};
}

/// The kernel's return probe writes to the top of the stack, where the return address is at a function's first
/// instruction, and anywhere else something that the program computes with.
Result<void> Attachment::check_return_places(const PlannedLink& link) const {
  const ProgramKind& kind = object_.carriers.programs[link.program].kind;
  if (kind.returns != ReturnBy::probe || kind.moment == Moment::entry) return {};
  for (std::size_t i = 0; i < link.sites.size(); ++i) {
    const PlannedSite& site = plan_.sites[link.sites[i]];
    const auto* place = std::get_if<FilePlace>(&site.point);
    const PlannedProbe& probe = plan_.probes[site.probe];
    const bool is_function =
        probe.function && probe.distance == 0 && !probe.name.starts_with('@') && !is_cold_half(probe.name);
    if (place == nullptr || (is_function && place->offset.value == link.offsets[i])) continue;
    return fail(ErrorKind::invalid_argument,
                fmt::format("{}: no return probe can be at file offset {:#x}: no function begins there",
                            full_name(plan_, probe), link.offsets[i]));
  }
  return {};
}

Backend Attachment::backend_of(const PlannedLink& link) const {
  const Backend planned = plan_.groups[link.group].backend;
  const ProgramKind& kind = object_.carriers.programs[link.program].kind;
  const Moment moment = kind.returns == ReturnBy::probe ? kind.moment : Moment::entry;  // on RET: as anywhere
  return backends::row_of(planned == Backend::automatic ? object_.backend : planned, moment).backend;
}

void Attachment::refuse_foreign(const PlannedLink& link, const PlannedFile& file) {
  for (const Index<PlannedSite> site : link.sites)
    refuse(site, fmt::format("{} is for {}, which this kernel does not run", file.target.path.string(),
                             to_string(file.elf->machine())));
}

void Attachment::refuse_changed() {
  std::set<Index<PlannedFile>> files;
  for (const auto& [file, error] : changed_) files.insert(file);
  if (files.empty()) return;
  impl_->detach_files(files);
  impl_->programs.close_those_of(files);
  std::set<Index<PlannedSite>> sites;  // both ends of a call have a link each
  for (const PlannedLink& link : object_.carriers.links) {
    const auto* file = std::get_if<Index<PlannedFile>>(&plan_.groups[link.group].of);
    if (file == nullptr || !files.contains(*file) || !is_wanted(link)) continue;
    for (const Index<PlannedSite> site : link.sites)
      if (sites.insert(site).second) refuse(site, changed_.at(*file).message);
  }
}

std::vector<Index<PlannedProbe>> Attachment::attached_probes(const PlannedLink& link,
                                                             const backends::FileLinks& links) const {
  std::vector<Index<PlannedProbe>> probes;
  std::unordered_set<std::size_t> refused;
  for (const backends::Refusal& refusal : links.refused) refused.insert(refusal.index);
  for (std::size_t i = 0; i < link.sites.size(); ++i) {
    if (!refused.contains(i)) probes.push_back(plan_.sites[link.sites[i]].probe);
  }
  return probes;
}

Result<void> Attachment::keep_program(Index<PlannedLink> number, int fd, backends::FileLinks& links,
                                      const std::vector<Index<PlannedProbe>>& probes) {
  const PlannedLink& link = object_.carriers.links[number];
  const Backend backend = backend_of(link);
  if (!links.programs.empty()) {
    impl_->programs.add_loaded(links.programs, backend, probes);
    return {};
  }
  const auto [kept, fresh] = kept_.try_emplace(link.program.value, impl_->programs.next());
  if (const auto* file = std::get_if<Index<PlannedFile>>(&plan_.groups[link.group].of))
    impl_->programs.note(kept->second, backend, {}, *file);
  else
    impl_->programs.note(kept->second, backend, probes, std::nullopt);
  if (!fresh) return {};
  sys::UniqueFd duplicate(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!duplicate) return fail(os_failure(ErrorKind::limit, "keep the program", errno));
  impl_->programs.add(std::move(duplicate));
  return {};
}

void Attachment::take(Index<PlannedLink> number, const PlannedLink& link, backends::FileLinks links,
                      const std::vector<Index<PlannedProbe>>& probes) {
  const Backend backend = backend_of(link);
  const AttachGroup& group = plan_.groups[link.group];
  const auto* in_file = std::get_if<Index<PlannedFile>>(&group.of);
  const auto file = in_file ? std::optional(*in_file) : std::nullopt;
  // Calls that two programs share are counted at the entry.
  const PlannedProgram& program = object_.carriers.programs[link.program];
  const bool counts = !program.partner || program.kind.moment == Moment::entry;
  if (counts) impl_->sites.add(count_sites(link, links.refused), backend, file);
  if (impl_->backend == Backend::automatic) impl_->backend = backend;
  impl_->links.add(links, {backend, file, probes, counts});
  for (const backends::Refusal& refusal : links.refused) {
    links_[number.value].refused.insert(link.sites[refusal.index].value);
    refuse(link.sites[refusal.index], file ? why_refused(link.offsets[refusal.index], refusal.os_error)
                                           : why_refused(std::get<KernelModule>(group.of), refusal.os_error));
  }
}

Result<backends::FileLinks> Attachment::attach_file(int program_fd, const PlannedLink& link,
                                                    const PlannedFile& file) const {
  const Backend backend = backend_of(link);
  const backends::SiteArrays sites{link.offsets, link.ref_ctr_offsets, link.cookies};
  backends::FileLinks links;
  bool attached = false;
  for (const pid_t pid : pids_) {
    const backends::AttachTarget target{program_fd, fmt::format("/proc/self/fd/{}", file.elf->fd()), pid,
                                        object_.family.roots.empty() ? nullptr : &object_.family};
    auto more = backends::attach_row(backend).to_file(target, sites);
    if (!more && pids_.size() > 1 && backends::has_ended(pid)) continue;
    if (!more) return fail(explain(more.error(), file.target.path.string(), backend));
    attached = true;
    if (backend == Backend::uprobe_return || backend == Backend::uprobe_session ||
        backend == Backend::uprobe_family_return)
      backends::count_deep_calls(*more, target, sites);
    links.append(std::move(*more));
  }
  if (!attached) return fail(ErrorKind::not_found, "the processes to trace have ended");
  TRY(check_unwritten(file));
  return links;
}

/// Names and permissions of a file say nothing of its code, and its owner may change them all the time.
Result<void> Attachment::check_unwritten(const PlannedFile& file) {
  if (file.elf->is_unwritten()) return {};
  return fail(ErrorKind::changed, fmt::format("{} changed on disk while it was being attached: is somebody writing it?",
                                              file.target.path.string()));
}

}  // namespace v1
}  // namespace usdt
