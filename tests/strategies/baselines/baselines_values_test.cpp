// Losses, gradients, weights and schedules of the baselines, compared with float64 formulas, autograd and sums by hand.
#include "runtime/method/gradients.hpp"
#include "tests/support/shown_steps.hpp"
#include "tests/support/tensors.hpp"
#include <catch2/matchers/catch_matchers_floating_point.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::WithinRel;

namespace {

constexpr std::int64_t features = 3, classes = 6, size = (features + 1) * classes;

method_setup setup_of(std::int64_t tasks) {
  auto setup = setup_of_run(model_named("linear", {1, 1, features}, classes), features, tasks);
  setup.training = {.batch = 4, .learning_rate = 0.3};
  return setup;
}

std::unique_ptr<strategy> prepared(const std::string& name,
                                   const std::vector<std::pair<std::string, std::string>>& keys, std::int64_t tasks) {
  auto method = strategy_named(name);
  give_keys(*method, keys);
  method->prepare(setup_of(tasks));
  return method;
}

/// Jobs of a round in which the client holds the first eight rows of the task's classes.
std::vector<train_job> trainings(const strategy& method, broadcast in) {
  std::vector<std::int64_t> mine;
  for (std::int64_t r = 0; std::ssize(mine) < 8; ++r)
    if (r % classes >= in.info.current_classes.low && r % classes < in.info.current_classes.high)
      mine.push_back(r);
  const auto device = make_executor("cpu");
  return jobs_of_kind<train_job>(jobs_of_round(method, *device,
                                               {.in = std::make_shared<const broadcast>(std::move(in)),
                                                .samples = view_of(striped_rows(48, features, classes), mine),
                                                .seed = 1}));
}

tensors_ref fisher_upload(double fisher, double weight = 0.0) {
  auto upload = std::make_shared<tensor_map>();
  upload->put(flat_weights, at::full({size}, weight, at::kFloat));
  upload->put("fisher", at::full({size}, fisher, at::kFloat));
  return upload;
}

} // namespace

TEST_CASE("EWC blends Fisher information by the share of earlier classes, and a task's uploads by rows", "[ewc]") {
  const auto method = prepared("fed-ewc", {}, 4);
  const auto server = method->make_server();
  const auto device = make_executor("cpu");
  job_channel channel;
  server_context ctx(channel);
  const std::vector<std::int64_t> opened{1, 3, 6, 6}; // classes after each task
  const auto begin = [&](std::uint32_t task) {
    const round_info info{.task = {task}, .seen_classes = {0, opened[task]}, .current_classes = {0, opened[task]}};
    (void)run_step(server->open_task(ctx, info), channel, *device);
    return server->open_round(info).extra;
  };
  const auto value_of = [](const tensors_ref& held, const char* name) { return held->at(name)[7].item<double>(); };
  CHECK_FALSE(begin(0));
  server->fold({.upload = fisher_upload(0.5), .rows = 1});
  server->fold({.upload = fisher_upload(2.5), .rows = 3});
  run_step(server->close_round(ctx, {}), channel, *device);
  CHECK(value_of(begin(1), "fisher") == 2.0); // (1 * 0.5 + 3 * 2.5) / 4: no earlier information
  server->fold({.upload = fisher_upload(8.0, 0.25), .rows = 5});
  server->fold({.upload = fisher_upload(99.0), .rows = 0}); // trained on no rows
  run_step(server->close_round(ctx, {}), channel, *device);
  const auto third = begin(2);
  CHECK_THAT(value_of(third, "fisher"), WithinRel(1.0 / 3 * 2.0 + 2.0 / 3 * 8.0, 1e-6)); // 1 of 3 classes is old
  CHECK(value_of(third, "anchor") == 0.25);
  server->fold({.upload = fisher_upload(1.0, 0.75), .rows = 5});
  run_step(server->close_round(ctx, {}), channel, *device);
  const auto fourth = begin(3);
  CHECK_THAT(value_of(fourth, "fisher"), WithinRel(0.5 * 6.0 + 0.5 * 1.0, 1e-6)); // 3 of 6
  CHECK(value_of(fourth, "anchor") == 0.75);
}

