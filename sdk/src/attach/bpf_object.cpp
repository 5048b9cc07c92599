// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/bpf_object.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <mutex>
#include <utility>
#include <vector>

#include "attach/bpf_object_impl.hpp"
#include "attach/clone.hpp"
#include "attach/libbpf_log.hpp"
#include "attach/spec_maps.hpp"
#include "attach/specialise.hpp"
#include "attach/thread_base.hpp"
#include "features/kernel_features.hpp"
#include "sys/uapi.hpp"
#include "usdt/features.hpp"
#include "usdt/privilege.hpp"

namespace usdt {

BpfObject::Impl::~Impl() {
  for (const Mapping& m : mappings) ::munmap(m.start, m.length);
}

std::byte* BpfObject::Impl::mapped(bpf_map* map) {
  for (const Mapping& m : mappings)
    if (m.map == map) return m.start;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t length = (bpf_map__value_size(map) + page - 1) / page * page;
  void* start = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
  if (start == MAP_FAILED) return nullptr;
  mappings.push_back({map, static_cast<std::byte*>(start), length});
  return mappings.back().start;
}

BpfObject::BpfObject(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
BpfObject::BpfObject(BpfObject&&) noexcept = default;
BpfObject& BpfObject::operator=(BpfObject&&) noexcept = default;
BpfObject::~BpfObject() = default;

namespace {

/// A load failed: because of privilege, a missing feature, or the program itself.
Error explain_load(int error, const std::string& log) {
  if (error == EPERM || error == EACCES) {
    if (auto privilege = check_privilege(); !privilege) return privilege.error();
  }
  if (error == EMFILE || error == ENFILE) return os_failure(ErrorKind::limit, "load the BPF object", error);
  return os_failure(ErrorKind::io, fmt::format("load the BPF object{}{}", log.empty() ? "" : ": ", log), error);
}

/// Programs that sit on sites. An object may have others.
bool is_site_program(const bpf_program* program) {
  const std::string_view section = bpf_program__section_name(program);
  return section.starts_with("uprobe") || section.starts_with("usdt");
}

bool is_sleepable(const bpf_program* program) {
  const std::string_view section = bpf_program__section_name(program);
  return section.substr(0, section.find('/')).ends_with(".s");
}

/// libbpf 1.1 does not know "usdt.s", later ones tie "usdt" to uprobe_multi when they load it: what a section means is
/// said here, and libbpf forgets its definition of one with the program's type (bpf_program__set_type).
void set_type(bpf_program* program, const backends::ProgramType& type) {
  if (is_sleepable(program)) bpf_program__set_flags(program, bpf_program__flags(program) | BPF_F_SLEEPABLE);
  bpf_program__set_type(program, BPF_PROG_TYPE_UNSPEC);
  bpf_program__set_type(program, static_cast<bpf_prog_type>(type.type));
  bpf_program__set_expected_attach_type(program, static_cast<bpf_attach_type>(type.attach_type));
}

/// Leaves out programs at attach points that are not `wanted`; nothing wanted: all are. Errors: not_found.
Result<void> choose_programs(const ObjectCopy& object, std::span<const std::string> wanted) {
  for (const std::string& name : wanted) {
    const bpf_program* found = bpf_object__find_program_by_name(object.get(), name.c_str());
    if (!found || !is_site_program(found))
      return fail(ErrorKind::not_found, fmt::format("the BPF object has no program '{}' for attach points", name));
  }
  if (wanted.empty()) return {};
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object.get()) {
    if (is_site_program(program) && std::ranges::find(wanted, bpf_program__name(program)) == wanted.end())
      bpf_program__set_autoload(program, false);
  }
  return {};
}

/// The kernel ties a program to its kind of link when it is loaded; those of trampolines to a function, `tied_to`.
Result<void> set_types(const ObjectCopy& object, const ProgramKind& kind, Backend files, const std::string& tied_to,
                       bool with_others) {
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object.get()) {
    if (!is_site_program(program)) {
      if (!with_others) bpf_program__set_autoload(program, false);
      continue;
    }
    set_type(program, backends::program_type(kind, files));
    // Kernel functions are no place to sleep.
    if (is_kernel(kind.backend) && is_sleepable(program)) bpf_program__set_autoload(program, false);
    if (tied_to.empty()) continue;
    const backends::LibbpfLog log;
    if (const int error = bpf_program__set_attach_target(program, 0, tied_to.c_str()))
      return fail(os_failure(ErrorKind::io, fmt::format("find the type of '{}'", tied_to), -error));
  }
  return {};
}

/// What `program` is loaded for, where that must be something. What is attached is a clone for each function or
/// tracepoint: any will do, and the kernel's own stay when modules go.
std::string tied_to(const AttachPlan& plan, const CarrierPlan& carriers, std::size_t program) {
  const Backend backend = carriers.programs[program].kind.backend;
  if (backend == Backend::tracing) return std::string(features::kTestFunction);
  if (backend != Backend::tp_btf) return {};
  std::string name;
  for (const PlannedLink& link : carriers.links) {
    if (link.program != program) continue;
    const PlannedFunction& function = plan.functions[plan.sites[link.sites.front()].function];
    if (name.empty() || function.module.empty()) name = function.name;
  }
  return name;
}

/// All maps but the constants are the first copy's.
Result<void> share_maps(const ObjectCopy& first, const ObjectCopy& copy) {
  bpf_map* theirs = nullptr;
  bpf_map* ours = nullptr;
  while ((theirs = bpf_object__next_map(first.get(), theirs)) != nullptr) {
    ours = bpf_object__next_map(copy.get(), ours);
    if (std::string_view(bpf_map__name(theirs)).ends_with(".rodata")) continue;
    if (const int error = bpf_map__reuse_fd(ours, bpf_map__fd(theirs)))
      return fail(os_failure(ErrorKind::io, fmt::format("share the map '{}'", bpf_map__name(theirs)), -error));
  }
  return {};
}

Result<void> load_object(const ObjectCopy& object) {
  const backends::LibbpfLog log;
  if (const int error = bpf_object__load(object.get())) return fail(explain_load(-error, log.tail()));
  return {};
}

Result<std::vector<std::byte>> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::vector<std::byte> bytes(file ? static_cast<std::size_t>(file.tellg()) : 0);
  if (!file || !file.seekg(0).read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size())))
    return fail(os_failure(ErrorKind::io, fmt::format("BPF object {}", path.string()), errno));
  return bytes;
}

}  // namespace

