// training.drop_last and training.label_smoothing in fused training: the rows of a step, and its loss.
#include "runtime/method/gradients.hpp"
#include "runtime/training/executor.hpp"
#include "runtime/training/step_plan.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/learning.hpp"
#include "tests/support/reference_gather.hpp"
#include <ATen/Parallel.h>
using namespace mneme;
using namespace mneme::test;

namespace {

constexpr std::int64_t width = 33, classes = 10;

/// Job on rows 3, 4, ... of random data, in order.
train_job job_of(std::int64_t rows, training_options options, const model_ref& net) {
  static const auto source = drawn_data(40, {1, 1, width}, classes);
  options.classes = {0, classes};
  options.in_order = true;
  return {.net = net,
          .start = weights_only(initial_weights(*net, 1)),
          .samples = rows_from(source, 3, rows),
          .options = options,
          .stream = {.seed = 5}};
}
train_job mlp_job(std::int64_t rows, const training_options& options) {
  static const auto net = mlp_of({17}, width, classes);
  return job_of(rows, options, net);
}
job_outcome outcome_of(const train_job& request) {
  const std::vector<job> single{{.request = request}};
  return make_executor("cpu")->run(single)[0];
}
train_output trained(const train_job& request) {
  const auto outcome = outcome_of(request);
  const auto* const output = std::get_if<work_output>(&outcome);
  REQUIRE(output);
  return std::get<train_output>(*output);
}

} // namespace

TEST_CASE("a plan with drop_last has only complete batches", "[drop_last]") {
  const step_plan plan{.rows = 23, .batch_rows = 10, .drop_last = true};
  CHECK(plan.steps() == 2);
  CHECK(plan.rows_of(1) == 10);
  CHECK((step_plan{.rows = 20, .batch_rows = 10, .drop_last = true}.steps() == 2));
  CHECK((step_plan{.rows = 9, .batch_rows = 10, .drop_last = true}.steps() == 0));
  CHECK((step_plan{.rows = 9, .batch_rows = 0, .drop_last = true}.steps() == 1)); // a full batch is complete
}

TEST_CASE("drop_last trains on the complete batches, one by one and in step", "[drop_last]") {
  at::set_num_threads(1);
  for (const double momentum : {0.0, 0.9}) { // 0: chains of linear layers are trained client by client
    CAPTURE(momentum);
    const training_options options{.epochs = 2, .batch_rows = 10, .momentum = momentum, .drop_last = true};
    auto whole = options;
    whole.drop_last = false;
    const auto dropped = trained(mlp_job(23, options)), expected = trained(mlp_job(20, whole));
    CHECK(at::equal(dropped.weights->at(flat_weights), expected.weights->at(flat_weights)));
    CHECK(dropped.loss_mean == expected.loss_mean);
    CHECK(dropped.rows_seen == 23); // the weight of an upload is the client's number of rows
    CHECK(rows_of(work(mlp_job(23, options))) == 40);
    CHECK(rows_of(work(mlp_job(23, whole))) == 46);
  }
}

TEST_CASE("a client with fewer rows than a batch takes no step", "[drop_last]") {
  const training_options options{.batch_rows = 10, .drop_last = true};
  const auto job = mlp_job(9, options);
  const auto output = trained(job);
  CHECK(at::equal(output.weights->at(flat_weights), job.start->at(flat_weights)));
  CHECK(output.loss_terms().empty());
  CHECK(rows_of(work(job)) == 0);
}

TEST_CASE("clients with and without a step share a group", "[drop_last]") {
  const training_options options{.batch_rows = 10, .momentum = 0.9, .drop_last = true};
  const std::vector<job> jobs{{.id = {{0}, 0, 0}, .request = mlp_job(9, options)},
                              {.id = {{1}, 0, 0}, .request = mlp_job(25, options)}};
  const auto both = make_executor("cpu")->run(jobs);
  CHECK(same_bits(weights_of(both[0]), weights_of(outcome_of(mlp_job(9, options)))));
  CHECK(same_bits(weights_of(both[1]), weights_of(outcome_of(mlp_job(25, options)))));
}

TEST_CASE("gradient jobs use all rows, whatever drop_last says", "[drop_last]") {
  training_options options{.batch_rows = 10, .result = training_result::gradient};
  const auto without = trained(mlp_job(23, options)).gradients;
  options.drop_last = true;
  CHECK(at::equal(trained(mlp_job(23, options)).gradients, without));
}

TEST_CASE("a step with label smoothing equals PyTorch's, one by one and in step", "[label_smoothing]") {
  at::set_num_threads(1);
  const auto net = net_of("linear", {1, 1, width}, classes);
  for (const double clip : {0.0, 1e9}) { // 0: client by client
    CAPTURE(clip);
    const auto job = job_of(7, {.batch_rows = 0, .learning_rate = 0.5, .clip_norm = clip, .label_smoothing = 0.1}, net);
    const auto output = trained(job);
    const auto flat = leaf_of(job.start->at(flat_weights).to(at::kDouble));
    const auto x = reference_gather(*job.samples.source, *job.samples.rows, {}).flatten(1).to(at::kDouble);
    std::vector<std::int64_t> labels;
    for (const auto row : *job.samples.rows)
      labels.push_back(job.samples.source->label(row));
    const auto z = at::linear(x, flat.narrow(0, 0, width * classes).view({classes, width}),
                              flat.narrow(0, width * classes, classes));
    const auto loss = at::cross_entropy_loss(z, at::tensor(labels, at::kLong), {}, at::Reduction::Mean, -100, 0.1);
    const auto expected = flat.detach() - gradients_of(loss, {flat}).front() * 0.5;
    CHECK(std::abs(output.loss_mean - loss.item<double>()) < 1e-6);
    CHECK(largest_difference(output.weights->at(flat_weights), expected.to(at::kFloat)) < 1e-6);
  }
}

TEST_CASE("an objective that does not support label smoothing refuses it", "[label_smoothing]") {
  class plain_loss final : public loss {
  public:
    std::string identity() const override { return "plain"; }
    loss_output operator()(const loss_input& in) const override { return (*cross_entropy_objective())(in); }
  };
  auto job = mlp_job(7, {.label_smoothing = 0.25});
  CHECK(std::holds_alternative<work_output>(outcome_of(job)));
  job.objective = std::make_shared<plain_loss>();
  CHECK(std::get<std::string>(outcome_of(job)) ==
        "training.label_smoothing = 0.25: the objective 'plain' does not read it; expected 0.0");
}
