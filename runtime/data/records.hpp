/// records: the binary layout of CIFAR, label bytes and then a 32x32 image, one record after the other.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/row_filter.hpp"
#include <filesystem>
#include <optional>
namespace mneme {

/// The bytes before a record's pixels (planes R, G, B of 32x32).
struct record_layout {
  std::size_t label_bytes = 1;
  std::size_t label_at = 0;
  std::int64_t classes = 10;
  std::optional<std::size_t> domain_at{}; ///< Where the domain stands; absent: one domain.
  std::int64_t domains = 1;
};

/// The records of all `files`, one after the other; of one domain, no further than `limits` keep.
[[nodiscard]] expected<image_table> read_records(const std::vector<std::filesystem::path>& files,
                                                 const record_layout& layout, row_limits limits);

} // namespace mneme
