// The centralized study, without actors: rehearsal of its only learner.
#include "runtime/models/embedding_model.hpp"
#include "strategies/fil_ver/ver_loss.hpp"
#include "tests/support/method_driver.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_test_macros.hpp>
#include <set>
using namespace mneme;
using namespace mneme::test;

namespace {

constexpr std::int64_t pixels = 10, classes = 2, rows_each = 40, tasks = 3, width = 4;

std::vector<std::int64_t> rows_of_task(std::uint32_t task) {
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < rows_each; ++row)
    rows.push_back(row + task * rows_each);
  return rows;
}

/// Jobs of the learner, and their results.
struct study {
  std::shared_ptr<const dataset> rows = striped_rows(rows_each * tasks, pixels, classes);
  listed_rows central{rows, rows_of_task};
  std::unique_ptr<strategy> method = strategy_named("central-rehearsal");
  std::unique_ptr<executor> device = make_executor("cpu");
  std::shared_ptr<const embedding_model> net;
  std::unique_ptr<server_half> server;
  memory_ref memory;
  std::uint32_t round = 0;
  sample_view encoder_rows{};       // of the encoder's training
  std::vector<sample_view> trained; // of every round
  std::vector<std::string> objectives;

  explicit study(key_list keys, bool normal = false) {
    keys.pairs.insert(keys.pairs.begin(), {"vee_epochs", "2"});
    give_keys(*method, keys.pairs);
    net = std::make_shared<const embedding_model>(
        embedding_shape{.hidden = {8}, .embedding = width, .classifier = {6}, .normal = normal},
        std::array<std::int64_t, 3>{1, 1, pixels}, classes);
    auto setup = setup_of_run(net, pixels, tasks);
    setup.training.batch = 8;
    setup.task_classes.assign(tasks, {0, classes});
    CHECK(method->check(setup).empty());
    method->prepare(setup);
    server = method->make_server();
    for (std::uint32_t task = 0; task < tasks; ++task)
      for (int i = 0; i < 2; ++i)
        learn(task, i == 0);
  }
  at::Tensor model() const { return server->predict().weights->at(flat_weights); }

private:
  outcomes done(plan wanted) {
    if (const auto* training = std::get_if<train_job>(&wanted.at(0))) {
      (memory_open_ ? trained.emplace_back() : encoder_rows) = training->samples;
      objectives.push_back(training->objective->identity());
    }
    return run_plan(*device, std::move(wanted));
  }
  template <class T>
  void drive(task<T> step, job_channel& channel) {
    step.start();
    while (!step.done())
      channel.answer(done(channel.take_plan()));
    step.take();
  }
  void learn(std::uint32_t task, bool first) {
    const round_info info{.round = {round++},
                          .task = {task},
                          .round_of_task = first ? 0 : 1,
                          .rounds_of_task = 2,
                          .seen_classes = {0, classes},
                          .current_classes = {0, classes}};
    job_channel channel;
    server_context ctx(channel, &central);
    memory_open_ = false;
    if (first)
      drive(server->open_task(ctx, info), channel);
    memory_open_ = true;
    auto in = server->open_round(info);
    in.info = info;
    const auto shown = method->needs().rows == row_visibility::offline ? view_of(rows, rows_of_all()) //
                                                                       : view_of(rows, rows_of_task(task));
    client_round_runner run(
        *method,
        {.in = std::make_shared<const broadcast>(in), .memory = memory, .samples = shown, .seed = 5, .visit = round});
    auto step = run.start();
    while (auto* wanted = std::get_if<plan>(&step))
      step = run.resume(done(std::move(*wanted)));
    REQUIRE(std::holds_alternative<client_result>(step));
    const auto result = std::get<client_result>(step);
    memory = result.memory;
    server->fold({.upload = result.upload, .rows = result.rows});
    drive(server->close_round(ctx, info), channel);
  }
  static std::vector<std::int64_t> rows_of_all() {
    std::vector<std::int64_t> values;
    for (std::uint32_t task = 0; task < tasks; ++task)
      for (const auto row : rows_of_task(task))
        values.push_back(row);
    return values;
  }
  bool memory_open_ = false;
};

std::vector<std::int64_t> sizes(const study& run) {
  std::vector<std::int64_t> values;
  for (const auto& view : run.trained)
    values.push_back(view.size());
  return values;
}
using counts = std::vector<std::int64_t>;
const std::pair<std::string, std::string> on_task_1{"vee_data", "task1-all"};

} // namespace

TEST_CASE("raw rehearsal through a frozen encoder equals rehearsal of its embeddings bit by bit") {
  const study raw({{"system", "naive"}, {"encoder", "frozen"}, on_task_1}), ebr({{"system", "ebr"}, on_task_1});
  CHECK(at::equal(raw.model(), ebr.model()));
  CHECK(sizes(raw) == counts{40, 40, 44, 44, 48, 48});
  CHECK(sizes(ebr) == sizes(raw));
  CHECK(raw.memory->find("rows.1"));
  CHECK_FALSE(ebr.memory->find("rows.1"));
  CHECK_FALSE(at::equal(raw.model(), study({{"system", "none"}, {"encoder", "frozen"}, on_task_1}).model()));
}

