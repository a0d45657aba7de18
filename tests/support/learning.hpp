/// learning: small data sets and results of jobs on them.
#pragma once
#include "runtime/method/jobs.hpp"
#include "tests/support/nets.hpp"
#include <numeric>
namespace mneme::test {

/// `rows` rows of random pixels; row r has label r mod classes.
inline std::shared_ptr<dataset> drawn_data(std::int64_t rows, shape3 shape, std::int64_t classes) {
  auto made = std::make_shared<dataset>();
  made->images = at::empty({rows, shape[0], shape[1], shape[2]}, at::kByte);
  rng_stream draw({.seed = 7, .purpose = first_method_purpose});
  for (std::int64_t i = 0; i < made->images.numel(); ++i)
    made->images.mutable_data_ptr<std::uint8_t>()[i] = static_cast<std::uint8_t>(draw.below(256));
  for (std::int64_t row = 0; row < rows; ++row)
    made->labels.push_back(static_cast<std::int32_t>(row % classes));
  made->transforms.resize(1);
  for (std::int64_t channel = 0; channel < shape[0]; ++channel) {
    made->scale.push_back(1.0F / 127.5F / static_cast<float>(channel + 1));
    made->shift.push_back(-1.0F);
  }
  return made;
}

/// Rows first to first + count - 1.
inline sample_view rows_from(std::shared_ptr<const dataset> source, std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), first);
  return {std::move(source), std::make_shared<const std::vector<std::int64_t>>(std::move(rows))};
}

inline const at::Tensor& weights_of(const job_outcome& outcome) {
  if (const auto* reason = std::get_if<std::string>(&outcome))
    FAIL("job failed: " << *reason);
  return std::get<train_output>(std::get<work_output>(outcome)).weights->at(flat_weights);
}

} // namespace mneme::test
