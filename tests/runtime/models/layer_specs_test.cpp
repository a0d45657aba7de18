// Nets defined as layer lists, compared with built-in nets.
#include "runtime/models/layer_specs.hpp"
#include <ATen/ATen.h> // before Catch2: both define CHECK, and the last one wins
#include <ATen/Parallel.h>

#include "tests/support/nets.hpp"
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

model_ref listed(const std::string& layers, shape3 shape, std::int64_t classes) {
  auto net = kind_with("layers", {{"layers", layers}})->build(shape, classes);
  INFO((net ? "" : net.error()));
  REQUIRE(net);
  return *net;
}
std::string refusal(const std::string& layers, shape3 shape = {3, 8, 8}, std::int64_t tokens = 0) {
  auto kind = kind_with("layers", {{"layers", layers}});
  kind->set_tokens(tokens);
  const auto net = kind->build(shape, 10);
  return net ? "" : net.error();
}

/// Checks that one training step with equal weights, inputs and masks gives equal bits.
void check_equal(const std::string& layers, const std::string& name, shape3 shape, const model_keys& keys = {}) {
  INFO(name);
  at::set_num_threads(1);
  const std::int64_t models = 2, rows = 3, classes = 4;
  const auto own = listed(layers, shape, classes), of_zoo = net_of(name, shape, classes, keys);
  REQUIRE(own->size() == of_zoo->size());
  for (std::size_t i = 0; i < own->layout().size(); ++i) {
    CHECK(own->layout()[i].name == of_zoo->layout()[i].name);
    CHECK(own->layout()[i].shape == of_zoo->layout()[i].shape);
  }
  const auto start = initial_weights(*own, 5);
  CHECK(at::equal(start, initial_weights(*of_zoo, 5)));
  const auto inputs = at::randn({models, rows, shape[0] * shape[1] * shape[2]});
  const auto d_logits = at::randn({models, rows, classes});
  std::vector<rng_key> streams;
  for (std::uint32_t k = 0; k < models; ++k)
    streams.push_back({.seed = 9, .client = {k}});
  const training_mode training{.streams = streams};
  std::vector<at::Tensor> gradients, logits;
  for (const auto& net : {own, of_zoo}) {
    auto weights = start.repeat({models, 1});
    tape kept;
    logits.push_back(net->forward(weights, inputs, {0, classes}, &kept, &training).logits.clone());
    auto gradient = at::zeros_like(weights);
    net->backward(weights, kept, {0, classes}, d_logits.clone(), {}, {}, {gradient});
    gradients.push_back(gradient);
  }
  CHECK(at::equal(logits[0], logits[1]));
  CHECK(at::equal(gradients[0], gradients[1]));
  CHECK(gradients[0].abs().sum().item<float>() > 0.0F);
}

/// Block of two 3x3 convolutions with the names of the built-in net.
std::string block(const std::string& name, int width, int stride, const std::string& shortcut) {
  const auto filters = std::to_string(width), steps = std::to_string(stride);
  return name + ": residual [, " + name + ".conv1: conv " + filters + " 3x3 stride " + steps +
         " pad 1 no-bias he-normal, " + name + ".bn1: batch-norm, relu, " + name + ".conv2: conv " + filters +
         " 3x3 pad 1 no-bias he-normal, " + name + ".bn2: batch-norm, " +
         (shortcut.empty() ? "], relu, " : "] shortcut [, " + shortcut + ", ], relu, ");
}

} // namespace

TEST_CASE("lenet and cnn as layer lists have the bits of the built-in nets", "[layers]") {
  check_equal("conv1: conv 6 5x5 pad 2, relu, max-pool 2, conv2: conv 16 5x5, relu, max-pool 2, flatten, fc1: linear "
              "120, relu, fc2: linear 84, relu, fc3: linear classes",
              "lenet", {1, 28, 28});
  check_equal("conv1: conv 32 3x3, relu, conv2: conv 64 3x3, relu, max-pool 2, dropout 0.25, flatten, fc1: linear 128, "
              "relu, dropout 0.5, fc2: linear 4",
              "cnn", {3, 10, 9});
}

