// SPDX-License-Identifier: BSD-2-Clause
#include "resolve/members.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "arch/arch.hpp"
#include "base/try.hpp"
#include "resolve/byte_values.hpp"
#include "resolve/known_texts.hpp"
#include "resolve/path_step.hpp"

namespace usdt::resolve {
namespace {

/// A type that the source has where the arguments are.
TypeId any_known(const std::vector<TypeId>& types) {
  const auto known = std::ranges::find_if(types, [](TypeId each) { return each != TypeId::none; });
  return known == types.end() ? TypeId::none : *known;
}

}  // namespace

MemberAdder::MemberAdder(TypedArgs& list, const TypeGraph* types, Machine machine, const Depth& depth)
    : list_(list),
      types_(types, arch::for_machine(machine), any_known(list.types)),
      paths_(list, types_),
      values_(list.args, types_),
      shower_(values_, depth) {}

Result<void> MemberAdder::add(const ValuePath& path) {
  if (!path.steps.empty()) {
    if (path.steps.back().kind == PathStep::Kind::size_of) return append_size(path);
    if (path.steps.back().kind == PathStep::Kind::bytes) return append_bytes(values_, paths_, path);
    if (path.steps.back().kind == PathStep::Kind::address) return append_address(values_, paths_, path);
    if (path.steps.back().kind == PathStep::Kind::distance) return append_distance(values_, paths_, path);
  }
  auto object = TRY(paths_.end_of(path));
  object.text = path.text;
  object.is_sum = true;
  return shower_.show(std::move(object), std::nullopt);
}

void MemberAdder::open(std::size_t n, bool asked) {
  if (types_.graph() == nullptr || n >= list_.types.size()) return;
  if (list_.args[n].length) return;  // a text whose length is another argument (Fortran)
  auto object = without_reference(types_, paths_.object_of(n));
  if (!object) return;
  const auto type = types_.info(object->type);
  if (!type) return;
  const bool by_reference = std::holds_alternative<BehindPointer>(object->place);
  if (type->type.kind != TypeKind::structure && type->type.kind != TypeKind::array && type->parts.empty()) {
    if (!by_reference || type->type.size == 0) return;
    asked = true;
  }
  const std::vector<Arg> before = list_.args;
  const auto shown =
      by_reference && !asked ? shower_.show_known(*object, *type, n) : shower_.show(std::move(*object), n);
  if (!shown) list_.args = before;
}

std::string MemberAdder::why_no_text(const ValuePath& path) const {
  auto object = paths_.end_of(path);
  if (object) object = without_reference(types_, std::move(*object));
  return object ? resolve::why_no_text(types_, *object, path.text) : std::string();
}

/// "sizeof(x)" of an object, else of a type of that name.
Result<TypeRef> MemberAdder::type_of_size(const ValuePath& path) const {
  const auto root = paths_.root_of(path);
  if (root) return paths_.before_last_step(path).map([](const Object& object) { return object.type; });
  const auto* type = std::get_if<std::string>(&path.root);
  if (path.steps.size() != 1 || types_.graph() == nullptr || type == nullptr) return fail(root.error());
  const auto [name, pointers] = split_pointers(*type);
  const auto found = TRY(types_.graph()->find_beside(name, types_.beside()));
  return TypeRef{.id = found, .pointers = pointers};
}

Result<void> MemberAdder::append_size(const ValuePath& path) {
  const auto type = TRY(type_of_size(path));
  const auto what = TRY(types_.info(type));
  if (what.type.size == 0)
    return fail(ErrorKind::invalid_argument, fmt::format("{}: its size is not known", path.text));
  Object size;
  size.text = path.text;
  TypeInfo number;
  number.type = {.size = 8};
  number.text = "unsigned long";
  TRY(values_.append(values_.make(size, number, Number{Constant{what.type.size}})));
  return {};
}

}  // namespace usdt::resolve
