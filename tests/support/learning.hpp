/// Small data sets, nets and jobs for tests of learning.
#pragma once
#include "runtime/base/rng.hpp"
#include "runtime/options/keys.hpp"
#include "runtime/training/executor.hpp"
#include <ATen/ATen.h> // before Catch2: both define CHECK, and the last one holds

#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <numeric>
namespace mneme::test {

using shape3 = std::array<std::int64_t, 3>;

/// `rows` rows of drawn pixels; row r has label r % classes.
inline std::shared_ptr<dataset> drawn_data(std::int64_t rows, shape3 shape, std::int64_t classes) {
  auto made = std::make_shared<dataset>();
  made->images = at::empty({rows, shape[0], shape[1], shape[2]}, at::kByte);
  rng_stream draw({.seed = 7, .what = first_method_purpose});
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

/// Rows first .. first + count - 1.
inline sample_view rows_from(std::shared_ptr<const dataset> source, std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), first);
  return {std::move(source), std::make_shared<const std::vector<std::int64_t>>(std::move(rows))};
}

inline std::unique_ptr<model_kind> kind_of(const std::string& name) {
  for (const auto& entry : models())
    if (entry.name == name)
      return entry.make();
  FAIL("no model is called " << name);
  return nullptr;
}
/// Words and numbers by key, as a scenario's [model] gives them.
using model_keys = std::vector<std::pair<std::string, std::string>>;
inline std::unique_ptr<model_kind> kind_with(const std::string& name, const model_keys& chosen) {
  auto kind = kind_of(name);
  key_table keys;
  kind->keys(keys);
  for (const auto& [key, value] : chosen) {
    INFO(name << ", " << key << " = " << value);
    const auto* const found = keys.find(key);
    REQUIRE(found);
    if (found->chosen)
      found->chosen(value);
    else
      *std::get<std::int64_t*>(found->target) = std::stoll(value);
  }
  return kind;
}
inline model_ref net_of(const std::string& name, shape3 shape, std::int64_t classes, const model_keys& chosen = {}) {
  return kind_with(name, chosen)->build(shape, classes).value();
}
inline model_ref mlp_of(std::vector<std::int64_t> hidden, std::int64_t inputs, std::int64_t classes) {
  const auto kind = kind_of("mlp");
  key_table keys;
  kind->keys(keys);
  *std::get<std::vector<std::int64_t>*>(keys.find("hidden")->target) = std::move(hidden);
  return kind->build({1, 1, inputs}, classes).value();
}

/// Standard normal float32 values.
inline at::Tensor drawn(at::IntArrayRef sizes, std::uint64_t seed) {
  auto values = at::empty(sizes, at::kFloat);
  rng_stream draw({.seed = seed, .what = first_method_purpose});
  for (std::int64_t i = 0; i < values.numel(); ++i)
    values.mutable_data_ptr<float>()[i] = static_cast<float>(draw.normal());
  return values;
}

inline const at::Tensor& weights_of(const job_outcome& outcome) {
  if (const auto* why = std::get_if<std::string>(&outcome))
    FAIL("job failed: " << *why);
  return std::get<train_output>(std::get<work_output>(outcome)).weights->at(flat_weights);
}

/// Whether two float tensors hold the same bits.
inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

/// The largest |a - b|, both contiguous float32 of equal size; large if one is NaN.
inline double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  REQUIRE(a.numel() == b.numel());
  double largest = 0.0;
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    const double difference =
        std::abs(static_cast<double>(a.const_data_ptr<float>()[i]) - b.const_data_ptr<float>()[i]);
    largest = difference <= largest ? largest : (difference == difference ? difference : 1e30);
  }
  return largest;
}

} // namespace mneme::test
