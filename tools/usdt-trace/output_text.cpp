// SPDX-License-Identifier: BSD-2-Clause
// One readable line for each event:
//     14:03:07.123456 python3.11       4711    python:function__entry arg0=0x7f3c5a1b2e40 "t.py" arg1=... arg2=12
// Arguments with names are shown by them; what an argument plainly points to, behind it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <iterator>

#include "common/meaning.hpp"
#include "common/report.hpp"
#include "common/width.hpp"
#include "frames.hpp"
#include "output.hpp"
#include "view_output.hpp"
#include "words.hpp"

namespace usdt_trace {
namespace {

constexpr std::size_t kBeforeProbe = 15 + 1 + 15 + 1 + 7 + 1;  ///< time, command and process
constexpr std::size_t kWidestProbe = 40;                       ///< longer ones push their own line
constexpr std::size_t kSomeArguments = 15;                     ///< that a terminal shall have room for behind it

class TextOutput final : public Output {
 public:
  TextOutput(const usdt::AttachPlan& plan, const Printed& printed, const Flags& flags, Surroundings& around,
             usdt::tools::Stream& out)
      : Output(around, out),
        printed_(printed),
        count_only_(flags.count_only),
        likely_texts_(flags.likely_texts),
        sample_(flags.sample),
        limited_(flags.max_overhead > 0),
        began_(flags.began),
        kernel_stacks_below_(!flags.kernel_stack_in_lists),
        user_stacks_below_(!flags.user_stack_in_lists),
        format_(flags.format_string),
        view_(flags.view),
        question_(flags.question),
        label_(label_of(flags)) {
    trace(plan);
    if (out_.terminal().interactive && flags.each_event() && format_.empty() && flags.first_question)
      out_.print("{:<{}}{}\n", "", usdt::tools::width_of(label_),
                 out_.styled(fmt::format("{:<15} {:<15} {:<7} {:<{}} ARGUMENTS", "TIME", "COMMAND", "PID", "PROBE",
                                         probe_width_),
                             usdt::tools::Style::bold));
  }

  void look_up(const usdt::AttachPlan& plan, std::size_t probes) override {
    columns_ = Columns(plan, printed_);
    names_ = ShortNames(plan, probes);
    measured_ = 0;
    make_room();
  }
  void know(std::size_t probes) override {
    names_.know(probes);
    make_room();
  }
  void make_room() {
    const std::size_t widest = std::min(kWidestProbe, out_.room(kBeforeProbe + 1 + kSomeArguments, 0));
    for (; measured_ < names_.size(); ++measured_)
      probe_width_ = std::max(probe_width_, std::min(usdt::tools::shown_width(names_[measured_]), widest));
  }

  /// A notice says it.
  void write_followed(const usdt::Followed& /*followed*/) override {}

  void write_event(const usdt::Event& event) override {
    show_event(event);
    Output::printed(1);
  }

  void show_event(const usdt::Event& event) {
    format_.empty() ? show_line(event) : show_formatted(event);
    const PrintList& list = printed_.of(event.site());
    if (kernel_stacks_below_ && !names(list, usdt::HitField::kstack)) show_frames(around_.kernel_stack());
    if (user_stacks_below_ && !names(list, usdt::HitField::ustack)) show_frames(around_.user_stack());
  }

  /// Those of --slowest say first what they are about.
  void show_line(const usdt::Event& event) {
    const bool ranked = view_.slowest > 0;
    const auto took = [&] { return usdt::tools::duration_text(static_cast<double>(event.duration())); };
    line_ = out_.printed();
    if (ranked)
      out_.print("{:>10} ", took());
    else
      out_.print("{}", label_);
    show_time(wall_time(event));
    out_.print(" {:<15} {:<7}", event.comm(), event.pid());
    const auto show_probe = [&] {
      out_.print(" {:<{}}", names_[event.site().probe.value], out_.terminal().interactive ? probe_width_ : 0);
    };
    if (ranked) out_.print(" {:<7}", event.tid());
    ranked ? show_piece(show_probe) : show_probe();  // which leave less room for it
    const PrintList& list = printed_.of(event.site());
    if (list.empty()) {
      for (std::size_t n = 0; n < event.arg_count(); ++n)
        if (!event.arg_info(n).derived) show_piece([&] { show_named(event, n); });
    }
    for (std::size_t i = 0; i < list.size(); ++i) show_piece([&] { show_item(event, list[i], i); });
    if (event.duration() > 0 && !ranked) show_piece([&] { out_.print(" took={}", took()); });
    out_.print("\n");
  }

