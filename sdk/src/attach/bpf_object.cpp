// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/bpf_object.hpp"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "attach/libbpf_log.hpp"
#include "attach/privilege.hpp"
#include "attach/thread_base.hpp"
#include "sys/uapi.hpp"
#include "usdt/features.hpp"

namespace usdt {

std::string_view to_string(Backend backend) noexcept {
  switch (backend) {
    case Backend::automatic:
      return "automatic";
    case Backend::uprobe_multi:
      return "uprobe_multi";
    case Backend::perf_uprobe:
      return "perf_uprobe";
  }
  return "unknown";
}

struct BpfObject::Impl {
  explicit Impl(bpf_object* opened) : object(opened) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    for (const Mapping& m : mappings) ::munmap(m.start, m.length);
    bpf_object__close(object);
  }

  /// The running program's copy of a section of globals, mapped on first use. (libbpf 1.1 maps it for skeletons only.)
  std::byte* mapped(bpf_map* map) {
    for (const Mapping& m : mappings)
      if (m.map == map) return m.start;
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t length = (bpf_map__value_size(map) + page - 1) / page * page;
    void* start = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
    if (start == MAP_FAILED) return nullptr;
    mappings.push_back({map, static_cast<std::byte*>(start), length});
    return mappings.back().start;
  }

  struct Mapping {
    bpf_map* map;
    std::byte* start;
    std::size_t length;
  };
  bpf_object* object;
  std::vector<Mapping> mappings;
  bool loaded = false;
  Backend backend = Backend::automatic;
};

BpfObject::BpfObject(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
BpfObject::BpfObject(BpfObject&&) noexcept = default;
BpfObject& BpfObject::operator=(BpfObject&&) noexcept = default;
BpfObject::~BpfObject() = default;

namespace {

/// Where a global variable is: the map of its section, its offset there and its size.
struct Variable {
  bpf_map* map;
  std::uint32_t offset;
  std::uint32_t size;
};

bpf_map* section_map(bpf_object* object, std::string_view section) {
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object) {
    // libbpf names them "<object>.rodata"; user maps never contain a '.'.
    if (std::string_view(bpf_map__name(map)).ends_with(section)) return map;
  }
  return nullptr;
}

std::optional<Variable> variable_in(bpf_object* object, const char* section, std::string_view name) {
  const btf* types = bpf_object__btf(object);
  const int id = types ? btf__find_by_name_kind(types, section, BTF_KIND_DATASEC) : -1;
  bpf_map* map = section_map(object, section);
  if (id < 0 || !map) return std::nullopt;
  const btf_type* datasec = btf__type_by_id(types, static_cast<std::uint32_t>(id));
  const btf_var_secinfo* info = btf_var_secinfos(datasec);
  for (unsigned i = 0; i < btf_vlen(datasec); ++i, ++info) {
    const btf_type* var = btf__type_by_id(types, info->type);
    if (name == btf__name_by_offset(types, var->name_off)) return Variable{map, info->offset, info->size};
  }
  return std::nullopt;
}

/// Address of the variable in what the map will be loaded with.
std::byte* address_of(const Variable& variable) {
  std::size_t size = 0;
  // libbpf 1.1 hands out const memory, later ones plain: before the load it is the caller's to write.
  auto* start = static_cast<std::byte*>(const_cast<void*>(bpf_map__initial_value(variable.map, &size)));
  return start && variable.offset + std::size_t{variable.size} <= size ? start + variable.offset : nullptr;
}

/// Spec table entry size for a plan: the header and its longest argument list.
std::size_t entry_size(const AttachPlan& plan) {
  return sizeof(usdt_spec) + std::size_t{plan.max_args} * sizeof(usdt_arg_spec);
}

Result<void> size_table(bpf_object* object, const AttachPlan& plan) {
  bpf_map* table = bpf_object__find_map_by_name(object, "usdt_specs");
  if (!table)
    return fail(ErrorKind::invalid_argument,
                "the BPF object has no spec table: its program must include usdt/bpf/usdt.bpf.h");
  const int value = bpf_map__set_value_size(table, static_cast<std::uint32_t>(entry_size(plan)));
  const int entries = bpf_map__set_max_entries(table, static_cast<std::uint32_t>(plan.specs.size()));
  if (value || entries) return fail(os_failure(ErrorKind::io, "size the spec table", value ? -value : -entries));
  return {};
}

/// Writes `spec` at `at`; its thread-local arguments as unreadable ones where the program cannot read them.
void write_entry(std::byte* at, const EncodedSpec& spec, bool thread_locals) {
  usdt_spec header{};
  header.user_cookie = spec.user_cookie;
  header.arg_cnt = static_cast<std::uint32_t>(spec.args.size());
  std::memcpy(at, &header, sizeof(header));
  at += sizeof(header);
  for (usdt_arg_spec arg : spec.args) {
    if (!thread_locals && backends::is_thread_local(arg)) arg.kind = USDT_ARG_UNREADABLE;
    std::memcpy(at, &arg, sizeof(arg));
    at += sizeof(arg);
  }
}

/// Writes all specs through one mapping of the table: no system call per entry.
Result<void> fill_table(int fd, const AttachPlan& plan, bool thread_locals) {
  const std::size_t size = entry_size(plan);
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t length = (size * plan.specs.size() + page - 1) / page * page;
  void* mapped = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) return fail(os_failure(ErrorKind::io, "map the spec table", errno));
  auto* at = static_cast<std::byte*>(mapped);
  for (const EncodedSpec& spec : plan.specs) {
    write_entry(at, spec, thread_locals);
    at += size;
  }
  ::munmap(mapped, length);
  return {};
}

