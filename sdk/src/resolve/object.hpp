// SPDX-License-Identifier: BSD-2-Clause
// Objects that paths lead to and arguments show: where one is, of what type, and what it takes for it to be there; and
// the ways from one object to another that all of them share. Private to resolve/.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "resolve/object_types.hpp"
#include "resolve/place.hpp"
#include "usdt/arg.hpp"

namespace usdt::resolve {

struct Membership;
struct Alternative;

/// How long a list is: the number it keeps, or the address behind its last element.
struct ListLength {
  Number number;
  std::optional<Number> first;  ///< of an address: that of the first element
  Type type;
  std::uint32_t size = 0;  ///< bytes of an element
  std::string list;        ///< as written
  bool result = false;
  Needs needs = {};
  std::shared_ptr<const Membership> within = {};  ///< it is an element of another list itself
  std::shared_ptr<const Alternative> alternative = {};

  /// More do not fit into memory.
  [[nodiscard]] std::uint64_t most(unsigned word_size) const noexcept {
    return ((std::uint64_t{1} << (8 * word_size - 1)) - 1) / size;
  }
};

/// A place in a list.
struct Membership {
  std::shared_ptr<const ListLength> length;
  std::uint64_t index = 0;
};

/// One of several things that an object may be, of which a number in it tells.
struct Alternative {
  Number discriminant;
  Type type;         ///< of that number, without a sign
  std::string name;  ///< "the discriminant of shape"
  AlternativeValues values;
  std::string reason;  ///< why it is not there
  bool result = false;
  Needs needs = {};
  std::shared_ptr<const Membership> within = {};  ///< the whole object is in a list
  std::shared_ptr<const Alternative> outer = {};  ///< the whole object is there only at times itself
};

/// The object that the steps of a path have led to so far.
struct Object {
  Place place;
  TypeRef type;
  BitRange range = {};
  std::string text;     ///< as written so far
  bool is_sum = false;  ///< `text` begins with an operator, and wants parentheses before what follows
  bool result = false;
  Needs needs = {};
  std::shared_ptr<const Membership> within = {};        ///< it is an element of a list, or a part of one
  std::shared_ptr<const Alternative> alternative = {};  ///< it is there only at times, or a part of such an object
  std::shared_ptr<const ListLength> length = {};        ///< it is the length of a list, which is in no place of its own

  /// `text` and what is written behind it.
  [[nodiscard]] std::string followed_by(const std::string& rest) const {
    return (is_sum ? "(" + text + ")" : text) + rest;
  }
};

/// The number of `size` bytes that `object` is, or a pointer or length in it.
[[nodiscard]] Number number_of(const ObjectTypes& types, const Object& object, std::uint32_t size);
/// Returns the object that `object`, a pointer or reference, points to.
[[nodiscard]] Object dereferenced(const ObjectTypes& types, Object object, const TypeRef& target);
/// Returns what a reference refers to; any other object is itself.
[[nodiscard]] Result<Object> without_reference(const ObjectTypes& types, Object object);
/// Returns the part of `object` that `member`, a member of its type, is. Its text stays.
[[nodiscard]] Object member_of(const ObjectTypes& types, Object object, const MemberInfo& member);
/// The member at "a.b.c" of an object, if it is always there; nothing: there is none.
[[nodiscard]] std::optional<Object> object_within(const ObjectTypes& types, const Object& object,
                                                  std::string_view members);
/// Says that a part of `object` is there only while `discriminant` has one of these values, or else why not.
[[nodiscard]] std::shared_ptr<const Alternative> alternative_by(const ObjectTypes& types, const Object& object,
                                                                const Object& discriminant, AlternativeValues values,
                                                                std::string reason);

}  // namespace usdt::resolve