  /// On a terminal what was shown before gives its place to it.
  void slowest(const usdt::SlowestEvents& events) override {
    const usdt::tools::Terminal& terminal = out_.terminal();
    if (redraws() && table_height_ > 0) out_.erase_lines(table_height_);
    if (!redraws()) show_when();
    const std::uint64_t at = out_.printed();
    if (format_.empty())
      out_.print("{:>10} {:<15} {:<15} {:<7} {:<7} {:<{}} ARGUMENTS\n", "TOOK", "TIME", "COMMAND", "PID", "TID",
                 "PROBE", terminal.interactive ? probe_width_ : 0);
    for (const usdt::KeptEvent& kept : events.events()) {
      around_.begin(kept);
      show_event(*kept.event);
    }
    if (redraws()) table_height_ = out_.cut(at, most_lines(), room_of_lines());
  }

  /// On a terminal the one before gives its place to it.
  void table(const usdt::PlannedTable& table, const std::vector<usdt::TableRow>& rows,
             const std::optional<usdt::Overhead>& overhead) override {
    const usdt::tools::Terminal& terminal = out_.terminal();
    Page page{.columns = terminal.width, .redrawn = redraws()};
    if (terminal.interactive) page.columns = page.room = room_of_lines();
    std::vector<std::string> lines = table_lines({view_, plan(), table, rows}, page);
    std::vector<std::string> notes;
    if (sample_ > 1) notes.push_back(estimated_text(sample_));
    if (limited_ && !overhead) notes.emplace_back("estimated from the weights of events");
    if (overhead && overhead->looked_at < 1) notes.push_back(estimated_text(*overhead));
    if (redraws()) {
      if (table_height_ > 0) out_.erase_lines(table_height_);
      leave_out_what_is_too_high(lines, notes.size());
    } else {
      show_when();
    }
    std::ranges::move(notes, std::back_inserter(lines));
    table_height_ = 0;
    for (const std::string& line : lines) {
      out_.print("{}\n", line);
      table_height_ += height_of(line);
    }
  }

  /// On a terminal a picture of as much as it is wide for, again and again; elsewhere one of all in the end.
  void heat(const HeatSlice& slice, bool last) override {
    heat_map_.add(slice);
    const usdt::tools::Terminal& terminal = out_.terminal();
    if (!redraws() && !last) return;
    if (!question_.empty()) out_.print("{}:\n", question_);
    HeatFrame frame{.width = terminal.width, .from = heat_map_.slices().front().from, .to = slice.to};
    if (terminal.interactive) {
      constexpr std::size_t label = 12;
      frame.width -= 1;
      frame.height = terminal.height;
      frame.blocks = usdt::tools::is_utf8_locale();
      const double shown = static_cast<double>(frame.width - std::min(frame.width, label)) * *view_.interval * 1e9;
      if (static_cast<double>(frame.to) - static_cast<double>(frame.from) > shown)
        frame.from = frame.to - static_cast<std::int64_t>(shown);
      if (table_height_ > 0) out_.erase_lines(table_height_);
    }
    const auto lines = draw(heat_map_, view_, frame);
    table_height_ = lines.size();
    for (const auto& line : lines) {
      for (const HeatPart& part : line) out_.print("{}", out_.styled(part.text, style_of(part.level)));
      out_.print("\n");
    }
  }

  /// With --count: probes that were hit, most hits first.
  void write_summary(const Summary& summary) override {
    if (!count_only_) return;
    std::vector<std::size_t> hit;
    for (std::size_t i = 0; i < summary.probes.size(); ++i)
      if (summary.probes[i].matched() > 0) hit.push_back(i);
    const auto number = [&](std::size_t i) {
      return limited_ ? summary.probes[i].estimated : summary.probes[i].matched() * sample_;
    };
    std::stable_sort(hit.begin(), hit.end(), [&](std::size_t a, std::size_t b) { return number(a) > number(b); });
    if (!question_.empty()) out_.print("{}:\n", question_);
    out_.print("{:>12}  {}\n", "HITS", "PROBE");
    for (const std::size_t i : hit) show_count(number(i), plan().probes[usdt::Index<usdt::PlannedProbe>(i)]);
    if (sample_ > 1) out_.print("{}\n", estimated_text(sample_));
    if (summary.overhead && summary.overhead->looked_at < 1) out_.print("{}\n", estimated_text(*summary.overhead));
    if (limited_ && !summary.overhead) out_.print("estimated from the weights of events\n");
  }

