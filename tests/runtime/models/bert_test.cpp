// A transformer for token rows, compared with the library transformers (tools/research/export/bert_reference.py), and
// its padding.
#include "runtime/models/attention_layer.hpp"
#include "runtime/models/network.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/support/golden.hpp"
#include "tests/support/layer_functions.hpp"
#include "tests/support/nets.hpp"
using namespace mneme;
using namespace mneme::test;

// Axes: K models, B rows, T tokens.

namespace {

constexpr std::int64_t nets = 3, rows = 4, tokens = 6, vocabulary = 11, classes = 5;
const model_keys small{{"width", "12"}, {"depth", "2"}, {"heads", "3"}, {"mlp", "10"}, {"padding", "0"}};

model_ref net_for(const model_keys& keys, std::int64_t known, std::int64_t length, std::int64_t wanted = classes) {
  auto kind = kind_with("bert", keys);
  kind->set_tokens(known);
  return kind->build({1, 1, length}, wanted).value();
}
model_ref small_net() { return net_for(small, vocabulary, tokens); }

at::Tensor weights_for(const model& net) {
  std::vector<at::Tensor> made;
  for (std::uint64_t k = 0; k < nets; ++k)
    made.push_back(initial_weights(net, k) + 0.1 * drawn({net.size()}, 50 + k));
  return at::stack(made);
}

/// [K, B, 1, 1, T]: the first row of a model has no padding, the last one only padding.
at::Tensor texts() {
  auto made = at::zeros({nets, rows, 1, 1, tokens});
  rng_stream draw({.seed = 8, .purpose = first_method_purpose});
  for (std::int64_t row = 0; row < nets * rows; ++row)
    for (std::int64_t t = 0; t < tokens - row % rows * 2; ++t)
      made.mutable_data_ptr<float>()[row * tokens + t] = static_cast<float>(1 + draw.below(vocabulary - 1));
  return made;
}

constexpr class_range some{1, 4};

struct passed {
  at::Tensor features, logits, gradients;
};
passed by_hand(const model& net, const at::Tensor& weights, const at::Tensor& text) {
  tape kept;
  const auto own = weights.clone();
  const auto seen = net.forward(own, text, some, &kept);
  passed found{
      .features = seen.features.clone(), .logits = seen.logits.clone(), .gradients = at::full(weights.sizes(), 77.0F)};
  net.backward(own, kept, some, drawn(seen.logits.sizes(), 2), drawn(seen.features.sizes(), 3), {}, {found.gradients});
  return found;
}
at::Tensor loss_of(const function_results& seen) {
  return (seen.logits * drawn(seen.logits.sizes(), 2).to(seen.logits.options())).sum() +
         (seen.features * drawn(seen.features.sizes(), 3).to(seen.logits.options())).sum();
}

} // namespace

TEST_CASE("bert equals the library transformers, with padding masked", "[models][golden]") {
  at::set_num_threads(1);
  for (const auto* const name : {"bert", "bert_tiny", "bert_whole_rows"}) {
    INFO(name);
    const auto record = golden_record("transformers/" + std::string(name));
    model_keys keys;
    for (const auto& [key, value] : record["keys"].items())
      keys.emplace_back(key, value);
    const auto text = record["tokens"].get<std::vector<std::vector<float>>>();
    const auto length = std::ssize(text[0]), count = std::ssize(text);
    const auto net = net_for(keys, record["vocabulary"], length, record["classes"]);
    CHECK(net->size() == record["parameters"]);
    auto flat = at::zeros({net->size()});
    for (const auto& parameter : net->layout())
      put_as_in_files(flat, parameter, made_values(parameter.name, parameter.shape));
    auto inputs = at::empty({1, count, 1, 1, length});
    for (std::int64_t row = 0; row < count; ++row)
      inputs[0][row][0][0].copy_(floats(text[static_cast<std::size_t>(row)]));

    tape kept;
    const class_range every{0, record["classes"]};
    const auto seen = net->forward(flat.unsqueeze(0), inputs, every, &kept);
    auto d_logits = at::softmax(seen.logits, 2);
    for (std::int64_t row = 0; row < count; ++row) {
      const auto i = static_cast<std::size_t>(row);
      check_summary("features", seen.features[0][row], record["features"][i], 1e-5);
      const auto logits = record["logits"][i].get<std::vector<float>>();
      CHECK(largest_difference(seen.logits[0][row].contiguous(), floats(logits)) < 1e-5);
      d_logits[0][row][row * 7 % every.high] -= 1.0;
    }
    auto gradients = at::zeros({1, net->size()});
    net->backward(flat.unsqueeze(0), kept, every, d_logits / static_cast<double>(count), {}, {}, {gradients});
    CHECK(record["gradients"].size() == net->layout().size());
    for (const auto& parameter : net->layout())
      check_summary(parameter.name, as_in_files(gradients[0], parameter), record["gradients"][parameter.name], 1e-4,
                    1e-2);
  }
}

