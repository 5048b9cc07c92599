// SPDX-License-Identifier: BSD-2-Clause
#include "resolve/show_structure.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/try.hpp"

namespace usdt::resolve {
namespace {

/// Shows the members of one struct. A name that several have is that of the struct's own; in base classes it has theirs
/// before it.
class MemberShower {
 public:
  MemberShower(ValueList& list, std::uint8_t whole, unsigned most, const ShowPart& show)
      : list_(list), whole_(whole), most_(most), show_part_(show) {}

  /// Counts the names of all members of a struct.
  [[nodiscard]] Result<void> count_names(TypeId type, unsigned depth);
  /// Shows the members of `object`, which is the struct or nested in it.
  [[nodiscard]] Result<void> show(const Object& object);

  [[nodiscard]] unsigned all() const noexcept { return all_; }
  [[nodiscard]] unsigned shown() const noexcept { return shown_; }

 private:
  [[nodiscard]] Result<void> show_nested(const Object& object, bool is_base);
  [[nodiscard]] Result<void> show_named(Object member, const std::string& name);

  ValueList& list_;
  std::uint8_t whole_;
  unsigned most_;
  const ShowPart& show_part_;
  unsigned all_ = 0;
  unsigned shown_ = 0;
  unsigned nested_ = 0;
  std::map<std::string, unsigned> names_;  ///< of members, and how many have them
  std::vector<TypeId> virtual_bases_;      ///< whose members are left out
  std::string base_;                       ///< "Base::" while those of a base class are shown
};

Result<void> MemberShower::count_names(TypeId type, unsigned depth) {
  const auto members = TRY(list_.types().members_of(type));
  for (const MemberInfo& each : members) {
    const bool nested = each.is_base || each.name.empty();
    if (!nested) ++names_[each.name];
    if (!nested || depth == kMostNested) continue;
    if (each.is_virtual && std::ranges::find(virtual_bases_, each.type) != virtual_bases_.end()) continue;
    if (each.is_virtual) {
      virtual_bases_.push_back(each.type);
      const auto left_out = list_.types().members_of(each.type);
      if (left_out) all_ += static_cast<unsigned>(std::ranges::count(*left_out, false, &MemberInfo::is_base));
      continue;
    }
    TRY(count_names(each.type, depth + 1));
  }
  return {};
}

Result<void> MemberShower::show(const Object& object) {
  const auto members = TRY(list_.types().members_of(object.type.id));
  for (const MemberInfo& each : members) {
    if (each.is_virtual) continue;
    Object member = member_of(list_.types(), object, each);
    if (each.is_base || each.name.empty()) {
      TRY(show_nested(member, each.is_base));
      continue;
    }
    TRY(show_named(std::move(member), each.name));
  }
  return {};
}

Result<void> MemberShower::show_nested(const Object& object, bool is_base) {
  if (nested_ == kMostNested) return {};
  ++nested_;
  const std::string outer = base_;
  if (const auto base = list_.types().info(object.type); is_base && base) base_ += base->text + "::";
  auto shown = show(object);
  base_ = outer;
  --nested_;
  return shown;
}

Result<void> MemberShower::show_named(Object member, const std::string& name) {
  ++all_;
  if (shown_ == most_ || !list_.has_room()) return {};
  ++shown_;
  const bool one_of_several = names_[name] > 1;
  member.text = member.followed_by("." + (one_of_several ? base_ : "") + name);
  member.is_sum = false;
  return show_part_(std::move(member), whole_);
}

/// Shows a variant that is nothing but its name: a hidden part tells it from one whose parts are not known.
Result<void> show_nothing(ValueList& list, const Object& object, std::uint8_t whole) {
  Object nothing;
  nothing.text = object.text;
  TypeInfo number;
  number.type = {.size = 8};
  Arg arg = list.make(nothing, number, Number{Constant{0}});
  arg.part_of = whole;
  arg.hidden = true;
  TRY(list.append(std::move(arg)));
  return {};
}

}  // namespace

Result<void> show_structure(ValueList& list, const Object& object, std::uint8_t whole, unsigned most,
                            const ShowPart& show) {
  MemberShower members(list, whole, most, show);
  TRY(members.count_names(object.type.id, 0));
  TRY(members.show(object));
  if (members.all() == 0 && object.alternative) return show_nothing(list, object, whole);
  return list.say_left_out(object, members.all(), members.shown(), whole);
}

}  // namespace usdt::resolve
