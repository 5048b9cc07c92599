// SPDX-License-Identifier: BSD-2-Clause
#include "btf/names.hpp"

#include <fmt/format.h>
#include <linux/btf.h>

#include <algorithm>
#include <span>
#include <utility>

#include "btf/info.hpp"

namespace usdt::btf {
namespace {

/// Characters and steps one declaration may take, so that types which contain themselves end; the kernel's longest
/// take a fifth.
constexpr std::size_t kLongestDeclaration = 4096;
/// Characters and steps that each parameter list takes besides, which bounds how deep they nest.
constexpr std::size_t kDeeper = 64;

std::string_view keyword(const btf_type& type) {
  switch (kind_of(type.info)) {
    case BTF_KIND_STRUCT:
      return "struct ";
    case BTF_KIND_UNION:
      return "union ";
    case BTF_KIND_FWD:
      return BTF_INFO_KFLAG(type.info) ? "union " : "struct ";
    case BTF_KIND_ENUM:
    case BTF_KIND_ENUM64:
      return "enum ";
    default:
      return "";
  }
}

/// The qualifiers met on the way to what they qualify; an array's and its element's may be the same.
struct Qualifiers {
  bool is_const = false, is_volatile = false, is_restrict = false;

  [[nodiscard]] std::string text() const {
    return fmt::format("{}{}{}", is_const ? "const " : "", is_volatile ? "volatile " : "",
                       is_restrict ? "restrict " : "");
  }
};

std::string joined(std::string text, std::string_view declarator) {
  if (!declarator.empty()) text.append(" ").append(declarator);
  return text;
}

/// `*` before what was declared so far, which in "char *const x" has qualifiers of its own.
std::string pointer_to(std::string_view qualifiers, std::string_view declarator, bool in_parentheses) {
  std::string text = fmt::format("*{}{}", qualifiers, declarator);
  if (text.back() == ' ') text.pop_back();
  return in_parentheses ? fmt::format("({})", text) : text;
}

/// Writes one declaration, which has room for so many characters and steps.
class Declarer {
 public:
  explicit Declarer(const Types& types) : types_(types) {}
  [[nodiscard]] std::string declare(std::uint32_t id, std::string declarator);

 private:
  [[nodiscard]] std::string parameter_list(const btf_type* proto);

  const Types& types_;
  std::size_t room_ = kLongestDeclaration;
};

/// Walks from the outermost type to the innermost, growing the declarator around what is declared.
std::string Declarer::declare(std::uint32_t id, std::string declarator) {
  Qualifiers qualifiers;
  while (room_ > 0) {
    --room_;
    const btf_type* at = types_.type(id);
    if (!at) return joined(qualifiers.text() + (id == 0 ? "void" : "?"), declarator);
    switch (kind_of(at->info)) {
      case BTF_KIND_TYPE_TAG:  // "user", "rcu": from kernels built by clang only
        break;
      case BTF_KIND_CONST:
        qualifiers.is_const = true;
        break;
      case BTF_KIND_VOLATILE:
        qualifiers.is_volatile = true;
        break;
      case BTF_KIND_RESTRICT:
        qualifiers.is_restrict = true;
        break;
      case BTF_KIND_PTR: {
        const btf_type* to = types_.unqualified(at->type);
        const auto kind = to ? kind_of(to->info) : 0U;
        declarator = pointer_to(qualifiers.text(), declarator, kind == BTF_KIND_ARRAY || kind == BTF_KIND_FUNC_PROTO);
        qualifiers = {};
        break;
      }
      case BTF_KIND_ARRAY: {
        const auto* array = reinterpret_cast<const btf_array*>(at + 1);
        declarator += fmt::format("[{}]", array->nelems);
        id = array->type;
        continue;
      }
      case BTF_KIND_FUNC_PROTO:
        declarator += parameter_list(at);
        qualifiers = {};
        break;
      default: {
        const std::string_view called = types_.name(at->name_off);
        room_ -= std::min(room_, called.size());
        return joined(fmt::format("{}{}{}", qualifiers.text(), keyword(*at), called.empty() ? "{...}" : called),
                      declarator);
      }
    }
    id = at->type;
  }
  return joined("...", declarator);
}

std::string Declarer::parameter_list(const btf_type* proto) {
  std::string text;
  room_ -= std::min(room_, kDeeper);
  const std::span parameters(reinterpret_cast<const btf_param*>(proto + 1), vlen_of(proto->info));
  for (const btf_param& parameter : parameters) {
    const bool is_rest = &parameter == &parameters.back() && parameter.type == 0 && parameter.name_off == 0;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", is_rest ? "..." : declare(parameter.type, {}));
    if (room_ == 0) break;
  }
  return fmt::format("({})", text.empty() ? "void" : text);
}

}  // namespace

std::string declaration(const Types& types, std::uint32_t id, std::string declarator) {
  return Declarer(types).declare(id, std::move(declarator));
}

std::string type_name(const Types& types, std::uint32_t id) { return declaration(types, id, {}); }

std::string prototype_text(const Types& types, std::string_view name, const Prototype& prototype) {
  std::string parameters;
  for (const Parameter& parameter : prototype.parameters) {
    if (!parameters.empty()) parameters += ", ";
    parameters += declaration(types, parameter.type.type_id, std::string(parameter.name));
  }
  if (prototype.varargs) parameters += parameters.empty() ? "..." : ", ...";
  return declaration(types, prototype.result.type_id,
                     fmt::format("{}({})", name, parameters.empty() ? "void" : parameters));
}

}  // namespace usdt::btf
