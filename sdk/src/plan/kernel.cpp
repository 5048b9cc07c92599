// SPDX-License-Identifier: BSD-2-Clause
#include "plan/kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "arch/arch.hpp"
#include "kernel/catalogue.hpp"
#include "plan/captures.hpp"
#include "plan/kernel_args.hpp"

namespace usdt::plan {
namespace {

/// Trampolines made one by one take a hundred times as long to attach as kprobe_multi (docs/kernel-lab.md): where any
/// mechanism may be taken, so many functions at most get them.
constexpr std::size_t kFewFunctions = 16;

tl::unexpected<Error> unsupported(KernelKind kind, std::string_view what) {
  return fail(ErrorKind::not_supported, fmt::format("{}: this kernel has no {}", to_string(kind), what));
}

tl::unexpected<Error> cannot(KernelKind kind, Backend backend) {
  return fail(ErrorKind::invalid_argument,
              fmt::format("{} cannot be attached by {}", to_string(kind), to_string(backend)));
}

/// Ways of the kprobe family, the cheapest first. `forced`: automatic, or the only one to take.
Result<KernelWay> kprobe_way(KernelKind kind, Backend forced, const KernelAbilities& kernel, bool multi) {
  const bool any = forced == Backend::automatic;
  const bool call = kind.moment == KernelMoment::call;
  if (call && (any || forced == Backend::kprobe_session)) {
    if (multi && kernel.kprobe_session) return KernelWay{Backend::kprobe_session, true};
    if (!any) return unsupported(kind, "kprobe sessions (Linux 6.10)");
  }
  if (any || forced == Backend::kprobe_multi) {
    if (multi && kernel.kprobe_multi) return KernelWay{Backend::kprobe_multi, false};
    if (!any) return unsupported(kind, "kprobe_multi (Linux 5.18, CONFIG_FPROBE)");
  }
  if (!any && forced != Backend::perf_kprobe) return cannot(kind, forced);
  if (kernel.perf_kprobe) return KernelWay{Backend::perf_kprobe, false};
  if (kind.family == KernelFamily::any) return unsupported(kind, "kprobes and no BPF trampolines");
  return unsupported(kind, "kprobes (CONFIG_KPROBE_EVENTS)");
}

Result<KernelWay> tracing_way(KernelKind kind, Backend forced, const KernelAbilities& kernel) {
  const bool any = forced == Backend::automatic;
  const bool call = kind.moment == KernelMoment::call;
  if (!any && forced != Backend::tracing && forced != Backend::tracing_multi) return cannot(kind, forced);
  if (any || forced == Backend::tracing_multi) {
    if (kernel.tracing_multi) return KernelWay{Backend::tracing_multi, call};
    if (!any) return unsupported(kind, "tracing_multi (Linux 7.2, x86-64)");
  }
  if (!kernel.tracing) return unsupported(kind, "BPF trampolines (fentry): kprobe or kfunc names do without");
  return KernelWay{Backend::tracing, call && kernel.tracing_session};
}

/// What misses no hit comes first, then what is cheap. A trampoline runs its program with preemption on, and no second
/// time on that processor until it is through (__bpf_prog_enter_recur(), kernel/bpf/trampoline.c): a task that is
/// preempted within it leaves the processor blind for the function. Kprobes have preemption off while programs run. But
/// without kprobe_multi the kernel remembers only a few calls that are to return (docs/kernel.md).
Result<KernelWay> any_way(KernelKind kind, Backend forced, const KernelAbilities& kernel, std::size_t functions,
                          bool multi) {
  if (forced == Backend::tracing || forced == Backend::tracing_multi) return tracing_way(kind, forced, kernel);
  const bool trampolines = kernel.tracing_multi || (kernel.tracing && functions <= kFewFunctions);
  const bool kprobes_miss = !kernel.kprobe_multi && kind.moment != KernelMoment::entry;
  const bool kprobes = kernel.kprobe_multi || kernel.perf_kprobe;
  if (forced == Backend::automatic && multi && ((trampolines && kprobes_miss) || (kernel.tracing && !kprobes)))
    return tracing_way(kind, forced, kernel);
  return kprobe_way(kind, forced, kernel, multi);
}

}  // namespace

Result<KernelWay> choose_way(KernelKind kind, Backend wanted, const KernelAbilities& kernel, std::size_t functions,
                             bool multi) {
  switch (kind.family) {
    case KernelFamily::kprobe:
      return kprobe_way(kind, wanted, kernel, multi);
    case KernelFamily::trampoline:
      return tracing_way(kind, wanted, kernel);
    case KernelFamily::any:
      return any_way(kind, wanted, kernel, functions, multi);
    case KernelFamily::raw_tp:
      if (wanted != Backend::automatic && wanted != Backend::raw_tp) return cannot(kind, wanted);
      return KernelWay{Backend::raw_tp, false};
    case KernelFamily::tp_btf:
      if (wanted != Backend::automatic && wanted != Backend::tp_btf) return cannot(kind, wanted);
      if (!kernel.kernel_btf) return unsupported(kind, "type information (BTF): raw_tp names do without");
      return KernelWay{Backend::tp_btf, false};
  }
  return fail(ErrorKind::invalid_argument, "no such kind of kernel point");
}

namespace {

Convention convention_of(Backend backend) {
  if (backend == Backend::tracing || backend == Backend::tracing_multi) return Convention::slots;
  return backend == Backend::raw_tp || backend == Backend::tp_btf ? Convention::tracepoint : Convention::registers;
}

usdt_source source_of(Backend backend, const KernelAbilities& kernel) {
  switch (backend) {
    case Backend::tracing:
    case Backend::tracing_multi:
      return kernel.func_arg ? USDT_SOURCE_SLOTS : USDT_SOURCE_OLD_SLOTS;
    case Backend::tp_btf:
      return kernel.tp_btf_func_arg ? USDT_SOURCE_SLOTS : USDT_SOURCE_OLD_SLOTS;
    case Backend::raw_tp:
      return USDT_SOURCE_RAW;
    default:
      return USDT_SOURCE_KERNEL;
  }
}

/// A stack is taken from the registers at a kprobe, elsewhere from within the program: that, and what called it. Behind
/// it, a raw tracepoint has the kernel's own helpers, which differ by version (kernel::is_tracer_frame()).
std::uint8_t tracer_frames_of(Backend backend) {
  if (convention_of(backend) == Convention::registers) return 0;
  return convention_of(backend) == Convention::slots ? 2 : 1;
}

bool has_cookies(Backend backend, const KernelAbilities& kernel) {
  switch (backend) {
    case Backend::tracing:
    case Backend::tracing_multi:
      return kernel.tracing_cookies;
    case Backend::tp_btf:
    case Backend::raw_tp:
      return kernel.raw_tp_cookies;
    default:
      return kernel.perf_cookies;
  }
}

class KernelPlanner {
 public:
  KernelPlanner(const KernelSelection& selection, const KernelAbilities& kernel, const PlanOptions& options,
                AttachPlan& plan, SpecTable& specs)
      : selection_(selection), kernel_(kernel), options_(options), plan_(plan), specs_(specs) {
    plan_.kernel_machine = kernel.machine;
  }

