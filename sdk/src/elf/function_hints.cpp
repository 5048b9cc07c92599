// SPDX-License-Identifier: BSD-2-Clause
// Nothing is called so; what may have been meant, and where it may be.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/near_text.hpp"
#include "elf/debug_package.hpp"
#include "elf/demangle.hpp"
#include "elf/elf_impl.hpp"
#include "elf/function_table.hpp"
#include "elf/functions.hpp"
#include "usdt/pattern.hpp"

namespace usdt::elf {
namespace {

constexpr std::size_t kSuggestions = 3;
constexpr std::size_t kDemangled = std::size_t{16} << 20;  // bytes

/// `wanted` with its namespace or class left out ("handle" of ns::Server::handle), or of what the compiler made several
/// ("parse" of parse.part.0).
bool is_part_of(std::string_view wanted, std::string_view name) noexcept {
  if (name.size() <= wanted.size()) return false;
  if (name.starts_with(wanted)) return name[wanted.size()] == '.';
  return name.ends_with(wanted) && name.substr(0, name.size() - wanted.size()).ends_with("::");
}

/// Names that are nearest to the one that nothing is called.
class NearFunctions {
 public:
  explicit NearFunctions(std::string_view wanted) : wanted_(wanted), near_(wanted) {}

  void offer(std::string_view name) {
    if (is_part_of(wanted_, name)) {
      const bool known = std::ranges::find(parts_, name) != parts_.end();
      if (!known && parts_.size() < kSuggestions) parts_.emplace_back(name);
    } else {
      near_.offer(name);
    }
  }
  [[nodiscard]] std::vector<std::string> best() && {
    return parts_.empty() ? std::move(near_).best() : std::move(parts_);
  }

 private:
  std::string_view wanted_;
  std::vector<std::string> parts_;
  NearTexts near_;
};

std::vector<std::string> near_names(const FunctionTable& table, std::string_view wanted) {
  NearFunctions near(wanted);
  Demangler demangler(kDemangled);
  for (const FunctionEntry& entry : table.entries) {
    if (table.stopped()) break;
    const Demangled demangled = demangler.demangle(entry.symbol);
    near.offer(demangled.name.empty() ? entry.symbol : demangled.without_parameters);
  }
  return std::move(near).best();
}

std::size_t count_addresses(const FunctionTable& table) {
  std::vector<std::uint64_t> addresses;
  for (const FunctionEntry& entry : table.entries) addresses.push_back(entry.address);
  std::ranges::sort(addresses);
  return static_cast<std::size_t>(std::unique(addresses.begin(), addresses.end()) - addresses.begin());
}

}  // namespace

FunctionHints hints_for_function(const ElfFile& file, const FunctionName& name, const StopToken& stop) {
  const OpenedFile& opened = *Inside::of(file);
  const FunctionTable table(opened, stop);
  FunctionHints hints;
  if (!has_glob(name.text())) {
    // A name asked for as x@VERSION, or with parameters, is looked for without these.
    const std::string_view text = name.text();
    hints.near = near_names(table, text.substr(0, text.find_first_of("@(", 1)));
  }
  if (!table.has_symtab) {
    const std::size_t known = count_addresses(table);
    std::string hint = opened.path.string() + " is stripped";
    if (known == 0)
      hint += " and exports no function: none is known";
    else
      hint += fmt::format(": only the {} {} it exports {} known", known, known == 1 ? "function" : "functions",
                          known == 1 ? "is" : "are");
    const std::string where = where_symbols_are(package_of(opened.path), build_id(opened.file, opened.image));
    if (!where.empty()) hint += "; " + where;
    hints.stripped = std::move(hint);
  }
  return hints;
}

}  // namespace usdt::elf
