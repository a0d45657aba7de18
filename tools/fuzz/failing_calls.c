/* Fault injection: preloaded into the program. One call that changes a file fails, or the process is killed at it, or a
 * signal arrives before it.
 *
 * MNEME_FAULT_AT   number of the call, from 1; 0 counts calls only
 * MNEME_FAULT      an error number (this call and all later ones fail, as on a full disk), "short" (this call writes
 *                  half of its bytes), "kill" (SIGKILL instead of the call) or "term" (SIGTERM before the call)
 * MNEME_FAULT_LOG  file to which the number of calls is written at the end
 * Calls are counted from the start of main(). Standard streams are neither counted nor changed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long calls;
static atomic_int counting;
static long fault_at;
static int fault_error;
static char fault_kind[16];
static const char* log_name;

static void read_orders(void) {
  const char* at = getenv("MNEME_FAULT_AT");
  const char* kind = getenv("MNEME_FAULT");
  fault_at = at ? strtol(at, NULL, 10) : 0;
  log_name = getenv("MNEME_FAULT_LOG");
  strncpy(fault_kind, kind ? kind : "28", sizeof fault_kind - 1);
  fault_error = (int)strtol(fault_kind, NULL, 10);
  counting = 1;
}

static void write_count(void) {
  char text[32];
  const int length = snprintf(text, sizeof text, "%ld\n", atomic_load(&calls));
  ssize_t (*real)(int, const void*, size_t) = dlsym(RTLD_NEXT, "write");
  const int out = log_name ? open(log_name, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
  if (out >= 0) {
    if (real(out, text, (size_t)length) < 0)
      abort();
    close(out);
  }
}
/* The program ends by _Exit(), which runs no destructors, so the count is written here. */
void _Exit(int code) {
  write_count();
  _exit(code);
}

/* Returns 0 to make the call, 1 to fail with errno, 2 to write half of the bytes. */
static int fault_of_call(void) {
  if (!counting)
    return 0;
  const long number = atomic_fetch_add(&calls, 1) + 1;
  if (fault_at == 0 || number < fault_at)
    return 0;
  if (number == fault_at && strcmp(fault_kind, "kill") == 0)
    kill(getpid(), SIGKILL);
  if (number == fault_at && strcmp(fault_kind, "term") == 0)
    kill(getpid(), SIGTERM);
  if (fault_error > 0) {
    errno = fault_error;
    return 1;
  }
  return number == fault_at && strcmp(fault_kind, "short") == 0 ? 2 : 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int is_file(int descriptor) {
  struct stat about;
  return descriptor > 2 && fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode);
}

ssize_t write(int out, const void* bytes, size_t count) {
  if (is_file(out))
    switch (fault_of_call()) {
    case 1:
      return -1;
    case 2:
      return REAL(write)(out, bytes, (count + 1) / 2);
    }
  return REAL(write)(out, bytes, count);
}
ssize_t pwrite(int out, const void* bytes, size_t count, off_t at) {
  if (is_file(out) && fault_of_call() == 1)
    return -1;
  return REAL(pwrite)(out, bytes, count, at);
}
ssize_t pwrite64(int out, const void* bytes, size_t count, off64_t at) {
  if (is_file(out) && fault_of_call() == 1)
    return -1;
  return REAL(pwrite64)(out, bytes, count, at);
}
ssize_t writev(int out, const struct iovec* parts, int count) {
  if (is_file(out) && fault_of_call() == 1)
    return -1;
  return REAL(writev)(out, parts, count);
}
int fsync(int out) { return fault_of_call() == 1 ? -1 : REAL(fsync)(out); }
int fdatasync(int out) { return fault_of_call() == 1 ? -1 : REAL(fdatasync)(out); }
int ftruncate(int out, off_t length) { return fault_of_call() == 1 ? -1 : REAL(ftruncate)(out, length); }
int rename(const char* from, const char* to) { return fault_of_call() == 1 ? -1 : REAL(rename)(from, to); }
int mkdir(const char* name, mode_t mode) { return fault_of_call() == 1 ? -1 : REAL(mkdir)(name, mode); }

static int opens_for_writing(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }
int open(const char* name, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if (opens_for_writing(flags) && strncmp(name, "/dev/", 5) != 0 && (!log_name || strcmp(name, log_name) != 0) &&
      fault_of_call() == 1)
    return -1;
  return REAL(open)(name, flags, mode);
}

typedef int (*main_function)(int, char**, char**);
static main_function real_main;

static int counted_main(int count, char** words, char** environment) {
  read_orders();
  return real_main(count, words, environment);
}

int __libc_start_main(main_function main, int count, char** words, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void* stack_end) {
  typedef int (*start_function)(main_function, int, char**, void (*)(void), void (*)(void), void (*)(void), void*);
  const start_function real = (start_function)dlsym(RTLD_NEXT, "__libc_start_main");
  real_main = main;
  return real(counted_main, count, words, init, fini, rtld_fini, stack_end);
}
