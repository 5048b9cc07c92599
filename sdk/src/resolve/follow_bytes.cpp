// SPDX-License-Identifier: BSD-2-Clause
// Bytes that are no text: "buf(p, 16)", and addresses of the Internet.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/try.hpp"
#include "resolve/follow.hpp"
#include "usdt/bpf/spec.h"

namespace usdt::resolve {
namespace {

/// What a type is called, less "const struct ".
std::string_view tag_of(std::string_view type) {
  return type.substr(type.find_last_of(' ') + 1);  // npos + 1 is 0
}

/// By the names of C's and the kernel's types.
std::uint32_t size_of_address(std::string_view type) {
  if (tag_of(type) == "in6_addr") return 16;
  return tag_of(type) == "in_addr" ? 4 : 0;
}

}  // namespace

/// Of what a path has led to so far: an object is where its bytes are, a number says where they are.
Result<Follower::BytesAt> Follower::bytes_at(const ValuePath& path) const {
  auto object = root_of(path);
  if (!object) return fail(std::move(object.error()));
  for (std::size_t i = 0; i + 1 < path.steps.size(); ++i) {
    object = take(std::move(*object), path.steps[i]);
    if (!object) return fail(std::move(object.error()));
  }
  auto referred = TRY(without_reference(std::move(*object)));
  BytesAt found{.object = without_wrapper(std::move(referred)), .type = {}, .address = {}};
  if (found.object.length) return refuse_step(fmt::format("{} is a number", found.object.text), path.steps.back());
  auto type = TRY(info(found.object.type));
  found.type = std::move(type);
  if (!found.object.type.is_known()) found.type.type = root_type(path);
  const TypeKind kind = found.type.type.kind;
  if (kind != TypeKind::structure && kind != TypeKind::array) {
    found.address = number_of(found.object, arch_.word_size);
    return found;
  }
  found.is_object = true;
  if (!is_in_memory(found.object.place, found.type.type.size))
    return refuse_step(fmt::format("{} is passed in registers: it has no address", found.object.text),
                       path.steps.back());
  found.address = address_of(found.object.place, found.object.text, arch_);
  return found;
}

/// The type of the argument that a path begins from, as its site has it.
Type Follower::root_type(const ValuePath& path) const {
  for (std::size_t n = 0; n < roots_.size(); ++n)
    if (is_root(path, n)) return roots_[n].type;
  return {};
}

Result<void> Follower::append_bytes(const ValuePath& path) {
  const PathStep& step = path.steps.back();
  auto at = bytes_at(path);
  if (!at) return fail(std::move(at.error()));
  const Type& type = at->type.type;
  const bool number = type.kind == TypeKind::integer || type.kind == TypeKind::pointer || type.kind == TypeKind::text;
  if (!at->is_object && (!number || type.size != arch_.word_size))
    return refuse_step(fmt::format("{} is no pointer", at->object.text), step);
  if (step.name.empty() && step.index > kMostBytes)
    return refuse_step(fmt::format("{} bytes: at most {} are read", step.index, kMostBytes), step);
  std::uint64_t size = step.index;
  if (step.name.empty() && size == 0) size = at->is_object ? type.size : 0;
  if (step.name.empty() && size == 0)
    return refuse_step(fmt::format("how many bytes of {0}? buf({0}, 16)", at->object.text), step);
  return put_bytes(path, std::move(*at), size);
}

Result<void> Follower::append_address(const ValuePath& path) {
  const PathStep& step = path.steps.back();
  auto at = TRY(bytes_at(path));
  std::uint32_t size = at.is_object ? size_of_address(at.type.text) : 0;
  if (!at.is_object && at.type.type.kind == TypeKind::pointer && at.object.type.is_known()) {
    auto target = TRY(info(target_of(at.object.type, at.type)));
    size = size_of_address(target.text);
    if (tag_of(target.text) == "sockaddr")
      return refuse_step(
          fmt::format("{0} may point to an address of any family: say which, as in ntop(((struct sockaddr_in "
                      "*){0})->sin_addr)",
                      at.object.text),
          step);
  }
  if (size != 0) return put_bytes(path, std::move(at), size);
  const Type& type = at.type.type;
  if (at.is_object)
    return refuse_step(
        fmt::format("{0} is {1}: say how many bytes of it are the address, ntop({0}, 4) or ntop({0}, 16)",
                    at.object.text, at.type.text),
        step);
  Number number = number_of(at.object, type.size);
  at.object.text = path.text;
  auto appended = append(make(at.object, at.type, std::move(number)));
  return appended ? Result<void>{} : fail(std::move(appended.error()));
}

/// A pointer to bytes with their number, as texts with lengths are.
Result<void> Follower::put_bytes(const ValuePath& path, BytesAt at, std::uint64_t size) {
  const PathStep& step = path.steps.back();
  Object object = std::move(at.object);
  object.text = path.text;
  TypeInfo pointer;
  pointer.type = {.size = arch_.word_size, .kind = TypeKind::pointer};
  pointer.text = "void *";
  Arg bytes = make(object, pointer, std::move(at.address));
  if (step.name.empty()) {
    Object of_length = object;
    of_length.text = fmt::format("the length of {}", path.text);
    TypeInfo word;
    word.type = {.size = 8};
    word.text = "unsigned long";
    auto length = TRY(append(make(of_length, word, Number{Constant{size}})));
    bytes.length = static_cast<std::uint8_t>(length);
  } else {
    const auto length = position_of_length(step.name);
    if (!length) return fail(ErrorKind::not_found, fmt::format("{}: no such argument", step.name));
    const Type& type = list_.args[*length].type;
    if (list_.args[*length].readable() && (type.kind != TypeKind::integer || type.size > 8))
      return refuse_step(fmt::format("{} is no number of bytes", step.name), step);
    bytes.length = *length;
  }
  auto appended = append(std::move(bytes));
  return appended ? Result<void>{} : fail(std::move(appended.error()));
}

/// Of an argument, or of what was appended before by that name.
std::optional<std::uint8_t> Follower::position_of_length(const std::string& name) const {
  const auto path = parse_value_path(name);
  if (!path) return std::nullopt;
  for (std::size_t n = 0; n < list_.args.size(); ++n) {
    const bool meant = path->steps.empty() ? n < roots_.size() && is_root(*path, n)
                                           : list_.args[n].derived && list_.args[n].name() == name;
    if (meant && n < USDT_LENGTH_ARGS) return static_cast<std::uint8_t>(n);
  }
  return std::nullopt;
}

}  // namespace usdt::resolve
