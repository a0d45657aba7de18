/// golden: reads the records of tools/research/export, and compares results with them.
#pragma once
#include "tests/support/formula.hpp"
#include "tests/support/tensors.hpp"
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
namespace mneme::test {

/// Reads tests/golden/NAME.json.
inline nlohmann::json golden_record(const std::string& name) {
  std::ifstream file(MNEME_SOURCE_DIR "/tests/golden/" + name + ".json");
  REQUIRE(file);
  return nlohmann::json::parse(file);
}

/// Values of a parameter, equal to made_values() in tools/research/export/torchvision_reference.py.
inline at::Tensor made_values(const std::string& name, const std::vector<std::int64_t>& shape) {
  const auto count = c10::multiply_integers(shape);
  const auto drawn = formula(name, count);
  auto made = at::empty(shape, at::kFloat);
  auto* const values = made.mutable_data_ptr<float>();
  const auto bound = static_cast<float>(std::sqrt(6.0 * static_cast<double>(shape[0]) / static_cast<double>(count)));
  const bool scale = name.ends_with(".weight") || name.ends_with(".running_var");
  for (std::size_t i = 0; i < drawn.size(); ++i)
    values[i] = shape.size() > 1 ? bound * drawn[i] : scale ? 1.0F + 0.25F * drawn[i] : 0.125F * drawn[i];
  return made;
}

/// Compares a tensor with the record's projection and norm. @param length_min lower bound on the norm in the tolerance,
/// for values that are zero in exact arithmetic
inline void check_summary(const std::string& name, const at::Tensor& ours, const nlohmann::json& expected, double bound,
                          double length_min = 0.0) {
  const auto flat = ours.to(at::kDouble).flatten().contiguous();
  const auto direction = formula(name + ".direction", flat.numel());
  double projection = 0.0, squares = 0.0;
  for (std::size_t i = 0; i < direction.size(); ++i) {
    const double value = flat.const_data_ptr<double>()[i];
    projection += value * direction[i];
    squares += value * value;
  }
  const double length = std::max(expected[1].get<double>(), length_min);
  INFO(name << ": " << projection << ", length " << std::sqrt(squares) << ", expected " << expected.dump());
  CHECK(std::abs(projection - expected[0].get<double>()) <= bound * length);
  CHECK(std::abs(std::sqrt(squares) - expected[1].get<double>()) <= bound * length);
}

} // namespace mneme::test