 private:
  /// Whose table follows, and as of when, where there are several.
  void show_when() {
    if (!view_.interval && question_.empty()) return;
    out_.print("{}", label_);
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    show_time(now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec);
    out_.print("\n");
  }

  /// On a terminal in one line.
  void show_count(std::uint64_t hits, const usdt::PlannedProbe& probe) {
    const std::uint64_t at = out_.printed();
    out_.print("{:>12}  ", hits);
    const std::string name = usdt::tools::printable(full_name(plan(), probe));
    const std::size_t taken = out_.width(at);
    const std::size_t room = room_of_lines() - std::min(taken, room_of_lines());
    out_.print("{}\n", out_.terminal().interactive ? usdt::tools::shortened(name, room) : name);
  }

  /// One column less than the terminal has: some begin a new line behind the last one.
  [[nodiscard]] std::size_t room_of_lines() const { return std::max<std::size_t>(out_.terminal().width, 2) - 1; }
  /// That a table which takes its own place again and again may have.
  [[nodiscard]] std::size_t most_lines() const { return std::max<std::size_t>(out_.terminal().height, 4) - 2; }
  /// Lines of the terminal that it goes over.
  [[nodiscard]] std::size_t height_of(std::string_view line) const {
    const std::size_t width = std::max<std::size_t>(out_.terminal().width, 1);
    return std::max<std::size_t>((usdt::tools::width_of(line) + width - 1) / width, 1);
  }

  /// Of a table, above as many other lines.
  void leave_out_what_is_too_high(std::vector<std::string>& lines, std::size_t others) const {
    const std::size_t most = std::max<std::size_t>(most_lines(), others + 2) - others;
    std::size_t height = 0;
    std::size_t left = 0;
    for (; left < lines.size() && height + height_of(lines[left]) <= most; ++left) height += height_of(lines[left]);
    if (left == lines.size()) return;
    left -= left > 0 && height == most ? 1 : 0;  // for the line that says so
    const std::size_t more = lines.size() - left;
    lines.resize(left);
    lines.push_back(fmt::format("... and {} more on a higher terminal", usdt::tools::counted(more, "line")));
  }

  /// Before lines of a script's question.
  static std::string label_of(const Flags& flags) {
    return flags.question.empty()
               ? std::string()
               : usdt::tools::padded(usdt::tools::printable(flags.question), flags.label_width) + "  ";
  }

  /// A table takes the place of the one before. Those of a script would take each other's.
  [[nodiscard]] bool redraws() const {
    return out_.terminal().interactive && view_.interval.has_value() && question_.empty();
  }

  static usdt::tools::Style style_of(unsigned level) {
    using usdt::tools::Style;
    constexpr std::array<Style, kHeatLevels + 1> kStyles{Style::plain, Style::heat1, Style::heat2,
                                                         Style::heat3, Style::heat4, Style::heat5};
    return kStyles[level];
  }

  /// Shows what `piece` prints; on a terminal below the line so far, where that has no room for it.
  template <class Piece>
  void show_piece(const Piece& piece) {
    const std::uint64_t at = out_.printed();
    piece();
    if (!out_.terminal().interactive || out_.width(line_) <= out_.terminal().width) return;
    out_.break_line(at);
    line_ = at + 1;
  }

  /// A line as --format-string has it.
  void show_formatted(const usdt::Event& event) {
    const PrintList& list = printed_.of(event.site());
    out_.print("{}", label_);
    std::size_t next = 0;
    for (const FormatPiece& piece : format_.pieces) {
      if (piece.kind == FormatPiece::Kind::text) {
        show_own(piece.text);
        continue;
      }
      const std::uint64_t at = out_.printed();
      if (piece.kind == FormatPiece::Kind::field)
        show_field(event, piece.field);
      else if (next < list.size())
        show_as(piece, event, list[next], next);
      next += piece.kind == FormatPiece::Kind::value ? 1 : 0;
      const bool cuts = piece.precision && piece.conversion == 's';
      out_.fit(at, piece.width, cuts ? *piece.precision : SIZE_MAX, piece.left);
    }
    out_.print("\n");
  }

