// SPDX-License-Identifier: BSD-2-Clause
// A plan that anybody may have written: each index leads somewhere, each number is one that a planner could have
// written, and nothing is larger than limits.hpp says.
#include <algorithm>
#include <cstring>

#include "arch/arch.hpp"
#include "broker/expressions.hpp"
#include "broker/limits.hpp"
#include "broker/messages.hpp"
#include "usdt/bpf/event.h"
#include "usdt/bpf/filter.h"

namespace usdt::broker {
namespace {

/// More registers than any machine has.
constexpr std::uint8_t kMostRegister = 63;
constexpr std::uint8_t kMostShift = 63;
/// As plan_spans() has it: larger numbers stand for what is known where a span begins.
constexpr std::uint32_t kMostArgsOfSpan = USDT_BEGIN_FACTS - 1;
/// Programs that a plan names.
constexpr std::size_t kMostNames = 2;

class PlanReader {
 public:
  PlanReader(ByteReader& in, AttachPlan& plan) : in_(in), plan_(plan) {}

  [[nodiscard]] bool read() {
    read_scope();
    repeat(kMostFiles, [&] { read_file(); });
    repeat(kMostSites, [&] { read_probe(); });
    repeat(kMostSites, [&] { read_spec(); });
    if (in_.below(2) == 1) read_spans();
    read_sizes();
    repeat(kMostFilters, [&] { read_filter(); });
    repeat(kMostNames, [&] { read_program(); });
    repeat(kMostSites, [&] { read_group(); });
    repeat(kMostSites, [&] { read_site(); });
    plan_.args.add({});  // which no site says anything about
    return !in_.failed() && !plan_.sites.empty() && (!plan_.spans || plan_.places() == plan_.sites.size());
  }

 private:
  template <class Function>
  void repeat(std::size_t most, const Function& read_one) {
    for (std::uint64_t left = in_.up_to(most); left > 0 && !in_.failed(); --left) read_one();
  }

  void read_scope() {
    std::vector<pid_t> pids;
    repeat(USDT_MAX_PROCESSES, [&] { pids.push_back(static_cast<pid_t>(in_.up_to(INT32_MAX))); });
    if (in_.failed() || pids.empty()) return;
    if (auto scope = Processes::of(std::move(pids)))
      plan_.scope = std::move(*scope);
    else
      in_.fail();
  }

  void read_file() {
    PlannedFile file;
    const arch::Arch* arch = arch::for_name(in_.text());
    if (arch == nullptr) return in_.fail();
    file.machine = arch->machine;
    plan_.files.add(std::move(file));
  }

  void read_probe() {
    PlannedProbe probe;
    probe.file = Index<PlannedFile>(in_.below(plan_.files.size()));
    for (std::string* text : {&probe.provider, &probe.name}) {
      *text = in_.text();
      if (text->size() > kMostProbeName) return in_.fail();
    }
    const std::uint64_t moment = in_.below(static_cast<std::size_t>(Moment::both) + 1);
    if (moment != 0) probe.function = static_cast<Moment>(moment);
    probe.distance = in_.varint();
    plan_.probes.add(std::move(probe));
  }

  std::vector<usdt_arg_spec> read_entries(std::size_t most) {
    std::vector<usdt_arg_spec> entries(in_.up_to(most));
    const ByteSpan bytes = in_.raw(entries.size() * sizeof(usdt_arg_spec));
    if (in_.failed()) return {};
    if (!bytes.empty()) std::memcpy(entries.data(), bytes.data(), bytes.size());
    return entries;
  }

  static bool is_register(std::uint8_t number) { return number <= kMostRegister || number == USDT_REG_NONE; }

  /// `steps`: of its spec.
  static bool is_argument(const usdt_arg_spec& arg, std::size_t steps) {
    const bool has_steps = (arg.kind & USDT_ARG_HAS_STEPS) != 0;
    const std::uint8_t kind = USDT_ARG_KIND(arg.kind);
    if (kind > USDT_ARG_ADDR || (kind == USDT_ARG_UNREADABLE && has_steps)) return false;
    if (has_steps && arg.window >= steps) return false;
    return arg.size <= 8 && is_register(arg.reg) && is_register(arg.index) && arg.shift <= kMostShift;
  }

  static bool is_step(const usdt_arg_spec& step) {
    return step.kind == USDT_ARG_STEP && step.size <= 8 && step.reg <= USDT_MAX_STEPS && step.shift <= kMostShift &&
           step.index <= 64;
  }

  void read_spec() {
    EncodedSpec spec;
    spec.user_cookie = in_.varint();
    spec.args = read_entries(USDT_MAX_ARGS);
    spec.steps = read_entries(USDT_MAX_ARGS);
    const auto is_arg = [&](const usdt_arg_spec& arg) { return is_argument(arg, spec.steps.size()); };
    if (!std::ranges::all_of(spec.args, is_arg) || !std::ranges::all_of(spec.steps, is_step)) return in_.fail();
    plan_.specs.add(std::move(spec));
  }

