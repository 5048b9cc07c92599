// SPDX-License-Identifier: BSD-2-Clause
#include "event/ring.hpp"

#include <fcntl.h>
#include <linux/bpf.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

#include "base/try.hpp"
#include "sys/syscalls.hpp"
#include "sys/unique_fd.hpp"

namespace usdt::event {
namespace {

using Clock = std::chrono::steady_clock;

/// Rounds without a record before this side asks to be woken. Until then it looks again every millisecond: at a high
/// rate a wake-up for each event would cost the traced program more than the event itself.
constexpr unsigned kIdleRoundsBeforeSleep = 16;
constexpr std::chrono::milliseconds kBusyPause{1};

/// Memory shared with the kernel.
class Mapping {
 public:
  Mapping() = default;
  Mapping(int fd, std::size_t length, int protection, off_t offset) : length_(length) {
    void* start = ::mmap(nullptr, length, protection, MAP_SHARED, fd, offset);
    if (start != MAP_FAILED) start_ = static_cast<std::byte*>(start);
  }
  Mapping(Mapping&& other) noexcept : start_(std::exchange(other.start_, nullptr)), length_(other.length_) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(start_, other.start_);
    std::swap(length_, other.length_);
    return *this;
  }
  ~Mapping() {
    if (start_ != nullptr) ::munmap(start_, length_);
  }
  [[nodiscard]] std::byte* get() const noexcept { return start_; }

 private:
  std::byte* start_ = nullptr;
  std::size_t length_ = 0;
};

/// Tells whether this is the process it was made in, without a system call, which may be traced: a child of fork() has
/// zeros for the page (MADV_WIPEONFORK).
class HomeMark {
 public:
  HomeMark() : size_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))) {
    void* page = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return;
    page_ = static_cast<std::byte*>(page);
    *page_ = std::byte{1};
    ::madvise(page, size_, MADV_WIPEONFORK);
  }
  HomeMark(const HomeMark&) = delete;
  HomeMark& operator=(const HomeMark&) = delete;
  ~HomeMark() {
    if (page_ != nullptr) ::munmap(page_, size_);
  }
  [[nodiscard]] bool is_made() const noexcept { return page_ != nullptr; }
  [[nodiscard]] bool is_here() const noexcept { return *page_ != std::byte{0}; }

 private:
  std::size_t size_;
  std::byte* page_ = nullptr;
};

/// Positions are unsigned long on both sides: kernel/bpf/ringbuf.c.
std::atomic_ref<unsigned long> position(const Mapping& page) {
  return std::atomic_ref(*reinterpret_cast<unsigned long*>(page.get()));
}

}  // namespace

/// A ring of BPF_MAP_TYPE_RINGBUF (5.8): a page with our position, one with the kernel's, and the data twice, so that
/// no record is cut in two. Of the second time only as much is mapped as one record can need: the kernel fills in each
/// page of a mapping at once.
class Ring::State {
 public:
  State(sys::UniqueFd map, std::size_t bytes, std::uint32_t* asleep, std::size_t longest)
      : map_(std::move(map)),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        bytes_(bytes),
        longest_(std::min(longest, bytes)),
        ours_(map_.get(), page(), PROT_READ | PROT_WRITE, 0),
        theirs_(map_data(longest_)),
        asleep_(asleep) {}

  [[nodiscard]] bool is_open() const {
    return wake_ && ours_.get() != nullptr && theirs_.get() != nullptr && home_.is_made();
  }

  Result<void> expect(std::size_t longest) {
    longest = std::min(longest, bytes_);
    if (longest <= longest_) return {};
    Mapping larger = map_data(longest);
    if (larger.get() == nullptr) return fail(os_failure(ErrorKind::io, "map more of the event ring", errno));
    theirs_ = std::move(larger);
    longest_ = longest;
    return {};
  }

  Result<std::size_t> consume(const OnRecord& on_record, std::size_t limit) {
    if (!home_.is_here()) return fail(of_another_process());
    if (busy_) return fail(ErrorKind::invalid_argument, "the ring is being read: by the callback that called this");
    const Turn turn(*this);
    std::size_t taken = 0;
    while (taken < limit && take(on_record, taken)) {
    }
    if (taken > 0) idle_rounds_ = 0;
    return taken;
  }