  /// Of the format: line feeds and tabs are meant.
  void show_own(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find_first_of("\n\t"), text.size());
      out_.print("{}", text.substr(0, end));
      if (end == text.size()) return;
      text[end] == '\n' ? out_.print("\n") : out_.print("\t");
      text.remove_prefix(end + 1);
    }
  }

  void show_field(const usdt::Event& event, EventField field) {
    switch (field) {
      case EventField::time:
        return show_time(wall_time(event));
      case EventField::nsecs:
        return out_.print("{}", event.timestamp() + event.duration());
      case EventField::pid:
        return out_.print("{}", event.pid());
      case EventField::tid:
        return out_.print("{}", event.tid());
      case EventField::cpu:
        return out_.print("{}", event.cpu());
      case EventField::comm:
        return out_.print("{}", event.comm());
      case EventField::probe:
        return out_.print("{}", names_[event.site().probe.value]);
      case EventField::duration:
        return event.duration() > 0
                   ? out_.print("{}", usdt::tools::duration_text(static_cast<double>(event.duration())))
                   : out_.print("-");
    }
  }

  /// A value by a directive: a text without the quotes it has among others, a number as it says.
  void show_as(const FormatPiece& piece, const usdt::Event& event, const PrintItem& item, std::size_t i) {
    const auto position = columns_.position(event, i);
    if (!position && item.word) return show_word_as(piece, event, *item.word);
    if (!position) return show_error("no such argument");
    const usdt::Arg& arg = event.arg_info(*position);
    if (item.form == PrintItem::Form::bytes) return show_bytes_as(piece, event, *position);
    if (item.form == PrintItem::Form::address && piece.conversion == 's') return show_address(event, *position);
    const auto described =
        item.form == PrintItem::Form::value ? described_text(plan(), event, *position) : std::nullopt;
    if (piece.conversion == 's') {
      const bool is_text = item.form == PrintItem::Form::text || (arg.length && !arg.is_list());
      if (!is_text && !described) return show_value_of(event, item, i);
      const auto text = described ? usdt::Result<usdt::Text>(*described) : event.text(*position);
      if (!text) return show_error(text.error().message);
      const auto whole = text->truncated ? usdt::without_partial_utf8(text->bytes) : text->bytes;
      return out_.print("{}{}", whole, text->truncated ? "..." : "");
    }
    const usdt::Value value = event.value(*position);
    if (const auto* error = std::get_if<usdt::ArgError>(&value)) return show_error(error->reason);
    if (const auto* real = std::get_if<double>(&value)) return out_.print("{}", real_text(piece, *real));
    out_.print("{}", integer_text(piece, value, arg.type.size));
  }

  void show_item(const usdt::Event& event, const PrintItem& item, std::size_t i) {
    out_.print(" {}=", item.label);
    show_value_of(event, item, i);
  }

  void show_value_of(const usdt::Event& event, const PrintItem& item, std::size_t i) {
    const auto position = columns_.position(event, i);
    if (!position && item.word)
      show_word(event, item);
    else if (!position)
      show_error("no such argument");
    else if (item.form == PrintItem::Form::text)
      show_text(event, *position);
    else if (item.form == PrintItem::Form::address)
      show_address(event, *position);
    else if (item.form == PrintItem::Form::bytes)
      show_bytes(event, *position);
    else if (const auto text = described_text(plan(), event, *position); text && item.form == PrintItem::Form::value)
      show_text(*text);
    else
      show_whole(event, *position, item.form == PrintItem::Form::hex);
  }

  [[nodiscard]] WordValue value_of(const usdt::Event& event, usdt::HitField word) {
    return word_value(word, event, {began_, names_[event.site().probe.value], around_});
  }

  /// One of the words of questions, among values.
  void show_word(const usdt::Event& event, const PrintItem& item) {
    const WordValue value = value_of(event, *item.word);
    if (const auto* error = std::get_if<NoWord>(&value)) return show_error(error->reason);
    if (const auto* text = std::get_if<std::string>(&value)) return out_.print("{}", usdt::tools::quoted(*text));
    const std::uint64_t number = std::get<std::uint64_t>(value);
    item.form == PrintItem::Form::hex ? out_.print("{:#x}", number) : out_.print("{}", word_text(*item.word, number));
  }

