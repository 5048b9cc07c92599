// SPDX-License-Identifier: BSD-2-Clause
// One plan being attached. Private to attach/link.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "link/backend.hpp"
#include "link/kernel_backend.hpp"
#include "link/link_impl.hpp"
#include "program/bpf_object_impl.hpp"

namespace usdt {
inline namespace v1 {

/// Makes the links of a plan one after the other, and one Link of them.
class Attachment {
 public:
  /// `program`: empty: those that the plan names. `without`: files whose sites are left out. `stop` ends it early.
  Attachment(const LoadedObject::Impl& object, std::string_view program, std::vector<pid_t> pids,
             std::set<Index<PlannedFile>> without, StopToken stop)
      : object_(object),
        program_(program),
        plan_(*object.plan),
        pids_(std::move(pids)),
        without_(std::move(without)),
        stop_(std::move(stop)),
        links_(object.carriers.links.size()) {}

  Result<std::unique_ptr<Link::Impl>> run();

 private:
  /// The outcome of making one link.
  struct Done {
    bool added = false;
    std::unordered_set<std::uint32_t> refused;  ///< sites
  };
  using Program = Index<PlannedProgram>;

  // --- links: attachment.cpp ---
  /// The C function that sites of program `number` run.
  [[nodiscard]] const std::string& name_of(Program number) const;
  /// limit: there are not as many descriptors as links, which is known before the first.
  [[nodiscard]] Result<void> make_room() const;
  [[nodiscard]] bool is_wanted(const PlannedLink& planned) const;
  [[nodiscard]] const bpf_program* program_of(Program number) const;
  [[nodiscard]] Result<int> fd_of(Program number) const;
  /// Attaches one link, that at the other end of its calls before.
  Result<void> add(Index<PlannedLink> number);
  Result<void> attach(Index<PlannedLink> number, const PlannedLink& link);
  /// Says who lacks which privilege, where that is the reason.
  [[nodiscard]] static Error explain(const Error& error, std::string_view what, Backend backend);
  /// Errors: invalid_argument (a return probe of the kernel that would not be where a function begins).
  [[nodiscard]] Result<void> check_return_places(const PlannedLink& link) const;
  [[nodiscard]] Backend backend_of(const PlannedLink& link) const;
  /// The kernel would put its own machine's breakpoint into the file, and no process that it runs would come by.
  void refuse_foreign(const PlannedLink& link, const PlannedFile& file);
  /// Gives up all links of files that were written to meanwhile, also those that were made before that was seen.
  void refuse_changed();
  /// The probe of each function that was attached.
  std::vector<Index<PlannedProbe>> attached_probes(const PlannedLink& link, const backends::FileLinks& links) const;
  /// The programs loaded for these links, or else the object's.
  Result<void> keep_program(Index<PlannedLink> number, int fd, backends::FileLinks& links,
                            const std::vector<Index<PlannedProbe>>& probes);
  void take(Index<PlannedLink> number, const PlannedLink& link, backends::FileLinks links,
            const std::vector<Index<PlannedProbe>>& probes);
  Result<backends::FileLinks> attach_file(int program_fd, const PlannedLink& link, const PlannedFile& file) const;
  /// Has usdt-broker attach planned link `number`, of which `link` is what is wanted.
  Result<backends::FileLinks> attach_there(Index<PlannedLink> number, const PlannedLink& link,
                                           const PlannedFile& file) const;
  /// Notes a link that whatever the family starts is to have, too.
  void note_of_family(Index<PlannedLink> number, const PlannedLink& link);
  [[nodiscard]] static Result<void> check_unwritten(const PlannedFile& file);

  // --- to kernel functions: attach_functions.cpp ---
  Result<backends::FileLinks> attach_kernel(int program_fd, const PlannedLink& link);
  /// Programs that are tied to one attach point or one module when they are loaded are loaded again for each. Errors:
  /// not_found (the module is gone).
  Result<void> prepare_clones(const PlannedLink& link, const AttachGroup& group, backends::KernelProgram& program,
                              sys::UniqueFd& module, sys::UniqueFd& owner);
  backends::FunctionArrays functions_of(const PlannedLink& link, const AttachGroup& group) const;

  void refuse(Index<PlannedSite> site, std::string reason) {
    impl_->refused.push_back({plan_.sites[site].probe, pc_of(plan_, plan_.sites[site]), std::move(reason)});
  }

  const LoadedObject::Impl& object_;
  std::string program_;
  const AttachPlan& plan_;
  std::vector<pid_t> pids_;  ///< kernel_pid_filter()
  std::set<Index<PlannedFile>> without_;
  StopToken stop_;
  std::vector<Done> links_;                              ///< by link of the carrier plan
  std::map<Index<PlannedFile>, Error> changed_;          ///< files that are left out, and what was seen
  std::optional<Error> first_refusal_;                   ///< of a program that was loaded for one function
  std::unordered_map<std::uint32_t, std::size_t> kept_;  ///< programs of the object: where among the link's they are
  std::unique_ptr<Link::Impl> impl_ = std::make_unique<Link::Impl>();
};

}  // namespace v1
}  // namespace usdt
