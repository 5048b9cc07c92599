// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "usdt/result.hpp"

struct btf_type;

namespace usdt::btf {

/// The class of a value, past typedefs and qualifiers.
enum class ValueClass : std::uint8_t { none, integer, boolean, character, enumeration, pointer, structure, other };

/// A parameter's or return value's type, as far as reading it needs.
struct ValueType {
  ValueClass value_class = ValueClass::none;  ///< none: void
  std::uint32_t size = 0;                     ///< bytes
  bool is_signed = false;
  bool text = false;          ///< pointer to (const) char
  std::uint32_t type_id = 0;  ///< as the prototype has it
};

struct Parameter {
  std::string_view name;  ///< may be empty
  ValueType type;
};

struct Prototype {
  std::vector<Parameter> parameters;
  ValueType result;
  bool varargs = false;
};

/// The properties of a struct's or union's members that decide how it is passed.
struct Layout {
  std::uint32_t alignment = 1;  ///< of the strictest member; attributes are not in BTF
  bool packed = false;          ///< a member lies off its alignment
  bool floats = false;          ///< a member is floating-point
  bool blocks = false;          ///< it is of, or a member struct or array is of, a size other than 0, 1, 2, 4 and 8
};

/// A function that the types describe (BTF_KIND_FUNC).
struct Function {
  std::uint32_t id = 0;
  std::uint32_t proto = 0;  ///< BTF_KIND_FUNC_PROTO
  std::string_view name;
};

/// The type information of the kernel or of one module (Documentation/bpf/btf.rst). Read by ourselves: a trace waits
/// for it, and libbpf 1.1, which checks and copies every type, takes six times as long. Immutable; shared by threads.
class Types {
 public:
  /// /sys/kernel/btf/vmlinux (5.4). not_supported where the kernel has none.
  [[nodiscard]] static Result<std::shared_ptr<const Types>> load();
  /// /sys/kernel/btf/MODULE (5.11), whose ids and strings go on where `base` ends.
  [[nodiscard]] static Result<std::shared_ptr<const Types>> load_module(std::string_view module,
                                                                        std::shared_ptr<const Types> base);
  /// Errors: malformed, naming what contradicts the format.
  [[nodiscard]] static Result<std::shared_ptr<const Types>> parse(std::vector<std::byte> bytes,
                                                                  std::shared_ptr<const Types> base = nullptr);

  /// Every BTF_KIND_FUNC of this BTF (not of its base), by id.
  [[nodiscard]] std::vector<Function> functions() const;
  /// The functions() that have one of `names`, by id.
  [[nodiscard]] std::vector<Function> functions_of(const std::unordered_set<std::string_view>& names) const;
  /// BTF_KIND_FUNC of this BTF by name: the first; 0: none.
  [[nodiscard]] std::uint32_t function_id(std::string_view called) const noexcept;
  /// The `id` of the raw tracepoint NAME; 0: none.
  [[nodiscard]] std::uint32_t tracepoint_id(std::string_view called) const noexcept;
  /// Raw tracepoints: typedef btf_trace_NAME of a pointer to a prototype whose first parameter (void *__data) is no
  /// argument. `name` without "btf_trace_", `id` the typedef's, `proto` a prototype with these parameters, named where
  /// the kernel names them.
  [[nodiscard]] std::vector<Function> tracepoints() const;
  /// Errors: malformed (`proto` is no BTF_KIND_FUNC_PROTO).
  [[nodiscard]] Result<Prototype> prototype(std::uint32_t proto) const;
  /// The layout of a struct or union, with the alignments of 64-bit machines.
  [[nodiscard]] Layout layout(std::uint32_t id) const;
  /// The enumerator of `value` in an enum type; empty: none.
  [[nodiscard]] std::string_view enumerator(std::uint32_t id, std::uint64_t value) const;
  /// All of an enum type in order, values in their low bytes; none for other types.
  [[nodiscard]] std::vector<std::pair<std::string_view, std::uint64_t>> enumerators(std::uint32_t id) const;
  /// Byte offset of a struct's member that is no bit-field, looked for in anonymous structs and unions too. not_found.
  [[nodiscard]] Result<std::uint32_t> member_offset(std::string_view structure, std::string_view member) const;
  /// The size of a struct in bytes. Errors: not_found.
  [[nodiscard]] Result<std::uint32_t> structure_size(std::string_view structure) const;