  /// The same by a directive.
  void show_word_as(const FormatPiece& piece, const usdt::Event& event, usdt::HitField word) {
    const WordValue value = value_of(event, word);
    if (const auto* error = std::get_if<NoWord>(&value)) return show_error(error->reason);
    if (const auto* text = std::get_if<std::string>(&value)) return out_.print("{}", *text);
    const std::uint64_t number = std::get<std::uint64_t>(value);
    piece.conversion == 's' ? out_.print("{}", word_text(word, number))
                            : out_.print("{}", integer_text(piece, number, sizeof(number)));
  }

  /// "ntop(x)"
  void show_address(const usdt::Event& event, std::size_t n) {
    const auto text = address_in(event, n);
    text ? out_.print("{}", *text) : show_error(text.error().message);
  }

  /// "buf(p, 16)"
  void show_bytes(const usdt::Event& event, std::size_t n) {
    const auto bytes = event.text(n);
    if (!bytes) return show_error(bytes.error().message);
    out_.print("\"{}\"{}", bytes_text(bytes->bytes), bytes->truncated ? "..." : "");
  }

  /// The same by a directive.
  void show_bytes_as(const FormatPiece& piece, const usdt::Event& event, std::size_t n) {
    const auto bytes = event.text(n);
    if (!bytes) return show_error(bytes.error().message);
    out_.print("{}{}",
               piece.conversion == 's' ? bytes_text(bytes->bytes) : hex_digits(bytes->bytes, piece.conversion == 'X'),
               bytes->truncated ? "..." : "");
  }

  /// A value with its members.
  void show_whole(const usdt::Event& event, std::size_t n, bool hex) {
    const usdt::Arg& arg = event.arg_info(n);
    if (arg.is_list()) return show_list(event, n, hex);
    if (arg.length && !hex) return show_text(event, n);
    if (!has_members(arg) || !show_members(event, n, hex)) show_value(event, n, hex);
  }

  /// "{a=1 b={c=2}}", "[1 2 3]"; false: none is known.
  bool show_members(const usdt::Event& event, std::size_t whole, bool hex) {
    const bool array = event.arg_info(whole).type.kind == usdt::TypeKind::array;
    bool any = false;
    for (std::size_t n = 0; n < event.arg_count(); ++n) {
      const usdt::Arg& arg = event.arg_info(n);
      if (arg.part_of != whole) continue;
      out_.print("{}", any ? " " : array ? "[" : "{");
      any = true;
      const std::string_view label = event.label(n);
      if (label == "...") {
        out_.print("...({})", arg.why_unreadable());
        continue;
      }
      if (!array) out_.print("{}=", label);
      show_part(event, n, hex);
    }
    if (any) out_.print("{}", array ? "]" : "}");
    return any;
  }

  /// A member or an element.
  void show_part(const usdt::Event& event, std::size_t n, bool hex) {
    const usdt::Arg& arg = event.arg_info(n);
    const bool opens = has_members(arg) && !arg.is_list();
    if (!opens) return show_whole(event, n, hex);
    if (!show_members(event, n, hex)) out_.print("{}", arg.type.kind == usdt::TypeKind::array ? "[...]" : "{...}");
  }

  /// "[1 2 3 ...(97 more)]"
  void show_list(const usdt::Event& event, std::size_t whole, bool hex) {
    const auto count = length_of(event, whole);
    if (!count) return show_error(count.error().message);
    out_.print("[");
    std::uint64_t shown = 0;
    for (std::size_t n = 0; n < event.arg_count(); ++n) {
      if (event.arg_info(n).part_of != whole || !is_there(event, n)) continue;
      if (shown++ > 0) out_.print(" ");
      show_part(event, n, hex);
    }
    if (*count > shown) out_.print("{}...({})", shown > 0 ? " " : "", more_text(*count - shown));
    out_.print("]");
  }

  void show_named(const usdt::Event& event, std::size_t n) {
    const usdt::Arg& arg = event.arg_info(n);
    if (arg.result)
      out_.print(" return=");
    else if (!arg.name().empty())
      out_.print(" {}=", arg.name());
    else
      out_.print(" arg{}=", n);
    if (has_members(arg) || arg.length) return show_whole(event, n, false);
    const bool typed = arg.type.kind == usdt::TypeKind::text;
    const auto text = unasked_text(plan(), event, n, likely_texts_);
    if (!text || !typed) show_value(event, n, text.has_value());
    if (text && !typed) out_.print(" ");
    if (text) show_text(*text);
  }

