// SPDX-License-Identifier: BSD-2-Clause
#include "selection.hpp"

#include <map>
#include <utility>

namespace usdtc {
namespace {

/// The arguments of the sites of a file, decoded as they are asked for.
class Decoded {
 public:
  explicit Decoded(const usdt::ProbeFile& file) : decoder_(*file.elf) {}

  std::shared_ptr<const std::vector<usdt::Arg>> of(const usdt::Site& site) {
    auto& known = by_text_[{site.args_text, site.description.get()}];
    if (!known) known = std::make_shared<const std::vector<usdt::Arg>>(decoder_.decode(site));
    return known;
  }

 private:
  usdt::ArgDecoder decoder_;
  std::map<std::pair<std::string_view, const usdt::SiteDescription*>, std::shared_ptr<const std::vector<usdt::Arg>>>
      by_text_;
};

Point blank(const usdt::ProbeFile& file) {
  Point point;
  point.file = file.target.path.string();
  point.machine = to_string(file.elf->machine());
  return point;
}

Point point_of(const usdt::ProbeFile& file, const usdt::Site& site, Decoded& decoded) {
  Point point = blank(file);
  point.kind = USDTC_POINT_PROBE;
  point.flags = site.has_semaphore ? USDTC_POINT_HAS_SEMAPHORE : 0;
  point.full_name = usdt::probe_name(file.target, site.provider, site.name);
  point.provider = site.provider;
  point.name = site.name;
  point.pc = site.pc.value;
  point.offset = site.offset ? site.offset->value : UINT64_MAX;
  point.semaphore = site.semaphore.value;
  point.args_text = site.args_text;
  point.has_args_text = true;
  if (site.site_class != usdt::SiteClass::unknown) point.instruction = to_string(site.site_class);
  if (site.description) {
    point.source_file = site.description->file;
    point.source_line = site.description->line;
  }
  point.args = decoded.of(site);
  return point;
}

std::shared_ptr<const std::vector<usdt::Arg>> args_of(const std::vector<usdt::Arg>& args,
                                                      const std::optional<usdt::Arg>& result) {
  auto all = std::make_shared<std::vector<usdt::Arg>>(args);
  if (result) all->push_back(*result);
  return all;
}

Point point_of(const usdt::ProbeFile& file, const usdt::FunctionPoint& function) {
  Point point = blank(file);
  point.kind = USDTC_POINT_FUNCTION;
  point.flags = function.inlined ? USDTC_POINT_INLINED : 0;
  point.full_name = usdt::function_name(file.target, function.moment, function.name, function.distance);
  point.provider = usdt::function_prefix(function.moment);
  point.name = function.name;
  point.pc = function.pc.value;
  point.offset = function.offset ? function.offset->value : UINT64_MAX;
  if (function.site_class != usdt::SiteClass::unknown) point.instruction = to_string(function.site_class);
  point.source_file = function.source_file;
  point.source_line = function.source_line;
  point.refused = function.refused;
  const bool entry = function.moment != usdt::Moment::exit;
  const bool exit = function.moment != usdt::Moment::entry;
  if (function.signature)
    point.args = args_of(entry ? function.signature->args : std::vector<usdt::Arg>(),
                         exit ? function.signature->result : std::nullopt);
  return point;
}

Point point_of(const usdt::KernelSelection& kernel, const usdt::KernelSelection::Entry& entry) {
  const usdt::KernelPoint described = usdt::describe_point(kernel, entry, usdt::kernel_machine());
  Point point;
  point.kind = USDTC_POINT_KERNEL;
  point.full_name = described.name;
  point.machine = to_string(usdt::kernel_machine());
  point.provider = to_string(entry.kind);
  point.name = entry.function->name;
  point.pc = entry.function->address;
  point.refused = described.refused;
  point.args = args_of(described.args, described.result);
  return point;
}

usdtc_point view_of(const Point& point) {
  usdtc_point view{};
  view.kind = point.kind;
  view.flags = point.flags;
  view.full_name = point.full_name.c_str();
  view.file = or_null(point.file);
  view.machine = point.machine.c_str();
  view.provider = point.provider.c_str();
  view.name = point.name.c_str();
  view.pc = point.pc;
  view.offset = point.offset;
  view.semaphore = point.semaphore;
  view.args_text = point.has_args_text ? point.args_text.c_str() : nullptr;
  view.instruction = or_null(point.instruction);
  view.source_file = or_null(point.source_file);
  view.source_line = point.source_line;
  view.arg_count = static_cast<std::uint32_t>(point.args->size());
  view.refused = or_null(point.refused);
  return view;
}

/// Without patterns: every USDT probe of the scope. That there are none is an empty selection, but a target that means
/// no file, or a process that is not there, is an error.
usdt::Result<usdt::Selection> select_all(const usdt::SearchScope& scope) {
  const std::vector<usdt::PointPattern> every{usdt::ProbePattern{}};
  usdt::FoundFiles found = usdt::find_files(every, scope);
  if (!found.errors.empty()) return usdt::fail(std::move(found.errors.front()));
  if (!found.nowhere.empty())
    return usdt::fail(usdt::ErrorKind::not_found, fmt::format("no ELF file in '{}'", found.nowhere[0]));
  usdt::Selection selection;
  for (const usdt::FoundFile& each : found.files) {
    if (scope.stop.stop_requested()) break;
    auto file = usdt::find_probes(each.target, every, {.stop = scope.stop});
    if (!file && each.named && found.files.size() == 1) return usdt::fail(std::move(file.error()));
    if (!file)
      selection.unreadable.push_back(std::move(file.error()));
    else if (!file->sites.empty())
      selection.files.push_back(std::move(*file));
  }
  if (scope.stop.stop_requested()) return usdt::fail(usdt::ErrorKind::stopped, "probes were not looked for to the end");
  return selection;
}

usdt::Result<usdt::SearchScope> scope_of(const usdtc_search& search) {
  usdt::SearchScope scope;
  auto targets = read_texts(search.targets, search.target_count, "targets");
  if (!targets) return usdt::fail(std::move(targets.error()));
  auto pids = read_pids(search.pids, search.pid_count, "pids");
  if (!pids) return usdt::fail(std::move(pids.error()));
  scope.targets = std::move(*targets);
  scope.pids = std::move(*pids);
  if (search.program) scope.program = search.program;
  scope.stop = token_of(search.stop);
  return scope;
}

usdt::Result<std::unique_ptr<usdtc_selection>> select(const usdtc_search& search) {
  auto texts = read_texts(search.patterns, search.pattern_count, "patterns");
  if (!texts) return usdt::fail(std::move(texts.error()));
  auto scope = scope_of(search);
  if (!scope) return usdt::fail(std::move(scope.error()));
  auto made = std::make_unique<usdtc_selection>();
  auto patterns = usdt::parse_patterns(*texts);
  if (!patterns) return usdt::fail(std::move(patterns.error()));
  auto selected = patterns->empty() ? select_all(*scope) : usdt::select(*patterns, *scope);
  if (!selected) return usdt::fail(std::move(selected.error()));
  made->patterns = std::move(*patterns);
  made->selection = std::move(*selected);
  for (const usdt::Error& error : made->selection.unreadable)
    made->notices.push_back({USDTC_NOTICE_UNREADABLE, UINT32_MAX, error.message});
  for (const usdt::RefusedFunction& refused : made->selection.kernel.refused)
    made->notices.push_back(
        {USDTC_NOTICE_SKIPPED, UINT32_MAX,
         fmt::format("{}: {}", usdt::kernel_name(refused.kind, refused.module, refused.name), refused.reason)});
  for (const std::string& missing : made->selection.kernel.missing)
    made->notices.push_back({USDTC_NOTICE_UNREADABLE, UINT32_MAX, missing});
  return made;
}

}  // namespace

std::uint32_t number_of(usdt::TypeKind kind) noexcept {
  switch (kind) {
    case usdt::TypeKind::integer:
      return USDTC_TYPE_INTEGER;
    case usdt::TypeKind::floating:
      return USDTC_TYPE_FLOAT;
    case usdt::TypeKind::boolean:
      return USDTC_TYPE_BOOLEAN;
    case usdt::TypeKind::enumeration:
      return USDTC_TYPE_ENUM;
    case usdt::TypeKind::pointer:
      return USDTC_TYPE_POINTER;
    case usdt::TypeKind::text:
      return USDTC_TYPE_TEXT;
    case usdt::TypeKind::structure:
      return USDTC_TYPE_STRUCT;
    case usdt::TypeKind::array:
      return USDTC_TYPE_ARRAY;
  }
  return 0;
}

usdtc_arg describe(const usdt::Arg& arg) noexcept {
  usdtc_arg out{};
  out.kind = number_of(arg.type.kind);
  out.bytes = arg.type.size;
  if (arg.type.is_signed) out.flags |= USDTC_ARG_SIGNED;
  if (arg.result) out.flags |= USDTC_ARG_RESULT;
  if (arg.derived) out.flags |= USDTC_ARG_DERIVED;
  if (arg.hidden) out.flags |= USDTC_ARG_HIDDEN;
  out.part_of = arg.part_of ? *arg.part_of : -1;
  if (arg.declaration) {
    out.name = or_null(arg.declaration->name);
    out.type = or_null(arg.declaration->type);
    out.meaning = or_null(arg.declaration->meaning);
    out.unit = or_null(arg.declaration->unit);
  }
  out.source = or_null(arg.source);
  if (const auto* unreadable = std::get_if<usdt::Unreadable>(&arg.location)) out.refused = unreadable->reason.c_str();
  return out;
}

usdt::Result<void> write_arg(const std::vector<usdt::Arg>& args, std::size_t n, usdtc_arg* out) {
  if (n >= args.size()) return no_more("argument", n, args.size());
  return write_struct(describe(args[n]), out, kArg, "usdtc_arg");
}

usdt::Result<void> write_notice(const Notice* notice, std::size_t n, std::size_t count, usdtc_notice* out) {
  if (!notice) return no_more("notice", n, count);
  return write_struct({0, notice->kind, notice->probe, notice->message.c_str()}, out, kNotice, "usdtc_notice");
}

}  // namespace usdtc