TEST_CASE("bert as a function equals the kernel passes, with second derivatives", "[models]") {
  at::set_num_threads(1);
  const auto net = small_net();
  const auto weights = weights_for(*net), text = texts();
  const auto expected = by_hand(*net, weights, text);
  const auto followed = weights.clone().set_requires_grad(true);
  const auto seen = net->differentiable(followed, text, some, {});
  CHECK(largest_difference(seen.features.detach().contiguous(), expected.features) < 1e-5);
  CHECK(largest_difference(seen.logits.detach().contiguous(), expected.logits) < 1e-5);
  const auto slope = torch::autograd::grad({loss_of(seen)}, {followed})[0];
  for (const auto& piece : trained_segments(*net, some))
    CHECK(largest_difference(slope.narrow(1, piece.offset, piece.size).contiguous(),
                             expected.gradients.narrow(1, piece.offset, piece.size).contiguous()) < 1e-4);

  const auto start = weights.narrow(0, 0, 1).to(at::kDouble), along = drawn(start.sizes(), 4).to(at::kDouble);
  const auto words = text.narrow(0, 0, 1).narrow(1, 0, 3).to(at::kDouble); // padding has no gradient
  const auto derivative_at = [&](double step, bool again) {
    const auto own = (start + step * along).set_requires_grad(true);
    const auto loss = loss_of(net->differentiable(own, words, some, {}));
    const auto first = (torch::autograd::grad({loss}, {own}, {}, true, true)[0] * along).sum();
    return again ? (torch::autograd::grad({first}, {own})[0] * along).sum().item<double>() : first.item<double>();
  };
  const double difference = (derivative_at(1e-6, false) - derivative_at(-1e-6, false)) / 2e-6;
  CHECK(std::abs(derivative_at(0.0, true) - difference) < 1e-5 * std::max(1.0, std::abs(difference)));
}

TEST_CASE("bert gives a client's text the same bits alone and in any group", "[models]") {
  at::set_num_threads(1);
  const auto net = small_net();
  const auto weights = weights_for(*net), text = texts();
  const auto together = by_hand(*net, weights, text);
  const auto followed = [&](std::int64_t first, std::int64_t count) {
    const auto own = weights.narrow(0, first, count).clone().set_requires_grad(true);
    const auto seen = net->differentiable(own, text.narrow(0, first, count), some, {});
    return torch::autograd::grad({seen.logits.square().sum()}, {own})[0];
  };
  const auto stacked = followed(0, nets);
  for (std::int64_t k = 0; k < nets; ++k) {
    const auto own = text.narrow(0, k, 1);
    tape kept;
    const auto start = weights.narrow(0, k, 1).clone();
    const auto seen = net->forward(start, own, some, &kept);
    auto gradients = at::full(start.sizes(), 77.0F);
    net->backward(start, kept, some, drawn({nets, rows, 3}, 2).narrow(0, k, 1).clone(),
                  drawn({nets, rows, 12}, 3).narrow(0, k, 1).clone(), {}, {gradients});
    CHECK(same_bits(seen.logits[0], together.logits[k]));
    CHECK(same_bits(gradients[0], together.gradients[k]));
    CHECK(same_bits(followed(k, 1)[0], stacked[k]));
  }
}

