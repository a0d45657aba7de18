// Trainings whose steps contain every row twice (second_view.hpp).
#include "runtime/method/second_view.hpp"
#include "runtime/training/executor.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/learning.hpp"
#include <ATen/Parallel.h>
using namespace mneme;
using namespace mneme::test;

namespace {

/// Cross-entropy that records what it receives for the first model of a group.
class recording_loss final : public loss {
public:
  std::string identity() const override { return "recording"; }
  loss_output operator()(const loss_input& in) const override {
    const auto own = in.labels.size(1) - in.replayed;
    for (const std::size_t view : {0U, 1U}) {
      const auto part = [&](const at::Tensor& whole) {
        return whole[0].narrow(0, view == 0 ? 0 : own, view == 0 ? own : in.replayed);
      };
      const auto real = part(in.labels).ge(0).nonzero().flatten();
      labels[view].push_back(part(in.labels).index_select(0, real));
      logits[view].push_back(part(in.logits).detach().index_select(0, real));
    }
    weight_sums.push_back(in.row_weight[0].sum().item<double>());
    return (*cross_entropy_objective())(in);
  }
  mutable std::array<std::vector<at::Tensor>, 2> labels, logits; // by view and step
  mutable std::vector<double> weight_sums;
};

train_job training(std::int64_t rows, training_options options, std::uint32_t client = 0) {
  static const auto source = drawn_data(40, {3, 8, 8}, 10);
  static const auto net = mlp_of({17}, 192, 10);
  options.classes = {0, 10};
  return {.net = net,
          .start = weights_only(initial_weights(*net, client + 1)),
          .samples = rows_from(source, client, rows),
          .options = options,
          .stream = {.seed = 5, .client = {client}}};
}
train_job twice(train_job job) {
  add_second_view(job);
  return job;
}
at::Tensor trained(const train_job& request) {
  const job single{.request = request};
  return weights_of(make_executor("cpu")->run(std::span(&single, 1))[0]).clone();
}

} // namespace

TEST_CASE("a second view has the rows of the first in the same order, under its own augmentation", "[second_view]") {
  at::set_num_threads(1);
  for (const std::int64_t batch : {0, 1, 4, 11, 20})
    for (const bool drops : {false, true}) {
      CAPTURE(batch, drops);
      auto job = twice(training(
          11, {.epochs = 3, .batch_rows = batch, .augment = augmentation_kind::crop_flip, .drop_last = drops}));
      const auto seen = std::make_shared<recording_loss>();
      job.objective = seen;
      const auto steps = batch == 0 ? 1 : drops ? 11 / batch : (11 + batch - 1) / batch;
      (void)trained(job);
      REQUIRE(std::ssize(seen->weight_sums) == 3 * steps);
      for (std::size_t step = 0; step < seen->weight_sums.size(); ++step) {
        CHECK(seen->labels[0][step].numel() > 0);
        CHECK(seen->labels[0][step].equal(seen->labels[1][step]));
        if (seen->labels[0][step].numel() > 1) // a single row may draw the same augmentation twice
          CHECK_FALSE(seen->logits[0][step].equal(seen->logits[1][step]));
        CHECK(std::abs(seen->weight_sums[step] - 1.0) < 1e-6);
      }
      CHECK(rows_of(work{job}) == 3 * 2 * (drops && batch > 0 ? 11 / batch * batch : 11));
    }
}

TEST_CASE("two equal views train like one", "[second_view]") {
  at::set_num_threads(1);
  for (const std::int64_t batch : {0, 4}) {
    const auto single = training(11, {.epochs = 2, .batch_rows = batch, .learning_rate = 0.2});
    CHECK(largest_difference(trained(twice(single)), trained(single)) < 1e-6);
    auto weighted = single;
    weighted.annotations.weights = std::make_shared<const std::vector<float>>(
        std::vector<float>{0.5F, 2.0F, 1.0F, 0.0F, 1.0F, 3.0F, 1.0F, 1.0F, 0.25F, 1.0F, 1.5F});
    CHECK(largest_difference(trained(twice(weighted)), trained(weighted)) < 1e-6);
  }
}

TEST_CASE("trainings of two views have the same bits alone and in a group", "[second_view]") {
  at::set_num_threads(1);
  std::vector<job> jobs;
  for (std::uint32_t k = 0; k < 5; ++k)
    jobs.push_back({.id = {{k}, 0, 0},
                    .request = twice(training(
                        11 - 3 * (k % 3),
                        {.epochs = 2, .batch_rows = 4, .momentum = 0.9, .augment = augmentation_kind::crop_flip}, k))});
  jobs.push_back({.id = {{5}, 0, 0}, .request = twice(training(0, {.batch_rows = 4}))}); // a client without rows
  const auto device = make_executor("cpu");
  const auto together = device->run(jobs);
  for (std::size_t k = 0; k < jobs.size(); ++k)
    CHECK(same_bits(weights_of(device->run(std::span(jobs).subspan(k, 1))[0]), weights_of(together[k])));
}
