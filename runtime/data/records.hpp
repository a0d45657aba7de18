/// records: reads the binary format of CIFAR, a sequence of records with label bytes and a 32x32 image.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/row_filter.hpp"
#include <filesystem>
#include <optional>
namespace mneme {

/// Layout of the bytes before the pixels of a record. The pixels are the planes R, G, B of 32x32.
struct record_layout {
  std::size_t label_bytes = 1;
  std::size_t label_at = 0;
  std::int64_t classes = 10;
  std::optional<std::size_t> domain_at{}; ///< Offset of the domain byte; nullopt: one domain.
  std::int64_t domains = 1;
};

/// Reads the records of all `files` in order. With one domain, it stops at the last row within `limits`.
[[nodiscard]] expected<image_table> read_records(const std::vector<std::filesystem::path>& files,
                                                 const record_layout& layout, row_limits limits);

} // namespace mneme