TEST_CASE("residual nets as layer lists have the bits of the built-in nets", "[layers]") {
  const std::string stem = "conv1: conv 16 3x3 pad 1 no-bias he-normal, bn1: batch-norm, relu, ";
  check_equal(stem + block("layer1.0", 16, 1, "") + block("layer2.0", 32, 2, "subsample 2 32") +
                  block("layer3.0", 64, 2, "subsample 2 64") + "global-avg-pool, fc: linear classes",
              "resnet8", {3, 8, 8});
  std::string deep = "conv1: conv 8 3x3 pad 1 no-bias he-normal, bn1: batch-norm, relu, ";
  for (int stage = 0; stage < 4; ++stage)
    for (int at = 0; at < 2; ++at) {
      const auto name = "layer" + std::to_string(stage + 1) + "." + std::to_string(at);
      const auto width = 8 << stage;
      const bool halves = stage > 0 && at == 0;
      deep += block(name, width, halves ? 2 : 1,
                    halves ? name + ".downsample.0: conv " + std::to_string(width) +
                                 " 1x1 stride 2 no-bias he-normal, " + name + ".downsample.1: batch-norm"
                           : "");
    }
  check_equal(deep + "global-avg-pool, fc: linear classes", "resnet18", {3, 9, 10}, {{"width", "8"}});
}

TEST_CASE("layers without names are named as in PyTorch's Sequential", "[layers]") {
  const auto net = listed("conv 4 3, batch-norm, relu, residual [, conv 4 1, ], flatten, linear classes", {3, 5, 5}, 2);
  std::vector<std::string> names;
  for (const auto& parameter : net->layout())
    names.push_back(parameter.name);
  CHECK(names == std::vector<std::string>{"0.weight", "0.bias", "1.weight", "1.bias", "3.body.0.weight",
                                          "3.body.0.bias", "5.weight", "5.bias", "1.running_mean", "1.running_var"});
  CHECK(net->feature_width() == 36);
}

TEST_CASE("tokens, patches and rows of numbers have their own layers", "[layers]") {
  auto kind = kind_with("layers", {{"layers", "embedding 6, lstm 5, last-token, linear classes"}});
  kind->set_tokens(11);
  CHECK(kind->reads_tokens());
  CHECK(kind->build({1, 1, 7}, 3).value()->layout().front().shape == std::vector<std::int64_t>{11, 6});
  const auto vit = listed("patch-embedding 4 12, residual [, layer-norm 1e-6, attention 3, ], residual [, layer-norm "
                          "1e-6, linear 24, gelu, linear 12, ], layer-norm 1e-6, first-token, linear classes",
                          {3, 8, 8}, 3);
  CHECK(vit->feature_width() == 12);
  CHECK_FALSE(kind_of("layers")->reads_tokens());
  CHECK(listed("linear 5, batch-norm, relu, linear classes", {1, 1, 9}, 3)->size() == 50 + 10 + 18 + 10);
}

TEST_CASE("a last block that computes only the first token equals one that computes all", "[layers]") {
  at::set_num_threads(1);
  const std::string begin = "patch-embedding 4 12, residual [, n1: layer-norm, a: attention 3",
                    rest = "residual [, n2: layer-norm, f: linear 24, gelu, g: linear 12, ], n: layer-norm, ",
                    head = "head: linear classes";
  const auto all = listed(begin + ", ], " + rest + "first-token, " + head, {3, 8, 8}, 3);
  const auto first = listed(begin + " first-token, ] shortcut [, first-token, ], " + rest + head, {3, 8, 8}, 3);
  REQUIRE(all->size() == first->size());
  for (std::size_t i = 0; i < all->layout().size(); ++i) {
    CHECK(all->layout()[i].name == first->layout()[i].name);
    CHECK(all->layout()[i].offset == first->layout()[i].offset);
  }
  const auto weights = initial_weights(*all, 5).repeat({2, 1});
  const auto inputs = at::randn({2, 4, 192}), d_logits = at::randn({2, 4, 3});
  const std::vector<rng_key> streams{{.seed = 9, .client = {0}}, {.seed = 9, .client = {1}}};
  const training_mode training{.streams = streams};
  std::vector<at::Tensor> logits, gradients;
  for (const auto& net : {all, first}) {
    tape kept;
    logits.push_back(net->forward(weights, inputs, {0, 3}, &kept, &training).logits.clone());
    gradients.push_back(at::zeros_like(weights));
    net->backward(weights, kept, {0, 3}, d_logits.clone(), {}, {}, {gradients.back()});
  }
  CHECK(at::allclose(logits[0], logits[1], 1e-5, 1e-6));
  CHECK(at::allclose(gradients[0], gradients[1], 1e-4, 1e-5));
  CHECK(gradients[0].abs().sum().item<float>() > 0.0F);
  CHECK_THAT(refusal("patch-embedding 4 12, attention 3 first-token, attention 3, linear classes"),
             ContainsSubstring("the input is rows of 12 numbers; expected tokens"));
}

TEST_CASE("a layer without a name does not take the name of another layer", "[layers]") {
  const auto net = listed(
      "residual [, conv 3 1x1, ], 2: conv 2 3x3, conv 2 1x1, 3: batch-norm, flatten, linear classes", {3, 4, 4}, 2);
  CHECK(net->layout()[0].name == "0.body.0.weight");
  CHECK(net->layout()[2].name == "2.weight");
  CHECK(net->layout()[4].name == "2_.weight");
  CHECK(net->layout()[6].name == "3.weight");
}

