#include "actors/run/simulation.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/device_cases.hpp"
#include "tests/support/learning.hpp"
#include "tests/support/run.hpp"
#include "tests/support/scenario_text.hpp"
using namespace mneme;
using namespace mneme::test;

namespace {

/// Clients of 1 to 29 rows, so that numbers of steps and last batches differ.
std::vector<job> ragged_group(const model_ref& net, const std::shared_ptr<const dataset>& source,
                              training_options options) {
  options.classes = {0, 5};
  const auto start = weights_only(initial_weights(*net, 1));
  std::vector<job> batch;
  for (std::int64_t k = 0; k < 8; ++k)
    batch.push_back({.request = train_job{.net = net,
                                          .start = start,
                                          .samples = rows_from(source, k, 1 + 4 * k),
                                          .options = options,
                                          .stream = {.seed = 5, .client = {static_cast<std::uint32_t>(k)}}}});
  return batch;
}

std::vector<at::Tensor> trained_on(const std::string& device, const std::vector<job>& batch) {
  std::vector<at::Tensor> tensors;
  for (const auto& outcome : make_executor(device)->run(batch))
    tensors.push_back(weights_of(outcome).cpu());
  return tensors;
}

} // namespace

TEST_CASE("a group trained on a device agrees with the CPU and repeats its bits", "[gpu]") {
  const device_of_test chosen;
  const auto device = chosen.device();
  const auto source = drawn_data(60, {1, 28, 28}, 5);
  for (const auto kind : {optimizer_kind::sgd, optimizer_kind::adam})
    for (const double extra : {0.0, 1.0})
      for (const auto& net : {mlp_of({33}, 784, 5), net_of("lenet", {1, 28, 28}, 5)}) {
        const auto batch = ragged_group(net, source,
                                        {.optimizer = kind,
                                         .epochs = 2,
                                         .batch_rows = 8,
                                         .learning_rate = kind == optimizer_kind::sgd ? 0.05 : 0.001,
                                         .momentum = 0.9 * extra,
                                         .weight_decay = 0.01 * extra,
                                         .clip_norm = 2.0 * extra});
        const auto ours = trained_on(device.str(), batch), again = trained_on(device.str(), batch),
                   twin = trained_on("cpu", batch);
        for (std::size_t k = 0; k < batch.size(); ++k) {
          CAPTURE(static_cast<int>(kind), extra, net->identity(), k);
          // Adam divides by roots of small moments. If a gradient is nearly 0, its sign determines a whole step.
          CHECK(largest_difference(ours[k], twin[k]) < (kind == optimizer_kind::sgd ? 1e-4 : 2e-2));
          CHECK((ours[k] - twin[k]).abs().mean().item<double>() < 1e-5);
          CHECK(same_bits(ours[k], again[k]));
        }
      }
}

TEST_CASE("a run on a device has one digest for any number of threads", "[gpu]") {
  const device_of_test chosen;
  const auto scenario = made_scenario({{"data.shape", raw_toml("[3, 8, 8]")},
                                       {"data.classes", 4},
                                       {"data.rows", 400},
                                       {"tasks.kind", "single"},
                                       {"clients.count", 12},
                                       {"rounds.per_task", 3},
                                       {"rounds.cohort", 5},
                                       {"model.name", "mlp"},
                                       {"model.hidden", raw_toml("[16]")},
                                       {"training.batch", 8},
                                       {"training.epochs", 2},
                                       {"training.augment", "crop-flip-jitter"},
                                       {"worker.device", "auto"}});
  const auto first = run_toml(scenario, {.threads = 1});
  CHECK(first.summary.run_digest == run_toml(scenario, {.threads = 1}).summary.run_digest);
  CHECK(first.summary.run_digest == run_toml(scenario, {.threads = 3}).summary.run_digest);
}
