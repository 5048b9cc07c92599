// SPDX-License-Identifier: BSD-2-Clause
#include "calls_of_function.hpp"

#include <memory>
#include <utility>

namespace usdt::calls {

long twice_and_one(long argument) {
  asm volatile("" : "+r"(argument));  // not known to the compiler, so that it is called and returns
  return 2 * argument + 1;
}

Selection function_at(Moment moment) {
  auto selection = select({FunctionPattern{
      .moment = moment, .target = "/proc/self/exe", .name = "usdt::calls::twice_and_one", .ret_probes = false}});
  EXPECT_TRUE(selection) << selection.error().message;
  for (FunctionPoint& point : selection->files.at(0).functions) {
    FunctionSignature signature = *point.signature;
    signature.args.resize(1);  // without debug information it is words of all argument registers
    signature.args[0].type = {.size = sizeof(long), .is_signed = true};
    signature.result->type = {.size = sizeof(long), .is_signed = true};
    point.signature = std::make_shared<const FunctionSignature>(std::move(signature));
  }
  return std::move(*selection);
}

Seen seen(const LoadedObject& object, const char* variable) {
  Seen value;
  std::memcpy(&value, object.global(variable), sizeof(value));
  return value;
}

}  // namespace usdt::calls
