// SPDX-License-Identifier: BSD-2-Clause
#include "common/script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <optional>
#include <utility>

#include "common/script_guard.hpp"

// The parser of toml++ 3.3 asserts what texts break ("[" at the end of a line), and tells the compiler to rely on it
// where NDEBUG is set. It goes on to find the error by itself.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expression) static_assert(true)
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

namespace usdt::tools {
namespace {

constexpr std::size_t kMostQuestions = 64;

ScriptPlace place_of(const toml::source_region& source) { return {source.begin.line, source.begin.column}; }
ScriptPlace place_of(const toml::node& node) { return place_of(node.source()); }

std::string_view kind_of(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::none:
      break;
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::string:
      return "a text";
    case toml::node_type::integer:
      return "a whole number";
    case toml::node_type::floating_point:
      return "a number";
    case toml::node_type::boolean:
      return "a truth value";
    case toml::node_type::date:
      return "a date";
    case toml::node_type::time:
      return "a time";
    case toml::node_type::date_time:
      return "a date and time";
  }
  return "nothing";
}

std::optional<Condition> parse_condition(std::string_view text) {
  using Kind = Condition::Kind;
  const std::size_t space = std::min(text.find(' '), text.size());
  const std::string_view kind = text.substr(0, space);
  const std::string what(text.substr(std::min(space + 1, text.size())));
  if (what.empty()) return std::nullopt;
  if (kind == "environment") return Condition{Kind::environment, what};
  if (kind == "argument") return Condition{Kind::argument, what};
  if (kind == "unseen") return Condition{Kind::unseen, what};
  return std::nullopt;
}

/// Makes a script of what TOML says.
class Reader {
 public:
  explicit Reader(std::string file) { script_.file = std::move(file); }

  Result<Script> read(const toml::table& root) {
    for (const auto& [key, node] : root)
      if (auto read = top(key, node); !read) return fail(read.error());
    if (script_.questions.empty()) return fail(script_.wrong({1, 1}, "no question: [question.NAME] begins one"));
    for (const ScriptQuestion& question : script_.questions)
      if (!question.otherwise.empty() &&
          std::ranges::find(script_.questions, question.otherwise, &ScriptQuestion::name) == script_.questions.end())
        return fail(script_.wrong(question.place, fmt::format("question '{}': otherwise is '{}', which is no question",
                                                              question.name, question.otherwise)));
    // Tables are in the order of their names; people think in that of the file.
    std::ranges::stable_sort(script_.questions, {}, [](const ScriptQuestion& question) {
      return std::pair(question.place.line, question.place.column);
    });
    return std::move(script_);
  }

 private:
  Result<void> top(const toml::key& key, const toml::node& node) {
    if (key.str() == "title") {
      auto title = text(node, "title");
      if (!title) return fail(title.error());
      script_.title = std::move(*title);
      return {};
    }
    if (key.str() == "needs") return needs(node);
    if (key.str() == "question") return questions(node);
    if (key.str() == "arguments") return declarations(node);
    if (key.str() == "programs") return take_texts(node, "programs", script_.programs);
    if (key.str() == "tried") return take_texts(node, "tried", script_.tried);
    if (key.str() == "known-as") return take_texts(node, "known-as", script_.known_as);
    auto option = this->option(key, node);
    if (!option) return fail(option.error());
    script_.shared.push_back(std::move(*option));
    return {};
  }

  Result<void> take_texts(const toml::node& node, std::string_view name, std::vector<std::string>& into) {
    auto all = texts(node, name);
    if (!all) return fail(all.error());
    into = std::move(*all);
    return {};
  }

