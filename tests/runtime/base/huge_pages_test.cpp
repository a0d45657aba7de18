#include "runtime/base/huge_pages.hpp"
#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/mman.h>
using namespace mneme;

namespace {

/// A mapping as allocators get it from the system.
struct mapped_block {
  static constexpr std::size_t bytes = 4 * fresh_bytes_min;
  void* first = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mapped_block() { REQUIRE(first != MAP_FAILED); }
  ~mapped_block() { ::munmap(first, bytes); }
};

/// True if huge pages are enabled for the memory around an address.
bool prefers_huge_pages(const void* at) {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  std::ifstream maps("/proc/self/smaps");
  bool is_there = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t first = 0, end = 0;
    char dash = 0;
    if (std::istringstream range(line); range >> std::hex >> first >> dash >> end && dash == '-')
      is_there = first <= address && address < end;
    if (is_there && line.starts_with("VmFlags:"))
      return line.find(" hg") != std::string::npos;
  }
  return false;
}

} // namespace

TEST_CASE("only large blocks get huge pages") {
  if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage"))
    SKIP("this system has no huge pages");
  const mapped_block block;
  auto* const middle = static_cast<char*>(block.first) + block.bytes / 2;
  prefer_huge_pages(block.first, fresh_bytes_min - 1);
  CHECK_FALSE(prefers_huge_pages(static_cast<char*>(block.first) + fresh_bytes_min / 2));
  prefer_huge_pages(static_cast<char*>(block.first) + 1, block.bytes - 1);
  CHECK(prefers_huge_pages(middle));
}
