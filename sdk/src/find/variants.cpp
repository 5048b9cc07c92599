// SPDX-License-Identifier: BSD-2-Clause
// C++ compilers make several functions of one destructor or constructor (Itanium C++ ABI, 5.1.4.3): D0 also frees the
// object, D1 and C1 also do so with virtual bases. Such a one calls another, or has it inlined: one destruction would
// be two hits of `~T`.
#include "find/variants.hpp"

#include <algorithm>
#include <map>
#include <string_view>

#include "dwarf/copies.hpp"
#include "elf/demangle.hpp"
#include "elf/function_flow.hpp"

namespace usdt::find {
namespace {

/// Whether a function whose demangled name is `name` is a destructor or constructor: "net::T::~T()", "T<int>::T(int)".
bool is_special(std::string_view name) {
  const std::string_view own = elf::before_parameters(name);
  if (own.find("::~") != own.npos) return true;
  const std::size_t colons = own.rfind("::");
  if (colons == own.npos) return false;
  const std::string_view last = own.substr(colons + 2);
  std::string_view scope = own.substr(0, colons);
  scope = scope.substr(0, scope.find('<'));
  return scope.ends_with(last) && !last.empty();
}

}  // namespace

void Variants::find(const std::vector<Function>& functions) {
  std::map<std::string_view, std::vector<const Function*>> by_name;
  for (const Function& each : functions)
    if (elf::may_be_mangled(each.symbol) && is_special(each.name)) by_name[each.name].push_back(&each);
  for (const auto& [name, variants] : by_name) {
    if (variants.size() < 2) continue;
    for (const Function* one : variants) by_name_[std::string(name)].insert(one->address);
    for (const Function* one : variants) {
      const auto flow = elf::flow_of(code_.elf(), *one, &code_.pieces());
      const auto leads_to = [&](const Function* other) {
        if (other == one || !flow) return false;
        return std::ranges::find(flow->called, other->address) != flow->called.end() ||
               std::ranges::find(flow->targets, other->address) != flow->targets.end();
      };
      if (std::ranges::any_of(variants, leads_to))
        outer_.insert(one->address);
      else if (one->size != 0)
        inner_.push_back({one->address, one->address + one->size});
    }
  }
}

bool Variants::begins_with_another(const Function& function, const dwarf::DebugInfo& debug,
                                   const dwarf::Instance& copy) const {
  const auto variants = by_name_.find(function.name);
  if (variants == by_name_.end()) return false;
  // (GCC's ranges may have an empty one first.)
  std::vector<elf::CodeRange> ranges = dwarf::code_of(debug, copy).copy;
  std::ranges::sort(ranges, {}, &elf::CodeRange::begin);
  const auto first = std::ranges::find_if(ranges, [&](const elf::CodeRange& range) { return range.end > copy.pc; });
  if (first == ranges.end()) return false;
  Function part;
  part.address = std::max(first->begin, copy.pc);
  part.size = first->end.value - part.address.value;
  const auto flow = elf::flow_of(code_.elf(), part, nullptr);
  return flow && !flow->called.empty() && variants->second.contains(flow->called.front());
}

void Variants::leave_out_around_copies(std::vector<FunctionPoint>& points) const {
  for (const elf::CodeRange& variant : inner_) {
    const auto own = std::ranges::find_if(points, [&](const FunctionPoint& point) {
      return !point.inlined && point.moment == Moment::entry && point.distance == 0 && variant.contains(point.pc);
    });
    if (own == points.end()) continue;
    const auto is_copy = [&](const FunctionPoint& point) {
      return point.inlined && point.moment == Moment::entry && variant.contains(point.pc) && point.name == own->name;
    };
    if (std::ranges::any_of(points, is_copy)) points.erase(own);
  }
}

}  // namespace usdt::find
