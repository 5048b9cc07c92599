// SPDX-License-Identifier: BSD-2-Clause
#include "programs.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "kernel.hpp"
#include "usdt/features.hpp"

namespace usdt::bench {
namespace {

bpf_map* map_of_section(bpf_object* object, std::string_view section) {
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object) {
    if (std::string_view(bpf_map__name(map)).ends_with(section)) return map;
  }
  return nullptr;
}

Result<AttachPlan> plan_probe(const std::string& probe) {
  auto file = find_sites(own_file(), probe);
  if (!file) return fail(file.error());
  return plan_attach({.files = {std::move(*file)}}, kernel_facts());
}

}  // namespace

SdkProgram::SdkProgram(LoadedObject object, std::string name) : object_(std::move(object)), name_(std::move(name)) {}

Result<std::unique_ptr<Program>> SdkProgram::load(std::span<const std::byte> object, std::string name,
                                                  const Reading& reading, Carrier carrier) {
  auto plan = plan_probe(reading.probe);
  if (!plan) return fail(plan.error());
  auto opened = BpfObject::open(object);
  if (!opened) return fail(opened.error());
  if (auto set = opened->set_constant("hit_times", reading.times); !set) return fail(set.error());
  auto loaded = opened->load(std::move(*plan), {.carrier = carrier, .programs = {name}});
  if (!loaded) return fail(loaded.error());
  return std::unique_ptr<Program>(new SdkProgram(std::move(*loaded), std::move(name)));
}

Result<void> SdkProgram::attach() {
  auto link = object_.attach(name_);
  if (!link) return fail(link.error());
  link_ = std::move(*link);
  return {};
}

std::uint64_t SdkProgram::sum() {
  const void* sum = object_.global("hit_sum");
  return sum ? *static_cast<const volatile std::uint64_t*>(sum) : 0;
}

Result<std::unique_ptr<Program>> LibbpfProgram::load(std::span<const std::byte> object, const std::string& name,
                                                     const Reading& reading) {
  bpf_object* opened = bpf_object__open_mem(object.data(), object.size(), nullptr);
  if (!opened) return fail(os_failure(ErrorKind::io, "libbpf: open", errno));
  std::unique_ptr<LibbpfProgram> program(new LibbpfProgram(opened, reading.probe));
  // hit_times, beside which libbpf's object has no constants.
  bpf_map* rodata = map_of_section(opened, ".rodata");
  if (!rodata || bpf_map__set_initial_value(rodata, &reading.times, sizeof(reading.times)) != 0)
    return fail(ErrorKind::malformed, "libbpf: .rodata is not that of loops.h");
  bpf_program* other = nullptr;
  bpf_object__for_each_program(other, opened) bpf_program__set_autoload(other, name == bpf_program__name(other));
  if (bpf_object__load(opened) != 0) return fail(os_failure(ErrorKind::io, "libbpf: load", errno));
  program->program_ = bpf_object__find_program_by_name(opened, name.c_str());
  if (!program->program_) return fail(ErrorKind::not_found, fmt::format("no program '{}'", name));
  return std::unique_ptr<Program>(std::move(program));
}

LibbpfProgram::~LibbpfProgram() {
  detach();
  bpf_object__close(object_);
}

Result<void> LibbpfProgram::attach() {
  link_ = bpf_program__attach_usdt(program_, -1, own_file().c_str(), "hit", probe_.c_str(), nullptr);
  if (!link_) return fail(os_failure(ErrorKind::io, fmt::format("libbpf: attach hit:{}", probe_), errno));
  return {};
}

void LibbpfProgram::detach() { bpf_link__destroy(std::exchange(link_, nullptr)); }

std::uint64_t LibbpfProgram::sum() {
  const std::uint32_t key = 0;
  std::uint64_t sum = 0;
  bpf_map* bss = map_of_section(object_, ".bss");
  if (bss) bpf_map__lookup_elem(bss, &key, sizeof(key), &sum, sizeof(sum), 0);
  return sum;
}

}  // namespace usdt::bench
