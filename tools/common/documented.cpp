// SPDX-License-Identifier: BSD-2-Clause
#include "common/documented.hpp"

#include <CLI/CLI.hpp>

#include "common/command_line.hpp"

namespace usdt::tools {
namespace {

template <class Names>
std::string first_of(const Names& names) {
  return names.empty() ? std::string() : names.front();
}

ProposedWords proposed_for(CLI::Option& option) {
  try {
    return words_of(*option.get_validator(0));
  } catch (const CLI::OptionNotFound&) {  // CLI11 has no other way to say that there is none
    return {};
  }
}

}  // namespace

DocumentedProgram documented(CLI::App& app) {
  DocumentedProgram program{app.get_name(), app.get_description(), app.get_footer(), {}};
  for (CLI::Option* option : app.get_options()) {
    DocumentedOption& each = program.options.emplace_back();
    each.letter = first_of(option->get_snames());
    each.word = first_of(option->get_lnames());
    if (option->get_items_expected_max() > 0) each.value = option->get_type_name();
    each.standard = option->get_default_str();
    each.proposed = proposed_for(*option);
    each.text = option->get_description();
  }
  return program;
}

}  // namespace usdt::tools
