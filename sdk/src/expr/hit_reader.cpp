// SPDX-License-Identifier: BSD-2-Clause
#include "expr/hit_reader.hpp"

#include <algorithm>

#include "expr/beginning.hpp"
#include "expr/field_readers.hpp"
#include "usdt/bpf/event.h"

namespace usdt::expr {

HitReader::HitReader(const TypedExpression& expression, const Surroundings& surroundings)
    : expression_(expression),
      surroundings_(surroundings),
      of_beginning_(surroundings.of_span ? beginning_facts(expression) : context_facts(expression)) {}

bool HitReader::is_leaf(const Node& node) {
  return node.op == Op::integer || node.op == Op::real || node.op == Op::value;
}

void HitReader::leaf(const Node& node, std::uint8_t to) {
  if (node.op != Op::value) return set(to, node.bits);
  const std::vector<TypedExpression::OfList>& lists = expression_.of_lists();
  const auto list = std::ranges::find(lists, node.bits, &TypedExpression::OfList::value);
  if (list == lists.end()) return read(node.bits, to);
  if (list->element) {
    leaf({.op = Op::value, .bits = list->element->length}, 4);
    set(5, list->element->index);
    jump_if(kJumpLessEqual, 4, 5, undecided());
  }
  if (list->alternative) {
    leaf({.op = Op::value, .bits = list->alternative->discriminant}, 4);
    require(list->alternative->values, 4);
  }
  read(node.bits, to);
  if (list->counts) count(*list->counts, to);
  if (list->half) widen_half(to);
}

void HitReader::read(std::uint64_t value, std::uint8_t to) {
  load(BPF_LDX | BPF_MEM /* BPF_W */, to, kFrame, kUnread);
  jump_if_is(BPF_JSET, to, 1 << value, undecided());
  load(BPF_LDX | BPF_MEM | kDouble, to, kFrame, static_cast<int>(8 * value));
}

/// Makes the length of a list of what was read for it, as Event does, with r5.
void HitReader::count(const ElementCount& counts, std::uint8_t to) {
  if (counts.first) {
    read(*counts.first, 5);
    jump_if(kJumpLess, to, 5, undecided());
    alu(BPF_SUB, to, 5);
    move(5, to);
    alu_by(BPF_MOD, 5, static_cast<std::int32_t>(counts.size));
    jump_if_is(kJumpNotEqual, 5, 0, undecided());
    alu_by(BPF_DIV, to, static_cast<std::int32_t>(counts.size));
  }
  set(5, counts.most);
  jump_if(BPF_JGT, to, 5, undecided());
}

/// Whether it is known of a span's beginning alone: then it is there, among the values.
bool HitReader::read_of_beginning(std::uint8_t fact, std::uint8_t to) {
  const auto found = std::ranges::find(of_beginning_, fact);
  if (fact == 0 || found == of_beginning_.end()) return false;
  const auto behind = static_cast<std::uint64_t>(found - of_beginning_.begin());
  load(BPF_LDX | BPF_MEM | kDouble, to, kFrame, static_cast<int>(8 * (expression_.args().size() + behind)));
  return true;
}

void HitReader::text_field_to(HitField field, int at) {
  static_assert(kPiece == sizeof(usdt_thread_context::trace_id), "one piece is the number of a trace");
  if (info_of(field).source != HitFieldSource::context) return comm_to(at);
  read_context(reader_of(field).beginning, 0);
  store(kFrame, at, 0);
  field == HitField::trace_id ? read_context(USDT_BEGIN_TRACE_REST, 0) : set(0, 0);
  store(kFrame, at + 8, 0);
}

/// Undecided where it could not be read.
void HitReader::read_context(std::uint8_t fact, std::uint8_t to) {
  const auto behind = std::ranges::find(of_beginning_, fact) - of_beginning_.begin();
  read(expression_.args().size() + static_cast<std::uint64_t>(behind), to);
}

void HitReader::comm_to(int at) {
  static_assert(kPiece == sizeof(usdt_event::comm), "one piece is the name of a thread");
  if (read_of_beginning(USDT_BEGIN_COMM, 0)) {
    store(kFrame, at, 0);
    read_of_beginning(USDT_BEGIN_COMM_REST, 0);
    return store(kFrame, at + 8, 0);
  }
  frame_address(1, at);
  set(2, kPiece);
  call(BPF_FUNC_get_current_comm);
}

void HitReader::field(HitField field) {
  using From = FieldReader::From;
  const FieldReader& reader = reader_of(field);
  if (read_of_beginning(reader.beginning, 0)) {
    if (field == HitField::ppid) jump_if_is(BPF_JEQ, 0, USDT_NO_PARENT, undecided());
    return;
  }
  switch (reader.from) {
    case From::task:
      return task(reader.half == FieldReader::Half::high);
    case From::parent:
      return parent();
    case From::helper:
      call(reader.helper);
      if (reader.half == FieldReader::Half::low) low_half();
      if (reader.half == FieldReader::Half::high) alu_by(BPF_RSH, 0, 32);
      return;
    case From::duration:
      return load(BPF_LDX | BPF_MEM | kDouble, 0, kFrame, kDuration);
    case From::site:
      return load(BPF_LDX | BPF_MEM /* BPF_W */, 0, kFrame, kSite);
    case From::text:
    case From::other:
      return set(0, 0);
    case From::row:
      return;
  }
}

void HitReader::low_half() {
  alu_by(BPF_LSH, 0, 32);
  alu_by(BPF_RSH, 0, 32);
}

/// As usdt_pid_tgid() of hit.h: 0 in the tracer's namespace where it is not visible there.
void HitReader::task(bool group) {
  if (surroundings_.pidns_ino == 0) {
    call(BPF_FUNC_get_current_pid_tgid);
    return group ? alu_by(BPF_RSH, 0, 32) : low_half();
  }
  const Label end = label();
  set(3, 0);
  store(kFrame, kBuffer, 3);
  set(1, surroundings_.pidns_dev);
  set(2, surroundings_.pidns_ino);
  frame_address(3, kBuffer);
  set(4, 8);
  call(BPF_FUNC_get_ns_current_pid_tgid);
  move(1, 0);
  set(0, 0);
  jump_if_is(kJumpNotEqual, 1, 0, end);
  load(BPF_LDX | BPF_MEM /* BPF_W */, 0, kFrame, kBuffer + (group ? 4 : 0));
  place(end);
}

/// As parent_process() of threads.h; undecided where it is not known.
void HitReader::parent() {
  const ParentOffsets& offsets = surroundings_.parents;
  if (offsets.parent == 0) return jump(undecided());
  call(BPF_FUNC_get_current_task);
  move(3, 0);
  for (const auto& [offset, size] : {std::pair(offsets.parent, 8), {offsets.group, 4}}) {
    alu_by(BPF_ADD, 3, static_cast<std::int32_t>(offset));
    frame_address(1, kBuffer);
    set(2, static_cast<std::uint64_t>(size));
    call(BPF_FUNC_probe_read_kernel);
    jump_if_is(kJumpNotEqual, 0, 0, undecided());
    if (size == 8) load(BPF_LDX | BPF_MEM | kDouble, 3, kFrame, kBuffer);
  }
  load(BPF_LDX | BPF_MEM /* BPF_W */, 0, kFrame, kBuffer);
}

void HitReader::frame_address(std::uint8_t to, int offset) {
  move(to, kFrame);
  alu_by(BPF_ADD, to, offset);
}

}  // namespace usdt::expr
