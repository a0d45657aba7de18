#include "runtime/models/network_builder.hpp"
#include "tests/support/nets.hpp"
#include <catch2/matchers/catch_matchers_floating_point.hpp>
using namespace mneme;
using namespace mneme::test;

// K models, B rows, P weights. References are computed by autograd.

namespace {

constexpr std::int64_t group = 3, rows = 5;

at::Tensor weights_for(const model& net) {
  std::vector<at::Tensor> tensors;
  for (std::uint64_t k = 0; k < group; ++k)
    tensors.push_back(initial_weights(net, k) + 0.1F);
  return at::stack(tensors);
}

/// Variational net: 8 inputs, means and log deviations of 3 values, a head of 4 classes.
std::shared_ptr<const network> sampling_net() {
  network_builder net("sampling", shape3{1, 1, 8});
  net.add_linear("fc1", 6, activation::none);
  net.mark_features();
  net.add_sampling(-6.0, 3.0);
  net.add_head("fc2", 4);
  return net.build();
}

std::vector<rng_key> keys_of_step(std::uint64_t step) {
  std::vector<rng_key> keys;
  for (std::uint32_t k = 0; k < group; ++k)
    keys.push_back({.seed = 4, .client = {k}, .index = step});
  return keys;
}

} // namespace

TEST_CASE("a cosine head and its gradients equal autograd's", "[models]") {
  auto kind = kind_with("mlp", {});
  kind->set_head(head_kind::cosine);
  const auto net = kind->build({1, 1, 7}, 6).value();
  CHECK(net->identity().ends_with(" cosine"));
  const class_range classes{2, 5};
  const auto weights = weights_for(*net);
  const auto inputs = drawn({group, rows, 1, 1, 7}, 1);
  const auto d_logits = drawn({group, rows, 3}, 2);
  tape kept;
  const training_mode training;
  const auto logits = net->forward(weights, inputs, classes, &kept, &training).logits.clone();
  auto gradients = at::full(weights.sizes(), 77.0F);
  net->backward(weights, kept, classes, d_logits, {}, {}, {gradients});
  for (std::int64_t k = 0; k < group; ++k) {
    const auto flat = weights[k].clone().set_requires_grad(true);
    const auto part = [&](const char* name) {
      for (const auto& parameter : net->layout())
        if (parameter.name == name)
          return flat.narrow(0, parameter.offset, parameter.size).view(parameter.shape);
      FAIL(name);
      return at::Tensor{};
    };
    auto x = inputs[k].flatten(1);
    x = at::relu(at::linear(x, part("fc1.weight"), part("fc1.bias")));
    x = at::relu(at::linear(x, part("fc2.weight"), part("fc2.bias")));
    const auto unit = [](const at::Tensor& v) { return v / v.norm(2, 1, true); };
    const auto expected = (part("fc3.sigma") * unit(x).mm(unit(part("fc3.weight")).t())).narrow(1, 2, 3);
    CHECK(largest_difference(logits[k].contiguous(), expected.detach().contiguous()) < 1e-6);
    (expected * d_logits[k]).sum().backward();
    for (const auto& piece : trained_segments(*net, classes))
      CHECK(largest_difference(gradients[k].narrow(0, piece.offset, piece.size).contiguous(),
                               flat.grad().narrow(0, piece.offset, piece.size).contiguous()) < 1e-5);
  }
  const auto of_head = trained_segments(*net, classes, parameter_choice::head_of(*net));
  REQUIRE(of_head.size() == 2); // three rows, and the scale
  CHECK(of_head[0].size == 300);
  CHECK(of_head[1].size == 1);
}

TEST_CASE("a proxy head and its gradients equal autograd's", "[models]") {
  auto kind = kind_with("linear", {});
  kind->set_head(head_kind::proxies);
  kind->set_proxies(3);
  const auto net = kind->build({1, 1, 7}, 6).value();
  CHECK(net->identity().ends_with(" proxies 3"));
  CHECK(net->size() == 6 * 3 * 7 + 1);
  const class_range classes{2, 5};
  const auto weights = weights_for(*net);
  const auto inputs = drawn({group, rows, 1, 1, 7}, 1), d_logits = drawn({group, rows, 3}, 2);
  tape kept;
  const training_mode training;
  const auto logits = net->forward(weights, inputs, classes, &kept, &training).logits.clone();
  auto gradients = at::full(weights.sizes(), 77.0F);
  net->backward(weights, kept, classes, d_logits, {}, {}, {gradients});
  for (std::int64_t k = 0; k < group; ++k) {
    const auto flat = weights[k].clone().set_requires_grad(true);
    const auto proxies = flat.narrow(0, 0, 6 * 3 * 7).view({18, 7});
    const auto unit = [](const at::Tensor& v) { return v / v.norm(2, 1, true); };
    const auto away = unit(inputs[k].flatten(1)).unsqueeze(1) - unit(proxies).unsqueeze(0); // [B, 18, D]
    const auto similar = -away.square().sum(2).view({rows, 6, 3});
    const auto expected = ((similar.softmax(2) * similar).sum(2) * flat[6 * 3 * 7]).narrow(1, 2, 3);
    CHECK(largest_difference(logits[k].contiguous(), expected.detach().contiguous()) < 2e-6);
    (expected * d_logits[k]).sum().backward();
    for (const auto& piece : trained_segments(*net, classes))
      CHECK(largest_difference(gradients[k].narrow(0, piece.offset, piece.size).contiguous(),
                               flat.grad().narrow(0, piece.offset, piece.size).contiguous()) < 1e-5);
  }
  const auto of_head = trained_segments(*net, classes);
  REQUIRE(of_head.size() == 2); // three classes of three rows, and the scale
  CHECK(of_head[0].size == 63);
}

