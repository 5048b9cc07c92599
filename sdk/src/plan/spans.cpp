// SPDX-License-Identifier: BSD-2-Clause
// Spans: two plans made one, with a site for each pair of theirs.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

#include "base/no_memory.hpp"
#include "base/try.hpp"
#include "expr/beginning.hpp"
#include "expr/row.hpp"
#include "expr/site_words.hpp"
#include "plan/find_value.hpp"
#include "plan/values.hpp"
#include "usdt/bpf/event.h"
#include "usdt/bpf/filter.h"
#include "usdt/plan.hpp"

namespace usdt {
inline namespace v1 {
namespace {

using plan::kEndPrefix;

constexpr std::size_t kMostPairs = 65536;
/// Numbers of arguments are below those of the facts of a beginning (filter.h).
constexpr std::size_t kMostArgs = USDT_BEGIN_FACTS;

tl::unexpected<Error> wrong(std::string why) { return fail(ErrorKind::invalid_argument, std::move(why)); }

bool any_has(const AttachPlan& plan, const ArgName& name) {
  return std::ranges::any_of(plan.args, [&](const auto& args) { return find_arg(args, name).has_value(); });
}

/// Shares out between the two ends what is wanted of a span: by what both have for arguments.
class Shares {
 public:
  Shares(const AttachPlan& begins, const AttachPlan& ends) : begins_(begins), ends_(ends) {}

  /// Options for both ends that want the same together.
  std::pair<PlanOptions, PlanOptions> of(const PlanOptions& options) const {
    std::pair<PlanOptions, PlanOptions> shares;
    for (PlanOptions* share : {&shares.first, &shares.second}) {
      share->scope = options.scope;
      share->user_cookie = options.user_cookie;
      share->user_cookie_of = options.user_cookie_of;
      share->kernel_backend = options.kernel_backend;
      share->allow_unsafe_nop5 = options.allow_unsafe_nop5;
      share->owners = options.owners;
      share->contexts = options.contexts;
      share->attributes = options.attributes;
      share->stop = options.stop;
      share->texts.typed = options.texts.typed;
      share->texts.likely = options.texts.likely;
      share->values.open = options.values.open;
      share->values.depth = options.values.depth;
    }
    share_texts(options.texts, shares);
    for (const ValuePath& path : options.values.paths) add(path, shares);
    if (options.where) share_question(*options.where, shares);
    if (!options.table) return shares;
    for (const Expression& key : options.table->keys) share_question(key, shares);
    if (options.table->value) share_question(*options.table->value, shares);
    return shares;
  }

 private:
  using Both = std::pair<PlanOptions, PlanOptions>;

  /// Whether it is the end's, and what it is called there.
  [[nodiscard]] std::pair<bool, ArgName> share_of(const ArgName& name) const {
    const auto* text = std::get_if<std::string>(&name);
    const auto path = text != nullptr ? parse_value_path(*text) : fail(ErrorKind::not_found, "");
    if (const auto own = path ? plan::own_path_of_end(*path) : std::nullopt)
      return {true, own->steps.empty() ? own->root : ArgName(own->text)};
    return {!any_has(begins_, name) && any_has(ends_, name), name};
  }

  void share_texts(const TextOptions& texts, Both& shares) const {
    const auto add = [&](const ArgName& name) {
      const auto [of_end, own] = share_of(name);
      TextOptions& share = (of_end ? shares.second : shares.first).texts;
      if (const auto* number = std::get_if<std::uint8_t>(&own))
        share.numbers.push_back(*number);
      else
        share.names.push_back(std::get<std::string>(own));
    };
    for (const std::uint8_t number : texts.numbers) add(number);
    for (const std::string& name : texts.names) add(name);
    for (const BoundedString& text : texts.bounded) {
      const auto [of_end, own] = share_of(text.text);
      (of_end ? shares.second : shares.first).texts.bounded.push_back({own, share_of(text.length).second});
    }
    for (const ArgName& name : texts.described) {
      const auto [of_end, own] = share_of(name);
      (of_end ? shares.second : shares.first).texts.described.push_back(own);
    }
  }

  /// Arguments themselves are there anyway. What is asked for as text is captured, too: so its length is known, where
  /// it has one.
  void share_question(const Expression& question, Both& shares) const {
    for (const ValuePath& path : question.values)
      if (!path.steps.empty()) add(path, shares);
    TextOptions asked;
    find_texts(question.root, question, asked);
    share_texts(asked, shares);
  }

  void find_texts(const ExpressionNode& node, const Expression& question, TextOptions& asked) const {
    const bool about_text = node.op == Operator::text_of ||
                            std::ranges::any_of(node.of, [](const auto& each) { return each.op == Operator::text; });
    for (const ExpressionNode& each : node.of) {
      if (!about_text || each.op != Operator::value) {
        find_texts(each, question, asked);
        continue;
      }
      const ValuePath& path = question.values[each.bits];
      if (TypedExpression::is_word(path) && !any_has(begins_, path.root) && !any_has(ends_, path.root)) continue;
      const ArgName name = path.steps.empty() ? path.root : ArgName(path.text);
      if (const auto* number = std::get_if<std::uint8_t>(&name))
        asked.numbers.push_back(*number);
      else
        asked.names.push_back(std::get<std::string>(name));
    }
  }

  void add(const ValuePath& path, Both& shares) const {
    const bool prefixed = path.text.starts_with(kEndPrefix) || plan::own_path_of_end(path);
    auto own = prefixed ? path_at_end(path) : path;
    if (!own) return;
    const bool of_end = prefixed || share_of(path.root).first;
    auto& paths = (of_end ? shares.second : shares.first).values.paths;
    if (std::ranges::find(paths, own->text, &ValuePath::text) != paths.end()) return;
    paths.push_back(std::move(*own));
  }

  /// Turns "end.PATH" into the path that the end itself has.
  static Result<ValuePath> path_at_end(const ValuePath& path) {
    using Kind = PathStep::Kind;
    const bool of_bytes = path.steps.size() > 1 && path.steps.front().kind == Kind::member &&
                          (path.steps.back().kind == Kind::bytes || path.steps.back().kind == Kind::address);
    const auto without_bytes = of_bytes ? std::nullopt : plan::own_path_of_end(path);
    if (without_bytes) return *without_bytes;
    auto text = std::string_view(path.text).substr(std::min(kEndPrefix.size(), path.text.size()));
    if (!of_bytes) return parse_value_path(text);
    // Behind "end" is the argument, and last a step that paths do not write.
    auto own = parse_value_path(path.steps.front().name);
    if (!own) return own;
    own->text = text;
    own->steps.assign(path.steps.begin() + 1, path.steps.end());
    std::string& length = own->steps.back().name;
    if (length.starts_with(kEndPrefix)) length.erase(0, kEndPrefix.size());
    return own;
  }

  const AttachPlan& begins_;
  const AttachPlan& ends_;
};

std::shared_ptr<const TableQuestion> pair_question(const std::vector<Expression>& by) {
  auto question = std::make_shared<TableQuestion>();
  question->keys = by;
  return question;
}

/// Keys of equal words are equal, whatever the sign.
bool pair_up(const PlannedTable& a, const PlannedTable& b) {
  return std::ranges::equal(a.keys, b.keys, [](const TableColumn& x, const TableColumn& y) {
    return (x.type == ExpressionType::text) == (y.type == ExpressionType::text) && x.size == y.size;
  });
}

/// The key that tells places apart.
using Where = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, int, std::string>;

std::set<Where> places_of(const AttachPlan& plan) {
  std::set<Where> places;
  for (const AttachGroup& group : plan.groups) {
    for (const Index<PlannedSite> number : group.sites) {
      const PlannedSite& site = plan.sites[number];
      const auto moment = static_cast<int>(group.moment);
      if (const auto* place = std::get_if<FilePlace>(&site.point)) {
        struct stat st {};
        static_cast<void>(::fstat(plan.files[place->file].elf->fd(), &st));
        places.emplace(st.st_dev, st.st_ino, place->offset.value, moment, std::string());
      } else {
        const PlannedFunction& function = *function_of(plan, site);
        const bool tracepoint = std::holds_alternative<TracepointPlace>(site.point);
        places.emplace(0, 0, tracepoint ? 1 : 0, moment, fmt::format("{}:{}", function.module, function.name));
      }
    }
  }
  return places;
}

Result<void> check_sides(const AttachPlan& begins, const AttachPlan& ends) {
  for (const AttachPlan* side : {&begins, &ends}) {
    for (const AttachGroup& group : side->groups)
      if (group.moment == Moment::both)
        return wrong(fmt::format("{}: a call is a span itself; take its entry or its return",
                                 full_name(*side, side->probes[side->sites[group.sites.front()].probe])));
  }
  const std::set<Where> first = places_of(begins);
  for (const Where& place : places_of(ends))
    if (first.contains(place)) return wrong("a point that both begins and ends spans");
  if (begins.sites.size() * ends.sites.size() > kMostPairs)
    return fail(ErrorKind::limit,
                fmt::format("spans from {} sites to {}: at most {} pairs can be told apart; name fewer",
                            begins.sites.size(), ends.sites.size(), kMostPairs));
  return {};
}

std::uint32_t texts_in(const EncodedSpec& spec) {
  return static_cast<std::uint32_t>(
      std::ranges::count_if(spec.args, [](const usdt_arg_spec& arg) { return arg.capture != USDT_CAPTURE_NONE; }));
}

/// Gives a plan of places its spans.
class SpanMaker {
 public:
  SpanMaker(AttachPlan& plan, std::uint32_t begins, const PlanOptions& options) : plan_(plan), options_(options) {
    spans_.begins = begins;
    spans_.ends = static_cast<std::uint32_t>(plan.sites.size()) - begins;
    spans_.specs = static_cast<std::uint32_t>(plan.specs.size());
  }

  Result<void> run() {
    TRY(lay_out());
    for (std::uint32_t begin = 0; begin < spans_.begins; ++begin)
      for (std::uint32_t end = 0; end < spans_.ends; ++end)
        add(Index<PlannedSite>(begin), Index<PlannedSite>(spans_.begins + end));
    plan_.spans = spans_;
    if (options_.table && options_.rows) plan_.table = *options_.rows;
    return ask();
  }

 private:
  [[nodiscard]] const EncodedSpec& spec_of(Index<PlannedSite> site) const {
    return plan_.specs[plan_.sites[site].spec];
  }
  [[nodiscard]] const std::vector<Arg>& args_of(Index<PlannedSite> site) const {
    return plan_.args[plan_.sites[site].args];
  }

  /// Places the end's arguments and texts in each record: behind those of any beginning.
  Result<void> lay_out() {
    std::uint32_t most_texts = 0, most_args = 0;
    for (const Index<PlannedSite> site : plan_.sites.indices()) {
      std::uint32_t& texts = site.value < spans_.begins ? spans_.first_text : most_texts;
      texts = std::max(texts, texts_in(spec_of(site)));
    }
    for (const Index<PlannedSite> site : plan_.sites.indices()) {
      const auto count = static_cast<std::uint32_t>(args_of(site).size());
      if (site.value < spans_.begins)  // with a place for each text that this beginning lacks
        spans_.first_arg = std::max(spans_.first_arg, count + spans_.first_text - texts_in(spec_of(site)));
      else
        most_args = std::max(most_args, count);
    }
    // Programs at both ends go through as many arguments as any site has.
    spans_.args = spans_.first_arg + std::max(plan_.max_args, most_args);
    plan_.string_slots = spans_.first_text + most_texts;
    if (spans_.args > kMostArgs)
      return fail(ErrorKind::limit, fmt::format("{} arguments of a beginning and {} of an end: at most {} together",
                                                spans_.first_arg, most_args, kMostArgs));
    return {};
  }

  void add(Index<PlannedSite> begin, Index<PlannedSite> end) {
    PlannedSite span = plan_.sites[begin];
    span.pair.reset();
    span.program.reset();
    span.span = {begin, end};
    span.probe = probe(span.probe, plan_.sites[end].probe);
    span.args = args(begin, end);
    span.spec = spec(begin, end);
    plan_.sites.add(std::move(span));
  }

  Index<PlannedProbe> probe(Index<PlannedProbe> begin, Index<PlannedProbe> end) {
    const auto [known, fresh] = probes_.try_emplace({begin, end}, plan_.probes.next());
    if (!fresh) return known->second;
    const PlannedProbe& last = plan_.probes[end];
    PlannedProbe made = plan_.probes[begin];
    made.name = fmt::format("{} ~~ {}:{}", made.name, last.provider, last.name);
    made.span = {begin, end};
    return plan_.probes.add(std::move(made));
  }

  Index<std::vector<Arg>> args(Index<PlannedSite> begin, Index<PlannedSite> end) {
    const auto [known, fresh] = args_.try_emplace({plan_.sites[begin].args, plan_.sites[end].args}, plan_.args.next());
    if (!fresh) return known->second;
    std::vector<Arg> both = args_of(begin);
    Arg nothing{.type = {}, .location = Unreadable{"no such argument"}, .source = {}};
    nothing.type.size = 0;
    nothing.derived = nothing.hidden = true;
    both.resize(spans_.first_arg, nothing);
    for (std::size_t n = 0; n < args_of(end).size(); ++n) both.push_back(end_arg(args_of(end)[n], n));
    return plan_.args.add(std::move(both));
  }

  [[nodiscard]] Arg end_arg(Arg arg, std::size_t n) const {
    Declaration declared = arg.declaration ? *arg.declaration : Declaration{};
    const bool result = std::exchange(arg.result, false) && !arg.derived;
    declared.name = fmt::format("{}{}", kEndPrefix,
                                result               ? "retval"
                                : arg.name().empty() ? fmt::format("arg{}", n)
                                                     : std::string(arg.name()));
    arg.declaration = std::make_shared<const Declaration>(std::move(declared));
    arg.of_end = true;
    const auto shift = [&](std::optional<std::uint8_t>& position) {
      if (position) position = static_cast<std::uint8_t>(*position + spans_.first_arg);
    };
    shift(arg.part_of);
    shift(arg.length);
    if (arg.counts) shift(arg.counts->first);
    if (arg.element) arg.element->length = static_cast<std::uint8_t>(arg.element->length + spans_.first_arg);
    if (arg.alternative) {
      AlternativeOf shifted = *arg.alternative;
      shifted.discriminant = static_cast<std::uint8_t>(shifted.discriminant + spans_.first_arg);
      arg.alternative = std::make_shared<const AlternativeOf>(std::move(shifted));
    }
    return arg;
  }

  /// Makes the spec that tells readers of records which arguments have texts.
  Index<EncodedSpec> spec(Index<PlannedSite> begin, Index<PlannedSite> end) {
    const auto key = std::tuple(plan_.sites[begin].spec, plan_.sites[end].spec);
    const auto [known, fresh] = specs_.try_emplace(key, plan_.specs.next());
    if (!fresh) return known->second;
    EncodedSpec both{.user_cookie = spec_of(begin).user_cookie};
    for (const usdt_arg_spec& arg : spec_of(begin).args) both.args.emplace_back().capture = arg.capture;
    for (std::uint32_t missing = spans_.first_text - texts_in(both); missing > 0; --missing)
      both.args.emplace_back().capture = USDT_CAPTURE_STRING;
    both.args.resize(spans_.first_arg);
    for (const usdt_arg_spec& arg : spec_of(end).args) both.args.emplace_back().capture = arg.capture;
    return plan_.specs.add(std::move(both));
  }

  /// The question about whole spans, which programs at their ends ask.
  Result<void> ask() {
    if (!options_.where && !options_.table) return {};
    const Expression question = options_.table ? expr::row_of(options_.where.get(), *options_.table) : *options_.where;
    std::map<std::pair<Index<std::vector<Arg>>, Index<EncodedSpec>>, Index<TypedExpression>> known;
    for (std::size_t n = plan_.places(); n < plan_.sites.size(); ++n) {
      const PlannedSite& span = plan_.sites[Index<PlannedSite>(n)];
      const auto [typed, fresh] = known.try_emplace({span.args, plan_.sites[span.span->begin].spec});
      if (fresh) {
        auto made = TRY(ask(question, span));
        typed->second = made;
      }
      std::optional<Index<TypedExpression>>& filter = plan_.sites[span.span->end].filter;
      if (filter && *filter != typed->second)
        return wrong("what is asked about is of another type at one beginning than at another");
      filter = typed->second;
    }
    if (plan_.table) plan::take_signs_of(plan_, *plan_.table);
    return {};
  }

  /// Returns the place of each argument's text in the record of a span that begins at `site`.
  [[nodiscard]] std::vector<std::optional<std::uint8_t>> kept_texts(Index<PlannedSite> site) const {
    std::vector<std::optional<std::uint8_t>> slots;
    std::uint8_t next = 0;
    for (const usdt_arg_spec& arg : spec_of(site).args)
      slots.push_back(arg.capture == USDT_CAPTURE_NONE ? std::nullopt : std::optional(next++));
    return slots;
  }

  Result<Index<TypedExpression>> ask(const Expression& question, const PlannedSite& span) {
    const std::vector<Arg>& args = plan_.args[span.args];
    auto typed = plan::typed_over(question, args);
    if (typed) typed = typed->with_kept_texts(kept_texts(span.span->begin));
    if (!typed) return fail(typed.error());
    for (const HitFieldInfo& each : kHitFields) {
      if (each.source == HitFieldSource::stack && typed->asks(each.field))
        return wrong(fmt::format("{}: it is no key of spans, which have two; their events have that of the beginning",
                                 each.word));
    }
    if (typed->args().size() + expr::beginning_facts(*typed).size() > TypedExpression::kMostValues)
      return wrong(fmt::format("more than {} different values of a span: {}", TypedExpression::kMostValues,
                               expr::words_of_beginning()));
    if (typed->depends_on_site() || std::ranges::any_of(kHitFields, [&](const HitFieldInfo& each) {
          return each.source == HitFieldSource::site && each.field != HitField::probe && typed->asks(each.field);
        }))
      return wrong("provider, name, ip and probe: of a span they cannot be asked, which has two; probe can be a key");
    if (reads_text_of_beginning(*typed, typed->root()))
      return wrong("a text of a span's beginning may have changed by its end, and was not kept: write str(...)");
    plan_.contexts |= expr::asks_for(*typed, HitFieldSource::context);
    if (options_.table) {
      auto table = TRY(expr::planned_kernel_table(*typed, args, *options_.table));
      if (!plan_.table)
        plan_.table = std::move(table);
      else if (const auto why = expr::why_other_rows(*plan_.table, table); !why.empty())
        return wrong(why);
      else if (!options_.rows)
        expr::join_signs(*plan_.table, table);
    }
    const auto same = std::ranges::find(plan_.filters, *typed);
    if (same != plan_.filters.end())
      return Index<TypedExpression>(static_cast<std::size_t>(same - plan_.filters.begin()));
    return plan_.filters.add(std::move(*typed));
  }

  [[nodiscard]] bool reads_text_of_beginning(const TypedExpression& question, const TypedExpression::Node& node) const {
    const auto kept = [&] {
      return std::ranges::find(question.kept_texts(), node.bits, &TypedExpression::KeptText::value) !=
             question.kept_texts().end();
    };
    if (node.op == Operator::text_of) return question.args()[node.bits] < spans_.first_arg && !kept();
    return std::ranges::any_of(node.of, [&](const auto& each) { return reads_text_of_beginning(question, each); });
  }

  AttachPlan& plan_;
  const PlanOptions& options_;
  PlannedSpans spans_;
  std::map<std::pair<Index<PlannedProbe>, Index<PlannedProbe>>, Index<PlannedProbe>> probes_;
  std::map<std::pair<Index<std::vector<Arg>>, Index<std::vector<Arg>>>, Index<std::vector<Arg>>> args_;
  std::map<std::tuple<Index<EncodedSpec>, Index<EncodedSpec>>, Index<EncodedSpec>> specs_;
};

/// Options for a look at what arguments there are.
PlanOptions plain(const PlanOptions& options) {
  PlanOptions plain;
  plain.scope = options.scope;
  plain.kernel_backend = options.kernel_backend;
  plain.allow_unsafe_nop5 = options.allow_unsafe_nop5;
  plain.stop = options.stop;
  return plain;
}

Result<AttachPlan> plan_side(const Selection& selection, const KernelFacts& kernel, PlanOptions options,
                             const std::vector<Expression>& by, std::string_view which) {
  options.table = pair_question(by);
  auto planned = plan_attach(selection, kernel, options);
  if (!planned) return fail(planned.error().within(which));
  return planned;
}

/// Names the stock programs of spans (bpf/trace.bpf.c).
void name_programs(AttachPlan& plan) {
  const auto begin = plan.programs.add("usdt_trace_span_begin");
  const auto end = plan.programs.add(!plan.table            ? "usdt_trace_span_end"
                                     : plan.table->extremes ? "usdt_trace_table_span_end_extremes"
                                                            : "usdt_trace_table_span_end");
  for (const Index<PlannedSite> site : Indices<PlannedSite>(Index<PlannedSite>(plan.places())))
    plan.sites[site].program = site.value < plan.spans->begins ? begin : end;
}

std::uint32_t bytes_of(const PlannedTable& keys) { return keys.keys.back().offset + keys.keys.back().size; }

}  // namespace

Result<AttachPlan> plan_spans(const Selection& begins, const Selection& ends, const KernelFacts& kernel,
                              const PlanOptions& options, const SpanPairing& pairing) try {
  SpanPairing by = pairing;
  if (by.begin.empty()) by.begin.push_back(*parse_expression("tid"));
  if (by.end.empty()) by.end = by.begin;
  const auto first = plan_attach(begins, kernel, plain(options));
  if (!first) return fail(first.error().within("where spans begin"));
  const auto last = plan_attach(ends, kernel, plain(options));
  if (!last) return fail(last.error().within("where spans end"));
  TRY(check_sides(*first, *last));

  auto [of_begin, of_end] = Shares(*first, *last).of(options);
  auto begin = plan_side(begins, kernel, std::move(of_begin), by.begin, "where spans begin");
  if (!begin) return begin;
  auto end = plan_side(ends, kernel, std::move(of_end), by.end, "where spans end");
  if (!end) return end;
  for (const AttachPlan* side : {&*begin, &*end})
    if (std::ranges::any_of(side->table->keys,
                            [](const auto& key) { return key.field && expr::is_site_word(*key.field); }))
      return wrong("what pairs the ends of spans is of hits, not of their probes");
  if (!pair_up(*begin->table, *end->table))
    return wrong("what pairs the ends of spans is not of the same types on both sides");
  const std::uint32_t key_bytes = bytes_of(*begin->table);
  if (key_bytes > sizeof(usdt_span_key::key))
    return fail(ErrorKind::limit,
                fmt::format("{} bytes of values pair the ends of spans: at most {} can; a number takes "
                            "8, comm 16, a text more",
                            key_bytes, sizeof(usdt_span_key::key)));
  const auto count = static_cast<std::uint32_t>(begin->sites.size());
  begin->table.reset();
  end->table.reset();
  auto whole = append_plan(std::move(*begin), std::move(*end));
  if (!whole) return whole;
  for (PlannedSite& site : whole->sites) site.pair = std::exchange(site.filter, std::nullopt);
  TRY(SpanMaker(*whole, count, options).run());
  whole->spans->key_bytes = key_bytes;
  name_programs(*whole);
  return whole;
} catch (const std::bad_alloc&) {
  return fail(no_memory());
}

}  // namespace v1
}  // namespace usdt
