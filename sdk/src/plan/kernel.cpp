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
#include "backend/table.hpp"
#include "base/try.hpp"
#include "btf/type_graph.hpp"
#include "kernel/attachable.hpp"
#include "kernel/catalogue.hpp"
#include "plan/captures.hpp"
#include "plan/encode_args.hpp"
#include "resolve/encode.hpp"
#include "resolve/prototype.hpp"

namespace usdt::plan {
namespace {

using backends::Ability;
using backends::BackendRow;
using backends::kBackends;
using backends::row_of;
using resolve::Convention;
using resolve::KernelSignature;

/// Trampolines made one by one take a hundred times as long to attach as kprobe_multi
/// (docs/results/kernel-mechanisms.md): where any mechanism may be taken, so many functions at most get them.
constexpr std::size_t kFewFunctions = 16;

tl::unexpected<Error> unsupported(KernelKind kind, std::string_view what) {
  return fail(ErrorKind::not_supported, fmt::format("{}: this kernel has no {}", to_string(kind), what));
}

Moment moment_of(Moment moment) {
  if (moment == Moment::both) return Moment::both;
  return moment == Moment::exit ? Moment::exit : Moment::entry;
}

bool can(const KernelAbilities& kernel, Ability ability) { return ability == nullptr || kernel.*ability; }

/// The first backend of `family`, the cheapest, that can do it here. `wanted`: automatic, or the only one to take.
/// `multi`: kprobe_multi and its session, which know the functions that ftrace lists, can take the function.
Result<KernelMethod> first_method(KernelKind kind, KernelFamily family, Backend wanted, const KernelAbilities& kernel,
                                  bool multi) {
  const bool any = wanted == Backend::automatic;
  const bool call = kind.moment == Moment::both;
  const BackendRow* missing = nullptr;
  for (const BackendRow& row : kBackends) {
    if (row.family != family || !row.moments.has(moment_of(kind.moment)) || (!any && row.backend != wanted)) continue;
    const bool takes_it = multi || !row.info.one_link || family != KernelFamily::kprobe;
    if (takes_it && can(kernel, row.needs))
      return KernelMethod{row.backend, call && row.moments.both && can(kernel, row.sessions)};
    missing = &row;
  }
  if (missing == nullptr)
    return fail(ErrorKind::invalid_argument,
                fmt::format("{} cannot be attached by {}", to_string(kind), to_string(wanted)));
  if (any && kind.family == KernelFamily::any && family == KernelFamily::kprobe)
    return unsupported(kind, "kprobes and no BPF trampolines");
  return unsupported(kind, missing->lack);
}

/// Prefers methods that miss no hit, then cheap ones. A trampoline runs its program with preemption on, and no second
/// time on that processor until it is through (__bpf_prog_enter_recur(), kernel/bpf/trampoline.c): a task that is
/// preempted within it leaves the processor blind for the function. Kprobes have preemption off while programs run. But
/// without kprobe_multi the kernel remembers only a few calls that are to return (docs/kernel.md).
KernelFamily family_for_any(KernelKind kind, Backend wanted, const KernelAbilities& kernel, std::size_t functions,
                            bool multi) {
  if (wanted != Backend::automatic)
    return row_of(wanted).family == KernelFamily::trampoline ? KernelFamily::trampoline : KernelFamily::kprobe;
  const bool trampolines = kernel.tracing_multi || (kernel.tracing && functions <= kFewFunctions);
  const bool kprobes_miss = !kernel.kprobe_multi && kind.moment != Moment::entry;
  const bool kprobes = kernel.kprobe_multi || kernel.perf_kprobe;
  const bool better = (trampolines && kprobes_miss) || (kernel.tracing && !kprobes);
  return multi && better ? KernelFamily::trampoline : KernelFamily::kprobe;
}

}  // namespace

Result<KernelMethod> choose_method(KernelKind kind, Backend wanted, const KernelAbilities& kernel,
                                   std::size_t functions, bool multi) {
  const KernelFamily family =
      kind.family == KernelFamily::any ? family_for_any(kind, wanted, kernel, functions, multi) : kind.family;
  return first_method(kind, family, wanted, kernel, multi);
}

namespace {

Convention convention_of(const BackendRow& row) {
  if (row.info.points == PointKind::tracepoint) return Convention::tracepoint;
  return row.source == USDT_SOURCE_SLOTS ? Convention::slots : Convention::registers;
}
Convention convention_of(Backend backend) { return convention_of(row_of(backend)); }

usdt_source source_of(Backend backend, const KernelAbilities& kernel) {
  const BackendRow& row = row_of(backend);
  return can(kernel, row.slot_helper) ? row.source : USDT_SOURCE_OLD_SLOTS;
}

/// Whether it reads memory of which the end of a call does not know what there was at its beginning. Trampolines keep
/// words of arguments, and not what these point to.
bool reads_behind_pointers(const EncodedSpec& spec) {
  const auto is_result = [](const usdt_arg_spec& arg) { return (arg.flags & USDT_ARG_RESULT) != 0; };
  for (std::size_t n = 0; n < spec.args.size(); ++n) {
    const usdt_arg_spec& arg = spec.args[n];
    const std::size_t length =
        arg.capture >= USDT_CAPTURE_LENGTH ? USDT_CAPTURE_ARG(n, std::size_t{arg.capture}) : spec.args.size();
    const bool waits = length < spec.args.size() && is_result(spec.args[length]);
    const bool text = arg.capture != USDT_CAPTURE_NONE && !waits;
    if (!is_result(arg) && (text || (arg.kind & USDT_ARG_HAS_STEPS) != 0)) return true;
  }
  return false;
}

class KernelPlanner {
 public:
  KernelPlanner(const KernelSelection& selection, const KernelAbilities& kernel, const PlanOptions& options,
                AttachPlan& plan, SpecTable& specs, ValueAdder& values)
      : selection_(selection), kernel_(kernel), options_(options), plan_(plan), specs_(specs), values_(values) {
    plan_.kernel_machine = kernel.machine;
  }

