#include "runtime/models/low_rank_vit.hpp"
#include "runtime/models/low_rank.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <algorithm>
#include <sstream>
namespace mneme {
namespace {

constexpr double center_deviation = 0.1;
constexpr double square_min = 1e-12; // lower bound on a squared distance, which rounding may make negative

} // namespace

low_rank_vit::low_rank_vit(vit_shape shape, prompt_shape parts, const std::vector<parameter>& body,
                           std::int64_t classes)
    : frozen_vit(shape, body, classes), shape_of_parts_(std::move(parts)) {
  const auto d = shape.width, r = shape_of_parts_.rank;
  for (const auto block : shape_of_parts_.blocks) {
    const auto name = std::string(layers) + "." + std::to_string(block);
    auto& own = parts_.emplace_back(places{.block = block});
    const auto added = [&](const char* matrix, std::size_t& down, std::size_t& up) {
      auto both = make_low_rank(name + matrix + ".down", name + matrix + ".up", d, d, r);
      down = add_parameter(std::move(both.down));
      up = add_parameter(std::move(both.up));
    };
    added(".query", own.query_down, own.query_up);
    added(".value", own.value_down, own.value_up);
  }
  centers_ =
      add_parameter({.name = "centers.weight", .shape = {classes, d}, .head = true, .deviation = center_deviation});
}

std::string low_rank_vit::identity() const {
  std::ostringstream text;
  const auto& in = shape().input;
  text << "low-rank vit " << in[0] << "x" << in[1] << "x" << in[2] << "-" << classes() << " " << shape().text() << " "
       << shape_of_parts_.text();
  return text.str();
}

low_rank_vit::model_results low_rank_vit::apply(const model_pass& pass) const {
  const auto added = [&](const at::Tensor& x, std::size_t down, std::size_t up) { // B A x
    return by_head(low_rank_product(x, pass.values[down], pass.values[up]));
  };
  model_results results{
      .features = class_token(pass, [&](std::int64_t block, const at::Tensor& x, attention_heads& heads) {
        const auto own =
            std::find_if(parts_.begin(), parts_.end(), [&](const places& each) { return each.block == block; });
        if (own == parts_.end())
          return;
        heads.queries = heads.queries + added(x, own->query_down, own->query_up);
        heads.values = heads.values + added(x, own->value_down, own->value_up);
      })};
  if (pass.classes.size() > 0)
    results.logits = -distances_to_centers(results.features, pass.values[centers_]);
  return results;
}

at::Tensor distances_to_centers(const at::Tensor& features, const at::Tensor& centers) {
  const auto squares =
      features.square().sum(1, true) + centers.square().sum(1) - 2.0 * at::matmul(features, centers.t()); // [B, C]
  return (squares / static_cast<double>(features.size(1))).clamp_min(square_min).sqrt();
}

} // namespace mneme
