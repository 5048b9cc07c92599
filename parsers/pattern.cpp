// SPDX-License-Identifier: BSD-2-Clause
// Names of attach points of every kind: a prefix, and parts with ':' between them.
#include "usdt/pattern.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "base/try.hpp"
#include "parsers/quote.hpp"

namespace usdt {
inline namespace v1 {
namespace {

struct Usdt {};
/// Kinds of bpftrace's that people type from habit, and what there is for them here.
struct Foreign {
  std::string_view answer;
};
using Kind = std::variant<Usdt, Moment, KernelKind, Foreign>;

struct Prefix {
  std::string_view text;
  Kind kind;
};

constexpr std::string_view kTracepoints = "write raw_tp:NAME for the same event with the raw tracepoint's arguments";
constexpr std::string_view kSamples = "there are no timed samples here";
constexpr std::string_view kCounters = "there are no counters here";

/// The first of a kind is how it is printed.
constexpr std::array kPrefixes = {
    Prefix{"usdt", Usdt{}},
    Prefix{"U", Usdt{}},
    Prefix{"u", Usdt{}},
    Prefix{"uprobe", Moment::entry},
    Prefix{"uretprobe", Moment::exit},
    Prefix{"ur", Moment::exit},
    Prefix{"ucall", Moment::both},
    Prefix{"kprobe", KernelKind{KernelFamily::kprobe, Moment::entry}},
    Prefix{"k", KernelKind{KernelFamily::kprobe, Moment::entry}},
    Prefix{"kretprobe", KernelKind{KernelFamily::kprobe, Moment::exit}},
    Prefix{"kr", KernelKind{KernelFamily::kprobe, Moment::exit}},
    Prefix{"ksession", KernelKind{KernelFamily::kprobe, Moment::both}},
    Prefix{"fentry", KernelKind{KernelFamily::trampoline, Moment::entry}},
    Prefix{"fexit", KernelKind{KernelFamily::trampoline, Moment::exit}},
    Prefix{"fsession", KernelKind{KernelFamily::trampoline, Moment::both}},
    Prefix{"kfunc", KernelKind{KernelFamily::any, Moment::entry}},
    Prefix{"kretfunc", KernelKind{KernelFamily::any, Moment::exit}},
    Prefix{"kcall", KernelKind{KernelFamily::any, Moment::both}},
    Prefix{"raw_tp", KernelKind{KernelFamily::raw_tp, Moment::entry}},
    Prefix{"rawtracepoint", KernelKind{KernelFamily::raw_tp, Moment::entry}},
    Prefix{"rt", KernelKind{KernelFamily::raw_tp, Moment::entry}},
    Prefix{"tp_btf", KernelKind{KernelFamily::tp_btf, Moment::entry}},
    Prefix{"tracepoint", Foreign{kTracepoints}},
    Prefix{"t", Foreign{kTracepoints}},
    Prefix{"profile", Foreign{kSamples}},
    Prefix{"interval", Foreign{kSamples}},
    Prefix{"software", Foreign{kCounters}},
    Prefix{"hardware", Foreign{kCounters}},
};

/// The row of what `text` has before its first ':'; null: no prefix.
const Prefix* find_prefix(std::string_view text) noexcept {
  const std::size_t colon = text.find(':');
  if (colon == text.npos) return nullptr;
  for (const Prefix& prefix : kPrefixes) {
    if (prefix.text == text.substr(0, colon)) return &prefix;
  }
  return nullptr;
}

tl::unexpected<Error> bad_syntax(std::string message, std::size_t column) {
  return fail(Error{ErrorKind::syntax, std::move(message), 0, static_cast<std::uint32_t>(column)});
}

/// Whether "::" separates nothing, but is within a name, as in C++ and Rust.
enum class Scopes : std::uint8_t { separate, belong_to_names };

std::size_t colons_at(std::string_view text, std::size_t at) noexcept {
  const std::size_t end = text.find_first_not_of(':', at);
  return (end == text.npos ? text.size() : end) - at;
}

/// Finds the ':' that separate parts, from `start` on. A '\\' before one hides it, and so do the quotes around a part.
std::vector<std::size_t> find_separators(std::string_view text, std::size_t start, Scopes scopes) {
  std::vector<std::size_t> out;
  bool part_starts = true;
  for (std::size_t at = start; at < text.size();) {
    const std::size_t quoted = part_starts ? quoted_length(text.substr(at)) : 0;
    part_starts = false;
    if (quoted > 0 && (at + quoted == text.size() || text[at + quoted] == ':')) {
      at += quoted;
      continue;
    }
    if (text[at] != ':') {
      at += text[at] == '\\' ? 2 : 1;
      continue;
    }
    const std::size_t colons = scopes == Scopes::separate ? 1 : colons_at(text, at);
    if (colons % 2 == 1) out.push_back(at);
    part_starts = colons == 1;
    at += colons;
  }
  return out;
}

Result<PointPattern> parse_probe(std::string_view text, std::size_t start) {
  std::vector<std::size_t> colons = find_separators(text, start, Scopes::separate);
  // A prefix needs a target behind it: "u:malloc" is the probe malloc of a provider called u.
  if (colons.empty() && start > 0) colons = find_separators(text, start = 0, Scopes::separate);
  if (colons.empty()) return bad_syntax(fmt::format("no ':' in '{}': write PROVIDER:NAME", text), text.size());
  const std::size_t name_at = colons.back() + 1;
  if (name_at == text.size()) return bad_syntax("empty probe name", text.size());

  ProbePattern pattern;
  pattern.name = glob_of_part(text.substr(name_at));
  if (pattern.name.empty()) return bad_syntax("empty probe name", name_at);  // ""
  if (start > 0 && colons.size() == 1) {
    pattern.target = text.substr(start, colons[0] - start);
    return pattern;
  }
  const bool has_target = colons.size() > 1;
  const std::size_t provider_at = has_target ? colons[colons.size() - 2] + 1 : start;
  if (provider_at + 1 == name_at) return bad_syntax("empty provider", provider_at);
  pattern.provider = glob_of_part(text.substr(provider_at, name_at - 1 - provider_at));
  if (pattern.provider.empty()) return bad_syntax("empty provider", provider_at);
  if (has_target) pattern.target = text.substr(start, provider_at - 1 - start);
  return pattern;
}

/// A number behind the last '+' of a text, and where that is.
struct Offset {
  std::uint64_t bytes = 0;
  std::size_t plus = std::string_view::npos;
};

/// None: there is no '+', or none with a number behind it, as in "operator+".
std::optional<Offset> offset_in(std::string_view text) noexcept {
  Offset offset{0, text.rfind('+')};
  if (offset.plus == text.npos || (offset.plus > 0 && text[offset.plus - 1] == '\\')) return std::nullopt;
  std::string_view digits = text.substr(offset.plus + 1);
  const bool hexadecimal = digits.starts_with("0x") || digits.starts_with("0X");
  if (hexadecimal) digits.remove_prefix(2);
  const char* const end = digits.data() + digits.size();
  const auto [at, error] = std::from_chars(digits.data(), end, offset.bytes, hexadecimal ? 16 : 10);
  return error == std::errc() && at == end ? std::optional(offset) : std::nullopt;
}

/// The line of `@FILE:LINE`, where FILE is at `file_at` and LINE at `line_at`.
Result<PointPattern> parse_line(std::string_view text, std::size_t file_at, std::size_t line_at,
                                FunctionPattern&& pattern) {
  if (pattern.moment != Moment::entry)
    return bad_syntax(fmt::format("'{}': a line is no call, which would end and have a result; write {}:{}", text,
                                  function_prefix(Moment::entry), text.substr(text.find(':') + 1)),
                      0);
  const std::string_view digits = text.substr(line_at);
  const char* const end = digits.data() + digits.size();
  const auto [at, error] = std::from_chars(digits.data(), end, pattern.line);
  if (error != std::errc() || at != end || pattern.line == 0)
    return bad_syntax(fmt::format("'{}' is no line: write @FILE:LINE", digits), line_at);
  pattern.source_file = without_backslashes(text.substr(file_at + 1, line_at - file_at - 2));
  if (pattern.source_file.empty()) return bad_syntax("empty source file: write @FILE:LINE", file_at);
  return pattern;
}

/// A ':' that quotes before or around it hid from find_separators() gets a '\\', which goes on to hide it.
std::string with_hidden_colons(const std::string& glob) {
  std::string out;
  for (std::size_t at = 0; at < glob.size();) {
    const std::size_t colons = glob[at] == ':' ? colons_at(glob, at) : 0;
    const std::size_t length = colons != 0 ? colons : glob[at] == '\\' ? 2 : 1;
    for (std::size_t i = 0; i < colons && colons % 2 == 1; ++i) out += "\\:";
    if (colons % 2 == 0) out += glob.substr(at, length);
    at += length;
  }
  return out;
}

Result<PointPattern> parse_function(std::string_view text, std::size_t start, Moment moment) {
  const std::vector<std::size_t> colons = find_separators(text, start, Scopes::belong_to_names);
  FunctionPattern pattern;
  pattern.moment = moment;
  const std::size_t name_at = colons.empty() ? start : colons.back() + 1;
  const std::size_t before_at = colons.size() > 1 ? colons[colons.size() - 2] + 1 : start;
  if (!colons.empty() && text.substr(before_at).starts_with('@')) {
    if (before_at > start) pattern.target = text.substr(start, before_at - 1 - start);
    return parse_line(text, before_at, name_at, std::move(pattern));
  }
  if (text.substr(name_at).starts_with('@'))
    return bad_syntax(fmt::format("'{}' has no line: write @FILE:LINE", text.substr(name_at)), name_at);
  if (!colons.empty()) pattern.target = text.substr(start, colons.back() - start);
  std::string_view name = text.substr(name_at);
  if (const auto offset = offset_in(name)) {
    if (moment != Moment::entry)
      return bad_syntax(fmt::format("'{}' asks for an offset: a call begins at the function's first instruction, and "
                                    "ends where it returns; write {}",
                                    text, text.substr(0, name_at + offset->plus)),
                        name_at + offset->plus);
    pattern.offset = offset->bytes;
    name = name.substr(0, offset->plus);
  }
  pattern.name = with_hidden_colons(glob_of_part(name));
  if (pattern.name.empty())
    return bad_syntax(fmt::format("empty function name: write {}:FILE:FUNCTION", function_prefix(moment)), name_at);
  return pattern;
}

Result<PointPattern> parse_kernel(std::string_view text, std::size_t start, KernelKind kind) {
  const std::vector<std::size_t> colons = find_separators(text, start, Scopes::separate);
  const std::string_view prefix = text.substr(0, start - 1);
  if (!colons.empty() && colons[0] == start) return bad_syntax(fmt::format("empty module in '{}'", text), start);
  if (colons.size() > 1)
    return bad_syntax(fmt::format("too many ':' in '{}': write {}:MODULE:NAME", text, prefix), colons[1]);
  const std::size_t name_at = colons.empty() ? start : colons[0] + 1;
  KernelPattern pattern;
  pattern.kind = kind;
  pattern.name = glob_of_part(text.substr(name_at));
  if (!colons.empty()) pattern.module = glob_of_part(text.substr(start, colons[0] - start));
  if (pattern.name.empty()) return bad_syntax(fmt::format("empty name in '{}'", text), text.size());
  if (const std::size_t plus = text.find('+', name_at); plus != text.npos)
    return bad_syntax(fmt::format("'{}' asks for an offset: functions are traced at their entry and exit only; write "
                                  "{}",
                                  text, text.substr(0, plus)),
                      plus);
  return pattern;
}

/// Describes `Pattern` in errors, with the form to write.
template <class Pattern>
constexpr std::string_view kHowToWrite = "";
template <>
constexpr std::string_view kHowToWrite<ProbePattern> = "a USDT probe: write PROVIDER:NAME";
template <>
constexpr std::string_view kHowToWrite<FunctionPattern> = "a function of a file: write uprobe:FILE:FUNCTION";
template <>
constexpr std::string_view kHowToWrite<KernelPattern> =
    "a kernel function or tracepoint: write kprobe:NAME, fentry:NAME or raw_tp:NAME";

template <class Pattern>
Result<Pattern> parse_as(std::string_view text) {
  auto pattern = TRY(parse_pattern(text));
  if (auto* wanted = std::get_if<Pattern>(&pattern)) return std::move(*wanted);
  return bad_syntax(fmt::format("'{}' is not {}", text, kHowToWrite<Pattern>), 0);
}

/// A name that an offset, a line or a quoted part could be read into gets a '\' there.
std::string safe_name(const std::string& name) {
  const std::string begin = name.starts_with('@') ? "\\" : "";
  const auto offset = offset_in(name);
  if (!offset) return begin + name;
  return fmt::format("{}{}\\{}", begin, name.substr(0, offset->plus), name.substr(offset->plus));
}

constexpr std::string_view kSpanSign = " ~~ ";

/// One point, whatever its name has in it.
Result<PointPattern> parse_point(std::string_view text) {
  const Prefix* prefix = find_prefix(text);
  if (prefix == nullptr) return parse_probe(text, 0);
  const std::size_t start = prefix->text.size() + 1;
  if (const auto* moment = std::get_if<Moment>(&prefix->kind)) return parse_function(text, start, *moment);
  if (const auto* kernel = std::get_if<KernelKind>(&prefix->kind)) return parse_kernel(text, start, *kernel);
  if (const auto* foreign = std::get_if<Foreign>(&prefix->kind)) {
    // One part alone behind it makes it a probe, whose provider has this name.
    if (find_separators(text, start, Scopes::separate).empty()) return parse_probe(text, 0);
    return fail(Error{ErrorKind::not_supported, fmt::format("'{}': {}", text, foreign->answer), 0, 0U});
  }
  return parse_probe(text, start);
}

}  // namespace

Result<PointPattern> parse_pattern(std::string_view text) {
  auto pattern = parse_point(text);
  const std::size_t sign = text.find(kSpanSign);
  // (No name that a point has holds this sign, and a pattern has to come back from its own text.)
  const bool is_span = pattern ? to_string(*pattern).find(kSpanSign) != std::string::npos : sign != text.npos;
  if (!is_span) return pattern;
  return fail(
      Error{ErrorKind::not_supported,
            fmt::format("'{}' is a span, from one probe to another, and one probe is meant here: usdt-trace has "
                        "spans, and in C++ plan_spans()",
                        text),
            0, static_cast<std::uint32_t>(sign == text.npos ? 0 : sign + 1)});
}

Result<std::vector<PointPattern>> parse_patterns(const std::vector<std::string>& texts) {
  std::vector<PointPattern> patterns;
  for (const std::string& text : texts) {
    auto pattern = TRY(parse_pattern(text));
    patterns.push_back(std::move(pattern));
  }
  return patterns;
}

std::string to_string(const PointPattern& pattern) {
  return std::visit([](const auto& of_kind) { return of_kind.str(); }, pattern);
}

Result<ProbePattern> ProbePattern::parse(std::string_view text) { return parse_as<ProbePattern>(text); }
Result<FunctionPattern> FunctionPattern::parse(std::string_view text) { return parse_as<FunctionPattern>(text); }
Result<KernelPattern> KernelPattern::parse(std::string_view text) { return parse_as<KernelPattern>(text); }

bool ProbePattern::matches(std::string_view site_provider, std::string_view site_name) const noexcept {
  return glob_match(provider, site_provider) && glob_match(name, site_name);
}

std::string ProbePattern::str() const { return fmt::format("usdt:{}:{}:{}", target, provider, name); }

std::string FunctionPattern::str() const {
  const std::string where = offset == 0 ? "" : offset_text(offset);
  const std::string file = target.empty() ? "" : fmt::format("{}:", target);
  if (!source_file.empty())
    return fmt::format("{}:{}@{}:{}", function_prefix(moment), file, quote_name(source_file), line);
  return fmt::format("{}:{}{}{}", function_prefix(moment), file, safe_name(name), where);
}

std::string KernelPattern::str() const {
  if (module.empty()) return fmt::format("{}:{}", to_string(kind), name);
  return fmt::format("{}:{}:{}", to_string(kind), module, name);
}

std::string line_text(std::string_view source_file, std::uint32_t line) {
  return fmt::format("@{}:{}", source_file, line);
}

std::string offset_text(std::uint64_t offset) { return fmt::format("+{:#x}", offset); }

std::string_view function_prefix(Moment moment) noexcept {
  for (const Prefix& prefix : kPrefixes) {
    if (const auto* of = std::get_if<Moment>(&prefix.kind); of && *of == moment) return prefix.text;
  }
  return {};
}

std::string_view to_string(KernelKind kind) noexcept {
  for (const Prefix& prefix : kPrefixes) {
    if (const auto* of = std::get_if<KernelKind>(&prefix.kind); of && *of == kind) return prefix.text;
  }
  return "unknown";
}

const std::string* target_of(const PointPattern& pattern) noexcept {
  if (const auto* probe = std::get_if<ProbePattern>(&pattern)) return &probe->target;
  const auto* function = std::get_if<FunctionPattern>(&pattern);
  return function ? &function->target : nullptr;
}

}  // namespace v1
}  // namespace usdt