  Result<void> run() {
    for (const KernelSelection::Entry& entry : selection_.entries) {
      if (!seen_.insert({to_string(entry.kind), entry.function}).second) continue;
      if (auto added = add(entry); !added) return added;
    }
    for (const RefusedFunction& refused : selection_.refused) {
      const std::uint32_t probe = add_probe(refused.kind, refused.module, refused.name);
      plan_.skipped.push_back({.probe = probe, .file = kNone, .pc = {}, .reason = refused.reason});
    }
    return {};
  }

 private:
  /// What functions with one prototype, attached in one way, have in common.
  struct Signature {
    std::uint32_t args = 0;  ///< index into AttachPlan::args
    std::uint32_t spec = 0;  ///< index into AttachPlan::specs, without user cookies that differ
    std::vector<usdt_arg_spec> encoded;
    std::string refusal;      ///< why trampolines do not take it
    std::uint32_t slots = 0;  ///< that the arguments take
  };
  using SignatureKey = std::tuple<std::uint32_t, Backend, KernelMoment, std::string_view>;

  Result<void> add(const KernelSelection::Entry& entry) {
    const KernelFunction& function = *entry.function;
    const bool tracepoint = entry.kind.moment == KernelMoment::tracepoint;
    auto way = choose_way(entry.kind, options_.kernel_backend, kernel_, selection_.entries.size(),
                          tracepoint || function.ftrace);
    if (!way) return fail(way.error());
    std::string refusal = why_not(entry, *way);
    if (refusal.empty() && entry.kind.family == KernelFamily::any && way->backend == Backend::tracing)
      refusal = why_unsure(signature_of(entry, *way));
    if (!refusal.empty() && entry.kind.family == KernelFamily::any && options_.kernel_backend == Backend::automatic) {
      // Trampolines do not take it, kprobes may.
      way = choose_way({KernelFamily::kprobe, entry.kind.moment}, Backend::automatic, kernel_,
                       selection_.entries.size(), function.ftrace);
      if (!way) return fail(way.error());
      refusal = why_not(entry, *way);
    }
    const std::uint32_t probe = add_probe(entry.kind, function.module, function.name);
    if (!refusal.empty()) {
      plan_.skipped.push_back(
          {.probe = probe, .file = kNone, .pc = VirtAddr(function.address), .reason = std::move(refusal)});
      return {};
    }
    add_site(entry, *way, probe);
    return {};
  }

