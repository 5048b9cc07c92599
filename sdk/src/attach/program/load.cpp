// SPDX-License-Identifier: BSD-2-Clause
// The copies of an object that are loaded for a plan.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "arch/arch.hpp"
#include "backend/table.hpp"
#include "base/try.hpp"
#include "expr/compile.hpp"
#include "features/kernel_features.hpp"
#include "program/bpf_object_impl.hpp"
#include "program/clone.hpp"
#include "program/expand_calls.hpp"
#include "program/libbpf_log.hpp"
#include "program/parent_offsets.hpp"
#include "program/spec_maps.hpp"
#include "program/specialise.hpp"
#include "sys/pid_namespace.hpp"
#include "sys/syscalls.hpp"
#include "sys/uapi.hpp"
#include "usdt/bpf/pt_regs.h"

namespace usdt::backends {
namespace {

bool is_sleepable(const bpf_program* program) {
  const std::string_view section = bpf_program__section_name(program);
  return section.substr(0, section.find('/')).ends_with(".s");
}

/// libbpf 1.1 does not know "usdt.s", later ones tie "usdt" to uprobe_multi when they load it: what a section means is
/// said here, and libbpf forgets its definition of one with the program's type (bpf_program__set_type).
void set_type(bpf_program* program, const ProgramType& type) {
  if (is_sleepable(program)) bpf_program__set_flags(program, bpf_program__flags(program) | BPF_F_SLEEPABLE);
  bpf_program__set_type(program, BPF_PROG_TYPE_UNSPEC);
  bpf_program__set_type(program, static_cast<bpf_prog_type>(type.type));
  bpf_program__set_expected_attach_type(program, static_cast<bpf_attach_type>(type.attach_type));
}

/// Loads the programs on sites that are `wanted`, and the others that are `asked` for; an empty list: as their sections
/// say. Errors: not_found.
Result<void> choose_programs(const ObjectCopy& object, std::span<const std::string> wanted,
                             std::span<const std::string> asked) {
  for (const auto& names : {wanted, asked}) {
    for (const std::string& name : names) {
      if (!bpf_object__find_program_by_name(object.get(), name.c_str()))
        return fail(ErrorKind::not_found, fmt::format("the BPF object has no program '{}'", name));
    }
  }
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object.get()) {
    const auto names = is_site_program(program) ? wanted : asked;
    if (names.empty()) continue;
    bpf_program__set_autoload(program, std::ranges::find(names, bpf_program__name(program)) != names.end());
  }
  return {};
}

/// The kernel ties a program to its kind of link when it is loaded; those of trampolines to a function, `tied_to`.
Result<void> set_types(const ObjectCopy& object, const ProgramKind& kind, Backend files, const std::string& tied_to,
                       bool with_others) {
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object.get()) {
    if (!is_site_program(program)) {
      if (!with_others) bpf_program__set_autoload(program, false);
      continue;
    }
    set_type(program, program_type(kind, files));
    // Kernel functions are no place to sleep.
    if (is_kernel(kind.backend) && is_sleepable(program)) bpf_program__set_autoload(program, false);
    if (tied_to.empty()) continue;
    const LibbpfLog log;
    if (const int error = bpf_program__set_attach_target(program, 0, tied_to.c_str()))
      return fail(os_failure(ErrorKind::io, fmt::format("find the type of '{}'", tied_to), -error));
  }
  return {};
}

/// Applies LoadOptions::sleepable.
void let_sleep(const ObjectCopy& object) {
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object.get()) {
    if (is_site_program(program)) bpf_program__set_flags(program, bpf_program__flags(program) | BPF_F_SLEEPABLE);
  }
}

/// Returns the target to load `program` for, if it needs one. A clone for each function or tracepoint is attached
/// instead: any target will do, and the kernel's own stay when modules go.
std::string tied_to(const AttachPlan& plan, const CarrierPlan& carriers, Index<PlannedProgram> program) {
  const Backend backend = carriers.programs[program].kind.backend;
  if (backend == Backend::automatic || backends::row_of(backend).info.tied != TiedTo::point) return {};
  if (backend_info(backend).points == PointKind::kernel_function) return std::string(features::kTestFunction);
  std::string name;
  for (const PlannedLink& link : carriers.links) {
    if (link.program != program) continue;
    const PlannedFunction& function = *function_of(plan, plan.sites[link.sites.front()]);
    if (name.empty() || function.module.empty()) name = function.name;
  }
  return name;
}

