// A net for tokens, compared with PyTorch's Embedding, LSTM and Linear with equal weights.
#include "runtime/models/network.hpp"
#include "runtime/models/token_embedding.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/support/nets.hpp"
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

// Axes: K models, B rows, T tokens.

namespace {

constexpr std::int64_t nets = 3, rows = 4, tokens = 6, vocabulary = 11;

std::unique_ptr<model_kind> kind_of_small_net(const model_keys& keys = {}) {
  auto chosen = keys;
  chosen.insert(chosen.begin(), {{"embedding", "5"}, {"hidden", "7"}});
  auto kind = kind_with("lstm", chosen);
  kind->set_tokens(vocabulary);
  return kind;
}
model_ref small_net() { return kind_of_small_net()->build({1, 1, tokens}, vocabulary).value(); }

at::Tensor weights_for(const model& net) {
  std::vector<at::Tensor> made;
  for (std::uint64_t k = 0; k < nets; ++k)
    made.push_back(initial_weights(net, k));
  return at::stack(made);
}

/// Tokens [K, B, 1, 1, T]; each row has a repeated token.
at::Tensor texts() {
  auto made = at::empty({nets, rows, 1, 1, tokens});
  rng_stream draw({.seed = 8, .purpose = first_method_purpose});
  for (std::int64_t i = 0; i < made.numel(); ++i)
    made.mutable_data_ptr<float>()[i] = static_cast<float>(draw.below(4) * 3);
  return made;
}

/// Logits by PyTorch's own layers.
at::Tensor reference(const model& net, const at::Tensor& flat, const at::Tensor& text) {
  const auto named = [&](const std::string& name) {
    for (const auto& parameter : net.layout())
      if (parameter.name == name)
        return as_in_files(flat, parameter);
    FAIL(name);
    return at::Tensor{};
  };
  const auto x = at::embedding(named("embedding.weight"), text.view({rows, tokens}).to(at::kLong));
  std::vector<at::Tensor> weights;
  for (const auto* const layer : {"0", "1"})
    for (const auto* const part : {"weight_ih_l", "weight_hh_l", "bias_ih_l", "bias_hh_l"})
      weights.push_back(named("lstm." + std::string(part) + layer));
  const auto start = at::zeros({2, rows, 7});
  const auto seen = at::lstm(x, {start, start}, weights, true, 2, 0.0, false, false, true);
  return at::linear(std::get<0>(seen).select(1, tokens - 1), named("fc.weight"), named("fc.bias"));
}

} // namespace

