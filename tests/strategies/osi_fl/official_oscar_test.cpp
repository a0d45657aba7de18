// OSCAR compared with its authors' program, epoch by epoch. tools/research/official/oscar.py wrote the reference
// values.
#include "strategies/osi_fl/best_epoch.hpp"
#include "tests/support/learning.hpp"
#include "tests/support/method_driver.hpp"
#include "tests/support/official_steps.hpp"
#include "tests/support/small_nets.hpp"
using namespace mneme;
using namespace mneme::test;

namespace {

constexpr std::int64_t classes = 4;

sample_view rows_of_both(std::int64_t rows) {
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < rows; ++i)
    labels.push_back((i * i + i / 3) % classes);
  return rows_from(small_nets::rows({{"rows", labels}}), 0, rows);
}

/// The whole net is trained over all classes, with equal weights of rows.
train_job training(const model_ref& net, const nlohmann::json& settings) {
  train_job job{
      .net = net, .start = weights_only(small_nets::weights(*net, "")), .samples = rows_of_both(settings.at("rows"))};
  job.options = {.epochs = settings.at("epochs"),
                 .batch_rows = settings.at("batch"),
                 .learning_rate = settings.at("rate"),
                 .momentum = settings.at("momentum"),
                 .in_order = true,
                 .classes = {0, classes}};
  return job;
}

train_output outcome_of(const train_job& job) {
  const auto done = run_plan(*make_executor("cpu"), {job});
  return std::get<train_output>(std::get<work_output>(done[0]));
}

at::Tensor best_of(const job_outcome& outcome) {
  return std::get<train_output>(std::get<work_output>(outcome)).observed->at(best_epoch_weights);
}

/// Relative to the norm: single steps agree to 1e-6, and rounding grows with them. In the third epoch, from step 7 on,
/// rounding changes the sign of a value before a ReLU.
double bound_after(std::int64_t epochs) { return epochs < 3 ? 1e-5 : 1e-3; }

void compare_weights(official_steps& both, const std::string& where, const model& net, const at::Tensor& flat,
                     const nlohmann::json& official, double bound) {
  for (const auto& entry : net.layout())
    both.weights(where + entry.name, entry.name, as_in_files(flat, entry), official[entry.name], bound);
}

} // namespace

TEST_CASE("OSCAR's net after every epoch, and the selected epoch, equal the official code's", "[official][oscar]") {
  official_steps both("oscar/training");
  const auto net = small_nets::net(classes);
  auto job = training(net, both["settings"]);
  const auto epochs = job.options.epochs;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    job.options.epochs = epoch + 1;
    const auto done = outcome_of(job);
    const auto where = "epoch " + std::to_string(epoch + 1) + " ";
    both.term(where + "loss", both["losses"][static_cast<std::size_t>(epoch)], done.loss_mean,
              0.1 * bound_after(epoch + 1));
    compare_weights(both, where, *net, done.weights->at(flat_weights), both["nets"][static_cast<std::size_t>(epoch)],
                    bound_after(epoch + 1));
    CHECK(both["rates"][static_cast<std::size_t>(epoch)] == job.options.learning_rate); // losses are below 7
  }
  job.observation = best_epoch_observation();
  compare_weights(both, "kept ", *net, outcome_of(job).observed->at(best_epoch_weights), both["kept"],
                  bound_after(epochs));
  REQUIRE(both["kept"] == both["nets"][3]); // the last epoch has as many right predictions, and no more
}

TEST_CASE("the official schedule passes the loss as the number of the epoch") {
  const official_steps both("oscar/schedule");
  for (std::size_t epoch = 0; epoch < both["losses"].size(); ++epoch) {
    const auto falls = std::floor(both["losses"][epoch].get<double>() / 7.0);
    CHECK(std::abs(both["rates"][epoch].get<double>() / (5e-4 * std::pow(0.1, falls)) - 1.0) < 1e-6);
  }
}

TEST_CASE("the best epoch does not depend on stacked trainings and may be the start") {
  const auto net = small_nets::net(classes);
  auto long_one = training(net, {{"rows", 48}, {"batch", 16}, {"rate", 0.3}, {"momentum", 0.9}, {"epochs", 6}});
  long_one.observation = best_epoch_observation();
  auto short_one = long_one;
  short_one.samples = rows_of_both(10);
  const auto together = make_executor("cpu")->run(
      std::vector<mneme::job>{{.id = {1}, .request = short_one}, {.id = {2}, .request = long_one}});
  CHECK(at::equal(best_of(together[0]), outcome_of(short_one).observed->at(best_epoch_weights)));
  CHECK(at::equal(best_of(together[1]), outcome_of(long_one).observed->at(best_epoch_weights)));

  // One row at a rate of 0: the net predicts one class in every epoch, and only running statistics change.
  auto errors = training(net, {{"rows", 1}, {"batch", 1}, {"rate", 0.0}, {"momentum", 0.0}, {"epochs", 2}});
  errors.observation = best_epoch_observation();
  const auto keeps_an_epoch = [&](std::int64_t label) {
    errors.samples = rows_from(small_nets::rows({{"rows", {label}}}), 0, 1);
    return !at::equal(outcome_of(errors).observed->at(best_epoch_weights), errors.start->at(flat_weights));
  };
  std::int64_t kept = 0;
  for (std::int64_t label = 0; label < classes; ++label)
    kept += keeps_an_epoch(label) ? 1 : 0;
  CHECK(kept == 1);
}
