// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/recording.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <utility>

#include "base/no_memory.hpp"
#include "base/try.hpp"
#include "record/block.hpp"
#include "record/definitions.hpp"
#include "record/events.hpp"
#include "record/limits.hpp"
#include "sys/regular_file.hpp"

namespace usdt {
inline namespace v1 {
namespace {

using record::BlockHead;
using record::BlockKind;

/// A file of blocks.
class BlockFile {
 public:
  BlockFile(sys::UniqueFd fd, std::uint64_t size) : fd_(std::move(fd)), size_(size) {}

  [[nodiscard]] std::uint64_t at() const noexcept { return at_; }
  void go_to(std::uint64_t at) noexcept { at_ = at; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  /// Fewer bytes where the file ends before.
  Result<ByteSpan> read(std::size_t bytes) {
    bytes = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, at_ < size_ ? size_ - at_ : 0));
    buffer_.resize(bytes);
    std::size_t done = 0;
    while (done < bytes) {
      const ssize_t n = ::pread(fd_.get(), buffer_.data() + done, bytes - done, static_cast<off_t>(at_ + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return fail(os_failure(ErrorKind::io, "read the recording", errno));
      if (n == 0) break;
      done += static_cast<std::size_t>(n);
    }
    at_ += done;
    return ByteSpan(buffer_).first(done);
  }

 private:
  sys::UniqueFd fd_;
  std::uint64_t size_;
  std::uint64_t at_ = 0;
  std::vector<std::uint8_t> buffer_;
};

}  // namespace

struct Recording::Impl {
  explicit Impl(BlockFile f) : file(std::move(f)) {}

  /// The head of the next block; nothing: there is none, and `cut` says why, or `whole` that this is the end.
  Result<std::optional<BlockHead>> next_head() {
    const std::uint64_t at = file.at();
    const auto bytes = TRY(file.read(record::kBlockHead));
    if (bytes.empty()) {
      cut = fmt::format("it was not finished (who made it was killed, or is still at it): {} bytes were written", at);
      return std::nullopt;
    }
    if (bytes.size() < record::kBlockHead) return cut_at(at, "it ends in the midst of a block");
    const auto head = record::parse_block_head(std::span<const std::uint8_t, record::kBlockHead>(bytes));
    if (!head) return cut_at(at, "what is there is no block");
    if (file.size() - file.at() < head->stored) return cut_at(at, "it ends in the midst of a block");
    return head;
  }
  std::optional<BlockHead> cut_at(std::uint64_t at, std::string_view why) {
    cut = fmt::format("{}, after {} bytes that are whole", why, at);
    return std::nullopt;
  }

  /// Reports what is behind the recording: of two in one file, as cat(1) makes it, the first is read.
  void look_behind(std::uint64_t its_end) {
    if (its_end >= file.size()) return;
    cut = fmt::format("the file goes on after its {} bytes, and the {} behind it were not read: is that another one?",
                      its_end, file.size() - its_end);
  }

  /// The content of the block behind whose head the file is. Nothing: it is damaged.
  Result<std::optional<ByteSpan>> content(const BlockHead& head) {
    const std::uint64_t at = file.at() - record::kBlockHead;
    auto stored = TRY(file.read(head.stored));
    auto content = unpacker.unpack(head, stored);
    if (content) return *content;
    static_cast<void>(cut_at(at, content.error().message));
    return std::nullopt;
  }

  Result<void> read_definitions() {
    std::uint64_t sum = 0;
    while (true) {
      auto head = TRY(next_head());
      if (!head) break;
      if (head->kind == BlockKind::end) {
        look_behind(file.at() + head->stored);
        break;
      }
      if (head->kind == BlockKind::definitions) {
        sum += head->unpacked;
        if (sum > record::kMostDefinitions)
          return fail(ErrorKind::limit, fmt::format("more than {} MiB of definitions", record::kMostDefinitions >> 20));
        auto bytes = TRY(content(*head));
        if (!bytes) break;
        const std::size_t followed = definitions.followed.size();
        TRY(definitions.read(*bytes));
        if (definitions.followed.size() > followed) came.push_back({file.at(), definitions.followed.size()});
      } else {
        file.go_to(file.at() + head->stored);
      }
      end = file.at();
    }
    file.go_to(record::kFileHead);
    return {};
  }

  void finish_opening() {
    layout = definitions.layout();
    accounted = definitions.ledger ? definitions.ledger->probes.size() : 0;
    if (definitions.ledger) definitions.ledger->probes.resize(definitions.plan.probes.size());
    events_of.resize(definitions.plan.probes.size());
    plan = std::make_shared<const AttachPlan>(std::move(definitions.plan));
    decoder.emplace(*plan, layout);
  }

  /// An event of a span is one of the hits that ended it.
  void count(const Event& one) {
    const PlannedProbe& probe = one.probe();
    ++events_of[probe.span ? probe.span->end.value : one.site().probe.value];
  }
  /// Once all events were counted: of what is true nobody knows, should there be more of them than hits. Fewer there
  /// may be, since a tracer may have delivered some before it was recorded.
  void judge_account() {
    if (!cut.empty()) return;
    for (std::uint32_t n = 0; n < accounted; ++n) {
      const ProbeCounts& counts = definitions.ledger->probes[n];
      const std::uint64_t others = sum_counts(counts, {CountRole::lost, CountRole::left_out, CountRole::pairing});
      if (others <= counts.hits && events_of[n] <= counts.hits - others) continue;
      cut = fmt::format("its account contradicts itself: of {} it has {} hits, {} that became no event, and {} events",
                        full_name(*plan, plan->probes[Index<PlannedProbe>(n)]), counts.hits, others, events_of[n]);
      return;
    }
  }

  /// Passes what was followed up to file position `until`.
  void pass_followed(std::uint64_t until) {
    for (; next_came < came.size() && came[next_came].until <= until; ++next_came)
      followed_by_now = came[next_came].followed;
  }

  /// False: there is none.
  Result<bool> next_block() {
    while (file.at() < end) {
      auto head = TRY(next_head());
      if (!head) return false;
      if (head->kind != BlockKind::events) {
        file.go_to(file.at() + head->stored);
        continue;
      }
      pass_followed(file.at());
      auto bytes = TRY(content(*head));
      if (!bytes) {
        end = 0;
        return false;
      }
      decoder->begin(*bytes, head->first);
      return true;
    }
    pass_followed(UINT64_MAX);
    return false;
  }

  BlockFile file;
  std::uint64_t end = record::kFileHead;  ///< of the last block that was seen to be there
  record::Unpacker unpacker;
  record::Definitions definitions;
  /// Up to where in the file how much had come.
  struct Came {
    std::uint64_t until = 0;
    std::size_t followed = 0;
  };
  std::vector<Came> came;
  std::size_t next_came = 0, followed_by_now = 0;
  EventLayout layout;
  std::shared_ptr<const AttachPlan> plan;
  std::optional<record::EventDecoder> decoder;
  std::optional<Event> event;
  std::string cut;
  std::size_t accounted = 0;                  ///< probes of which there is an account, the first ones
  std::vector<std::uint64_t> events_of = {};  ///< by probe, so far
};

Recording::Recording(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Recording::Recording(Recording&&) noexcept = default;
Recording& Recording::operator=(Recording&&) noexcept = default;
Recording::~Recording() = default;

Result<Recording> Recording::open(const std::filesystem::path& path) try {
  sys::RegularFile file = sys::open_regular(AT_FDCWD, path.c_str());
  if (!file.fd && file.error == EINVAL)
    return fail(ErrorKind::not_supported, fmt::format("{}: no regular file", path.native()));
  if (!file.fd) return fail(os_failure(ErrorKind::io, path.native(), file.error));
  auto impl = std::make_unique<Impl>(BlockFile(std::move(file.fd), static_cast<std::uint64_t>(file.st.st_size)));
  auto head = impl->file.read(record::kFileHead);
  if (!head) return fail(head.error().within(path.native()));
  if (auto known = record::check_file_head(*head); !known) return fail(known.error().within(path.native()));
  if (auto read = impl->read_definitions(); !read) return fail(read.error().within(path.native()));
  impl->finish_opening();
  return Recording(std::move(impl));
} catch (const std::bad_alloc&) {
  return fail(no_memory());
}

const RecordingInfo& Recording::info() const noexcept { return impl_->definitions.info; }

std::optional<std::string_view> Recording::property(std::string_view name) const {
  for (const auto& [key, text] : info().properties)
    if (key == name) return text;
  return std::nullopt;
}

const std::shared_ptr<const AttachPlan>& Recording::plan() const noexcept { return impl_->plan; }
const std::vector<Recording::File>& Recording::files() const noexcept { return impl_->definitions.files; }
const EventLayout& Recording::layout() const noexcept { return impl_->layout; }
const std::vector<RecordedNotice>& Recording::notices() const noexcept { return impl_->definitions.notices; }
const std::vector<RecordedFollowed>& Recording::followed() const noexcept { return impl_->definitions.followed; }
std::size_t Recording::followed_by_now() const noexcept { return impl_->followed_by_now; }
const std::optional<RecordedLedger>& Recording::ledger() const noexcept { return impl_->definitions.ledger; }
const std::string& Recording::cut() const noexcept { return impl_->cut; }

Result<const Event*> Recording::next() try {
  while (true) {
    auto bytes = TRY(impl_->decoder->next());
    if (!bytes.empty()) {
      impl_->layout.weight = impl_->decoder->weight();
      auto event = TRY(Event::from(bytes, impl_->plan, impl_->layout));
      event.name_attributes(impl_->decoder->attribute_keys());
      impl_->count(event);
      return &impl_->event.emplace(event);
    }
    auto more = TRY(impl_->next_block());
    if (more) continue;
    impl_->judge_account();
    return nullptr;
  }
} catch (const std::bad_alloc&) {
  return fail(no_memory());
}

std::int64_t Recording::wall_offset() const noexcept { return impl_->decoder->wall_offset(); }
Result<Stack> Recording::kernel_stack() const { return impl_->decoder->kernel_stack(); }
Result<Stack> Recording::user_stack() const { return impl_->decoder->user_stack(); }

}  // namespace v1
}  // namespace usdt
