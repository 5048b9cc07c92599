// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/plan.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "arch/arch.hpp"
#include "backend/table.hpp"
#include "base/hash_index.hpp"
#include "base/symbol_name.hpp"
#include "plan/captures.hpp"
#include "plan/encode_args.hpp"
#include "plan/kernel.hpp"
#include "plan/placement.hpp"
#include "plan/spec_table.hpp"
#include "plan/values.hpp"
#include "resolve/encode.hpp"
#include "resolve/prototype.hpp"
#include "usdt/decode.hpp"

namespace usdt {
inline namespace v1 {
namespace {

/// Different arguments that a plan describes: so many, and one for each 32 bytes of its files. An honest note takes
/// more for each; in a hostile one two bytes of text say an argument, which takes some 200 bytes of memory.
constexpr std::size_t kFreeArguments = 3 << 15;
constexpr std::size_t kFileBytesPerArgument = 32;

std::size_t bytes_of(const ElfFile& file) {
  struct stat st {};
  return ::fstat(file.fd(), &st) == 0 ? static_cast<std::size_t>(st.st_size) : 0;
}

/// What all sites with one argument text share.
struct ArgTemplate {
  Index<std::vector<Arg>> args;
  plan::ValueAdder::Filter filter;
  EncodedSpec encoded;              ///< for a breakpoint at address 0; empty where all its sites share one
  bool result_comes_later = false;  ///< resolve::EncodeOptions
  bool ip_relative = false;         ///< some value is a distance from the breakpoint
  Index<EncodedSpec> spec;          ///< where all its sites share one
};

/// The arguments' numbers fit a byte of the spec; what is beyond keeps its place and says why it has no value.
void reject_surplus(std::vector<Arg>& args, std::span<const ParsedArg> parsed) {
  for (std::size_t i = USDT_MAX_ARGS; i < args.size(); ++i) {
    if (args[i].readable())
      args[i].location =
          Unreadable{fmt::format("argument {}: only the first {} can be read", i, USDT_MAX_ARGS), parsed[i].column};
  }
}

/// What a program has of a function at `moment`, the return value last. At the return, where the arguments were are
/// other values.
resolve::TypedArgs values_at(const FunctionSignature& signature, Moment moment) {
  resolve::TypedArgs values;
  if (moment != Moment::exit) values = {signature.args, signature.arg_types, signature.pieces};
  values.types.resize(values.args.size(), TypeId::none);
  values.pieces.resize(values.args.size());
  if (moment != Moment::entry && signature.result) {
    values.args.push_back(*signature.result);
    values.types.push_back(signature.result_type);
    values.pieces.push_back(signature.result_pieces);
  }
  for (std::size_t i = USDT_MAX_ARGS; i < values.args.size(); ++i) {
    if (values.args[i].readable())
      values.args[i].location = Unreadable{fmt::format("value {}: only the first {} can be read", i, USDT_MAX_ARGS)};
  }
  return values;
}

/// The part of a site that says where its breakpoint goes.
Site site_of(const FunctionPoint& point) {
  Site site;
  site.pc = site.pc_adjusted = point.pc;
  site.offset = point.offset;
  site.bytes = point.bytes;
  site.site_class = point.site_class;
  return site;
}

/// Whether the file, and not the text alone, decided how to read an argument.
bool depends_on_file(const std::vector<Arg>& args) {
  return std::ranges::any_of(args, [](const Arg& arg) { return !arg.needs.empty(); });
}

/// Sites outlive the planning, so that keys are views of their strings.
using MachineText = std::pair<Machine, std::string_view>;
/// An argument text, what its provider says of the arguments, which of them are wanted as texts, and which are lengths
/// of those.
struct TemplateKey {
  const TextOptions* wanted;
  const ValueOptions* values;
  const plan::TextAndLength* known;
  const SiteDescription* description;
  std::string_view text;
  friend bool operator==(const TemplateKey&, const TemplateKey&) = default;
};

struct KeyHash {
  std::size_t operator()(const MachineText& key) const noexcept {
    return std::hash<Machine>{}(key.first) * 31 + std::hash<std::string_view>{}(key.second);
  }
};

std::size_t hash_of(const TemplateKey& key) noexcept {
  const std::hash<const void*> of_pointer;
  const std::size_t how = (of_pointer(key.wanted) * 31 + of_pointer(key.values)) * 31 + of_pointer(key.known);
  return (how * 31 + of_pointer(key.description)) * 31 + std::hash<std::string_view>{}(key.text);
}

std::size_t hash_of(const PointName& name) noexcept {
  const std::hash<std::string_view> of_text;
  return of_text(name.provider) * 31 + of_text(name.name);
}

/// The numbers of the templates of a file's sites.
class KnownTemplates {
 public:
  void reserve(std::size_t count) { by_key_.reserve(count); }
  [[nodiscard]] bool contains(const TemplateKey& key) const {
    return by_key_.contains(hash_of(key), [&](std::uint32_t at) { return all_[at].first == key; });
  }
  /// That of `key`, which is what make() says where none is known.
  template <class Make>
  std::uint32_t get(const TemplateKey& key, const Make& make) {
    const auto [at, fresh] = by_key_.try_add(hash_of(key), static_cast<std::uint32_t>(all_.size()),
                                             [&](std::uint32_t known) { return all_[known].first == key; });
    if (fresh) all_.emplace_back(key, make());
    return all_[at].second;
  }

 private:
  HashIndex by_key_;
  std::vector<std::pair<TemplateKey, std::uint32_t>> all_;
};

class Planner {
 public:
  Planner(const KernelFacts& kernel, const PlanOptions& options, bool several_files)
      : kernel_(kernel),
        options_(options),
        several_files_(several_files),
        values_(options.where.get(), options.table.get(), options.rows.get()) {
    plan_.scope = options.scope;
  }

  /// Makes room for so many sites in all, each unlike the others. Room that is not needed is never touched.
  void reserve(std::size_t sites) {
    plan_.probes.reserve(sites);
    plan_.sites.reserve(sites);
    plan_.args.reserve(sites);
    templates_.reserve(sites);
    specs_.reserve(sites);
  }

  void add(const ProbeFile& file);
  /// What was wanted beside the arguments is nowhere.
  [[nodiscard]] Result<void> check() const { return values_.check(); }
  [[nodiscard]] AttachPlan take() && {
    plan_.specs = std::move(specs_).take();
    plan_.filters = std::move(values_).take_filters();
    plan_.table = std::move(values_).take_table();
    return std::move(plan_);
  }
  Result<void> add(const KernelSelection& selection) {
    return plan::add_kernel(selection, kernel_.abilities, options_, plan_, specs_, values_);
  }

 private:
  /// The file being planned, and what was found out about its names and texts.
  struct Current {
    Index<PlannedFile> file;
    const ElfFile& elf;
    ArgDecoder decoder;
    HashIndex probes = {};  ///< by provider and name
    KnownTemplates templates = {};
    std::map<std::pair<Moment, ReturnBy>, Index<AttachGroup>> groups = {};
    std::map<std::tuple<const FunctionSignature*, Moment, const TextOptions*, const ValueOptions*>, std::uint32_t>
        function_templates = {};
    /// Of sites with a description and an argument text.
    std::map<std::pair<const SiteDescription*, std::string_view>, std::vector<plan::TextAndLength>> lengths = {};
  };
  /// Where a program will run, of whatever kind it is.
  struct Spot {
    PointName name;
    VirtAddr address;  ///< as linked, corrected: what addresses relative to it count from
    plan::Placement placement;
    Moment moment = Moment::entry;
    ReturnBy returns = ReturnBy::probe;
    const std::vector<FileOffset>* rets = nullptr;  ///< null: none
    bool at_entry = false;                          ///< FilePlace::at_entry
  };

  [[nodiscard]] std::string too_many_arguments() const {
    return fmt::format("the plan has {} different arguments without it: trace fewer probes", decoded_);
  }
  void add_sites(const ProbeFile& file, Current& current);
  void add_functions(const ProbeFile& file, Current& current);
  void add_function(const FunctionPoint& point, Current& current);
  Index<PlannedProbe> probe_of(const PointName& name, std::optional<Moment> function, Current& current);
  Index<AttachGroup> group_of(Moment moment, ReturnBy returns, Current& current);
  /// What is wanted as text at a site, what is known of such texts, and what is wanted beside the arguments.
  struct Texts {
    const TextOptions* wanted;
    std::span<const plan::TextAndLength> known;
    const ValueOptions* values;
    const SiteDescription* description = nullptr;
    [[nodiscard]] TemplateKey key(std::string_view text) const {
      return {wanted, values, known.data(), description, text};
    }
  };
  [[nodiscard]] PointName name_of(const Site& site, const Current& current) const;
  [[nodiscard]] PointName name_of(const FunctionPoint& point, const Current& current) const;
  [[nodiscard]] Texts texts_of(const Site& site, Current& current) const;
  const ArgTemplate& template_of(const Site& site, Current& current);
  const ArgTemplate& template_of(const FunctionPoint& point, Current& current);
  std::uint32_t make_template(std::string_view text, const Texts& texts, Current& current);
  std::uint32_t encode_template(Index<std::vector<Arg>> args, plan::ValueAdder::Filter filter, const Texts& texts,
                                Moment moment, Machine machine);
  Index<EncodedSpec> spec_of(const ArgTemplate& args, const Spot& spot, std::uint64_t user_cookie, Machine machine);
  void add_site(const Spot& spot, const ArgTemplate& args, Index<PlannedProbe> probe, Current& current);

  const KernelFacts& kernel_;
  const PlanOptions& options_;
  bool several_files_;
  AttachPlan plan_;
  plan::SpecTable specs_;
  plan::ValueAdder values_;
  std::vector<ArgTemplate> templates_;
  std::size_t decoded_ = 0;  ///< arguments of all templates
  std::size_t most_arguments_ = kFreeArguments;
  std::unordered_map<MachineText, std::uint32_t, KeyHash> shared_templates_;  ///< what means the same in any file
};

void Planner::add(const ProbeFile& file) {
  most_arguments_ += bytes_of(*file.elf) / kFileBytesPerArgument;
  Current current{plan_.files.add({.target = file.target, .elf = file.elf}), *file.elf, ArgDecoder(*file.elf)};
  add_sites(file, current);
  add_functions(file, current);
}

void Planner::add_sites(const ProbeFile& file, Current& current) {
  current.probes.reserve(file.sites.size());
  current.templates.reserve(file.sites.size());
  for (const Site& site : file.sites) {
    if (options_.stop.stop_requested()) return;
    const PointName name = name_of(site, current);
    const Index<PlannedProbe> probe = probe_of(name, std::nullopt, current);
    auto placement = plan::place(site, current.elf, kernel_, options_);
    if (placement && decoded_ >= most_arguments_ &&
        !current.templates.contains(texts_of(site, current).key(site.args_text))) {
      placement = tl::unexpected(too_many_arguments());
    }
    if (placement) {
      add_site({name, site.pc_adjusted, *placement}, template_of(site, current), probe, current);
    } else {
      plan_.skipped.push_back({.probe = probe, .pc = site.pc, .reason = std::move(placement.error())});
    }
  }
}

void Planner::add_functions(const ProbeFile& file, Current& current) {
  for (const FunctionPoint& point : file.functions) {
    if (options_.stop.stop_requested()) return;
    add_function(point, current);
  }
}

void Planner::add_function(const FunctionPoint& point, Current& current) {
  const PointName name = name_of(point, current);
  const Index<PlannedProbe> probe = probe_of(name, point.moment, current);
  plan_.probes[probe].distance = point.distance;
  std::string refusal = point.refused;
  if (refusal.empty() && point.moment != Moment::entry && !kernel_.abilities.perf_cookies)
    refusal = "returns are told apart by attach cookies, which this kernel does not have (Linux 5.15)";
  if (refusal.empty() && !point.signature) refusal = "nothing is known of its values";
  if (refusal.empty() && decoded_ >= most_arguments_) refusal = too_many_arguments();
  auto placement = refusal.empty() ? plan::place(site_of(point), current.elf, kernel_, options_)
                                   : tl::unexpected(std::move(refusal));
  if (!placement) {
    plan_.skipped.push_back({.probe = probe, .pc = point.pc, .reason = std::move(placement.error())});
    return;
  }
  const ReturnBy returns = point.moment == Moment::entry ? ReturnBy::probe : point.returns;
  // (What begins with its name in the cold part of a file, the function jumps to.)
  const bool at_entry = point.moment != Moment::exit && point.caller.empty() && !point.inlined && point.distance == 0 &&
                        !is_cold_half(point.name);
  add_site({name, point.pc, *placement, point.moment, returns, &point.rets, at_entry}, template_of(point, current),
           probe, current);
}

Index<PlannedProbe> Planner::probe_of(const PointName& name, std::optional<Moment> function, Current& current) {
  const auto [number, fresh] =
      current.probes.try_add(hash_of(name), plan_.probes.next().value, [&](std::uint32_t known) {
        const PlannedProbe& probe = plan_.probes[Index<PlannedProbe>(known)];
        return probe.provider == name.provider && probe.name == name.name;
      });
  if (fresh)
    plan_.probes.add({.file = current.file,
                      .provider = std::string(name.provider),
                      .name = std::string(name.name),
                      .function = function});
  return Index<PlannedProbe>(number);
}

/// One link serves all entries of a file, whether probes or functions.
Index<AttachGroup> Planner::group_of(Moment moment, ReturnBy returns, Current& current) {
  const auto [it, fresh] = current.groups.try_emplace({moment, returns}, plan_.groups.next());
  if (!fresh) return it->second;
  const bool session = moment == Moment::both && returns == ReturnBy::probe && kernel_.abilities.uprobe_session;
  AttachGroup& group = plan_.groups[plan_.groups.add()];
  if (session) group.backend = Backend::uprobe_session;
  group.moment = moment;
  group.session = session;
  group.returns = returns;
  group.of = current.file;
  return it->second;
}

PointName Planner::name_of(const Site& site, const Current& current) const {
  return {.provider = site.provider,
          .name = site.name,
          .module = {},
          .address = site.pc.value,
          .file = &plan_.files[current.file].target};
}

PointName Planner::name_of(const FunctionPoint& point, const Current& current) const {
  return {.provider = function_prefix(point.moment),
          .name = point.name,
          .module = {},
          .address = point.pc.value,
          .file = &plan_.files[current.file].target};
}

Planner::Texts Planner::texts_of(const Site& site, Current& current) const {
  const auto name = [&] { return name_of(site, current); };
  const TextOptions& wanted = plan::text_options(options_, name);
  const ValueOptions* values = &plan::value_options(options_, name);
  if (const SiteDescription* description = site.description.get()) {
    const auto [lengths, fresh] = current.lengths.try_emplace({description, site.args_text});
    if (fresh) lengths->second = resolve::described_lengths(*description, current.decoder.parse(site.args_text).size());
    return {&wanted, lengths->second, values, description};
  }
  const bool any = wanted.likely || !wanted.numbers.empty() || options_.where || options_.table;
  return {&wanted, any ? plan::known_lengths(site.provider, site.name) : std::span<const plan::TextAndLength>(),
          values};
}

const ArgTemplate& Planner::template_of(const Site& site, Current& current) {
  const Texts texts = texts_of(site, current);
  return templates_[current.templates.get(texts.key(site.args_text),
                                          [&] { return make_template(site.args_text, texts, current); })];
}

const ArgTemplate& Planner::template_of(const FunctionPoint& point, Current& current) {
  const auto name = [&] { return name_of(point, current); };
  const Texts texts{&plan::text_options(options_, name), {}, &plan::value_options(options_, name)};
  const auto [it, fresh] =
      current.function_templates.try_emplace({point.signature.get(), point.moment, texts.wanted, texts.values}, 0);
  if (fresh) {
    const Machine machine = current.decoder.machine();
    resolve::TypedArgs values = values_at(*point.signature, point.moment);
    auto filter = values_.add(values, point.signature->types.get(), machine, *texts.values);
    const auto at = plan_.args.add(std::move(values.args));
    it->second = encode_template(at, std::move(filter), texts, point.moment, machine);
  }
  return templates_[it->second];
}

std::uint32_t Planner::make_template(std::string_view text, const Texts& texts, Current& current) {
  const MachineText key(current.decoder.machine(), text);
  const bool alike =
      texts.known.empty() && !texts.description && texts.wanted == &options_.texts && texts.values->paths.empty();
  const bool shared = alike && several_files_;
  if (const auto same = shared_templates_.find(key); shared && same != shared_templates_.end()) return same->second;

  const std::vector<ParsedArg> parsed = current.decoder.parse(text);
  resolve::TypedArgs values{current.decoder.decode(parsed)};
  if (texts.description) describe(values.args, *texts.description);
  reject_surplus(values.args, parsed);
  auto filter = values_.add(values, nullptr, current.decoder.machine(), *texts.values, texts.known);
  const auto at = plan_.args.add(std::move(values.args));
  const std::uint32_t number = encode_template(at, std::move(filter), texts, Moment::entry, current.decoder.machine());
  if (shared && !depends_on_file(plan_.args[at])) shared_templates_.emplace(key, number);
  return number;
}

std::uint32_t Planner::encode_template(Index<std::vector<Arg>> at, plan::ValueAdder::Filter filter, const Texts& texts,
                                       Moment moment, Machine machine) {
  std::vector<Arg>& args = plan_.args[at];
  ArgTemplate made;
  made.args = at;
  made.filter = std::move(filter);
  made.result_comes_later = moment == Moment::both;
  decoded_ += args.size();
  made.encoded = plan::encode_args(args, machine, {.result_comes_later = made.result_comes_later},
                                   {*texts.wanted, texts.known, texts.description != nullptr}, plan_);
  made.encoded.user_cookie = options_.user_cookie;
  made.ip_relative = std::ranges::any_of(made.encoded.args, resolve::depends_on_breakpoint);
  if (!made.ip_relative && !options_.user_cookie_of) made.spec = specs_.intern(std::exchange(made.encoded, {}));
  templates_.push_back(std::move(made));
  return static_cast<std::uint32_t>(templates_.size() - 1);
}

/// The distances of a template are from address 0; those of the spec are from the breakpoint.
Index<EncodedSpec> Planner::spec_of(const ArgTemplate& args, const Spot& spot, std::uint64_t user_cookie,
                                    Machine machine) {
  if (!args.ip_relative && !options_.user_cookie_of) return args.spec;
  EncodedSpec spec = args.encoded;
  spec.user_cookie = user_cookie;
  if (!args.ip_relative) return specs_.intern(std::move(spec));
  const resolve::EncodeOptions encoding{.site = spot.address,
                                        .breakpoint = spot.address + spot.placement.shift,
                                        .result_comes_later = args.result_comes_later};
  for (std::size_t i = 0; i < spec.args.size(); ++i) {
    if (!resolve::depends_on_breakpoint(spec.args[i])) continue;
    spec.args[i].value = resolve::encode(plan_.args[args.args][i], arch::for_machine(machine), encoding).value;
  }
  return specs_.intern(std::move(spec));
}

void Planner::add_site(const Spot& spot, const ArgTemplate& args, Index<PlannedProbe> probe, Current& current) {
  if (!args.filter.refusal.empty()) {
    plan_.skipped.push_back({.probe = probe, .pc = VirtAddr(spot.name.address), .reason = args.filter.refusal});
    return;
  }
  const std::uint64_t user_cookie = plan::user_cookie(options_, spot.name);
  const Index<EncodedSpec> spec = spec_of(args, spot, user_cookie, current.decoder.machine());
  const FilePlace place{.file = current.file,
                        .pc = VirtAddr(spot.name.address),
                        .offset = spot.placement.offset,
                        .semaphore = spot.placement.semaphore,
                        .rets = spot.rets ? *spot.rets : std::vector<FileOffset>(),
                        .at_entry = spot.at_entry};
  plan_.groups[group_of(spot.moment, spot.returns, current)].sites.push_back(
      plan_.sites.add({.probe = probe, .point = place, .spec = spec, .args = args.args, .filter = args.filter.number}));
}

/// Text is asked for of an argument that none of the sites has.
Result<void> check_texts(const AttachPlan& plan, const TextOptions& texts) {
  std::size_t most = 0;
  for (const auto& args : plan.args) most = std::max(most, args.size());
  for (const std::uint8_t number : texts.numbers) {
    if (number >= most)
      return fail(ErrorKind::invalid_argument,
                  fmt::format("the text of arg{}: no such argument: {}", number,
                              most == 0 ? "the sites have none" : fmt::format("the last one is arg{}", most - 1)));
  }
  for (const std::string& name : texts.names) {
    if (!std::ranges::any_of(plan.args, [&](const auto& args) { return find_arg(args, name).has_value(); }))
      return fail(ErrorKind::invalid_argument, fmt::format("the text of {}: no such argument", name));
  }
  return {};
}

/// How long a hit took is asked, which is known of calls alone.
Result<void> check_durations(const AttachPlan& plan) {
  for (const AttachGroup& group : plan.groups) {
    if (group.moment == Moment::both) continue;
    for (const Index<PlannedSite> number : group.sites) {
      const PlannedSite& site = plan.sites[number];
      if (!site.filter || !plan.filters[*site.filter].asks(HitField::duration)) continue;
      return fail(ErrorKind::invalid_argument,
                  fmt::format("duration: only calls have one (ucall, kcall, ksession, fsession), and spans, from a hit "
                              "of one probe to one of another (A ~~ B); {} is neither",
                              full_name(plan, plan.probes[site.probe])));
    }
  }
  return {};
}

/// Words for what is the same at all hits of a site give way to that: questions in the kernel are of sites alike.
Result<void> put_in_words(AttachPlan& plan) {
  constexpr std::size_t kMostQuestions = 64;
  if (std::ranges::none_of(plan.filters, &TypedExpression::depends_on_site)) return {};
  const Table<TypedExpression> asked = std::exchange(plan.filters, {});
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, Index<TypedExpression>> known;
  for (PlannedSite& site : plan.sites) {
    if (!site.filter) continue;
    const std::uint64_t ip = pc_of(plan, site).value_or(VirtAddr()).value;
    const auto [it, fresh] = known.try_emplace({site.filter->value, site.probe.value, ip});
    if (fresh) {
      const PlannedProbe& probe = plan.probes[site.probe];
      const TypedExpression made = asked[*site.filter].at_site({probe.provider, probe.name, ip});
      it->second = plan.filters.next();
      for (const Index<TypedExpression> same : plan.filters.indices())
        if (plan.filters[same] == made) it->second = same;
      if (it->second == plan.filters.next()) plan.filters.add(made);
      if (plan.filters.size() > kMostQuestions)
        return fail(
            ErrorKind::limit,
            fmt::format("what is asked is another question at each site, by its name or ip, and each is a program "
                        "of its own: more than {} of them",
                        kMostQuestions));
    }
    site.filter = it->second;
  }
  return {};
}

/// Why a plan has no site, from the first of those it leaves out.
Error nothing_to_attach(const AttachPlan& plan) {
  const SkippedSite& first = plan.skipped.front();
  const PlannedProbe& probe = plan.probes[first.probe];
  const std::size_t all = plan.skipped.size();
  if (probe.file)
    return {ErrorKind::not_supported, fmt::format("none of {} sites can be attached; {}:{} at {:#x}: {}", all,
                                                  probe.provider, probe.name, first.pc->value, first.reason)};
  return {ErrorKind::not_supported,
          fmt::format("{}{}:{}: {}", all > 1 ? fmt::format("none of {} can be attached; ", all) : "", probe.provider,
                      probe.name, first.reason)};
}

}  // namespace

std::string full_name(const AttachPlan& plan, const PlannedProbe& probe) {
  if (probe.span)
    return fmt::format("{} ~~ {}", full_name(plan, plan.probes[probe.span->begin]),
                       full_name(plan, plan.probes[probe.span->end]));
  if (!probe.file) return fmt::format("{}:{}", probe.provider, probe.name);
  const TargetFile& file = plan.files[*probe.file].target;
  if (!probe.function) return probe_name(file, probe.provider, probe.name);
  return function_name(file, *probe.function, probe.name, probe.distance);
}

Machine machine_of(const AttachPlan& plan, const PlannedSite& site) {
  const auto* place = std::get_if<FilePlace>(&site.point);
  if (place == nullptr) return plan.kernel_machine;
  const PlannedFile& file = plan.files[place->file];
  return file.elf ? file.elf->machine() : file.machine.value_or(plan.kernel_machine);
}

const PlannedFunction* function_of(const AttachPlan& plan, const PlannedSite& site) noexcept {
  if (const auto* place = std::get_if<KernelFunctionPlace>(&site.point)) return &plan.functions[place->function];
  if (const auto* place = std::get_if<TracepointPlace>(&site.point)) return &plan.functions[place->tracepoint];
  return nullptr;
}

std::optional<VirtAddr> pc_of(const AttachPlan& plan, const PlannedSite& site) noexcept {
  if (const auto* place = std::get_if<FilePlace>(&site.point)) return place->pc;
  const std::uint64_t address = function_of(plan, site)->address;
  return address == 0 ? std::nullopt : std::optional(VirtAddr(address));
}

bool has_kernel_points(const AttachPlan& plan) noexcept {
  return std::ranges::any_of(plan.groups,
                             [](const AttachGroup& group) { return std::holds_alternative<KernelModule>(group.of); });
}

Result<AttachPlan> plan_attach(const Selection& selection, const KernelFacts& kernel, const PlanOptions& options) {
  std::size_t sites = selection.kernel.entries.size();
  for (const ProbeFile& file : selection.files) {
    if (file.elf == nullptr) {
      return fail(ErrorKind::invalid_argument, fmt::format("{}: not scanned", file.target.path.string()));
    }
    sites += file.sites.size() + file.functions.size();
  }
  if (sites == 0 && selection.kernel.refused.empty()) return fail(ErrorKind::not_found, "no site to attach to");
  if (sites > USDT_MAX_SITES) {
    return fail(ErrorKind::limit, fmt::format("{} sites: at most {} can be told apart", sites, USDT_MAX_SITES));
  }
  Planner planner(kernel, options, selection.files.size() > 1);
  planner.reserve(sites);
  for (const ProbeFile& file : selection.files) planner.add(file);
  if (auto added = planner.add(selection.kernel); !added) return fail(added.error());
  if (options.stop.stop_requested()) return fail(ErrorKind::stopped, "not planned to the end");
  const auto paths = planner.check();
  AttachPlan plan = std::move(planner).take();
  plan.owners = options.owners;
  if (!paths && (!plan.sites.empty() || options.where || options.table)) return fail(paths.error());
  if (auto sense = check_texts(plan, options.texts); !sense && !plan.sites.empty()) return fail(sense.error());
  if (plan.sites.empty()) return fail(nothing_to_attach(plan));
  if (auto put = put_in_words(plan); !put) return fail(put.error());
  if (auto sense = check_durations(plan); !sense) return fail(sense.error());
  if (plan.table && !options.rows && !has_kernel_points(plan) &&
      std::ranges::find(plan.table->keys, HitField::kstack, &TableColumn::field) != plan.table->keys.end())
    return fail(ErrorKind::invalid_argument,
                "kstack: nothing of what is traced is in the kernel, and a process at a probe has no stack there");
  return plan;
}

}  // namespace v1
}  // namespace usdt
