// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "usdt/result.hpp"

struct btf_type;

namespace usdt::kernel_btf {

/// The type information of a kernel (Documentation/bpf/btf.rst). Read by ourselves because a trace that follows
/// children waits for it: 3 ms here, where libbpf 1.1, which checks and copies every type, takes 17.
class KernelBtf {
 public:
  /// /sys/kernel/btf/vmlinux (5.4). not_supported where the kernel has none.
  [[nodiscard]] static Result<KernelBtf> load();
  /// Errors: malformed, naming what contradicts the format.
  [[nodiscard]] static Result<KernelBtf> parse(std::vector<std::byte> bytes);

  /// Byte offset of a struct's member that is no bit-field, looked for in anonymous structs and unions too. not_found.
  [[nodiscard]] Result<std::uint32_t> member_offset(std::string_view structure, std::string_view member) const;

 private:
  explicit KernelBtf(std::vector<std::byte>&& bytes) noexcept : bytes_(std::move(bytes)) {}
  [[nodiscard]] Result<void> index_types();
  [[nodiscard]] const btf_type* type(std::uint32_t id) const noexcept;
  [[nodiscard]] std::string_view name(std::uint32_t offset) const noexcept;
  [[nodiscard]] std::optional<std::uint32_t> offset_in(const btf_type* structure, std::string_view member,
                                                       unsigned depth) const;

  std::vector<std::byte> bytes_;
  std::vector<std::uint32_t> types_;  ///< where type id 1, 2, ... starts in bytes_
  std::span<const std::byte> strings_;
};

}  // namespace usdt::kernel_btf