  void show_time(std::int64_t wall) {
    const auto second = static_cast<std::time_t>(wall / 1'000'000'000);
    if (second != clock_second_) {
      clock_second_ = second;
      std::tm local{};
      ::localtime_r(&second, &local);
      clock_ = fmt::format("{:02}:{:02}:{:02}", local.tm_hour, local.tm_min, local.tm_sec);
    }
    out_.print("{}.{:06}", clock_, wall % 1'000'000'000 / 1000);
  }

  void show_error(std::string_view reason) {
    ++unreadable_;
    out_.print("<{}>", reason);
  }

  void show_value(const usdt::Event& event, std::size_t n, bool hex) {
    const usdt::Value value = event.value(n);
    if (const auto* error = std::get_if<usdt::ArgError>(&value)) return show_error(error->reason);
    const usdt::Arg& arg = event.arg_info(n);
    if (!hex && show_name(arg, value)) return;
    if (const auto meant = usdt::tools::text_by_meaning(arg, value); meant && !hex) return out_.print("{}", *meant);
    if (const auto* number = std::get_if<double>(&value)) {
      // The shortest text that reads back as the same float.
      arg.type.size == sizeof(float) ? out_.print("{}", static_cast<float>(*number)) : out_.print("{}", *number);
    } else if (const auto* wide = std::get_if<std::uint64_t>(&value)) {
      hex || looks_like_address(arg, *wide) ? out_.print("{:#x}", *wide) : out_.print("{}", *wide);
    } else {
      const std::int64_t whole = std::get<std::int64_t>(value);
      const std::uint64_t bits =
          static_cast<std::uint64_t>(whole) << (64 - 8 * arg.type.size) >> (64 - 8 * arg.type.size);
      hex ? out_.print("{:#x}", bits) : out_.print("{}", whole);
    }
  }

  /// What a value is called, if it has a name.
  bool show_name(const usdt::Arg& arg, const usdt::Value& value) {
    if (std::holds_alternative<double>(value)) return false;
    const auto* whole = std::get_if<std::int64_t>(&value);
    const std::uint64_t bits = whole ? static_cast<std::uint64_t>(*whole) : std::get<std::uint64_t>(value);
    std::string_view word;
    if (arg.type.kind == usdt::TypeKind::boolean && bits <= 1)
      word = bits ? "true" : "false";
    else
      word = usdt::enumerator_name(arg, bits);
    out_.print("{}", word);
    return !word.empty();
  }

  void show_text(const usdt::Event& event, std::size_t n) {
    auto text = event.text(n);
    text ? show_text(*text) : show_error(text.error().message);
  }

  void show_text(const usdt::Text& text) {
    const auto whole = text.truncated ? usdt::without_partial_utf8(text.bytes) : text.bytes;
    out_.print("{}{}", usdt::tools::quoted(whole), text.truncated ? "..." : "");
  }

  void show_frames(const usdt::Result<usdt::Stack>& stack) {
    if (!stack) {
      out_.print("    ");
      show_error(stack.error().message);
      out_.print("\n");
      return;
    }
    for (const std::string& line : frame_texts(*stack)) out_.print("    {}\n", line);
  }

  const Printed& printed_;
  bool count_only_;
  bool likely_texts_;
  std::uint32_t sample_;
  bool limited_;
  std::uint64_t began_;
  bool kernel_stacks_below_, user_stacks_below_;  ///< events
  const FormatString& format_;
  const View& view_;
  const std::string& question_;  ///< empty: of no script
  std::string label_;
  std::size_t table_height_ = 0;  ///< lines of the last table, on a terminal
  HeatMap heat_map_;
  Columns columns_;
  ShortNames names_;
  std::size_t measured_ = 0;  ///< of them, whose width is known
  std::uint64_t line_ = 0;    ///< Stream::printed() at the beginning of this line
  std::size_t probe_width_ = std::size("PROBE") - 1;
  std::time_t clock_second_ = -1;
  std::string clock_;
};

}  // namespace

std::unique_ptr<Output> text_output(const usdt::AttachPlan& plan, const Printed& printed, const Flags& flags,
                                    Surroundings& around, usdt::tools::Stream& out) {
  return std::make_unique<TextOutput>(plan, printed, flags, around, out);
}

}  // namespace usdt_trace
