/* Fork server: preloaded into the program with MNEME_FORK_SERVER set. After the libraries are loaded, which takes most
 * of the time of a short run, the process does not call main(). It reads orders from stdin and forks a child for each.
 *
 * Order: a line "KIND BYTES", then BYTES bytes of zero-terminated strings. Kinds and their strings:
 *   `one`      time limit in seconds; number of the signal sent at the time limit; limit of the address space in bytes
 *              (0: none); file for stdout; file for stderr (may be the same); number of environment settings; these
 *              settings (NAME=VALUE); arguments of the program. Runs one command in a child.
 *   `several`  the first three strings of `one`; then for each command: file for its output, number of arguments,
 *              arguments. One child runs the commands in sequence. If it ends early, a new child continues with the
 *              next command.
 *   `here`     as `several` with one command, which this process runs itself. Values that the program computes once
 *              per process then exist in all children that are forked later.
 * Answer: a line "CODE PEAK" for each command. CODE is the exit code, or minus the signal that ended the child; PEAK is
 *   the peak memory in KiB. A child that exceeds the time limit gets the signal. If it does not end within 10 s, it is
 *   killed, and CODE is 999.
 * The environment variable is removed, so programs that a child starts run normally. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef int (*main_function)(int, char**, char**);

enum { texts_max = 1024, words_max = 256, order_bytes_max = 1 << 16, out_of_time = 999, seconds_to_end = 10 };

struct limits {
  double seconds;
  int asked_by; /* the signal sent at the time limit */
  rlim_t addresses;
};

static main_function real_main;
static int own_count;
static char** own_words;
static int has_computed; /* true after a command has run in this process (`here`) */

/* -- end of the program, after which the next command starts ------------------------------------------------------- */

static int runs_in_turn, code_at_end;
static jmp_buf behind_main;

static int is_single_thread(void) {
  DIR* const tasks = opendir("/proc/self/task");
  int count = 0;
  while (tasks && readdir(tasks))
    ++count;
  if (tasks)
    closedir(tasks);
  return count == 3; /* "." and ".." count, too */
}

/* The program calls this last. Returns to code_of() for the next command. If other threads are still running, the
 * process has not ended cleanly and therefore exits. */
void _Exit(int code) {
  if (runs_in_turn && is_single_thread()) {
    code_at_end = code;
    longjmp(behind_main, 1);
  }
  for (;;)
    syscall(SYS_exit_group, code);
}

/* Sleeps for 20 us instead of yielding, so that a thread that spins leaves its core to the thread it waits for. */
int sched_yield(void) {
  const struct timespec moment = {0, 20000};
  if (!runs_in_turn)
    return (int)syscall(SYS_sched_yield);
  return nanosleep(&moment, NULL);
}

static int emptied_file(const char* name) { return open(name, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600); }

static void say_into(const char* output, const char* errors) {
  const int nothing = open("/dev/null", O_RDWR), file = emptied_file(output);
  const int other = strcmp(output, errors) == 0 ? dup(file) : emptied_file(errors);
  dup2(nothing, 0);
  dup2(file, 1);
  dup2(other, 2);
  close(nothing);
  close(file);
  close(other);
}

static int words_of(char** words, int count, char** texts) {
  int word = 0;
  for (int i = 0; i < own_count && word < words_max; ++i)
    words[word++] = own_words[i];
  for (int i = 0; i < count && word < 2 * words_max; ++i)
    words[word++] = texts[i];
  words[word] = NULL;
  return word;
}

/* Runs a command in this process, with its output in the file `said`. Returns the exit code. */
static int code_of(const char* said, int count, char** texts) {
  static char* words[2 * words_max + 1];
  const int word = words_of(words, count, texts);
  say_into(said, said);
  if (setjmp(behind_main) == 0) {
    runs_in_turn = 1;
    code_at_end = real_main(word, words, environ);
  }
  runs_in_turn = 0;
  return code_at_end;
}

