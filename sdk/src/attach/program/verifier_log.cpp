// SPDX-License-Identifier: BSD-2-Clause
#include "program/verifier_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace usdt::backends {
namespace {

// As libbpf has put them around the log since 0.7 (bpf_object_load_prog(), src/libbpf.c).
constexpr std::string_view kBegin = ": -- BEGIN PROG LOAD LOG --\n";
constexpr std::string_view kEnd = "-- END PROG LOAD LOG --";

/// The verdict: the last lines before "processed N insns ...".
std::string verdict(std::string_view log) {
  constexpr std::size_t most = 3;
  std::vector<std::string_view> before = lines_of(log);
  before.erase(std::ranges::find_if(before, [](std::string_view line) { return line.starts_with("processed "); }),
               before.end());
  std::string joined;
  for (std::size_t i = before.size() > most ? before.size() - most : 0; i < before.size(); ++i) {
    if (!joined.empty()) joined += "; ";
    joined += before[i];
  }
  return joined;
}

}  // namespace

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> all;
  while (!text.empty()) {
    const auto end = text.find('\n');
    if (end != 0) all.push_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return all;
}

VerifierReport find_verifier_report(std::string_view libbpf_text) {
  const auto begin = libbpf_text.find(kBegin);
  if (begin == std::string_view::npos) return {};
  const std::string_view log = libbpf_text.substr(begin + kBegin.size());
  // "libbpf: prog 'NAME': -- BEGIN ..."
  std::string_view name = libbpf_text.substr(0, begin);
  name = name.substr(name.rfind('\n') + 1);
  if (name.ends_with('\'')) name.remove_suffix(1);
  name = name.substr(name.rfind('\'') + 1);
  return {std::string(name), std::string(log.substr(0, log.rfind(kEnd)))};
}

Error verifier_refusal(std::string_view program, std::string log, int os_error) {
  Error error{ErrorKind::verifier,
              fmt::format("the kernel's verifier refuses the program '{}': {} ({})", program, verdict(log),
                          std::strerror(os_error)),
              os_error};
  error.log = std::move(log);
  return error;
}

}  // namespace usdt::backends
