// SPDX-License-Identifier: BSD-2-Clause
// Objects compiled with libbpf's own usdt.bpf.h: specs in the form its programs read. Private to attach/program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "program/object_copy.hpp"
#include "usdt/plan.hpp"

namespace usdt::backends {

/// Says where a member of a structure is, in bits; `bits` is 0 if there is none of that name.
struct LibbpfField {
  std::uint32_t offset = 0;
  std::uint32_t bits = 0;
};

/// libbpf's struct __bpf_usdt_spec, as the object itself describes it. libbpf calls it internal, and has changed it: an
/// argument had 16 bytes from 0.8 (src/usdt.bpf.h), and has 24 from 1.7 on, which added the index register.
struct LibbpfLayout {
  std::uint32_t spec_bytes = 0;
  std::uint32_t arg_bytes = 0;
  std::uint32_t max_args = 0;
  LibbpfField cookie, arg_cnt;                                         ///< of the spec
  LibbpfField value, type, base, index, scale, is_signed, spare_bits;  ///< of an argument
};
/// Errors: malformed (a member is missing, or is where no layout has it).
[[nodiscard]] Result<LibbpfLayout> libbpf_layout(const ObjectCopy& object);

/// Adds what a spec does not say of the sites it is for.
struct LibbpfSites {
  std::uint32_t ip_word = 16;     ///< pt_regs word of the instruction pointer
  bool narrow_addresses = false;  ///< all are in 32-bit programs, which have nothing mapped above 4 GiB
};

/// Writes `spec` as layout.spec_bytes bytes. Arguments beyond max_args are left out. What libbpf has no form for gets a
/// type its program does not know, which it answers with -EINVAL.
void write_libbpf_spec(std::span<std::byte> to, const LibbpfLayout& layout, const EncodedSpec& spec,
                       const LibbpfSites& sites);

/// Whether the program of `object` reads its specs as libbpf lays them out.
[[nodiscard]] bool has_libbpf_specs(const ObjectCopy& object);
/// Before the load: as many entries as the plan has specs. malformed, io.
[[nodiscard]] Result<void> size_libbpf_specs(const ObjectCopy& object, const AttachPlan& plan);
/// Called once the object is loaded.
[[nodiscard]] Result<void> fill_libbpf_specs(const ObjectCopy& object, const AttachPlan& plan);

}  // namespace usdt::backends
