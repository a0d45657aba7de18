#include "runtime/modules/sandbox_restrictions.hpp"
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <initializer_list>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>
namespace mneme {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t machine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t machine = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t machine = 0;
#endif

/// System calls that affect only the process's own memory and clocks.
constexpr std::array harmless_calls{
    SYS_munmap,       SYS_mremap,         SYS_mprotect,     SYS_madvise,      SYS_brk,
    SYS_futex,        SYS_gettid,         SYS_getpid,       SYS_sched_yield,  SYS_sched_getaffinity,
    SYS_getcpu,       SYS_clock_gettime,  SYS_clock_getres, SYS_gettimeofday, SYS_getrandom,
    SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack,  SYS_restart_syscall,
    SYS_exit,         SYS_exit_group,     SYS_getrusage,    SYS_membarrier};

using filter_program = std::vector<sock_filter>;

sock_filter load(std::size_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)); }
sock_filter answer(std::uint32_t value) { return BPF_STMT(BPF_RET | BPF_K, value); }
sock_filter skip_unless(std::uint32_t value, std::uint8_t skipped) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skipped);
}

/// Loads the lower 32 bits of argument `i`. Both supported architectures are little-endian.
sock_filter load_argument(std::size_t i) { return load(offsetof(seccomp_data, args) + i * sizeof(std::uint64_t)); }

/// Permits the call if argument `i` has one of these values; any other value triggers `denied`.
void permit_with(filter_program& into, long call, std::size_t i, std::initializer_list<std::uint32_t> values) {
  into.push_back(skip_unless(static_cast<std::uint32_t>(call), static_cast<std::uint8_t>(2 * values.size() + 2)));
  into.push_back(load_argument(i));
  for (const auto value : values) {
    into.push_back(skip_unless(value, 1));
    into.push_back(answer(SECCOMP_RET_ALLOW));
  }
  into.push_back(answer(SECCOMP_RET_TRAP));
}

filter_program rights() {
  constexpr std::uint32_t no_file = 0xffffffff;
  // Numbers of system calls depend on the architecture, so a call for any other architecture kills the process.
  filter_program program{load(offsetof(seccomp_data, arch)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, machine, 1, 0),
                         answer(SECCOMP_RET_KILL_PROCESS), load(offsetof(seccomp_data, nr))};
  for (const auto call : harmless_calls) {
    program.push_back(skip_unless(static_cast<std::uint32_t>(call), 1));
    program.push_back(answer(SECCOMP_RET_ALLOW));
  }
  permit_with(program, SYS_write, 0, {STDOUT_FILENO, STDERR_FILENO});
  permit_with(program, SYS_mmap, 4, {no_file});
  permit_with(program, SYS_prlimit64, 2, {0}); // if new_limit is null, the call only reads a limit
  permit_with(program, SYS_tgkill, 0, {static_cast<std::uint32_t>(::getpid())}); // abort()
  program.push_back(answer(SECCOMP_RET_TRAP));
  return program;
}

/// Signal handler that writes the number of the denied system call. It uses async-signal-safe functions only.
void end_denied(int, siginfo_t* info, void*) {
  std::array<char, 12> text{};
  std::size_t first = text.size();
  for (auto number = static_cast<unsigned>(info->si_syscall); first > 1 && (number > 0 || first == text.size());
       number /= 10)
    text[--first] = static_cast<char>('0' + number % 10);
  text[--first] = '!';
  [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, text.data() + first, text.size() - first);
  ::_exit(denied_exit_code);
}

void limit(__rlimit_resource_t resource, std::int64_t soft, std::int64_t hard) {
  rlimit now{};
  ::getrlimit(resource, &now);
  const rlimit limit{.rlim_cur = std::min<rlim_t>(now.rlim_max, static_cast<rlim_t>(soft)),
                     .rlim_max = std::min<rlim_t>(now.rlim_max, static_cast<rlim_t>(hard))};
  ::setrlimit(resource, &limit);
}

/// Bytes of address space that this process uses.
std::int64_t bytes_taken() {
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * ::sysconf(_SC_PAGESIZE);
}

void set_limits(const sandbox_limits& limits) {
  limit(RLIMIT_CORE, 0, 0);
  limit(RLIMIT_NPROC, 0, 0);
  limit(RLIMIT_FSIZE, 0, 0);
  limit(RLIMIT_CPU, limits.seconds, limits.seconds + 1); // the soft limit raises SIGXCPU, the hard limit SIGKILL
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // sanitizers reserve terabytes
  limit(RLIMIT_AS, bytes_taken() + limits.memory_bytes, bytes_taken() + limits.memory_bytes);
#endif
}

} // namespace

std::string restrict_process(const sandbox_limits& limits) {
  if (machine == 0)
    return "it does not support this kind of processor";
  set_limits(limits);
  struct sigaction denied {};
  denied.sa_sigaction = end_denied;
  denied.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSYS, &denied, nullptr);
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return std::string("no_new_privs: ") + std::strerror(errno);
  auto program = rights();
  const sock_fprog filter{.len = static_cast<unsigned short>(program.size()), .filter = program.data()};
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) != 0)
    return std::string("seccomp: ") + std::strerror(errno);
  return "";
}

} // namespace mneme
