// SPDX-License-Identifier: BSD-2-Clause
// Follows arguments to what they lead to: members, elements, what pointers point to, texts, as arguments of their own.
// The types may be those of DWARF or of BTF.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "resolve/basic_types.hpp"
#include "resolve/place.hpp"
#include "usdt/arg.hpp"
#include "usdt/bpf/spec.h"
#include "usdt/machine.hpp"
#include "usdt/result.hpp"
#include "usdt/type_graph.hpp"
#include "usdt/value_path.hpp"

namespace usdt::resolve {

/// The arguments of a point with what is known of their types.
struct TypedArgs {
  std::vector<Arg> args;
  std::vector<TypeId> types = {};               ///< as long as `args`, or empty
  std::vector<std::vector<Piece>> pieces = {};  ///< as long as `args`, or empty: FunctionSignature::pieces
};

/// Fails with invalid_argument, about a step of a path.
[[nodiscard]] inline tl::unexpected<Error> refuse_step(std::string message, const PathStep& step) {
  return fail(Error{ErrorKind::invalid_argument, std::move(message), 0, step.column});
}

/// How much of what is no number is shown.
struct Depth {
  unsigned structures = 1;  ///< structs within structs that are shown with their members; 0: none is
  /// The most members of one argument. Where programs look specs up, each costs the verifier 17,000 instructions
  /// (6.18), of at most a million.
  unsigned members = 48;
  unsigned elements = 8;  ///< of one array, at most
};

/// Appends to a list of arguments what paths from its first ones lead to.
class Follower {
 public:
  /// `types`: of the arguments; null: not known, so that nothing but the arguments themselves is found. All must live
  /// as long.
  Follower(TypedArgs& list, const TypeGraph* types, Machine machine, Depth depth)
      : list_(list), types_(types), arch_(arch::for_machine(machine)), depth_(depth), roots_(list.args) {}

  /// The value that `path` names, by that name (Arg::name). What cannot be read is unreadable with the reason. A struct
  /// or array is followed by its members (Arg::part_of), a text by its length where it has one (Arg::length). Errors:
  /// not_found (there is no such argument here), invalid_argument (the types do not have what is asked for, with the
  /// column), limit (no room for more arguments).
  [[nodiscard]] Result<void> add(const ValuePath& path);
  /// Members, elements and texts of argument `n` itself, where it is a struct, an array, or a text or list that is
  /// known: the argument's own place in the list shows them from then on. What a reference refers to is shown where it
  /// is a number, a pointer, a text or a list, or was `asked` for: other objects may be large.
  void open(std::size_t n, bool asked);
  /// Why the bytes that `path` points to are no text: they are an object that has one. Empty: nothing is against it.
  [[nodiscard]] std::string why_no_text(const ValuePath& path) const;

 private:
  /// Anonymous structs and base classes within each other.
  static constexpr unsigned kMostNested = 16;

  /// A type, or so many pointers to it, which casts name.
  struct TypeRef {
    TypeId id = TypeId::none;
    unsigned pointers = 0;
    const BasicType* basic = nullptr;  ///< the type, where `id` is none

    [[nodiscard]] bool is_known() const noexcept { return id != TypeId::none || basic != nullptr; }
  };
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
  /// Elements of some library that are kept elsewhere.
  struct List {
    std::shared_ptr<const ListLength> length;
    Number first;  ///< the address of the first element
    TypeRef element;
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
    std::shared_ptr<const ListLength> length = {};  ///< it is the length of a list, which is in no place of its own

    /// `text` and what is written behind it.
    [[nodiscard]] std::string followed_by(const std::string& rest) const {
      return (is_sum ? "(" + text + ")" : text) + rest;
    }
  };

  // --- numbers: follow.cpp ---
  /// The number of `size` bytes that `object` is, or a pointer or length in it.
  [[nodiscard]] Number number_of(const Object& object, std::uint32_t size) const;

  // --- paths: follow.cpp ---
  [[nodiscard]] bool is_root(const ValuePath& path, std::size_t n) const;
  [[nodiscard]] Result<Object> root_of(const ValuePath& path) const;
  [[nodiscard]] Object object_of(std::size_t n) const;
  [[nodiscard]] Result<TypeInfo> info(TypeRef type) const;
  /// Returns the type that `type`, of which `known` is the info, points to, or is an array of.
  [[nodiscard]] static TypeRef target_of(const TypeRef& type, const TypeInfo& known) noexcept;
  [[nodiscard]] TypeId known_type() const;
  [[nodiscard]] Result<TypeRef> named(const std::string& name) const;
  [[nodiscard]] Result<std::vector<MemberInfo>> members_of(TypeId type) const;
  [[nodiscard]] Result<Object> take(Object object, const PathStep& step) const;
  [[nodiscard]] Result<Object> take_member(Object object, const PathStep& step) const;
  [[nodiscard]] Result<Object> take_part(Object object, const TypeInfo& type, const PathStep& step) const;
  [[nodiscard]] Result<Object> take_element(Object object, const PathStep& step) const;
  [[nodiscard]] Result<Object> take_cast(Object object, const PathStep& step) const;
  [[nodiscard]] Result<Object> take_list_element(const Object& object, const List& list, const PathStep& step) const;
  /// Returns the object that `object`, a pointer or reference, points to.
  [[nodiscard]] Object dereferenced(Object object, TypeRef target) const;
  [[nodiscard]] Result<Object> without_reference(Object object) const;
  /// The member of that name, also one of anonymous members and base classes; nothing: there is none.
  [[nodiscard]] Result<std::optional<MemberInfo>> find_member(TypeId type, std::string_view name,
                                                              unsigned depth = 0) const;
  [[nodiscard]] Result<MemberInfo> one_of(MemberInfo one, MemberInfo other) const;
  [[nodiscard]] std::vector<std::string> near_members(TypeId type, std::string_view name) const;

