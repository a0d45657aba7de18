#include "runtime/data/large_pages.hpp"
#include <cstdint>
#include <sys/mman.h>
namespace mneme {

void advise_huge_pages(const at::Tensor& memory) {
  constexpr int collapse = 25; // value of MADV_COLLAPSE, which older C libraries do not define; Linux before 6.1
                               // rejects it
  constexpr std::uintptr_t page = 2 << 20;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.const_data_ptr());
  const auto first = (begin + page - 1) / page * page, last = (begin + memory.nbytes()) / page * page;
  if (first < last)
    ::madvise(reinterpret_cast<void*>(first), last - first, collapse);
}

} // namespace mneme
