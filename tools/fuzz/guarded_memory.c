/* Library to preload: a page without access follows every block of posix_memalign(), in which LibTorch stores tensors,
 * so that an access more than 63 bytes beyond a tensor ends the process. A page before the block is inaccessible, too.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

enum { page_bytes = 4096, alignment_bytes = 64, places = 1 << 20 };

struct block {
  char* address; /* NULL: free place */
  size_t bytes;
};

static struct block table[places]; /* open addressing, by address */
static volatile int lock;

extern void __libc_free(void*);
extern void* __libc_memalign(size_t, size_t);

static void enter(void) {
  while (__sync_lock_test_and_set(&lock, 1))
    ;
}
static void leave(void) { __sync_lock_release(&lock); }

static size_t first_place(const void* address) { return ((uintptr_t)address / alignment_bytes * 2654435761u) % places; }

static struct block* find(const void* address) {
  for (size_t at = first_place(address);; at = (at + 1) % places)
    if (!table[at].address || table[at].address == address)
      return &table[at];
}

/* Removes an entry and moves later ones of its chain forward. */
static void erase(struct block* from) {
  size_t hole = (size_t)(from - table);
  table[hole].address = NULL;
  for (size_t at = (hole + 1) % places; table[at].address; at = (at + 1) % places) {
    const size_t wanted = first_place(table[at].address);
    if ((at - wanted) % places >= (at - hole) % places) {
      table[hole] = table[at];
      table[at].address = NULL;
      hole = at;
    }
  }
}

static size_t rounded(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }
static size_t mapped_bytes(size_t bytes) { return rounded(bytes, page_bytes) + 2 * page_bytes; }

int posix_memalign(void** result, size_t alignment, size_t bytes) {
  if (alignment > alignment_bytes || bytes == 0 || bytes > PTRDIFF_MAX / 2) {
    *result = __libc_memalign(alignment, bytes);
    return *result ? 0 : ENOMEM;
  }
  const size_t held = rounded(bytes, alignment_bytes), whole = mapped_bytes(held);
  char* const base = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED)
    return ENOMEM;
  mprotect(base, page_bytes, PROT_NONE);
  mprotect(base + whole - page_bytes, page_bytes, PROT_NONE);
  *result = base + whole - page_bytes - held;
  enter();
  *find(*result) = (struct block){*result, held};
  leave();
  return 0;
}

void free(void* address) {
  if (!address)
    return;
  enter();
  struct block* const known = find(address);
  const size_t held = known->address ? known->bytes : 0;
  if (held)
    erase(known);
  leave();
  if (!held)
    return __libc_free(address);
  const size_t whole = mapped_bytes(held);
  munmap((char*)address + held + page_bytes - whole, whole);
}

size_t malloc_usable_size(void* address) {
  static size_t (*next)(void*);
  if (!next)
    next = (size_t(*)(void*))dlsym(RTLD_NEXT, "malloc_usable_size");
  enter();
  const struct block* const known = address ? find(address) : NULL;
  const size_t held = known && known->address ? known->bytes : 0;
  leave();
  return held ? held : next(address);
}
