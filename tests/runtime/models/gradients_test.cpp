#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/nets.hpp"
#include <ATen/Parallel.h>
using namespace mneme;
using namespace mneme::test;

// Axes: K models, B rows, P weights.

namespace {

/// Parameters of one model in PyTorch's shapes, as views of its flat weights [P].
class named_weights {
public:
  named_weights(const model& net, const at::Tensor& flat) : net_(net), flat_(flat) {}
  /// Returns an undefined tensor if there is no such parameter.
  [[nodiscard]] at::Tensor operator[](const std::string& name) const {
    for (const auto& parameter : net_.layout())
      if (parameter.name == name)
        return as_in_files(flat_, parameter);
    return {};
  }

private:
  const model& net_;
  const at::Tensor& flat_;
};

/// Normalization of one kind, with PyTorch's layers.
struct norm_like {
  std::int64_t groups_max = 0; // 0: batch
  bool training = false;
  std::string trained{};   // name prefix of layers in training mode
  bool both_sides = false; // option-A padding: zeros on both sides
  at::Tensor operator()(const named_weights& weights, const std::string& name, const at::Tensor& x) const {
    const auto weight = weights[name + ".weight"], bias = weights[name + ".bias"];
    if (groups_max > 0)
      return at::group_norm(x, std::min(groups_max, x.size(1) / 2), weight, bias);
    const auto mean = weights[name + ".running_mean"].detach().clone(),
               variance = weights[name + ".running_var"].detach().clone();
    return at::batch_norm(x, weight, bias, mean, variance, training && name.starts_with(trained), 0.1, 1e-5, false);
  }
};

at::Tensor plain_convolution(const named_weights& weights, const std::string& name, const at::Tensor& x,
                             std::int64_t stride = 1, std::int64_t padding = 0) {
  return at::conv2d(x, weights[name + ".weight"], weights[name + ".bias"], stride, padding);
}

at::Tensor residual_block(const named_weights& weights, const norm_like& norm, const std::string& name, at::Tensor x,
                          std::int64_t stride) {
  const bool narrow = weights[name + ".conv3.weight"].defined(); // a bottleneck
  auto y = plain_convolution(weights, name + ".conv1", x, narrow ? 1 : stride, narrow ? 0 : 1);
  y = at::relu(norm(weights, name + ".bn1", y));
  y = norm(weights, name + ".bn2", plain_convolution(weights, name + ".conv2", y, narrow ? stride : 1, 1));
  if (narrow)
    y = norm(weights, name + ".bn3", plain_convolution(weights, name + ".conv3", at::relu(y)));
  if (weights[name + ".downsample.0.weight"].defined())
    x = norm(weights, name + ".downsample.1", plain_convolution(weights, name + ".downsample.0", x, stride));
  else if (stride > 1) { // option-A shortcut
    const auto zeros = y.size(1) - x.size(1), before = norm.both_sides ? zeros / 2 : 0;
    x = at::constant_pad_nd(x.slice(2, 0, std::nullopt, stride).slice(3, 0, std::nullopt, stride),
                            {0, 0, 0, 0, before, zeros - before});
  }
  return at::relu(x + y);
}

/// Features of a residual net [B, D].
at::Tensor residual_features(const named_weights& weights, const norm_like& norm, at::Tensor x) {
  const bool imagenet = weights["conv1.weight"].size(2) == 7;
  x = at::relu(norm(weights, "bn1", plain_convolution(weights, "conv1", x, imagenet ? 2 : 1, imagenet ? 3 : 1)));
  if (imagenet)
    x = at::max_pool2d(x, {3, 3}, {2, 2}, {1, 1});
  for (int stage = 1;; ++stage)
    for (int block = 0;; ++block) {
      const auto name = "layer" + std::to_string(stage) + "." + std::to_string(block);
      if (!weights[name + ".conv1.weight"].defined()) {
        if (block == 0)
          return x.mean({2, 3});
        break;
      }
      x = residual_block(weights, norm, name, x, stage > 1 && block == 0 ? 2 : 1);
    }
}

using function = at::Tensor (*)(const at::Tensor&);

/// Features [B, D] of nets of convolutions with pooling and of linear layers.
at::Tensor plain_features(const named_weights& weights, function after, at::Tensor x) {
  for (int i = 1; weights["conv" + std::to_string(i) + ".weight"].defined(); ++i)
    x = at::max_pool2d(after(plain_convolution(weights, "conv" + std::to_string(i), x, 1, //
                                               i == 1 && x.size(2) == 28 ? 2 : 0)),
                       {2, 2});
  x = x.flatten(1);
  for (int i = 1; weights["fc" + std::to_string(i + 1) + ".weight"].defined(); ++i) // the last one is the head
    x = after(
        at::linear(x, weights["fc" + std::to_string(i) + ".weight"], weights["fc" + std::to_string(i) + ".bias"]));
  return x;
}

/// Features and logits with PyTorch's own layers, from flat weights [P].
activations reference(const model& net, const norm_like& norm, function after, const at::Tensor& flat,
                      const at::Tensor& inputs) {
  const named_weights weights(net, flat);
  const auto& head = net.layout(); // its last parameters except running statistics
  const auto weight =
      std::find_if(head.begin(), head.end(), [](const parameter& entry) { return entry.head && !entry.whole; });
  const bool residual = weights["bn1.weight"].defined();
  const auto features = residual ? residual_features(weights, norm, inputs) : plain_features(weights, after, inputs);
  auto x = features;
  for (int i = 1; weights["head" + std::to_string(i) + ".weight"].defined(); ++i)
    x = at::relu(
        at::linear(x, weights["head" + std::to_string(i) + ".weight"], weights["head" + std::to_string(i) + ".bias"]));
  return {features, at::linear(x, weights[weight->name], weights[std::next(weight)->name])};
}

struct compared {
  model_ref net;
  shape3 shape;
  class_range classes;
  parameter_choice trained{};
  norm_like norm{};
  std::int64_t rows = 5;
  function after = [](const at::Tensor& x) { return at::relu(x); };
};

/// Compares gradients of three models, of sum(logits * a) + sum(features * b), with autograd's.
void compare(const compared& compared_net) {
  const std::int64_t models = 3, rows = compared_net.rows, size = compared_net.net->size();
  INFO(compared_net.net->identity() << ", classes " << compared_net.classes.low << " to " << compared_net.classes.high);
  auto weights = at::empty({models, size + 3}).narrow(1, 0, size); // rows are not contiguous
  for (std::int64_t k = 0; k < models; ++k)
    weights.select(0, k).copy_(initial_weights(*compared_net.net, static_cast<std::uint64_t>(k)));
  const auto unmoved = weights.clone();
  const training_mode mode{{}, &compared_net.trained};
  const auto* const training = compared_net.norm.training ? &mode : nullptr;
  const auto inputs = drawn({models, rows, compared_net.shape[0], compared_net.shape[1], compared_net.shape[2]}, 1);
  const auto d_logits = drawn({models, rows, compared_net.classes.size()}, 2);
  const auto d_features = drawn({models, rows, compared_net.net->feature_width()}, 3);
  tape kept;
  const auto seen = compared_net.net->forward(weights, inputs, compared_net.classes, &kept, training);
  const auto logits = seen.logits.clone(), features = seen.features.clone();
  auto gradients = at::full({models, size}, 77.0F);
  auto stepped = unmoved.clone();
  compared_net.net->backward(weights, kept, compared_net.classes, d_logits, d_features, compared_net.trained,
                             {gradients});
  (void)compared_net.net->forward(stepped, inputs, compared_net.classes, &kept, training);
  compared_net.net->backward(stepped, kept, compared_net.classes, d_logits, d_features, compared_net.trained,
                             {stepped, -0.5F, true});

  for (std::int64_t k = 0; k < models; ++k) {
    const auto flat = unmoved[k].detach().clone().set_requires_grad(true);
    const auto expected = reference(*compared_net.net, compared_net.norm, compared_net.after, flat, inputs[k]);
    const auto narrowed = expected.logits.narrow(1, compared_net.classes.low, compared_net.classes.size());
    CHECK(largest_difference(logits[k], narrowed.detach().contiguous()) < 2e-5);
    CHECK(largest_difference(features[k], expected.features.detach().contiguous()) < 2e-5);
    ((narrowed * d_logits[k]).sum() + (expected.features * d_features[k]).sum()).backward();
    for (const auto& piece : trained_segments(*compared_net.net, compared_net.classes, compared_net.trained)) {
      const auto ours = gradients[k].narrow(0, piece.offset, piece.size);
      const auto theirs = flat.grad().narrow(0, piece.offset, piece.size);
      CHECK(largest_difference(ours, theirs) < 1e-4 * std::max(1.0F, theirs.abs().max().item<float>()));
      const auto step = weights[k].narrow(0, piece.offset, piece.size) - 0.5 * ours;
      CHECK(largest_difference(stepped[k].narrow(0, piece.offset, piece.size), step) <
            1e-6 * std::max(10.0F, ours.abs().max().item<float>()));
    }
    // Untrained layers keep their running statistics, and gradients of classes outside the loss are not written.
    for (std::size_t i = 0; i < compared_net.net->layout().size(); ++i) {
      const auto& entry = compared_net.net->layout()[i];
      if (!compared_net.trained.changes(*compared_net.net, i))
        CHECK(
            same_bits(weights[k].narrow(0, entry.offset, entry.size), unmoved[k].narrow(0, entry.offset, entry.size)));
    }
    auto untouched = at::ones({size}, at::kBool);
    for (const auto& piece : trained_segments(*compared_net.net, compared_net.classes, compared_net.trained))
      untouched.narrow(0, piece.offset, piece.size).fill_(false);
    CHECK((gradients[k].masked_select(untouched) == 77.0F).all().item<bool>());
    CHECK((stepped[k] == weights[k]).masked_select(untouched).all().item<bool>());
  }
}

} // namespace

