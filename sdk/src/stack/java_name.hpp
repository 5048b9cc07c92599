// SPDX-License-Identifier: BSD-2-Clause
// Names of Java's methods as OpenJDK writes them in perf maps: "int shop.Cart.total(java.lang.String, int[])". Private
// to stack/.
#pragma once

#include <string>
#include <string_view>

namespace usdt::stack {

/// Makes such a name of what HotSpot's probes tell: "shop/Cart", "total", "(Ljava/lang/String;[I)I" (section 4.3 of the
/// JVM's specification). What is no signature is left as it is, behind the name.
[[nodiscard]] std::string java_method_name(std::string_view class_name, std::string_view method,
                                           std::string_view signature);
/// Whether a line of a perf map is of a method, not of a stub ("StubRoutines (1)").
[[nodiscard]] bool is_java_method(std::string_view name);

}  // namespace usdt::stack