  Result<std::size_t> poll(const OnRecord& on_record, std::chrono::milliseconds wait, std::size_t limit) {
    if (!home_.is_here()) return fail(of_another_process());
    const bool woken = loop_ && answer_wake();
    auto taken = consume(on_record, limit);
    // Not even the clock is looked at where there is no need: it may be a system call, and that be traced.
    if (!taken || *taken > 0 || wait.count() <= 0 || woken) return taken;
    wait = std::min(wait, std::chrono::milliseconds(std::chrono::hours(24)));  // poll(2) takes an int
    const auto deadline = Clock::now() + wait;
    for (auto left = wait; left.count() > 0;
         left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now())) {
      auto waited = TRY(wait_once(left));
      taken = consume(on_record, limit);
      if (!taken || *taken > 0 || !waited) return taken;
    }
    return 0;
  }

  void wake() noexcept {
    const int before = errno;
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
    woken_.store(true);  // behind the write: whoever sees it can take the word back out
    errno = before;
  }

  Result<int> fd() {
    if (loop_) return loop_.get();
    sys::UniqueFd loop(::epoll_create1(EPOLL_CLOEXEC));
    bool complete = static_cast<bool>(loop);
    for (const int watched : {wake_.get(), map_.get()}) complete = complete && watch(loop, EPOLL_CTL_ADD, watched);
    if (!complete) return fail(os_failure(ErrorKind::limit, "a descriptor for event loops", errno));
    loop_ = std::move(loop);
    leave_to_loop();
    return loop_.get();
  }

 private:
  /// The kernel's position and the data, for records of at most `longest` bytes.
  [[nodiscard]] Mapping map_data(std::size_t longest) const {
    return {map_.get(), page() + bytes_ + (longest + page() - 1) / page() * page(), PROT_READ,
            static_cast<off_t>(page())};
  }

  /// While records are handed over. However that ends, an event loop hears of what is left, and of what comes next.
  class Turn {
   public:
    explicit Turn(State& state) : state_(state) { state_.busy_ = true; }
    ~Turn() {
      state_.busy_ = false;
      if (state_.loop_) state_.leave_to_loop();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    State& state_;
  };

  /// Refuses a child: its parent would never see what it took out of the ring, and nobody would count it as delivered.
  static Error of_another_process() {
    return {ErrorKind::invalid_argument, "this process was forked by the one that traces: events are that one's"};
  }

  static bool watch(const sys::UniqueFd& loop, int operation, int watched) noexcept {
    epoll_event readable{};
    readable.events = EPOLLIN;
    return ::epoll_ctl(loop.get(), operation, watched, &readable) == 0;
  }

  /// Records that came while the program's flag was not set woke nobody: where there are any, epoll is made to look.
  void leave_to_loop() const noexcept {
    if (asleep_ != nullptr) std::atomic_ref(*asleep_).store(1);
    if (position(ours_).load() != position(theirs_).load()) watch(loop_, EPOLL_CTL_MOD, map_.get());
  }

  void take_wake_back() noexcept {
    woken_.store(false);
    std::uint64_t times = 0;
    [[maybe_unused]] const ssize_t n = ::read(wake_.get(), &times, sizeof(times));
  }
  /// Whether wake() was called. If not, no system call is made.
  bool answer_wake() noexcept {
    if (!woken_.load()) return false;
    take_wake_back();
    return true;
  }

  static std::size_t page() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

  /// The next record, if there is one that is complete. It is given back whatever its callback does.
  bool take(const OnRecord& on_record, std::size_t& taken) {
    const unsigned long at = position(ours_).load(std::memory_order_relaxed);
    if (at == position(theirs_).load(std::memory_order_acquire)) return false;
    std::byte* header = theirs_.get() + page() + at % bytes_;
    const std::uint32_t word =
        std::atomic_ref(*reinterpret_cast<std::uint32_t*>(header)).load(std::memory_order_acquire);
    if ((word & BPF_RINGBUF_BUSY_BIT) != 0) return false;  // a program is writing it
    const std::uint32_t length = word & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
    const GiveBack give_back(ours_, at + (length + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8);
    if ((word & BPF_RINGBUF_DISCARD_BIT) != 0) return true;
    ++taken;
    on_record({header + BPF_RINGBUF_HDR_SZ, std::min<std::size_t>(length, longest_)});
    return true;
  }
  class GiveBack {
   public:
    GiveBack(const Mapping& page, unsigned long next) : page_(page), next_(next) {}
    ~GiveBack() { position(page_).store(next_, std::memory_order_release); }
    GiveBack(const GiveBack&) = delete;
    GiveBack& operator=(const GiveBack&) = delete;

   private:
    const Mapping& page_;
    unsigned long next_;
  };

  /// Returns false if a signal or wake() ended the wait.
  Result<bool> wait_once(std::chrono::milliseconds left) {
    const bool nap = asleep_ != nullptr && idle_rounds_ < kIdleRoundsBeforeSleep;
    if (nap) {
      ++idle_rounds_;
      return wait_for(std::min(left, kBusyPause), 1);
    }
    if (asleep_ != nullptr) std::atomic_ref(*asleep_).store(1);
    // A record may have come before the program saw the flag: poll(2) looks at the ring's fill as well.
    auto waited = wait_for(left, 2);
    if (asleep_ != nullptr) std::atomic_ref(*asleep_).store(0);
    return waited;
  }

  /// Waits for wake(), and if `count` is 2, for a record, too.
  Result<bool> wait_for(std::chrono::milliseconds left, nfds_t count) {
    pollfd entries[2] = {{wake_.get(), POLLIN, 0}, {map_.get(), POLLIN, 0}};
    const int ready = ::poll(entries, count, static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) return fail(os_failure(ErrorKind::io, "wait for events", errno));
    if (ready <= 0 || entries[0].revents == 0) return ready >= 0;
    take_wake_back();
    return false;
  }

  sys::UniqueFd map_;
  sys::UniqueFd wake_;
  sys::UniqueFd loop_;  ///< epoll on both; none: no event loop has asked for it
  std::atomic<bool> woken_ = false;
  static_assert(std::atomic<bool>::is_always_lock_free, "wake() is for signal handlers");
  std::size_t bytes_;
  std::size_t longest_;  ///< record
  Mapping ours_;
  Mapping theirs_;
  std::uint32_t* asleep_;
  HomeMark home_;
  unsigned idle_rounds_ = 0;
  bool busy_ = false;
};

Ring::Ring(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Ring::Ring(Ring&&) noexcept = default;
Ring& Ring::operator=(Ring&&) noexcept = default;
Ring::~Ring() = default;

Result<Ring> Ring::open(int map_fd, std::uint32_t* asleep, std::size_t longest) {
  bpf_map_info info{};
  if (const int error = sys::object_info(map_fd, info); error < 0)
    return fail(os_failure(ErrorKind::io, "size of the event ring", -error));
  if (info.type != BPF_MAP_TYPE_RINGBUF) return fail(ErrorKind::invalid_argument, "the map is no ring buffer");
  sys::UniqueFd duplicate(::fcntl(map_fd, F_DUPFD_CLOEXEC, 0));
  if (!duplicate) return fail(os_failure(ErrorKind::limit, "keep the event ring", errno));
  auto state = std::make_unique<State>(std::move(duplicate), info.max_entries, asleep, longest);
  if (!state->is_open()) return fail(os_failure(ErrorKind::io, "map the event ring", errno));
  return Ring(std::move(state));
}

Result<void> Ring::expect(std::size_t longest) { return state_->expect(longest); }

Result<std::size_t> Ring::consume(const OnRecord& on_record, std::size_t limit) {
  return state_->consume(on_record, limit);
}

Result<std::size_t> Ring::poll(const OnRecord& on_record, std::chrono::milliseconds wait, std::size_t limit) {
  return state_->poll(on_record, wait, limit);
}

void Ring::wake() const noexcept { state_->wake(); }
Result<int> Ring::fd() { return state_->fd(); }

}  // namespace usdt::event