Result<Backend> choose_backend(Backend wanted) {
  if (wanted == Backend::perf_uprobe) return wanted;
  const FeatureState multi = probe_feature(Feature::uprobe_multi);
  if (multi.answer == Answer::yes) return Backend::uprobe_multi;
  if (wanted == Backend::uprobe_multi && multi.answer == Answer::no)
    return fail(ErrorKind::not_supported, fmt::format("uprobe_multi: not supported: {}", multi.detail));
  if (multi.answer == Answer::unknown) {
    if (auto privilege = check_privilege(); !privilege) return fail(privilege.error());
  }
  return wanted == Backend::automatic ? Backend::perf_uprobe : wanted;
}

Result<BpfObject> BpfObject::open(std::span<const std::byte> bytes, std::string_view name) {
  std::string owned_name(name);
  auto object = ObjectCopy::open(bytes, owned_name);
  if (!object) return fail(object.error());
  return BpfObject(
      std::make_unique<Impl>(std::vector(bytes.begin(), bytes.end()), std::move(owned_name), std::move(*object)));
}

Result<BpfObject> BpfObject::open(const std::filesystem::path& path) {
  auto bytes = read_file(path);
  if (!bytes) return fail(bytes.error());
  return open(*bytes, path.stem().stem().string());
}

Result<void> BpfObject::set_constant(std::string_view name, std::span<const std::byte> value) {
  if (impl_->loaded) return fail(ErrorKind::invalid_argument, fmt::format("constant '{}': the object is loaded", name));
  auto set = impl_->first().set_constant(name, value);
  if (set) impl_->constants.push_back({std::string(name), {value.begin(), value.end()}});
  return set;
}

Result<void> BpfObject::set_max_entries(std::string_view map, std::uint32_t entries) {
  return impl_->set_map_size({std::string(map), entries, bpf_map__set_max_entries});
}

Result<void> BpfObject::set_value_size(std::string_view map, std::uint32_t bytes) {
  return impl_->set_map_size({std::string(map), bytes, bpf_map__set_value_size});
}

Result<void> BpfObject::Impl::set_map_size(const MapSize& size) {
  if (auto set = apply(size); !set) return set;
  map_sizes.push_back(size);
  return {};
}

Result<void> BpfObject::Impl::apply(const MapSize& size) const {
  bpf_map* found = first().map(size.map.c_str());
  if (!found) return fail(ErrorKind::not_found, fmt::format("the BPF object has no map '{}'", size.map));
  if (const int error = size.set(found, size.value))
    return fail(
        os_failure(ErrorKind::invalid_argument, fmt::format("size {} for the map '{}'", size.value, size.map), -error));
  return {};
}

void* BpfObject::global(std::string_view name) noexcept {
  const std::lock_guard lock(impl_->mutex);
  for (const char* section : {".bss", ".data"}) {
    const auto variable = impl_->first().variable(section, name);
    if (!variable) continue;
    std::byte* start = impl_->loaded ? impl_->mapped(variable->map) : nullptr;
    return start ? start + variable->offset : nullptr;
  }
  return nullptr;
}

Result<void> BpfObject::load(const AttachPlan& plan, const LoadOptions& options) {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->loaded) return fail(ErrorKind::invalid_argument, "the BPF object is loaded for a plan already");
  auto backend = plan.files.empty() ? Result<Backend>(Backend::automatic) : choose_backend(options.backend);
  if (!backend) return fail(backend.error());
  if (auto fits = backends::check_sources(impl_->first(), plan); !fits) return fits;
  const bool cookies = probe_feature(Feature::attach_cookie).answer != Answer::no;
  const auto carrier = backends::carrier_for(impl_->first(), options.carrier, cookies);
  if (!carrier) return fail(carrier.error());
  auto carriers = plan_carriers(plan, {.carrier = *carrier,
                                       .attach_cookies = cookies,
                                       .site_numbers = options.site_numbers,
                                       .arguments = options.arguments,
                                       .max_programs = options.max_programs});
  if (!carriers) return fail(carriers.error());
  auto loaded = impl_->load_copies(plan, *carriers, *backend, options.programs);
  if (!loaded) {
    if (auto undone = impl_->unload(); !undone) return undone;
    return loaded;
  }
  impl_->backend = *backend;
  impl_->carriers = std::move(*carriers);
  impl_->loaded = true;
  return {};
}