Result<Backend> choose(Backend wanted) {
  if (wanted == Backend::perf_uprobe) return wanted;
  const FeatureState multi = probe_feature(Feature::uprobe_multi);
  if (multi.answer == Answer::yes) return Backend::uprobe_multi;
  if (wanted == Backend::uprobe_multi && multi.answer == Answer::no)
    return fail(ErrorKind::not_supported, fmt::format("uprobe_multi: not supported: {}", multi.detail));
  if (multi.answer == Answer::unknown) {
    if (auto privilege = backends::check_privilege(); !privilege) return fail(privilege.error());
  }
  return wanted == Backend::automatic ? Backend::perf_uprobe : wanted;
}

/// A load failed: because of privilege, a missing feature, or the program itself.
Error explain_load(int error, const std::string& log) {
  if (error == EPERM || error == EACCES) {
    if (auto privilege = backends::check_privilege(); !privilege) return privilege.error();
  }
  if (probe_feature(Feature::attach_cookie).answer == Answer::no)
    return Error{ErrorKind::not_supported, "this kernel has no BPF attach cookies: Linux 5.15 or newer is needed",
                 error};
  return os_failure(ErrorKind::io, fmt::format("load the BPF object{}{}", log.empty() ? "" : ": ", log), error);
}

}  // namespace

Result<BpfObject> BpfObject::open(std::span<const std::byte> bytes, std::string_view name) {
  const std::string owned_name(name);
  LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = owned_name.c_str());
  backends::LibbpfLog log;
  bpf_object* object = bpf_object__open_mem(bytes.data(), bytes.size(), &options);
  if (!object)
    return fail(ErrorKind::malformed, fmt::format("BPF object '{}': {}", name, log.last("cannot be opened")));
  return BpfObject(std::make_unique<Impl>(object));
}

Result<BpfObject> BpfObject::open(const std::filesystem::path& path) {
  backends::LibbpfLog log;
  bpf_object* object = bpf_object__open(path.c_str());
  if (!object) return fail(os_failure(ErrorKind::malformed, fmt::format("BPF object {}", path.string()), errno));
  return BpfObject(std::make_unique<Impl>(object));
}

