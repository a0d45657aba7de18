#include "runtime/base/huge_pages.hpp"
#include <cstdint>
#include <sys/mman.h>
namespace mneme {

void prefer_huge_pages(void* block, std::size_t bytes) {
  constexpr std::uintptr_t page_bytes = std::uintptr_t{2} << 20;
  if (bytes < fresh_bytes_min)
    return;
  const auto begin = reinterpret_cast<std::uintptr_t>(block);
  const auto first = (begin + page_bytes - 1) / page_bytes * page_bytes;
  const auto end = (begin + bytes) / page_bytes * page_bytes;
  ::madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

} // namespace mneme
