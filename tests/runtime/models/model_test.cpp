#include <ATen/ATen.h> // before Catch2: both define CHECK, and the last one holds

#include "tests/support/learning.hpp"
#include <algorithm>
#include <cmath>
using namespace mneme;
using namespace mneme::test;

TEST_CASE("lenet has 61,706 parameters at 1x28x28 and 62,006 at 3x32x32", "[models]") {
  CHECK(net_of("lenet", {1, 28, 28}, 10)->size() == 61'706);
  CHECK(net_of("lenet", {3, 32, 32}, 10)->size() == 62'006);
}

TEST_CASE("mlp is 784-200-100-10 by default, and linear is its head alone", "[models]") {
  const auto mlp = net_of("mlp", {1, 28, 28}, 10);
  CHECK(mlp->size() == 784 * 200 + 200 + 200 * 100 + 100 + 100 * 10 + 10);
  CHECK(mlp->identity() == "mlp 784-200-100-10");
  CHECK(mlp->feature_width() == 100);
  CHECK(mlp->classes() == 10);
  const auto linear = net_of("linear", {3, 4, 5}, 7);
  CHECK(linear->size() == 60 * 7 + 7);
  CHECK(linear->feature_width() == 60);
}

TEST_CASE("parameters are named and shaped as in PyTorch and lie without gaps", "[models]") {
  std::vector<std::string> shown;
  std::int64_t end = 0;
  const auto lenet = net_of("lenet", {1, 28, 28}, 10);
  for (const auto& one : lenet->layout()) {
    std::string text = one.name;
    for (const auto extent : one.shape)
      text += " " + std::to_string(extent);
    shown.push_back(text + (one.head ? " head" : ""));
    CHECK(one.offset == end);
    end += one.size;
  }
  CHECK(shown == std::vector<std::string>{"conv1.weight 6 1 5 5", "conv1.bias 6", "conv2.weight 16 6 5 5",
                                          "conv2.bias 16", "fc1.weight 120 400", "fc1.bias 120", "fc2.weight 84 120",
                                          "fc2.bias 84", "fc3.weight 10 84 head", "fc3.bias 10 head"});
  const auto mlp = mlp_of({5, 4, 3}, 2, 2);
  CHECK(mlp->layout().front().name == "fc1.weight");
  CHECK(mlp->layout().back().name == "fc4.bias");
}

TEST_CASE("lenet refuses images that its poolings would use up", "[models]") {
  CHECK(kind_of("lenet")->build({1, 16, 16}, 10).has_value());
  const auto refused = kind_of("lenet")->build({1, 1, 64}, 10);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error() == "lenet needs images of at least 16 x 16 pixels, not 1 x 64; mlp takes any shape");
}

TEST_CASE("initial weights are uniform below 1 / sqrt(fan in), and keyed by seed and name", "[models]") {
  const auto net = mlp_of({50}, 64, 10);
  const auto first = initial_weights(*net, 3);
  CHECK(same_bits(first, initial_weights(*net, 3)));
  CHECK_FALSE(same_bits(first, initial_weights(*net, 4)));
  for (const auto& one : net->layout()) {
    const double bound = one.name.starts_with("fc1") ? 1.0 / 8.0 : 1.0 / std::sqrt(50.0);
    double largest = 0.0, squares = 0.0;
    for (std::int64_t i = one.offset; i < one.offset + one.size; ++i) {
      const double value = first.const_data_ptr<float>()[i];
      largest = std::max(largest, std::abs(value));
      squares += value * value;
    }
    INFO(one.name);
    CHECK(largest <= bound);
    if (one.size >= 500) { // variance of U(-b, b) is b^2 / 3
      CHECK(largest > 0.98 * bound);
      CHECK(std::abs(squares / static_cast<double>(one.size) / (bound * bound / 3) - 1.0) < 0.1);
    }
  }
  // The head of another net with the same names draws the same numbers, wherever it lies.
  const auto wider = mlp_of({50}, 128, 10);
  const auto& head = net->layout()[2];
  const auto& same_head = wider->layout()[2];
  REQUIRE(head.name == same_head.name);
  CHECK(same_bits(first.narrow(0, head.offset, head.size),
                  initial_weights(*wider, 3).narrow(0, same_head.offset, same_head.size)));
}

TEST_CASE("trained segments are the body and the classes of the loss", "[models]") {
  const auto net = mlp_of({4}, 3, 10); // fc1: 12 + 4; fc2.weight 10 x 4 from 16, fc2.bias from 56
  const auto all = trained_segments(*net, {0, 10}, false);
  REQUIRE(all.size() == 1);
  CHECK(all[0].offset == 0);
  CHECK(all[0].size == net->size());
  const auto some = trained_segments(*net, {2, 5}, false);
  REQUIRE(some.size() == 3);
  CHECK((some[0].offset == 0 && some[0].size == 16));
  CHECK((some[1].offset == 24 && some[1].size == 12));
  CHECK((some[2].offset == 58 && some[2].size == 3));
  const auto head = trained_segments(*net, {0, 5}, true);
  REQUIRE(head.size() == 2);
  CHECK((head[0].offset == 16 && head[0].size == 20));
  CHECK((head[1].offset == 56 && head[1].size == 5));
}

TEST_CASE("identity shows the pixels and has nothing to train", "[models]") {
  const auto net = net_of("identity", {3, 4, 5}, 10);
  CHECK(net->size() == 0);
  CHECK(net->classes() == 0);
  CHECK(net->feature_width() == 60);
  const auto inputs = at::zeros({1, 2, 3, 4, 5});
  inputs.mutable_data_ptr<float>()[61] = 5.0F;
  const auto seen = net->forward(at::zeros({1, 0}), inputs, {0, 10}, nullptr);
  CHECK(seen.features.sizes() == at::IntArrayRef{1, 2, 60});
  CHECK(seen.features.const_data_ptr<float>()[61] == 5.0F);
  CHECK_FALSE(seen.logits.defined());
}

TEST_CASE("models are listed by name", "[models]") {
  std::vector<std::string> names;
  for (const auto& entry : models())
    names.push_back(entry.name);
  CHECK(std::is_sorted(names.begin(), names.end()));
  for (const auto* known : {"identity", "lenet", "linear", "mlp"}) // tests may add some
    CHECK(std::count(names.begin(), names.end(), known) == 1);
}
