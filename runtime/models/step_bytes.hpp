/// step_bytes: the bytes that a step touches, without overflow for any number of rows.
#pragma once
#include "runtime/models/model.hpp"
#include <algorithm>
#include <limits>
namespace mneme {

/// Returns model::working_set(rows), or about 2^61 bytes if it would overflow.
[[nodiscard]] inline std::int64_t step_bytes(const model& net, std::int64_t rows) {
  const auto bytes_of_row = std::max<std::int64_t>(net.working_set(1), 1);
  return net.working_set(std::min(rows, std::numeric_limits<std::int64_t>::max() / 4 / bytes_of_row));
}

} // namespace mneme