static void limit_copy(rlim_t addresses) {
  const struct rlimit limit = {addresses, addresses}, no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  if (addresses > 0)
    setrlimit(RLIMIT_AS, &limit);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

/* LibTorch creates its thread pool again in a child, which two threads must not do concurrently. Creates it now. */
static void make_pool_anew(void) {
  void (*const set_threads)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "_ZN2at15set_num_threadsEi");
  if (set_threads && has_computed)
    set_threads(1);
}

static struct limits limits_in(char** texts) {
  const struct limits asked = {strtod(texts[0], NULL), atoi(texts[1]), strtoull(texts[2], NULL, 10)};
  return asked;
}

/* -- one command per child ----------------------------------------------------------------------------------------- */

static int has_ended_within(double seconds) {
  sigset_t ended;
  sigemptyset(&ended);
  sigaddset(&ended, SIGCHLD);
  const struct timespec while_waiting = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  return sigtimedwait(&ended, NULL, &while_waiting) == SIGCHLD;
}

/* Waits until the child ends; sends the signal at the time limit. Writes the answer. */
static void wait_and_answer(pid_t copy, struct limits asked) {
  int status = 0, in_time = has_ended_within(asked.seconds);
  if (!in_time) {
    kill(copy, asked.asked_by);
    in_time = has_ended_within(seconds_to_end);
  }
  if (!in_time)
    kill(copy, SIGKILL);
  struct rusage used;
  if (wait4(copy, &status, 0, &used) < 0)
    _exit(1);
  if (!in_time) /* consumes the SIGCHLD of SIGKILL */
    has_ended_within(seconds_to_end);
  const int code = !in_time ? out_of_time : WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  printf("%d %ld\n", code, used.ru_maxrss);
  fflush(stdout);
}

static int serve_one(int count, char** texts) {
  enum { fixed = 6 };
  const int settings = count >= fixed ? atoi(texts[fixed - 1]) : -1;
  if (settings < 0 || fixed + settings > count)
    return 0;
  const struct limits asked = limits_in(texts);
  const pid_t copy = fork();
  if (copy < 0)
    return 0;
  if (copy == 0) {
    static char* words[2 * words_max + 1];
    for (int i = 0; i < settings; ++i)
      putenv(texts[fixed + i]);
    const int word = words_of(words, count - fixed - settings, texts + fixed + settings);
    say_into(texts[3], texts[4]);
    make_pool_anew();
    limit_copy(asked.addresses);
    exit(real_main(word, words, environ));
  }
  wait_and_answer(copy, asked);
  return 1;
}

/* -- several commands per child ------------------------------------------------------------------------------------ */

static long peak_kib(void) {
  char line[256];
  long kib = 0;
  FILE* const status = fopen("/proc/self/status", "r");
  while (status && fgets(line, sizeof line, status))
    if (sscanf(line, "VmHWM: %ld", &kib) == 1)
      break;
  if (status)
    fclose(status);
  return kib;
}

static void forget_peak(void) {
  const int file = open("/proc/self/clear_refs", O_WRONLY);
  if (file < 0 || write(file, "5", 1) != 1)
    _exit(1);
  close(file);
}

/* The string after a command's arguments, where the next command begins. */
static char** behind(char** command) { return command + 2 + atoi(command[1]); }

static void run_all(char** command, char** end, int answers) {
  for (; command < end; command = behind(command)) {
    forget_peak();
    const int code = code_of(command[0], atoi(command[1]), command + 2);
    dprintf(answers, "%d %ld\n", code, peak_kib());
  }
  syscall(SYS_exit_group, 0);
}

/* Reads answers of a child: 1 if it wrote at least a line, 0 if it has ended, -1 at the timeout. */
static int line_of(int answers, char* line, size_t bytes, double seconds) {
  struct pollfd waits = {.fd = answers, .events = POLLIN};
  const int ready = poll(&waits, 1, (int)(seconds * 1e3));
  if (ready <= 0)
    return -1;
  const ssize_t count = read(answers, line, bytes - 1); /* the next line follows after its next command */
  line[count > 0 ? count : 0] = 0;
  return count > 0;
}

