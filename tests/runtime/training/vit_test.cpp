#include "runtime/models/patch_embedding.hpp"
#include "runtime/storage/parameters.hpp"
#include "runtime/training/executor.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/layer_functions.hpp"
#include "tests/support/learning.hpp"
#include <ATen/Parallel.h>
#include <algorithm>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

// Axes: K models, B rows, P weights.

namespace {

const shape3 images{2, 12, 10};
const model_keys plain{{"image", "12"}, {"patch", "4"}, {"width", "20"}, {"depth", "2"}, {"heads", "2"}};
model_keys adapted(const char* bottleneck = "3") {
  auto keys = plain;
  keys.emplace_back("adapter", bottleneck);
  return keys;
}

/// Number of weights in the parameters for which `counts` is true.
template <class Counts>
std::int64_t sum_of(const model& net, Counts counts) {
  std::int64_t total = 0;
  for (const auto& parameter : net.layout())
    total += counts(parameter) ? parameter.size : 0;
  return total;
}

bool is_adapter(const parameter& entry) { return entry.name.find(".adapter.") != std::string::npos; }

/// Initial weights with nonzero adapters, [P].
at::Tensor lively_weights(const model& net, std::uint64_t seed) {
  auto flat = initial_weights(net, seed);
  for (const auto& parameter : net.layout())
    if (is_adapter(parameter))
      flat.narrow(0, parameter.offset, parameter.size).copy_(0.3F * drawn({parameter.size}, seed + 1));
  return flat;
}

/// Clients with these numbers of rows and different initial weights.
std::vector<job> clients_of(const model_ref& net, const std::vector<std::int64_t>& rows, training_options options) {
  const auto source = drawn_data(40, images, net->classes());
  options.classes = {0, net->classes()};
  std::vector<job> jobs;
  for (std::uint64_t k = 0; k < rows.size(); ++k)
    jobs.push_back({.id = {{k}, 0, 0},
                    .request = train_job{.net = net,
                                         .start = weights_only(lively_weights(*net, k)),
                                         .samples = rows_from(source, static_cast<std::int64_t>(k), rows[k]),
                                         .options = options,
                                         .stream = {.seed = 1, .client = {static_cast<std::uint32_t>(k)}}}});
  return jobs;
}

std::vector<at::Tensor> trained_in_groups(const std::vector<job>& jobs, std::size_t width) {
  const auto runs = make_executor("cpu");
  std::vector<at::Tensor> weights;
  for (std::size_t first = 0; first < jobs.size(); first += width)
    for (const auto& output : runs->run(std::span(jobs).subspan(first, std::min(width, jobs.size() - first))))
      weights.push_back(weights_of(output).clone());
  return weights;
}

tensor_map without(const tensor_map& from, const std::string& part) {
  tensor_map rest;
  for (const auto& [name, value] : from)
    if (name.find(part) == std::string::npos)
      rest.put(name, value);
  return rest;
}

} // namespace

