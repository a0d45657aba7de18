/// dummy_clients: the parts that a client of STSA-E cuts its rows into, each a client of its own to the estimate.
#pragma once
#include "runtime/base/rng.hpp"
#include "runtime/data/dataset.hpp"
namespace mneme {

enum class dummy_split : std::uint8_t {
  random,     ///< All rows are shuffled and cut into equal parts.
  stratified, ///< They are dealt class by class.
  file,       ///< A column of partition.file says it.
};

/// The part of each row, 0 .. parts - 1, drawn by `key`. A random split cuts parts of floor(n / P) rows, the last with
/// the remainder, as the official code of STSA does; with fewer rows than parts the last one has everything.
[[nodiscard]] std::shared_ptr<const std::vector<std::int32_t>>
dummy_of_rows(const sample_view& samples, std::int64_t parts, dummy_split split, const rng_key& key);

} // namespace mneme
