/* Preloaded into the program with MNEME_FORK_SERVER set: once its libraries are loaded, which takes most of a short
 * run, it does not begin but reads orders from its standard input, and a copy of the process begins for each.
 *
 * An order:  a line with its number of bytes, then so many: texts that end with a zero each: seconds at most, the
 *            number of the signal for who takes longer, bytes of addresses at most (0: no limit), the file for what is
 *            said on standard error, how many settings of the environment follow, these (NAME=VALUE), and the words
 *            behind the program's name.
 * An answer: a line "CODE PEAK": the exit code, or minus the signal that ended it; and the most memory that it had, in
 *            KiB. Who takes longer gets the signal, and has ten seconds more; 999 where it does not end then.
 * Other programs, and those that a copy starts, begin as ever. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef int (*main_function)(int, char**, char**);

enum { texts_max = 256, order_bytes_max = 1 << 16, out_of_time = 999 };

static main_function real_main;

static void begin_copy(int count, char** words, const char* bytes_max, const char* errors) {
  const rlim_t addresses = strtoull(bytes_max, NULL, 10);
  const struct rlimit limit = {addresses, addresses}, no_core = {0, 0};
  const int nothing = open("/dev/null", O_RDWR), said = open(errors, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(nothing, 0);
  dup2(nothing, 1);
  dup2(said, 2);
  close(nothing);
  close(said);
  setrlimit(RLIMIT_CORE, &no_core);
  if (addresses > 0)
    setrlimit(RLIMIT_AS, &limit);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  exit(real_main(count, words, environ));
}

static int has_ended_within(double seconds) {
  sigset_t ended;
  sigemptyset(&ended);
  sigaddset(&ended, SIGCHLD);
  const struct timespec while_waiting = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  return sigtimedwait(&ended, NULL, &while_waiting) == SIGCHLD;
}

/* Waits so many seconds; then asks the copy to end. */
static void wait_and_answer(pid_t copy, double seconds, int asked_by) {
  sigset_t ended;
  sigemptyset(&ended);
  sigaddset(&ended, SIGCHLD);
  int status = 0, in_time = has_ended_within(seconds);
  if (!in_time) {
    kill(copy, asked_by);
    in_time = has_ended_within(10.0);
  }
  if (!in_time)
    kill(copy, SIGKILL);
  struct rusage used;
  if (wait4(copy, &status, 0, &used) < 0)
    _exit(1);
  if (!in_time) /* its end is told, too */
    sigwaitinfo(&ended, NULL);
  const int code = !in_time ? out_of_time : WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  printf("%d %ld\n", code, used.ru_maxrss);
  fflush(stdout);
}

static int serve(int own_count, char** own_words, char** at_first) {
  (void)at_first;
  static char order[order_bytes_max];
  char line[32];
  sigset_t ended;
  sigemptyset(&ended);
  sigaddset(&ended, SIGCHLD);
  sigprocmask(SIG_BLOCK, &ended, NULL);
  unsetenv("MNEME_FORK_SERVER");
  while (fgets(line, sizeof line, stdin)) {
    const size_t bytes = strtoul(line, NULL, 10);
    if (bytes == 0 || bytes > sizeof order || fread(order, 1, bytes, stdin) != bytes || order[bytes - 1] != 0)
      return 1;
    char *texts[texts_max], *words[2 * texts_max];
    int count = 0, word = 0;
    for (char* at = order; at < order + bytes && count < texts_max; at += strlen(at) + 1)
      texts[count++] = at;
    const int settings = count > 4 ? atoi(texts[4]) : -1;
    if (settings < 0 || 5 + settings > count)
      return 1;
    for (int i = 0; i < own_count && word < texts_max; ++i)
      words[word++] = own_words[i];
    for (int i = 5 + settings; i < count; ++i)
      words[word++] = texts[i];
    words[word] = NULL;
    const pid_t copy = fork();
    if (copy < 0)
      return 1;
    if (copy == 0) {
      for (int i = 0; i < settings; ++i)
        putenv(texts[5 + i]);
      begin_copy(word, words, texts[2], texts[3]);
    }
    wait_and_answer(copy, strtod(texts[0], NULL), atoi(texts[1]));
  }
  return 0;
}

int __libc_start_main(main_function main, int count, char** words, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void* stack_end) {
  typedef int (*start_function)(main_function, int, char**, void (*)(void), void (*)(void), void (*)(void), void*);
  const start_function real = (start_function)dlsym(RTLD_NEXT, "__libc_start_main");
  real_main = main;
  return real(getenv("MNEME_FORK_SERVER") ? serve : main, count, words, init, fini, rtld_fini, stack_end);
}