  [[nodiscard]] Result<void> append_size(const ValuePath& path);

  // --- what is shown: follow_show.cpp ---
  [[nodiscard]] Result<std::size_t> append(Arg arg);
  [[nodiscard]] Arg make(const Object& object, const TypeInfo& type, Number number) const;
  /// Appends `object`, or makes it argument `at`, and what belongs to it.
  [[nodiscard]] Result<void> show(Object object, unsigned depth, std::optional<std::size_t> at,
                                  std::optional<std::uint8_t> part_of);
  [[nodiscard]] Result<bool> show_known(const Object& object, const TypeInfo& type, unsigned depth,
                                        std::optional<std::size_t> at, std::optional<std::uint8_t> part_of);
  /// How many members of one struct there are, those of its anonymous ones and base classes among them.
  struct Shown {
    unsigned all = 0;
    unsigned members = 0;  ///< of which so many are shown
    unsigned nested = 0;
    std::map<std::string, unsigned> names{};  ///< of members, and how many have them
    std::vector<TypeId> virtual_bases{};      ///< whose members are left out
    std::string of{};                         ///< "Base::" while those of a base class are shown
  };
  [[nodiscard]] Result<void> count_names(TypeId type, unsigned depth, Shown& shown) const;
  [[nodiscard]] Result<void> show_members(const Object& object, unsigned depth, std::uint8_t holder, Shown& shown);
  [[nodiscard]] Result<void> say_left_out(const Object& object, std::uint64_t all, std::uint64_t shown,
                                          std::uint8_t holder);
  [[nodiscard]] Result<void> say_empty(const Object& object, std::uint8_t holder);
  /// Returns whether there is room for one more member with what belongs to it, and an entry that says what is left
  /// out.
  [[nodiscard]] bool has_room() const noexcept { return list_.args.size() + 4 < USDT_MAX_ARGS; }
  [[nodiscard]] bool has_characters(const TypeInfo& array) const;
  [[nodiscard]] Result<void> show_characters(const Object& object, const TypeInfo& type, std::uint8_t holder);
  [[nodiscard]] Result<void> show_elements(const Object& object, const TypeInfo& type, unsigned depth,
                                           std::uint8_t holder);

  [[nodiscard]] Result<void> show_number_parts(const Object& object, const TypeInfo& type,
                                               std::optional<std::size_t> at, std::optional<std::uint8_t> part_of);

  // --- what is there only at times: follow_alternatives.cpp ---
  /// The alternative that a member of `object` is; null: it is there at all times that the object is.
  [[nodiscard]] std::shared_ptr<const Alternative> alternative_in(const Object& object, const MemberInfo& member) const;
  [[nodiscard]] std::shared_ptr<const Alternative> alternative_by(const Object& object, const Object& discriminant,
                                                                  AlternativeValues values, std::string reason) const;
  /// Says of `arg`, which is `object` or a part of it, in which list it is and when it is there.
  [[nodiscard]] Result<void> place_in_whole(const Object& object, Arg& arg);
  [[nodiscard]] Result<void> place_in_alternative(const std::shared_ptr<const Alternative>& alternative, Arg& arg);
  [[nodiscard]] Result<bool> show_known_alternatives(const Object& object, const TypeInfo& type, unsigned depth,
                                                     std::optional<std::size_t> at,
                                                     std::optional<std::uint8_t> part_of);

  /// Returns what a std::optional has while it has something.
  [[nodiscard]] std::optional<Object> value_of_optional(const Object& object, const TypeInfo& type) const;
  /// Holds what a std::variant may hold, by its alternatives.
  struct Variant {
    Object index;
    std::vector<Object> values;
  };
  [[nodiscard]] std::optional<Variant> variant_of(const Object& object, const TypeInfo& type) const;
  [[nodiscard]] Result<void> show_variant(const Variant& variant, unsigned depth, std::uint8_t holder);
  /// How many elements a container of C++ has that keeps them in nodes, which are not shown.
  [[nodiscard]] std::optional<Object> size_of_container(const Object& object, const TypeInfo& type) const;
  /// Finds what is written like a member of a type that is known: "value", "index", "size".
  [[nodiscard]] std::optional<Object> known_member(const Object& object, const TypeInfo& type,
                                                   std::string_view name) const;

