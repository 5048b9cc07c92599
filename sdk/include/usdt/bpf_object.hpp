// SPDX-License-Identifier: BSD-2-Clause
// BPF programs of your own: BpfObject::open() reads a compiled object, BpfObject::load() loads it for a plan, and
// LoadedObject::attach() attaches it. consumer.hpp reads the rings of such programs.
//     auto object = usdt::BpfObject::open("query.bpf.o");
//     auto loaded = object->load(std::move(*plan));       // a plan of plan_attach() or plan_sections()
//     auto link = loaded->attach();                       // detached when `link` goes
// Threads: several may call load() of one BpfObject, and any function of one LoadedObject, at once; all else one at a
// time.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "usdt/backend.hpp"
#include "usdt/broker.hpp"
#include "usdt/carrier.hpp"
#include "usdt/link.hpp"
#include "usdt/plan.hpp"
#include "usdt/result.hpp"
#include "usdt/stop.hpp"

namespace usdt::broker {
struct LoadedHere;
}  // namespace usdt::broker

namespace usdt {
inline namespace v1 {

/// Returns the backend that `wanted` means on this kernel, which is never `automatic`. Errors: not_supported
/// (uprobe_multi before Linux 6.6), no_permission (the kernel could not be asked; the message names the capability that
/// is missing), invalid_argument (a backend that does not attach to files).
[[nodiscard]] Result<Backend> choose_backend(Backend wanted = Backend::automatic);

class LoadedObject;

/// Says how an object is loaded.
struct LoadOptions {
  Backend backend = Backend::automatic;
  Carrier carrier = Carrier::automatic;
  bool site_numbers = true;  ///< CarrierOptions::site_numbers
  bool arguments = true;     ///< CarrierOptions::arguments
  /// Whether programs on sites of files are loaded as ones that may wait for pages, whatever their sections say (Linux
  /// 6.0). Whoever maps the page decides for how long, and detaching waits with them: not for processes of other
  /// people.
  bool sleepable = false;
  std::uint32_t max_programs = 64;  ///< CarrierOptions::max_programs
  /// The programs to load, whatever their section, and no others; empty: all. The verifier takes some milliseconds for
  /// each argument of each program, which the start of a trace waits for. A plan that names programs (join_plans())
  /// says itself which programs on its sites are loaded.
  std::vector<std::string> programs = {};
  /// Processes that sites of files are attached to, with what descends from them, and to nobody else, as long as the
  /// kernel can (Backend::uprobe_family): what they fork inherits the breakpoints, and other processes have none. If
  /// not empty, `backend` does not matter, and the plan's scope has to be AllProcesses. Errors of load() and attach():
  /// not_supported, with the reason.
  /// With `broker`, what they start is attached some milliseconds after (Link::started()).
  std::vector<pid_t> family = {};
  /// Whether each of `family` does nothing until attach() has returned, and has one thread and no children.
  bool family_held = false;
  /// Whether hits of the calling process are left out, unless the plan is for chosen processes. A tracer of everybody
  /// that reaches a probe at each event would otherwise make an event of each event. Programs compiled with libbpf's
  /// usdt.bpf.h do not ask.
  bool leave_out_self = false;
  /// Whether attach() leaves out the sites of files that were written to since they were scanned, which Link::refused()
  /// then has with the reason. Otherwise, and if nothing else is attached, that is the error `changed`. A user who goes
  /// on writing a file would otherwise keep the caller from tracing anything beside it.
  bool leave_out_changed = false;
  /// Who loads and attaches the programs in this process's place; null: itself. It has the stock programs of Tracer,
  /// and loads no others.
  std::shared_ptr<Broker> broker = nullptr;
  /// With `broker`: the object, loaded through it, whose maps reuse_map() has put in the place of this one's; null: it
  /// has maps of its own. It lives until load() has returned.
  const LoadedObject* shares = nullptr;
  /// Ends the loading, and later the attaching, early, from another thread: ErrorKind::stopped. Nothing is then loaded,
  /// or attached.
  StopToken stop = {};
};

/// Describes a program of an object that is for attach points.
struct ObjectProgram {
  std::string name;     ///< of the C function
  std::string section;  ///< "usdt", "usdt.s", "usdt/PATH:PROVIDER:NAME"
  /// The name of the attach points behind the section's '/', as the tools take it; empty: it names none.
  std::string points;
};

/// Holds an object loaded for a plan. It owns that plan, so that no other one's sites can be attached by mistake. Its
/// programs and maps live as long as the object; those of a Link live as long as the Link. Move-only. Threads: several
/// may call its functions at once.
class LoadedObject {
 public:
  LoadedObject(LoadedObject&&) noexcept;
  LoadedObject& operator=(LoadedObject&&) noexcept;
  ~LoadedObject();

  /// Returns the plan it was loaded for, as it is loaded (shortened.hpp).
  [[nodiscard]] const AttachPlan& plan() const noexcept;
  /// Returns the carriers by which the specs of the plan reach the programs.
  [[nodiscard]] const CarrierPlan& carriers() const noexcept;
  /// Returns the backend of sites in files; `automatic` if the plan has none.
  [[nodiscard]] Backend backend() const noexcept;

  /// Attaches each program to the sites that the plan has for it. A plan that does not name its programs is for the one
  /// that is loaded. Sites the kernel refuses are left out and reported by Link::refused(); that none could be attached
  /// is an error. Each file is attached by the very inode that was scanned. Errors: no_permission, not_found (process
  /// gone), changed (a file was written to since it was scanned; nothing stays attached;
  /// LoadOptions::leave_out_changed), limit (descriptors), not_supported, invalid_argument (several programs are
  /// loaded, and the plan names none: say which).
  [[nodiscard]] Result<Link> attach() const;
  /// Attaches one program alone: to its sites, or to all of a plan that names no programs. Errors: those of attach();
  /// not_found (there is no such program, or the plan has no sites for it).
  [[nodiscard]] Result<Link> attach(std::string_view program) const;
  /// Attaches again what Link::pause() detached, except files that were written to meanwhile. Errors: those of
  /// attach(), after which the link stays paused; invalid_argument (the link is another object's, or of several
  /// objects, or to the kernel, or is not paused).
  [[nodiscard]] Result<void> resume(Link& link) const;
  /// Attaches this object's plan, and adds what is attached to `link`: for sites that are added while others are
  /// traced. `whole` becomes the plan of `link`, and has this object's plan as its last part (append_plan()). `link`
  /// from then on tells what of it is refused, detached and changed. Errors: those of attach(); `link` is then as it
  /// was.
  [[nodiscard]] Result<void> attach_to(Link& link, std::string_view program,
                                       std::shared_ptr<const AttachPlan> whole) const;

  /// Returns the address of a global variable of .data or .bss, shared with the running programs; nullptr if there is
  /// none. Valid as long as the object.
  [[nodiscard]] void* global(std::string_view name) const noexcept;
  /// Returns the bytes of a global variable; empty if there is none. Valid as long as the object.
  [[nodiscard]] std::span<std::byte> global_bytes(std::string_view name) const noexcept;
  /// Returns a global variable as a T, valid as long as the object. Read through std::atomic_ref what programs may
  /// write meanwhile: `std::atomic_ref(**loaded->global_as<std::uint64_t>("hits")).load()`. Errors: not_found,
  /// type_mismatch (it has another size).
  template <class T>
  requires std::is_trivially_copyable_v<T>
  [[nodiscard]] Result<T*> global_as(std::string_view name) const {
    auto at = global(name, sizeof(T));
    if (!at) return fail(at.error());
    return static_cast<T*>(*at);
  }
  /// Returns the descriptor of a program, in any copy in which it is loaded; owned by the object. Errors: not_found,
  /// invalid_argument (not loaded).
  [[nodiscard]] Result<int> program_fd(std::string_view name) const;
  /// Returns the descriptor of a program in copy `copy`, an index into CarrierPlan::programs; owned by the object.
  /// Errors: as above.
  [[nodiscard]] Result<int> program_fd(std::string_view name, std::size_t copy) const;
  /// Returns the descriptor of a map, which all copies share; owned by the object. Errors: as program_fd().
  [[nodiscard]] Result<int> map_fd(std::string_view name) const;

 private:
  friend class BpfObject;
  friend class Attachment;
  friend struct broker::LoadedHere;
  struct Impl;
  explicit LoadedObject(std::unique_ptr<Impl> impl) noexcept;
  [[nodiscard]] Result<Link> attach_program(std::string_view program) const;
  [[nodiscard]] Result<Link> attach_unguarded(std::string_view program) const;
  [[nodiscard]] Result<void*> global(std::string_view name, std::size_t size) const;
  std::unique_ptr<Impl> impl_;
};

/// Holds a compiled BPF object: it is opened from bytes, its constants are set, and then it is loaded for a plan, or
/// for several, each of which gets programs and maps of its own. Move-only. Threads: one at a time, except for load(),
/// which several may call at once.
class BpfObject {
 public:
  /// Opens an object made by usdt_add_bpf() or clang. Errors: malformed, with libbpf's words.
  [[nodiscard]] static Result<BpfObject> open(std::span<const std::byte> bytes, std::string_view name = "usdt");
  /// Opens such an object in a regular file. Errors also: not_found, no_permission, not_supported, io, limit.
  [[nodiscard]] static Result<BpfObject> open(const std::filesystem::path& path);

  BpfObject(BpfObject&&) noexcept;
  BpfObject& operator=(BpfObject&&) noexcept;
  ~BpfObject();

  /// Returns the programs for attach points, in the order of the object.
  [[nodiscard]] std::vector<ObjectProgram> programs() const;

  /// Sets `const volatile` variable `name` for the loads to come. Errors: not_found, type_mismatch (another size).
  [[nodiscard]] Result<void> set_constant(std::string_view name, std::span<const std::byte> value);
  /// Sets a constant to a value of the variable's size: `object.set_constant("least_bytes", std::uint32_t{4096})`.
  template <class T>
  [[nodiscard]] Result<void> set_constant(std::string_view name, const T& value) {
    return set_constant(name, std::as_bytes(std::span(&value, 1)));
  }
  /// Sets the first value of a variable that is not constant (.data, .bss), for the loads to come. Errors as above.
  [[nodiscard]] Result<void> set_global(std::string_view name, std::span<const std::byte> value);
  /// Sets the first value of such a variable to a value of its size.
  template <class T>
  requires std::is_trivially_copyable_v<T>
  [[nodiscard]] Result<void> set_global(std::string_view name, const T& value) {
    return set_global(name, std::as_bytes(std::span(&value, 1)));
  }
  /// Makes a map of another kind (BPF_MAP_TYPE_*, BPF_F_*) for the loads to come. Errors: not_found, invalid_argument.
  [[nodiscard]] Result<void> set_map_type(std::string_view map, std::uint32_t type, std::uint32_t flags);
  /// Sets a map's entries for the loads to come. Errors: not_found, invalid_argument.
  [[nodiscard]] Result<void> set_max_entries(std::string_view map, std::uint32_t entries);
  /// Sets the size of a map's values, in bytes, for the loads to come. Errors: not_found, invalid_argument.
  [[nodiscard]] Result<void> set_value_size(std::string_view map, std::uint32_t bytes);
  /// Sets the size of a map's keys, in bytes, for the loads to come. Errors: not_found, invalid_argument.
  [[nodiscard]] Result<void> set_key_size(std::string_view map, std::uint32_t bytes);
  /// Puts the map of descriptor `fd`, with its entries, in the place of `map` in the loads to come: two objects share
  /// it. Errors: not_found, type_mismatch (another type, size of keys or values, flags), invalid_argument (no map; one
  /// that load() fills).
  [[nodiscard]] Result<void> reuse_map(std::string_view map, int fd);
  /// Shares `map` by a pin at `path`, in a BPF file system: the loads to come take the map that is pinned there. If
  /// there is none, theirs is pinned, and stays when the process ends, until someone removes the path. Errors as above
  /// (invalid_argument also: no BPF file system); no_permission, io.
  [[nodiscard]] Result<void> pin_map(std::string_view map, const std::filesystem::path& path);

  /// Decides how specs reach the programs (plan_carriers), loads them for `options.backend`, several times where the
  /// carrier or the plan's programs want it, and fills the maps, which all of them share. Errors: no_permission (naming
  /// the capability), not_supported (backend, carrier), limit (carrier), not_found (a program that is named),
  /// invalid_argument (not compiled with usdt/bpf/usdt.bpf.h or libbpf's, or with ours of another version), io with the
  /// verifier's last lines. After an error nothing stays in the kernel.
  [[nodiscard]] Result<LoadedObject> load(AttachPlan plan, const LoadOptions& options = {}) const;
  /// Loads the object for a plan that the application goes on reading. Errors also: invalid_argument (null).
  [[nodiscard]] Result<LoadedObject> load(std::shared_ptr<const AttachPlan> plan,
                                          const LoadOptions& options = {}) const;

 private:
  friend struct broker::LoadedHere;
  struct Impl;
  explicit BpfObject(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

/// Plans what the sections of `object` name: each program for its own attach points, SEC("usdt/PATH:PROVIDER:NAME") as
/// libbpf has it, or any other name that the tools take behind the '/'. It selects the points by these names and plans
/// them as plan_attach() does; load() the object for the plan, and attach(). Errors: not_found (no section names
/// anything; nothing is found by a name), those of select() and plan_attach().
[[nodiscard]] Result<AttachPlan> plan_sections(const BpfObject& object, const PlanOptions& options = {});

}  // namespace v1
}  // namespace usdt
