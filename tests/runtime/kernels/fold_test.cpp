#include "runtime/kernels/fold.hpp"
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <vector>
using namespace mneme::kernels;

namespace {

/// Values with many significant bits, different for each `salt`.
std::vector<float> values(std::size_t n, int salt) {
  std::vector<float> numbers(n);
  for (std::size_t i = 0; i < n; ++i)
    numbers[i] = 1.0F / static_cast<float>(3 * static_cast<int>(i) + salt) - 0.01F * static_cast<float>(salt);
  return numbers;
}

} // namespace

TEST_CASE("folding several uploads at once gives the bits of folding one by one, for any length") {
  const std::array weights{3.0, 50.0, 1.0, 1237.0};
  for (const std::size_t n : {0, 1, 7, 8, 31, 64, 100, 2410})
    for (std::size_t count = 0; count <= folded_at_once_max; ++count) {
      std::vector<double> together(n, 0.1), apart(n, 0.1);
      std::vector<std::vector<float>> uploads;
      std::vector<weighted_upload> listed;
      for (std::size_t k = 0; k < count; ++k)
        uploads.push_back(values(n, static_cast<int>(k) + 1));
      for (std::size_t k = 0; k < count; ++k)
        listed.push_back({.values = uploads[k].data(), .weight = weights[k]});
      fold(together.data(), listed, static_cast<std::int64_t>(n));
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t k = 0; k < count; ++k)
          apart[i] += weights[k] * static_cast<double>(uploads[k][i]); // exact, since weights are integers
      CHECK(together == apart);
    }
}