TEST_CASE("without stored embeddings the encoder trains together with its classifier") {
  for (const std::string system : {"none", "naive"}) {
    const study run({{"system", system}});
    CHECK_FALSE(run.encoder_rows.source);
    CHECK(run.trained.front().source == run.rows); // pixels
    CHECK_FALSE(run.server->predict().classifier);
    CHECK(sizes(run) == (system == "none" ? counts{40, 40, 40, 40, 40, 40} : counts{40, 40, 44, 44, 48, 48}));
  }
}

TEST_CASE("the memory of a task is drawn for that task") {
  const study run({{"system", "naive"}, {"rehearsal_ratio", "0.2"}});
  REQUIRE(run.memory->at("rows.1").numel() == 8);
  CHECK_FALSE(at::equal(run.memory->at("rows.1") + rows_each, run.memory->at("rows.2")));
}

TEST_CASE("a variational encoder trained with its classifier uses eq. 9, a classifier cross-entropy") {
  const auto with_kl = ver_loss(0.01, -6.0, 3.0)->identity(), plain = cross_entropy_objective()->identity();
  const study together({{"system", "naive"}, {"beta", "0.01"}}, true);
  CHECK(together.objectives == std::vector<std::string>(6, with_kl));
  const study frozen({{"system", "naive"}, {"beta", "0.01"}, {"encoder", "frozen"}, on_task_1}, true);
  CHECK(frozen.objectives == std::vector<std::string>{with_kl, plain, plain, plain, plain, plain, plain});
  CHECK(study({{"system", "naive"}}).objectives == std::vector<std::string>(6, plain));
}

TEST_CASE("sixteen times the embeddings are all of them, limited by their number") {
  CHECK(sizes(study({{"ebr_multiplier", "16"}, on_task_1})) == counts{40, 40, 80, 80, 120, 120});
  CHECK(sizes(study({{"ebr_multiplier", "16"}, {"ebr_repeat_cap", "0.5"}, on_task_1})) ==
        counts{40, 40, 60, 60, 80, 80});
}

TEST_CASE("offline trains on all tasks from the first round on") {
  CHECK(sizes(study({{"system", "offline"}})) == counts(6, 120));
  const study frozen({{"system", "offline"}, {"encoder", "frozen"}, on_task_1});
  CHECK(sizes(frozen) == counts(6, 120));
  CHECK(frozen.encoder_rows.size() == 40);
  CHECK(frozen.trained.back().source->vectors.defined());
}

TEST_CASE("hold-out rows for the encoder come from every task and have no other use") {
  const study run({{"system", "naive"}, {"encoder", "frozen"}, {"encoder_holdout_share", "0.3"}});
  const std::set<std::int64_t> held(run.encoder_rows.rows->begin(), run.encoder_rows.rows->end());
  CHECK(held.size() > 20);
  CHECK(held.size() < 55);
  for (std::uint32_t task = 0; task < tasks; ++task)
    CHECK(held.lower_bound(task * rows_each) != held.lower_bound((task + 1) * rows_each));
  const auto in_task_1 = std::distance(held.begin(), held.lower_bound(rows_each));
  CHECK(run.trained.front().size() == rows_each - in_task_1);
  const auto* kept = run.memory->find("rows.1");
  REQUIRE(kept);
  for (std::int64_t i = 0; i < kept->numel(); ++i)
    CHECK_FALSE(held.contains(kept->const_data_ptr<std::int64_t>()[i]));
}

TEST_CASE("noise comes from a random encoder, for the rehearsed vectors or for all") {
  const study ebr({{"system", "ebr"}, on_task_1}), other({{"system", "noise"}, on_task_1}),
      front({{"system", "noise"}, {"noise_scope", "all"}, on_task_1});
  CHECK(sizes(other) == sizes(ebr));
  const auto last = [](const study& run) { return run.trained.back().source->vectors; };
  CHECK(at::equal(last(other).narrow(0, 0, 40), last(ebr).narrow(0, 0, 40)));
  CHECK_FALSE(at::equal(last(other).narrow(0, 40, 8), last(ebr).narrow(0, 40, 8)));
  CHECK(other.trained.back().source->labels == ebr.trained.back().source->labels);
  CHECK_FALSE(front.encoder_rows.source); // nothing is trained before
  CHECK_FALSE(at::equal(last(front).narrow(0, 0, 40), last(ebr).narrow(0, 0, 40)));
  CHECK_FALSE(at::equal(last(front).narrow(0, 40, 8), last(other).narrow(0, 40, 8)));
}

TEST_CASE("a study has one learner and no embeddings of an encoder that is trained") {
  const auto method = strategy_named("central-rehearsal");
  give_keys(*method, {{"encoder", "trained"}});
  method_setup setup{.net = model_named("ebr", {1, 1, pixels}, classes), .clients = 4};
  const auto errors = method->check(setup);
  REQUIRE(errors.size() == 2);
  CHECK(errors[0].text == "clients.count = 4: central-rehearsal has one learner; expected 1");
  CHECK(errors[1].where == "strategy.encoder");
}
