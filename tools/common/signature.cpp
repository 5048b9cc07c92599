// SPDX-License-Identifier: BSD-2-Clause
#include "common/signature.hpp"

namespace usdt::tools {

std::string signature(const std::vector<Arg>& args) {
  std::string out = "(";
  for (const Arg& arg : args) {
    if (out.size() > 1) out += ", ";
    const std::string type = arg.c_type().empty() ? type_name(arg.type) : std::string(arg.c_type());
    out += type;
    if (!arg.name().empty()) out.append(type.back() == '*' ? "" : " ").append(arg.name());
  }
  return out + ")";
}

}  // namespace usdt::tools