TEST_CASE("gradients of every model equal autograd's", "[models]") {
  at::set_num_threads(1);
  compare({net_of("linear", {1, 1, 17}, 10), {1, 1, 17}, {0, 10}});
  compare({mlp_of({9, 7}, 13, 10), {1, 1, 13}, {0, 10}});
  compare({mlp_of({33}, 64, 10), {1, 1, 64}, {4, 6}});
  compare({mlp_of({33}, 64, 10), {1, 1, 64}, {0, 6}, parameter_choice::head_of(*mlp_of({33}, 64, 10))});
  compare({net_of("lenet", {1, 28, 28}, 10), {1, 28, 28}, {0, 10}});
  compare({net_of("lenet", {3, 32, 32}, 10), {3, 32, 32}, {2, 8}});
  compare({net_of("lenet", {1, 16, 19}, 4), {1, 16, 19}, {0, 4}});
}

TEST_CASE("gradients of residual nets equal autograd's, in both modes and with every key", "[models]") {
  at::set_num_threads(1);
  const shape3 small{3, 5, 6}; // few values, so that rounding switches no ReLU
  for (const bool training : {false, true})
    compare({net_of("resnet8", small, 6, {{"shortcut", "option-a-both-sides"}}),
             small,
             {1, 5},
             {},
             {.training = training, .both_sides = true}});
  for (const auto* const shortcut : {"option-a", "conv1x1"})
    for (const bool training : {false, true})
      compare({net_of("resnet8", small, 6, {{"shortcut", shortcut}}), small, {1, 5}, {}, {0, training}});
  compare({net_of("resnet8", small, 6, {{"norm", "group"}}), small, {0, 6}, {}, {32, true}});
  compare({net_of("resnet8", small, 6, {{"norm", "group"}, {"groups", "4"}}), small, {0, 6}, {}, {4, false}});
  const auto net = net_of("resnet8", small, 6);
  compare({net, small, {0, 6}, parameter_choice::head_of(*net), {0, false}});
  compare({net_of("resnet32", {1, 5, 5}, 3), {1, 5, 5}, {0, 3}, {}, {0, true}});
}

