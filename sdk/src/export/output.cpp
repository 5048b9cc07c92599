// SPDX-License-Identifier: BSD-2-Clause
#include "export/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <limits>
#include <utility>

#include "event/event_question.hpp"
#include "export/meaning.hpp"
#include "expr/computed.hpp"
#include "parsers/declared.hpp"
#include "plan/find_value.hpp"

namespace usdt::exports {

bool looks_like_address(const Arg& arg, std::uint64_t value) {
  if (!arg.c_type().empty()) return arg.type.kind == TypeKind::pointer || arg.type.kind == TypeKind::text;
  const bool of_process = value >= 0x5500'0000'0000 && value < 0x8000'0000'0000;
  return arg.type.size == 8 && (of_process || value >= 0xffff'8000'0000'0000);
}

namespace {

/// A number that nobody passes: no address, whatever its size.
Arg number_like(const TypedExpression& computed) {
  Arg arg;
  arg.type = {.size = 8, .is_signed = computed.root().type == ExpressionType::signed_integer};
  arg.declaration = std::make_shared<const Declaration>(
      Declaration{.name = {}, .type = arg.type.is_signed ? "long" : "unsigned long", .enumerators = {}});
  return arg;
}

/// Finds the reason why an expression has no answer about an event, in the order in which it is computed.
class NoAnswer {
 public:
  NoAnswer(const TypedExpression& computed, const Event& event) : computed_(computed), event_(event), facts_(event) {}

  [[nodiscard]] std::string_view why(const TypedExpression::Node& node) const {
    if (node.op == Operator::value) return why_no_value(node.bits);
    if (node.op == Operator::field || node.op == Operator::attribute) return "it was not recorded";
    for (const TypedExpression::Node* each : needed(node))
      if (!answer(*each)) return why(*each);
    return "a division by 0";
  }

 private:
  [[nodiscard]] std::optional<std::uint64_t> answer(const TypedExpression::Node& node) const {
    return evaluate(computed_, node, facts_);
  }
  /// The operands that matter: of "?:" the chosen one.
  [[nodiscard]] std::vector<const TypedExpression::Node*> needed(const TypedExpression::Node& node) const {
    std::vector<const TypedExpression::Node*> all;
    for (const TypedExpression::Node& each : node.of) all.push_back(&each);
    if (node.op != Operator::conditional) return all;
    const auto condition = answer(node.of[0]);
    return {condition ? &node.of[*condition != 0 ? 1 : 2] : &node.of[0]};
  }
  [[nodiscard]] std::string_view why_no_value(std::uint64_t number) const {
    const Value value = event_.value(computed_.args()[number]);
    const auto* error = std::get_if<ArgError>(&value);
    return error != nullptr ? error->reason : std::string_view("it was not recorded");
  }

  const TypedExpression& computed_;
  const Event& event_;
  event::EventFacts facts_;
};

}  // namespace

std::optional<Columns::Computed> Columns::computed(const Event& event, std::size_t item) const {
  const Column& column = this->column(event, item);
  if (!column.called || column.position) return std::nullopt;
  if (!column.computed) return Computed{*column.called, ArgError{column.refusal}};
  if (column.computed->asks(HitField::duration) && event.duration() == 0)
    return Computed{*column.called, ArgError{"duration: only calls and spans have one"}};
  const auto number = evaluate(*column.computed, event::EventFacts(event));
  if (!number)
    return Computed{*column.called, ArgError{NoAnswer(*column.computed, event).why(column.computed->root())}};
  if (column.called->type.is_signed) return Computed{*column.called, static_cast<std::int64_t>(*number)};
  return Computed{*column.called, *number};
}

Columns::Columns(const AttachPlan& plan, const Printed& printed)
    : printed_(&printed), columns_(printed.lists.size(), std::vector<OfSite>(plan.args.size())) {
  for (const PlannedSite& site : plan.sites) {
    OfSite& row = columns_[printed.of_probe[site.probe.value]][site.args.value];
    if (!row.empty()) continue;
    for (const PrintItem& item : printed.of(site)) row.push_back(column_of(item, plan.args[site.args]));
  }
}

Columns::Column Columns::column_of(const PrintItem& item, const std::vector<Arg>& args) {
  Column column{.position = position_of(item, args)};
  Arg arg;
  if (item.computed) {
    auto typed = plan::typed_over(*item.computed, args);
    if (!typed) {
      column.refusal = typed.error().message;
    } else if (const auto why = expr::why_no_number(*typed); !why.empty()) {
      column.refusal = why;
    } else {
      arg = number_like(*typed);
      column.computed = std::move(*typed);
    }
  } else if (column.position) {
    arg = args[*column.position];
  }
  const bool has_meaning = item.called && parsers::has_meaning(*item.called);
  if (item.computed || (column.position && has_meaning))
    column.called = std::make_shared<const Arg>(has_meaning ? called_so(arg, *item.called) : std::move(arg));
  return column;
}

std::string name_of_argument(const Arg& arg, std::size_t n) {
  if (arg.result) return "retval";
  return arg.name().empty() ? fmt::format("arg{}", n) : std::string(arg.name());
}

std::string name_among_ends(const Arg& arg, std::size_t n) {
  std::string name = name_of_argument(arg, n);
  if (arg.of_end && !arg.result && !name.starts_with("end.")) name.insert(0, "end.");
  return name;
}

bool has_members(const Arg& arg) { return arg.type.kind == TypeKind::structure || arg.type.kind == TypeKind::array; }

namespace {

/// As the types of texts in memory are.
bool is_character(std::string_view type) {
  const std::size_t space = type.rfind(' ');
  const std::string_view last = type.substr(space == type.npos ? 0 : space + 1);
  return type.find("signed") == type.npos && (last == "char" || last == "char8_t");
}

}  // namespace

std::optional<std::string> text_of_elements(const Event& event, std::size_t array) {
  if (event.arg_info(array).type.kind != TypeKind::array || event.arg_info(array).is_list()) return std::nullopt;
  std::optional<std::string> text;
  for (std::size_t n = 0; n < event.arg_count(); ++n) {
    const Arg& arg = event.arg_info(n);
    if (arg.part_of != array) continue;
    const Value value = event.value(n);
    const auto* character = std::get_if<std::int64_t>(&value);
    const auto* natural = std::get_if<std::uint64_t>(&value);  // of machines whose characters have no sign
    if (arg.type.size != 1 || !is_character(arg.c_type()) || (character == nullptr && natural == nullptr))
      return std::nullopt;
    if (!text) text.emplace();
    text->push_back(static_cast<char>(character != nullptr ? *character : static_cast<std::int64_t>(*natural)));
  }
  if (text) text->resize(std::min(text->find('\0'), text->size()));
  return text;
}

Result<std::uint64_t> length_of(const Event& event, std::size_t list) {
  const Value length = event.value(*event.arg_info(list).length);
  if (const auto* error = std::get_if<ArgError>(&length)) return fail(ErrorKind::not_found, std::string(error->reason));
  if (const auto* whole = std::get_if<std::int64_t>(&length)) return static_cast<std::uint64_t>(*whole);
  return std::get<std::uint64_t>(length);
}

namespace {

/// Whether the discriminant of what is one of several alternatives says that it is another one, or is itself in one
/// that is not there.
bool is_another(const Event& event, std::size_t n) {
  for (std::size_t step = 0; step < event.arg_count(); ++step) {
    const auto& alternative = event.arg_info(n).alternative;
    if (!alternative) return false;
    n = alternative->discriminant;
    const Value told = event.value(n);
    const auto* bits = std::get_if<std::uint64_t>(&told);
    if (bits != nullptr && !alternative->values.has(*bits)) return true;
  }
  return false;
}

}  // namespace

bool is_there(const Event& event, std::size_t n) {
  if (is_another(event, n)) return false;
  const auto& element = event.arg_info(n).element;
  if (!element) return true;
  const Value length = event.value(element->length);
  if (const auto* whole = std::get_if<std::int64_t>(&length))
    return static_cast<std::uint64_t>(*whole) > element->index;
  const auto* natural = std::get_if<std::uint64_t>(&length);
  return natural != nullptr && *natural > element->index;
}

bool is_no_alternative(const Event& event, std::size_t whole) {
  std::size_t count = 0;
  for (std::size_t n = 0; n < event.arg_count(); ++n) {
    const Arg& arg = event.arg_info(n);
    if (arg.part_of != whole || arg.hidden) continue;
    if (!arg.alternative || is_there(event, n)) return false;
    const std::uint8_t told = arg.alternative->discriminant;
    const Value index = event.value(told);
    const auto* bits = std::get_if<std::uint64_t>(&index);
    // The std::variant was left without a value by an exception (variant_npos).
    const std::uint32_t size = event.arg_info(told).type.size;
    if (bits != nullptr && size >= 1 && size <= 8 && *bits == UINT64_MAX >> (64 - 8 * size)) return false;
    ++count;
  }
  return count > 1;  // one that is not there: a std::optional
}

std::string_view why_undecided(const Event& event, std::size_t n) {
  const auto& alternative = event.arg_info(n).alternative;
  if (!alternative) return {};
  const Value told = event.value(alternative->discriminant);
  const auto* error = std::get_if<ArgError>(&told);
  return error == nullptr ? std::string_view() : error->reason;
}

namespace {

/// (Machines of 32 bits have no type of the compiler's for it.)
std::string decimal_of_halves(std::uint64_t low, std::uint64_t high, bool negative) {
  using Natural = boost::multiprecision::uint128_t;
  const Natural bits = Natural(high) << 64 | low;
  return negative ? "-" + Natural(~bits + 1).str() : bits.str();
}

/// A number in the format of x86's long double, or of IEEE 754 binary128, of which long double may have fewer bits.
long double wide_real(std::uint64_t low, std::uint64_t high, bool x87) {
  constexpr std::uint64_t most = 0x7fff;
  constexpr int bias = 16383;
  const std::uint64_t sign_and_exponent = x87 ? high : high >> 48;
  const std::uint64_t exponent = sign_and_exponent & most;
  const std::uint64_t upper = high & 0xffff'ffff'ffff;  // of the fraction of binary128
  const bool is_finite = exponent != most;
  const bool has_fraction = x87 ? low << 1 != 0 : (upper | low) != 0;
  long double real = std::numeric_limits<long double>::infinity();
  if (!is_finite && has_fraction) real = std::numeric_limits<long double>::quiet_NaN();
  const int scale = static_cast<int>(std::max<std::uint64_t>(exponent, 1)) - bias;
  if (is_finite && x87) real = std::ldexp(static_cast<long double>(low), scale - 63);
  if (is_finite && !x87) {
    const std::uint64_t head = exponent == 0 ? upper : upper | std::uint64_t{1} << 48;
    real =
        std::ldexp(static_cast<long double>(head), scale - 48) + std::ldexp(static_cast<long double>(low), scale - 112);
  }
  return (sign_and_exponent >> 15 & 1) != 0 ? -real : real;
}

}  // namespace

std::optional<WideNumber> wide_number(const Event& event, std::size_t n, bool hex) {
  const Arg& arg = event.arg_info(n);
  const bool integer = arg.type.kind == TypeKind::integer;
  if (arg.type.size <= 8 || (!integer && !arg.type.is_float())) return std::nullopt;
  std::array<std::uint64_t, 2> halves{};  // low, high
  std::size_t found = 0;
  std::uint32_t high_size = 0;
  bool negative = false;
  for (std::size_t part = n + 1; part < event.arg_count(); ++part) {
    const Arg& half = event.arg_info(part);
    if (half.part_of != n) continue;
    const Value value = event.value(part);
    if (const auto* error = std::get_if<ArgError>(&value)) return WideNumber{std::string(error->reason), true};
    const bool high = event.label(part) == "high";
    if (high) high_size = half.type.size;
    negative = negative || (std::holds_alternative<std::int64_t>(value) && std::get<std::int64_t>(value) < 0);
    halves[high ? 1 : 0] = std::holds_alternative<std::uint64_t>(value)
                               ? std::get<std::uint64_t>(value)
                               : static_cast<std::uint64_t>(std::get<std::int64_t>(value));
    ++found;
  }
  if (found != halves.size()) return std::nullopt;
  if (!integer) return WideNumber{fmt::format("{:.18g}", wide_real(halves[0], halves[1], high_size == 2)), false};
  if (hex && halves[1] != 0) return WideNumber{fmt::format("{:#x}{:016x}", halves[1], halves[0]), false};
  if (hex) return WideNumber{fmt::format("{:#x}", halves[0]), false};
  return WideNumber{decimal_of_halves(halves[0], halves[1], negative), false};
}

std::string more_text(std::uint64_t number) { return fmt::format("{} more", number); }

bool is_to_come(const AttachPlan& plan, const View& view, const Arg& arg) {
  return view.in_flight && arg.result && !plan.spans;
}

std::optional<Text> unasked_text(const AttachPlan& plan, const Event& event, std::size_t n, bool likely) {
  const auto& args = plan.specs[event.site().spec].args;
  if (n >= args.size() || args[n].capture == USDT_CAPTURE_NONE) return std::nullopt;
  if (args[n].capture == USDT_CAPTURE_LIKELY && !likely) return std::nullopt;
  auto text = event.text(n);
  return text ? std::optional(*text) : std::nullopt;
}

std::optional<Text> described_text(const AttachPlan& plan, const Event& event, std::size_t n) {
  const bool site = event.probe().file && !event.probe().function;
  return site && event.arg_info(n).type.kind == TypeKind::text ? unasked_text(plan, event, n, false) : std::nullopt;
}

std::vector<std::string> full_names(const AttachPlan& plan) {
  std::vector<std::string> names;
  for (const PlannedProbe& probe : plan.probes) names.push_back(full_name(plan, probe));
  return names;
}

ShortNames::ShortNames(const AttachPlan& plan, std::size_t probes) : plan_(&plan), names_(full_names(plan)) {
  know(probes);
}

namespace {

/// Whether the name of a USDT probe, pasted, would mean a function: its provider is called as a prefix is.
bool means_something_else(const std::string& name) {
  const auto pattern = parse_pattern(name);
  return pattern && !std::holds_alternative<ProbePattern>(*pattern);
}

}  // namespace

void ShortNames::know(std::size_t probes) {
  for (; known_ < std::min(probes, names_.size()); ++known_) {
    const PlannedProbe& probe = plan_->probes[Index<PlannedProbe>(known_)];
    std::string name = fmt::format("{}:{}", probe.provider, probe.name);
    if (probe.file && !probe.function && means_something_else(name)) name = full_name(*plan_, probe);
    const auto [first, is_new] = first_of_.try_emplace(name, known_);
    if (is_new)
      names_[known_] = std::move(name);
    else
      names_[first->second] = full_name(*plan_, plan_->probes[Index<PlannedProbe>(first->second)]);
  }
}

void Output::trace(const AttachPlan& plan, std::size_t probes) {
  plan_ = &plan;
  not_written_.resize(plan.probes.size());
  look_up(plan, std::min(probes, plan.probes.size()));
}

void Output::event(const Event& event) {
  const std::uint32_t probe = event.site().probe.value;
  if (given_up_) {
    ++not_written_[probe];
    return;
  }
  lines_.push_back({UINT64_MAX, probe});
  write_event(event);
}

void Output::printed(std::size_t events) {
  for (; events > 0 && printed_ < lines_.size(); --events) lines_[printed_++].end = out_.printed();
}

Output::Flushed Output::write_out(const io::Stream::Patience& patience) {
  if (given_up_) return Flushed::failed;
  print_due();
  const Flushed result = out_.flush(patience);
  if (result == Flushed::all) {
    lines_.erase(lines_.begin(), lines_.begin() + static_cast<std::ptrdiff_t>(printed_));
    printed_ = 0;
  }
  if (result == Flushed::failed) give_up();
  return result;
}

void Output::give_up() {
  given_up_ = true;
  for (const Line& line : lines_)
    if (line.end > out_.written()) ++not_written_[line.probe];
  lines_.clear();
}

}  // namespace usdt::exports
