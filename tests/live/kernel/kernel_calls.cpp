// SPDX-License-Identifier: BSD-2-Clause
// System calls with arguments that are easily told apart, and the kernel functions that get them. Most fail, which the
// functions that take the arguments do not know yet.
#include "kernel_calls.hpp"

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/futex.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>
#include <stdexcept>

#include "usdt/select.hpp"

namespace usdt::truth {
namespace {

// System calls with times of 64 bits.
#if __SIZEOF_POINTER__ == 8
constexpr long kPoll = SYS_ppoll, kSelect = SYS_pselect6, kSleep = SYS_clock_nanosleep, kClock = SYS_clock_gettime,
               kResolution = SYS_clock_getres, kSetTimer = SYS_timer_settime, kGetTimer = SYS_timer_gettime,
               kSend = SYS_mq_timedsend, kReceive = SYS_mq_timedreceive;
#else
constexpr long kPoll = SYS_ppoll_time64, kSelect = SYS_pselect6_time64, kSleep = SYS_clock_nanosleep_time64,
               kClock = SYS_clock_gettime64, kResolution = SYS_clock_getres_time64, kSetTimer = SYS_timer_settime64,
               kGetTimer = SYS_timer_gettime64, kSend = SYS_mq_timedsend_time64, kReceive = SYS_mq_timedreceive_time64;
#endif

std::uint64_t word(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }
template <class T>
requires(std::is_integral_v<T> || std::is_enum_v<T>) std::uint64_t word(T value) {
  return static_cast<std::uint64_t>(value);
}
std::uint64_t word(std::nullptr_t) { return 0; }

long outcome(long result) { return result == -1 ? -errno : result; }

/// A fentry program of bpf_fentry_test1, which BPF_PROG_TEST_RUN makes the kernel call it and its sisters for.
int load_test_program() {
  const auto pattern = KernelPattern::parse("kfunc:vmlinux:bpf_fentry_test1");
  const auto selection = usdt::select({*pattern});
  if (!selection || selection->kernel.entries.empty()) return -1;
  const std::uint64_t code[] = {0xb7, 0x95};  // r0 = 0; exit
  bpf_attr attr;
  std::memset(&attr, 0, sizeof(attr));
  attr.prog_type = BPF_PROG_TYPE_TRACING;
  attr.expected_attach_type = BPF_TRACE_FENTRY;
  attr.attach_btf_id = selection->kernel.entries[0].function->btf_id;
  attr.insn_cnt = 2;
  attr.insns = word(code);
  attr.license = word("GPL");
  return static_cast<int>(::syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr)));
}

}  // namespace

void Stage::add(const char* name, const char* functions, std::map<std::string, std::uint64_t> names,
                std::function<long()> run, std::vector<std::uint64_t> args) {
  Call call{name, std::move(args), std::move(names), {}, std::move(run)};
  std::istringstream words(functions);
  for (std::string each; words >> each;) {
    Reached reached;
    for (; each.back() == '@' || each.back() == '!'; each.pop_back())
      (each.back() == '@' ? reached.positional : reached.returns) = true;
    reached.name = each;
    call.functions.push_back(std::move(reached));
  }
  calls_.push_back(std::move(call));
}

template <class... T>
void Stage::sys(const char* functions, std::map<std::string, std::uint64_t> names, long number, T... args) {
  add(functions, functions, std::move(names), [=] { return outcome(::syscall(number, args...)); }, {word(args)...});
}

template <class... T>
void Stage::key(const char* functions, T... args) {
  sys(functions, {}, SYS_keyctl, args...);
  calls_.back().args.erase(calls_.back().args.begin());  // the operation
}

