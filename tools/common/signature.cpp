// SPDX-License-Identifier: BSD-2-Clause
#include "common/signature.hpp"

namespace usdt::tools {

std::string signature(const std::vector<Arg>& args) {
  std::string out = "(";
  for (const Arg& arg : args) {
    if (out.size() > 1) out += ", ";
    out += type_name(arg.type);
  }
  return out + ")";
}

}  // namespace usdt::tools
