#include "runtime/data/large_pages.hpp"
#include <cstdint>
#include <sys/mman.h>
namespace mneme {

void advise_huge_pages(const at::Tensor& memory) {
  constexpr int collapse = 25; // MADV_COLLAPSE; missing in older C libraries, and rejected by Linux before 6.1
  constexpr std::uintptr_t page = 2 << 20;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.const_data_ptr());
  const auto first = (begin + page - 1) / page * page, last = (begin + memory.nbytes()) / page * page;
  if (first < last)
    ::madvise(reinterpret_cast<void*>(first), last - first, collapse);
}

} // namespace mneme
