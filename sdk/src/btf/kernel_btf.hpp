// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "usdt/result.hpp"

struct btf;

namespace usdt::kernel_btf {

/// The running kernel's type information (/sys/kernel/btf/vmlinux, 5.4). Loading it takes some milliseconds.
class KernelBtf {
 public:
  /// not_supported where the kernel has none.
  [[nodiscard]] static Result<KernelBtf> load();

  /// Byte offset of a member that is no bit-field, looked for in anonymous structs and unions too.
  [[nodiscard]] Result<std::uint32_t> member_offset(std::string_view structure, std::string_view member) const;

 private:
  struct Free {
    void operator()(btf* types) const noexcept;
  };
  explicit KernelBtf(btf* types) noexcept : types_(types) {}
  std::unique_ptr<btf, Free> types_;
};

}  // namespace usdt::kernel_btf
