// SPDX-License-Identifier: BSD-2-Clause
// What is said of the code of functions before anything is attached.
#include "find/code_notices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "elf/led_to.hpp"
#include "find/some_of.hpp"

namespace usdt::find {

void CodeNotices::add_counted_by_rets(const Function& function) {
  counted_by_rets_.emplace(function.address, std::pair(function.size, function.name));
}

void CodeNotices::tell_of_others_returns(FileCode& code, ProbeFile& file) const {
  std::vector<elf::CodePart> parts;
  for (const auto& [address, known] : counted_by_rets_) parts.push_back({.address = address, .size = known.first});
  std::set<std::string> into;
  std::map<VirtAddr, std::vector<VirtAddr>> leads_of;  // where those functions lead that may lead into one
  for (const elf::Lead& lead : elf::leads_into(code.elf(), parts)) {
    const auto from = code.pieces().function_at(lead.from);
    if (!from || !code.pieces().may_begin_at(from->address) || code.pieces().clone_at(from->address)) continue;
    const auto [known, fresh] = leads_of.try_emplace(from->address);
    if (fresh) {
      Function function;
      function.address = from->address;
      function.size = from->size;
      if (auto flow = elf::flow_of(code.elf(), function, &code.pieces())) {
        known->second = std::move(flow->targets);
        std::ranges::copy(flow->called, std::back_inserter(known->second));
      }
    }
    if (std::ranges::find(known->second, lead.to) != known->second.end())
      into.insert(std::prev(counted_by_rets_.upper_bound(lead.to))->second.second);
  }
  if (!into.empty())
    file.warnings.push_back(
        {{},
         fmt::format("other functions lead into the midst of {}, and return by its RET instructions: such returns are "
                     "hits, too; ucall: counts its calls alone",
                     some_of({into.begin(), into.end()}))});
}

void CodeNotices::tell_of_unseen(ProbeFile& file) const {
  if (unseen_.empty()) return;
  std::string text;
  if (unseen_.size() == 1) {
    const auto& [name, jumps] = unseen_.front();
    text = fmt::format("{}: jumps to {}, which return{} in its place unseen", name,
                       jumps > 0 ? fmt::format("other functions ({} times)", jumps) : "what a register or memory says",
                       jumps > 0 ? "" : "s");
  } else {
    std::vector<std::string> names;
    for (const auto& each : unseen_) names.push_back(each.first);
    text = fmt::format("{}: jump to other functions, which return in their place unseen", some_of(std::move(names)));
  }
  file.warnings.push_back({{}, std::move(text)});
}

void CodeNotices::tell(FileCode& code, ProbeFile& file) const {
  const auto say = [&file](std::string text) { file.warnings.push_back({{}, std::move(text)}); };
  if (!begin_with_loops_.empty())
    say(
        fmt::format("a loop begins with the first instruction of {}: a hit is a call or a round; uretprobe: counts the "
                    "calls",
                    some_of(begin_with_loops_)));
  tell_of_others_returns(code, file);
  if (!repeat_.empty())
    say(fmt::format("the instruction at {} repeats itself (rep movs and the like): a hit is a round of it",
                    some_of(repeat_)));
  tell_of_unseen(file);
  if (!by_kernel_.empty())
    say(
        fmt::format("{}: the kernel's return probe changes the return address, since not each return is a RET "
                    "instruction; a program that switches stacks there (coroutines, fibers), or has an exception pass "
                    "by, dies of it, and what looks for its caller there (a backtrace, dlsym(RTLD_NEXT)) finds another "
                    "one; with --ret-probes it does not",
                    some_of(by_kernel_)));
  if (!exceptions_end_.empty())
    say(
        fmt::format("an exception that leaves {} ends the program, since the kernel's return probes hide its callers; "
                    "without --no-ret-probes it does not",
                    some_of(exceptions_end_)));
}

}  // namespace usdt::find