TEST_CASE("gradients of a part of a net equal autograd's, with the rest in evaluation mode", "[models]") {
  at::set_num_threads(1);
  const shape3 small{3, 5, 6};
  for (const auto* const shortcut : {"option-a", "conv1x1"}) {
    const auto net = net_of("resnet8", small, 6, {{"shortcut", shortcut}});
    for (const auto* const layer : {"layer1", "layer2", "layer3.0.bn1"}) // with other layers before and after
      compare({net, small, {0, 6}, parameter_choice::layers_of(*net, {layer}), {0, true, layer}});
    compare({net, small, {0, 6}, parameter_choice::layers_of(*net, {"layer3.0.conv1"}), {0, false}});
    compare({net, small, {1, 4}, parameter_choice::body_of(*net), {0, true}});
  }
  const auto groups = net_of("resnet8", small, 6, {{"norm", "group"}});
  compare({groups, small, {0, 6}, parameter_choice::layers_of(*groups, {"layer2", "fc"}), {32, true}});
  const auto plain = net_of("lenet", {3, 32, 32}, 10);
  compare({plain, {3, 32, 32}, {2, 8}, parameter_choice::layers_of(*plain, {"conv2"})});
  compare({plain, {3, 32, 32}, {2, 8}, parameter_choice::body_of(*plain)});
  const auto flat = mlp_of({9, 7}, 13, 10);
  compare({flat, {1, 1, 13}, {0, 10}, parameter_choice::layers_of(*flat, {"fc1"})});
  compare({flat, {1, 1, 13}, {0, 10}, parameter_choice::layers_of(*flat, {"fc1", "fc3"})});
}