TEST_CASE("the similarity of a class is the softmax-weighted mean over its proxies", "[models]") {
  auto kind = kind_with("linear", {});
  kind->set_head(head_kind::proxies);
  kind->set_proxies(2);
  const auto net = kind->build({1, 1, 2}, 1).value();
  // With cos = 1 + r / 2, the cosines 0.75 and 0.55 of the two proxies are r = -0.5 and -0.9.
  const auto weights = at::tensor({0.75F, std::sqrt(1 - 0.75F * 0.75F), 0.55F, std::sqrt(1 - 0.55F * 0.55F), 1.0F});
  const auto shown =
      net->forward(weights.view({1, 5}), at::tensor({3.0F, 0.0F}).view({1, 1, 1, 1, 2}), {0, 1}, nullptr);
  CHECK_THAT(shown.logits.item<float>(), Catch::Matchers::WithinAbs(0.339475 - 1.0, 1e-6));
}

TEST_CASE("residual nets can end without a ReLU if a method or a key requires it", "[models]") {
  const auto inputs = drawn({1, 4, 3, 9, 9}, 1);
  const auto least_feature = [&](const model_keys& keys, bool is_signed) {
    auto kind = kind_with("resnet8", keys);
    kind->set_signed_features(is_signed);
    const auto net = kind->build({3, 9, 9}, 4).value();
    CHECK(net->identity().ends_with(" no last relu 3x9x9-4") == (is_signed || !keys.empty()));
    const auto weights = initial_weights(*net, 1).unsqueeze(0);
    return net->forward(weights, inputs, {}, nullptr).features.min().item<float>();
  };
  CHECK(least_feature({}, false) >= 0.0F);
  CHECK(least_feature({}, true) < 0.0F);
  CHECK(least_feature({{"last_relu", "off"}}, false) < 0.0F);
}

TEST_CASE("a sampling layer returns means in evaluation and keyed draws in training", "[models]") {
  const auto net = sampling_net();
  CHECK(net->feature_width() == 6);
  CHECK(net->uses_random_numbers());
  const auto weights = weights_for(*net);
  const auto inputs = drawn({group, rows, 1, 1, 8}, 1);
  const auto seen = net->forward(weights, inputs, {0, 4}, nullptr, nullptr);
  const auto head = weights[0].narrow(0, 54, 12).view({4, 3}), bias = weights[0].narrow(0, 66, 4);
  CHECK(largest_difference(seen.logits[0].contiguous(),
                           at::linear(seen.features[0].narrow(1, 0, 3), head, bias).contiguous()) < 1e-6);

  const auto keys = keys_of_step(1), others = keys_of_step(2);
  const training_mode first{keys}, second{others};
  const auto drawn_once = net->forward(weights, inputs, {0, 4}, nullptr, &first).logits.clone();
  CHECK(same_bits(net->forward(weights, inputs, {0, 4}, nullptr, &first).logits.contiguous(), drawn_once));
  CHECK_FALSE(same_bits(net->forward(weights, inputs, {0, 4}, nullptr, &second).logits.contiguous(), drawn_once));
  const training_mode of_last{std::span(keys).subspan(2)}; // one model, followed by padding rows
  auto padded = at::zeros({1, rows + 3, 1, 1, 8});
  padded.narrow(1, 0, rows).copy_(inputs.narrow(0, 2, 1));
  const auto alone = net->forward(weights.narrow(0, 2, 1), padded, {0, 4}, nullptr, &of_last).logits;
  CHECK(same_bits(alone[0].narrow(0, 0, rows).contiguous(), drawn_once[2].contiguous()));
}

