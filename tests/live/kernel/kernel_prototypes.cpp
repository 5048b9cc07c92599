// SPDX-License-Identifier: BSD-2-Clause
#include "kernel_prototypes.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "btf/btf_builder.hpp"

namespace usdt::ways {
namespace {

/// As Linux 6.1 has them (those of its BTF on x86-64), without const and enum.
constexpr const char* kLinux61 = R"(
unsigned long __fdget_pos(unsigned fd)
int __sock_create(struct net *net, int family, int type, int protocol, struct socket **res, int kern)
int __sys_accept4(int fd, struct sockaddr *upeer_sockaddr, int *upeer_addrlen, int flags)
int __sys_bind(int fd, struct sockaddr *umyaddr, int addrlen)
int __sys_bpf(int cmd, bpfptr_t uattr, unsigned size)
int __sys_connect(int fd, struct sockaddr *uservaddr, int addrlen)
int __sys_getpeername(int fd, struct sockaddr *usockaddr, int *usockaddr_len)
int __sys_getsockname(int fd, struct sockaddr *usockaddr, int *usockaddr_len)
int __sys_getsockopt(int fd, int level, int optname, char *optval, int *optlen)
int __sys_listen(int fd, int backlog)
int __sys_recvfrom(int fd, void *ubuf, size_t size, unsigned flags, struct sockaddr *addr, int *addr_len)
int __sys_recvmmsg(int fd, struct mmsghdr *mmsg, unsigned vlen, unsigned flags, struct __kernel_timespec *timeout, struct old_timespec32 *timeout32)
long __sys_recvmsg(int fd, struct user_msghdr *msg, unsigned flags, bool forbid_cmsg_compat)
int __sys_sendmmsg(int fd, struct mmsghdr *mmsg, unsigned vlen, unsigned flags, bool forbid_cmsg_compat)
long __sys_sendmsg(int fd, struct user_msghdr *msg, unsigned flags, bool forbid_cmsg_compat)
int __sys_sendto(int fd, void *buff, size_t len, unsigned flags, struct sockaddr *addr, int addr_len)
long __sys_setfsgid(gid_t gid)
long __sys_setfsuid(uid_t uid)
long __sys_setgid(gid_t gid)
long __sys_setregid(gid_t rgid, gid_t egid)
long __sys_setresgid(gid_t rgid, gid_t egid, gid_t sgid)
long __sys_setresuid(uid_t ruid, uid_t euid, uid_t suid)
long __sys_setreuid(uid_t ruid, uid_t euid)
int __sys_setsockopt(int fd, int level, int optname, char *user_optval, int optlen)
long __sys_setuid(uid_t uid)
int __sys_shutdown(int fd, int how)
int __sys_socket(int family, int type, int protocol)
int __sys_socketpair(int family, int type, int protocol, int *usockvec)
int __vm_munmap(unsigned long start, size_t len, bool downgrade)
int apply_vma_lock_flags(unsigned long start, size_t len, vm_flags_t flags)
int cap_task_prctl(int option, unsigned long arg2, unsigned long arg3, unsigned long arg4, unsigned long arg5)
int check_kill_permission(int sig, struct kernel_siginfo *info, struct task_struct *t)
int close_fd(unsigned fd)
int common_nsleep(clockid_t which_clock, int flags, struct timespec64 *rqtp)
int common_nsleep_timens(clockid_t which_clock, int flags, struct timespec64 *rqtp)
int core_sys_select(int n, fd_set *inp, fd_set *outp, fd_set *exp, struct timespec64 *end_time)
int do_dup2(struct files_struct *files, struct file *file, unsigned fd, unsigned flags)
int do_epoll_create(int flags)
int do_epoll_ctl(int epfd, int op, int fd, struct epoll_event *epds, bool nonblock)
int do_epoll_wait(int epfd, struct epoll_event *events, int maxevents, struct timespec64 *to)
int do_eventfd(unsigned count, int flags)
long do_faccessat(int dfd, char *filename, int mode, int flags)
int do_fchmodat(int dfd, char *filename, umode_t mode)
int do_fchownat(int dfd, char *filename, uid_t user, gid_t group, int flag)
long do_fcntl(int fd, unsigned cmd, unsigned long arg, struct file *filp)
struct file *do_filp_open(int dfd, struct filename *pathname, struct open_flags *op)
long do_futex(u32 *uaddr, int op, u32 val, ktime_t *timeout, u32 *uaddr2, u32 val2, u32 val3)
int do_inotify_init(int flags)
int do_linkat(int olddfd, struct filename *old, int newdfd, struct filename *new, int flags)
int do_madvise(struct mm_struct *mm, unsigned long start, size_t len_in, int behavior)
int do_mkdirat(int dfd, struct filename *name, umode_t mode)
int do_mknodat(int dfd, struct filename *name, umode_t mode, unsigned dev)
int do_mlock(unsigned long start, size_t len, vm_flags_t flags)
unsigned long do_mmap(struct file *file, unsigned long addr, unsigned long len, unsigned long prot, unsigned long flags, unsigned long pgoff, unsigned long *populate, struct list_head *uf)
long do_mount(char *dev_name, char *dir_name, char *type_page, unsigned long flags, void *data_page)
int do_mq_timedreceive(mqd_t mqdes, char *u_msg_ptr, size_t msg_len, unsigned *u_msg_prio, struct timespec64 *ts)
int do_mq_timedsend(mqd_t mqdes, char *u_msg_ptr, size_t msg_len, unsigned msg_prio, struct timespec64 *ts)
long do_msgsnd(int msqid, long mtype, void *mtext, size_t msgsz, int msgflg)
int do_munmap(struct mm_struct *mm, unsigned long start, size_t len, struct list_head *uf)
int do_pipe2(int *fildes, int flags)
ssize_t do_preadv(unsigned long fd, struct iovec *vec, unsigned long vlen, loff_t pos, rwf_t flags)
int do_prlimit(struct task_struct *tsk, unsigned resource, struct rlimit *new_rlim, struct rlimit *old_rlim)
ssize_t do_pwritev(unsigned long fd, struct iovec *vec, unsigned long vlen, loff_t pos, rwf_t flags)
int do_readlinkat(int dfd, char *pathname, char *buf, int bufsiz)
ssize_t do_readv(unsigned long fd, struct iovec *vec, unsigned long vlen, rwf_t flags)
int do_recvmmsg(int fd, struct mmsghdr *mmsg, unsigned vlen, unsigned flags, struct timespec64 *timeout)
int do_renameat2(int olddfd, struct filename *from, int newdfd, struct filename *to, unsigned flags)
int do_rmdir(int dfd, struct filename *name)
int do_sched_setscheduler(pid_t pid, int policy, struct sched_param *param)
long do_semtimedop(int semid, struct sembuf *tsops, unsigned nsops, struct timespec64 *timeout)
int do_sched_yield()
int do_send_specific(pid_t tgid, pid_t pid, int sig, struct kernel_siginfo *info)
ssize_t do_sendfile(int out_fd, int in_fd, loff_t *ppos, size_t count, loff_t max)
int do_setitimer(int which, struct itimerspec64 *value, struct itimerspec64 *ovalue)
long do_shmat(int shmid, char *shmaddr, int shmflg, ulong *raddr, unsigned long shmlba)
int do_sigaction(int sig, struct k_sigaction *act, struct k_sigaction *oact)
int do_signalfd4(int ufd, sigset_t *mask, int flags)
int do_statx(int dfd, struct filename *filename, unsigned flags, unsigned mask, struct statx *buffer)
int do_symlinkat(struct filename *from, int newdfd, struct filename *to)
long do_sys_ftruncate(unsigned fd, loff_t length, int small)
long do_sys_open(int dfd, char *filename, int flags, umode_t mode)
long do_sys_openat2(int dfd, char *filename, struct open_how *how)
int do_sys_poll(struct pollfd *ufds, unsigned nfds, struct timespec64 *end_time)
long do_sys_truncate(char *pathname, loff_t length)
int do_timer_create(clockid_t which_clock, struct sigevent *event, timer_t *created_timer_id)
int do_timer_gettime(timer_t timer_id, struct itimerspec64 *setting)
int do_timer_settime(timer_t timer_id, int tmr_flags, struct itimerspec64 *new_spec64, struct itimerspec64 *old_spec64)
int do_timerfd_gettime(int ufd, struct itimerspec64 *t)
int do_timerfd_settime(int ufd, int flags, struct itimerspec64 *new, struct itimerspec64 *old)
int do_tkill(pid_t tgid, pid_t pid, int sig)
int do_truncate(struct user_namespace *mnt_userns, struct dentry *dentry, loff_t length, unsigned time_attrs, struct file *filp)
int do_unlinkat(int dfd, struct filename *name)
long do_utimes(int dfd, char *filename, struct timespec64 *times, int flags)
ssize_t do_writev(unsigned long fd, struct iovec *vec, unsigned long vlen, rwf_t flags)
int f_dupfd(unsigned from, struct file *file, unsigned flags)
int f_setown(struct file *filp, unsigned long arg, int force)
int fd_statfs(int fd, struct kstatfs *st)
struct task_struct *find_task_by_vpid(pid_t vnr)
struct pid *find_vpid(int nr)
int futex_requeue(u32 *uaddr1, unsigned flags, u32 *uaddr2, int nr_wake, int nr_requeue, u32 *cmpval, int requeue_pi)
int futex_wait(u32 *uaddr, unsigned flags, u32 val, ktime_t *abs_time, u32 bitset)
int futex_wake(u32 *uaddr, unsigned flags, int nr_wake, u32 bitset)
int futex_wake_op(u32 *uaddr1, unsigned flags, u32 *uaddr2, int nr_wake, int nr_wake2, int op)
int generic_fadvise(struct file *file, loff_t offset, loff_t len, int advice)
unsigned long get_unmapped_area(struct file *file, unsigned long addr, unsigned long len, unsigned long pgoff, unsigned long flags)
struct filename *getname(char *filename)
struct filename *getname_flags(char *filename, int flags, int *empty)
long hrtimer_nanosleep(ktime_t rqtp, hrtimer_mode mode, clockid_t clockid)
long io_uring_setup(u32 entries, struct io_uring_params *params)
int ipcget(struct ipc_namespace *ns, struct ipc_ids *ids, struct ipc_ops *ops, struct ipc_params *params)
long kernel_wait4(pid_t upid, int *stat_addr, int options, struct rusage *ru)
long kernel_waitid(int which, pid_t upid, struct waitid_info *infop, int options, struct rusage *ru)
long keyctl_assume_authority(key_serial_t id)
long keyctl_capabilities(unsigned char *_buffer, size_t buflen)
long keyctl_chown_key(key_serial_t id, uid_t user, gid_t group)
long keyctl_describe_key(key_serial_t keyid, char *buffer, size_t buflen)
long keyctl_get_keyring_ID(key_serial_t id, int create)
long keyctl_get_persistent(uid_t _uid, key_serial_t destid)
long keyctl_get_security(key_serial_t keyid, char *buffer, size_t buflen)
long keyctl_instantiate_key(key_serial_t id, void *_payload, size_t plen, key_serial_t ringid)
long keyctl_invalidate_key(key_serial_t id)
long keyctl_join_session_keyring(char *_name)
long keyctl_keyring_clear(key_serial_t ringid)
long keyctl_keyring_link(key_serial_t id, key_serial_t ringid)
long keyctl_keyring_move(key_serial_t id, key_serial_t from_ringid, key_serial_t to_ringid, unsigned flags)
long keyctl_keyring_search(key_serial_t ringid, char *_type, char *_description, key_serial_t destringid)
long keyctl_keyring_unlink(key_serial_t id, key_serial_t ringid)
long keyctl_negate_key(key_serial_t id, unsigned timeout, key_serial_t ringid)
long keyctl_read_key(key_serial_t keyid, char *buffer, size_t buflen)
long keyctl_reject_key(key_serial_t id, unsigned timeout, unsigned error, key_serial_t ringid)
long keyctl_restrict_keyring(key_serial_t id, char *_type, char *_restriction)
long keyctl_revoke_key(key_serial_t id)
long keyctl_set_reqkey_keyring(int reqkey_defl)
long keyctl_set_timeout(key_serial_t id, unsigned timeout)
long keyctl_setperm_key(key_serial_t id, key_perm_t perm)
long keyctl_update_key(key_serial_t id, void *_payload, size_t plen)
int kill_pid_info(int sig, struct kernel_siginfo *info, struct pid *pid)
int ksys_dup3(unsigned oldfd, unsigned newfd, int flags)
int ksys_fadvise64_64(int fd, loff_t offset, loff_t len, int advice)
int ksys_fallocate(int fd, int mode, loff_t offset, loff_t len)
unsigned long ksys_mmap_pgoff(unsigned long addr, unsigned long len, unsigned long prot, unsigned long flags, unsigned long fd, unsigned long pgoff)
long ksys_msgget(key_t key, int msgflg)
long ksys_msgrcv(int msqid, struct msgbuf *msgp, size_t msgsz, long msgtyp, int msgflg)
long ksys_msgsnd(int msqid, struct msgbuf *msgp, size_t msgsz, int msgflg)
ssize_t ksys_pread64(unsigned fd, char *buf, size_t count, loff_t pos)
ssize_t ksys_pwrite64(unsigned fd, char *buf, size_t count, loff_t pos)
ssize_t ksys_read(unsigned fd, char *buf, size_t count)
ssize_t ksys_readahead(int fd, loff_t offset, size_t count)
long ksys_semget(key_t key, int nsems, int semflg)
long ksys_semtimedop(int semid, struct sembuf *tsops, unsigned nsops, struct __kernel_timespec *timeout)
long ksys_shmdt(char *shmaddr)
long ksys_shmget(key_t key, size_t size, int shmflg)
int ksys_sync_file_range(int fd, loff_t offset, loff_t nbytes, unsigned flags)
int ksys_unshare(unsigned long unshare_flags)
ssize_t ksys_write(unsigned fd, char *buf, size_t count)
key_ref_t lookup_user_key(key_serial_t id, unsigned long lflags, key_need_perm need_perm)
int move_addr_to_kernel(void *uaddr, int ulen, struct __kernel_sockaddr_storage *kaddr)
int mprotect_fixup(struct mmu_gather *tlb, struct vm_area_struct *vma, struct vm_area_struct **pprev, unsigned long start, unsigned long end, unsigned long newflags)
int path_mount(char *dev_name, struct path *path, char *type_page, unsigned long flags, void *data_page)
int posix_get_boottime_timespec(clockid_t which_clock, struct timespec64 *tp)
int posix_get_coarse_res(clockid_t which_clock, struct timespec64 *tp)
int posix_get_hrtimer_res(clockid_t which_clock, struct timespec64 *tp)
int posix_get_monotonic_coarse(clockid_t which_clock, struct timespec64 *tp)
int posix_get_monotonic_raw(clockid_t which_clock, struct timespec64 *tp)
int posix_get_monotonic_timespec(clockid_t which_clock, struct timespec64 *tp)
int posix_get_realtime_coarse(clockid_t which_clock, struct timespec64 *tp)
int posix_get_realtime_timespec(clockid_t which_clock, struct timespec64 *tp)
int posix_get_tai_timespec(clockid_t which_clock, struct timespec64 *tp)
int process_cpu_clock_get(clockid_t which_clock, struct timespec64 *tp)
int process_cpu_clock_getres(clockid_t which_clock, struct timespec64 *tp)
ssize_t process_vm_rw(pid_t pid, struct iovec *lvec, unsigned long liovcnt, struct iovec *rvec, unsigned long riovcnt, unsigned long flags, int vm_write)
int rw_verify_area(int read_write, struct file *file, loff_t *ppos, size_t count)
long sched_getaffinity(pid_t pid, struct cpumask *mask)
long sched_setaffinity(pid_t pid, struct cpumask *in_mask)
int security_file_ioctl(struct file *file, unsigned cmd, unsigned long arg)
int security_socket_create(int family, int type, int protocol, int kern)
int security_socket_listen(struct socket *sock, int backlog)
int security_task_prctl(int option, unsigned long arg2, unsigned long arg3, unsigned long arg4, unsigned long arg5)
void seq_printf(struct seq_file *m, char *f, ...)
int sigprocmask(int how, sigset_t *set, sigset_t *oldset)
int sk_getsockopt(struct sock *sk, int level, int optname, sockptr_t optval, sockptr_t optlen)
int sk_setsockopt(struct sock *sk, int level, int optname, sockptr_t optval, unsigned optlen)
int sock_create(int family, int type, int protocol, struct socket **res)
int sock_setsockopt(struct socket *sock, int level, int optname, sockptr_t optval, unsigned optlen)
int sync_file_range(struct file *file, loff_t offset, loff_t nbytes, unsigned flags)
int thread_cpu_clock_get(clockid_t which_clock, struct timespec64 *tp)
int unix_getname(struct socket *sock, struct sockaddr *uaddr, int peer)
int unix_listen(struct socket *sock, int backlog)
int unix_shutdown(struct socket *sock, int mode)
int user_path_at_empty(int dfd, char *name, unsigned flags, struct path *path, int *empty)
int user_statfs(char *pathname, struct kstatfs *st)
ssize_t vfs_copy_file_range(struct file *file_in, loff_t pos_in, struct file *file_out, loff_t pos_out, size_t len, unsigned flags)
int vfs_fadvise(struct file *file, loff_t offset, loff_t len, int advice)
int vfs_fallocate(struct file *file, int mode, loff_t offset, loff_t len)
int vfs_fstat(int fd, struct kstat *stat)
int vfs_fstatat(int dfd, char *filename, struct kstat *stat, int flags)
int vfs_fsync(struct file *file, int datasync)
int vfs_fsync_range(struct file *file, loff_t start, loff_t end, int datasync)
long vfs_ioctl(struct file *filp, unsigned cmd, unsigned long arg)
loff_t vfs_llseek(struct file *file, loff_t offset, int whence)
int vfs_mknod(struct user_namespace *mnt_userns, struct inode *dir, struct dentry *dentry, umode_t mode, dev_t dev)
ssize_t vfs_read(struct file *file, char *buf, size_t count, loff_t *pos)
int vfs_statx(int dfd, struct filename *filename, int flags, struct kstat *stat, u32 request_mask)
long vfs_truncate(struct path *path, loff_t length)
ssize_t vfs_write(struct file *file, char *buf, size_t count, loff_t *pos)
ssize_t vfs_writev(struct file *file, struct iovec *vec, unsigned long vlen, loff_t *pos, rwf_t flags)
unsigned long vm_mmap_pgoff(struct file *file, unsigned long addr, unsigned long len, unsigned long prot, unsigned long flag, unsigned long pgoff)
int vm_munmap(unsigned long start, size_t len)
)";

/// "char *buf": the name is the last word.
Parameter parameter_of(const std::string& text) {
  const std::size_t name = text.find_last_of(" *") + 1;
  return {text.substr(0, text.find_last_not_of(' ', name - 1) + 1), text.substr(name)};
}

Prototype prototype_of(const std::string& result, const std::string& parameters) {
  Prototype made{parameter_of(result + "f").type, {}, parameters.ends_with("...")};
  for (std::size_t at = 0; at < parameters.size();) {
    const std::size_t end = std::min(parameters.find(", ", at), parameters.size());
    const std::string each = parameters.substr(at, end - at);
    if (each != "...") made.parameters.push_back(parameter_of(each));
    at = end + 2;
  }
  return made;
}

/// Types by name, made when they are first asked for.
class TypeMaker {
 public:
  explicit TypeMaker(test::BtfBuilder& made) : made_(made) {}