TEST_CASE("the base model at 224 pixels has timm's parameters, and adapters of 64 add 1,189,632", "[models]") {
  const auto net = net_of("vit", {3, 224, 224}, 10, {{"adapter", "64"}});
  CHECK(sum_of(*net, [](const auto& outcome) { return outcome.frozen; }) == 85'798'656);
  CHECK(sum_of(*net, is_adapter) == 1'189'632);
  CHECK(sum_of(*net, [](const auto& outcome) { return outcome.head; }) == 7'690);
  CHECK(net->feature_width() == 768);
  const auto bare = net_of("vit", {3, 32, 32}, 10, {{"image", "224"}});
  CHECK(sum_of(*bare, [](const auto& outcome) { return !outcome.head; }) == 85'798'656);
  CHECK(sum_of(*bare, [](const auto& outcome) { return outcome.frozen; }) == 0);
}

TEST_CASE("parameters of vit are named and shaped as in timm", "[models]") {
  const auto net =
      net_of("vit", images, 7,
             {{"image", "12"}, {"patch", "4"}, {"width", "20"}, {"depth", "1"}, {"heads", "2"}, {"adapter", "3"}});
  std::vector<std::string> shown;
  for (const auto& parameter : net->layout()) {
    shown.push_back(parameter.name);
    for (const auto extent : parameter.shape)
      shown.back().append(" ").append(std::to_string(extent));
  }
  CHECK(shown == std::vector<std::string>{"cls_token 1 1 20",
                                          "pos_embed 1 10 20",
                                          "patch_embed.proj.weight 20 2 4 4",
                                          "patch_embed.proj.bias 20",
                                          "blocks.0.norm1.weight 20",
                                          "blocks.0.norm1.bias 20",
                                          "blocks.0.attn.qkv.weight 60 20",
                                          "blocks.0.attn.qkv.bias 60",
                                          "blocks.0.attn.proj.weight 20 20",
                                          "blocks.0.attn.proj.bias 20",
                                          "blocks.0.norm2.weight 20",
                                          "blocks.0.norm2.bias 20",
                                          "blocks.0.mlp.fc1.weight 80 20",
                                          "blocks.0.mlp.fc1.bias 80",
                                          "blocks.0.mlp.fc2.weight 20 80",
                                          "blocks.0.mlp.fc2.bias 20",
                                          "blocks.0.adapter.down.weight 3 20",
                                          "blocks.0.adapter.down.bias 3",
                                          "blocks.0.adapter.up.weight 20 3",
                                          "blocks.0.adapter.up.bias 20",
                                          "norm.weight 20",
                                          "norm.bias 20",
                                          "head.weight 7 20",
                                          "head.bias 7"});
}

TEST_CASE("vit refuses patches and heads that do not fit, and its keys change its identity", "[models]") {
  const auto refusal = [](const model_keys& keys) {
    const auto made = kind_with("vit", keys)->build({3, 32, 24}, 10);
    return made ? std::string{} : made.error();
  };
  CHECK(refusal({{"patch", "8"}}).empty());
  CHECK(refusal({}) == "vit cannot cut images of 32 x 24 pixels into patches of 16; model.patch must divide both, "
                       "model.image resizes");
  CHECK_THAT(refusal({{"image", "30"}}), ContainsSubstring("30 x 30"));
  CHECK(refusal({{"patch", "8"}, {"heads", "5"}}) ==
        "vit cannot split a width of 768 evenly over 5 heads; model.heads must divide model.width");
  std::vector<std::string> names;
  for (const auto& keys : {plain, adapted(), adapted("4"), model_keys{{"patch", "2"}, {"width", "12"}},
                           model_keys{{"patch", "2"}, {"width", "12"}, {"heads", "6"}},
                           model_keys{{"patch", "2"}, {"width", "12"}, {"depth", "1"}},
                           model_keys{{"patch", "2"}, {"width", "12"}, {"image", "10"}}})
    names.push_back(net_of("vit", images, 3, keys)->identity());
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
}

TEST_CASE("adapters are bitwise the identity at the start, in both modes", "[models]") {
  at::set_num_threads(1);
  const auto with = net_of("vit", images, 5, adapted()), bare = net_of("vit", images, 5, plain);
  const auto inputs = drawn({1, 4, images[0], images[1], images[2]}, 1);
  const std::vector<rng_key> streams(1, key_for({.seed = 1}, purpose::dropout_mask));
  const training_mode training{streams};
  const auto expected = bare->forward(initial_weights(*bare, 3).unsqueeze(0), inputs, {0, 5}, nullptr);
  auto weights = initial_weights(*with, 3).unsqueeze(0);
  for (const auto* const mode : {static_cast<const training_mode*>(nullptr), &training}) {
    const auto seen = with->forward(weights, inputs, {0, 5}, nullptr, mode);
    CHECK(same_bits(seen.features, expected.features));
    CHECK(same_bits(seen.logits, expected.logits));
  }
  weights = lively_weights(*with, 3).unsqueeze(0);
  CHECK_FALSE(same_bits(with->forward(weights, inputs, {0, 5}, nullptr).features, expected.features));
}

TEST_CASE("clients of vit end with the same bits in groups of 1, 3 and 16", "[executor]") {
  at::set_num_threads(1);
  const std::vector<std::int64_t> rows{5, 3, 4, 0, 7, 1, 2, 6, 5, 5, 3, 4, 2, 7, 1, 5};
  for (const auto& options :
       {training_options{.batch_rows = 4}, training_options{.batch_rows = 3, .momentum = 0.9, .weight_decay = 0.01},
        training_options{.optimizer = optimizer_kind::adam, .batch_rows = 0}})
    for (const auto& keys : {plain, adapted()}) {
      const auto net = net_of("vit", images, 5, keys);
      INFO(net->identity());
      const auto jobs = clients_of(net, rows, options);
      const auto alone = trained_in_groups(jobs, 1), threes = trained_in_groups(jobs, 3),
                 together = trained_in_groups(jobs, 16);
      for (std::size_t k = 0; k < jobs.size(); ++k) {
        INFO("client " << k);
        CHECK(same_bits(alone[k], threes[k]));
        CHECK(same_bits(alone[k], together[k]));
      }
    }
}

TEST_CASE("with adapters the body keeps every bit, and all other parts train", "[executor]") {
  at::set_num_threads(1);
  const auto net = net_of("vit", images, 5, adapted());
  for (const auto& options : {training_options{.batch_rows = 4}, // gradients are applied to weights directly
                              training_options{.batch_rows = 4, .momentum = 0.9, .weight_decay = 0.1},
                              training_options{.optimizer = optimizer_kind::adamw, .weight_decay = 0.1}}) {
    const auto jobs = clients_of(net, {8}, options);
    const auto& start = std::get<train_job>(jobs[0].request).start->at(flat_weights);
    const auto end = trained_in_groups(jobs, 1)[0];
    for (const auto& parameter : net->layout()) {
      INFO(parameter.name);
      CHECK(same_bits(end.narrow(0, parameter.offset, parameter.size),
                      start.narrow(0, parameter.offset, parameter.size)) == parameter.frozen);
    }
  }
}

TEST_CASE("training only the head leaves adapters unchanged", "[executor]") {
  const auto net = net_of("vit", images, 5, adapted());
  const auto jobs = clients_of(net, {8}, {.batch_rows = 4, .trained = trainable_part::head});
  const auto& start = std::get<train_job>(jobs[0].request).start->at(flat_weights);
  const auto end = trained_in_groups(jobs, 1)[0];
  for (const auto& parameter : net->layout())
    CHECK(same_bits(end.narrow(0, parameter.offset, parameter.size),
                    start.narrow(0, parameter.offset, parameter.size)) == !parameter.head);
}

TEST_CASE("gradients of adapters and head equal finite differences with dropout", "[models]") {
  at::set_num_threads(1);
  const auto net = net_of("vit", images, 3, adapted());
  const auto weights = lively_weights(*net, 5).unsqueeze(0); // [1, P]
  const auto inputs = drawn({1, 4, images[0], images[1], images[2]}, 1), d_logits = drawn({1, 4, 3}, 2);
  const std::vector<rng_key> streams(1, key_for({.seed = 1}, purpose::dropout_mask));
  const training_mode training{streams};
  tape kept;
  (void)net->forward(weights, inputs, {0, 3}, &kept, &training);
  auto gradients = at::full({1, net->size()}, 77.0F);
  net->backward(weights, kept, {0, 3}, d_logits, {}, {}, {gradients});
  const auto value = [&](std::int64_t i, float change) {
    auto moved = weights.clone();
    moved.mutable_data_ptr<float>()[i] += change;
    return (net->forward(moved, inputs, {0, 3}, nullptr, &training).logits.to(at::kDouble) * d_logits)
        .sum()
        .item<double>();
  };
  for (const auto& parameter : net->layout())
    for (const auto i : {parameter.offset, parameter.offset + parameter.size / 2}) {
      INFO(parameter.name << ", element " << i - parameter.offset);
      const auto ours = static_cast<double>(gradients.const_data_ptr<float>()[i]);
      if (parameter.frozen) {
        CHECK(ours == 77.0);
        continue;
      }
      const float change = 5e-4F;
      const double difference = (value(i, change) - value(i, -change)) / (2.0 * change);
      CHECK(std::abs(ours - difference) < 1e-2 * std::max(1.0, std::abs(difference)));
    }
}

TEST_CASE("a frozen body passes gradients on as a trained one does", "[models]") {
  at::set_num_threads(1);
  const auto net = net_of("vit", images, 3, adapted());
  const auto weights = lively_weights(*net, 5).unsqueeze(0);
  const auto inputs = drawn({1, 4, images[0], images[1], images[2]}, 1), d_logits = drawn({1, 4, 3}, 2);
  tape kept;
  (void)net->forward(weights, inputs, {0, 3}, &kept);
  auto gradients = at::zeros_like(weights);
  net->backward(weights, kept, {0, 3}, d_logits, {}, {}, {gradients});
  auto stepped = weights.clone();
  (void)net->forward(stepped, inputs, {0, 3}, &kept);
  net->backward(stepped, kept, {0, 3}, d_logits, {}, {}, {stepped, -0.5F, true});
  CHECK(largest_difference(stepped, weights - 0.5F * gradients) < 1e-5);
}

TEST_CASE("images are resized like PyTorch's default", "[models]") {
  for (const auto& [height, width] : {std::pair<std::int64_t, std::int64_t>{20, 31}, {5, 3}, {9, 14}, {1, 1}}) {
    INFO("to " << height << " x " << width);
    const resize_layer layer({9, 14, 2}, height, width);
    const auto in = drawn({2, 3, 2 * 9 * 14}, 1), d_out = drawn({2, 3, 2 * height * width}, 2);
    const auto ours = run_function(layer, at::zeros({2, 1}), in, d_out).out;
    const auto expected = at::upsample_bilinear2d(in.view({6, 2, 9, 14}), {height, width}, false);
    CHECK(same_bits(ours, expected.reshape(ours.sizes())));
  }
}

TEST_CASE("tokens of an image are the class token and its patches", "[models]") {
  const patch_embedding_layer layer({.in = {6, 4, 2},
                                     .patch = 2,
                                     .channels = 3,
                                     .class_offset = 0,
                                     .position_offset = 3,
                                     .weight_offset = 30,
                                     .bias_offset = 60});
  const auto weights = drawn({2, 70}, 1), in = drawn({2, 3, 48}, 2);
  const auto ours = run_function(layer, weights, in, drawn({2, 3, 21}, 3)).out;
  for (std::int64_t k = 0; k < 2; ++k) {
    const auto flat = weights[k];
    const auto seen = at::conv2d(in[k].view({3, 2, 6, 4}), flat.narrow(0, 30, 24).view({3, 2, 2, 2}),
                                 flat.narrow(0, 60, 3), {2, 2}); // [B, D, 3, 2]
    const auto tokens =
        at::cat({flat.narrow(0, 0, 3).view({1, 1, 3}).expand({3, 1, 3}), seen.flatten(2).transpose(1, 2)}, 1) +
        flat.narrow(0, 3, 21).view({7, 3});
    CHECK(largest_difference(ours[k], tokens.contiguous()) < 1e-5);
  }
}

TEST_CASE("a pretrained file may lack adapters or have another head", "[models]") {
  const auto bare = net_of("vit", images, 1000, plain), net = net_of("vit", images, 5, adapted());
  const auto file = named_parameters(*bare, initial_weights(*bare, 1));
  const auto start = lively_weights(*net, 2);
  for (const auto& named : {file, without(file, "head.")}) {
    const auto flat = flat_parameters(*net, named, "vit.safetensors", &start);
    REQUIRE(flat);
    for (const auto& parameter : net->layout()) {
      INFO(parameter.name);
      const auto got = as_in_files(*flat, parameter);
      CHECK(at::equal(got, parameter.frozen ? file.at(parameter.name) : as_in_files(start, parameter)));
    }
  }
}

TEST_CASE("a pretrained file with some adapters must have all of them", "[models]") {
  const auto net = net_of("vit", images, 5, adapted());
  const auto start = lively_weights(*net, 2);
  const auto file = named_parameters(*net, lively_weights(*net, 1));
  REQUIRE(flat_parameters(*net, file, "f", &start));
  const auto flat = flat_parameters(*net, without(file, "blocks.1.adapter.up.bias"), "f", &start);
  REQUIRE_FALSE(flat);
  REQUIRE(flat.error().size() == 1);
  CHECK_THAT(flat.error()[0].text, ContainsSubstring("'blocks.1.adapter.up.bias' of shape [20] is missing"));
}

TEST_CASE("a cosine head accepts a pretrained file with a bias", "[models]") {
  const auto kind = kind_with("vit", plain);
  kind->set_head(head_kind::cosine);
  const auto net = kind->build(images, 5).value(), bare = net_of("vit", images, 5, plain);
  const auto start = initial_weights(*net, 2);
  const auto file = named_parameters(*bare, initial_weights(*bare, 1));
  REQUIRE(flat_parameters(*net, file, "f", &start));
  auto odd = file;
  odd.put("head_dist.weight", at::ones({5, 20}));
  const auto flat = flat_parameters(*net, odd, "f", &start);
  REQUIRE_FALSE(flat);
  CHECK_THAT(flat.error()[0].text, ContainsSubstring("'head_dist.weight'"));
}

TEST_CASE("position embeddings of another size are refused with both shapes", "[models]") {
  const auto net = net_of("vit", images, 5, plain);
  const auto start = initial_weights(*net, 2);
  auto file = named_parameters(*net, start);
  file.put("pos_embed", at::zeros({1, 197, 20}));
  const auto flat = flat_parameters(*net, file, "f", &start);
  REQUIRE_FALSE(flat);
  REQUIRE(flat.error().size() == 1);
  CHECK_THAT(flat.error()[0].text,
             ContainsSubstring("'pos_embed' has shape [1, 197, 20], but the model needs [1, 10, 20]"));
}
