#include "runtime/models/chained_model.hpp"
#include "runtime/models/function.hpp"
#include "runtime/models/intermediate_model.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/nets.hpp"
#include <torch/csrc/autograd/autograd.h>
using namespace mneme;
using namespace mneme::test;

namespace {

constexpr shape3 image{3, 9, 10};

model_ref headless(const std::string& name, shape3 shape) {
  auto kind = kind_of(name);
  kind->set_head(head_kind::none);
  return kind->build(shape, 4).value();
}

struct two_parts {
  model_ref front = headless("resnet8", image);
  model_ref back = mlp_of({5}, 64, 4);
  chained_model chain{front, back};
  at::Tensor front_weights = initial_weights(*front, 1), back_weights = initial_weights(*back, 2);
  at::Tensor weights = at::cat({front_weights, back_weights}).unsqueeze(0); // [1, P]
  at::Tensor images = drawn({1, 5, image[0], image[1], image[2]}, 3);
};

} // namespace

TEST_CASE("a chain of nets equals its parts in sequence") {
  const two_parts parts;
  const auto features = parts.front->forward(parts.front_weights.unsqueeze(0), parts.images, {}, nullptr).features;
  const auto logits =
      parts.back->forward(parts.back_weights.unsqueeze(0), features.contiguous(), {1, 3}, nullptr).logits;
  const auto seen = parts.chain.forward(parts.weights, parts.images, {1, 3}, nullptr, nullptr);
  CHECK(same_bits(seen.features, features));
  CHECK(same_bits(seen.logits, logits));
  CHECK_FALSE(parts.chain.forward(parts.weights, parts.images, {}, nullptr, nullptr).logits.defined());
  const auto function = parts.chain.differentiable(parts.weights, parts.images, {1, 3}, {});
  CHECK(largest_difference(function.logits.contiguous(), logits) < 1e-5);
  CHECK(parts.chain.size() == parts.front->size() + parts.back->size());
  CHECK(parts.chain.layout().front().frozen);
  CHECK(parts.chain.layout().back().name == parts.back->layout().back().name);
}

TEST_CASE("training a chain trains its back as if alone and leaves its front unchanged") {
  const two_parts parts;
  const auto d_logits = drawn({1, 5, 4}, 4);
  auto gradients = at::zeros({1, parts.chain.size()}, at::kFloat), alone = at::zeros({1, parts.back->size()});
  tape kept, kept_alone;
  const training_mode training;
  const auto seen = parts.chain.forward(parts.weights, parts.images, {0, 4}, &kept, &training);
  parts.chain.backward(parts.weights, kept, {0, 4}, d_logits, {}, {}, {gradients});
  const auto back = parts.back_weights.unsqueeze(0);
  (void)parts.back->forward(back, seen.features.contiguous(), {0, 4}, &kept_alone, &training);
  parts.back->backward(back, kept_alone, {0, 4}, d_logits, {}, {}, {alone});
  CHECK(gradients.narrow(1, 0, parts.front->size()).abs().max().item<float>() == 0.0F);
  CHECK(same_bits(gradients.narrow(1, parts.front->size(), parts.back->size()).contiguous(), alone));

  auto head_only = at::zeros_like(gradients);
  const auto head = parameter_choice::layers_of(parts.chain, {"fc2"});
  const training_mode in_part{.trained = &head};
  (void)parts.chain.forward(parts.weights, parts.images, {0, 4}, &kept, &in_part);
  parts.chain.backward(parts.weights, kept, {0, 4}, d_logits, {}, head, {head_only});
  const auto& last = parts.chain.layout()[parts.chain.layout().size() - 2]; // fc2.weight
  CHECK(same_bits(head_only.narrow(1, last.offset, last.size).contiguous(),
                  gradients.narrow(1, last.offset, last.size).contiguous()));
  CHECK(head_only.narrow(1, 0, last.offset).abs().max().item<float>() == 0.0F);
}

TEST_CASE("a layer in the middle of a net gives the means of its map, and its gradients") {
  const auto net = headless("resnet8", image);
  const intermediate_model view(net, "layer2", image);
  CHECK(view.feature_width() == 32);
  CHECK(view.classes() == 0);
  const auto weights = initial_weights(*net, 1).unsqueeze(0);
  const auto images = drawn({1, 5, image[0], image[1], image[2]}, 3);
  tape shown;
  shown.maps = {"layer2"};
  const auto map = net->forward(weights, images, {}, &shown).maps.at(0);
  tape kept;
  const training_mode training;
  auto moved = weights.clone();
  const auto shown_features = view.forward(weights, images, {}, nullptr, nullptr).features;
  CHECK(largest_difference(shown_features, map.mean({3, 4}).contiguous()) == 0.0);

  const auto d_features = drawn({1, 5, 32}, 4);
  auto gradients = at::zeros({1, net->size()}, at::kFloat);
  (void)view.forward(moved, images, {}, &kept, &training);
  view.backward(weights, kept, {}, {}, d_features, {}, {gradients});
  const auto leaf = weights.clone().requires_grad_(true);
  const auto features = view.differentiable(leaf, images, {}, {.training = &training}).features;
  const auto expected = torch::autograd::grad({(features * d_features).sum()}, {leaf})[0];
  CHECK(largest_difference(gradients, expected.contiguous()) < 2e-5);
}
