// SPDX-License-Identifier: BSD-2-Clause
// The list of a point's arguments as it grows: objects become arguments of their own, behind the lengths and
// discriminants that it takes to know whether they are there. Private to resolve/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "resolve/object.hpp"
#include "usdt/arg.hpp"
#include "usdt/bpf/spec.h"
#include "usdt/result.hpp"

namespace usdt::resolve {

/// The place in the list that a value goes to.
struct ListPosition {
  std::optional<std::size_t> at = {};        ///< in place of the argument there; nothing: behind all others
  std::optional<std::uint8_t> part_of = {};  ///< Arg::part_of
};

/// Shows a part of the argument at position `whole`.
using ShowPart = std::function<Result<void>(Object part, std::uint8_t whole)>;

/// Appends arguments to a list.
class ValueList {
 public:
  /// Both live as long.
  ValueList(std::vector<Arg>& args, const ObjectTypes& types) : args_(args), types_(types) {}

  [[nodiscard]] const ObjectTypes& types() const noexcept { return types_; }
  [[nodiscard]] std::size_t size() const noexcept { return args_.size(); }
  [[nodiscard]] Arg& operator[](std::size_t n) { return args_[n]; }
  [[nodiscard]] const Arg& operator[](std::size_t n) const { return args_[n]; }
  /// Takes away all arguments but the first ones.
  void shorten_to(std::size_t size) { args_.resize(size); }
  /// Returns whether there is room for one more member with what belongs to it, and an entry that says what is left
  /// out.
  [[nodiscard]] bool has_room() const noexcept { return args_.size() + 4 < USDT_MAX_ARGS; }

  /// Makes an argument of a number that `object`, of that type, is or has.
  [[nodiscard]] Arg make(const Object& object, const TypeInfo& type, Number number) const;
  /// Appends an argument as it is; returns its position. Errors: limit.
  [[nodiscard]] Result<std::size_t> append(Arg arg);
  /// Puts `arg`, which is `object` or a part of it, and says in which list it is and when it is there. Returns its
  /// position.
  [[nodiscard]] Result<std::size_t> put(Arg arg, const Object& object, const ListPosition& to);
  /// Puts an object that has no value of its own, and `why`; its position is what its parts say whose they are.
  [[nodiscard]] Result<std::uint8_t> put_whole(const Object& object, const TypeInfo& type, std::string why,
                                               const ListPosition& to);
  /// Puts the length of a list by that name.
  [[nodiscard]] Result<std::size_t> put_count(const ListLength& length, std::string name, bool hidden,
                                              const ListPosition& to);
  /// The position of the length, which is appended where it is not there yet.
  [[nodiscard]] Result<std::uint8_t> position_of(const ListLength& length);
  /// Says, by an entry of its own, how many of all parts of `object` are left out.
  [[nodiscard]] Result<void> say_left_out(const Object& object, std::uint64_t all, std::uint64_t shown,
                                          std::uint8_t whole);

 private:
  [[nodiscard]] Result<std::uint8_t> position_of(const Alternative& alternative);
  [[nodiscard]] Result<void> place_in_whole(const Object& object, Arg& arg);
  [[nodiscard]] std::optional<std::uint8_t> find_read(const Number& number, std::string_view name) const;

  std::vector<Arg>& args_;
  const ObjectTypes& types_;
};

}  // namespace usdt::resolve
