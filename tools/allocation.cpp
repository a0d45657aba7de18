// Memory of the program comes from mimalloc. As it is packaged, compiled as C, its operator new ends the process where
// there is no memory left; these throw as the language has it, so that a run can say what it was at. What is deleted
// goes back by mimalloc's own operators.
#include <mimalloc.h>
#include <new>

namespace {

/// What a run says that meets it: with the client, round and job where one is at work.
class no_memory final : public std::bad_alloc {
public:
  [[nodiscard]] const char* what() const noexcept override {
    return "out of memory; fewer clients or rows, or a smaller worker.ahead_max, need less";
  }
};

void* memory_or_throw(void* found) {
  if (found == nullptr)
    throw no_memory();
  return found;
}

} // namespace

void* operator new(std::size_t bytes) { return memory_or_throw(mi_malloc(bytes)); }
void* operator new[](std::size_t bytes) { return memory_or_throw(mi_malloc(bytes)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return memory_or_throw(mi_malloc_aligned(bytes, static_cast<std::size_t>(alignment)));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return memory_or_throw(mi_malloc_aligned(bytes, static_cast<std::size_t>(alignment)));
}
