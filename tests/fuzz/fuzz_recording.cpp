// SPDX-License-Identifier: BSD-2-Clause
// Recordings that somebody made up: blocks whose checks are right, so that what is in them is looked at. An input is
// {kind, length (2 bytes), content} again and again; one whose first byte is 0 is a file as it is.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "record/block.hpp"
#include "usdt/event_filter.hpp"
#include "usdt/recording.hpp"

namespace {

using usdt::record::BlockKind;

std::vector<std::uint8_t> file_of(std::span<const std::uint8_t> input) {
  if (!input.empty() && input[0] == 0) return {input.begin() + 1, input.end()};
  const auto head = usdt::record::file_head();
  std::vector<std::uint8_t> file(head.begin(), head.end());
  usdt::record::Packer packer;
  while (input.size() >= 3) {
    const auto kind = static_cast<BlockKind>(input[0] % 4);
    const std::size_t length = std::min<std::size_t>(input[1] | input[2] << 8, input.size() - 3);
    const auto block = packer.pack(kind, input.subspan(3, length), 1'000);
    file.insert(file.end(), block.begin(), block.end());
    input = input.subspan(3 + length);
  }
  return file;
}

/// Everything that views ask of an event.
std::size_t look_at(const usdt::Event& event, const usdt::Recording& recording) {
  std::size_t seen = event.comm().size() + event.user_cookie();
  for (std::size_t n = 0; n < event.arg_count(); ++n) {
    seen += event.value(n).index() + event.label(n).size();
    for (const auto& text : {event.text(n), event.captured_text(n)})
      if (text) seen += static_cast<std::size_t>(std::count(text->bytes.begin(), text->bytes.end(), 'x'));
  }
  for (const auto& stack : {recording.kernel_stack(), recording.user_stack()})
    seen += stack ? stack->frames.size() : stack.error().message.size();
  if (const auto attributes = event.thread_attributes())
    for (const usdt::ThreadAttribute& each : attributes->known) seen += each.key.size() + each.text.size();
  seen += static_cast<std::size_t>(event.kernel_stack().has_value()) + event.ip().value;
  return seen + full_name(event.plan(), event.probe()).size();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int fd = ::memfd_create("recording", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(fd);
  static const auto question = std::make_shared<const usdt::Expression>(
      *usdt::parse_expression("arg0 > 1 && str(arg1) == \"ab\" || arg2 < 0.5"));
  const std::vector<std::uint8_t> file = file_of({data, size});
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, file.data(), file.size(), 0) != static_cast<ssize_t>(file.size()))
    return 0;
  auto recording = usdt::Recording::open(path);
  if (!recording) return 0;
  auto filter = usdt::EventFilter::make(question, *recording->plan());
  std::size_t seen = 0;
  for (int events = 0; events < 10'000; ++events) {
    const auto event = recording->next();
    if (!event || *event == nullptr) break;
    seen += look_at(**event, *recording);
    if (filter) seen += (*filter)(**event).value_or(false) ? 1 : 0;
  }
  volatile std::size_t sink = seen;  // looked at, so that the compiler leaves nothing out
  static_cast<void>(sink);
  return 0;
}