TEST_CASE("padding does not affect the tokens before it and has no gradient", "[models]") {
  at::set_num_threads(1);
  auto keys = small;
  keys.emplace_back("positions", "9");
  const auto shorter = net_for(keys, vocabulary, tokens), longer = net_for(keys, vocabulary, 9);
  const auto weights = weights_for(*shorter), text = texts();
  const auto filled = at::constant_pad_nd(text, {0, 9 - tokens});
  const auto expected = by_hand(*shorter, weights, text), found = by_hand(*longer, weights, filled);
  CHECK(largest_difference(found.features, expected.features) < 1e-5);
  CHECK(largest_difference(found.gradients, expected.gradients) < 1e-4);
  const auto &words = shorter->layout()[0], &positions = shorter->layout()[1];
  REQUIRE(words.name == "bert.embeddings.word_embeddings.weight");
  REQUIRE(positions.shape == std::vector<std::int64_t>{9, 12});
  CHECK(expected.gradients.narrow(1, words.offset, 12).abs().max().item<float>() == 0.0F);
  CHECK(expected.gradients.narrow(1, positions.offset + 6 * 12, 3 * 12).abs().max().item<float>() == 0.0F);

  // Without a mask, the padding's vector affects all tokens.
  keys[4] = {"padding", "-1"};
  const auto seeing = net_for(keys, vocabulary, tokens);
  auto moved = weights.clone();
  moved.narrow(1, words.offset, 12).add_(1.0);
  const auto logits_of = [&](const model_ref& net, const at::Tensor& with) {
    return net->forward(with, text, some, nullptr).logits.narrow(1, 1, 1).contiguous(); // two tokens are padding
  };
  CHECK(same_bits(logits_of(shorter, weights), logits_of(shorter, moved)));
  CHECK_FALSE(same_bits(logits_of(seeing, weights), logits_of(seeing, moved)));
}

TEST_CASE("attention kernels with masked tokens equal LibTorch's operators", "[models]") {
  at::set_num_threads(1);
  for (const std::int64_t queries : {tokens, std::int64_t{1}}) {
    const attention_layer layer({.tokens = tokens, .queries = queries, .heads = 3, .channels = 12, .padding = 0});
    const auto in = drawn({nets, rows, tokens * 36}, 1), d_out = drawn({nets, rows, queries * 12}, 2);
    auto inputs = texts().flatten(2);
    inputs[0][0].zero_(); // only padding
    kernels::scratch memory;
    const auto none = at::zeros({nets, 1});
    const layer_pass pass{none, nets, rows, {}, nullptr, &memory, &inputs};
    auto ours = at::empty({nets, rows, queries * 12});
    auto d_ours = at::empty_like(in), d = d_out.clone();
    at::Tensor kept, unused = at::zeros({nets, 1});
    layer.forward(pass, in, ours, kept);
    layer.backward(pass, {.in = in, .out = ours, .kept = kept, .d_out = d, .d_in = &d_ours}, {unused});
    const auto theirs = run_function(layer, none, in, d_out, {}, nullptr, &inputs);
    CHECK(largest_difference(ours, theirs.out) < 1e-6);
    CHECK(largest_difference(d_ours, theirs.d_in) < 1e-6);
    CHECK(ours[0][0].abs().max().item<float>() == 0.0F);
    CHECK(ours.abs().max().item<float>() > 0.1F);
  }
}

TEST_CASE("bert refuses invalid inputs and settings with a reason", "[models]") {
  CHECK(kind_of("bert")->reads_tokens());
  const auto refusal = [](const model_keys& keys, std::int64_t known, shape3 shape) {
    auto kind = kind_with("bert", keys);
    kind->set_tokens(known);
    return kind->build(shape, classes).error();
  };
  CHECK(refusal({}, 0, {3, 8, 8}) ==
        "bert reads rows of tokens, but these data have images of 3 x 8 x 8; vit reads images");
  CHECK(refusal({{"vocabulary", "10"}}, 11, {1, 1, 6}) ==
        "bert has a vocabulary of 10 tokens, but the data set has 11; expected a model.vocabulary of at least that, or "
        "0 for the data set's");
  CHECK(refusal({{"positions", "5"}}, 11, {1, 1, 6}) ==
        "bert has 5 position embeddings, but rows have 6 tokens; expected model.positions of at least that, or 0 for "
        "the length of rows");
  CHECK(refusal({{"padding", "11"}}, 11, {1, 1, 6}) ==
        "bert has 11 tokens, and model.padding = 11 is not one of them; expected a smaller number, or -1 for none");
  CHECK(refusal({{"heads", "3"}}, 11, {1, 1, 6}) ==
        "bert cannot split a width of 128 evenly over 3 heads; model.heads must divide model.width");
}
