/// official_images: nets, generators and images for comparison with the image-generating scripts of
/// tools/research/official (lander.py, target.py): residual nets for 16 x 16 pixels and a generator.
#pragma once
#include "runtime/data/dataset.hpp"
#include "strategies/shared/image_generator.hpp"
#include "tests/support/official_steps.hpp"
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <map>
namespace mneme::test {

inline constexpr std::int64_t official_side = 16;
inline constexpr std::array<std::int64_t, 3> official_image{3, official_side, official_side};

/// float32 values in [-1, 1), computed from a name.
inline at::Tensor values_named(const std::string& name, at::IntArrayRef sizes) {
  return at::tensor(formula(name, c10::multiply_integers(sizes)), at::kFloat).view(sizes);
}

/// Weights computed from names; running statistics from the record.
inline at::Tensor official_weights(const model& net, const std::string& prefix, const nlohmann::json& running) {
  auto flat = at::empty({net.size()}, at::kFloat);
  for (const auto& entry : net.layout())
    put_as_in_files(flat, entry,
                    entry.buffer ? at::tensor(running[entry.name].get<std::vector<float>>(), at::kFloat)
                                 : made_values(prefix + entry.name, entry.shape));
  return flat;
}

/// The script's name of a generator's parameter.
inline std::string official_name(const std::string& name) {
  static const std::map<std::string, std::string> names{
      {"fc1", "l1.0"},           {"bn1", "conv_blocks.0"},   {"conv1", "conv_blocks.2"},
      {"bn2", "conv_blocks.3"},  {"conv2", "conv_blocks.6"}, {"bn3", "conv_blocks.7"},
      {"conv3", "conv_blocks.9"}};
  const auto dot = name.find('.');
  return names.at(name.substr(0, dot)) + name.substr(dot);
}
/// A generator's weights computed from names, in float32.
inline at::Tensor official_generator(const model& generator) {
  auto flat = initial_weights(generator, 1);
  for (const auto& entry : generator.layout())
    if (!entry.buffer)
      put_as_in_files(flat, entry, made_values("generator." + official_name(entry.name), entry.shape));
  return flat;
}
/// Compares every parameter of a generator with the record.
inline void compare_generator(official_steps& both, const std::string& where, const model& generator,
                              const at::Tensor& flat, const nlohmann::json& official) {
  for (const auto& entry : generator.layout())
    if (!entry.buffer) {
      const auto name = official_name(entry.name);
      both.weights(where + name, "generator." + name, as_in_files(flat, entry), official[name]);
    }
}

/// Crops and flips of `steps` batches, [steps, rows, 3], numbered from `first`.
inline at::Tensor views_named(std::int64_t first, std::int64_t steps, std::int64_t rows) {
  std::vector<at::Tensor> shown;
  for (std::int64_t view = first; view < first + steps; ++view) {
    const auto drawn = values_named(fmt::format("views.{}", view), {3, rows}).to(at::kDouble);
    const auto offsets = ((drawn.narrow(0, 0, 2) + 1.0) * 4.5).to(at::kLong).clamp_max(8);
    shown.push_back(at::cat({offsets, (drawn.narrow(0, 2, 1) > 0.0).to(at::kLong)}).t());
  }
  return at::stack(shown);
}

/// Images of steps computed from names, `rows` per step, as vectors with labels; missing labels of a step are 0.
inline std::shared_ptr<dataset> images_named(const std::string& set, const nlohmann::json& labels_of_steps,
                                             std::int64_t rows) {
  auto images = std::make_shared<dataset>();
  std::vector<at::Tensor> steps;
  for (std::size_t step = 0; step < labels_of_steps.size(); ++step) {
    steps.push_back(2 * values_named(fmt::format("{}.{}", set, step), {rows, 3 * official_side * official_side}));
    for (std::int64_t i = 0; i < rows; ++i)
      images->labels.push_back(i < std::ssize(labels_of_steps[step]) ? labels_of_steps[step][i].get<std::int32_t>()
                                                                     : 0);
  }
  images->vectors = at::cat(steps);
  return images;
}
/// Images of a training step of the student, [rows, 3, H, W] in float64.
inline at::Tensor lesson_named(std::size_t step, std::int64_t rows) {
  return 2 * values_named(fmt::format("student.{}", step), {rows, 3, official_side, official_side}).to(at::kDouble);
}

} // namespace mneme::test