TEST_CASE("errors of a layer list name the layer and its input shape", "[layers]") {
  const auto head = std::string(", linear classes");
  CHECK_THAT(refusal("conv 32 3x3, flaten" + head),
             ContainsSubstring("model.layers[1] = \"flaten\": unknown layer 'flaten'; did you mean 'flatten'?"));
  CHECK_THAT(refusal("conv 3x3" + head),
             ContainsSubstring("model.layers[0] = \"conv 3x3\": found '3x3' as the number of filters; expected an "
                               "integer from 1 to 65536; expected \"conv FILTERS KERNEL [stride N]"));
  CHECK_THAT(refusal("conv 4 3x5" + head), ContainsSubstring("the kernel 3x5 is not square"));
  CHECK_THAT(refusal("conv 4 3x3 padding 1" + head), ContainsSubstring("'padding' is not an option of this layer"));
  CHECK_THAT(refusal("conv 4 3x3 pad" + head), ContainsSubstring("'pad' must be followed by an integer from 0 to 15"));
  CHECK_THAT(refusal("conv 4 9x9" + head),
             ContainsSubstring("a window of 9 x 9 does not fit into images of 3 x 8 x 8"));
  CHECK_THAT(refusal("conv 4 3x3, linear 5" + head),
             ContainsSubstring("the input is images of 4 x 6 x 6 (channels, height, width); expected flatten or "
                               "global-avg-pool before it"));
  CHECK_THAT(refusal("flatten, conv 4 3x3" + head),
             ContainsSubstring("the input is rows of 192 numbers; expected images"));
  CHECK_THAT(refusal("batch-norm" + head),
             ContainsSubstring("the input is images of 3 x 8 x 8 (channels, height, width); "
                               "expected flatten or global-avg-pool before it"));
  CHECK_THAT(refusal("relu, patch-embedding 4 12" + head),
             ContainsSubstring("expected images with sides that the patch divides"));
  CHECK_THAT(refusal("layer-norm, flatten" + head), ContainsSubstring("expected batch-norm or group-norm"));
  CHECK_THAT(refusal("residual [, relu, ], last-token" + head, {1, 1, 8}, 9),
             ContainsSubstring("the input is rows of 8 tokens; expected embedding before the first block"));
  CHECK_THAT(refusal("flatten, linear 7"),
             ContainsSubstring("the last layer has 7 rows, but the run has 10 classes; expected \"linear classes\""));
  CHECK_THAT(refusal("flatten, linear 7, relu"), ContainsSubstring("the net has no head"));
  CHECK_THAT(refusal("flatten, linear classes, relu"), ContainsSubstring("is the head; expected it as the last layer"));
  CHECK_THAT(refusal("conv 4 3x3 pad 1, residual [, conv 8 3x3 pad 1, ], flatten" + head),
             ContainsSubstring("model.layers[1] = \"residual [\": the block's layers end with images of 8 x 8 x 8") &&
                 ContainsSubstring("\"conv 8 1x1 stride N\""));
  CHECK_THAT(refusal("conv 4 3x3, residual [, conv 4 1x1"),
             ContainsSubstring("[1] = \"residual [\": the block is not closed"));
  CHECK_THAT(refusal("conv 4 3x3, ], residual [, ], flatten" + head),
             ContainsSubstring("[1] = \"]\": closes no block"));
  CHECK_THAT(refusal("a: flatten, a: linear classes"), ContainsSubstring("the name a occurs twice"));
  CHECK_THAT(refusal("conv 4 3x3, group-norm 3" + head), ContainsSubstring("4 channels do not divide into 3 groups"));
  CHECK_THAT(refusal("batch-norm momentum 1.5" + head),
             ContainsSubstring("'momentum' must be followed by a number from 0 to 1"));
  CHECK_THAT(refusal("batch-norm 1e-3 momentum" + head),
             ContainsSubstring("expected \"batch-norm [EPSILON] [momentum N]\""));
  CHECK_THAT(refusal("group-norm 3 2" + head), ContainsSubstring("found '2' as the epsilon; expected a number"));
  CHECK_THAT(refusal("dropout 1.5" + head, {1, 1, 8}), ContainsSubstring("a number from 0 to 0.999"));
  CHECK_THAT(refusal("linear 4" + head, {1, 1, 8}, 9),
             ContainsSubstring("the input is rows of 8 tokens; expected embedding"));
  CHECK_FALSE(parse_layers({}));
  CHECK_FALSE(parse_layers({"conv 4 3x3", ""}));
}