  /// "PROVIDER:NAME" = "name:meaning, name", or several of these, of versions with other arguments
  Result<void> declarations(const toml::node& node) {
    const toml::table* all = node.as_table();
    if (all == nullptr) return wrong(node, "arguments is a table: \"PROVIDER:NAME\" = \"name:string, name\"");
    auto made = std::make_shared<std::vector<ProbeDeclaration>>();
    for (const auto& [key, each] : *all) {
      const std::string_view probe = key.str();
      const std::size_t colon = probe.find(':');
      if (colon == 0 || colon == probe.npos || colon + 1 == probe.size())
        return wrong(each, fmt::format("'{}' is not PROVIDER:NAME", probe));
      auto declared = texts(each, probe);
      if (!declared) return fail(declared.error());
      for (std::string& one : *declared) {
        if (auto sense = check_declaration(one); !sense)
          return wrong(each, fmt::format("arguments of {}: {}", probe, sense.error().message));
        made->push_back({std::string(probe.substr(0, colon)), std::string(probe.substr(colon + 1)), std::move(one)});
      }
    }
    script_.declarations = std::move(made);
    return {};
  }

  Result<void> needs(const toml::node& node) {
    auto all = texts(node, "needs");
    if (!all) return fail(all.error());
    const toml::array* array = node.as_array();
    for (std::size_t i = 0; i < all->size(); ++i)
      script_.needs.push_back({std::move((*all)[i]), array ? place_of((*array)[i]) : place_of(node)});
    return {};
  }

  Result<void> questions(const toml::node& node) {
    const toml::table* all = node.as_table();
    if (all == nullptr) return wrong(node, "question is a table of questions: [question.NAME] begins one");
    for (const auto& [key, each] : *all) {
      if (script_.questions.size() == kMostQuestions)
        return wrong(each, fmt::format("more than {} questions", kMostQuestions));
      if (auto read = question(key, each); !read) return read;
    }
    return {};
  }

  Result<void> question(const toml::key& key, const toml::node& node) {
    const toml::table* table = node.as_table();
    if (table == nullptr)
      return wrong(node,
                   fmt::format("'{}' is {}, and no question: [question.NAME] begins one", key.str(), kind_of(node)));
    if (key.str().empty()) return wrong(node, "a question without a name");
    ScriptQuestion& question = script_.questions.emplace_back();
    question.name = key.str();
    question.place = place_of(key.source());
    for (const auto& [name, value] : *table) {
      const auto known = own_key(question, name.str(), value);
      if (!known) return fail(known.error());
      if (*known) continue;
      auto option = this->option(name, value);
      if (!option) return fail(option.error());
      question.options.push_back(std::move(*option));
    }
    if (question.probes.empty())
      return fail(script_.wrong(
          question.place, fmt::format("question '{}' has no probes: probes = [\"PROVIDER:NAME\"]", question.name)));
    return {};
  }

  /// Takes what is no option; false: it is one.
  Result<bool> own_key(ScriptQuestion& question, std::string_view name, const toml::node& node) {
    const auto taken = [](const Result<void>& result) -> Result<bool> {
      if (!result) return fail(result.error());
      return true;
    };
    if (name == "probes") {
      auto probes = texts(node, name);
      if (!probes) return fail(probes.error());
      for (const std::string& probe : *probes)
        if (probe.starts_with('-')) return wrong(node, fmt::format("'{}' is no probe", probe));
      question.probes = std::move(*probes);
      return true;
    }
    if (name == "title") return taken(take_text(node, name, question.title));
    if (name == "cost") return taken(take_text(node, name, question.cost));
    if (name == "known-as") return taken(take_texts(node, name, question.known_as));
    if (name == "otherwise") return taken(take_text(node, name, question.otherwise));
    if (name == "fires-only-if") return taken(conditions(node, question));
    if (name != "on-request") return false;
    const auto flag = node.value_exact<bool>();
    if (!flag) return wrong(node, "on-request is true or false");
    question.on_request = *flag;
    return true;
  }

  Result<void> take_text(const toml::node& node, std::string_view name, std::string& into) {
    auto one = text(node, name);
    if (!one) return fail(one.error());
    into = std::move(*one);
    return {};
  }