  /// The entry of a type, as the kernel wrote it. Null: void, and ids that no type has.
  [[nodiscard]] const btf_type* type(std::uint32_t id) const noexcept;
  /// The entry past qualifiers and tags; null as of type().
  [[nodiscard]] const btf_type* unqualified(std::uint32_t id) const noexcept;
  /// The string at an offset that an entry has.
  [[nodiscard]] std::string_view name(std::uint32_t offset) const noexcept { return name_at(offset); }

 private:
  friend class Graph;
  [[nodiscard]] static Result<std::shared_ptr<const Types>> read_kernel();
  [[nodiscard]] std::unordered_map<std::string_view, std::uint32_t> tracepoint_callers() const;
  /// The bytes of a BTF, in memory of ours or of the kernel's.
  struct Storage {
    std::shared_ptr<const void> owner;
    std::span<const std::byte> bytes;
  };
  [[nodiscard]] static Result<Storage> map_or_read(const std::string& path);
  [[nodiscard]] static Storage keep(std::vector<std::byte>&& bytes);
  [[nodiscard]] static Result<std::shared_ptr<const Types>> parse(Storage&& storage,
                                                                  std::shared_ptr<const Types>&& base);
  Types(Storage&& storage, std::shared_ptr<const Types>&& base) noexcept;
  [[nodiscard]] Result<void> index();
  [[nodiscard]] Result<void> index_types(std::uint64_t begin, std::uint64_t end);
  [[nodiscard]] std::uint32_t end_id() const noexcept { return first_id_ + static_cast<std::uint32_t>(types_.size()); }
  /// As name(), its length not yet counted: most names that are looked at are none of those sought.
  [[nodiscard]] const char* name_at(std::uint32_t offset) const noexcept;
  [[nodiscard]] bool is_called(const btf_type& type, std::string_view sought) const noexcept;
  /// The type behind typedefs, qualifiers and tags: 0 for void, nothing for ids of no type and endless chains.
  [[nodiscard]] std::optional<std::uint32_t> resolve(std::uint32_t id) const noexcept;
  [[nodiscard]] bool is_char(std::uint32_t id) const noexcept;
  [[nodiscard]] ValueType value_type(std::uint32_t id) const noexcept;
  /// The same of a parameter: of a struct with one member, that member's.
  [[nodiscard]] ValueType passed_type(std::uint32_t id) const noexcept;
  [[nodiscard]] std::uint64_t array_size(const btf_type* array) const noexcept;
  void add_to(Layout& layout, std::uint32_t id, std::uint32_t bit_offset, unsigned& steps) const;
  [[nodiscard]] std::optional<std::uint32_t> offset_in(std::uint32_t structure, std::string_view member,
                                                       std::unordered_set<std::uint32_t>& seen, unsigned depth) const;

  std::shared_ptr<const void> owner_;
  std::span<const std::byte> bytes_;
  std::shared_ptr<const Types> base_;
  std::uint32_t first_id_ = 1;
  std::uint32_t first_string_ = 0;        ///< string offsets below are the base's
  std::vector<std::uint32_t> types_;      ///< where type first_id_, first_id_ + 1, ... starts in bytes_
  std::vector<std::uint32_t> functions_;  ///< the ids of BTF_KIND_FUNC, and so on
  std::vector<std::uint32_t> structures_;
  std::span<const std::byte> strings_;
};

/// Returns an error about type information that contradicts its format.
[[nodiscard]] Error malformed(std::string_view what);

}  // namespace usdt::btf
