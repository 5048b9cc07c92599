// SPDX-License-Identifier: BSD-2-Clause
#include "resolve/byte_values.hpp"

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/try.hpp"
#include "resolve/known_lists.hpp"
#include "resolve/path_step.hpp"

namespace usdt::resolve {
namespace {

/// More would fit no record.
constexpr std::uint64_t kMostBytes = 65536;

/// The name of a type, less "const struct ".
std::string_view tag_of(std::string_view type) {
  return type.substr(type.find_last_of(' ') + 1);  // npos + 1 is 0
}

/// By the names of C's and the kernel's types.
std::uint32_t size_of_address(std::string_view type) {
  if (tag_of(type) == "in6_addr") return 16;
  return tag_of(type) == "in_addr" ? 4 : 0;
}

/// Says where the bytes are that a path means.
struct BytesAt {
  Object object;
  TypeInfo type;
  Number address;
  bool is_object = false;  ///< they are the object's own, not those that a number says where they are
};

/// An object is where its bytes are; a number says where they are.
Result<BytesAt> bytes_at(const ObjectTypes& types, const PathWalker& paths, const ValuePath& path) {
  auto object = TRY(paths.before_last_step(path));
  BytesAt found{.object = without_wrapper(types, std::move(object)), .type = {}, .address = {}};
  if (found.object.length) return refuse_step(fmt::format("{} is a number", found.object.text), path.steps.back());
  found.type = TRY(types.info(found.object.type));
  if (!found.object.type.is_known()) found.type.type = paths.root_type(path);
  const TypeKind kind = found.type.type.kind;
  if (kind != TypeKind::structure && kind != TypeKind::array) {
    found.address = number_of(types, found.object, types.arch().word_size);
    return found;
  }
  found.is_object = true;
  if (!is_in_memory(found.object.place, found.type.type.size))
    return refuse_step(fmt::format("{} is passed in registers: it has no address", found.object.text),
                       path.steps.back());
  found.address = address_of(found.object.place, found.object.text, types.arch());
  return found;
}

/// Says where bytes are that are the object's own, or behind what is a pointer by its size.
Result<BytesAt> pointed_at(const ObjectTypes& types, const PathWalker& paths, const ValuePath& path) {
  auto at = TRY(bytes_at(types, paths, path));
  const Type& type = at.type.type;
  const bool number = type.kind == TypeKind::integer || type.kind == TypeKind::pointer || type.kind == TypeKind::text;
  if (!at.is_object && (!number || type.size != types.arch().word_size))
    return refuse_step(fmt::format("{} is no pointer", at.object.text), path.steps.back());
  return at;
}

/// The position of the value that says how many bytes there are: an argument, or what was appended before by that name.
std::optional<std::uint8_t> position_of_length(const ValueList& list, const PathWalker& paths,
                                               const std::string& name) {
  const auto path = parse_value_path(name);
  if (!path) return std::nullopt;
  for (std::size_t n = 0; n < list.size(); ++n) {
    const bool meant = path->steps.empty() ? paths.is_root(*path, n) : list[n].derived && list[n].name() == name;
    if (meant) return static_cast<std::uint8_t>(n);
  }
  return std::nullopt;
}

/// Appends the number of bytes that a path says itself.
Result<std::uint8_t> append_length(ValueList& list, Object object, const ValuePath& path, std::uint64_t size) {
  object.text = fmt::format("the length of {}", path.text);
  TypeInfo word;
  word.type = {.size = 8};
  word.text = "unsigned long";
  const auto position = TRY(list.append(list.make(object, word, Number{Constant{size}})));
  return static_cast<std::uint8_t>(position);
}

/// The length of bytes whose number the value called `name` says.
Result<std::uint8_t> named_length(const ValueList& list, const PathWalker& paths, const PathStep& step) {
  const auto length = position_of_length(list, paths, step.name);
  if (!length) return fail(ErrorKind::not_found, fmt::format("{}: no such argument", step.name));
  const Arg& arg = list[*length];
  if (arg.readable() && (arg.type.kind != TypeKind::integer || arg.type.size > 8))
    return refuse_step(fmt::format("{} is no number of bytes", step.name), step);
  return *length;
}

/// Appends a pointer to bytes with their number, as texts with lengths are.
Result<void> put_bytes(ValueList& list, const PathWalker& paths, const ValuePath& path, BytesAt at,
                       std::uint64_t size) {
  const PathStep& step = path.steps.back();
  at.object.text = path.text;
  TypeInfo pointer;
  pointer.type = {.size = list.types().arch().word_size, .kind = TypeKind::pointer};
  pointer.text = "void *";
  Arg bytes = list.make(at.object, pointer, std::move(at.address));
  bytes.length = TRY(step.name.empty() ? append_length(list, at.object, path, size) : named_length(list, paths, step));
  TRY(list.put(std::move(bytes), at.object, {}));
  return {};
}

}  // namespace

Result<void> append_bytes(ValueList& list, const PathWalker& paths, const ValuePath& path) {
  const PathStep& step = path.steps.back();
  auto at = TRY(pointed_at(list.types(), paths, path));
  if (step.name.empty() && step.index > kMostBytes)
    return refuse_step(fmt::format("{} bytes: at most {} are read", step.index, kMostBytes), step);
  std::uint64_t size = step.index;
  if (step.name.empty() && size == 0) size = at.is_object ? at.type.type.size : 0;
  if (step.name.empty() && size == 0)
    return refuse_step(fmt::format("how many bytes of {0}? buf({0}, 16)", at.object.text), step);
  return put_bytes(list, paths, path, std::move(at), size);
}

Result<void> append_distance(ValueList& list, const PathWalker& paths, const ValuePath& path) {
  auto from = TRY(parse_value_path(path.steps.back().name));
  from.steps.push_back(path.steps.back());
  const auto end = TRY(pointed_at(list.types(), paths, path));
  const auto begin = TRY(pointed_at(list.types(), paths, from));
  for (const BytesAt& each : {std::cref(end), std::cref(begin)})
    if (each.is_object && each.type.type.kind == TypeKind::structure)
      return refuse_step(fmt::format("{} is {}, and no address", each.object.text, each.type.text), path.steps.back());
  const ListLength length{.number = end.address,
                          .first = begin.address,
                          .type = {.size = list.types().arch().word_size},
                          .size = 1,
                          .list = path.steps.back().name,
                          .result = end.object.result,
                          .needs = end.object.needs,
                          .within = end.object.within,
                          .alternative = end.object.alternative};
  TRY(list.put_count(length, path.text, true, {}));
  return {};
}

Result<void> append_address(ValueList& list, const PathWalker& paths, const ValuePath& path) {
  const ObjectTypes& types = list.types();
  const PathStep& step = path.steps.back();
  auto at = TRY(bytes_at(types, paths, path));
  std::uint32_t size = at.is_object ? size_of_address(at.type.text) : 0;
  if (!at.is_object && at.type.type.kind == TypeKind::pointer && at.object.type.is_known()) {
    const auto target = TRY(types.info(target_of(at.object.type, at.type)));
    size = size_of_address(target.text);
    if (tag_of(target.text) == "sockaddr")
      return refuse_step(
          fmt::format("{0} may point to an address of any family: say which, as in ntop(((struct sockaddr_in "
                      "*){0})->sin_addr)",
                      at.object.text),
          step);
  }
  if (size != 0) return put_bytes(list, paths, path, std::move(at), size);
  if (at.is_object)
    return refuse_step(
        fmt::format("{0} is {1}: say how many bytes of it are the address, ntop({0}, 4) or ntop({0}, 16)",
                    at.object.text, at.type.text),
        step);
  Number number = number_of(types, at.object, at.type.type.size);
  at.object.text = path.text;
  TRY(list.append(list.make(at.object, at.type, std::move(number))));
  return {};
}

}  // namespace usdt::resolve
