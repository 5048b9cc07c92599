// SPDX-License-Identifier: BSD-2-Clause
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <utility>

#include "base/no_memory.hpp"
#include "base/try.hpp"
#include "record/block_stream.hpp"
#include "sys/unique_fd.hpp"
#include "usdt/recording.hpp"

namespace usdt {
inline namespace v1 {

struct RecordingWriter::Impl {
  Impl(Sink s, const AttachPlan& plan, const EventLayout& layout, const RecordingInfo& info)
      : sink(std::move(s)), stream(plan, layout, info) {}

  Sink sink;
  record::BlockStream stream;
  record::BlockStream::Emit emit = [this](const record::Block& block) {
    return sink({std::as_bytes(std::span(block.bytes)), block.events});
  };
};

namespace {

Result<void> write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return fail(os_failure(ErrorKind::io, "write the recording", written < 0 ? errno : EIO));
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace

RecordingWriter::RecordingWriter(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
RecordingWriter::RecordingWriter(RecordingWriter&&) noexcept = default;
RecordingWriter& RecordingWriter::operator=(RecordingWriter&&) noexcept = default;
RecordingWriter::~RecordingWriter() = default;

Result<RecordingWriter> RecordingWriter::start(Sink sink, const AttachPlan& plan, const EventLayout& layout,
                                               RecordingInfo info) {
  if (!sink) return fail(ErrorKind::invalid_argument, "nowhere to write the recording to");
  const auto head = record::file_head();
  TRY(sink({std::as_bytes(std::span(head)), 0}));
  RecordingWriter writer(std::make_unique<Impl>(std::move(sink), plan, layout, info));
  TRY(writer.flush());
  return writer;
}

Result<RecordingWriter> RecordingWriter::create(const std::filesystem::path& file, const AttachPlan& plan,
                                                const EventLayout& layout, RecordingInfo info) try {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
  if (fd < 0) return fail(os_failure(ErrorKind::io, file.native(), errno));
  const auto owned = std::make_shared<const sys::UniqueFd>(fd);
  return start([owned](const RecordedBlock& block) { return write_all(owned->get(), block.bytes); }, plan, layout,
               std::move(info));
} catch (const std::bad_alloc&) {
  return fail(no_memory());
}

Result<void> RecordingWriter::plan(const AttachPlan& plan) { return impl_->stream.plan(plan, impl_->emit); }
Result<void> RecordingWriter::event(const Event& event, std::int64_t wall_offset, const EventStacks& stacks) try {
  return impl_->stream.event(event, wall_offset, stacks, impl_->emit);
} catch (const std::bad_alloc&) {
  return fail(no_memory());
}
Result<void> RecordingWriter::notice(const RecordedNotice& notice) { return impl_->stream.notice(notice, impl_->emit); }
Result<void> RecordingWriter::followed(const Followed& followed) {
  return impl_->stream.followed(followed, impl_->emit);
}
Result<void> RecordingWriter::property(std::string_view name, std::string_view text) {
  return impl_->stream.property(name, text, impl_->emit);
}
Result<void> RecordingWriter::ledger(const RecordedLedger& ledger) { return impl_->stream.ledger(ledger, impl_->emit); }
Result<void> RecordingWriter::flush() { return impl_->stream.flush(impl_->emit); }
Result<void> RecordingWriter::flush_if_due() { return impl_->stream.flush_if_due(impl_->emit); }

/// The account is behind the events it is about.
Result<void> RecordingWriter::finish(const RecordedLedger& ledger) {
  TRY(flush());
  TRY(this->ledger(ledger));
  return impl_->stream.end(impl_->emit);
}

}  // namespace v1
}  // namespace usdt