const std::vector<usdtc::Point>& usdtc_selection::points() const {
  const std::lock_guard lock(mutex_);
  if (points_) return *points_;
  std::vector<usdtc::Point> all;
  for (const usdt::ProbeFile& file : selection.files) {
    usdtc::Decoded decoded(file);
    for (const usdt::Site& site : file.sites) all.push_back(point_of(file, site, decoded));
    for (const usdt::FunctionPoint& function : file.functions) all.push_back(usdtc::point_of(file, function));
  }
  for (const usdt::KernelSelection::Entry& entry : selection.kernel.entries)
    all.push_back(usdtc::point_of(selection.kernel, entry));
  return points_.emplace(std::move(all));
}

std::size_t usdtc_selection::count() const noexcept {
  std::size_t count = selection.kernel.entries.size();
  for (const usdt::ProbeFile& file : selection.files) count += file.sites.size() + file.functions.size();
  return count;
}

extern "C" {

int usdtc_select(const usdtc_search* search, usdtc_selection** selection, usdtc_error** error) {
  if (selection) *selection = nullptr;
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!selection) return usdtc::invalid("no place for the selection");
    auto read = usdtc::read_struct(search, usdtc::kSearch, "usdtc_search");
    if (!read) return usdt::fail(std::move(read.error()));
    auto made = usdtc::select(*read);
    if (!made) return usdt::fail(std::move(made.error()));
    *selection = made->release();
    return {};
  });
}

size_t usdtc_selection_count(const usdtc_selection* selection) { return selection ? selection->count() : 0; }

int usdtc_selection_point(const usdtc_selection* selection, size_t n, usdtc_point* point, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!selection) return usdtc::invalid("the selection is NULL");
    if (n >= selection->count()) return usdtc::no_more("point", n, selection->count());
    return usdtc::write_struct(usdtc::view_of(selection->points()[n]), point, usdtc::kPoint, "usdtc_point");
  });
}

int usdtc_selection_arg(const usdtc_selection* selection, size_t n, size_t arg, usdtc_arg* info, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!selection) return usdtc::invalid("the selection is NULL");
    if (n >= selection->count()) return usdtc::no_more("point", n, selection->count());
    return usdtc::write_arg(*selection->points()[n].args, arg, info);
  });
}

int usdtc_selection_notice(const usdtc_selection* selection, size_t n, usdtc_notice* notice, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!selection) return usdtc::invalid("the selection is NULL");
    const auto& all = selection->notices;
    return usdtc::write_notice(n < all.size() ? &all[n] : nullptr, n, all.size(), notice);
  });
}

void usdtc_selection_free(usdtc_selection* selection) { delete selection; }
}