  /// Why this function cannot be attached in this way; empty: it can.
  std::string why_not(const KernelSelection::Entry& entry, const KernelWay& way) {
    if (entry.kind.moment == KernelMoment::tracepoint) return {};
    const bool slots = convention_of(way.backend) == Convention::slots;
    const KernelKind kind{slots ? KernelFamily::trampoline : KernelFamily::kprobe, entry.kind.moment};
    const std::string refusal =
        slots && entry.function->proto_id != 0 ? signature_of(entry, way).refusal : std::string();
    std::string reason = selection_.catalogue().why_not(*entry.function, kind, refusal);
    // kprobe_multi does not heed the blacklist, perf kprobes do.
    if (reason.empty() && way.backend == Backend::perf_kprobe && entry.function->denied)
      reason = "on the kprobe blacklist: code that runs while a kprobe is handled, or must not trap";
    if (reason.empty() && !kernel_.perf_cookies && !slots && entry.function->address == 0)
      reason = "its address is hidden (kernel.kptr_restrict), and this kernel has no attach cookies";
    return reason;
  }

  /// Trampolines of older kernels hand over what is in registers only (x86-64 before 6.6, commit 473e3150e30a; arm64
  /// before 6.16): where a kprobe does as well, that is not tried.
  [[nodiscard]] std::string why_unsure(const Signature& signature) const {
    const std::uint32_t registers = kernel_.machine == Machine::aarch64 ? 8 : 6;
    return signature.slots > registers ? "more arguments than registers" : "";
  }

  std::uint32_t add_probe(KernelKind kind, std::string_view module, std::string_view name) {
    std::string full = module.empty() ? std::string(name) : fmt::format("{}:{}", module, name);
    plan_.probes.push_back({.file = kNone, .provider = std::string(to_string(kind)), .name = std::move(full)});
    return static_cast<std::uint32_t>(plan_.probes.size() - 1);
  }

  void add_site(const KernelSelection::Entry& entry, const KernelWay& way, std::uint32_t probe) {
    const KernelFunction& function = *entry.function;
    const Signature& signature = signature_of(entry, way);
    const auto number = static_cast<std::uint32_t>(plan_.sites.size());
    const std::uint32_t spec = options_.user_cookie_of_function
                                   ? specs_.intern(signature.encoded, options_.user_cookie_of_function(function))
                                   : signature.spec;
    plan_.sites.push_back({.probe = probe,
                           .file = kNone,
                           .function = static_cast<std::uint32_t>(plan_.functions.size()),
                           .spec = spec,
                           .pc = VirtAddr(function.address),
                           .offset = {},
                           .args = signature.args,
                           .tracer_frames = tracer_frames_of(way.backend)});
    plan_.functions.push_back({.name = std::string(function.name),
                               .module = std::string(function.module),
                               .address = function.address,
                               .btf_id = function.btf_id});
    group_of(entry, way).sites.push_back(number);
  }

