// SPDX-License-Identifier: BSD-2-Clause
#include "event/kernel_offsets.hpp"

#include <fmt/format.h>

#include <initializer_list>
#include <optional>
#include <string_view>

#include "base/try.hpp"
#include "btf/types.hpp"
#include "program/parent_offsets.hpp"

namespace usdt::event {

namespace {

/// A member of a structure, and where its offset goes.
struct Member {
  __u32* offset;
  const char* structure;
  const char* name;
};

/// Finds the offsets. Returns the first member that the kernel does not have.
std::optional<Member> first_missing(const btf::Types& types, std::initializer_list<Member> members) {
  for (const Member& member : members) {
    const auto offset = types.member_offset(member.structure, member.name);
    if (!offset) return member;
    *member.offset = *offset;
  }
  return std::nullopt;
}

tl::unexpected<Error> lacks(std::string_view what, const Member& member) {
  return fail(ErrorKind::not_supported,
              fmt::format("this kernel does not say {}: struct {} has no {}", what, member.structure, member.name));
}

}  // namespace

usdt_return_offsets find_replaced_returns() {
  usdt_return_offsets offsets{};
  const auto types = btf::Types::load();
  if (!types) return offsets;
  // Without the last one nothing is looked for.
  static_cast<void>(first_missing(**types, {{&offsets.first, "uprobe_task", "return_instances"},
                                            {&offsets.address, "return_instance", "orig_ret_vaddr"},
                                            {&offsets.stack, "return_instance", "stack"},
                                            {&offsets.next, "return_instance", "next"},
                                            {&offsets.utask, "task_struct", "utask"}}));
  return offsets;
}

usdt_thread_offsets find_threads() {
  const auto types = btf::Types::load();
  if (!types) return {};
  const auto find = [&](const char* member) { return (*types)->member_offset("task_struct", member).value_or(0); };
  const expr::ParentOffsets parents = backends::find_parents();
  return {.start = find("start_time"),
          .exec = find("self_exec_id"),
          .leader = find("group_leader"),
          .parent = parents.parent,
          .tgid = parents.group};
}

/// Kernels without rseq(2) have no such area. In newer ones a structure has the pointer (include/linux/rseq_types.h).
Result<usdt_late_pointer_offsets> find_late_pointer() {
  const auto types = TRY(btf::Types::load());
  usdt_late_pointer_offsets late{};
  const auto missing = first_missing(*types, {{&late.switches, "task_struct", "nvcsw"},
                                              {&late.preemptions, "task_struct", "nivcsw"},
                                              {&late.flags, "task_struct", "flags"}});
  if (missing) return lacks("how often a thread waited", *missing);
  if (const auto area = types->member_offset("task_struct", "rseq"))
    late.rseq = *area + types->member_offset("rseq_data", "usrptr").value_or(0);
  return late;
}

usdt_thread_ends_constants find_ends() {
  const auto types = btf::Types::load();
  usdt_thread_ends_constants ends{};
  // Without the last one nothing is looked for.
  if (types)
    static_cast<void>(
        first_missing(**types, {{&ends.flags, "signal_struct", "flags"}, {&ends.signal, "task_struct", "signal"}}));
  return ends;
}

Result<usdt_image_offsets> find_image() {
  const auto types = TRY(btf::Types::load());
  usdt_image_offsets image{};
  const auto missing = first_missing(*types, {{&image.memory, "task_struct", "mm"},
                                              {&image.code_start, "mm_struct", "start_code"},
                                              {&image.code_end, "mm_struct", "end_code"},
                                              {&image.stack, "mm_struct", "start_stack"},
                                              {&image.arguments, "mm_struct", "arg_start"},
                                              {&image.code_pages, "mm_struct", "exec_vm"}});
  if (missing) return lacks("what a task executes", *missing);
  return image;
}

Result<usdt_owner_constants> count_owner_only(unsigned uid, unsigned gid) {
  const auto types = TRY(btf::Types::load());
  usdt_owner_constants owner{};
  owner.uid = uid;
  owner.gid = gid;
  owner.checked = 1;
  // Since Linux 7.2 it is a state of what the task executes that tells who may look into it, before the flags of its
  // memory.
  const bool by_state = types->member_offset("task_struct", "exec_state").has_value();
  const auto missing = first_missing(
      *types, {{&owner.cred, "task_struct", "real_cred"},
               {&owner.ids, "cred", "uid"},
               {&owner.permitted, "cred", "cap_permitted"},
               {&owner.image, "task_struct", by_state ? "exec_state" : "mm"},
               {&owner.dumpable, by_state ? "task_exec_state" : "mm_struct", by_state ? "dumpable" : "flags"}});
  if (missing) return lacks("whose a task is", *missing);
  // The programs read six numbers at once.
  constexpr __u32 word = sizeof(__u32);
  __u32 expected = owner.ids;
  for (const char* name : {"uid", "gid", "suid", "sgid", "euid", "egid"}) {
    if (types->member_offset("cred", name).value_or(0) != expected)
      return fail(ErrorKind::not_supported, "this kernel's struct cred has its users in another order");
    expected += word;
  }
  return owner;
}

}  // namespace usdt::event
