// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/bpf_object.hpp"
#include "usdt/plan.hpp"
#include "usdt/result.hpp"

namespace usdt {

/// A plan that is attached. Dropping it detaches every site; the kernel does the same should the process die.
class Link {
 public:
  Link(Link&&) noexcept;
  Link& operator=(Link&&) noexcept;
  ~Link();

  [[nodiscard]] Backend backend() const noexcept;
  /// How the specs of most sites travel, and that of all in words (CarrierPlan::describe).
  [[nodiscard]] Carrier carrier() const noexcept;
  [[nodiscard]] const std::string& carrier_text() const noexcept;
  /// Number of sites attached.
  [[nodiscard]] std::size_t attached() const noexcept;
  /// Sites of the plan that the kernel refused, each named by bisection with its errno; all others are attached.
  [[nodiscard]] const std::vector<SkippedSite>& refused() const noexcept;
  /// Detaches now; the kernel waits for running programs to end (10 to 35 ms for a link of any size on 6.18).
  void detach() noexcept;

 private:
  friend Result<Link> attach(BpfObject&, std::string_view, const AttachPlan&);
  struct Impl;
  explicit Link(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

/// Attaches program `program` of `object` to every site of `plan`, loading the object first if needed. Sites the kernel
/// refuses are left out and reported by refused(); that none could be attached is an error. Each file is attached by
/// the very inode that was scanned. Errors: no_permission, not_found (process gone, no such program), changed (the file
/// was written to since it was scanned; nothing stays attached), limit (descriptors), not_supported.
[[nodiscard]] Result<Link> attach(BpfObject& object, std::string_view program, const AttachPlan& plan);

}  // namespace usdt
