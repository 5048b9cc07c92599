// SPDX-License-Identifier: BSD-2-Clause
// Links to kernel functions, and the programs that are loaded again for them.
#include <cerrno>
#include <utility>

#include "backend/table.hpp"
#include "base/try.hpp"
#include "link/attach_table.hpp"
#include "link/attachment.hpp"
#include "program/clone.hpp"

namespace usdt {
inline namespace v1 {
namespace {

/// Every function of `link` refused: their module went after they were planned.
backends::FileLinks refuse_all(const PlannedLink& link) {
  backends::FileLinks links;
  for (std::size_t i = 0; i < link.sites.size(); ++i) links.refused.push_back({i, ENOENT});
  return links;
}

}  // namespace

Result<backends::FileLinks> Attachment::attach_kernel(int program_fd, const PlannedLink& link) {
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

Result<void> Attachment::prepare_clones(const PlannedLink& link, const AttachGroup& group,
                                        backends::KernelProgram& program, sys::UniqueFd& module, sys::UniqueFd& owner) {
  const PlannedProgram& planned = object_.carriers.programs[link.program];
  const std::string& module_name = std::get<KernelModule>(group.of).name;
  const TiedTo tied = backends::row_of(group.backend).info.tied;
  const bool fixed = (planned.carriers & USDT_CARRIER_BIT(USDT_CARRIER_FIXED)) != 0;
  const bool to_point = tied == TiedTo::point;
  const bool to_module = tied == TiedTo::module && !module_name.empty();
  if (!fixed && !to_point && !to_module) return {};
  if (tied != TiedTo::nothing && !module_name.empty()) {
    auto btf = TRY(backends::open_module_btf(module_name));
    module = std::move(btf);
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
  auto one = TRY(clone(0, 0));
  owner = std::move(one);
  program.fd = owner.get();
  return {};
}

backends::FunctionArrays Attachment::functions_of(const PlannedLink& link, const AttachGroup& group) const {
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

}  // namespace v1
}  // namespace usdt
