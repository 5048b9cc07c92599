// SPDX-License-Identifier: BSD-2-Clause
#include "readelf.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <sstream>

namespace usdt::test {
namespace {

/// What follows `label` in `line`, up to a comma; nothing where the label is missing.
std::string field(const std::string& line, const std::string& label, bool to_end = false) {
  const auto at = line.find(label);
  if (at == std::string::npos) return {};
  const std::string rest = line.substr(at + label.size());
  return to_end ? rest : rest.substr(0, rest.find(','));
}

std::string hex(const std::string& number) { return fmt::format("{:#x}", std::strtoull(number.c_str(), nullptr, 16)); }

}  // namespace

std::vector<std::string> notes_by_readelf(const TempDir& dir, const std::filesystem::path& path) {
  std::istringstream lines(run_in(dir, "LC_ALL=C readelf -nW " + path.string()).output);
  std::vector<std::string> notes;
  std::string member, provider, name, location;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("File: ")) {
      const auto open = line.find('(');
      member = open == std::string::npos ? "" : line.substr(open + 1, line.rfind(')') - open - 1);
    }
    // With -W the provider stands at the end of the note's first line.
    if (line.find("    Provider: ") != std::string::npos) provider = field(line, "Provider: ", true);
    if (line.starts_with("    Name: ")) name = field(line, "Name: ", true);
    if (line.starts_with("    Location: ")) {
      location = fmt::format("{} {} {}", hex(field(line, "Location: ")), hex(field(line, "Base: ")),
                             hex(field(line, "Semaphore: ")));
    }
    if (line.starts_with("    Arguments: ")) {
      notes.push_back(
          fmt::format("{} {}:{} {} {}", member, provider, name, location, field(line, "Arguments: ", true)));
    }
  }
  return notes;
}

std::vector<std::string> notes_by_scan(const ScanResult& result) {
  std::vector<std::string> notes;
  for (const Site& s : result.sites) {
    notes.push_back(fmt::format("{} {}:{} {:#x} {:#x} {:#x} {}", s.member, s.provider, s.name, s.pc.value, s.base.value,
                                s.semaphore.value, s.args_text));
  }
  return notes;
}

}  // namespace usdt::test
