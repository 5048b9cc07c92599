// SPDX-License-Identifier: BSD-2-Clause
// One libbpf object, opened and then loaded: a copy of the application's programs with constants of its own. Private to
// attach/.
#pragma once

#include <bpf/libbpf.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sys/unique_fd.hpp"
#include "usdt/result.hpp"

namespace usdt::backends {

/// Says where a global variable is: the map of its section, its offset there and its size.
struct Variable {
  bpf_map* map;
  std::uint32_t offset;
  std::uint32_t size;
};

/// The extent of the verifier's log about a program that it refuses. `all` takes several times as long as a refusal:
/// 17 s instead of 4 s for a million instructions.
enum class VerifierLog : std::uint8_t { complaint, all };

class ObjectCopy {
 public:
  /// Errors: malformed, with libbpf's words.
  [[nodiscard]] static Result<ObjectCopy> open(std::span<const std::byte> bytes, const std::string& name);

  /// Makes its maps and loads its programs. Errors: limit (too few descriptors left), no_permission, verifier, io.
  [[nodiscard]] Result<void> load(VerifierLog log) const;

  /// Maps that its code has by their descriptors stay open as long as it, which is loaded and cloned.
  void keep(std::vector<sys::UniqueFd> maps) noexcept { maps_ = std::move(maps); }

  [[nodiscard]] bpf_object* get() const noexcept { return object_.get(); }
  [[nodiscard]] bpf_map* map(const char* name) const noexcept;
  [[nodiscard]] std::optional<Variable> variable(const char* section, std::string_view name) const;

  /// Bytes a `const volatile` variable will be loaded with; empty if there is none of that name.
  [[nodiscard]] std::span<std::byte> constant(std::string_view name) const { return initial({".rodata"}, name); }
  /// Sets a constant. not_found, type_mismatch (another size).
  [[nodiscard]] Result<void> set_constant(std::string_view name, std::span<const std::byte> value) const;
  /// Sets the first value of a variable that programs may change.
  [[nodiscard]] Result<void> set_variable(std::string_view name, std::span<const std::byte> value) const;
  template <class T>
  [[nodiscard]] Result<void> set_constant(std::string_view name, const T& value) const {
    return set_constant(name, std::as_bytes(std::span(&value, 1)));
  }

  /// After the load: hands the first `bytes` of an array map (BPF_F_MMAPABLE) to `write` as memory.
  [[nodiscard]] Result<void> write_map(const char* name, std::size_t bytes,
                                       const std::function<void(std::byte*)>& write) const;

 private:
  struct Close {
    void operator()(bpf_object* object) const noexcept { bpf_object__close(object); }
  };
  explicit ObjectCopy(bpf_object* object) noexcept : object_(object) {}
  /// Returns what a variable, of the first of `sections` that has it, will be loaded with.
  [[nodiscard]] std::span<std::byte> initial(std::initializer_list<const char*> sections, std::string_view name) const;
  std::unique_ptr<bpf_object, Close> object_;
  std::vector<sys::UniqueFd> maps_ = {};
};

}  // namespace usdt::backends
