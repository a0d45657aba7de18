#include "runtime/base/mapped_file.hpp"
#include "runtime/base/check.hpp"
#include <ATen/ops/from_blob.h>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
namespace mneme {
namespace {

constexpr std::uint64_t resident_bytes_max = std::uint64_t{128} << 20U;

/// All mappings of the process: first address and length in bytes.
struct mapping_list {
  std::mutex mutex{};
  std::map<void*, std::size_t> blocks{};
  std::atomic<std::size_t> count{0};
  std::atomic<std::uint64_t> bytes_read{0};
};

mapping_list& mappings() {
  static auto* const all = new mapping_list; // never destroyed, because tensors may outlive static objects
  return *all;
}

void unmap(void* block) {
  auto& all = mappings();
  const std::scoped_lock lock(all.mutex);
  const auto known = all.blocks.find(block);
  ::munmap(block, known->second);
  all.blocks.erase(known);
  --all.count;
}

} // namespace

tl::expected<at::Tensor, std::string> map_tensor(const std::filesystem::path& file, std::uint64_t first,
                                                 at::IntArrayRef shape, at::ScalarType type) {
  auto bytes = std::uint64_t{c10::elementSize(type)};
  MNEME_CHECK(first % bytes == 0, first, bytes);
  for (const auto extent : shape)
    bytes *= static_cast<std::uint64_t>(extent);
  const int opened = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (opened < 0)
    return tl::unexpected(std::string("cannot be opened: ") + std::strerror(errno));
  struct stat found {};
  const bool is_whole = ::fstat(opened, &found) == 0 && first + bytes <= static_cast<std::uint64_t>(found.st_size);
  void* const block = is_whole ? ::mmap(nullptr, first + bytes, PROT_READ, MAP_SHARED, opened, 0) : MAP_FAILED;
  const int reason = errno;
  ::close(opened); // the mapping keeps the file open
  if (block == MAP_FAILED)
    return tl::unexpected(is_whole ? std::string("cannot be mapped: ") + std::strerror(reason)
                                   : std::string("has become shorter while it was read"));
  ::madvise(block, first + bytes, MADV_NOHUGEPAGE); // rows are read at random positions
  {
    auto& all = mappings();
    const std::scoped_lock lock(all.mutex);
    all.blocks[block] = first + bytes;
    ++all.count;
  }
  return at::from_blob(
      static_cast<std::byte*>(block) + first, shape, [block](void*) { unmap(block); }, type);
}

void note_mapped_reads(std::uint64_t bytes) noexcept {
  auto& all = mappings();
  if (all.count.load(std::memory_order_relaxed) == 0)
    return;
  if (all.bytes_read.fetch_add(bytes) + bytes < resident_bytes_max)
    return;
  const std::scoped_lock lock(all.mutex);
  if (all.bytes_read.exchange(0) == 0)
    return; // another thread has already released the pages
  for (const auto& [block, length] : all.blocks)
    ::madvise(block, length, MADV_DONTNEED);
}

} // namespace mneme