TEST_CASE("samples have the mean and deviation of the inputs", "[models]") {
  const auto net = sampling_net();
  auto weights = at::zeros({1, net->size()});
  weights[0].narrow(0, 48, 3).fill_(2.0F);                              // biases: means
  weights[0].narrow(0, 51, 3).fill_(static_cast<float>(std::log(0.5))); // and log deviations
  weights[0].narrow(0, 54, 12).view({4, 3}).narrow(0, 0, 3).copy_(at::eye(3));
  const std::vector<rng_key> keys{{.seed = 1}};
  const training_mode training{keys};
  const auto z =
      net->forward(weights, at::zeros({1, 40'000, 1, 1, 8}), {0, 4}, nullptr, &training).logits[0].narrow(1, 0, 3);
  CHECK_THAT(z.mean().item<double>(), Catch::Matchers::WithinAbs(2.0, 0.01));
  CHECK_THAT(z.std().item<double>(), Catch::Matchers::WithinAbs(0.5, 0.005));
}

TEST_CASE("a loss on means and log deviations reaches earlier layers, as does a loss on samples", "[models]") {
  const auto net = sampling_net();
  const auto weights = weights_for(*net);
  const auto inputs = drawn({group, rows, 1, 1, 8}, 1);
  const auto d_logits = drawn({group, rows, 4}, 2), d_features = drawn({group, rows, 6}, 3);
  const auto keys = keys_of_step(7);
  const training_mode training{keys};
  tape kept;
  const auto seen = net->forward(weights, inputs, {0, 4}, &kept, &training);
  const auto logits = seen.logits.clone();
  auto gradients = at::zeros(weights.sizes());
  net->backward(weights, kept, {0, 4}, d_logits, d_features, {}, {gradients});
  for (std::int64_t k = 0; k < group; ++k) {
    auto key = keys[static_cast<std::size_t>(k)];
    key.index <<= 8U;
    rng_stream draw(key);
    auto noise = at::empty({rows, 3});
    for (std::int64_t i = 0; i < noise.numel(); ++i)
      noise.mutable_data_ptr<float>()[i] = static_cast<float>(draw.normal());
    const auto flat = weights[k].clone().set_requires_grad(true);
    const auto h = at::linear(inputs[k].flatten(1), flat.narrow(0, 0, 48).view({6, 8}), flat.narrow(0, 48, 6));
    const auto z = h.narrow(1, 0, 3) + h.narrow(1, 3, 3).clamp(-6, 3).exp() * noise;
    const auto expected = at::linear(z, flat.narrow(0, 54, 12).view({4, 3}), flat.narrow(0, 66, 4));
    CHECK(largest_difference(logits[k].contiguous(), expected.detach().contiguous()) < 1e-5);
    ((expected * d_logits[k]).sum() + (h * d_features[k]).sum()).backward();
    CHECK(largest_difference(gradients[k].contiguous(), flat.grad().contiguous()) < 1e-5);
  }
}

TEST_CASE("a pass without classes ends at the features", "[models]") {
  const auto net = sampling_net();
  const auto seen = net->forward(weights_for(*net), drawn({group, rows, 1, 1, 8}, 1), {}, nullptr, nullptr);
  CHECK_FALSE(seen.logits.defined());
  CHECK(seen.features.sizes() == at::IntArrayRef{group, rows, 6});
}

TEST_CASE("a net without a head, and a pass without classes, have the gradients of a loss on features", "[models]") {
  const auto inputs = drawn({group, rows, 1, 1, 7}, 1), d_features = drawn({group, rows, 100}, 2);
  for (const auto kind : {head_kind::none, head_kind::linear}) {
    auto made = kind_of("mlp");
    made->set_head(kind);
    const auto net = made->build({1, 1, 7}, 6).value();
    INFO(net->identity());
    CHECK(net->classes() == (kind == head_kind::none ? 0 : 6));
    CHECK(net->feature_width() == 100);
    const auto weights = weights_for(*net);
    tape kept;
    const training_mode training;
    const auto seen = net->forward(weights, inputs, {}, &kept, &training);
    CHECK_FALSE(seen.logits.defined());
    auto gradients = at::full(weights.sizes(), 77.0F);
    net->backward(weights, kept, {}, {}, d_features, {}, {gradients});
    for (std::int64_t k = 0; k < group; ++k) {
      const auto flat = weights[k].clone().set_requires_grad(true);
      auto x =
          at::relu(at::linear(inputs[k].flatten(1), flat.narrow(0, 0, 1400).view({200, 7}), flat.narrow(0, 1400, 200)));
      x = at::relu(at::linear(x, flat.narrow(0, 1600, 20'000).view({100, 200}), flat.narrow(0, 21'600, 100)));
      (x * d_features[k]).sum().backward();
      CHECK(largest_difference(gradients[k].narrow(0, 0, 21'700).contiguous(),
                               flat.grad().narrow(0, 0, 21'700).contiguous()) < 1e-5);
      CHECK((gradients[k].narrow(0, 21'700, net->size() - 21'700) == 77.0F).all().item<bool>());
    }
  }
}
