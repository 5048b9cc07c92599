// SPDX-License-Identifier: BSD-2-Clause
#include "stack/java_name.hpp"

#include <algorithm>
#include <optional>

namespace usdt::stack {
namespace {

std::string_view primitive(char code) {
  switch (code) {
    case 'B':
      return "byte";
    case 'C':
      return "char";
    case 'D':
      return "double";
    case 'F':
      return "float";
    case 'I':
      return "int";
    case 'J':
      return "long";
    case 'S':
      return "short";
    case 'V':
      return "void";
    case 'Z':
      return "boolean";
    default:
      return {};
  }
}

std::string dotted(std::string_view name) {
  std::string text(name);
  std::ranges::replace(text, '/', '.');
  return text;
}

/// Takes one type off the front.
std::optional<std::string> take_type(std::string_view& signature) {
  const std::size_t dimensions = std::min(signature.find_first_not_of('['), signature.size());
  signature.remove_prefix(dimensions);
  if (signature.empty()) return std::nullopt;
  std::string type(primitive(signature.front()));
  std::size_t taken = 1;
  if (signature.front() == 'L') {
    const std::size_t end = signature.find(';');
    if (end == signature.npos) return std::nullopt;
    type = dotted(signature.substr(1, end - 1));
    taken = end + 1;
  }
  if (type.empty()) return std::nullopt;
  signature.remove_prefix(taken);
  for (std::size_t i = 0; i < dimensions; ++i) type += "[]";
  return type;
}

}  // namespace

std::string java_method_name(std::string_view class_name, std::string_view method, std::string_view signature) {
  const std::string name = dotted(class_name).append(".").append(method);
  std::string_view rest = signature;
  std::string parameters;
  if (!rest.starts_with('(')) return name + std::string(signature);
  rest.remove_prefix(1);
  while (!rest.starts_with(')')) {
    const auto type = take_type(rest);
    if (!type) return name + std::string(signature);
    parameters.append(parameters.empty() ? "" : ", ").append(*type);
  }
  rest.remove_prefix(1);
  const auto result = take_type(rest);
  if (!result || !rest.empty()) return name + std::string(signature);
  return *result + " " + name + "(" + parameters + ")";
}

bool is_java_method(std::string_view name) {
  const std::size_t type = name.find(' ');
  const std::size_t parameters = name.find('(');
  if (type == name.npos || parameters == name.npos || type >= parameters || !name.ends_with(')')) return false;
  const std::string_view method = name.substr(type + 1, parameters - type - 1);
  return method.find('.') != method.npos && method.find(' ') == method.npos;
}

}  // namespace usdt::stack
