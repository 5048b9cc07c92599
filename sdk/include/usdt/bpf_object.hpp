// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/backend.hpp"
#include "usdt/carrier.hpp"
#include "usdt/plan.hpp"
#include "usdt/result.hpp"

namespace usdt {

/// What `wanted` means on this kernel: never automatic. Errors: not_supported (uprobe_multi before 6.6), no_permission
/// (naming the capability, where the kernel could not be asked for lack of it).
[[nodiscard]] Result<Backend> choose_backend(Backend wanted = Backend::automatic);

struct LoadOptions {
  Backend backend = Backend::automatic;
  Carrier carrier = Carrier::automatic;
  bool site_numbers = true;         ///< CarrierOptions::site_numbers
  bool arguments = true;            ///< CarrierOptions::arguments
  std::uint32_t max_programs = 64;  ///< CarrierOptions::max_programs
  /// The programs to load, of those that are for attach points; empty: all. Each costs the verifier, and so the start
  /// of a trace, some milliseconds an argument.
  std::vector<std::string> programs = {};
};

/// A compiled BPF object: opened from bytes, loaded for one plan. Move-only; its programs and maps live as long as it.
class BpfObject {
 public:
  /// Opens an object made by usdt_add_bpf() or clang. Errors: malformed, with libbpf's words.
  [[nodiscard]] static Result<BpfObject> open(std::span<const std::byte> bytes, std::string_view name = "usdt");
  [[nodiscard]] static Result<BpfObject> open(const std::filesystem::path& path);

  BpfObject(BpfObject&&) noexcept;
  BpfObject& operator=(BpfObject&&) noexcept;
  ~BpfObject();

  /// Sets `const volatile` variable `name` before the load. Errors: not_found, type_mismatch (another size),
  /// invalid_argument (already loaded).
  [[nodiscard]] Result<void> set_constant(std::string_view name, std::span<const std::byte> value);
  template <class T>
  [[nodiscard]] Result<void> set_constant(std::string_view name, const T& value) {
    return set_constant(name, std::as_bytes(std::span(&value, 1)));
  }
  /// Sets a map's entries before the load. Errors: not_found, invalid_argument.
  [[nodiscard]] Result<void> set_max_entries(std::string_view map, std::uint32_t entries);
  /// The same of the size of its values.
  [[nodiscard]] Result<void> set_value_size(std::string_view map, std::uint32_t bytes);
  /// Address of a global variable of .data or .bss, shared with the running program; nullptr before the load or if
  /// there is none. Valid as long as the object.
  [[nodiscard]] void* global(std::string_view name) noexcept;

  /// Decides how specs reach the program (plan_carriers), loads it for `options.backend`, several times where the
  /// carrier wants it, and fills its maps. Errors: no_permission (naming the capability), not_supported (backend,
  /// carrier), limit (carrier), invalid_argument (loaded already; not compiled with usdt/bpf/usdt.bpf.h or libbpf's, or
  /// with ours of another version), io with the verifier's last lines. After an error nothing stays in the kernel.
  [[nodiscard]] Result<void> load(const AttachPlan& plan, const LoadOptions& options = {});
  [[nodiscard]] bool loaded() const noexcept;
  /// What automatic turned into at load.
  [[nodiscard]] Backend backend() const noexcept;

  /// How the specs of the plan travel; empty before the load.
  [[nodiscard]] const CarrierPlan& carriers() const noexcept;

  /// Descriptors, owned by the object; not_found, or invalid_argument before the load.
  [[nodiscard]] Result<int> program_fd(std::string_view name, std::size_t copy = 0) const;
  [[nodiscard]] Result<int> map_fd(std::string_view name) const;

 private:
  friend class Attachment;
  struct Impl;
  explicit BpfObject(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace usdt
