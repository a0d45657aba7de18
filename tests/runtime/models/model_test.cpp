#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/nets.hpp"
#include <algorithm>
#include <catch2/matchers/catch_matchers.hpp>
#include <cmath>
using namespace mneme;
using namespace mneme::test;

namespace {

struct counts {
  std::int64_t trunk = 0, head = 0, statistics = 0;
  bool operator==(const counts&) const = default;
};
std::ostream& operator<<(std::ostream& out, const counts& counted) {
  return out << counted.trunk << " + " << counted.head << " + " << counted.statistics;
}
counts counts_of(const model& net) {
  counts counted;
  for (const auto& parameter : net.layout())
    (parameter.buffer ? counted.statistics : parameter.head ? counted.head : counted.trunk) += parameter.size;
  CHECK(counted.trunk + counted.head + counted.statistics == net.size());
  return counted;
}

} // namespace

TEST_CASE("lenet has 61,706 parameters at 1x28x28 and 62,006 at 3x32x32", "[models]") {
  CHECK(net_of("lenet", {1, 28, 28}, 10)->size() == 61'706);
  CHECK(net_of("lenet", {3, 32, 32}, 10)->size() == 62'006);
}

TEST_CASE("mlp has the layers 784-200-100-10 by default, and linear has only a head", "[models]") {
  const auto mlp = net_of("mlp", {1, 28, 28}, 10);
  CHECK(mlp->size() == 784 * 200 + 200 + 200 * 100 + 100 + 100 * 10 + 10);
  CHECK(mlp->identity() == "mlp 784-200-100-10");
  CHECK(mlp->feature_width() == 100);
  CHECK(mlp->classes() == 10);
  const auto linear = net_of("linear", {3, 4, 5}, 7);
  CHECK(linear->size() == 60 * 7 + 7);
  CHECK(linear->feature_width() == 60);
}

TEST_CASE("cnn has the benchmark's 1,626,442 parameters at 3x32x32", "[models]") {
  const auto net = net_of("cnn", {3, 32, 32}, 10);
  CHECK(net->size() == 1'626'442);
  CHECK(net->feature_width() == 128);
  CHECK(net->uses_random_numbers());
  CHECK_FALSE(net->couples_batch_rows());
}

TEST_CASE("resnet18 has torchvision's parameters", "[models]") {
  const model_keys cifar{{"stem", "cifar"}}, imagenet{{"stem", "imagenet"}};
  CHECK(counts_of(*net_of("resnet18", {3, 32, 32}, 100, cifar)) == counts{11'168'832, 513 * 100, 9'600});
  CHECK(counts_of(*net_of("resnet18", {3, 224, 224}, 1000, imagenet)) == counts{11'176'512, 513'000, 9'600});
  CHECK(11'176'512 + 513'000 == 11'689'512); // torchvision's count
  CHECK(counts_of(*net_of("resnet18", {3, 32, 32}, 7, {{"norm", "group"}})) == counts{11'168'832, 513 * 7, 0});
}

TEST_CASE("deep residual nets have torchvision's parameters", "[models]") {
  const auto deep = counts_of(*net_of("resnet50", {3, 224, 224}, 1000));
  CHECK(deep.head == 2'049'000);
  CHECK(deep.trunk + deep.head == 25'557'032);
  CHECK(deep.statistics == 2 * 26'560);
  const auto deepest = counts_of(*net_of("resnet152", {3, 224, 224}, 1000));
  CHECK(deepest.trunk + deepest.head == 60'192'808);
  CHECK(net_of("resnet50", {3, 224, 224}, 10)->feature_width() == 2048);
  const auto net = net_of("resnet50", {3, 32, 32}, 10);
  std::vector<std::string> names;
  for (const auto& parameter : net->layout())
    names.push_back(parameter.name);
  for (const auto* const known : {"layer1.0.conv3.weight", "layer1.0.bn3.running_var", "layer1.0.downsample.0.weight",
                                  "layer1.0.downsample.1.bias", "layer3.5.conv2.weight", "layer4.2.bn3.bias"})
    CHECK(std::count(names.begin(), names.end(), known) == 1);
  CHECK(std::count(names.begin(), names.end(), "layer1.1.downsample.0.weight") == 0);
}

TEST_CASE("the width of a residual net scales all its stages", "[models]") {
  const auto net = net_of("resnet18", {3, 32, 32}, 10, {{"width", "16"}});
  CHECK(net->identity() == "resnet18 cifar width 16 batch 3x32x32-10");
  CHECK(net->feature_width() == 128);
  CHECK(net->layout().front().shape == std::vector<std::int64_t>{16, 3, 3, 3});
  CHECK(net_of("resnet18", {3, 32, 32}, 10, {{"width", "64"}})->identity() == "resnet18 cifar batch 3x32x32-10");
}

TEST_CASE("a head of several layers is trained as the head, and only its last layer depends on the classes",
          "[models]") {
  const auto net = net_with_head("mlp", {1, 1, 13}, {9, 5}); // fc1, fc2, then head1 100 x 9, head2 9 x 5, fc3 5 x 6
  CHECK(net->identity() == "mlp 13-200-100-6 head 9-5");
  CHECK(net->feature_width() == 100);
  const auto head = trained_segments(*net, {2, 4}, parameter_choice::head_of(*net));
  REQUIRE(head.size() == 3);
  CHECK(head[0].size == 100 * 9 + 9 + 9 * 5 + 5);
  CHECK(head[1].size == 2 * 5);
  CHECK(head[2].size == 2);
  CHECK(trained_segments(*net, {}).back().size == 13 * 200 + 200 + 200 * 100 + 100);
}

TEST_CASE("the stem of resnet18 depends on the image size unless it is set", "[models]") {
  const auto stem_px = [](std::int64_t px, const model_keys& keys) {
    return net_of("resnet18", {3, px, px}, 2, keys)->layout().front().shape[2];
  };
  CHECK(stem_px(32, {}) == 3);
  CHECK(stem_px(64, {}) == 3);
  CHECK(stem_px(65, {}) == 7);
  CHECK(stem_px(32, {{"stem", "imagenet"}}) == 7);
  CHECK(stem_px(224, {{"stem", "cifar"}}) == 3);
}

TEST_CASE("resnet8 and resnet32 have the parameters counted by hand", "[models]") {
  // A stage of blocks with two 3x3 convolutions, each with scale and shift; the first block widens.
  const auto stage = [](std::int64_t in, std::int64_t out, std::int64_t blocks) {
    return 9 * in * out + (2 * blocks - 1) * 9 * out * out + 2 * blocks * 2 * out;
  };
  const auto trunk = [&](std::int64_t blocks) {
    return 9 * 3 * 16 + 2 * 16 + stage(16, 16, blocks) + stage(16, 32, blocks) + stage(32, 64, blocks);
  };
  const auto statistics = [](std::int64_t blocks) { return 2 * (16 + 2 * blocks * (16 + 32 + 64)); };
  CHECK(trunk(1) + 650 == 75'290);
  CHECK(trunk(5) + 650 == 464'154);
  CHECK(counts_of(*net_of("resnet8", {3, 32, 32}, 10)) == counts{trunk(1), 650, statistics(1)});
  CHECK(counts_of(*net_of("resnet32", {3, 32, 32}, 10)) == counts{trunk(5), 650, statistics(5)});
  const auto shortcuts = 16 * 32 + 2 * 32 + 32 * 64 + 2 * 64;
  CHECK(counts_of(*net_of("resnet32", {3, 32, 32}, 10, {{"shortcut", "conv1x1"}})) ==
        counts{trunk(5) + shortcuts, 650, statistics(5) + 2 * (32 + 64)});
}

TEST_CASE("parameters of residual nets are named as in torchvision, statistics last", "[models]") {
  const auto names_of = [](const model_ref& net) {
    std::vector<std::string> names;
    for (const auto& parameter : net->layout())
      names.push_back(parameter.name);
    return names;
  };
  const auto names = names_of(net_of("resnet8", {3, 32, 32}, 10, {{"shortcut", "conv1x1"}}));
  const auto begins_at = [&](const std::string& first) {
    const auto found = std::find(names.begin(), names.end(), first);
    REQUIRE(found != names.end());
    return std::vector<std::string>(found, std::min(found + 4, names.end()));
  };
  using all = std::vector<std::string>;
  CHECK(begins_at("conv1.weight") == all{"conv1.weight", "bn1.weight", "bn1.bias", "layer1.0.conv1.weight"});
  CHECK(begins_at("layer2.0.bn2.bias") == all{"layer2.0.bn2.bias", "layer2.0.downsample.0.weight",
                                              "layer2.0.downsample.1.weight", "layer2.0.downsample.1.bias"});
  CHECK(begins_at("fc.weight") == all{"fc.weight", "fc.bias", "bn1.running_mean", "bn1.running_var"});
  CHECK(names.back() == "layer3.0.downsample.1.running_var");
  for (const auto& name : names_of(net_of("resnet32", {3, 32, 32}, 10)))
    CHECK(name.find("downsample") == std::string::npos);
  for (const auto& name : names_of(net_of("resnet18", {3, 32, 32}, 10, {{"norm", "group"}})))
    CHECK(name.find("running") == std::string::npos);
}

TEST_CASE("keys that change a net's computation change its identity", "[models]") {
  const auto identity = [](const std::string& name, const model_keys& keys, std::int64_t px = 32) {
    return net_of(name, {3, px, px}, 10, keys)->identity();
  };
  CHECK(identity("resnet8", {}) == "resnet8 batch 3x32x32-10");
  CHECK(identity("resnet32", {{"shortcut", "conv1x1"}}) == "resnet32 conv1x1 batch 3x32x32-10");
  CHECK(identity("resnet18", {{"norm", "group"}, {"groups", "8"}}) == "resnet18 cifar group8 3x32x32-10");
  CHECK(identity("resnet18", {}, 96) == "resnet18 imagenet batch 3x96x96-10");
  std::vector<std::string> names;
  for (const auto* const name : {"resnet8", "resnet32", "resnet18"})
    for (const auto& keys :
         {model_keys{}, model_keys{{"norm", "group"}}, model_keys{{"norm", "group"}, {"groups", "4"}},
          std::string(name) == "resnet18" ? model_keys{{"stem", "imagenet"}} : model_keys{{"shortcut", "conv1x1"}}})
      names.push_back(identity(name, keys));
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
}

TEST_CASE("group norm reduces groups to a divisor of the channels with two channels each", "[models]") {
  const at::Tensor inputs = drawn({1, 1, 3, 5, 5}, 1);
  const auto features = [&](const char* groups) {
    const auto net = net_of("resnet8", {3, 5, 5}, 2, {{"norm", "group"}, {"groups", groups}});
    return net->forward(initial_weights(*net, 1).unsqueeze(0), inputs, {0, 2}, nullptr).features.clone();
  };
  CHECK(same_bits(features("5"), features("4"))); // 16, 32 and 64 channels are not divisible by 5
  CHECK_FALSE(same_bits(features("4"), features("2")));
  CHECK(same_bits(features("32"), features("64"))); // at most half the channels
}

TEST_CASE("convolutions before a normalization are initialized as by He et al.", "[models]") {
  const auto net = net_of("resnet18", {3, 32, 32}, 10);
  const auto weights = initial_weights(*net, 3);
  for (const auto& parameter : net->layout()) {
    const auto values = weights.narrow(0, parameter.offset, parameter.size).to(at::kDouble);
    INFO(parameter.name);
    if (parameter.shape.size() == 4) { // N(0, 2 / fan out)
      const auto expected = 2.0 / static_cast<double>(parameter.shape[0] * parameter.shape[2] * parameter.shape[3]);
      CHECK(std::abs((values * values).mean().item<double>() / expected - 1.0) < 0.1);
      CHECK(std::abs(values.mean().item<double>()) < 0.1 * std::sqrt(expected));
    } else if (!parameter.head) {
      const bool ones = parameter.name.ends_with(".weight") || parameter.name.ends_with(".running_var");
      CHECK((values == (ones ? 1.0 : 0.0)).all().item<bool>());
    }
  }
}

TEST_CASE("parameters are named and shaped as in PyTorch and contiguous", "[models]") {
  std::vector<std::string> shown;
  std::int64_t end = 0;
  const auto lenet = net_of("lenet", {1, 28, 28}, 10);
  for (const auto& parameter : lenet->layout()) {
    std::string text = parameter.name;
    for (const auto extent : parameter.shape)
      text.append(" ").append(std::to_string(extent));
    shown.push_back(text + (parameter.head ? " head" : ""));
    CHECK(parameter.offset == end);
    end += parameter.size;
  }
  CHECK(shown == std::vector<std::string>{"conv1.weight 6 1 5 5", "conv1.bias 6", "conv2.weight 16 6 5 5",
                                          "conv2.bias 16", "fc1.weight 120 400", "fc1.bias 120", "fc2.weight 84 120",
                                          "fc2.bias 84", "fc3.weight 10 84 head", "fc3.bias 10 head"});
  const auto mlp = mlp_of({5, 4, 3}, 2, 2);
  CHECK(mlp->layout().front().name == "fc1.weight");
  CHECK(mlp->layout().back().name == "fc4.bias");
}

TEST_CASE("lenet refuses images that are too small for its pooling", "[models]") {
  CHECK(kind_of("lenet")->build({1, 16, 16}, 10).has_value());
  const auto refused = kind_of("lenet")->build({1, 1, 64}, 10);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error() == "lenet needs images of at least 16 x 16 pixels, not 1 x 64; mlp accepts any shape");
}

TEST_CASE("residual nets refuse images that are too small for their stages", "[models]") {
  const auto refusal = [](const char* name, std::int64_t px, const model_keys& keys = {}) {
    const auto made = kind_with(name, keys)->build({3, px, 40}, 10);
    return made ? std::string{} : made.error();
  };
  CHECK(refusal("resnet8", 2) == "resnet8 needs images of at least 3 x 3 pixels, not 2 x 40; mlp accepts any shape");
  CHECK(refusal("resnet18", 4).starts_with("resnet18 cifar needs images of at least 5 x 5 pixels, not 4 x 40"));
  CHECK(refusal("resnet18", 16, {{"stem", "imagenet"}})
            .starts_with("resnet18 imagenet needs images of at least 17 x 17 pixels, not 16 x 40"));
  CHECK(refusal("resnet32", 3).empty());
  CHECK(refusal("resnet18", 5).empty());
  CHECK(refusal("resnet18", 17, {{"stem", "imagenet"}}).empty());
  CHECK(kind_of("cnn")->build({3, 5, 6}, 10).error() ==
        "cnn needs images of at least 6 x 6 pixels, not 5 x 6; mlp accepts any shape");
}

TEST_CASE("initial weights are uniform below 1 / sqrt(fan in) and keyed by seed and name", "[models]") {
  const auto net = mlp_of({50}, 64, 10);
  const auto first = initial_weights(*net, 3);
  CHECK(same_bits(first, initial_weights(*net, 3)));
  CHECK_FALSE(same_bits(first, initial_weights(*net, 4)));
  for (const auto& parameter : net->layout()) {
    const double bound = parameter.name.starts_with("fc1") ? 1.0 / 8.0 : 1.0 / std::sqrt(50.0);
    double largest = 0.0, squares = 0.0;
    for (std::int64_t i = parameter.offset; i < parameter.offset + parameter.size; ++i) {
      const double value = first.const_data_ptr<float>()[i];
      largest = std::max(largest, std::abs(value));
      squares += value * value;
    }
    INFO(parameter.name);
    CHECK(largest <= bound);
    if (parameter.size >= 500) { // variance of U(-b, b) is b^2 / 3
      CHECK(largest > 0.98 * bound);
      CHECK(std::abs(squares / static_cast<double>(parameter.size) / (bound * bound / 3) - 1.0) < 0.1);
    }
  }
  // The head of another net with the same names gets the same random numbers, at any offset.
  const auto wider = mlp_of({50}, 128, 10);
  const auto& head = net->layout()[2];
  const auto& same_head = wider->layout()[2];
  REQUIRE(head.name == same_head.name);
  CHECK(same_bits(first.narrow(0, head.offset, head.size),
                  initial_weights(*wider, 3).narrow(0, same_head.offset, same_head.size)));
}

TEST_CASE("trained segments are the body and the classes of the loss", "[models]") {
  const auto net = mlp_of({4}, 3, 10); // fc1: 12 + 4; fc2.weight 10 x 4 from 16, fc2.bias from 56
  const auto segments = trained_segments(*net, {0, 10});
  REQUIRE(segments.size() == 1);
  CHECK(segments[0].offset == 0);
  CHECK(segments[0].size == net->size());
  const auto some = trained_segments(*net, {2, 5});
  REQUIRE(some.size() == 3);
  CHECK((some[0].offset == 0 && some[0].size == 16));
  CHECK((some[1].offset == 24 && some[1].size == 12));
  CHECK((some[2].offset == 58 && some[2].size == 3));
  const auto head = trained_segments(*net, {0, 5}, parameter_choice::head_of(*net));
  REQUIRE(head.size() == 2);
  CHECK((head[0].offset == 16 && head[0].size == 20));
  CHECK((head[1].offset == 56 && head[1].size == 5));
  const auto body = trained_segments(*net, {0, 5}, parameter_choice::body_of(*net));
  REQUIRE(body.size() == 1);
  CHECK((body[0].offset == 0 && body[0].size == 16));
}

TEST_CASE("layers are selected by name, or by the part of it before a dot", "[models]") {
  const auto net = net_of("resnet8", {3, 8, 8}, 5);
  const auto chosen = [&](const std::vector<std::string>& names) {
    const auto choice = parameter_choice::layers_of(*net, names);
    std::vector<std::string> found;
    for (std::size_t i = 0; i < net->layout().size(); ++i)
      if (choice.changes(*net, i))
        found.push_back(net->layout()[i].name);
    return found;
  };
  CHECK(chosen({"fc"}) == std::vector<std::string>{"fc.weight", "fc.bias"});
  CHECK(chosen({"bn1", "conv1"}) ==
        std::vector<std::string>{"conv1.weight", "bn1.weight", "bn1.bias", "bn1.running_mean", "bn1.running_var"});
  CHECK(chosen({"layer2"}) == chosen({"layer2.0"})); // it has only one block
  CHECK(chosen({"layer2.0"}).size() == 10);          // two convolutions, two normalizations of four each
  CHECK(parameter_choice::layers_of(*net, {"layer2"}).couples_batch_rows(*net));
  CHECK_FALSE(parameter_choice::layers_of(*net, {"layer2.0.conv1", "fc"}).couples_batch_rows(*net));
  CHECK(parameter_choice{}.couples_batch_rows(*net));
  CHECK_FALSE(parameter_choice::head_of(*net).couples_batch_rows(*net));
  CHECK(parameter_choice::body_of(*net).couples_batch_rows(*net));
  CHECK_THROWS_WITH(parameter_choice::layers_of(*mlp_of({4}, 3, 2), {"fc2", "fc"}),
                    "the net 'mlp 3-4-2' has no layer 'fc' that could be trained; expected names of: fc1, fc2");
  CHECK_THROWS(parameter_choice::layers_of(*net, {"bn1.weight"})); // layers cannot be selected in part
}

TEST_CASE("identity returns the pixels and has no trainable parameters", "[models]") {
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
  for (const auto* known : {"bert", "cnn", "efficientnet-lite0", "identity", "lenet", "linear", "lstm", "mlp",
                            "resnet152", "resnet18", "resnet32", "resnet50", "resnet8", "vit"}) // and those of tests
    CHECK(std::count(names.begin(), names.end(), known) == 1);
}
