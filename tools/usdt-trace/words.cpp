// SPDX-License-Identifier: BSD-2-Clause
#include "words.hpp"

#include <fmt/format.h>

#include "common/meaning.hpp"
#include "frames.hpp"

namespace usdt_trace {

using usdt::HitField;

namespace {

/// The numbers of HitOwner.
WordValue of_owner(HitField word, const usdt::Event& event) {
  const auto owner = event.owner();
  if (!owner) return NoWord{"it was not recorded"};
  return word == HitField::uid ? owner->uid : word == HitField::gid ? owner->gid : owner->cgroup;
}

/// Where callers are missing, it begins with the reason.
std::string one_line(const usdt::Stack& stack) {
  const bool whole = stack.end == usdt::FrameIssue::none || stack.end == usdt::FrameIssue::depth_reached;
  return (whole ? std::string() : fmt::format("[{}];", to_string(stack.end))) + folded_text(stack);
}

}  // namespace

usdt::Result<const usdt::Stack*> stack_value(HitField word, const usdt::Event& event, usdt::Surroundings& around) {
  const bool of_kernel = word == HitField::kstack;
  if (of_kernel && event.probe().file)
    return usdt::fail(usdt::ErrorKind::not_found, "a process that is not in the kernel has no stack there");
  const usdt::Result<usdt::Stack>& stack = of_kernel ? around.kernel_stack() : around.user_stack();
  if (!stack) return usdt::fail(stack.error());
  if (stack->frames.empty())
    return usdt::fail(usdt::ErrorKind::not_found,
                      of_kernel ? "it was not recorded" : "a thread of the kernel has no stack of a process");
  return &*stack;
}

WordValue word_value(HitField word, const usdt::Event& event, const WordSource& source) {
  const std::uint64_t ended = event.timestamp() + event.duration();
  switch (word) {
    case HitField::pid:
      return std::uint64_t{event.pid()};
    case HitField::tid:
      return std::uint64_t{event.tid()};
    case HitField::cpu:
      return std::uint64_t{event.cpu()};
    case HitField::nsecs:
      return ended;
    case HitField::elapsed:
      if (source.began == 0 || ended < source.began) return NoWord{"it is not known since when"};
      return ended - source.began;
    case HitField::duration:
      if (event.duration() == 0) return NoWord{"only calls and spans have one"};
      return event.duration();
    case HitField::ip:
      if (const auto pc = pc_of(event.plan(), event.site())) return pc->value;
      return NoWord{"a tracepoint has no address"};
    case HitField::comm:
      return std::string(event.comm());
    case HitField::provider:
      return event.probe().provider;
    case HitField::name:
      return event.probe().name;
    case HitField::probe:
      return std::string(source.probe);
    case HitField::uid:
    case HitField::gid:
    case HitField::cgroup:
      return of_owner(word, event);
    case HitField::ustack:
    case HitField::kstack:
      break;
  }
  const auto stack = stack_value(word, event, source.around);
  return stack ? WordValue(one_line(**stack)) : WordValue(NoWord{stack.error().message});
}

std::string word_text(HitField word, std::uint64_t number) {
  if (word == HitField::duration || word == HitField::elapsed)
    return usdt::tools::duration_text(static_cast<double>(number));
  return word == HitField::ip ? fmt::format("{:#x}", number) : fmt::format("{}", number);
}

}  // namespace usdt_trace