  Result<void> run() {
    for (const KernelSelection::Entry& entry : selection_.entries) {
      if (options_.stop.stop_requested()) return fail(ErrorKind::stopped, "not planned to the end");
      if (!seen_.insert({to_string(entry.kind), entry.function}).second) continue;
      TRY(add(entry));
    }
    for (const RefusedFunction& refused : selection_.refused) {
      const Index<PlannedProbe> probe = add_probe(refused.kind, refused.module, refused.name);
      plan_.skipped.push_back({.probe = probe, .pc = {}, .reason = refused.reason});
    }
    return {};
  }

 private:
  /// The common facts of functions with one prototype, attached by one method.
  struct Signature {
    Index<std::vector<Arg>> args;
    Index<EncodedSpec> spec;  ///< without user cookies that differ
    EncodedSpec encoded;
    ValueAdder::Filter filter;
    std::string refusal;      ///< why trampolines do not take it
    std::uint32_t slots = 0;  ///< that the arguments take
  };
  using SignatureKey =
      std::tuple<std::uint32_t, Backend, Moment, std::string_view, const TextOptions*, const ValueOptions*>;

  Result<void> add(const KernelSelection::Entry& entry) {
    const KernelFunction& function = *entry.function;
    const bool tracepoint = is_tracepoint(entry.kind);
    auto method = choose_method(entry.kind, options_.kernel_backend, kernel_, selection_.entries.size(),
                                tracepoint || function.ftrace);
    if (!method) return fail(method.error());
    std::string refusal = why_not(entry, *method);
    if (refusal.empty() && entry.kind.family == KernelFamily::any && row_of(method->backend).info.tied == TiedTo::point)
      refusal = why_unsure(signature_of(entry, *method));
    if (!refusal.empty() && entry.kind.family == KernelFamily::any && options_.kernel_backend == Backend::automatic) {
      // Trampolines do not take it, kprobes may.
      method = choose_method({KernelFamily::kprobe, entry.kind.moment}, Backend::automatic, kernel_,
                             selection_.entries.size(), function.ftrace);
      if (!method) return fail(method.error());
      refusal = why_not(entry, *method);
    }
    if (refusal.empty() && method->session && convention_of(method->backend) == Convention::slots &&
        reads_behind_pointers(signature_of(entry, *method).encoded))
      method->session = false;
    const Index<PlannedProbe> probe = add_probe(entry.kind, function.module, function.name);
    if (!refusal.empty()) {
      const auto pc = function.address == 0 ? std::nullopt : std::optional(VirtAddr(function.address));
      plan_.skipped.push_back({.probe = probe, .pc = pc, .reason = std::move(refusal)});
      return {};
    }
    add_site(entry, *method, probe);
    return {};
  }

