// SPDX-License-Identifier: BSD-2-Clause
#include "program/object_copy.hpp"

#include <bpf/btf.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/no_memory.hpp"
#include "base/try.hpp"
#include "program/libbpf_log.hpp"
#include "program/verifier_log.hpp"
#include "sys/blocked_signals.hpp"
#include "sys/descriptor_room.hpp"
#include "usdt/privilege.hpp"

namespace usdt::backends {
namespace {

bpf_map* section_map(bpf_object* object, std::string_view section) {
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object) {
    // libbpf names them "<object>.rodata"; user maps never contain a '.'.
    if (std::string_view(bpf_map__name(map)).ends_with(section)) return map;
  }
  return nullptr;
}

/// A load failed: because of the program itself, of privilege, of too few descriptors, or a missing feature. What ran
/// out comes before what the verifier says: that may be no more than the consequence.
Error explain_load(int error, const std::string& said) {
  if (error == EMFILE || error == ENFILE) return os_failure(ErrorKind::limit, "load the BPF object", error);
  if (auto report = find_verifier_report(said); !report.log.empty())
    return verifier_refusal(report.program, std::move(report.log), error);
  if (error == EPERM || error == EACCES) {
    if (auto privilege = check_privilege(); !privilege) return privilege.error();
  }
  const auto lines = lines_of(said);
  const std::string last = lines.empty() ? "" : fmt::format(": {}", lines.back());
  return os_failure(ErrorKind::io, fmt::format("load the BPF object{}", last), error);
}

/// How many descriptors a load opens: for each map that it makes, each program, the types, and what libbpf opens for a
/// moment to ask the kernel what it can do.
std::size_t descriptors_of_load(bpf_object* object) {
  constexpr std::size_t of_types = 1, for_a_moment = 4;
  std::size_t all = of_types + for_a_moment;
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object) all += bpf_map__fd(map) < 0 ? 1 : 0;
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object) all += bpf_program__autoload(program) ? 1 : 0;
  return all;
}

}  // namespace

Result<ObjectCopy> ObjectCopy::open(std::span<const std::byte> bytes, const std::string& name) {
  LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = name.c_str());
  const LibbpfLog log;
  bpf_object* object = bpf_object__open_mem(bytes.data(), bytes.size(), &options);
  if (!object && errno == ENOMEM) return fail(no_memory());
  // Since libbpf 1.4 each map has a descriptor from here on.
  if (!object && (errno == EMFILE || errno == ENFILE))
    return fail(os_failure(ErrorKind::io, "open the BPF object", errno));
  if (!object)
    return fail(ErrorKind::malformed, fmt::format("BPF object '{}': {}", name, log.last("cannot be opened")));
  return ObjectCopy(object);
}

Result<void> ObjectCopy::load(VerifierLog wanted) const {
  // Asked before: libbpf takes a question that found no descriptor for a kernel that cannot do it, for as long as the
  // process lives, and then loads something else.
  TRY(sys::need_descriptors(descriptors_of_load(object_.get()), "a BPF object"));
  constexpr std::uint32_t statistics = 4;  // BPF_LOG_STATS (Linux 5.2): that, and the complaint
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object_.get()) {
    bpf_program__set_log_level(program, wanted == VerifierLog::complaint ? statistics : 0);
  }
  const LibbpfLog log;
  const sys::BlockedSignals blocked;  // each that comes ends the verifier (EAGAIN), which libbpf begins again 4 times
  if (const int error = bpf_object__load(object_.get())) return fail(explain_load(-error, log.text()));
  return {};
}

bpf_map* ObjectCopy::map(const char* name) const noexcept { return bpf_object__find_map_by_name(object_.get(), name); }

std::optional<Variable> ObjectCopy::variable(const char* section, std::string_view name) const {
  const btf* types = bpf_object__btf(object_.get());
  const int id = types ? btf__find_by_name_kind(types, section, BTF_KIND_DATASEC) : -1;
  bpf_map* map = section_map(object_.get(), section);
  if (id < 0 || !map) return std::nullopt;
  const btf_type* datasec = btf__type_by_id(types, static_cast<std::uint32_t>(id));
  const btf_var_secinfo* info = btf_var_secinfos(datasec);
  for (unsigned i = 0; i < btf_vlen(datasec); ++i, ++info) {
    const btf_type* var = btf__type_by_id(types, info->type);
    if (name == btf__name_by_offset(types, var->name_off)) return Variable{map, info->offset, info->size};
  }
  return std::nullopt;
}

std::span<std::byte> ObjectCopy::initial(std::initializer_list<const char*> sections, std::string_view name) const {
  for (const char* section : sections) {
    const auto found = variable(section, name);
    if (!found) continue;
    std::size_t size = 0;
    // libbpf 1.1 hands out const memory, later ones plain: before the load it is the caller's to write.
    auto* start = static_cast<std::byte*>(const_cast<void*>(bpf_map__initial_value(found->map, &size)));
    if (!start || found->offset + std::size_t{found->size} > size) return {};
    return {start + found->offset, found->size};
  }
  return {};
}

namespace {

Result<void> set_bytes(std::span<std::byte> at, std::string_view what, std::string_view name,
                       std::span<const std::byte> value) {
  if (at.empty()) return fail(ErrorKind::not_found, fmt::format("the BPF object has no {} '{}'", what, name));
  if (at.size() != value.size())
    return fail(ErrorKind::type_mismatch,
                fmt::format("{} '{}' has {} bytes, not {}", what, name, at.size(), value.size()));
  std::memcpy(at.data(), value.data(), value.size());
  return {};
}

}  // namespace

Result<void> ObjectCopy::set_constant(std::string_view name, std::span<const std::byte> value) const {
  return set_bytes(constant(name), "constant", name, value);
}

Result<void> ObjectCopy::set_variable(std::string_view name, std::span<const std::byte> value) const {
  return set_bytes(initial({".data", ".bss"}, name), "variable", name, value);
}

Result<void> ObjectCopy::write_map(const char* name, std::size_t bytes,
                                   const std::function<void(std::byte*)>& write) const {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t length = (bytes + page - 1) / page * page;
  void* mapped = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map(name)), 0);
  if (mapped == MAP_FAILED) return fail(os_failure(ErrorKind::io, fmt::format("map '{}' into memory", name), errno));
  write(static_cast<std::byte*>(mapped));
  ::munmap(mapped, length);
  return {};
}

}  // namespace usdt::backends