/* Forwards the answers of a child. Returns the number of commands that it has run, including one during which it
 * ended. */
static int answers_of(pid_t copy, int answers, int commands, struct limits asked) {
  static char lines[4096];
  int answered = 0;
  while (answered < commands) {
    int is_late = 0, got = line_of(answers, lines, sizeof lines, asked.seconds);
    if (got < 0) {
      is_late = 1;
      kill(copy, asked.asked_by);
      got = line_of(answers, lines, sizeof lines, seconds_to_end);
    }
    if (got > 0) { /* one line or more */
      for (const char* at = lines; *at; ++at)
        answered += *at == '\n';
      fputs(lines, stdout);
      if (is_late)
        break;
      continue;
    }
    if (got < 0)
      kill(copy, SIGKILL);
    struct rusage used;
    int status = 0;
    if (wait4(copy, &status, 0, &used) < 0)
      _exit(1);
    const int code = got < 0 ? out_of_time : WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    printf("%d %ld\n", code, used.ru_maxrss);
    has_ended_within(seconds_to_end);
    return answered + 1;
  }
  kill(copy, SIGKILL); /* it has run all commands, or has exceeded its time limit */
  if (wait4(copy, NULL, 0, NULL) < 0)
    _exit(1);
  has_ended_within(seconds_to_end);
  return answered;
}

static int serve_several(int count, char** texts) {
  char **command = texts + 3, **const end = texts + count;
  int commands = 0;
  for (char** at = command; at < end; at = behind(at), ++commands)
    if (end - at < 2 || atoi(at[1]) < 0 || end - at < 2 + atoi(at[1]))
      return 0;
  const struct limits asked = limits_in(texts);
  while (commands > 0) {
    int ends[2];
    if (pipe(ends) < 0)
      return 0;
    const pid_t copy = fork();
    if (copy < 0)
      return 0;
    if (copy == 0) {
      close(ends[0]);
      make_pool_anew();
      limit_copy(asked.addresses);
      run_all(command, end, ends[1]);
    }
    close(ends[1]);
    const int answered = answers_of(copy, ends[0], commands, asked);
    close(ends[0]);
    commands -= answered;
    for (int i = 0; i < answered; ++i)
      command = behind(command);
  }
  fflush(stdout);
  return 1;
}

static int serve_here(int count, char** texts) {
  if (count < 5 || 5 + atoi(texts[4]) != count)
    return 0;
  int before[3];
  for (int number = 0; number < 3; ++number)
    before[number] = dup(number);
  const int code = code_of(texts[3], atoi(texts[4]), texts + 5);
  has_computed = 1;
  for (int number = 0; number < 3; ++number) {
    dup2(before[number], number);
    close(before[number]);
  }
  printf("%d %ld\n", code, peak_kib());
  fflush(stdout);
  return 1;
}

/* -- orders ------------------------------------------------------------------------------------------------------- */

static int serve(int count, char** words, char** at_first) {
  (void)at_first;
  static char order[order_bytes_max];
  static char* texts[texts_max];
  char line[32], kind[16];
  own_count = count;
  own_words = words;
  sigset_t ended;
  sigemptyset(&ended);
  sigaddset(&ended, SIGCHLD);
  sigprocmask(SIG_BLOCK, &ended, NULL);
  unsetenv("MNEME_FORK_SERVER");
  while (fgets(line, sizeof line, stdin)) {
    size_t bytes = 0;
    if (sscanf(line, "%15s %zu", kind, &bytes) != 2 || bytes == 0 || bytes > sizeof order ||
        fread(order, 1, bytes, stdin) != bytes || order[bytes - 1] != 0)
      return 1;
    int text = 0;
    for (char* at = order; at < order + bytes && text < texts_max; at += strlen(at) + 1)
      texts[text++] = at;
    if (text < 3 || !(strcmp(kind, "one") == 0       ? serve_one(text, texts)
                      : strcmp(kind, "several") == 0 ? serve_several(text, texts)
                                                     : serve_here(text, texts)))
      return 1;
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
