/// dummy_clients: splits a client's rows into parts for STSA-E, which treats each part as a client.
#pragma once
#include "runtime/base/rng.hpp"
#include "runtime/data/dataset.hpp"
namespace mneme {

/// Rule by which rows are split into parts.
enum class dummy_split : std::uint8_t {
  random,     ///< Shuffles all rows and cuts them into equal parts.
  stratified, ///< Assigns the rows of each class to the parts in turn.
  file,       ///< Reads the part from a column of partition.file.
};

/// Returns the part of each row, 0 .. parts - 1. A random split is drawn by `key`. Its parts have floor(n / parts)
/// rows, and the last part also takes the remainder, as in the official code. With fewer rows than parts, the last part
/// has all rows.
[[nodiscard]] std::shared_ptr<const std::vector<std::int32_t>>
dummy_of_rows(const sample_view& samples, std::int64_t parts, dummy_split split, const rng_key& key);

} // namespace mneme