TEST_CASE("the character model has LEAF's parameters under PyTorch's names", "[models]") {
  auto kind = kind_of("lstm");
  kind->set_tokens(80);
  const auto net = kind->build({1, 1, 80}, 80).value();
  // 80 x 8; 4 x 256 x (8 + 256 + 2); 4 x 256 x (256 + 256 + 2); 80 x 257
  CHECK(net->size() == 640 + 272'384 + 526'336 + 20'560);
  std::vector<std::string> names;
  for (const auto& parameter : net->layout())
    names.push_back(parameter.name);
  CHECK(names == std::vector<std::string>{"embedding.weight", "lstm.weight_ih_l0", "lstm.weight_hh_l0",
                                          "lstm.bias_ih_l0", "lstm.bias_hh_l0", "lstm.weight_ih_l1",
                                          "lstm.weight_hh_l1", "lstm.bias_ih_l1", "lstm.bias_hh_l1", "fc.weight",
                                          "fc.bias"});
  CHECK(net->feature_width() == 256);
}

TEST_CASE("logits and gradients of an LSTM equal PyTorch's", "[models]") {
  at::set_num_threads(1);
  const auto net = small_net();
  const auto weights = weights_for(*net), text = texts(), d_logits = drawn({nets, rows, 8}, 2);
  const class_range classes{2, 10};
  tape kept;
  const training_mode training;
  const auto logits = net->forward(weights, text, classes, &kept, &training).logits.clone();
  auto gradients = at::full(weights.sizes(), 77.0F);
  net->backward(weights, kept, classes, d_logits, {}, {}, {gradients});
  auto stepped = weights.clone();
  (void)net->forward(stepped, text, classes, &kept, &training);
  net->backward(stepped, kept, classes, d_logits, {}, {}, {stepped, -0.5F, true});
  for (std::int64_t k = 0; k < nets; ++k) {
    const auto flat = weights[k].clone().set_requires_grad(true);
    const auto expected = reference(*net, flat, text[k]).narrow(1, 2, 8);
    CHECK(largest_difference(logits[k].contiguous(), expected.detach().contiguous()) < 1e-6);
    (expected * d_logits[k]).sum().backward();
    for (const auto& piece : trained_segments(*net, classes)) {
      const auto ours = gradients[k].narrow(0, piece.offset, piece.size).contiguous();
      CHECK(largest_difference(ours, flat.grad().narrow(0, piece.offset, piece.size).contiguous()) < 2e-6);
      CHECK(largest_difference(stepped[k].narrow(0, piece.offset, piece.size).contiguous(),
                               (weights[k].narrow(0, piece.offset, piece.size) - 0.5 * ours).contiguous()) < 2e-6);
    }
  }
}

TEST_CASE("a client's text gives the same bits alone and in any group", "[models]") {
  at::set_num_threads(1);
  const auto net = small_net();
  const auto weights = weights_for(*net), text = texts(), d_logits = drawn({nets, rows, vocabulary}, 2);
  const auto gradients_of = [&](std::int64_t first, std::int64_t count) {
    const auto own = weights.narrow(0, first, count).clone();
    tape kept;
    const training_mode training;
    (void)net->forward(own, text.narrow(0, first, count), {0, vocabulary}, &kept, &training);
    auto made = at::zeros_like(own);
    net->backward(own, kept, {0, vocabulary}, d_logits.narrow(0, first, count).clone(), {}, {}, {made});
    return made;
  };
  const auto by_function = [&](std::int64_t first, std::int64_t count) {
    const auto own = weights.narrow(0, first, count).clone().set_requires_grad(true);
    const auto seen = net->differentiable(own, text.narrow(0, first, count), {0, vocabulary}, {});
    return torch::autograd::grad({(seen.logits * d_logits.narrow(0, first, count)).sum()}, {own})[0];
  };
  const auto together = gradients_of(0, nets), followed = by_function(0, nets);
  for (std::int64_t k = 0; k < nets; ++k) {
    CHECK(same_bits(gradients_of(k, 1)[0], together[k]));
    CHECK(same_bits(by_function(k, 1)[0], followed[k]));
    CHECK(largest_difference(followed[k].contiguous(), together[k].contiguous()) < 2e-6);
  }
}

TEST_CASE("second derivatives of an LSTM equal finite differences in float64", "[models]") {
  const auto net = small_net();
  const auto start = weights_for(*net).narrow(0, 0, 1).to(at::kDouble), along = drawn(start.sizes(), 3).to(at::kDouble);
  const auto text = texts().narrow(0, 0, 1);
  const auto derivative_at = [&](double step, bool again) {
    const auto own = (start + step * along).set_requires_grad(true);
    const auto seen = net->differentiable(own, text.to(at::kDouble), {0, vocabulary}, {});
    const auto slope = (torch::autograd::grad({seen.logits.square().sum()}, {own}, {}, true, true)[0] * along).sum();
    return again ? (torch::autograd::grad({slope}, {own})[0] * along).sum().item<double>() : slope.item<double>();
  };
  const double difference = (derivative_at(1e-6, false) - derivative_at(-1e-6, false)) / 2e-6;
  CHECK(std::abs(derivative_at(0.0, true) - difference) < 1e-5 * std::max(1.0, std::abs(difference)));
}

TEST_CASE("a number that is no token is refused with a reason", "[models]") {
  CHECK(token_of(10.0F, 11) == 10);
  for (const float wrong : {11.0F, -1.0F, 0.5F, std::numeric_limits<float>::quiet_NaN()})
    CHECK_THROWS_WITH(token_of(wrong, 11),
                      ContainsSubstring("is not a token of this net; expected integers from 0 to 10"));
  CHECK(kind_of("lstm")->reads_tokens());
  CHECK_FALSE(kind_of("mlp")->reads_tokens());
  CHECK(kind_of_small_net()->build({3, 8, 8}, 4).error() ==
        "lstm reads rows of tokens, but these data have images of 3 x 8 x 8; mlp accepts any shape");
  CHECK(kind_of("lstm")->build({1, 1, 6}, 4).error() ==
        "lstm reads rows of tokens, but these data have images of 1 x 1 x 6; mlp accepts any shape");
  CHECK(kind_of_small_net({{"vocabulary", "10"}})->build({1, 1, tokens}, 4).error() ==
        "lstm has a vocabulary of 10 tokens, but the data set has 11; expected a model.vocabulary of at least that, or "
        "0 for the data set's");
  CHECK(kind_of_small_net({{"vocabulary", "12"}})->build({1, 1, tokens}, 4).value()->identity() ==
        "lstm 6 tokens of 12, 5-2x7-4");
}
