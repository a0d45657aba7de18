#include "runtime/models/embedding_model.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/nets.hpp"
#include <algorithm>
using namespace mneme;
using namespace mneme::test;

namespace {

constexpr std::int64_t width = 5, classes = 3, rows = 6;
constexpr shape3 pixels{2, 16, 18};

std::shared_ptr<const embedding_model> small_net(bool normal, double low = -6.0,
                                                 const std::vector<std::int64_t>& hidden = {9}) {
  const embedding_shape shape{.filters = {3, 4},
                              .padding = 1,
                              .hidden = hidden,
                              .embedding = width,
                              .classifier = {7},
                              .normal = normal,
                              .low = low};
  return std::make_shared<const embedding_model>(shape, pixels, classes);
}

/// Parameter in the shape of model files.
at::Tensor named(const model& net, const at::Tensor& flat, const std::string& name) {
  for (const auto& parameter : net.layout())
    if (parameter.name == name)
      return as_in_files(flat, parameter);
  FAIL("no parameter " << name);
  return {};
}

struct seen_by_pytorch {
  at::Tensor features, logits;
};
/// The net with PyTorch's own layers; `noise` [B, D] of the samples, undefined in evaluation.
seen_by_pytorch reference(const embedding_model& net, const at::Tensor& flat, const at::Tensor& images,
                          const at::Tensor& noise) {
  const auto value_of = [&](const std::string& name) { return named(net, flat, name); };
  const auto linear = [&](const at::Tensor& x, const std::string& name) {
    return at::linear(x, value_of(name + ".weight"), value_of(name + ".bias"));
  };
  auto x = images;
  for (const std::string name : {"encoder.conv1", "encoder.conv2"})
    x = at::max_pool2d(at::relu(at::conv2d(x, value_of(name + ".weight"), value_of(name + ".bias"), 1, 1)), {2, 2});
  x = x.flatten(1);
  if (!net.shape().hidden.empty())
    x = at::relu(linear(x, "encoder.fc1"));
  at::Tensor features, z;
  if (net.shape().normal) {
    const auto mean = linear(x, "encoder.mu"), log = linear(x, "encoder.log_sigma");
    features = at::cat({mean, log}, 1);
    z = noise.defined() ? mean + log.clamp(net.shape().low, net.shape().high).exp() * noise : mean;
  } else {
    features = z = linear(x, "encoder.embedding");
  }
  return {features, linear(at::relu(linear(z, "classifier.fc1")), "classifier.fc2")};
}

} // namespace

TEST_CASE("vee and ebr have the parameters of the paper's nets", "[models]") {
  const auto vee = net_of("vee", {1, 28, 28}, 10), ebr = net_of("ebr", {1, 28, 28}, 10);
  const auto as_parts = [](const model_ref& net) -> const embedding_model& {
    return dynamic_cast<const embedding_model&>(*net);
  };
  CHECK(as_parts(vee).encoder()->size() == 2'590'608);
  CHECK(as_parts(ebr).encoder()->size() == 2'334'352);
  CHECK(as_parts(vee).classifier()->size() == 1'268'010);
  CHECK(vee->size() == 2'590'608 + 1'268'010);
  CHECK(ebr->size() == 2'334'352 + 1'268'010);
  const auto padded = net_of("vee", {1, 28, 28}, 10, {{"padding", "2"}});
  CHECK(as_parts(padded).encoder()->size() == 4'702'608);
  CHECK(vee->feature_width() == 512);
  CHECK(ebr->feature_width() == 256);
  CHECK(vee->uses_random_numbers());
  CHECK_FALSE(ebr->uses_random_numbers());
}

TEST_CASE("an encoder's parameters come first and have their own names", "[models]") {
  std::vector<std::string> names;
  const auto net = net_of("vee", {1, 28, 28}, 10);
  for (const auto& parameter : net->layout())
    names.push_back(parameter.name);
  CHECK(names == std::vector<std::string>{"encoder.conv1.weight", "encoder.conv1.bias", "encoder.conv2.weight",
                                          "encoder.conv2.bias", "encoder.fc1.weight", "encoder.fc1.bias",
                                          "encoder.fc2.weight", "encoder.fc2.bias", "encoder.mu.weight",
                                          "encoder.log_sigma.weight", "encoder.mu.bias", "encoder.log_sigma.bias",
                                          "classifier.fc1.weight", "classifier.fc1.bias", "classifier.fc2.weight",
                                          "classifier.fc2.bias", "classifier.fc3.weight", "classifier.fc3.bias"});
}

TEST_CASE("embedding nets equal PyTorch's layers", "[models]") {
  using widths = std::vector<std::int64_t>;
  for (const auto& [normal, hidden] :
       {std::pair{true, widths{9}}, {false, widths{9}}, {true, widths{}}, {false, widths{}}}) {
    const auto net = small_net(normal, -6.0, hidden);
    const auto flat = initial_weights(*net, 3);
    const auto images = drawn({1, rows, pixels[0], pixels[1], pixels[2]}, 4);
    const auto seen = net->forward(flat.unsqueeze(0), images, {0, classes}, nullptr, nullptr);
    const auto wanted = reference(*net, flat, images[0], {});
    CHECK(at::allclose(seen.features[0], wanted.features, 1e-4, 1e-5));
    CHECK(at::allclose(seen.logits[0], wanted.logits, 1e-4, 1e-5));
  }
}

