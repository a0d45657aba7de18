#include "runtime/kernels/dropout.hpp"
#include "runtime/kernels/elementwise.hpp"
#include "runtime/kernels/fold.hpp"
#include "tools/bench/kernels/kernel_comparison.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/native_dropout_backward.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/threshold_backward.h>
#include <ATen/ops/zeros.h>
namespace mneme::bench {
namespace {

float* values_of(at::Tensor& tensor) { return tensor.mutable_data_ptr<float>(); }
const float* values_of(const at::Tensor& tensor) { return tensor.const_data_ptr<float>(); }

kernel_comparison relu_of(std::int64_t n) {
  return {.kernel = "relu",
          .shape = std::to_string(n),
          .in = {drawn({1, n}, 1)},
          .out = at::empty({1, n}),
          .ours =
              [n](const operands& in, at::Tensor& out) {
                out.copy_(in[0]); // both sides work in place
                kernels::relu(values_of(out), n);
              },
          .theirs = [kept = at::empty({1, n})](const operands& in) { return kept.copy_(in[0]).relu_(); }};
}

kernel_comparison relu_backward_of(std::int64_t n) {
  return {.kernel = "relu_backward",
          .shape = std::to_string(n),
          .in = {drawn({1, n}, 1), drawn({1, n}, 2).clamp_min_(0)},
          .out = at::empty({1, n}),
          .ours =
              [n](const operands& in, at::Tensor& out) {
                out.copy_(in[0]); // both sides work in place
                kernels::relu_backward(values_of(out), values_of(in[1]), n);
              },
          .theirs =
              [kept = at::empty({1, n})](const operands& in) {
                auto d = kept.copy_(in[0]);
                return at::threshold_backward_out(d, d, in[1], 0);
              }};
}

kernel_comparison sum_of(std::int64_t n) {
  return {.kernel = "add, ReLU",
          .shape = std::to_string(n),
          .in = {drawn({1, n}, 1), drawn({1, n}, 2)},
          .out = at::empty({1, n}),
          .ours = [n](const operands& in,
                      at::Tensor& out) { kernels::add(values_of(out), values_of(in[0]), values_of(in[1]), n, true); },
          .theirs =
              [kept = at::empty({1, n})](const operands& in) {
                auto sum = kept;
                return at::add_out(sum, in[0], in[1]).relu_();
              }};
}

kernel_comparison scaled(std::int64_t n) {
  return {.kernel = "scale",
          .shape = std::to_string(n),
          .in = {drawn({1, n}, 1)},
          .out = at::empty({1, n}),
          .ours =
              [n](const operands& in, at::Tensor& out) {
                out.copy_(in[0]); // both sides work in place
                kernels::scale(values_of(out), n, 0.3F);
              },
          .theirs = [kept = at::empty({1, n})](const operands& in) { return kept.copy_(in[0]).mul_(0.3F); }};
}

kernel_comparison pulled_back(std::int64_t n) {
  return {.kernel = "pull_back",
          .shape = std::to_string(n),
          .in = {drawn({1, n}, 1), drawn({1, n}, 2), drawn({1, n}, 3)},
          .out = at::empty({1, n}),
          .ours =
              [n](const operands& in, at::Tensor& out) {
                out.copy_(in[0]); // both sides work in place
                kernels::add_proximal_gradient(values_of(out), values_of(in[1]), values_of(in[2]), n, 0.01F);
              },
          .theirs =
              [kept = at::empty({1, n})](const operands& in) { return kept.copy_(in[0]).add_(in[1] - in[2], 0.01F); }};
}

kernel_comparison squares_of(std::int64_t n) {
  return {.kernel = "add_squares",
          .shape = std::to_string(n),
          .in = {drawn({1, n}, 1)},
          .out = at::empty({1}, at::kDouble),
          .ours =
              [n](const operands& in, at::Tensor& out) {
                double total = 0.0;
                kernels::add_squares(total, values_of(in[0]), n);
                out.mutable_data_ptr<double>()[0] = total;
              },
          .theirs = [](const operands& in) { return in[0].to(at::kDouble).square_().sum(1); }};
}

kernel_comparison finite_of(std::int64_t n) {
  return {.kernel = "check_finite",
          .shape = std::to_string(n),
          .in = {drawn({1, n}, 1)},
          .out = at::empty({1}, at::kBool),
          .ours =
              [n](const operands& in, at::Tensor& out) {
                bool finite = true;
                kernels::check_finite(finite, values_of(in[0]), n);
                out.mutable_data_ptr<bool>()[0] = finite;
              },
          .theirs = [](const operands& in) { return at::isfinite(in[0]).all(1); }};
}

// Optimizers write weights to `out`; both sides update gradients and moments in their own copies.

kernel_comparison sgd_of(std::int64_t n) {
  const auto ours = drawn({1, n}, 3), theirs = ours.clone();
  return {.kernel = "sgd, momentum",
          .shape = std::to_string(n),
          .in = {drawn({1, n}, 1), drawn({1, n}, 2)},
          .out = at::empty({1, n}),
          .ours =
              [n, ours](const operands& in, at::Tensor& out) {
                auto velocity = ours;
                out.copy_(in[0]);
                velocity.fill_(0.5F);
                kernels::sgd(values_of(out), values_of(in[1]), values_of(velocity), n,
                             {.learning_rate = 0.1F, .momentum = 0.9F, .weight_decay = 0.01F});
              },
          .theirs =
              [theirs, kept = at::empty({1, n})](const operands& in) {
                auto velocity = theirs;
                auto weights = kept.copy_(in[0]);
                velocity.fill_(0.5F);
                std::vector<at::Tensor> w{weights}, g{in[1]}, v{velocity};
                at::_fused_sgd_(w, g, v, 0.01, 0.9, 0.1, 0.0, false, false, false);
                return weights;
              }};
}

kernel_comparison adam_of(std::int64_t n) {
  const auto first = at::empty({1, n}), second = at::empty({1, n});
  return {.kernel = "adam",
          .shape = std::to_string(n),
          .in = {drawn({1, n}, 1), drawn({1, n}, 2)},
          .out = at::empty({1, n}),
          .ours =
              [=](const operands& in, at::Tensor& out) {
                auto m = first, v = second;
                out.copy_(in[0]);
                m.fill_(0.5F), v.fill_(0.25F);
                kernels::adam(values_of(out), values_of(in[1]), values_of(m), values_of(v), n,
                              {.decay = 0.01F,
                               .step_size = static_cast<float>(0.1 / (1.0 - 0.9)),
                               .root_correction = static_cast<float>(std::sqrt(1.0 - 0.999))});
              },
          .theirs =
              [=, kept = at::empty({1, n})](const operands& in) {
                auto m = first, v = second;
                auto weights = kept.copy_(in[0]);
                m.fill_(0.5F), v.fill_(0.25F);
                std::vector<at::Tensor> w{weights}, g{in[1]}, ms{m}, vs{v}, none, steps{at::full({}, 1.0F)};
                at::_fused_adam_(w, g, ms, vs, none, steps, 0.1, 0.9, 0.999, 0.01, 1e-8, false, false);
                return weights;
              }};
}

kernel_comparison loss_of(std::int64_t models, std::int64_t rows, std::int64_t classes) {
  return {.kernel = "cross_entropy",
          .shape = std::to_string(rows) + " x " + std::to_string(classes),
          .in = {drawn({models, rows, classes}, 1),
                 at::arange(models * rows, at::kLong).remainder(classes).view({models, rows}),
                 at::full({models, rows}, 1.0F / static_cast<float>(rows))},
          .out = at::empty({models, rows, classes}),
          .ours =
              [=](const operands& in, at::Tensor& out) {
                double value = 0.0;
                for (std::int64_t k = 0; k < out.size(0); ++k)
                  kernels::cross_entropy_of_rows(value, {.logits = values_of(in[0]) + k * rows * classes,
                                                         .labels = in[1].const_data_ptr<std::int64_t>() + k * rows,
                                                         .weight = values_of(in[2]) + k * rows,
                                                         .d_logits = values_of(out) + k * rows * classes,
                                                         .rows = rows,
                                                         .classes = classes});
              },
          .theirs = [](const operands& in) { // computes the loss, and its gradient without a one-hot matrix
            const auto log_p = at::log_softmax(in[0], 2);
            const auto labels = in[1].unsqueeze(2), weight = in[2].unsqueeze(2);
            const auto losses = (at::gather(log_p, 2, labels) * weight).sum({1, 2});
            return (log_p.exp() * weight).scatter_add_(2, labels, -weight);
          }};
}

kernel_comparison masked(std::int64_t n) {
  const auto mask = (drawn({1, n}, 2) > 0).to(at::kByte), as_bool = mask.to(at::kBool);
  return {.kernel = "apply_mask",
          .shape = std::to_string(n),
          .in = {drawn({1, n}, 1)},
          .out = at::empty({1, n}),
          .ours =
              [=](const operands& in, at::Tensor& out) {
                kernels::apply_dropout_mask(values_of(in[0]), mask.const_data_ptr<std::uint8_t>(), 2.0F, values_of(out),
                                            n);
              },
          .theirs = [=](const operands& in) { return at::native_dropout_backward(in[0], as_bool, 2.0); }};
}

kernel_comparison folded(std::int64_t n) {
  const auto sum = at::zeros({1, n}, at::kDouble);
  return {.kernel = "fold, four uploads",
          .shape = std::to_string(n),
          .in = {drawn({1, n}, 1), drawn({1, n}, 2), drawn({1, n}, 3), drawn({1, n}, 4)},
          .out = sum.clone(),
          .ours =
              [n](const operands& in, at::Tensor& out) {
                out.zero_();
                std::vector<kernels::weighted_upload> uploads;
                for (const auto& values : in)
                  uploads.push_back({values_of(values), 50.0});
                kernels::fold(out.mutable_data_ptr<double>(), uploads, n);
              },
          .theirs =
              [sum](const operands& in) {
                sum.zero_();
                for (const auto& values : in)
                  sum.add_(values, 50.0);
                return sum;
              }};
}

} // namespace

std::vector<kernel_comparison> training_contests() {
  std::vector<kernel_comparison> contests;
  for (const std::int64_t n : {320, 12800, 501760}) // numbers of activations of a step: mlp of B2, mlp, cnn
    for (const auto& made : {relu_of, relu_backward_of, sum_of, masked})
      contests.push_back(made(n));
  for (const std::int64_t n : {2410, 79510, 1626442}) // numbers of weights: mlp of B2, mlp of B2c, cnn
    for (const auto& made : {scaled, pulled_back, squares_of, finite_of, sgd_of, adam_of, folded})
      contests.push_back(made(n));
  contests.push_back(loss_of(1, 10, 10));
  contests.push_back(loss_of(64, 10, 10));
  contests.push_back(loss_of(1, 64, 100));
  return contests;
}

} // namespace mneme::bench