Stage::Stage() {
  char name[] = "/tmp/usdt-truth-XXXXXX";
  if (!::mkdtemp(name)) throw std::runtime_error("no directory in /tmp");
  directory_ = name;
  path_ = directory_ + "/file";
  file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  other_ = ::open((directory_ + "/other").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (::ftruncate(file_, 65536) != 0) throw std::runtime_error("ftruncate");
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair_) != 0) throw std::runtime_error("socketpair");
  epoll_ = ::epoll_create1(0);
  timer_ = ::timerfd_create(CLOCK_MONOTONIC, 0);
  page_ = static_cast<char*>(::mmap(nullptr, 16 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::memset(page_, 0, 16 * 4096);
  test_program_ = load_test_program();
  files();
  names_of_files();
  sockets();
  memory();
  waiting();
  processes();
  ipc();
  keys();
  test_functions();
}

Stage::~Stage() {
  for (const int fd : {file_, other_, pair_[0], pair_[1], epoll_, timer_, test_program_}) {
    if (fd >= 0) ::close(fd);
  }
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

void Stage::files() {
  char* const buffer = page_ + 17;
  const auto f = word(file_), b = word(buffer);
  static iovec vector[3];
  vector[0] = vector[1] = vector[2] = {buffer, 5};
  const auto v = word(vector);
  sys("ksys_read@! vfs_read rw_verify_area __fdget_pos fdget_pos", {{"fd", f}, {"buf", b}, {"count", 1234}}, SYS_read,
      file_, buffer, 1234UL);
  sys("ksys_write@! vfs_write rw_verify_area", {{"fd", f}, {"buf", b}, {"count", 777}}, SYS_write, file_, buffer,
      777UL);
  sys("do_readv@! vfs_readv import_iovec __import_iovec", {{"vec", v}, {"vlen", 3}, {"uvec", v}, {"nr_segs", 3}},
      SYS_readv, file_, vector, 3UL);
  sys("do_writev@! vfs_writev", {{"vec", v}, {"vlen", 2}}, SYS_writev, file_, vector, 2UL);
  sys("do_fcntl@!", {}, SYS_fcntl, file_, F_GETFD, 0x1234567L);
  sys("do_fcntl@! f_dupfd!", {{"from", 300}}, SYS_fcntl, file_, F_DUPFD, 300L);
  sys("do_fcntl@! f_setown fcntl_setown", {{"who", word(::getpid())}, {"arg", word(::getpid())}}, SYS_fcntl, pair_[0],
      F_SETOWN, static_cast<long>(::getpid()));
  sys("ksys_dup3@! do_dup2", {{"fd", 301}}, SYS_dup3, file_, 301, O_CLOEXEC);
  sys("do_vfs_ioctl security_file_ioctl vfs_ioctl", {{"fd", f}, {"cmd", 0xabcd1234}, {"arg", 0x5566778}}, SYS_ioctl,
      file_, 0xabcd1234U, 0x5566778L);
  sys("do_fsync@! vfs_fsync vfs_fsync_range", {{"datasync", 1}}, SYS_fdatasync, file_);
  sys("close_fd! __close_fd file_close_fd", {{"fd", 301}}, SYS_close, 301);
  offsets_in_files(buffer, vector);
  sys("fd_statfs", {{"fd", f}}, SYS_fstatfs, file_, page_);
  sys("do_pipe2@!", {}, SYS_pipe2, page_, O_CLOEXEC);
  sys("do_eventfd@!", {}, SYS_eventfd2, 12345, 04000);
  sys("do_epoll_create@!", {}, SYS_epoll_create1, EPOLL_CLOEXEC);
  sys("do_inotify_init@!", {}, SYS_inotify_init1, 04000);
  sys("do_fanotify_mark@!", {}, SYS_fanotify_mark, 9999, 0x77U, 0x1234UL, 9998, path_.c_str());
  sys("do_signalfd4!", {{"ufd", word(-1)}, {"flags", 04000}}, SYS_signalfd4, -1, page_, 8UL, 04000);
  sys("do_handle_open!", {{"mountdirfd", 9997}, {"ufh", word(page_ + 64)}}, SYS_open_by_handle_at, 9997, page_ + 64,
      O_RDONLY | O_NOFOLLOW);
}

void Stage::offsets_in_files(char* buffer, const iovec* vector) {
  const auto f = word(file_), b = word(buffer), v = word(vector);
#if __SIZEOF_POINTER__ == 8
  sys("ksys_pread64@! vfs_read", {{"buf", b}, {"count", 321}}, SYS_pread64, file_, buffer, 321UL, 0x3333L);
  sys("ksys_pwrite64@! vfs_write", {{"buf", b}, {"count", 322}}, SYS_pwrite64, file_, buffer, 322UL, 0x3334L);
  sys("do_preadv! vfs_readv", {{"fd", f}, {"vec", v}, {"vlen", 3}, {"pos", 0x1111}}, SYS_preadv, file_, vector, 3UL,
      0x1111L, 0L);
  sys("do_pwritev! vfs_writev", {{"fd", f}, {"vec", v}, {"vlen", 2}, {"pos", 0x2222}}, SYS_pwritev, file_, vector, 2UL,
      0x2222L, 0L);
  sys("ksys_lseek@! vfs_llseek!", {{"offset", 4321}, {"whence", SEEK_SET}}, SYS_lseek, file_, 4321L, SEEK_SET);
  sys("do_sys_ftruncate! do_ftruncate! do_truncate", {{"fd", f}, {"length", 65535}}, SYS_ftruncate, file_, 65535L);
  sys("do_sys_truncate@! vfs_truncate! do_truncate", {{"length", 65534}}, SYS_truncate, path_.c_str(), 65534L);
  sys("ksys_fallocate@! vfs_fallocate!", {{"mode", 1}, {"offset", 8192}, {"len", 4096}}, SYS_fallocate, file_, 1, 8192L,
      4096L);
  sys("ksys_sync_file_range@! sync_file_range!", {{"offset", 8192}, {"nbytes", 5000}, {"flags", 2}},
      SYS_sync_file_range, file_, 8192L, 5000L, 2U);
  sys("ksys_readahead@!", {}, SYS_readahead, file_, 8192L, 5001UL);
  sys("ksys_fadvise64_64@! vfs_fadvise! generic_fadvise!", {{"offset", 8193}, {"len", 5002}, {"advice", 1}},
      SYS_fadvise64, file_, 8193L, 5002L, 1);
  sys("do_sendfile", {{"out_fd", word(other_)}, {"in_fd", f}, {"count", 10}}, SYS_sendfile, other_, file_, nullptr,
      10UL);
  sys("vfs_copy_file_range!", {{"len", 11}, {"flags", 0}}, SYS_copy_file_range, file_, nullptr, other_, nullptr, 11UL,
      0U);
  sys("vfs_fstat", {{"fd", f}}, SYS_fstat, file_, page_);
#else
  // An offset in a file is two words of the system call, and one argument of the function.
  const auto wide = [&](const char* functions, std::vector<std::uint64_t> args,
                        std::map<std::string, std::uint64_t> some, long number, auto... words) {
    add(
        functions, functions, std::move(some), [=] { return outcome(::syscall(number, words...)); }, std::move(args));
  };
  constexpr std::uint64_t far = 0x1'2345'6789;
  wide("ksys_pread64@! vfs_read", {f, b, 321, far}, {{"buf", b}, {"count", 321}}, SYS_pread64, file_, buffer, 321,
       0x2345'6789, 1);
  wide("ksys_pwrite64@! vfs_write", {f, b, 322, 0x3334}, {{"buf", b}, {"count", 322}}, SYS_pwrite64, file_, buffer, 322,
       0x3334, 0);
  wide("do_preadv! vfs_readv", {}, {{"fd", f}, {"vec", v}, {"vlen", 3}, {"pos", far}}, SYS_preadv, file_, vector, 3,
       0x2345'6789, 1);
  wide("do_pwritev! vfs_writev", {}, {{"fd", f}, {"vec", v}, {"vlen", 2}, {"pos", 0x2222}}, SYS_pwritev, file_, vector,
       2, 0x2222, 0);
  wide("vfs_llseek", {}, {{"offset", far}, {"whence", SEEK_SET}}, SYS__llseek, file_, 1, 0x2345'6789, page_, SEEK_SET);
  wide("do_sys_ftruncate@! do_truncate", {f, 65535, 1}, {{"length", 65535}}, SYS_ftruncate64, file_, 65535, 0);
  wide("do_sys_truncate@! vfs_truncate! do_truncate", {word(path_.c_str()), 65534}, {{"length", 65534}}, SYS_truncate64,
       path_.c_str(), 65534, 0);
  wide("ksys_fallocate@! vfs_fallocate!", {f, 1, 8192, 4096}, {{"mode", 1}, {"offset", 8192}, {"len", 4096}},
       SYS_fallocate, file_, 1, 8192, 0, 4096, 0);
  wide("ksys_sync_file_range@! sync_file_range!", {f, far, 5000, 2}, {{"offset", far}, {"nbytes", 5000}, {"flags", 2}},
       SYS_sync_file_range, file_, 0x2345'6789, 1, 5000, 0, 2);
  wide("ksys_readahead@!", {f, far, 5001}, {}, SYS_readahead, file_, 0x2345'6789, 1, 5001);
  wide("ksys_fadvise64_64@! vfs_fadvise! generic_fadvise!", {f, far, 5002, 1},
       {{"offset", far}, {"len", 5002}, {"advice", 1}}, SYS_fadvise64_64, file_, 0x2345'6789, 1, 5002, 0, 1);
  wide("vfs_copy_file_range!", {}, {{"len", 11}, {"flags", 0}}, SYS_copy_file_range, file_, nullptr, other_, nullptr,
       11, 0);
#endif
}

void Stage::names_of_files() {
  const char* const path = path_.c_str();
  static const char nowhere[] = "/tmp/usdt-truth-nowhere";
  static const char nowhere_else[] = "/tmp/usdt-truth-nowhere-else";
  const auto here = word(static_cast<std::int64_t>(AT_FDCWD)), p = word(path), n = word(nowhere);
  const std::map<std::string, std::uint64_t> at = {
      {"dfd", here}, {"filename", p}, {"pathname", p}, {"olddfd", here}, {"newdfd", here}};
  const auto with = [](std::map<std::string, std::uint64_t> some, std::map<std::string, std::uint64_t> more) {
    for (const auto& [name, value] : more) some[name] = value;
    return some;
  };
  const auto gone = with(at, {{"filename", n}, {"pathname", n}});
  sys("do_sys_openat2! do_sys_open! getname_flags getname do_getname do_filp_open do_file_open", at, SYS_openat,
      AT_FDCWD, path, O_RDONLY, 0);
  sys("do_mkdirat! filename_mkdirat getname_flags do_getname", with(gone, {{"mode", 01712}}), SYS_mkdirat, AT_FDCWD,
      nowhere, 01712);
  sys("do_unlinkat! filename_unlinkat do_rmdir! filename_rmdir getname_flags", gone, SYS_unlinkat, AT_FDCWD, nowhere,
      AT_REMOVEDIR);
  sys("do_mknodat! filename_mknodat vfs_mknod", with(gone, {{"mode", S_IFIFO | 0600}, {"dev", 0}}), SYS_mknodat,
      AT_FDCWD, nowhere, S_IFIFO | 0600, 0);
  sys("do_unlinkat! filename_unlinkat", gone, SYS_unlinkat, AT_FDCWD, nowhere, 0);
  sys("do_renameat2! filename_renameat2", with(at, {{"oldname", n}, {"newname", word(nowhere_else)}, {"flags", 2}}),
      SYS_renameat2, AT_FDCWD, nowhere, AT_FDCWD, nowhere_else, 2U);
  sys("do_linkat! filename_linkat",
      with(at, {{"oldname", n}, {"newname", word(nowhere_else)}, {"flags", AT_SYMLINK_FOLLOW}}), SYS_linkat, AT_FDCWD,
      nowhere, AT_FDCWD, nowhere_else, AT_SYMLINK_FOLLOW);
  sys("do_symlinkat! filename_symlinkat", with(at, {{"oldname", p}, {"newname", word("")}}), SYS_symlinkat, path,
      AT_FDCWD, "/tmp/usdt-truth-no/where");
  calls_.back().names.erase("newname");
  sys("do_readlinkat@!", {}, SYS_readlinkat, AT_FDCWD, path, page_, 101);
  sys("do_faccessat@!", {}, SYS_faccessat, AT_FDCWD, path, R_OK);
  sys("do_fchmodat@!", {}, SYS_fchmodat, AT_FDCWD, path, 0640);
  sys("do_fchownat@!", {}, SYS_fchownat, AT_FDCWD, path, 0, 0, AT_SYMLINK_NOFOLLOW);
  sys("do_utimes!", with(at, {{"flags", AT_SYMLINK_NOFOLLOW}}), SYS_utimensat, AT_FDCWD, path, nullptr,
      AT_SYMLINK_NOFOLLOW);
#ifdef SYS_newfstatat
  sys("vfs_fstatat!", with(at, {{"flags", AT_SYMLINK_NOFOLLOW}, {"flag", AT_SYMLINK_NOFOLLOW}}), SYS_newfstatat,
      AT_FDCWD, path, page_, AT_SYMLINK_NOFOLLOW);
#endif
  sys("do_statx! vfs_statx", with(at, {{"mask", 0x7ff}, {"request_mask", 0x7ff}, {"buffer", word(page_)}}), SYS_statx,
      AT_FDCWD, path, 0, 0x7ffU, page_);
  sys("user_statfs", {{"pathname", p}}, SYS_statfs, path, page_);
  sys("user_path_at user_path_at_empty", with(at, {{"name", p}}), SYS_chdir, path);
  sys("do_mount! path_mount", {{"dir_name", p}, {"flags", 0x123}}, SYS_mount, nullptr, path, nullptr, 0x123UL, nullptr);
}

void Stage::sockets() {
  const auto s = word(pair_[0]);
  static char address[128] = {};
  static socklen_t length = sizeof(address);
  static msghdr message;
  const auto a = word(address), l = word(&length), m = word(&message);
  const std::map<std::string, std::uint64_t> kind = {{"family", AF_UNIX}, {"type", SOCK_DGRAM}, {"protocol", 0}};
  sys("__sys_socket@! sock_create __sock_create security_socket_create unix_create __sys_socket_file", kind, SYS_socket,
      AF_UNIX, SOCK_DGRAM, 0);
  sys("__sys_socket@!", {}, SYS_socket, 77, 5, 1234);
  sys("__sys_socketpair@!", {}, SYS_socketpair, 78, 1, 4321, page_);
  sys("__sys_bind@! move_addr_to_kernel!", {{"uaddr", a}, {"ulen", 300}}, SYS_bind, pair_[0], address, 300);
  sys("__sys_connect@! move_addr_to_kernel!", {{"uaddr", a}, {"ulen", 301}}, SYS_connect, pair_[0], address, 301);
  sys("__sys_listen@! unix_listen! security_socket_listen __sys_listen_socket!", {{"backlog", 23}}, SYS_listen,
      pair_[0], 23);
  sys("__sys_accept4@!", {}, SYS_accept4, 9990, address, &length, 04000);
  sys("__sys_sendto@!", {}, SYS_sendto, pair_[0], page_ + 3, 47UL, MSG_DONTWAIT, nullptr, 0);
  sys("__sys_recvfrom@!", {}, SYS_recvfrom, pair_[1], page_ + 5, 48UL, MSG_DONTWAIT, address, &length);
  sys("__sys_setsockopt! sock_setsockopt do_sock_setsockopt sk_setsockopt",
      {{"fd", s}, {"level", SOL_SOCKET}, {"optname", SO_RCVBUF}, {"user_optval", word(page_)}, {"optlen", 4}},
      SYS_setsockopt, pair_[0], SOL_SOCKET, SO_RCVBUF, page_, 4);
  sys("__sys_getsockopt! do_sock_getsockopt sk_getsockopt", {{"fd", s}, {"level", SOL_SOCKET}, {"optname", SO_TYPE}},
      SYS_getsockopt, pair_[0], SOL_SOCKET, SO_TYPE, page_, &length);
  sys("__sys_getsockname! unix_getname do_getsockname!",
      {{"fd", s}, {"usockaddr", a}, {"usockaddr_len", l}, {"peer", 0}}, SYS_getsockname, pair_[0], address, &length);
  sys("__sys_getsockname! __sys_getpeername! unix_getname do_getsockname!",
      {{"fd", s}, {"usockaddr", a}, {"usockaddr_len", l}, {"peer", 1}}, SYS_getpeername, pair_[0], address, &length);
  sys("__sys_sendmsg@!", {}, SYS_sendmsg, pair_[0], &message, 0x40U);
  sys("__sys_recvmsg@!", {}, SYS_recvmsg, pair_[0], &message, 0x40U);
  sys("__sys_sendmmsg@!", {}, SYS_sendmmsg, pair_[0], page_, 1U, 0x40U);
  sys("__sys_recvmmsg! do_recvmmsg!", {{"fd", s}, {"vlen", 1}, {"flags", 0x40}}, SYS_recvmmsg, pair_[0], page_, 1U,
      0x40U, nullptr);
  sys("__sys_shutdown@! unix_shutdown", {{"mode", 1}, {"how", 1}}, SYS_shutdown, pair_[0], 1);
  static_cast<void>(m);
}

void Stage::memory() {
  char* const from = page_ + 4096;
  const auto start = word(from);
#if __SIZEOF_POINTER__ == 8
  sys("ksys_mmap_pgoff vm_mmap_pgoff! do_mmap get_unmapped_area __get_unmapped_area",
      {{"len", 8192},
       {"prot", PROT_READ},
       {"flag", MAP_PRIVATE},
       {"flags", MAP_PRIVATE},
       {"fd", word(file_)},
       {"pgoff", 3}},
      SYS_mmap, 0x200000000000UL, 8192UL, PROT_READ, MAP_PRIVATE, file_, 3 * 4096L);
#endif
  sys("do_mprotect_pkey! mprotect_fixup", {{"start", start}, {"len", 8192}, {"prot", 1}, {"pkey", word(-1)}},
      SYS_mprotect, from, 8192UL, PROT_READ);
  sys("do_madvise!", {{"start", start}, {"len_in", 4096}, {"len", 4096}, {"behavior", MADV_DONTNEED}}, SYS_madvise,
      from, 4096UL, MADV_DONTNEED);
  sys("do_mincore", {{"addr", start}}, SYS_mincore, from, 4096UL, page_);
  sys("do_mlock@! apply_vma_lock_flags!", {{"start", start}, {"len", 4096}}, SYS_mlock, from, 4096UL);
  sys("apply_vma_lock_flags!", {{"start", start}, {"len", 4096}}, SYS_munlock, from, 4096UL);
  sys("__vm_munmap@! vm_munmap do_munmap __do_munmap do_vmi_munmap do_vmi_align_munmap",
      {{"start", word(page_ + 15 * 4096)}, {"len", 4096}, {"end", word(page_ + 16 * 4096)}}, SYS_munmap,
      page_ + 15 * 4096, 4096UL);
  sys("kernel_mbind@!", {}, SYS_mbind, from, 4096UL, 99, page_, 1UL, 0x77);
  sys("kernel_set_mempolicy@!", {}, SYS_set_mempolicy, 98, page_, 2UL);
  sys("kernel_get_mempolicy@!", {}, SYS_get_mempolicy, page_, page_ + 64, 3UL, from, 0x66UL);
  sys("kernel_migrate_pages@!", {}, SYS_migrate_pages, 999999, 4UL, page_, page_ + 64);
  sys("kernel_move_pages@!", {}, SYS_move_pages, 999998, 5UL, page_, page_ + 64, page_ + 128, 2);
  sys("process_vm_rw@!", {{"vm_write", 0}}, SYS_process_vm_readv, 999997, page_, 0UL, page_ + 64, 0UL, 1UL);
  sys("process_vm_rw! ", {{"pid", 999996}, {"flags", 2}, {"vm_write", 1}}, SYS_process_vm_writev, 999996, page_, 0UL,
      page_ + 64, 0UL, 2UL);
}

void Stage::waiting() {
  static std::uint32_t word_a = 5, word_b = 6;
  const auto u = word(&word_a), u2 = word(&word_b);
  const std::map<std::string, std::uint64_t> futex = {{"uaddr", u}, {"uaddr1", u}, {"uaddr2", u2}};
  const auto with = [&](std::map<std::string, std::uint64_t> more) {
    more.insert(futex.begin(), futex.end());
    return more;
  };
  sys("do_futex! futex_wake!", with({{"op", 1}, {"val", 7}, {"nr_wake", 7}, {"bitset", word(-1)}, {"val3", 0x3333}}),
      SYS_futex, &word_a, FUTEX_WAKE, 7, nullptr, &word_b, 0x3333);
  sys("do_futex! futex_wait!", with({{"op", 9}, {"val", 99}, {"bitset", 0x0f0f}, {"val3", 0x0f0f}}), SYS_futex, &word_a,
      FUTEX_WAIT_BITSET, 99, nullptr, &word_b, 0x0f0f);
  sys("do_futex! futex_requeue!", with({{"op", 3}, {"val", 8}, {"val2", 9}, {"nr_wake", 8}, {"nr_requeue", 9}}),
      SYS_futex, &word_a, FUTEX_REQUEUE, 8, 9L, &word_b, 0);
  sys("do_futex! futex_wake_op!", with({{"val", 2}, {"val2", 3}, {"nr_wake", 2}, {"nr_wake2", 3}, {"val3", 0x1001}}),
      SYS_futex, &word_a, FUTEX_WAKE_OP, 2, 3L, &word_b, 0x1001);
  sys("do_epoll_ctl!", {{"epfd", word(epoll_)}, {"op", EPOLL_CTL_DEL}, {"fd", word(file_)}}, SYS_epoll_ctl, epoll_,
      EPOLL_CTL_DEL, file_, page_);
  sys("do_epoll_wait!", {{"epfd", word(epoll_)}, {"events", word(page_)}, {"maxevents", 13}}, SYS_epoll_pwait, epoll_,
      page_, 13, 0, nullptr, 8UL);
  sys("do_timerfd_settime!", {{"ufd", word(timer_)}, {"flags", 1}}, SYS_timerfd_settime, timer_, 1, page_, page_ + 64);
  sys("do_timerfd_gettime!", {{"ufd", word(timer_)}}, SYS_timerfd_gettime, timer_, page_);
  static const std::int64_t moment[2] = {0, 1000};
  sys("do_sys_poll!", {{"ufds", word(page_)}, {"nfds", 0}}, kPoll, page_, 0U, moment, nullptr, 8UL);
  sys("core_sys_select!", {{"n", 0}, {"inp", 0}, {"outp", word(page_)}}, kSelect, 0, nullptr, page_, nullptr, moment,
      nullptr);
  sys("hrtimer_nanosleep! common_nsleep common_nsleep_timens",
      {{"clockid", CLOCK_MONOTONIC}, {"which_clock", CLOCK_MONOTONIC}, {"flags", 0}}, kSleep, CLOCK_MONOTONIC, 0,
      moment, nullptr);
#if __SIZEOF_POINTER__ == 8
  sys("hrtimer_nanosleep!", {{"mode", 1}, {"clockid", CLOCK_MONOTONIC}}, SYS_nanosleep, moment, nullptr);
#endif
  sys("posix_get_monotonic_timespec!", {{"which_clock", CLOCK_MONOTONIC}}, kClock, CLOCK_MONOTONIC, page_);
  sys("posix_get_realtime_timespec!", {{"which_clock", CLOCK_REALTIME}}, kClock, CLOCK_REALTIME, page_);
  sys("posix_get_boottime_timespec!", {{"which_clock", CLOCK_BOOTTIME}}, kClock, CLOCK_BOOTTIME, page_);
  sys("posix_get_tai_timespec!", {{"which_clock", CLOCK_TAI}}, kClock, CLOCK_TAI, page_);
  sys("posix_get_monotonic_raw!", {{"which_clock", CLOCK_MONOTONIC_RAW}}, kClock, CLOCK_MONOTONIC_RAW, page_);
  sys("posix_get_monotonic_coarse!", {{"which_clock", CLOCK_MONOTONIC_COARSE}}, kClock, CLOCK_MONOTONIC_COARSE, page_);
  sys("posix_get_realtime_coarse!", {{"which_clock", CLOCK_REALTIME_COARSE}}, kClock, CLOCK_REALTIME_COARSE, page_);
  sys("posix_get_coarse_res!", {{"which_clock", CLOCK_REALTIME_COARSE}}, kResolution, CLOCK_REALTIME_COARSE, page_);
  sys("posix_get_hrtimer_res!", {{"which_clock", CLOCK_BOOTTIME}}, kResolution, CLOCK_BOOTTIME, page_);
  sys("process_cpu_clock_get! posix_cpu_clock_get", {{"which_clock", CLOCK_PROCESS_CPUTIME_ID}}, kClock,
      CLOCK_PROCESS_CPUTIME_ID, page_);
  sys("thread_cpu_clock_get!", {{"which_clock", CLOCK_THREAD_CPUTIME_ID}}, kClock, CLOCK_THREAD_CPUTIME_ID, page_);
  sys("process_cpu_clock_getres! posix_cpu_clock_getres", {}, kResolution, CLOCK_PROCESS_CPUTIME_ID, page_);
  static int timer = 0;
  sys("do_timer_create!", {{"which_clock", CLOCK_BOOTTIME}, {"created_timer_id", word(&timer)}}, SYS_timer_create,
      CLOCK_BOOTTIME, nullptr, &timer);
  sys("do_timer_settime!", {{"timer_id", 3333}, {"tmr_flags", 1}, {"flags", 1}}, kSetTimer, 3333, 1, page_, page_ + 64);
  sys("do_timer_gettime!", {{"timer_id", 3334}}, kGetTimer, 3334, page_);
  sys("do_getitimer!", {{"which", 55}}, SYS_getitimer, 55, page_);
  sys("do_setitimer!", {{"which", 56}}, SYS_setitimer, 56, page_, page_ + 64);
}

void Stage::processes() {
  const auto me = word(::getpid());
  sys("kill_something_info! check_kill_permission kill_pid_info kill_proc_info", {{"sig", 0}, {"pid", me}}, SYS_kill,
      ::getpid(), 0);
  calls_.back().names.erase("pid");
  sys("do_tkill@! do_send_specific@!", {}, SYS_tgkill, ::getpid(), 999995, 0);
  sys("do_rt_sigqueueinfo", {{"pid", 999994}, {"sig", 10}}, SYS_rt_sigqueueinfo, 999994, 10, page_ + 256);
  sys("do_rt_tgsigqueueinfo", {{"tgid", 999993}, {"pid", 999992}, {"sig", 12}}, SYS_rt_tgsigqueueinfo, 999993, 999992,
      12, page_ + 256);
  sys("do_sigaction!", {{"sig", 33}, {"act", 0}}, SYS_rt_sigaction, 33, nullptr, page_, 8UL);
  sys("sigprocmask!", {{"how", SIG_UNBLOCK}}, SYS_rt_sigprocmask, SIG_UNBLOCK, page_ + 512, nullptr, 8UL);
  sys("do_prlimit!", {{"resource", RLIMIT_STACK}}, SYS_prlimit64, 0, RLIMIT_STACK, nullptr, page_);
  sys("do_getpgid@! find_task_by_vpid find_vpid", {{"vnr", 999991}, {"nr", 999991}}, SYS_getpgid, 999991);
  sys("sched_getaffinity", {{"pid", 999990}}, SYS_sched_getaffinity, 999990, 128UL, page_);
  sys("sched_setaffinity!", {{"pid", 999989}}, SYS_sched_setaffinity, 999989, 128UL, page_ + 1024);
  sys("do_sched_setscheduler@!", {}, SYS_sched_setscheduler, 999988, 0, page_ + 1024);
  sys("__sys_setresuid@!", {}, SYS_setresuid, -1, 0, -1);
  sys("__sys_setresgid@!", {}, SYS_setresgid, 0, -1, -1);
  sys("__sys_setreuid@!", {}, SYS_setreuid, -1, 0);
  sys("__sys_setregid@!", {}, SYS_setregid, 0, -1);
  sys("__sys_setuid@!", {}, SYS_setuid, 0);
  sys("__sys_setgid@!", {}, SYS_setgid, 0);
  sys("__sys_setfsuid@!", {}, SYS_setfsuid, -1);
  sys("__sys_setfsgid@!", {}, SYS_setfsgid, -1);
  sys("security_task_prctl@ cap_task_prctl@", {}, SYS_prctl, 0x7001, 0x7002L, 0x7003L, 0x7004L, 0x7005L);
  sys("ksys_unshare@!", {}, SYS_unshare, 0);
  sys("kernel_wait4!", {{"upid", 999987}, {"stat_addr", word(page_)}, {"options", 1}, {"ru", 0}}, SYS_wait4, 999987,
      page_, 1, nullptr);
  sys("kernel_waitid!", {{"which", 1}, {"upid", 999986}, {"options", 5}}, SYS_waitid, 1, 999986, page_, 5, nullptr);
  sys("__sys_bpf!", {{"cmd", 1234}, {"size", 72}}, SYS_bpf, 1234, page_ + 2048, 72);
  sys("do_sysinfo", {}, SYS_sysinfo, page_);
  sys("ioctx_alloc", {{"nr_events", 0x7fffffff}}, SYS_io_setup, 0x7fffffff, page_ + 512);
  sys("io_uring_setup", {{"entries", 0xfffffff}}, SYS_io_uring_setup, 0xfffffff, page_ + 512);
}

void Stage::ipc() {
#ifdef SYS_shmget
  sys("ksys_shmget@! ipcget!", {}, SYS_shmget, 0x5151, 4096UL, 0);
  sys("ksys_semget@!", {}, SYS_semget, 0x5152, 3, 0);
  sys("ksys_msgget@!", {}, SYS_msgget, 0x5153, 0);
  sys("do_shmat", {{"shmid", 0x5154}, {"shmaddr", 0x10000}, {"shmflg", 010000}}, SYS_shmat, 0x5154, 0x10000UL, 010000);
  sys("ksys_shmdt@!", {}, SYS_shmdt, page_ + 4096);
  static long message[8] = {77};
  sys("do_msgsnd! ksys_msgsnd@!", {{"msqid", 0x5155}, {"mtype", 77}, {"msgsz", 9}, {"msgflg", 04000}}, SYS_msgsnd,
      0x5155, message, 9UL, 04000);
  sys("do_msgrcv! ksys_msgrcv@!",
      {{"msqid", 0x5156}, {"buf", word(message)}, {"bufsz", 10}, {"msgtyp", 78}, {"msgflg", 04000}}, SYS_msgrcv, 0x5156,
      message, 10UL, 78L, 04000);
  sys("ksys_shmctl@!", {}, SYS_shmctl, 0x5157, 2, page_);
  sys("ksys_semctl@!", {}, SYS_semctl, 0x5158, 3, 2, page_);
  sys("ksys_msgctl@!", {}, SYS_msgctl, 0x5159, 2, page_);
#ifdef SYS_semtimedop
  sys("do_semtimedop ksys_semtimedop@!", {{"semid", 0x5160}, {"nsops", 1}}, SYS_semtimedop, 0x5160, page_, 1U, nullptr);
#endif
#endif
  static const char name[] = "usdt-truth-none";
  sys("do_mq_open!", {{"u_name", word(name)}, {"oflag", O_RDWR}, {"mode", 0600}}, SYS_mq_open, name, O_RDWR, 0600,
      nullptr);
  sys("do_mq_timedsend!", {{"mqdes", 9980}, {"u_msg_ptr", word(page_)}, {"msg_len", 12}, {"msg_prio", 3}}, kSend, 9980,
      page_, 12UL, 3U, nullptr);
  sys("do_mq_timedreceive!", {{"mqdes", 9981}, {"u_msg_ptr", word(page_)}, {"msg_len", 13}}, kReceive, 9981, page_,
      13UL, nullptr, nullptr);
  sys("do_mq_getsetattr!", {{"mqdes", 9982}}, SYS_mq_getsetattr, 9982, nullptr, page_);
  sys("do_mq_notify!", {{"mqdes", 9983}}, SYS_mq_notify, 9983, nullptr);
}

/// Ids of keys that no one has: positive ones are looked up, and not found.
void Stage::keys() {
  constexpr int a = 0x7f000001, b = 0x7f000002;
  char* const text = page_ + 3000;
  std::strcpy(text, "user");
  key("keyctl_get_keyring_ID@! lookup_user_key", KEYCTL_GET_KEYRING_ID, a, 0);
  calls_.back().names = {{"id", a}};
  key("keyctl_join_session_keyring@", KEYCTL_JOIN_SESSION_KEYRING, 8L);
  key("keyctl_update_key@!", KEYCTL_UPDATE, a, text, 5UL);
  key("keyctl_revoke_key@!", KEYCTL_REVOKE, a);
  key("keyctl_chown_key@!", KEYCTL_CHOWN, a, 11, 12);
  key("keyctl_setperm_key@!", KEYCTL_SETPERM, a, 0x3f3f0000);
  key("keyctl_describe_key@!", KEYCTL_DESCRIBE, a, text, 16UL);
  key("keyctl_keyring_clear@!", KEYCTL_CLEAR, a);
  key("keyctl_keyring_link@!", KEYCTL_LINK, a, b);
  key("keyctl_keyring_unlink@!", KEYCTL_UNLINK, a, b);
  key("keyctl_keyring_search@!", KEYCTL_SEARCH, a, text, text, b);
  key("keyctl_read_key@!", KEYCTL_READ, a, text, 17UL);
  key("keyctl_instantiate_key@!", KEYCTL_INSTANTIATE, a, text, 4UL, b);
  key("keyctl_negate_key@! keyctl_reject_key!", KEYCTL_NEGATE, a, 1000U, b);
  calls_.back().names = {{"id", a}, {"timeout", 1000}, {"error", ENOKEY}, {"ringid", b}};
  key("keyctl_reject_key@!", KEYCTL_REJECT, a, 1001U, 77U, b);
  key("keyctl_set_reqkey_keyring@!", KEYCTL_SET_REQKEY_KEYRING, -1);
  key("keyctl_set_timeout@!", KEYCTL_SET_TIMEOUT, a, 1002U);
  key("keyctl_assume_authority@!", KEYCTL_ASSUME_AUTHORITY, a);
  key("keyctl_get_security@!", KEYCTL_GET_SECURITY, a, text, 18UL);
  key("keyctl_invalidate_key@!", KEYCTL_INVALIDATE, a);
  key("keyctl_get_persistent@!", KEYCTL_GET_PERSISTENT, 1, a);
  key("keyctl_restrict_keyring@!", KEYCTL_RESTRICT_KEYRING, a, nullptr, nullptr);
#ifdef KEYCTL_MOVE
  key("keyctl_keyring_move@!", KEYCTL_MOVE, a, b, 0x7f000003, 1U);
#endif
#ifdef KEYCTL_CAPABILITIES
  key("keyctl_capabilities@!", KEYCTL_CAPABILITIES, page_, 4UL);
#endif
}

/// net/bpf/test_run.c says with what it calls them.
void Stage::test_functions() {
  const auto run = [this]() -> long {
    if (test_program_ < 0) return -1;
    bpf_attr attr;
    std::memset(&attr, 0, sizeof(attr));
    attr.test.prog_fd = static_cast<std::uint32_t>(test_program_);
    return outcome(::syscall(SYS_bpf, BPF_PROG_TEST_RUN, &attr, sizeof(attr)));
  };
  for (std::uint64_t n = 1, first = 1; n <= 6; first += n, ++n) {
    std::vector<std::uint64_t> args;
    for (std::uint64_t i = 0; i < n; ++i) args.push_back(first + i);
    const std::string name = "bpf_fentry_test" + std::to_string(n) + "@";
    add(name.c_str(), name.c_str(), {}, run, args);
  }
  add("bpf_fentry_test7", "bpf_fentry_test7@ bpf_fentry_test10@", {}, run, {0});
}

}  // namespace usdt::truth
