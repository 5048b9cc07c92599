// SPDX-License-Identifier: BSD-2-Clause
#include "btf/types.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/btf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <mutex>

#include "base/try.hpp"
#include "btf/info.hpp"
#include "sys/read.hpp"
#include "sys/unique_fd.hpp"

namespace usdt::btf {
namespace {

constexpr std::string_view kDirectory = "/sys/kernel/btf/";
constexpr std::string_view kTracepointPrefix = "btf_trace_";  // DECLARE_TRACE, include/linux/tracepoint.h
/// Anonymous structs nest a few levels; the bound keeps a type that contains itself from looping.
constexpr unsigned kDeepest = 16;

/// Bytes behind a type's fixed part, by its kind.
std::optional<std::size_t> tail_size(const btf_type& type) {
  const std::size_t count = vlen_of(type.info);
  switch (kind_of(type.info)) {
    case BTF_KIND_PTR:
    case BTF_KIND_FWD:
    case BTF_KIND_TYPEDEF:
    case BTF_KIND_VOLATILE:
    case BTF_KIND_CONST:
    case BTF_KIND_RESTRICT:
    case BTF_KIND_FUNC:
    case BTF_KIND_FLOAT:
    case BTF_KIND_TYPE_TAG:
      return 0;
    case BTF_KIND_INT:
    case BTF_KIND_VAR:
    case BTF_KIND_DECL_TAG:
      return sizeof(std::uint32_t);
    case BTF_KIND_ARRAY:
      return sizeof(btf_array);
    case BTF_KIND_STRUCT:
    case BTF_KIND_UNION:
      return count * sizeof(btf_member);
    case BTF_KIND_ENUM:
      return count * sizeof(btf_enum);
    case BTF_KIND_FUNC_PROTO:
      return count * sizeof(btf_param);
    case BTF_KIND_DATASEC:
      return count * sizeof(btf_var_secinfo);
    case BTF_KIND_ENUM64:
      return count * sizeof(btf_enum64);
    default:
      return std::nullopt;
  }
}

std::vector<std::byte> read_file(int fd, std::size_t size) {
  std::vector<std::byte> bytes(size);
  bytes.resize(sys::read_at(fd, 0, bytes));
  return bytes;
}

}  // namespace

Error malformed(std::string_view what) { return {ErrorKind::malformed, fmt::format("BTF: {}", what)}; }

Types::Storage Types::keep(std::vector<std::byte>&& bytes) {
  const auto kept = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return {kept, *kept};
}

/// The kernel's own can be mapped (6.16, commit a539e2a6d51d), which copies nothing; modules' cannot.
Result<Types::Storage> Types::map_or_read(const std::string& path) {
  const sys::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail(os_failure(ErrorKind::io, fmt::format("kernel BTF {}", path), errno));
  const auto size = static_cast<std::size_t>(std::max<off_t>(::lseek(fd.get(), 0, SEEK_END), 0));
  void* mapped = size == 0 ? MAP_FAILED : ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (mapped == MAP_FAILED) return keep(read_file(fd.get(), size));
  return Storage{std::shared_ptr<const void>(mapped, [size](void* start) { ::munmap(start, size); }),
                 {static_cast<const std::byte*>(mapped), size}};
}

Types::Types(Storage&& storage, std::shared_ptr<const Types>&& base) noexcept
    : owner_(std::move(storage.owner)), bytes_(storage.bytes), base_(std::move(base)) {
  if (!base_) return;
  first_id_ = base_->end_id();
  first_string_ = base_->first_string_ + static_cast<std::uint32_t>(base_->strings_.size());
}

Result<std::shared_ptr<const Types>> Types::load() {
  // Several stages want it; it is read again only when all have let it go.
  static std::mutex mutex;
  static std::weak_ptr<const Types> kept;
  const std::lock_guard lock(mutex);
  if (auto known = kept.lock()) return known;
  auto loaded = read_kernel();
  if (loaded) kept = *loaded;
  return loaded;
}

Result<std::shared_ptr<const Types>> Types::read_kernel() {
  auto bytes = map_or_read(std::string(kDirectory) + "vmlinux");
  if (!bytes && bytes.error().os_error == ENOENT)
    return fail(ErrorKind::not_supported, bytes.error().message + "; needs CONFIG_DEBUG_INFO_BTF");
  if (!bytes) return fail(bytes.error());
  return parse(std::move(*bytes), nullptr);
}

Result<std::shared_ptr<const Types>> Types::load_module(std::string_view module, std::shared_ptr<const Types> base) {
  if (module.empty() || module.front() == '.' || module.find('/') != std::string_view::npos)
    return fail(ErrorKind::invalid_argument, fmt::format("'{}' is no name of a kernel module", module));
  if (!base) return fail(ErrorKind::invalid_argument, fmt::format("BTF of {}: without the kernel's", module));
  auto bytes = TRY(map_or_read(fmt::format("{}{}", kDirectory, module)));
  return parse(std::move(bytes), std::move(base));
}

Result<std::shared_ptr<const Types>> Types::parse(std::vector<std::byte> bytes, std::shared_ptr<const Types> base) {
  return parse(keep(std::move(bytes)), std::move(base));
}

Result<std::shared_ptr<const Types>> Types::parse(Storage&& storage, std::shared_ptr<const Types>&& base) {
  const std::shared_ptr<Types> types(new Types(std::move(storage), std::move(base)));
  TRY(types->index());
  return types;
}

Result<void> Types::index() {
  // What every kernel has of the header. Newer ones, and <linux/btf.h> since 7.2, have more of it (layout_off).
  constexpr std::size_t least = offsetof(btf_header, str_len) + sizeof(btf_header::str_len);
  btf_header header{};
  if (bytes_.size() < least) return fail(malformed("shorter than its header"));
  std::memcpy(&header, bytes_.data(), least);
  if (header.magic != BTF_MAGIC) return fail(malformed("another magic number or byte order"));
  const std::uint64_t begin = std::uint64_t{header.hdr_len} + header.type_off;
  const std::uint64_t end = begin + header.type_len;
  const std::uint64_t strings = std::uint64_t{header.hdr_len} + header.str_off;
  if (header.hdr_len < least || end > bytes_.size() || strings + header.str_len > bytes_.size() ||
      begin % alignof(btf_type) != 0)
    return fail(malformed("a section lies outside the file"));
  strings_ = bytes_.subspan(strings, header.str_len);
  // A module may have no strings of its own.
  if (strings_.empty() ? base_ == nullptr : strings_.back() != std::byte{0})
    return fail(malformed("the strings do not end"));
  return index_types(begin, end);
}

Result<void> Types::index_types(std::uint64_t begin, std::uint64_t end) {
  types_.reserve((end - begin) / 24);
  for (std::uint64_t at = begin; at < end;) {
    btf_type type{};
    if (end - at < sizeof(type)) return fail(malformed("a type is cut off"));
    std::memcpy(&type, bytes_.data() + at, sizeof(type));
    const auto tail = tail_size(type);
    if (!tail) return fail(malformed(fmt::format("type {} is of unknown kind", end_id())));
    if (*tail > end - at - sizeof(type)) return fail(malformed(fmt::format("type {} is cut off", end_id())));
    if (kind_of(type.info) == BTF_KIND_FUNC) functions_.push_back(end_id());
    if (kind_of(type.info) == BTF_KIND_STRUCT) structures_.push_back(end_id());
    types_.push_back(static_cast<std::uint32_t>(at));
    at += sizeof(type) + *tail;
  }
  return {};
}

const btf_type* Types::type(std::uint32_t id) const noexcept {
  if (id < first_id_) return base_ ? base_->type(id) : nullptr;
  if (id >= end_id()) return nullptr;
  return reinterpret_cast<const btf_type*>(bytes_.data() + types_[id - first_id_]);
}

const char* Types::name_at(std::uint32_t offset) const noexcept {
  if (offset < first_string_) return base_->name_at(offset);
  if (offset - first_string_ >= strings_.size()) return "";
  return reinterpret_cast<const char*>(strings_.data()) + (offset - first_string_);  // index() saw the last zero
}

bool Types::is_called(const btf_type& type, std::string_view sought) const noexcept {
  const char* called = name_at(type.name_off);
  return std::strncmp(called, sought.data(), sought.size()) == 0 && called[sought.size()] == '\0';
}

std::vector<Function> Types::functions() const {
  std::vector<Function> found;
  found.reserve(functions_.size());
  for (const std::uint32_t id : functions_)
    found.push_back({.id = id, .proto = type(id)->type, .name = name(type(id)->name_off)});
  return found;
}

std::vector<Function> Types::functions_of(const std::unordered_set<std::string_view>& names) const {
  // Which pairs of first letters there are: what has another is not looked up.
  const auto first_letters = [](const char* called) {
    const auto letter = [](char c) { return static_cast<unsigned char>(c); };
    return called[0] == '\0' ? 0U : letter(called[0]) * 256U + letter(called[1]);
  };
  std::vector<bool> beginnings(256U * 256U);
  for (const std::string_view sought : names) beginnings[first_letters(std::string(sought).c_str())] = true;
  std::vector<Function> found;
  for (const std::uint32_t id : functions_) {
    const btf_type* candidate = type(id);
    const char* called = name_at(candidate->name_off);
    if (beginnings[first_letters(called)] && names.contains(called))
      found.push_back({.id = id, .proto = candidate->type, .name = called});
  }
  return found;
}

std::uint32_t Types::function_id(std::string_view called) const noexcept {
  const auto found = std::ranges::find_if(functions_, [&](std::uint32_t id) { return is_called(*type(id), called); });
  return found == functions_.end() ? 0 : *found;
}

std::uint32_t Types::tracepoint_id(std::string_view called) const noexcept {
  for (std::uint32_t id = first_id_; id < end_id(); ++id) {
    const btf_type* candidate = type(id);
    if (kind_of(candidate->info) != BTF_KIND_TYPEDEF) continue;
    const char* typedef_name = name_at(candidate->name_off);
    if (std::strncmp(typedef_name, kTracepointPrefix.data(), kTracepointPrefix.size()) == 0 &&
        typedef_name + kTracepointPrefix.size() == called)
      return id;
  }
  return 0;
}

namespace {

/// The same types in the same order, whatever their names.
bool same_parameters(const btf_type& a, const btf_type& b) {
  const std::span first(reinterpret_cast<const btf_param*>(&a + 1), vlen_of(a.info));
  const std::span second(reinterpret_cast<const btf_param*>(&b + 1), vlen_of(b.info));
  return std::equal(first.begin(), first.end(), second.begin(), second.end(),
                    [](const btf_param& x, const btf_param& y) { return x.type == y.type; });
}

}  // namespace

std::vector<Function> Types::tracepoints() const {
  constexpr std::string_view prefix = kTracepointPrefix;
  const std::unordered_map<std::string_view, std::uint32_t> named = tracepoint_callers();
  std::vector<Function> found;
  for (std::uint32_t id = first_id_; id < end_id(); ++id) {
    const btf_type* candidate = type(id);
    if (kind_of(candidate->info) != BTF_KIND_TYPEDEF) continue;
    const std::string_view called = name(candidate->name_off);
    if (!called.starts_with(prefix)) continue;
    const btf_type* pointer = type(candidate->type);
    if (!pointer || kind_of(pointer->info) != BTF_KIND_PTR) continue;
    const btf_type* proto = type(pointer->type);
    if (!proto || kind_of(proto->info) != BTF_KIND_FUNC_PROTO) continue;
    Function& tracepoint =
        found.emplace_back(Function{.id = id, .proto = pointer->type, .name = called.substr(prefix.size())});
    const auto caller = named.find(tracepoint.name);
    const btf_type* other = caller == named.end() ? nullptr : type(caller->second);
    if (other && kind_of(other->info) == BTF_KIND_FUNC_PROTO && same_parameters(*other, *proto))
      tracepoint.proto = caller->second;
  }
  return found;
}

/// The typedef is of a pointer, whose parameters have no names. What calls the tracepoint's programs has them (5.10).
std::unordered_map<std::string_view, std::uint32_t> Types::tracepoint_callers() const {
  constexpr std::string_view prefix = "__traceiter_";
  std::unordered_map<std::string_view, std::uint32_t> protos;
  for (const std::uint32_t id : functions_) {
    const btf_type* candidate = type(id);
    const char* called = name_at(candidate->name_off);
    if (std::strncmp(called, prefix.data(), prefix.size()) == 0)
      protos.emplace(called + prefix.size(), candidate->type);
  }
  return protos;
}

std::optional<std::uint32_t> Types::offset_in(std::uint32_t structure, std::string_view member,
                                              std::unordered_set<std::uint32_t>& seen, unsigned depth) const {
  const btf_type* outer = type(structure);
  const auto kind = outer ? kind_of(outer->info) : 0U;
  if ((kind != BTF_KIND_STRUCT && kind != BTF_KIND_UNION) || depth == 0 || !seen.insert(structure).second)
    return std::nullopt;
  const auto* members = reinterpret_cast<const btf_member*>(outer + 1);
  const bool has_bit_fields = BTF_INFO_KFLAG(outer->info);
  for (unsigned i = 0; i < vlen_of(outer->info); ++i) {
    const std::uint32_t bits = has_bit_fields ? BTF_MEMBER_BIT_OFFSET(members[i].offset) : members[i].offset;
    const std::string_view called = name(members[i].name_off);
    if (called == member) {
      const bool is_bit_field = has_bit_fields && BTF_MEMBER_BITFIELD_SIZE(members[i].offset) != 0;
      return is_bit_field || bits % 8 != 0 ? std::nullopt : std::optional(bits / 8);
    }
    if (!called.empty()) continue;
    if (const auto found = offset_in(members[i].type, member, seen, depth - 1)) return bits / 8 + *found;
  }
  return std::nullopt;
}

Result<std::uint32_t> Types::member_offset(std::string_view structure, std::string_view member) const {
  for (const std::uint32_t id : structures_) {
    if (!is_called(*type(id), structure)) continue;
    std::unordered_set<std::uint32_t> seen;  // no member is looked for twice in one anonymous struct
    if (const auto offset = offset_in(id, member, seen, kDeepest)) return *offset;
  }
  if (base_) return base_->member_offset(structure, member);
  return fail(ErrorKind::not_found, fmt::format("kernel BTF has no {}.{}", structure, member));
}

Result<std::uint32_t> Types::structure_size(std::string_view structure) const {
  for (const std::uint32_t id : structures_)
    if (is_called(*type(id), structure)) return type(id)->size;
  if (base_) return base_->structure_size(structure);
  return fail(ErrorKind::not_found, fmt::format("kernel BTF has no struct {}", structure));
}

}  // namespace usdt::btf
