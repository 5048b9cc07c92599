// SPDX-License-Identifier: BSD-2-Clause
// From a selection to an AttachPlan, a plain value that has all that attaching needs: plan_attach() plans hits and
// calls, plan_spans() spans from one probe to another; print the plan, test it, then load it (Tracer::start(),
// BpfObject::load()).
//     auto plan = usdt::plan_attach(*selection, usdt::kernel_facts(patterns), {.scope = *usdt::OneProcess::of(4711)});
//     for (const usdt::SkippedSite& site : plan->skipped) print(site.reason);
//     auto tracer = usdt::Tracer::start(std::move(*plan));
// Threads: planning is a pure function, for any thread. A plan owns its values, and keeps the scanned files open.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "usdt/backend.hpp"
#include "usdt/bpf/processes.h"
#include "usdt/bpf/spec.h"
#include "usdt/decode.hpp"
#include "usdt/expression.hpp"
#include "usdt/index.hpp"
#include "usdt/kernel.hpp"
#include "usdt/kernel_facts.hpp"
#include "usdt/machine.hpp"
#include "usdt/moment.hpp"
#include "usdt/result.hpp"
#include "usdt/select.hpp"
#include "usdt/stop.hpp"
#include "usdt/table.hpp"
#include "usdt/value_path.hpp"