TEST_CASE("Fisher information of tasks can be summed instead of blended", "[ewc]") {
  const auto method = prepared("fed-ewc", {{"fisher_over_tasks", "add"}}, 4);
  const auto server = method->make_server();
  const auto device = make_executor("cpu");
  job_channel channel;
  server_context ctx(channel);
  for (const std::uint32_t task : {0U, 1U, 2U}) {
    const round_info info{.task = {task}, .seen_classes = {0, task + 1}, .current_classes = {task, task + 1}};
    (void)run_step(server->open_task(ctx, info), channel, *device);
    if (task == 2)
      CHECK(server->open_round(info).extra->at("fisher")[7].item<double>() == 2.5);
    server->fold({.upload = fisher_upload(task == 0 ? 2.0 : 0.5), .rows = 1});
    run_step(server->close_round(ctx, {}), channel, *device);
  }
}

TEST_CASE("EWC as in the official code passes rows again at rate 0, which updates running statistics", "[ewc]") {
  for (const bool moves : {false, true}) {
    const auto method =
        prepared("fed-ewc", {{"ewc_mode", "repo_noop"}, {"fisher_updates_batch_norm", moves ? "true" : "false"}}, 3);
    const auto start = weights_only(initial_weights(*setup_of(3).net, 2));
    const auto jobs = trainings(
        *method, {.info = {.task = {1}, .seen_classes = {0, 4}, .current_classes = {2, 4}}, .weights = start});
    REQUIRE(jobs.size() == (moves ? 2 : 1));
    if (!moves)
      continue;
    CHECK(jobs[1].options.learning_rate == 0.0);
    CHECK(jobs[1].options.epochs == 1);
    CHECK((jobs[1].options.classes == class_range{0, 4}));
    CHECK_FALSE(at::equal(jobs[1].start->at(flat_weights), start->at(flat_weights)));
  }
}

TEST_CASE("EWC's penalty has the gradient lambda F (w - w*) on each segment of the weights", "[ewc]") {
  const auto method = prepared("fed-ewc", {{"ewc_lambda", "10"}}, 2);
  auto held = std::make_shared<tensor_map>();
  held->put("fisher", at::arange(size, at::kFloat));
  held->put("anchor", at::full({size}, 0.5F));
  const auto start = weights_only(at::zeros({size}));
  const auto jobs = trainings(
      *method,
      {.info = {.task = {1}, .seen_classes = {0, 6}, .current_classes = {3, 6}}, .weights = start, .extra = held});
  REQUIRE(jobs.size() == 1); // the last task leaves no Fisher information
  REQUIRE(jobs[0].objective->regularizes());
  auto gradients = at::full({3}, 7.0F);
  const auto w = at::tensor({0.5F, 1.0F, -0.5F}), far = at::full({3}, 9.0F);
  jobs[0].objective->regularize(w, far, 4, jobs[0].auxiliary.get(), gradients);
  CHECK(at::equal(gradients, at::tensor({7.0F, 7.0F + 10 * 5 * 0.5F, 7.0F - 10 * 6 * 1.0F})));
}

TEST_CASE("EWC trains on the task's classes and measures over all seen ones at the end of training", "[ewc]") {
  const auto method = prepared("fed-ewc", {}, 3);
  const auto start = weights_only(initial_weights(*setup_of(3).net, 2));
  const auto jobs =
      trainings(*method, {.info = {.task = {1}, .seen_classes = {0, 4}, .current_classes = {2, 4}}, .weights = start});
  REQUIRE(jobs.size() == 2);
  CHECK((jobs[0].options.classes == class_range{2, 4}));
  CHECK((jobs[1].options.classes == class_range{0, 4}));
  CHECK(jobs[1].options.result == training_result::squared_gradients);
  CHECK(jobs[1].options.epochs == 1);
  CHECK(at::equal(jobs[0].start->at(flat_weights), start->at(flat_weights)));
  CHECK_FALSE(at::equal(jobs[1].start->at(flat_weights), start->at(flat_weights)));
}