/// All maps but the constants are the first copy's.
Result<void> share_maps(const ObjectCopy& first, const ObjectCopy& copy) {
  bpf_map* theirs = nullptr;
  bpf_map* ours = nullptr;
  while ((theirs = bpf_object__next_map(first.get(), theirs)) != nullptr) {
    ours = bpf_object__next_map(copy.get(), ours);
    if (std::string_view(bpf_map__name(theirs)).ends_with(".rodata")) continue;
    if (const int error = bpf_map__reuse_fd(ours, bpf_map__fd(theirs)))
      return fail(os_failure(ErrorKind::io, fmt::format("share the map '{}'", bpf_map__name(theirs)), -error));
  }
  return {};
}

/// Maps that the load will pin: where nothing is pinned yet.
std::vector<bpf_map*> maps_to_pin(const ObjectCopy& object) {
  std::vector<bpf_map*> all;
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object.get()) {
    const char* path = bpf_map__pin_path(map);
    if (path != nullptr && ::access(path, F_OK) != 0) all.push_back(map);
  }
  return all;
}

/// A map with what instructions read.
Result<sys::UniqueFd> table_map(const std::vector<std::uint64_t>& table) {
  sys::MapCreate array{.value_size = static_cast<std::uint32_t>(table.size() * sizeof(table[0])),
                       .map_name = "usdt_table"};
  const int map_fd = sys::syscalls().bpf(sys::kBpfMapCreateCmd, &array, sizeof(array));
  sys::UniqueFd map(map_fd);
  const std::uint32_t first = 0;
  const int error = map ? bpf_map_update_elem(map.get(), &first, table.data(), BPF_ANY) : map_fd;
  if (error < 0) return fail(os_failure(ErrorKind::io, "make a map for what patterns match", -error));
  return map;
}

/// The code of an object, with the maps that it has by their descriptors.
struct ObjectCode {
  std::vector<std::byte> bytes;
  std::vector<sys::UniqueFd> maps;
};

/// `bytes` with a question of the plan in the program.
Result<std::vector<std::byte>> with_question(std::span<const std::byte> bytes, usdt_patch placeholder,
                                             const TypedExpression& question, const ProgramKind& kind, Machine kernel,
                                             bool sleepable, std::vector<sys::UniqueFd>& maps) {
  const bool of_span = kind.span == USDT_SPAN_END && placeholder == USDT_PATCH_FILTER;
  expr::Surroundings surroundings{.may_wait = sleepable && kind.source == USDT_SOURCE_USER, .of_span = of_span};
  if (kind.source != USDT_SOURCE_USER) surroundings.kernel_half = arch::for_machine(kernel).kernel.half;
  if (question.asks(HitField::ppid)) surroundings.parents = find_parents();
  const auto nested = TRY(sys::nested_pid_namespace());
  if (nested) {
    surroundings.pidns_dev = nested->device;
    surroundings.pidns_ino = nested->inode;
  }
  auto code = TRY(expr::compile(question, surroundings));
  if (!code.table.empty()) {
    auto map = TRY(table_map(code.table));
    expr::set_table(code.instructions, map.get());
    maps.push_back(std::move(map));
  }
  auto expanded = expand_calls(bytes, placeholder, code.instructions);
  if (!expanded && expanded.error().kind == ErrorKind::not_found)
    return fail(
        ErrorKind::invalid_argument,
        "the plan asks about hits (PlanOptions::where), and no program of the BPF object does: see usdt_filter()");
  return expanded;
}

/// The object's code, rewritten where `program` wants it; empty: as it is.
Result<ObjectCode> code_for(std::span<const std::byte> bytes, const PlannedProgram& program, const AttachPlan& plan,
                            bool sleepable) {
  ObjectCode made;
  std::vector<std::byte>& code = made.bytes;
  if ((program.carriers & USDT_CARRIER_BIT(USDT_CARRIER_LINK)) != 0) {
    auto special = TRY(specialise(bytes, program));
    if (std::memcmp(special.data(), bytes.data(), bytes.size()) != 0) code = std::move(special);
  }
  // After that, since numbers of the question could look like placeholders.
  for (const auto& [question, placeholder] :
       {std::pair(program.kind.filter, USDT_PATCH_FILTER), {program.kind.pair, USDT_PATCH_PAIR}}) {
    if (!question) continue;
    auto asking = TRY(with_question(code.empty() ? bytes : code, placeholder, plan.filters[*question], program.kind,
                                    plan.kernel_machine, sleepable, made.maps));
    code = std::move(asking);
  }
  if (program.kind.moment != Moment::both) return made;
  auto session = TRY(call_session_kfuncs(code.empty() ? bytes : code));
  code = std::move(session);
  return made;
}

