// SPDX-License-Identifier: BSD-2-Clause
#include "expr/beginning.hpp"

#include <algorithm>

#include "usdt/bpf/filter.h"

namespace usdt::expr {
namespace {

void collect(const TypedExpression::Node& node, std::vector<std::uint8_t>& facts) {
  const std::uint8_t fact = node.op == Operator::field ? beginning_fact(static_cast<HitField>(node.bits)) : 0;
  if (fact != 0 && std::ranges::find(facts, fact) == facts.end()) {
    facts.push_back(fact);
    if (fact == USDT_BEGIN_COMM) facts.push_back(USDT_BEGIN_COMM_REST);
  }
  for (const TypedExpression::Node& each : node.of) collect(each, facts);
}

}  // namespace

std::uint8_t beginning_fact(HitField field) noexcept {
  switch (field) {
    case HitField::pid:
      return USDT_BEGIN_PID;
    case HitField::tid:
      return USDT_BEGIN_TID;
    case HitField::cpu:
      return USDT_BEGIN_CPU;
    case HitField::comm:
      return USDT_BEGIN_COMM;
    case HitField::uid:
      return USDT_BEGIN_UID;
    case HitField::gid:
      return USDT_BEGIN_GID;
    case HitField::cgroup:
      return USDT_BEGIN_CGROUP;
    case HitField::nsecs:
    case HitField::elapsed:
    case HitField::duration:
    case HitField::provider:
    case HitField::name:
    case HitField::ip:
    case HitField::probe:
    case HitField::ustack:
    case HitField::kstack:
      break;
  }
  return 0;
}

std::vector<std::uint8_t> beginning_facts(const TypedExpression& question) {
  std::vector<std::uint8_t> facts;
  collect(question.root(), facts);
  return facts;
}

bool asks_for_owner(const TypedExpression& question) {
  return std::ranges::any_of(beginning_facts(question), [](std::uint8_t fact) { return fact >= USDT_BEGIN_UID; });
}

}  // namespace usdt::expr