  // --- interfaces of Go: follow_interfaces.cpp ---
  struct Interface {
    Object word;                                    ///< the first word, which is 0 for nil
    Object type;                                    ///< the address that stands for the type of what it has
    Object data;                                    ///< the second word
    std::shared_ptr<const Alternative> there = {};  ///< it is not nil
    std::shared_ptr<const Alternative> nil = {};
  };
  /// Nothing: `object` is none.
  [[nodiscard]] std::optional<Interface> interface_of(const Object& object, const TypeInfo& type) const;
  [[nodiscard]] Result<void> show_dynamic_type(const Object& object, const Interface& value, std::uint8_t holder,
                                               const std::vector<DynamicType>& types);
  [[nodiscard]] std::optional<Object> value_in_interface(const Object& object, const Interface& value,
                                                         const DynamicType& dynamic) const;
  /// Puts an object into the list, without a value of its own; its position, by which its parts say whose they are.
  /// `at`: it takes the place of the value there.
  [[nodiscard]] Result<std::uint8_t> put_whole(const Object& object, const TypeInfo& type,
                                               std::optional<std::size_t> at, std::optional<std::uint8_t> part_of);
  [[nodiscard]] Result<bool> show_known_interface(const Object& object, const TypeInfo& type, unsigned depth,
                                                  std::optional<std::size_t> at, std::optional<std::uint8_t> part_of);

  // --- texts: follow_texts.cpp ---
  [[nodiscard]] Result<void> show_text(const Object& object, Arg text, Number length, std::optional<std::size_t> at);
  [[nodiscard]] Result<bool> show_known_text(const Object& object, const TypeInfo& type, std::optional<std::size_t> at,
                                             std::optional<std::uint8_t> part_of);
  struct TextOf {
    Number pointer;
    Number length;
  };
  /// The text that an object of a library is; nothing: it is none that is known.
  [[nodiscard]] std::optional<TextOf> known_text(const Object& object, const TypeInfo& type) const;
  [[nodiscard]] std::optional<Object> object_within(const Object& object, std::string_view members) const;
  [[nodiscard]] std::optional<Number> number_within(const Object& object, std::string_view members, TypeKind kind,
                                                    std::string_view of = {}) const;

  // --- bytes: follow_bytes.cpp ---
  /// More would fit no record.
  static constexpr std::uint64_t kMostBytes = 65536;
  /// Says where the bytes are that a path means.
  struct BytesAt {
    Object object;
    TypeInfo type;
    Number address;
    bool is_object = false;  ///< they are the object's own, not those that a number says where they are
  };
  [[nodiscard]] Result<BytesAt> bytes_at(const ValuePath& path) const;
  [[nodiscard]] Type root_type(const ValuePath& path) const;
  [[nodiscard]] Result<void> append_bytes(const ValuePath& path);
  [[nodiscard]] Result<void> append_address(const ValuePath& path);
  [[nodiscard]] Result<void> put_bytes(const ValuePath& path, BytesAt at, std::uint64_t size);
  [[nodiscard]] std::optional<std::uint8_t> position_of_length(const std::string& name) const;

  // --- lists: follow_lists.cpp ---
  /// The array that a std::array is; any other object is itself.
  [[nodiscard]] Object without_wrapper(Object object) const;
  /// Nothing: `object` is no list that is known.
  [[nodiscard]] std::optional<List> list_of(const Object& object) const;
  [[nodiscard]] std::optional<TypeRef> named_exactly(std::string_view name) const;
  [[nodiscard]] Object element_of(const Object& object, const List& list, std::uint64_t index) const;
  /// Shows `object`, if it is a list or a known one whose elements cannot be shown; false: it is neither.
  [[nodiscard]] Result<bool> show_known_list(const Object& object, unsigned depth, std::optional<std::size_t> at,
                                             std::optional<std::uint8_t> part_of);
  [[nodiscard]] std::optional<std::uint8_t> read_of_list(const Number& number, std::string_view name) const;
  /// The position of the length, which is appended where it is not there yet.
  [[nodiscard]] Result<std::uint8_t> hidden_count(const ListLength& length);
  /// Appends the length by that name, or makes it argument `at`.
  [[nodiscard]] Result<std::size_t> put_count(const ListLength& length, std::string name, bool hidden,
                                              std::optional<std::size_t> at);
  /// Puts `object` into the list that it is an element of.
  [[nodiscard]] Result<void> place_in_list(const std::shared_ptr<const Membership>& within, Arg& arg);
  [[nodiscard]] Result<void> put(Arg arg, std::optional<std::size_t> at, std::size_t& where);

  TypedArgs& list_;
  const TypeGraph* types_;
  const arch::Arch& arch_;
  Depth depth_;
  std::vector<Arg> roots_;  ///< as they were: what is opened has another place in the list
  mutable std::uint64_t looked_at_ = 0;
};

}  // namespace usdt::resolve