class Loader {
 public:
  Loader(const Recipe& recipe, std::optional<ObjectCopy>& opened, const AttachPlan& plan, const CarrierPlan& carriers,
         Backend files, const LoadOptions& options, VerifierLog log)
      : recipe_(recipe),
        opened_(opened),
        plan_(plan),
        carriers_(carriers),
        files_(files),
        options_(options),
        log_(log) {}

  tl::expected<std::vector<ObjectCopy>, LoadFailure> run() {
    const LibbpfLog quiet;
    auto done = load_all();
    if (done) return std::move(copies_);
    for (bpf_map* map : to_pin_) {
      if (bpf_map__is_pinned(map)) bpf_map__unpin(map, nullptr);
    }
    return tl::unexpected(LoadFailure{.error = std::move(done.error()), .program = at_});
  }

 private:
  Result<void> load_all() {
    for (const Index<PlannedProgram> number : carriers_.programs.indices()) {
      at_ = number;
      if (options_.stop.stop_requested()) return fail(ErrorKind::stopped, "the BPF programs were not all loaded");
      TRY(load(number));
    }
    return fill_specs(copies_.front(), plan_, carriers_);
  }

  Result<void> load(Index<PlannedProgram> number) {
    const PlannedProgram& program = carriers_.programs[number];
    TRY(open(program));
    const ObjectCopy& copy = copies_.back();
    if (number == 0) {
      auto kernel = TRY(kernel_constants(copy, plan_));
      kernel_ = kernel;
    }
    if (auto set =
            set_constants(copy, plan_, carriers_, program, kernel_, options_.leave_out_self && options_.family.empty());
        !set)
      return set;
    TRY(choose_programs(copy, wanted(program), options_.programs));
    TRY(set_types(copy, program.kind, files_, tied_to(plan_, carriers_, number), number == Index<PlannedProgram>(0)));
    if (options_.sleepable && !is_kernel(program.kind.backend)) let_sleep(copy);
    if (auto done = copy.load(log_); !done) {
      if (carriers_.programs.size() == 1) return done;
      return fail(done.error().within(fmt::format("program {} of {}", number.value + 1, carriers_.programs.size())));
    }
    return {};
  }

  /// The next copy, with the first one's maps where it is not that itself.
  Result<void> open(const PlannedProgram& program) {
    auto code = TRY(code_for(recipe_.bytes(), program, plan_, options_.sleepable));
    auto copy = TRY(open_with(code.bytes));
    copy.keep(std::move(code.maps));
    const bool is_first = copies_.empty();
    copies_.push_back(std::move(copy));
    if (!is_first) return share_maps(copies_.front(), copies_.back());
    TRY(recipe_.prepare_maps(copies_.front()));
    to_pin_ = maps_to_pin(copies_.front());
    return size_specs(copies_.front(), plan_, carriers_);
  }

  /// An object of `code`; empty: its own, which is open already the first time.
  Result<ObjectCopy> open_with(std::span<const std::byte> code) {
    if (!code.empty()) return recipe_.open(code);
    if (auto taken = std::exchange(opened_, std::nullopt)) return std::move(*taken);
    return recipe_.open(recipe_.bytes());
  }

  /// Names of the programs to load in a copy; empty: all.
  [[nodiscard]] std::span<const std::string> wanted(const PlannedProgram& program) const {
    if (!program.kind.program) return options_.programs;
    return {&plan_.programs[*program.kind.program], 1};
  }

  const Recipe& recipe_;
  std::optional<ObjectCopy>& opened_;
  const AttachPlan& plan_;
  const CarrierPlan& carriers_;
  Backend files_;
  const LoadOptions& options_;
  VerifierLog log_;
  usdt_kernel_constants kernel_{};
  Index<PlannedProgram> at_ = {};
  std::vector<ObjectCopy> copies_;
  std::vector<bpf_map*> to_pin_;  ///< of the first copy
};

}  // namespace

/// Programs that sit on sites. An object may have others.
bool is_site_program(const bpf_program* program) {
  const std::string_view section = bpf_program__section_name(program);
  return section.starts_with("uprobe") || section.starts_with("usdt");
}

tl::expected<std::vector<ObjectCopy>, LoadFailure> load_copies(const Recipe& recipe, std::optional<ObjectCopy>& opened,
                                                               const AttachPlan& plan, const CarrierPlan& carriers,
                                                               Backend files, const LoadOptions& options,
                                                               VerifierLog log) {
  return Loader(recipe, opened, plan, carriers, files, options, log).run();
}

}  // namespace usdt::backends