  /// Why this function cannot be attached by this method; empty: it can.
  std::string why_not(const KernelSelection::Entry& entry, const KernelMethod& method) {
    if (is_tracepoint(entry.kind)) return {};
    const bool slots = convention_of(method.backend) == Convention::slots;
    const KernelKind kind{slots ? KernelFamily::trampoline : KernelFamily::kprobe, entry.kind.moment};
    const std::string refusal =
        slots && entry.function->proto_id != 0 ? signature_of(entry, method).refusal : std::string();
    std::string reason = kernel::why_not(kernel::CatalogueOf::selection(selection_), *entry.function, kind, refusal);
    // kprobe_multi does not heed the blacklist, perf kprobes do.
    if (reason.empty() && row_of(method.backend).on_perf_event && entry.function->denied)
      reason = "on the kprobe blacklist: code that runs while a kprobe is handled, or must not trap";
    if (reason.empty() && !kernel_.perf_cookies && !slots && entry.function->address == 0)
      reason = "its address is hidden (kernel.kptr_restrict), and this kernel has no attach cookies";
    return reason;
  }

  /// Trampolines of older kernels hand over what is in registers only (x86-64 before 6.6, commit 473e3150e30a; arm64
  /// before 6.16): where a kprobe does as well, that is not tried.
  [[nodiscard]] std::string why_unsure(const Signature& signature) const {
    return signature.slots > arch::for_machine(kernel_.machine).kernel_calls.arguments.size()
               ? "more arguments than registers"
               : "";
  }

  Index<PlannedProbe> add_probe(KernelKind kind, std::string_view module, std::string_view name) {
    std::string full = module.empty() ? std::string(name) : fmt::format("{}:{}", module, name);
    return plan_.probes.add({.file = {}, .provider = std::string(to_string(kind)), .name = std::move(full)});
  }

  void add_site(const KernelSelection::Entry& entry, const KernelMethod& method, Index<PlannedProbe> probe) {
    const KernelFunction& function = *entry.function;
    const Signature& signature = signature_of(entry, method);
    if (!signature.filter.refusal.empty()) {
      plan_.skipped.push_back(
          {.probe = probe, .pc = VirtAddr(entry.function->address), .reason = signature.filter.refusal});
      return;
    }
    Index<EncodedSpec> spec = signature.spec;
    if (options_.user_cookie_of) {
      EncodedSpec own = signature.encoded;
      own.user_cookie = user_cookie(options_, name_of(entry));
      spec = specs_.intern(std::move(own));
    }
    const auto planned = plan_.functions.add({.name = std::string(function.name),
                                              .module = std::string(function.module),
                                              .address = function.address,
                                              .btf_id = function.btf_id});
    const bool tracepoint = row_of(method.backend).info.points == PointKind::tracepoint;
    const auto site =
        plan_.sites.add({.probe = probe,
                         .point = tracepoint ? Point(TracepointPlace{planned}) : Point(KernelFunctionPlace{planned}),
                         .spec = spec,
                         .args = signature.args,
                         .filter = signature.filter.number,
                         .tracer_frames = tracer_frames(method)});
    group_of(entry, method).sites.push_back(site);
  }

  static PointName name_of(const KernelSelection::Entry& entry) {
    const KernelFunction& function = *entry.function;
    return {to_string(entry.kind), function.name, function.module, function.address, nullptr};
  }

  [[nodiscard]] std::uint8_t tracer_frames(const KernelMethod& method) const {
    const std::uint8_t frames = row_of(method.backend).tracer_frames;
    return frames > 0 ? frames + arch::for_machine(kernel_.machine).kernel.helper_frames : frames;
  }

  AttachGroup& group_of(const KernelSelection::Entry& entry, const KernelMethod& method) {
    const auto first = plan_.groups.begin() + static_cast<std::ptrdiff_t>(groups_of_files_);
    const auto known = std::find_if(first, plan_.groups.end(), [&](const AttachGroup& group) {
      const auto* module = std::get_if<KernelModule>(&group.of);
      return module != nullptr && group.backend == method.backend && group.session == method.session &&
             module->kind == entry.kind && module->name == entry.function->module;
    });
    if (known != plan_.groups.end()) return *known;
    const auto made = plan_.groups.add({.backend = method.backend,
                                        .source = source_of(method.backend, kernel_),
                                        .moment = moment_of(entry.kind.moment),
                                        .session = method.session,
                                        .cookies = can(kernel_, row_of(method.backend).cookies),
                                        .of = KernelModule{std::string(entry.function->module), entry.kind},
                                        .sites = {}});
    return plan_.groups[made];
  }

