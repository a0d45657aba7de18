// Nets defined as layer lists that do not start with a convolution, compared with LibTorch's operators on images of [B,
// C, H, W]: scores and gradients.
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/support/nets.hpp"
using namespace mneme;
using namespace mneme::test;

namespace {

constexpr std::int64_t nets = 2, rows = 5, classes = 4;

/// Parameters of one model by name, as float64 leaves.
class named_parameters {
public:
  named_parameters(const model& net, const at::Tensor& flat) : flat_(flat.to(at::kDouble).requires_grad_(true)) {
    for (const auto& entry : net.layout())
      values_[entry.name] = as_in_files(flat_, entry);
  }
  const at::Tensor& operator[](const std::string& name) const { return values_.at(name); }
  [[nodiscard]] const at::Tensor& flat() const { return flat_; }

private:
  at::Tensor flat_;
  std::map<std::string, at::Tensor> values_;
};

/// Scores of x [B, C, H, W].
using reference = std::function<at::Tensor(const at::Tensor& x, const named_parameters& p)>;

at::Tensor batch_norm(const at::Tensor& x, const named_parameters& p, const std::string& name) {
  return at::batch_norm(x, p[name + ".weight"], p[name + ".bias"], {}, {}, true, 0.1, 1e-5, false);
}
at::Tensor head(const at::Tensor& x, const named_parameters& p, const std::string& name) {
  return at::linear(x.flatten(1), p[name + ".weight"], p[name + ".bias"]);
}

void check_against(const std::string& layers, shape3 shape, const reference& theirs) {
  INFO(layers << " of " << shape[0] << " x " << shape[1] << " x " << shape[2]);
  at::set_num_threads(1);
  const auto built = kind_with("layers", {{"layers", layers}})->build(shape, classes);
  INFO((built ? "" : built.error()));
  REQUIRE(built);
  const auto& net = **built;
  at::Tensor weights = at::empty({nets, net.size()});
  for (std::int64_t k = 0; k < nets; ++k)
    weights[k].copy_(initial_weights(net, static_cast<std::uint64_t>(k) + 3));
  const auto inputs = drawn({nets, rows, shape[0], shape[1], shape[2]}, 7), d_logits = drawn({nets, rows, classes}, 8);
  std::vector<rng_key> streams;
  for (std::uint32_t k = 0; k < nets; ++k)
    streams.push_back({.seed = 9, .client = {k}});
  const training_mode training{.streams = streams};
  tape kept;
  const auto before = weights.clone(); // running statistics change
  const auto logits = net.forward(weights, inputs, {0, classes}, &kept, &training).logits.clone();
  auto gradients = at::zeros_like(weights);
  net.backward(weights, kept, {0, classes}, d_logits.clone(), {}, {}, {gradients});
  for (std::int64_t k = 0; k < nets; ++k) {
    const named_parameters p(net, before[k]);
    const auto expected = theirs(inputs[k].to(at::kDouble), p);
    CHECK(largest_difference(logits[k].contiguous(), expected.to(at::kFloat).contiguous()) < 2e-5);
    const auto slope = torch::autograd::grad({(expected * d_logits[k]).sum()}, {p.flat()})[0];
    CHECK(largest_difference(gradients[k].contiguous(), slope.to(at::kFloat).contiguous()) < 1e-4);
    CHECK(gradients[k].abs().sum().item<float>() > 0.0F);
  }
}

} // namespace

TEST_CASE("a net may begin with any layer that reads images, with one or several channels", "[layers]") {
  for (const shape3 shape : {shape3{3, 6, 5}, shape3{2, 4, 7}, shape3{1, 6, 5}}) {
    const auto convolved = [](const at::Tensor& x, const named_parameters& p) {
      return head(at::relu(at::conv2d(x, p["1.weight"], p["1.bias"])), p, "4");
    };
    const std::string tail = ", conv 4 3x3, relu, flatten, linear classes";
    check_against("batch-norm" + tail, shape,
                  [&](const auto& x, const auto& p) { return convolved(batch_norm(x, p, "0"), p); });
    check_against("group-norm 1" + tail, shape, [&](const auto& x, const auto& p) {
      return convolved(at::group_norm(x, 1, p["0.weight"], p["0.bias"], 1e-5), p);
    });
    check_against("group-norm 1 0.01" + tail, shape, [&](const auto& x, const auto& p) {
      return convolved(at::group_norm(x, 1, p["0.weight"], p["0.bias"], 0.01), p);
    });
    check_against("relu" + tail, shape, [&](const auto& x, const auto& p) { return convolved(at::relu(x), p); });
    check_against("gelu" + tail, shape, [&](const auto& x, const auto& p) { return convolved(at::gelu(x), p); });
    check_against("dropout 0.0" + tail, shape, convolved);
    check_against("max-pool 2 stride 1" + tail, shape, [&](const auto& x, const auto& p) {
      return convolved(at::max_pool2d(x, {2, 2}, {1, 1}), p);
    });
    check_against("subsample 1 5 first 1" + tail, shape, [&](const auto& x, const auto& p) {
      return convolved(at::constant_pad_nd(x, {0, 0, 0, 0, 1, 4 - x.size(1)}), p);
    });
  }
}

TEST_CASE("weights of a first layer have an image's values in channel order", "[layers]") {
  for (const shape3 shape : {shape3{3, 4, 5}, shape3{1, 4, 5}}) {
    check_against("tanh, flatten, linear 6, relu, linear classes", shape, [](const auto& x, const auto& p) {
      return head(at::relu(at::linear(at::tanh(x).flatten(1), p["2.weight"], p["2.bias"])), p, "4");
    });
    check_against("batch-norm, relu, flatten, linear classes", shape,
                  [](const auto& x, const auto& p) { return head(at::relu(batch_norm(x, p, "0")), p, "3"); });
    check_against("silu, flatten, layer-norm, linear classes", shape, [](const auto& x, const auto& p) {
      const auto flat = at::silu(x).flatten(1);
      return head(at::layer_norm(flat, {flat.size(1)}, p["2.weight"], p["2.bias"]), p, "3");
    });
    check_against("global-avg-pool, linear 6, relu, linear classes", shape, [](const auto& x, const auto& p) {
      return head(at::relu(at::linear(x.mean({2, 3}), p["1.weight"], p["1.bias"])), p, "3");
    });
  }
}

TEST_CASE("a net may begin with a residual block", "[layers]") {
  for (const shape3 shape : {shape3{3, 5, 6}, shape3{1, 5, 6}}) {
    const auto channels = std::to_string(shape[0]);
    check_against("residual [, conv " + channels + " 3x3 pad 1, batch-norm, ], relu, flatten, linear classes", shape,
                  [](const auto& x, const auto& p) {
                    const auto body = at::conv2d(x, p["0.body.0.weight"], p["0.body.0.bias"], 1, 1);
                    return head(at::relu(x + batch_norm(body, p, "0.body.1")), p, "3");
                  });
    check_against("residual [, relu, conv 4 3x3 pad 1, ] shortcut [, conv 4 1x1 no-bias, ], relu, global-avg-pool, "
                  "linear classes",
                  shape, [](const auto& x, const auto& p) {
                    const auto body = at::conv2d(at::relu(x), p["0.body.1.weight"], p["0.body.1.bias"], 1, 1);
                    const auto around = at::conv2d(x, p["0.shortcut.0.weight"]);
                    return head(at::relu(body + around).mean({2, 3}), p, "3");
                  });
    check_against("residual [, residual [, tanh, ], ], flatten, linear classes", shape,
                  [](const auto& x, const auto& p) { return head(x + x + at::tanh(x), p, "2"); });
  }
}
