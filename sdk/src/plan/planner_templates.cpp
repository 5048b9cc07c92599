// SPDX-License-Identifier: BSD-2-Clause
// What sites with the same arguments share, found out once: how each argument is read.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "arch/arch.hpp"
#include "plan/encode_args.hpp"
#include "plan/planner.hpp"
#include "resolve/encode.hpp"
#include "resolve/prototype.hpp"

namespace usdt::plan {
namespace {

/// The arguments' numbers fit a byte of the spec; what is beyond keeps its place and says why it has no value.
void reject_surplus(std::vector<Arg>& args, std::span<const ParsedArg> parsed) {
  for (std::size_t i = USDT_MAX_ARGS; i < args.size(); ++i) {
    if (args[i].readable())
      args[i].location =
          Unreadable{fmt::format("argument {}: only the first {} can be read", i, USDT_MAX_ARGS), parsed[i].column};
  }
}

/// Returns the values that a program has of a function at `moment`, the return value last. At the return, the places of
/// the arguments have other values.
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

/// Whether the file, and not the text alone, decided how to read an argument.
bool depends_on_file(const std::vector<Arg>& args) {
  return std::ranges::any_of(args, [](const Arg& arg) { return !arg.needs.empty(); });
}

}  // namespace

Planner::Texts Planner::texts_of(const Site& site, Current& current) const {
  const auto name = [&] { return name_of(site, current); };
  const TextOptions& wanted = text_options(options_, name);
  const ValueOptions* values = &value_options(options_, name);
  if (const SiteDescription* description = site.description.get()) {
    const auto [lengths, fresh] = current.lengths.try_emplace({description, site.args_text});
    if (fresh) lengths->second = resolve::described_lengths(*description, current.decoder.parse(site.args_text).size());
    return {&wanted, lengths->second, values, description};
  }
  const bool any = wanted.likely || !wanted.numbers.empty() || options_.where || options_.table;
  return {&wanted, any ? known_lengths(site.provider, site.name) : std::span<const TextAndLength>(), values};
}

const ArgTemplate& Planner::template_of(const Site& site, Current& current) {
  const Texts texts = texts_of(site, current);
  return templates_[current.templates.get(texts.key(site.args_text),
                                          [&] { return make_template(site.args_text, texts, current); })];
}

const ArgTemplate& Planner::template_of(const FunctionPoint& point, Current& current) {
  const auto name = [&] { return name_of(point, current); };
  const Texts texts{&text_options(options_, name), {}, &value_options(options_, name)};
  const auto [it, fresh] =
      current.function_templates.try_emplace({point.signature.get(), point.moment, texts.wanted, texts.values}, 0);
  if (fresh) {
    const Machine machine = current.decoder.machine();
    resolve::TypedArgs values = values_at(*point.signature, point.moment);
    auto filter = values_.add(values, point.signature->types.get(), machine, *texts.values, *texts.wanted);
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
  auto filter = values_.add(values, nullptr, current.decoder.machine(), *texts.values, *texts.wanted, texts.known);
  const auto at = plan_.args.add(std::move(values.args));
  const std::uint32_t number = encode_template(at, std::move(filter), texts, Moment::entry, current.decoder.machine());
  if (shared && !depends_on_file(plan_.args[at])) shared_templates_.emplace(key, number);
  return number;
}

std::uint32_t Planner::encode_template(Index<std::vector<Arg>> at, ValueAdder::Filter filter, const Texts& texts,
                                       Moment moment, Machine machine) {
  std::vector<Arg>& args = plan_.args[at];
  ArgTemplate made;
  made.args = at;
  made.filter = std::move(filter);
  made.result_comes_later = moment == Moment::both;
  decoded_ += args.size();
  const auto asked =
      moment == Moment::both ? values_.texts_of_beginning(made.filter, args) : std::vector<expr::AskedText>();
  made.encoded = encode_args(args, machine, {.result_comes_later = made.result_comes_later},
                             {*texts.wanted, texts.known, texts.description != nullptr, asked}, plan_);
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

}  // namespace usdt::plan