TEST_CASE("a separate encoder and classifier equal the whole net bit by bit", "[models]") {
  for (const bool normal : {true, false}) {
    const auto net = small_net(normal);
    const auto flat = initial_weights(*net, 3);
    const auto images = drawn({1, rows, pixels[0], pixels[1], pixels[2]}, 4);
    const auto whole = net->forward(flat.unsqueeze(0), images, {0, classes}, nullptr, nullptr);
    const auto front = net->encoder()->size();
    REQUIRE(front + net->classifier()->size() == net->size());
    tape kept;
    kept.for_backward = false;
    const auto seen = net->encoder()->forward(flat.narrow(0, 0, front).unsqueeze(0), images, {}, &kept, nullptr);
    CHECK(same_bits(seen.features, whole.features));
    const auto means = seen.features.narrow(2, 0, width).contiguous();
    const auto logits =
        net->classifier()
            ->forward(flat.narrow(0, front, net->size() - front).unsqueeze(0), means, {0, classes}, nullptr, nullptr)
            .logits;
    CHECK(same_bits(logits, whole.logits));
  }
}

TEST_CASE("training gradients of an embedding net equal autograd's, through samples and features", "[models]") {
  for (const bool normal : {true, false}) {
    const auto net = small_net(normal);
    const auto flat = initial_weights(*net, 3);
    const auto images = drawn({1, rows, pixels[0], pixels[1], pixels[2]}, 4);
    const auto d_logits = drawn({1, rows, classes}, 5), d_features = drawn({1, rows, net->feature_width()}, 6);
    const std::vector<rng_key> streams{{.seed = 9, .index = 2}};
    const training_mode training{streams};
    tape kept;
    (void)net->forward(flat.unsqueeze(0), images, {0, classes}, &kept, &training);
    auto ours = at::zeros({1, net->size()});
    net->backward(flat.unsqueeze(0), kept, {0, classes}, d_logits.clone(), d_features, {}, {ours});

    auto noise = at::empty({rows, width});
    rng_stream draw({.seed = 9, .index = 2U << 8U}); // the net's first layer with random draws
    for (std::int64_t i = 0; i < noise.numel(); ++i)
      noise.mutable_data_ptr<float>()[i] = static_cast<float>(draw.normal());
    auto leaf = flat.clone().requires_grad_(true);
    const auto seen = reference(*net, leaf, images[0], noise);
    ((seen.logits * d_logits[0]).sum() + (seen.features * d_features[0]).sum()).backward();
    CHECK(largest_difference(ours[0].contiguous(), leaf.grad().contiguous()) < 2e-4);
    CHECK(leaf.grad().abs().max().item<float>() > 0.1F);
  }
}

TEST_CASE("a normal distribution without deviation makes training equal evaluation", "[models]") {
  const auto at_low = [](double low) {
    const auto net = small_net(true, low);
    auto flat = initial_weights(*net, 3);
    for (const auto& parameter : net->layout())
      if (parameter.name.starts_with("encoder.log_sigma"))
        flat.narrow(0, parameter.offset, parameter.size).fill_(parameter.name.ends_with("bias") ? -30.0F : 0.0F);
    const auto images = drawn({1, rows, pixels[0], pixels[1], pixels[2]}, 4);
    const std::vector<rng_key> streams{{.seed = 9}};
    const training_mode training{streams};
    tape kept;
    const auto sampled = net->forward(flat.unsqueeze(0), images, {0, classes}, &kept, &training).logits.clone();
    const auto mean = net->forward(flat.unsqueeze(0), images, {0, classes}, nullptr, nullptr).logits;
    return largest_difference(sampled.contiguous(), mean.contiguous());
  };
  CHECK(at_low(-80.0) < 1e-6);
  CHECK(at_low(-6.0) > 1e-5); // clamped
}

TEST_CASE("images too small for the convolutions are refused, and rows of numbers need no minimum", "[models]") {
  const auto vee = kind_of("vee")->build({1, 12, 28}, 10);
  REQUIRE_FALSE(vee);
  CHECK(vee.error().find("12 x 28") != std::string::npos);
  const auto flat = kind_of("ebr")->build({1, 1, 20}, 10);
  REQUIRE(flat);
  CHECK((*flat)->layout().front().name == "encoder.fc1.weight");
  CHECK((*flat)->layout().front().shape == std::vector<std::int64_t>{1000, 20});
}

TEST_CASE("every setting that changes an embedding net's computation changes its identity", "[models]") {
  const auto identity = [](embedding_shape shape) { return embedding_model(std::move(shape), pixels, 3).identity(); };
  const embedding_shape usual{.padding = 1};
  std::vector<std::string> names{identity(usual)};
  auto other = usual;
  other.padding = 2, names.push_back(identity(other)), other = usual;
  other.normal = false, names.push_back(identity(other)), other = usual;
  other.low = -7.0, names.push_back(identity(other)), other = usual;
  other.embedding = 255, names.push_back(identity(other)), other = usual;
  other.classifier = {1000}, names.push_back(identity(other));
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
}
