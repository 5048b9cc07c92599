// SPDX-License-Identifier: BSD-2-Clause
// An index as words, for a cache: the number of each kind, then all of that kind. What is read is believed of nothing:
// each number that leads somewhere leads to something.
#include <algorithm>

#include "dwarf/function_index.hpp"

namespace usdt::dwarf {
namespace {

/// Takes words one after the other; behind the end they are 0, and `good` is false.
class WordReader {
 public:
  explicit WordReader(std::span<const std::uint64_t> words) : rest_(words) {}
  [[nodiscard]] bool good() const noexcept { return good_; }
  [[nodiscard]] bool at_end() const noexcept { return rest_.empty(); }

  std::uint64_t next() {
    good_ = good_ && !rest_.empty();
    if (!good_) return 0;
    const std::uint64_t word = rest_.front();
    rest_ = rest_.subspan(1);
    return word;
  }
  /// So many things of `each` words; none if there are not so many.
  std::uint64_t count(std::uint64_t each) {
    const std::uint64_t count = next();
    good_ = good_ && count <= rest_.size() / each;
    return good_ ? count : 0;
  }

 private:
  std::span<const std::uint64_t> rest_;
  bool good_ = true;
};

}  // namespace

std::vector<std::uint64_t> FunctionIndex::words(std::size_t skipped) const {
  std::vector<std::uint64_t> all(skipped);
  all.reserve(skipped + 6 + 2 * scopes_.size() + 4 * functions_.size() + units_.size() + places_.size() +
              unknown_.size());
  all.push_back(end_);
  all.push_back(scopes_.size());
  for (const Scope& each : scopes_) {
    all.push_back(std::uint64_t{each.outer} << 1 | (each.is_namespace ? 1 : 0));
    all.push_back(each.name.packed());
  }
  all.push_back(functions_.size());
  for (const Function& each : functions_)
    all.insert(all.end(), {each.scope, each.name.packed(), each.own_name.packed(), each.linkage_name.packed()});
  all.push_back(units_.size());
  all.insert(all.end(), units_.begin(), units_.end());
  all.push_back(places_.size());
  for (const InUnit& each : places_) all.push_back(std::uint64_t{each.function} << 32 | each.unit);
  all.push_back(unknown_.size());
  all.insert(all.end(), unknown_.begin(), unknown_.end());
  return all;
}

std::optional<FunctionIndex> FunctionIndex::from_words(std::span<const std::uint64_t> words) {
  FunctionIndex index;
  WordReader from(words);
  bool sound = true;
  index.end_ = from.next();
  index.scopes_.resize(from.count(2));
  for (std::size_t i = 0; i < index.scopes_.size(); ++i) {
    const std::uint64_t outer = from.next();
    sound = sound && outer >> 1 <= i;
    index.scopes_[i] = {static_cast<std::uint32_t>(outer >> 1), (outer & 1) != 0, TextPlace::unpacked(from.next())};
  }
  index.functions_.resize(from.count(4));
  for (Function& each : index.functions_) {
    const std::uint64_t scope = from.next();
    sound = sound && scope <= index.scopes_.size();
    each.scope = static_cast<std::uint32_t>(scope);
    each.name = TextPlace::unpacked(from.next());
    each.own_name = TextPlace::unpacked(from.next());
    each.linkage_name = TextPlace::unpacked(from.next());
  }
  index.units_.resize(from.count(1));
  for (std::uint64_t& each : index.units_) each = from.next();
  index.places_.resize(from.count(1));
  for (InUnit& each : index.places_) {
    const std::uint64_t place = from.next();
    each = {static_cast<std::uint32_t>(place >> 32), static_cast<std::uint32_t>(place)};
    sound = sound && each.function < index.functions_.size() && each.unit < index.units_.size();
  }
  index.unknown_.resize(from.count(1));
  for (std::uint32_t& each : index.unknown_) {
    const std::uint64_t unit = from.next();
    sound = sound && unit < index.units_.size();
    each = static_cast<std::uint32_t>(unit);
  }
  if (!sound || !from.good() || !from.at_end() || !std::ranges::is_sorted(index.places_)) return std::nullopt;
  return index;
}

}  // namespace usdt::dwarf