/// Back to as it was before the load, so that nothing stays in the kernel and another load can be tried.
Result<void> BpfObject::Impl::unload() {
  auto again = open_object(bytes);
  if (!again) return fail(again.error());
  copies.clear();
  copies.push_back(std::move(*again));
  return size_maps();
}

Result<ObjectCopy> BpfObject::Impl::open_object(std::span<const std::byte> code) const {
  auto object = ObjectCopy::open(code, name);
  if (!object) return object;
  for (const Constant& each : constants) {
    if (auto set = object->set_constant(each.name, std::span<const std::byte>(each.value)); !set)
      return fail(set.error());
  }
  return object;
}

Result<std::vector<std::byte>> BpfObject::Impl::code_for(const PlannedProgram& program) const {
  std::vector<std::byte> code;
  if ((program.carriers & USDT_CARRIER_BIT(USDT_CARRIER_LINK)) != 0) {
    auto special = backends::specialise(bytes, program.link_spec, program.link_vary);
    if (!special) return special;
    code = std::move(*special);
  }
  if (program.kind.moment != (USDT_AT_ENTRY | USDT_AT_RETURN)) return code;
  auto session = backends::call_session_kfuncs(code.empty() ? bytes : code);
  return session;
}

Result<void> BpfObject::Impl::open_copy(std::size_t number, const PlannedProgram& program) {
  auto code = code_for(program);
  if (!code) return fail(code.error());
  if (number == 0 && code->empty()) return {};  // as it was opened
  auto copy = open_object(code->empty() ? bytes : *code);
  if (!copy) return fail(copy.error());
  if (number == 0) {
    copies[0] = std::move(*copy);
    return size_maps();
  }
  if (auto shared = share_maps(first(), *copy); !shared) return shared;
  copies.push_back(std::move(*copy));
  return {};
}

Result<void> BpfObject::Impl::size_maps() const {
  for (const MapSize& size : map_sizes) {
    if (auto set = apply(size); !set) return set;
  }
  return {};
}

Result<void> BpfObject::Impl::load_copies(const AttachPlan& plan, const CarrierPlan& carried, Backend chosen,
                                          std::span<const std::string> programs) {
  const backends::ThreadBase thread_base = backends::find_thread_base(plan);
  for (std::size_t i = 0; i < carried.programs.size(); ++i) {
    if (auto opened = open_copy(i, carried.programs[i]); !opened) return opened;
    const ObjectCopy& copy = copies.back();
    if (i == 0) {
      if (auto sized = backends::size_specs(copy, plan, carried); !sized) return sized;
    }
    if (auto set = backends::set_spec_constants(copy, plan, carried, carried.programs[i]); !set) return set;
    if (auto set = backends::set_thread_base(copy, thread_base); !set) return set;
    if (auto found = choose_programs(copy, programs); !found) return found;
    if (auto typed = set_types(copy, carried.programs[i].kind, chosen, tied_to(plan, carried, i), i == 0); !typed)
      return typed;
    if (auto done = load_object(copy); !done) {
      if (carried.programs.size() == 1) return done;
      return fail(done.error().within(fmt::format("program {} of {}", i + 1, carried.programs.size())));
    }
  }
  return backends::fill_specs(first(), plan, carried);
}

bool BpfObject::loaded() const noexcept { return impl_->loaded; }
Backend BpfObject::backend() const noexcept { return impl_->backend; }
const CarrierPlan& BpfObject::carriers() const noexcept { return impl_->carriers; }

Result<int> BpfObject::program_fd(std::string_view name, std::size_t copy) const {
  if (copy >= impl_->copies.size()) return fail(ErrorKind::invalid_argument, fmt::format("no program copy {}", copy));
  const bpf_program* program = bpf_object__find_program_by_name(impl_->copies[copy].get(), std::string(name).c_str());
  if (!program) return fail(ErrorKind::not_found, fmt::format("the BPF object has no program '{}'", name));
  const int fd = bpf_program__fd(program);
  if (fd < 0) return fail(ErrorKind::invalid_argument, fmt::format("program '{}' is not loaded", name));
  return fd;
}

Result<int> BpfObject::map_fd(std::string_view name) const {
  const bpf_map* map = impl_->first().map(std::string(name).c_str());
  if (!map) return fail(ErrorKind::not_found, fmt::format("the BPF object has no map '{}'", name));
  const int fd = bpf_map__fd(map);
  if (fd < 0) return fail(ErrorKind::invalid_argument, fmt::format("map '{}' is not loaded", name));
  return fd;
}

}  // namespace usdt
