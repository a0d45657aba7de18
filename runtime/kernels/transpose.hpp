/// transpose: transposes a matrix in 4 x 4 blocks that stay in registers.
#pragma once
#include "runtime/kernels/instruction_set.hpp"
#include <algorithm>
namespace mneme::kernels {

/// to[c, r] = from[r, c] for from [rows, columns], both row-major without padding.
inline void transpose(const float* from, std::int64_t rows, std::int64_t columns, float* to) {
  using four = floats<4>::type;
  constexpr std::int64_t side = 16; // side of the blocks; a block covers whole cache lines
  const std::int64_t whole_rows = rows / 4 * 4, whole_columns = columns / 4 * 4;
  for (std::int64_t r0 = 0; r0 < whole_rows; r0 += side)
    for (std::int64_t c0 = 0; c0 < whole_columns; c0 += side)
      for (std::int64_t r = r0; r < std::min(r0 + side, whole_rows); r += 4)
        for (std::int64_t c = c0; c < std::min(c0 + side, whole_columns); c += 4) {
          four in[4];
          for (int i = 0; i < 4; ++i)
            load(in[i], from + (r + i) * columns + c);
          const four a = __builtin_shufflevector(in[0], in[1], 0, 4, 1, 5);
          const four b = __builtin_shufflevector(in[2], in[3], 0, 4, 1, 5);
          const four e = __builtin_shufflevector(in[0], in[1], 2, 6, 3, 7);
          const four f = __builtin_shufflevector(in[2], in[3], 2, 6, 3, 7);
          store(to + c * rows + r, __builtin_shufflevector(a, b, 0, 1, 4, 5));
          store(to + (c + 1) * rows + r, __builtin_shufflevector(a, b, 2, 3, 6, 7));
          store(to + (c + 2) * rows + r, __builtin_shufflevector(e, f, 0, 1, 4, 5));
          store(to + (c + 3) * rows + r, __builtin_shufflevector(e, f, 2, 3, 6, 7));
        }
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = r < whole_rows ? whole_columns : 0; c < columns; ++c)
      to[c * rows + r] = from[r * columns + c];
}

} // namespace mneme::kernels