  PlannedKernel& group_of(const KernelSelection::Entry& entry, const KernelWay& way) {
    const auto known = std::find_if(plan_.kernels.begin(), plan_.kernels.end(), [&](const PlannedKernel& group) {
      return group.kind == entry.kind && group.backend == way.backend && group.session == way.session &&
             group.module == entry.function->module;
    });
    if (known != plan_.kernels.end()) return *known;
    return plan_.kernels.emplace_back(PlannedKernel{.kind = entry.kind,
                                                    .backend = way.backend,
                                                    .source = source_of(way.backend, kernel_),
                                                    .cookies = has_cookies(way.backend, kernel_),
                                                    .session = way.session,
                                                    .module = std::string(entry.function->module),
                                                    .sites = {}});
  }

  const Signature& signature_of(const KernelSelection::Entry& entry, const KernelWay& way) {
    const KernelFunction& function = *entry.function;
    const SignatureKey key(function.proto_id, way.backend, entry.kind.moment, function.module);
    const auto [it, fresh] = signatures_.try_emplace(key);
    if (fresh) it->second = make_signature(entry, way);
    return it->second;
  }

  KernelSignature typed_signature(const KernelFunction& function, Convention convention) const {
    const btf::Types* types = function.proto_id == 0 ? nullptr : selection_.catalogue().btf(function.module);
    auto prototype = types ? types->prototype(function.proto_id) : Result<btf::Prototype>(btf::Prototype{});
    if (!types || !prototype) return untyped_signature(convention, kernel_.machine);
    return kernel_signature(*types, *prototype, convention, kernel_.machine);
  }

  Signature make_signature(const KernelSelection::Entry& entry, const KernelWay& way) {
    const Convention convention = convention_of(way.backend);
    KernelSignature found = typed_signature(*entry.function, convention);
    Signature made;
    made.refusal = found.no_trampoline;
    made.slots = found.slots;
    const bool returns = entry.kind.moment == KernelMoment::exit || entry.kind.moment == KernelMoment::call;
    // A kprobe at the return has the registers of then; trampolines kept those of the entry.
    if (entry.kind.moment == KernelMoment::exit && convention == Convention::registers) found.args.clear();
    if (returns && found.result) found.args.push_back(result_of(found, entry.kind, way));
    made.args = static_cast<std::uint32_t>(plan_.args.size());
    std::vector<Arg>& args = plan_.args.emplace_back();
    args.reserve(found.args.size());
    made.encoded.reserve(found.args.size());
    for (ResolvedArg& each : found.args) {
      made.encoded.push_back(each.encoded);
      args.push_back(std::move(each.arg));
    }
    const std::uint32_t slots =
        assign_captures(made.encoded, args, arch::for_machine(kernel_.machine).word_size, options_);
    plan_.string_slots = std::max(plan_.string_slots, slots);
    plan_.max_args = std::max(plan_.max_args, static_cast<std::uint32_t>(made.encoded.size()));
    if (!options_.user_cookie_of_function) made.spec = specs_.intern(made.encoded, options_.user_cookie);
    return made;
  }

  ResolvedArg result_of(const KernelSignature& signature, KernelKind kind, const KernelWay& way) const {
    ResolvedArg result = *signature.result;
    result.arg.result = true;
    const usdt_source source = source_of(way.backend, kernel_);
    // Its register may be an argument's, its slot holds anything until then: only the end of a call tells.
    if (source != USDT_SOURCE_SLOTS && kind.moment == KernelMoment::call) result.encoded.flags |= USDT_ARG_RESULT;
    if (source == USDT_SOURCE_OLD_SLOTS && result.encoded.kind == USDT_ARG_REG)
      result.encoded.reg = static_cast<std::uint8_t>(signature.slots);
    return result;
  }

  const KernelSelection& selection_;
  const KernelAbilities& kernel_;
  const PlanOptions& options_;
  AttachPlan& plan_;
  SpecTable& specs_;
  std::set<std::pair<std::string_view, const KernelFunction*>> seen_;
  std::map<SignatureKey, Signature> signatures_;
};

}  // namespace

Result<void> add_kernel(const KernelSelection& selection, const KernelAbilities& kernel, const PlanOptions& options,
                        AttachPlan& plan, SpecTable& specs) {
  return KernelPlanner(selection, kernel, options, plan, specs).run();
}

}  // namespace usdt::plan