  Result<void> conditions(const toml::node& node, ScriptQuestion& question) {
    auto all = texts(node, "fires-only-if");
    if (!all) return fail(all.error());
    for (std::string& each : *all) {
      const auto condition = parse_condition(each);
      if (!condition)
        return wrong(node, fmt::format("'{}' is no condition: there are 'environment NAME[=GLOB]', 'argument GLOB' and "
                                       "'unseen SENTENCE'",
                                       each));
      question.fires_only_if.push_back(*condition);
    }
    return {};
  }

  Result<ScriptOption> option(const toml::key& key, const toml::node& node) {
    ScriptOption option{.name = std::string(key.str()), .value = {}, .place = place_of(key.source())};
    if (const auto flag = node.value_exact<bool>()) {
      option.value = *flag;
      return option;
    }
    auto values = texts(node, option.name);
    if (!values) return fail(values.error());
    option.value = std::move(*values);
    return option;
  }

  /// A value, or several in an array.
  Result<std::vector<std::string>> texts(const toml::node& node, std::string_view name) {
    std::vector<std::string> all;
    const toml::array* array = node.as_array();
    if (array == nullptr) {
      auto one = text(node, name);
      if (!one) return fail(one.error());
      all.push_back(std::move(*one));
      return all;
    }
    for (const toml::node& each : *array) {
      auto one = text(each, name);
      if (!one) return fail(one.error());
      all.push_back(std::move(*one));
    }
    if (all.empty()) return wrong(node, fmt::format("{} is empty", name));
    return all;
  }

  /// As it would be written behind an option.
  Result<std::string> text(const toml::node& node, std::string_view name) {
    std::string text;
    if (const auto string = node.value_exact<std::string>())
      text = *string;
    else if (const auto whole = node.value_exact<std::int64_t>())
      text = fmt::format("{}", *whole);
    else if (const auto number = node.value_exact<double>())
      text = fmt::format("{}", *number);
    else
      return wrong(node, fmt::format("{} is {}, and takes a text or a number", name, kind_of(node)));
    if (text.empty()) return wrong(node, fmt::format("{} is empty", name));
    if (text.find('\0') != text.npos) return wrong(node, fmt::format("{} has a NUL in it", name));
    return text;
  }

  tl::unexpected<Error> wrong(const toml::node& node, std::string_view why) const {
    return fail(script_.wrong(place_of(node), why));
  }

  Script script_;
};

Result<std::string> read_text(const std::string& file) {
  constexpr std::size_t most = kMostScriptBytes;
  const auto trouble = [&] { return fail(os_failure(ErrorKind::io, fmt::format("read {}", file), errno)); };
  std::ifstream in(file, std::ios::binary);
  if (!in) return trouble();
  std::string text(most + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) return trouble();
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > most) return fail(ErrorKind::limit, fmt::format("{}: more than 1 MiB of script", file));
  return text;
}

}  // namespace

std::string Script::name_place(ScriptPlace place, std::string_view question) const {
  const std::string in_file = fmt::format("{}:{}:{}", file, place.line, place.column);
  if (preset.empty()) return question.empty() ? in_file : fmt::format("{}: {}", in_file, question);
  const std::string named = fmt::format("preset '{}{}{}'", preset, question.empty() ? "" : ".", question);
  return is_built_in ? "built-in " + named : fmt::format("{}: {}", named, in_file);
}

Error Script::wrong(ScriptPlace place, std::string_view why, std::string_view question) const {
  return {ErrorKind::invalid_argument, fmt::format("{}: {}", name_place(place, question), why)};
}

Result<Script> read_script(const std::string& file) {
  auto text = read_text(file);
  if (!text) return fail(text.error());
  return parse_script(file, *text);
}

Result<Script> parse_script(const std::string& file, std::string_view text) {
  if (auto guarded = guard_parser(file, text); !guarded) return fail(guarded.error());
  const toml::parse_result parsed = toml::parse(text, file);
  if (parsed) return Reader(file).read(parsed.table());
  const toml::parse_error& error = parsed.error();
  const ScriptPlace place = place_of(error.source());
  return fail(ErrorKind::syntax, fmt::format("{}:{}:{}: {}", file, place.line, place.column, error.description()));
}

}  // namespace usdt::tools