// Weight 2, T = 4. A gradient with a factor T^2 would be 16 times as large, one without T 4 times.
TEST_CASE("LwF's loss and gradient equal autograd in float64, without padding rows", "[lwf]") {
  const auto method = prepared("fed-lwf", {{"distillation_weight", "2"}, {"temperature", "4"}}, 2);
  const auto weights = weights_only(initial_weights(*setup_of(2).net, 2));
  const auto jobs = trainings(
      *method,
      {.info = {.task = {1}, .seen_classes = {0, 6}, .current_classes = {4, 6}}, .weights = weights, .extra = weights});
  REQUIRE(jobs.size() == 1);
  REQUIRE((jobs[0].options.teachers.at(0).classes == class_range{0, 4}));
  const auto logits = 3.0 * drawn({2, 4, 6}, 1), teacher = 3.0 * drawn({2, 4, 4}, 2);
  auto labels = at::tensor({4, 5, 5, -1, 5, 4, 4, 4}, at::kLong).view({2, 4});
  const auto weight = at::tensor({1.0F / 3, 1.0F / 3, 1.0F / 3, 0.0F, 0.25F, 0.25F, 0.25F, 0.25F}).view({2, 4});
  const auto found = (*jobs[0].objective)({.logits = logits,
                                           .features = logits,
                                           .labels = labels,
                                           .row_weight = weight,
                                           .auxiliaries = {},
                                           .teachers = {{.logits = teacher}}});
  for (std::int64_t k = 0; k < 2; ++k) {
    const auto z = leaf_of(logits[k].to(at::kDouble)), t = teacher[k].to(at::kDouble);
    auto value = at::zeros({}, at::kDouble);
    const std::int64_t real = k == 0 ? 3 : 4;
    for (std::int64_t i = 0; i < real; ++i) {
      const auto fresh = -at::log_softmax(z[i].narrow(0, 4, 2), 0)[labels[k][i].item<std::int64_t>() - 4];
      const auto old = -(at::softmax(t[i] / 4.0, 0) * at::log_softmax(z[i].narrow(0, 0, 4) / 4.0, 0)).sum();
      value = value + (fresh + 2.0 * old) / static_cast<double>(real);
    }
    CHECK_THAT(found.values[k].item<double>(), WithinRel(value.item<double>(), 1e-6));
    const auto slope = gradients_of(value, {z}).front();
    CHECK((found.d_logits[k].to(at::kDouble) - slope).abs().max().item<double>() < 1e-7);
  }
}

TEST_CASE("LwF's client uses teacher and old classes with the paper's weight 3 and temperature 2", "[lwf]") {
  const auto method = prepared("fed-lwf", {}, 2);
  const auto weights = weights_only(initial_weights(*setup_of(2).net, 2));
  const auto other = weights_only(initial_weights(*setup_of(2).net, 3));
  const auto jobs = trainings(
      *method,
      {.info = {.task = {1}, .seen_classes = {0, 6}, .current_classes = {4, 6}}, .weights = weights, .extra = other});
  REQUIRE(jobs.size() == 1);
  CHECK(jobs[0].objective->identity() == "lwf 4 3 2");
  CHECK(at::equal(jobs[0].teachers.at(0)->at(flat_weights), other->at(flat_weights)));
  CHECK((jobs[0].options.classes == class_range{0, 6}));
}

TEST_CASE("FedProx adds mu (w - start) to the gradient", "[fedprox]") {
  const auto method = prepared("fedprox", {{"mu", "0.5"}}, 1);
  const auto jobs = trainings(*method, {.info = {.seen_classes = {0, 6}, .current_classes = {0, 6}},
                                        .weights = weights_only(initial_weights(*setup_of(1).net, 2))});
  REQUIRE(jobs.size() == 1);
  REQUIRE(jobs[0].objective->regularizes());
  auto gradients = at::full({2}, 1.0F);
  jobs[0].objective->regularize(at::tensor({3.0F, -1.0F}), at::tensor({1.0F, 1.0F}), 0, nullptr, gradients);
  CHECK(at::equal(gradients, at::tensor({2.0F, 0.0F})));
}

TEST_CASE("a round's learning rate follows the schedule of its task", "[fedavg]") {
  auto method = strategy_named("fedavg");
  auto setup = setup_of(2);
  setup.training.learning_rate = 1.0;
  setup.training.schedule = schedule_kind::cosine;
  method->prepare(setup);
  for (const auto& [round, rate] : {std::pair{0, 1.0}, {1, 0.75}, {2, 0.25}}) {
    const round_info info{
        .round_of_task = round, .rounds_of_task = 3, .seen_classes = {0, 6}, .current_classes = {0, 6}};
    const auto jobs = trainings(*method, {.info = info, .weights = weights_only(initial_weights(*setup.net, 2))});
    CHECK_THAT(jobs.at(0).options.learning_rate, WithinRel(rate, 1e-12));
  }
}