Result<void> BpfObject::set_constant(std::string_view name, std::span<const std::byte> value) {
  if (impl_->loaded) return fail(ErrorKind::invalid_argument, fmt::format("constant '{}': the object is loaded", name));
  const auto variable = variable_in(impl_->object, ".rodata", name);
  std::byte* at = variable ? address_of(*variable) : nullptr;
  if (!at) return fail(ErrorKind::not_found, fmt::format("the BPF object has no constant '{}'", name));
  if (variable->size != value.size())
    return fail(ErrorKind::type_mismatch,
                fmt::format("constant '{}' has {} bytes, not {}", name, variable->size, value.size()));
  std::memcpy(at, value.data(), value.size());
  return {};
}

Result<void> BpfObject::set_max_entries(std::string_view map, std::uint32_t entries) {
  bpf_map* found = bpf_object__find_map_by_name(impl_->object, std::string(map).c_str());
  if (!found) return fail(ErrorKind::not_found, fmt::format("the BPF object has no map '{}'", map));
  if (const int error = bpf_map__set_max_entries(found, entries))
    return fail(os_failure(ErrorKind::invalid_argument, fmt::format("map '{}' with {} entries", map, entries), -error));
  return {};
}

void* BpfObject::global(std::string_view name) noexcept {
  for (const char* section : {".bss", ".data"}) {
    const auto variable = variable_in(impl_->object, section, name);
    if (!variable) continue;
    std::byte* start = impl_->loaded ? impl_->mapped(variable->map) : nullptr;
    return start ? start + variable->offset : nullptr;
  }
  return nullptr;
}

Result<void> BpfObject::load(const AttachPlan& plan, Backend backend) {
  if (impl_->loaded) return fail(ErrorKind::invalid_argument, "the BPF object is loaded for a plan already");
  auto chosen = choose(backend);
  if (!chosen) return fail(chosen.error());
  if (auto sized = size_table(impl_->object, plan); !sized) return sized;
  if (auto set = set_constant("usdt_max_args", plan.max_args); !set) return set;
  const auto thread_locals = backends::has_thread_locals(plan) ? backends::set_thread_base(*this) : Result<bool>(true);
  if (!thread_locals) return fail(thread_locals.error());

  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, impl_->object) {
    bpf_program__set_type(program, BPF_PROG_TYPE_KPROBE);
    // The kernel ties a program to its kind of link when it is loaded.
    const auto attach_type = *chosen == Backend::uprobe_multi ? sys::bpf_attach_trace_uprobe_multi : 0;
    bpf_program__set_expected_attach_type(program, static_cast<bpf_attach_type>(attach_type));
  }
  backends::LibbpfLog log;
  if (const int error = bpf_object__load(impl_->object)) return fail(explain_load(-error, log.tail()));
  impl_->loaded = true;
  impl_->backend = *chosen;
  auto table = map_fd("usdt_specs");
  return table ? fill_table(*table, plan, *thread_locals) : fail(table.error());
}

bool BpfObject::loaded() const noexcept { return impl_->loaded; }
Backend BpfObject::backend() const noexcept { return impl_->backend; }

Result<int> BpfObject::program_fd(std::string_view name) const {
  const bpf_program* program = bpf_object__find_program_by_name(impl_->object, std::string(name).c_str());
  if (!program) return fail(ErrorKind::not_found, fmt::format("the BPF object has no program '{}'", name));
  const int fd = bpf_program__fd(program);
  if (fd < 0) return fail(ErrorKind::invalid_argument, fmt::format("program '{}' is not loaded", name));
  return fd;
}

Result<int> BpfObject::map_fd(std::string_view name) const {
  const bpf_map* map = bpf_object__find_map_by_name(impl_->object, std::string(name).c_str());
  if (!map) return fail(ErrorKind::not_found, fmt::format("the BPF object has no map '{}'", name));
  const int fd = bpf_map__fd(map);
  if (fd < 0) return fail(ErrorKind::invalid_argument, fmt::format("map '{}' is not loaded", name));
  return fd;
}

}  // namespace usdt