  const Signature& signature_of(const KernelSelection::Entry& entry, const KernelMethod& method) {
    const KernelFunction& function = *entry.function;
    const SignatureKey key(function.proto_id, method.backend, entry.kind.moment, function.module, &texts_of(entry),
                           &value_options(options_, [&] { return name_of(entry); }));
    const auto [it, fresh] = signatures_.try_emplace(key);
    if (fresh) it->second = make_signature(entry, method);
    return it->second;
  }

  const TextOptions& texts_of(const KernelSelection::Entry& entry) const {
    return text_options(options_, [&] { return name_of(entry); });
  }

  KernelSignature typed_signature(const KernelFunction& function, Convention convention) const {
    const btf::Types* types =
        function.proto_id == 0 ? nullptr : kernel::CatalogueOf::selection(selection_).btf(function.module);
    auto prototype = types ? types->prototype(function.proto_id) : Result<btf::Prototype>(btf::Prototype{});
    if (!types || !prototype) return resolve::untyped_signature(convention, kernel_.machine);
    return resolve::kernel_signature(*types, *prototype, convention, kernel_.machine);
  }

  Signature make_signature(const KernelSelection::Entry& entry, const KernelMethod& method) {
    const Convention convention = convention_of(method.backend);
    KernelSignature found = typed_signature(*entry.function, convention);
    Signature made;
    made.refusal = found.no_trampoline;
    made.slots = found.slots;
    const bool returns = entry.kind.moment == Moment::exit || entry.kind.moment == Moment::both;
    // A kprobe at the return has the registers of then; trampolines kept those of the entry.
    resolve::TypedArgs values;
    if (entry.kind.moment != Moment::exit || convention != Convention::registers)
      values = {std::move(found.args), std::move(found.arg_types)};
    values.types.resize(values.args.size(), TypeId::none);
    if (returns && found.result) {
      values.args.push_back(std::move(*found.result));
      values.types.push_back(found.result_type);
    }
    made.filter = add_values(values, entry);
    made.args = plan_.args.add(std::move(values.args));
    TextOptions texts = texts_of(entry);
    texts.likely = false;  // types say what is text
    std::vector<expr::AskedText> asked;
    if (entry.kind.moment == Moment::both) asked = values_.texts_of_beginning(made.filter, plan_.args[made.args]);
    made.encoded = encode_args(plan_.args[made.args], kernel_.machine, encoding_of(found.slots, entry.kind, method),
                               {.texts = texts, .asked = asked}, plan_);
    made.encoded.user_cookie = options_.user_cookie;
    if (!options_.user_cookie_of) made.spec = specs_.intern(made.encoded);
    return made;
  }

  ValueAdder::Filter add_values(resolve::TypedArgs& values, const KernelSelection::Entry& entry) {
    const ValueOptions& wanted = value_options(options_, [&] { return name_of(entry); });
    const btf::Types* types = kernel::CatalogueOf::selection(selection_).btf(entry.function->module);
    if (types == nullptr) return values_.add(values, nullptr, kernel_.machine, wanted, options_.texts);
    const btf::Graph graph(*types);
    return values_.add(values, &graph, kernel_.machine, wanted, texts_of(entry));
  }

  /// How the return value is read. Its register may be an argument's, its slot holds anything until the end of a call.
  [[nodiscard]] resolve::EncodeOptions encoding_of(std::uint32_t slots, KernelKind kind,
                                                   const KernelMethod& method) const {
    const usdt_source source = source_of(method.backend, kernel_);
    resolve::EncodeOptions options;
    options.result_comes_later = source != USDT_SOURCE_SLOTS && kind.moment == Moment::both;
    if (source == USDT_SOURCE_OLD_SLOTS) options.result_slot = static_cast<std::uint8_t>(slots);
    return options;
  }

  const KernelSelection& selection_;
  const KernelAbilities& kernel_;
  const PlanOptions& options_;
  AttachPlan& plan_;
  SpecTable& specs_;
  ValueAdder& values_;
  std::size_t groups_of_files_ = plan_.groups.size();
  std::set<std::pair<std::string_view, const KernelFunction*>> seen_;
  std::map<SignatureKey, Signature> signatures_;
};

}  // namespace

Result<void> add_kernel(const KernelSelection& selection, const KernelAbilities& kernel, const PlanOptions& options,
                        AttachPlan& plan, SpecTable& specs, ValueAdder& values) {
  return KernelPlanner(selection, kernel, options, plan, specs, values).run();
}

}  // namespace usdt::plan
