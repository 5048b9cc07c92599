// SPDX-License-Identifier: BSD-2-Clause
// What lambda expressions are called. GCC's debug information of one within a function that is not inline has no name
// for the linker; where its code is a function of its own, its symbol has one: "work(int)::{lambda(long)#2}::operator()
// (long) const". A copy that was inlined gets the name that this symbol would have, so that both are called alike.
#include "dwarf/lambdas.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "dwarf/debug_state.hpp"
#include "dwarf/die.hpp"

namespace usdt::dwarf {
namespace {

constexpr std::string_view kOwnName = "operator()";
constexpr std::uint64_t kMostInAScope = 1U << 16;

bool is_class(Dwarf_Die die) {
  const int tag = dwarf_tag(&die);
  return tag == DW_TAG_structure_type || tag == DW_TAG_class_type;
}

/// The parameter by which GCC passes what a lambda has captured; nothing: it is no lambda's function.
std::optional<Dwarf_Die> closure_of(Dwarf_Die function) {
  std::uint64_t steps = kMostInAScope;
  std::optional<Dwarf_Die> found;
  if (!own_name(function).starts_with(kOwnName)) return found;
  for_each_child(function, steps, [&](Dwarf_Die child) {
    if (dwarf_tag(&child) != DW_TAG_formal_parameter) return true;
    if (text(attribute(child, DW_AT_name)) == "__closure") found = child;
    return false;
  });
  return found;
}

bool is_lambda(Dwarf_Die die) {
  std::uint64_t steps = kMostInAScope;
  bool found = false;
  if (!is_class(die) || !own_name(die).empty()) return false;
  for_each_child(die, steps, [&](Dwarf_Die child) {
    found = dwarf_tag(&child) == DW_TAG_subprogram && closure_of(child).has_value();
    return !found;
  });
  return found;
}

/// DWARF spells types of C as C does ("long unsigned int"), demanglers in another way.
std::string_view demanglers_word(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> words[] = {
      {"long int", "long"},
      {"short int", "short"},
      {"long long int", "long long"},
      {"long unsigned int", "unsigned long"},
      {"short unsigned int", "unsigned short"},
      {"long long unsigned int", "unsigned long long"},
  };
  const auto found = std::ranges::find(words, name, &std::pair<std::string_view, std::string_view>::first);
  return found == std::end(words) ? name : found->second;
}

/// A type as demanglers write it, as far as its name is known: "char const*".
std::string type_text(ScopeNames& names, std::optional<Dwarf_Die> type) {
  std::string behind;
  for (unsigned step = 0; type && step < kLongestChain; ++step, type = type_of(*type)) {
    switch (dwarf_tag(&*type)) {
      case DW_TAG_const_type:
        behind.insert(0, " const");
        break;
      case DW_TAG_pointer_type:
        behind.insert(0, "*");
        break;
      case DW_TAG_reference_type:
        behind.insert(0, "&");
        break;
      case DW_TAG_rvalue_reference_type:
        behind.insert(0, "&&");
        break;
      case DW_TAG_base_type:
        return std::string(demanglers_word(own_name(*type))) + behind;
      case DW_TAG_typedef:
        break;
      default:
        return names.qualified(*type) + behind;
    }
  }
  return "void" + behind;
}

class LambdaName {
 public:
  LambdaName(DebugState& state, Dwarf_Die function) : state_(state), function_(function) {}

  [[nodiscard]] std::string text() const {
    const auto closure = closure_of(function_);
    const auto type = closure ? state_.names.scope_of(function_) : std::nullopt;
    const auto around = type && is_lambda(*type) ? state_.names.scope_of(*type) : std::nullopt;
    if (!around || dwarf_tag(&const_cast<Dwarf_Die&>(*around)) != DW_TAG_subprogram) return {};
    return fmt::format("{}::{{lambda({})#{}}}::{}({}){}", scope_text(*around), parameters_text(function_, true),
                       number_of(*type, *around), own_name(function_), parameters_text(function_, false),
                       is_const(*closure) ? " const" : "");
  }

 private:
  /// A function without a name for the linker is main(), or one that other files do not see.
  [[nodiscard]] std::string scope_text(Dwarf_Die around) const {
    const std::string symbol(linkage_name_of(around));
    const elf::Demangled demangled = state_.demangler.demangle(symbol);
    if (!demangled.name.empty()) return std::string(demangled.name);
    const std::string name = state_.names.qualified(around);
    const bool is_external = flag(attribute(around, DW_AT_external));
    return is_external ? name : fmt::format("{}({})", name, parameters_text(origin_of(around), false));
  }

  /// `as_declared`: those that are "auto" are so, as far as all of them are.
  [[nodiscard]] std::string parameters_text(Dwarf_Die function, bool as_declared) const {
    std::vector<std::string> texts;
    std::uint64_t steps = kMostInAScope;
    std::set<std::string_view> generic;  // (GCC 12 says each twice)
    for_each_child(function, steps, [&](Dwarf_Die child) {
      const int tag = dwarf_tag(&child);
      if (tag == DW_TAG_template_type_parameter) generic.insert(dwarf::text(attribute(child, DW_AT_name)));
      if (tag == DW_TAG_formal_parameter && dwarf::text(attribute(child, DW_AT_name)) != "__closure")
        texts.push_back(type_text(state_.names, type_of(child)));
      return true;
    });
    if (as_declared && !generic.empty() && generic.size() == texts.size())
      for (std::size_t i = 0; i < texts.size(); ++i) texts[i] = fmt::format("auto:{}", i + 1);
    return fmt::format("{}", fmt::join(texts, ", "));
  }

  [[nodiscard]] static bool is_const(Dwarf_Die closure) {
    auto type = type_of(closure);
    while (type && dwarf_tag(&*type) == DW_TAG_const_type) type = type_of(*type);
    auto object = type && dwarf_tag(&*type) == DW_TAG_pointer_type ? type_of(*type) : std::nullopt;
    return object && dwarf_tag(&*object) == DW_TAG_const_type;
  }

  /// Lambdas of a function are numbered as they are written.
  [[nodiscard]] std::size_t number_of(Dwarf_Die type, Dwarf_Die around) const {
    const auto place = [](Dwarf_Die die) {
      return std::tuple(number(attribute(die, DW_AT_decl_line)).value_or(0),
                        number(attribute(die, DW_AT_decl_column)).value_or(0), die.addr);
    };
    std::size_t before = 0;
    count_before(
        around, [&](Dwarf_Die each) { before += place(each) < place(type) ? 1 : 0; }, 0);
    return before + 1;
  }

  template <class Visit>
  void count_before(Dwarf_Die scope, const Visit& visit, unsigned depth) const {
    TreeWalk tree(state_.stop, &state_.shared_reads);
    walk(scope, tree, visit, depth);
  }
  template <class Visit>
  void walk(Dwarf_Die scope, TreeWalk& tree, const Visit& visit, unsigned depth) const {
    if (depth == kDeepestTree) return;
    tree.children(scope, [&](Dwarf_Die child) {
      if (is_lambda(child)) visit(child);
      if (dwarf_tag(&child) == DW_TAG_lexical_block) walk(child, tree, visit, depth + 1);
      return true;
    });
  }

  DebugState& state_;
  Dwarf_Die function_;
};

}  // namespace

std::string lambda_name(DebugState& state, Dwarf_Die die) {
  const Dwarf_Die origin = origin_of(die);
  return own_name(origin).starts_with(kOwnName) ? LambdaName(state, origin).text() : std::string();
}

}  // namespace usdt::dwarf