  void read_spans() {
    PlannedSpans& spans = plan_.spans.emplace();
    spans.begins = static_cast<std::uint32_t>(in_.up_to(kMostSites));
    spans.ends = static_cast<std::uint32_t>(in_.up_to(kMostSites));
    if (spans.begins == 0 || spans.ends == 0) return in_.fail();
    spans.specs = static_cast<std::uint32_t>(plan_.specs.size());
    spans.args = static_cast<std::uint32_t>(in_.up_to(kMostArgsOfSpan));
    spans.first_arg = static_cast<std::uint32_t>(in_.up_to(spans.args));
    spans.first_text = static_cast<std::uint32_t>(in_.up_to(USDT_MAX_ARGS));
    spans.key_bytes = static_cast<std::uint32_t>(in_.up_to(sizeof(usdt_span_key::key)));
  }

  void read_program() {
    const std::string_view name = in_.text();
    if (name.size() > kMostName) return in_.fail();
    plan_.programs.add(std::string(name));
  }

  void read_sizes() {
    plan_.max_args = static_cast<std::uint32_t>(in_.up_to(USDT_MAX_ARGS));
    plan_.max_entries = static_cast<std::uint32_t>(in_.up_to(USDT_LINK_ENTRIES));
    plan_.max_steps = static_cast<std::uint32_t>(in_.up_to(USDT_MAX_STEPS));
    plan_.string_slots = static_cast<std::uint32_t>(in_.up_to(plan_.spans ? 2 * USDT_MAX_ARGS : USDT_MAX_ARGS));
    for (const EncodedSpec& spec : plan_.specs)
      if (spec.args.size() > plan_.max_args || spec.args.size() + spec.steps.size() > plan_.max_entries)
        return in_.fail();
  }

  void read_filter() {
    TypedExpression filter;
    // What is asked of spans is about the arguments of both ends.
    const std::uint32_t arguments = plan_.spans ? std::max(plan_.max_args, plan_.spans->args) : plan_.max_args;
    if (!broker::read(in_, filter, arguments)) return in_.fail();
    plan_.filters.add(std::move(filter));
  }

  void read_group() {
    AttachGroup& group = plan_.groups[plan_.groups.add()];
    group.backend = static_cast<Backend>(in_.below(static_cast<std::size_t>(Backend::uprobe_session) + 1));
    group.moment = static_cast<Moment>(in_.below(static_cast<std::size_t>(Moment::both) + 1));
    group.session = in_.below(2) == 1;
    group.returns = static_cast<ReturnBy>(in_.below(static_cast<std::size_t>(ReturnBy::any_instruction) + 1));
    group.of = Index<PlannedFile>(in_.below(plan_.files.size()));
    if (group.moment < Moment::entry || group.backend == Backend::perf_uprobe ||
        group.backend == Backend::perf_uretprobe)
      in_.fail();
  }

  void read_site() {
    PlannedSite site;
    site.probe = Index<PlannedProbe>(in_.below(plan_.probes.size()));
    const Index<AttachGroup> number(in_.below(plan_.groups.size()));
    site.spec = Index<EncodedSpec>(in_.below(plan_.specs.size()));
    for (std::optional<Index<TypedExpression>>* question : {&site.filter, &site.pair})
      if (const std::uint32_t filter = in_.below(plan_.filters.size() + 1); filter > 0)
        *question = Index<TypedExpression>(filter - 1);
    if (const std::uint32_t program = in_.below(plan_.programs.size() + 1); program > 0)
      site.program = Index<std::string>(program - 1);
    FilePlace place;
    place.offset = FileOffset(in_.up_to(INT64_MAX));
    place.semaphore = in_.up_to(INT64_MAX);
    place.at_entry = in_.below(2) == 1;
    repeat(kMostRets, [&] { place.rets.emplace_back(in_.up_to(INT64_MAX)); });
    places_ += 1 + place.rets.size();
    if (in_.failed() || places_ > kMostPlaces) return in_.fail();
    AttachGroup& group = plan_.groups[number];
    place.file = std::get<Index<PlannedFile>>(group.of);
    const bool by_rets = group.moment != Moment::entry && group.returns != ReturnBy::probe;
    if (plan_.probes[site.probe].file != place.file || (!by_rets && !place.rets.empty())) return in_.fail();
    site.point = std::move(place);
    group.sites.push_back(plan_.sites.add(std::move(site)));
  }

  ByteReader& in_;
  AttachPlan& plan_;
  std::size_t places_ = 0;
};

}  // namespace

bool read_plan(ByteReader& in, AttachPlan& plan) { return PlanReader(in, plan).read(); }

}  // namespace usdt::broker
