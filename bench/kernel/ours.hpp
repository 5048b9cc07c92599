// SPDX-License-Identifier: BSD-2-Clause
// A kind of attachment, and the library's way to it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "usdt/bpf_object.hpp"
#include "usdt/kernel.hpp"
#include "usdt/link.hpp"
#include "usdt/plan.hpp"
#include "usdt/result.hpp"

namespace usdt::bench {

/// A prefix of names and the mechanism that is to serve it.
struct Attaching {
  const char* name;
  const char* prefix;
  Backend backend;
  bool one_each = false;
};

/// Of a selection, what one prefix means.
[[nodiscard]] KernelSelection only_of(const KernelSelection& all, std::string_view prefix);
/// The plan for `attaching` alone.
[[nodiscard]] Result<AttachPlan> plan_for(const KernelSelection& selection, const Attaching& attaching,
                                          const KernelAbilities& abilities);

/// A program that can be put on its functions and taken off again, with the counters of values.h.
class OurProgram {
 public:
  struct Spec {
    bool by_hand = false;  ///< kernel_hand.bpf.c
    std::string program = "bench_program";
    std::uint32_t reads = 0;
    Carrier carrier = Carrier::automatic;
  };
  [[nodiscard]] static Result<OurProgram> load(AttachPlan plan, const Spec& spec);
  [[nodiscard]] Result<void> attach();
  void detach() { link_.reset(); }
  [[nodiscard]] std::size_t attached() const { return link_ ? link_->attached() : 0; }
  [[nodiscard]] std::uint64_t global(std::string_view name);
  [[nodiscard]] Carrier carrier() const { return object_.carriers().carrier; }

 private:
  OurProgram(LoadedObject object, std::string program) : object_(std::move(object)), program_(std::move(program)) {}

  LoadedObject object_;
  std::string program_;
  std::optional<Link> link_;
};

}  // namespace usdt::bench
