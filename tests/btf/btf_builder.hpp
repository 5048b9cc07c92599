// SPDX-License-Identifier: BSD-2-Clause
// Type information made by libbpf's writer. Every call returns the new type's id.
#pragma once

#include <bpf/btf.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "btf/types.hpp"

namespace usdt::test {

class BtfBuilder {
 public:
  using Id = std::uint32_t;
  struct Field {
    const char* name;  ///< null: none
    Id type;
    std::uint32_t bit_offset = 0;
    std::uint32_t bits = 0;  ///< of a bit-field
  };
  struct Param {
    std::string name;
    Id type;
  };

  BtfBuilder() : btf_(btf__new_empty(), btf__free) {}
  /// Of a module: goes on where `base` ends, which has to outlive this.
  explicit BtfBuilder(const BtfBuilder* base) : btf_(btf__new_empty_split(base->btf_.get()), btf__free) {}

  Id integer(const char* name, std::size_t size, bool is_signed = false) {
    return id(btf__add_int(get(), name, size, is_signed ? BTF_INT_SIGNED : 0));
  }
  Id boolean() { return id(btf__add_int(get(), "_Bool", 1, BTF_INT_BOOL)); }
  Id floating(const char* name, std::size_t size) { return id(btf__add_float(get(), name, size)); }
  Id pointer(Id to) { return id(btf__add_ptr(get(), static_cast<int>(to))); }
  Id constant(Id of) { return id(btf__add_const(get(), static_cast<int>(of))); }
  Id volatile_of(Id of) { return id(btf__add_volatile(get(), static_cast<int>(of))); }
  Id restrict_of(Id of) { return id(btf__add_restrict(get(), static_cast<int>(of))); }
  Id type_tag(const char* tag, Id of) { return id(btf__add_type_tag(get(), tag, static_cast<int>(of))); }
  Id decl_tag(const char* tag, Id of) { return id(btf__add_decl_tag(get(), tag, static_cast<int>(of), -1)); }
  Id alias(const char* name, Id of) { return id(btf__add_typedef(get(), name, static_cast<int>(of))); }
  Id forward(const char* name, btf_fwd_kind kind) { return id(btf__add_fwd(get(), name, kind)); }
  Id array(Id of, std::uint32_t count) {
    return id(btf__add_array(get(), static_cast<int>(of), static_cast<int>(of), count));
  }
  Id structure(const char* name, std::uint32_t size, const std::vector<Field>& fields = {}) {
    return with_fields(id(btf__add_struct(get(), name, size)), fields);
  }
  Id union_of(const char* name, std::uint32_t size, const std::vector<Field>& fields = {}) {
    return with_fields(id(btf__add_union(get(), name, size)), fields);
  }
  Id enumeration(const char* name, std::uint32_t size,
                 std::initializer_list<std::pair<const char*, std::int64_t>> all) {
    const Id made = id(btf__add_enum(get(), name, size));
    for (const auto& [called, value] : all) id(1 + btf__add_enum_value(get(), called, value));
    return made;
  }
  Id enumeration64(const char* name, bool is_signed, std::initializer_list<std::pair<const char*, std::uint64_t>> all) {
    const Id made = id(btf__add_enum64(get(), name, 8, is_signed));
    for (const auto& [called, value] : all) id(1 + btf__add_enum64_value(get(), called, value));
    return made;
  }
  Id prototype(Id result, const std::vector<Param>& parameters, bool varargs = false) {
    const Id made = id(btf__add_func_proto(get(), static_cast<int>(result)));
    for (const Param& one : parameters)
      id(1 + btf__add_func_param(get(), one.name.empty() ? nullptr : one.name.c_str(), static_cast<int>(one.type)));
    if (varargs) id(1 + btf__add_func_param(get(), nullptr, 0));
    return made;
  }
  Id function(const char* name, Id prototype) {
    return id(btf__add_func(get(), name, BTF_FUNC_STATIC, static_cast<int>(prototype)));
  }

  [[nodiscard]] std::vector<std::byte> bytes() const {
    std::uint32_t size = 0;
    const auto* raw = static_cast<const std::byte*>(btf__raw_data(get(), &size));
    return {raw, raw + size};
  }
  /// Null, and a failed test, where it cannot be parsed.
  [[nodiscard]] std::shared_ptr<const btf::Types> types(std::shared_ptr<const btf::Types> base = nullptr) const {
    auto parsed = btf::Types::parse(bytes(), std::move(base));
    if (parsed) return *parsed;
    ADD_FAILURE() << parsed.error().message;
    return nullptr;
  }

 private:
  [[nodiscard]] ::btf* get() const { return btf_.get(); }
  static Id id(int made) {
    EXPECT_GT(made, 0) << "libbpf refused a type";
    return static_cast<Id>(made);
  }
  Id with_fields(Id made, const std::vector<Field>& fields) {
    for (const Field& field : fields)
      id(1 + btf__add_field(get(), field.name, static_cast<int>(field.type), field.bit_offset,
                            static_cast<__u32>(field.bits)));
    return made;
  }

  std::unique_ptr<::btf, decltype(&btf__free)> btf_;
};

}  // namespace usdt::test
