// SPDX-License-Identifier: BSD-2-Clause
// Types of the kernel as C writes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "btf/types.hpp"

namespace usdt::btf {

/// Returns a type with what is declared in its place: "struct sk_buff *skb", "int (*done)(void)".
[[nodiscard]] std::string declaration(const Types& types, std::uint32_t id, std::string declarator);
/// Returns a type: "const char *", "struct sk_buff *", "enum zone_type", "int (*)(void)".
[[nodiscard]] std::string type_name(const Types& types, std::uint32_t id);
/// Returns "ssize_t vfs_read(struct file *file, char *buf, size_t count, loff_t *pos)".
[[nodiscard]] std::string prototype_text(const Types& types, std::string_view name, const Prototype& prototype);

}  // namespace usdt::btf