  test::BtfBuilder::Id of(const std::string& type) {
    const auto [known, fresh] = ids_.try_emplace(type);
    if (fresh) known->second = make(type);
    return ids_[type];
  }

 private:
  test::BtfBuilder::Id make(const std::string& type) {
    if (type.ends_with('*')) return made_.pointer(of(parameter_of(type.substr(0, type.size() - 1) + " x").type));
    if (type.starts_with("struct ")) return made_.forward(type.c_str() + 7, BTF_FWD_STRUCT);
    if (type == "void") return 0;
    const std::uint32_t size = size_of(type);
    if (is_structure(type))
      return made_.structure(type.c_str(), size, {{"pointer", of("void *")}, {"is_kernel", of("bool"), size * 4}});
    return made_.integer(type.c_str(), size, true);
  }

  test::BtfBuilder& made_;
  std::map<std::string, test::BtfBuilder::Id> ids_;
};

}  // namespace

bool is_structure(const std::string& type) { return type == "sockptr_t" || type == "bpfptr_t"; }

std::uint32_t size_of(const std::string& type) {
  static const std::map<std::string, std::uint32_t> others = {{"loff_t", 8}, {"ktime_t", 8}, {"u64", 8},
                                                              {"bool", 1},   {"char", 1},    {"umode_t", 2}};
  static const std::set<std::string> words = {"long",    "unsigned long", "size_t", "ssize_t",
                                              "timer_t", "vm_flags_t",    "ulong",  "key_ref_t"};
  if (is_structure(type)) return 2 * sizeof(long);
  if (type.ends_with('*') || words.contains(type)) return sizeof(long);
  const auto known = others.find(type);
  return known == others.end() ? 4 : known->second;
}

const std::map<std::string, Prototype, std::less<>>& prototypes() {
  static const auto all = [] {
    std::map<std::string, Prototype, std::less<>> found;
    std::istringstream lines(kLinux61);
    for (std::string line; std::getline(lines, line);) {
      const std::size_t open = line.find('(');
      if (open == line.npos) continue;
      const std::size_t name = line.find_last_of(" *", open) + 1;
      found.emplace(line.substr(name, open - name),
                    prototype_of(line.substr(0, name), line.substr(open + 1, line.size() - open - 2)));
    }
    return found;
  }();
  return all;
}

void write_types(const std::string& directory) {
  test::BtfBuilder made;
  TypeMaker types(made);
  for (const auto& [name, prototype] : prototypes()) {
    std::vector<test::BtfBuilder::Param> parameters;
    for (const Parameter& each : prototype.parameters) parameters.push_back({each.name, types.of(each.type)});
    made.function(name.c_str(), made.prototype(types.of(prototype.result), parameters, prototype.varargs));
  }
  const std::vector<std::byte> bytes = made.bytes();
  std::ofstream(directory + "/vmlinux", std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace usdt::ways
