/* Preloaded into the program: from some allocation on there is no memory left, for one request or for many.
 *
 * MNEME_MEMORY_AT     the number of the request, from 1; 0: requests are counted only
 * MNEME_MEMORY_LEAST  bytes: smaller requests are neither counted nor refused
 * MNEME_MEMORY_TIMES  how many requests in a row are refused
 * MNEME_MEMORY_LOG    where the number of requests is written at the end
 * Counted are those of operator new, which go to mimalloc, and those of tensors (posix_memalign), once main() runs:
 * before it no program can say what happens to it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_long requests;
static atomic_int counting;
static long refused_at, refused_times, least_bytes;
static const char* log_name;

static long number_in(const char* name, long otherwise) {
  const char* text = getenv(name);
  return text ? strtol(text, NULL, 10) : otherwise;
}

static int is_refused(size_t bytes) {
  if (!counting || (long)bytes < least_bytes)
    return 0;
  const long number = atomic_fetch_add(&requests, 1) + 1;
  return refused_at > 0 && number >= refused_at && number < refused_at + refused_times;
}

/* Found once, before threads begin: looking for a name may ask for memory. */
static void* (*plain)(size_t);
static void* (*aligned)(size_t, size_t);
static int (*tensor)(void**, size_t, size_t);

static void find_all(void) {
  plain = (void* (*)(size_t))dlsym(RTLD_NEXT, "mi_malloc");
  aligned = (void* (*)(size_t, size_t))dlsym(RTLD_NEXT, "mi_malloc_aligned");
  tensor = (int (*)(void**, size_t, size_t))dlsym(RTLD_NEXT, "posix_memalign");
}

void* mi_malloc(size_t bytes) {
  if (!plain)
    find_all();
  return is_refused(bytes) ? NULL : plain(bytes);
}
void* mi_malloc_aligned(size_t bytes, size_t alignment) {
  if (!aligned)
    find_all();
  return is_refused(bytes) ? NULL : aligned(bytes, alignment);
}
int posix_memalign(void** to, size_t alignment, size_t bytes) {
  if (!tensor)
    find_all();
  return is_refused(bytes) ? ENOMEM : tensor(to, alignment, bytes);
}

/* The program ends by _Exit, which runs no destructors. */
void _Exit(int code) {
  char text[32];
  const int length = snprintf(text, sizeof text, "%ld\n", atomic_load(&requests));
  const int out = log_name ? open(log_name, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
  if (out >= 0 && write(out, text, (size_t)length) != length)
    abort();
  _exit(code);
}

typedef int (*main_function)(int, char**, char**);
static main_function real_main;

static int counted_main(int count, char** words, char** environment) {
  refused_at = number_in("MNEME_MEMORY_AT", 0);
  refused_times = number_in("MNEME_MEMORY_TIMES", 1);
  least_bytes = number_in("MNEME_MEMORY_LEAST", 1);
  log_name = getenv("MNEME_MEMORY_LOG");
  counting = 1;
  return real_main(count, words, environment);
}

int __libc_start_main(main_function main, int count, char** words, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void* stack_end) {
  typedef int (*start_function)(main_function, int, char**, void (*)(void), void (*)(void), void (*)(void), void*);
  const start_function real = (start_function)dlsym(RTLD_NEXT, "__libc_start_main");
  real_main = main;
  return real(counted_main, count, words, init, fini, rtld_fini, stack_end);
}
