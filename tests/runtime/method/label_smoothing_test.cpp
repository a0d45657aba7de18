// Label smoothing: loss and gradient, compared with LibTorch's cross_entropy_loss (torch.nn.functional.cross_entropy)
// and with values of PyTorch.
#include "runtime/kernels/cuda/cross_entropy_rows.hpp"
#include "runtime/method/gradients.hpp"
#include "runtime/method/training.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/grids.hpp"
#include "tests/support/tensors.hpp"
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <limits>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

namespace {

constexpr std::int64_t nets = 3, rows = 7, padded_row = 4;

/// Generated steps of three models; one row of each is padding with arbitrary values.
struct made_step {
  at::Tensor logits, labels, weight;
  explicit made_step(std::int64_t classes)
      : logits(drawn_floats({nets, rows, classes}, 4) * 20),
        labels(at::arange(nets * rows, at::kLong).remainder(classes).view({nets, rows})),
        weight(at::full({nets, rows}, 1.0F / 6.0F)) {
    logits.select(1, padded_row).fill_(std::numeric_limits<float>::quiet_NaN());
    labels.select(1, padded_row).fill_(-1);
    weight.select(1, padded_row).zero_();
  }
  [[nodiscard]] loss_output smoothed(const loss& objective, double smoothing) const {
    loss_input in{logits, logits, labels, weight, {}};
    in.label_smoothing = smoothing;
    return objective(in);
  }
};

} // namespace

TEST_CASE("smoothed cross-entropy and its gradient equal PyTorch's", "[label_smoothing]") {
  // PyTorch 2.11.0: z = torch.tensor([[1., -2., 0.5], [0., 3., -1.]], requires_grad=True)
  // l = torch.nn.functional.cross_entropy(z, torch.tensor([0, 2]), label_smoothing=0.1); l.backward(); l, z.grad
  const auto logits = floats({1.0F, -2.0F, 0.5F, 0.0F, 3.0F, -1.0F}).view({1, 2, 3});
  const auto labels = at::tensor({std::int64_t{0}, std::int64_t{2}}, at::kLong).view({1, 2});
  const auto weight = at::full({1, 2}, 0.5F);
  loss_input in{logits, logits, labels, weight, {}};
  in.label_smoothing = 0.1;
  const auto smoothed = (*cross_entropy_objective())(in);
  CHECK_THAT(smoothed.values.item<double>(), WithinAbs(2.260240316390991, 1e-6));
  const auto gradient = floats({-0.16479221F, -0.00163722F, 0.16642945F, 0.00663964F, 0.45145309F, -0.45809275F});
  CHECK(largest_difference(smoothed.d_logits, gradient) < 1e-7);
}

TEST_CASE("steps of several models are smoothed row by row, without padding", "[label_smoothing]") {
  for (const std::int64_t classes : {1, 2, 10, 103})
    for (const double smoothing : {0.1, 1.0}) {
      CAPTURE(classes, smoothing);
      const made_step step(classes);
      const auto smoothed = step.smoothed(*cross_entropy_objective(), smoothing);
      for (std::int64_t k = 0; k < nets; ++k) {
        const auto real = at::tensor(std::vector<std::int64_t>{0, 1, 2, 3, 5, 6}, at::kLong);
        const auto z = leaf_of(step.logits[k].index_select(0, real).to(at::kDouble));
        const auto theirs =
            at::cross_entropy_loss(z, step.labels[k].index_select(0, real), {}, at::Reduction::Mean, -100, smoothing);
        CHECK_THAT(smoothed.values[k].item<double>(), WithinAbs(theirs.item<double>(), 1e-5));
        CHECK(largest_difference(smoothed.d_logits[k].index_select(0, real),
                                 gradients_of(theirs, {z}).front().to(at::kFloat)) < 1e-6);
        CHECK(smoothed.d_logits[k][padded_row].abs().max().item<float>() == 0.0F);
      }
    }
}

TEST_CASE("a smoothing of 0 keeps the bits of the plain loss", "[label_smoothing]") {
  const made_step step(10);
  const auto plain = (*cross_entropy_objective())({step.logits, step.logits, step.labels, step.weight, {}});
  const auto unsmoothed = step.smoothed(*cross_entropy_objective(), 0.0);
  CHECK(at::equal(plain.values, unsmoothed.values));
  CHECK(at::equal(plain.d_logits, unsmoothed.d_logits));
}

TEST_CASE("soft targets are smoothed as PyTorch smooths probabilities", "[label_smoothing]") {
  const auto logits = drawn({2, 4, 5}, 1), targets = at::softmax(drawn({2, 4, 5}, 2), 2);
  const auto labels = at::zeros({2, 4}, at::kLong);
  const auto weight = at::full({2, 4}, 0.25F);
  loss_input told{logits, logits, labels, weight, {}};
  told.targets = targets;
  told.label_smoothing = 0.2;
  const auto smoothed = (*cross_entropy_objective())(told);
  for (std::int64_t k = 0; k < 2; ++k) {
    const auto z = leaf_of(logits[k].to(at::kDouble));
    const auto theirs = at::cross_entropy_loss(z, targets[k].to(at::kDouble), {}, at::Reduction::Mean, -100, 0.2);
    CHECK_THAT(smoothed.values[k].item<double>(), WithinRel(theirs.item<double>(), 1e-5));
    CHECK(largest_difference(smoothed.d_logits[k], gradients_of(theirs, {z}).front().to(at::kFloat)) < 1e-6);
  }
}

TEST_CASE("the threads of a grid smooth as the CPU does", "[label_smoothing]") {
  const made_step step(10);
  const auto twin = step.smoothed(*cross_entropy_objective(), 0.3);
  auto d_logits = at::full_like(step.logits, 7.0F);
  auto losses = at::empty({nets, rows}, at::kDouble);
  run_on_host(kernels::cuda::cross_entropy_group{.logits = step.logits.const_data_ptr<float>(),
                                                 .labels = step.labels.const_data_ptr<std::int64_t>(),
                                                 .weight = step.weight.const_data_ptr<float>(),
                                                 .d_logits = d_logits.mutable_data_ptr<float>(),
                                                 .losses = losses.mutable_data_ptr<double>(),
                                                 .rows = nets * rows,
                                                 .classes = 10,
                                                 .smoothing = 0.3},
              4);
  CHECK(largest_difference(d_logits, twin.d_logits) < 1e-6);
  CHECK(at::allclose(losses.sum(1), twin.values, 1e-6, 1e-6));
}

TEST_CASE("the proximal loss smooths its cross-entropy and reports it in its name", "[label_smoothing]") {
  const made_step step(10);
  const auto proximal = proximal_objective(0.5);
  CHECK(proximal->reads_label_smoothing());
  const auto proximal_output = step.smoothed(*proximal, 0.1),
             plain_output = step.smoothed(*cross_entropy_objective(), 0.1);
  CHECK(at::equal(proximal_output.values, plain_output.values));
  CHECK(at::equal(proximal_output.d_logits, plain_output.d_logits));
}