TEST_CASE("gradients of nets with other activations equal autograd's", "[models]") {
  at::set_num_threads(1);
  const std::vector<std::pair<std::string, function>> words{
      {"none", [](const at::Tensor& x) { return x; }},
      {"leaky", [](const at::Tensor& x) { return at::leaky_relu(x); }},
      {"sigmoid", [](const at::Tensor& x) { return at::sigmoid(x); }},
      {"tanh", [](const at::Tensor& x) { return at::tanh(x); }},
      {"silu", [](const at::Tensor& x) { return at::silu(x); }}};
  for (const auto& [word, after] : words) {
    const model_keys keys{{"activation", word}};
    compare({.net = net_of("mlp", {1, 1, 13}, 10, keys), .shape = {1, 1, 13}, .classes = {0, 10}, .after = after});
    compare({.net = net_of("lenet", {1, 16, 19}, 4, keys), .shape = {1, 16, 19}, .classes = {1, 4}, .after = after});
    CHECK(net_of("lenet", {1, 16, 19}, 4, keys)->identity() == "lenet 1x16x19-4 " + word);
  }
}

TEST_CASE("gradients of bottlenecks, other widths and heads of several layers equal autograd's", "[models]") {
  at::set_num_threads(1);
  const shape3 small{3, 5, 6};
  const shape3 larger{3, 17, 18}; // 16 stages of few values would amplify rounding
  compare(
      {net_of("resnet50", larger, 4, {{"width", "4"}, {"norm", "group"}, {"groups", "1"}}), larger, {0, 4}, {}, {1}});
  compare({net_of("resnet8", small, 6, {{"width", "6"}}), small, {1, 5}, {}, {0, true}});
  for (const auto& net : {net_with_head("resnet8", small, {12}), net_with_head("linear", small, {12})}) {
    compare({net, small, {0, 6}});
    compare({net, small, {0, 6}, parameter_choice::head_of(*net)});
  }
  const auto net = net_with_head("mlp", {1, 1, 13}, {9, 5});
  compare({net, {1, 1, 13}, {1, 5}});
  compare({net, {1, 1, 13}, {1, 5}, parameter_choice::head_of(*net)});
  compare({net, {1, 1, 13}, {1, 5}, parameter_choice::body_of(*net)});
}

TEST_CASE("gradients of every kind of layer equal finite differences", "[models]") {
  const auto net = net_of("lenet", {2, 17, 16}, 3);
  const auto weights = initial_weights(*net, 5).unsqueeze(0); // [1, P]
  const auto inputs = drawn({1, 4, 2, 17, 16}, 1), d_logits = drawn({1, 4, 3}, 2);
  tape kept;
  (void)net->forward(weights, inputs, {0, 3}, &kept);
  auto gradients = at::zeros({1, net->size()});
  net->backward(weights, kept, {0, 3}, d_logits, {}, {}, {gradients});
  const auto value = [&](std::int64_t i, float change) {
    auto moved = weights.clone();
    moved.mutable_data_ptr<float>()[i] += change;
    return (net->forward(moved, inputs, {0, 3}, nullptr).logits.to(at::kDouble) * d_logits).sum().item<double>();
  };
  for (const auto& parameter : net->layout()) // the middle element of every parameter
    for (const auto i : {parameter.offset + parameter.size / 2}) {
      const float change = 1e-3F;
      const double difference = (value(i, change) - value(i, -change)) / (2.0 * change);
      INFO(parameter.name);
      CHECK(std::abs(gradients.const_data_ptr<float>()[i] - difference) < 2e-2 * std::max(1.0, std::abs(difference)));
    }
}

TEST_CASE("weights shared by all models give the same bits as copies of them", "[models]") {
  for (const auto& [net, shape] : {std::pair{mlp_of({20}, 40, 6), shape3{1, 1, 40}},
                                   std::pair{net_of("lenet", {1, 28, 28}, 6), shape3{1, 28, 28}}}) {
    const auto weights = initial_weights(*net, 1).unsqueeze(0); // [1, P]
    const auto inputs = drawn({3, 4, shape[0], shape[1], shape[2]}, 2);
    const auto shared = net->forward(weights, inputs, {0, 6}, nullptr);
    const auto copied = net->forward(weights.expand({3, net->size()}).contiguous(), inputs, {0, 6}, nullptr);
    CHECK(same_bits(shared.logits, copied.logits));
    CHECK(same_bits(shared.features, copied.features));
  }
}
