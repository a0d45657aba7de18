/// step_bytes: the bytes that a step touches, for any number of rows that a scenario may ask for.
#pragma once
#include "runtime/models/model.hpp"
#include <algorithm>
#include <limits>
namespace mneme {

/// model::working_set(rows), or that of so many rows as give about 2^61 bytes where more would overflow.
[[nodiscard]] inline std::int64_t step_bytes(const model& net, std::int64_t rows) {
  const auto bytes_of_row = std::max<std::int64_t>(net.working_set(1), 1);
  return net.working_set(std::min(rows, std::numeric_limits<std::int64_t>::max() / 4 / bytes_of_row));
}

} // namespace mneme