namespace usdt {
inline namespace v1 {

/// Counts hits of every process.
struct AllProcesses {};
/// Counts hits of one process. It cannot mean every process by mistake, as pid 0 would to the kernel.
class OneProcess {
 public:
  /// Chooses the process (thread group) with that number in the caller's pid namespace. It need not exist yet:
  /// attaching finds out. Errors: invalid_argument (0 or less, which the kernel's interfaces take for every process;
  /// the number of a thread that is not its process's first).
  [[nodiscard]] static Result<OneProcess> of(pid_t pid);
  /// Returns its number in the caller's pid namespace.
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

 private:
  explicit OneProcess(pid_t pid) noexcept : pid_(pid) {}
  pid_t pid_;
};
/// Counts hits of one process or several, each named once.
class Processes {
 public:
  /// The most processes there may be: where the kernel cannot filter by process, programs compare each hit's process
  /// with all.
  static constexpr std::size_t kMost = USDT_MAX_PROCESSES;
  /// Chooses processes as OneProcess::of() does, in any order. Errors: invalid_argument (none; those of
  /// OneProcess::of(); one twice), limit (more than kMost).
  [[nodiscard]] static Result<Processes> of(std::vector<pid_t> pids);
  /// Chooses one process.
  Processes(OneProcess process) : pids_{process.pid()} {}  // NOLINT(google-explicit-constructor): one is a case of some
  /// Returns their numbers, in the order in which they were given.
  [[nodiscard]] const std::vector<pid_t>& pids() const noexcept { return pids_; }

 private:
  explicit Processes(std::vector<pid_t>&& pids) noexcept : pids_(std::move(pids)) {}
  std::vector<pid_t> pids_;
};
/// Says whose hits count.
using Scope = std::variant<AllProcesses, OneProcess, Processes>;
/// Returns the numbers of the processes of a scope, as they were given; empty: every process.
[[nodiscard]] std::vector<pid_t> pids_of(const Scope& scope);

/// Finds the position of an argument in a site's list; nothing: there is none of that name or number. In a span's list
/// the name "end.NAME" means an argument of the span's end, and so does a name that the beginning does not have.
[[nodiscard]] std::optional<std::size_t> find_arg(const std::vector<Arg>& args, const ArgName& name);

/// Names a text that need not end in a NUL: it has as many bytes as the argument `length` says, which may be NULs, too.
struct BoundedString {
  ArgName text;
  ArgName length;
};

/// Holds what tells one point of a selection from another, whatever their kinds.
struct PointName {
  std::string_view provider;  ///< of functions the prefix: "fentry", "uprobe"
  std::string_view name;
  std::string_view module;           ///< of the kernel; empty: vmlinux
  std::uint64_t address = 0;         ///< the note's pc; of a function its address; 0: not known, or a tracepoint
  const TargetFile* file = nullptr;  ///< null: of the kernel
};

/// Chooses the arguments that the stock program also fetches as text (pointers to characters).
struct TextOptions {
  std::vector<std::uint8_t> numbers = {};
  std::vector<std::string> names = {};  ///< Arg::name; "retval"
  /// Texts with lengths. Texts of HotSpot's documented probes, and texts whose provider describes their lengths
  /// (SiteDescription), have them without being named here.
  std::vector<BoundedString> bounded = {};
  /// Arguments that are fetched where their provider describes them as texts (SiteDescription), and else stay numbers.
  std::vector<ArgName> described = {};
  /// Whether every argument is fetched whose type is known to be a pointer to characters.
  bool typed = false;
  /// Whether every argument of a file's sites is tried that may be a pointer: unsigned, of a pointer's size, and no
  /// constant. Event::text() then has only what is plainly text. Each one that is no small number costs 0.1 us a hit;
  /// one that points nowhere again and again is no longer looked at.
  bool likely = false;
};

/// Chooses values that are read besides the arguments themselves. Each becomes one more entry behind the arguments in
/// the site's list (Arg::derived).
struct ValueOptions {
  /// Members, elements and what pointers point to; each value is named by the text of its path. A path from an argument
  /// that a site does not have is left out there.
  std::vector<ValuePath> paths = {};
  /// Whether structs and arrays among the arguments are shown with their members, and texts of libraries (std::string,
  /// &str) as texts.
  bool open = false;
  unsigned depth = 1;  ///< structs within structs that are shown with their members
};

/// Says how a plan is made.
struct PlanOptions {
  Scope scope = AllProcesses{};
  std::uint64_t user_cookie = 0;  ///< the result of usdt_cookie() in the program
  /// Chooses the cookie of each point (by provider and name, say), in the place of `user_cookie`.
  std::function<std::uint64_t(const PointName&)> user_cookie_of = {};
  /// The backend by which kernel functions are attached; automatic: the cheapest that can do what is asked.
  Backend kernel_backend = Backend::automatic;
  /// Whether bare nop5 sites are attached even where the kernel's optimisation may corrupt the traced program.
  bool allow_unsafe_nop5 = false;
  /// Ends the planning early, from another thread: ErrorKind::stopped.
  StopToken stop = {};
  TextOptions texts = {};
  /// Chooses the texts of each point, in the place of `texts`; null: `texts`. The options that it points to have to
  /// stay as they are while the plan is made.
  std::function<const TextOptions*(const PointName&)> texts_of = {};
  ValueOptions values = {};
  /// Chooses the values of each point, in the place of `values`; null: `values`. The options that it points to have to
  /// stay as they are while the plan is made.
  std::function<const ValueOptions*(const PointName&)> values_of = {};
  /// Whether events have the user, group, cgroup and parent of their processes: Event::owner().
  bool owners = false;
  /// Whether events have the trace and span that their threads work for: Event::thread_context().
  bool contexts = false;
  /// Whether they have its attributes as well: Event::thread_attributes(). Makes records 640 bytes longer.
  bool attributes = false;
  /// Only hits for which this expression is true count; null: all do. The kernel evaluates it before anything is
  /// recorded. Sites that lack an argument it names are skipped with the reason. It cannot ask for
  /// Operator::attribute, nor can `table` (not_supported): EventFilter and EventTable can.
  std::shared_ptr<const Expression> where = {};
  /// Hits become rows of a table (Tracer::table()) instead of events; null: events. Sites that lack an argument it
  /// names, or have it with another type than the first site, are skipped with the reason.
  std::shared_ptr<const TableQuestion> table = {};
  /// The columns of the table that a trace has already (AttachPlan::table), for a plan that Tracer::add() adds to it;
  /// null: the first site of this plan decides their types.
  std::shared_ptr<const PlannedTable> rows = {};
};

/// Says which beginning an end of a span belongs to: values of both that have to be equal. If several spans have begun
/// with equal values and not ended, the end is that of the last one: spans can be nested.
struct SpanPairing {
  std::vector<Expression> begin = {};  ///< over what is known where it begins: at most four integers; none: the thread
  std::vector<Expression> end = {};    ///< as many, over what is known where it ends; none: those of `begin`
};

/// Describes one file of the plan.
struct PlannedFile {
  TargetFile target;
  /// Keeps the scanned inode open, so that attaching (to /proc/self/fd/N) means exactly that. Null: the plan is that of
  /// a recording, or the file was detached for good (Link::let_go()).
  std::shared_ptr<const ElfFile> elf;
  std::optional<Machine> machine = {};  ///< of a file that was detached for good
};

/// Describes a kernel function or raw tracepoint of the plan.
struct PlannedFunction {
  std::string name = {};
  std::string module = {};    ///< empty: vmlinux
  std::uint64_t address = 0;  ///< 0: not known, or a tracepoint
  std::uint32_t btf_id = 0;
};

/// Holds the two ends of a span.
template <class T>
struct FromTo {
  Index<T> begin = {};
  Index<T> end = {};
};

/// Describes a probe, whose hits are counted together: all sites of one provider:name in one file, which may differ in
/// their arguments; all functions of one name in one file, at one moment; one kernel function; or a span.
struct PlannedProbe {
  std::optional<Index<PlannedFile>> file = {};  ///< none: of the kernel
  std::string provider = {};                    ///< of functions the prefix: "fentry", "uprobe"
  std::string name = {};                        ///< of the kernel: "vfs_read", "nf_tables:nft_do_chain" in a module
  std::optional<Moment> function = {};          ///< of a file's functions: when; none: a USDT probe, or of the kernel
  std::uint64_t distance = 0;                   ///< FunctionPoint::distance
  /// A span, from a hit of one probe to one of another, whose provider and name are those of both.
  std::optional<FromTo<PlannedProbe>> span = {};
};

/// Holds an encoded spec, deduplicated over all sites of the plan.
struct EncodedSpec {
  std::uint64_t user_cookie = 0;
  std::vector<usdt_arg_spec> args = {};
  std::vector<usdt_arg_spec> steps = {};  ///< the steps to members, which programs find behind the arguments
};

/// A point in a file.
struct FilePlace {
  Index<PlannedFile> file = {};
  VirtAddr pc = {};                   ///< the note's
  FileOffset offset = {};             ///< the place of the breakpoint: the site, or its nop10
  std::uint64_t semaphore = 0;        ///< file offset; 0: none
  std::vector<FileOffset> rets = {};  ///< FunctionPoint::rets: where programs at returns sit instead
  bool at_entry = false;              ///< it is the first instruction of a function, whose caller is in a known place
};
/// A point at a function of the kernel.
struct KernelFunctionPlace {
  Index<PlannedFunction> function = {};
};
/// A point at a raw tracepoint of the kernel.
struct TracepointPlace {
  Index<PlannedFunction> tracepoint = {};
};
/// Says where a program can sit.
using Point = std::variant<FilePlace, KernelFunctionPlace, TracepointPlace>;

/// Describes a site that will be attached.
struct PlannedSite {
  Index<PlannedProbe> probe = {};
  Point point = {};
  Index<EncodedSpec> spec = {};
  Index<std::vector<Arg>> args = {};
  std::optional<Index<std::string>> program = {};     ///< in AttachPlan::programs; none: for any program
  std::optional<Index<TypedExpression>> filter = {};  ///< in AttachPlan::filters; none: every hit counts
  std::uint8_t tracer_frames = 0;  ///< innermost frames of its kernel stacks that are the program's and trampoline's
  /// The row in AttachPlan::filters whose keys pair the ends of spans, at sites that are such ends. Their `filter` is
  /// about the whole span.
  std::optional<Index<TypedExpression>> pair = {};
  /// The two sites of a span, to which programs are attached; nothing is attached to the span itself. It has the place
  /// of the first; its arguments are those of both, which for the second are named "end.NAME".
  std::optional<FromTo<PlannedSite>> span = {};
};

/// Names a site that will not be attached, and says why.
struct SkippedSite {
  Index<PlannedProbe> probe = {};
  std::optional<VirtAddr> pc = {};  ///< the note's; of a kernel function its address, where it is known
  std::string reason = {};
};

/// Stands for the kernel functions of one module that are asked for by one prefix.
struct KernelModule {
  std::string name = {};  ///< empty: vmlinux
  KernelKind kind = {};
  friend bool operator==(const KernelModule&, const KernelModule&) = default;
};

/// Groups sites that are attached alike: those of one file, or kernel functions of one module.
struct AttachGroup {
  Backend backend = Backend::automatic;  ///< automatic: of files, the best the kernel has
  usdt_source source = USDT_SOURCE_USER;
  Moment moment = Moment::entry;
  bool session = false;                ///< both ends: by one program; where the kernel has none such, by two
  ReturnBy returns = ReturnBy::probe;  ///< of files
  bool cookies = true;                 ///< this backend has attach cookies here
  std::variant<Index<PlannedFile>, KernelModule> of = {};
  std::vector<Index<PlannedSite>> sites = {};
};

/// Divides AttachPlan::sites of plan_spans(): sites that begin spans, then sites that end them, then for each pair of
/// these one that is the span (PlannedSite::span), spans of the first beginning first. Sites that append_plan()
/// appended are divided likewise, behind these: the numbers here are about the first part.
struct PlannedSpans {
  std::uint32_t begins = 0;
  std::uint32_t ends = 0;
  std::uint32_t specs = 0;       ///< AttachPlan::specs of places; those behind them are of spans
  std::uint32_t args = 0;        ///< of any span
  std::uint32_t first_arg = 0;   ///< of the end among them
  std::uint32_t first_text = 0;  ///< of the end's string slots among those of the span
  std::uint32_t key_bytes = 0;   ///< of what pairs the ends
};

/// Holds everything attaching needs, computed from files and KernelFacts alone: print it, test it, attach it.
struct AttachPlan {
  Scope scope;
  Table<PlannedFile> files;
  Table<PlannedFunction> functions;
  Table<AttachGroup> groups;  ///< each site is in one
  Machine kernel_machine = host_machine();
  Table<PlannedProbe> probes;
  Table<PlannedSite> sites;  ///< a site's index is the site number of usdt_site()
  std::vector<SkippedSite> skipped;
  Table<EncodedSpec> specs;
  Table<std::vector<Arg>> args;         ///< distinct decoded argument lists
  std::uint32_t max_args = 0;           ///< of any spec
  std::uint32_t max_entries = 0;        ///< of any spec: arguments and steps
  std::uint32_t max_steps = 0;          ///< of any value
  std::uint32_t string_slots = 0;       ///< of any spec (PlanOptions::texts)
  bool owners = false;                  ///< PlanOptions::owners
  bool contexts = false;                ///< PlanOptions::contexts
  bool attributes = false;              ///< PlanOptions::attributes
  Table<TypedExpression> filters = {};  ///< PlanOptions::where, and the table's row, over each kind of site
  std::optional<PlannedTable> table = {};
  Table<std::string> programs = {};  ///< of one BPF object, each for sites of its own (join_plans())
  std::optional<PlannedSpans> spans = {};

  /// Returns how many of the sites are places, to which something is attached: the first so many.
  [[nodiscard]] std::size_t places() const noexcept { return spans ? spans->begins + spans->ends : sites.size(); }
  /// Returns how many of the specs are read by programs: the first so many.
  [[nodiscard]] std::size_t read_specs() const noexcept { return spans ? spans->specs : specs.size(); }
};

/// Plans the attachment of all that was selected to `kernel`. Errors: invalid_argument where a path of PlanOptions
/// leads nowhere at any site, naming the step. A site that cannot be attached becomes SkippedSite; that every site was
/// skipped is an error (not_supported, naming the first reason), as is an empty input (not_found).
[[nodiscard]] Result<AttachPlan> plan_attach(const Selection& selection, const KernelFacts& kernel,
                                             const PlanOptions& options = {});

/// Plans spans, each from a hit of what was selected as `begins` to one of what was selected as `ends`, in whatever
/// thread or process: an event has the arguments of both, and how long it took (Event::duration()). Points may be of
/// any kind but calls, which are spans themselves. Options are about the whole span: what is called "end.NAME"
/// ("end.arg1", "end.req->port") is the end's, and so is what the beginnings do not have. Only Tracer traces such a
/// plan. Errors as plan_attach(), and: invalid_argument (calls; a point on both sides; what pairs is not of the same
/// types on both; a value asked about differs in type between beginnings; texts of beginnings, and what is known of a
/// hit beside duration, nsecs and probe, in `where` and `table`), limit (more than 65,536 pairs of sites, more
/// arguments than fit).
[[nodiscard]] Result<AttachPlan> plan_spans(const Selection& begins, const Selection& ends, const KernelFacts& kernel,
                                            const PlanOptions& options = {}, const SpanPairing& pairing = {});

/// Pairs a program of a BPF object with the plan of the sites it is for.
struct ProgramPlan {
  std::string program;  ///< name of the C function
  AttachPlan plan;
};
/// Makes one plan of several, so that one object is loaded once for all of them and its programs share their maps.
/// Sites, probes and so on keep their order, those of the first part first. Errors: invalid_argument (no part; a part
/// without a program's name, or joined already; scopes that differ), limit (more sites than can be told apart).
[[nodiscard]] Result<AttachPlan> join_plans(std::vector<ProgramPlan> parts);

/// Puts `part` behind `whole`: indices into `whole` stay valid, those of `part` go on from there. It is for sites that
/// are added to a trace while it runs; each part is loaded as the plan it was. Errors: invalid_argument (one of them
/// names programs; only one is of spans, or has a table; tables of other rows), limit (more sites than can be told
/// apart).
[[nodiscard]] Result<AttachPlan> append_plan(AttachPlan whole, AttachPlan part);

/// Describes a kernel function or raw tracepoint as it would be attached, for people to choose from.
struct KernelPoint {
  std::string name;           ///< "fentry:vfs_read", "kprobe:nf_tables:nft_do_chain": pastes into usdt-trace
  std::string signature;      ///< "ssize_t (struct file *file, ...)"; empty: types are not known
  std::vector<Arg> args;      ///< arguments that a program of this kind can read; `any`: as a kprobe has them
  std::optional<Arg> result;  ///< nothing: the kind has none
  std::string refused;        ///< why it cannot be attached; empty: it can, if the kernel has such programs
};
/// Describes one of `selection`'s entries on a kernel of `machine`. Reads no more than the selection did.
[[nodiscard]] KernelPoint describe_point(const KernelSelection& selection, const KernelSelection::Entry& entry,
                                         Machine machine);
/// Returns "fentry:vfs_read", "kprobe:nf_tables:nft_do_chain": a name that parse_pattern() takes.
[[nodiscard]] std::string kernel_name(KernelKind kind, std::string_view module, std::string_view name);

/// Returns the full name of a probe, which selects it again: "usdt:PATH:PROVIDER:NAME", "uprobe:PATH:FUNCTION",
/// "fentry:NAME".
[[nodiscard]] std::string full_name(const AttachPlan& plan, const PlannedProbe& probe);
/// Returns the machine whose registers a site's specs name.
[[nodiscard]] Machine machine_of(const AttachPlan& plan, const PlannedSite& site);
/// Returns the kernel function or raw tracepoint that a site is; null: it is in a file.
[[nodiscard]] const PlannedFunction* function_of(const AttachPlan& plan, const PlannedSite& site) noexcept;
/// Returns the note's pc, or the function's address; nothing: it is not known, or the site is a tracepoint.
[[nodiscard]] std::optional<VirtAddr> pc_of(const AttachPlan& plan, const PlannedSite& site) noexcept;
/// Returns whether some sites are kernel functions or tracepoints.
[[nodiscard]] bool has_kernel_points(const AttachPlan& plan) noexcept;

}  // namespace v1
}  // namespace usdt
