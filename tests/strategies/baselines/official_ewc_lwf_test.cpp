// Client rounds of the official EWC and LwF in STSA's repository, recorded by tools/research/official/stsa.py.
#include "strategies/baselines/old_model_distillation.hpp"
#include "tests/support/method_driver.hpp"
#include "tests/support/small_nets.hpp"
using namespace mneme;
using namespace mneme::test;

namespace {

constexpr std::int64_t classes = 6, old = 4, rows = 8;

std::shared_ptr<dataset> batches(const std::string& name, std::int64_t low) {
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> listed;
  for (std::int64_t i = 0; i < 2; ++i) {
    std::vector<std::int64_t> labels;
    for (std::int64_t r = 0; r < rows; ++r)
      labels.push_back(low + (i + r * r) % (classes - low));
    listed.emplace_back(name + "." + std::to_string(i), labels);
  }
  return small_nets::rows(listed);
}

struct round_of_client {
  model_ref net = small_nets::net(classes);
  train_job job;

  explicit round_of_client(const std::string& name)
      : job{.net = net,
            .start = weights_only(small_nets::weights(*net, "client.net.")),
            .samples = rows_from(batches(name, name == "first" ? 0 : old), 0, 2 * rows)} {
    job.options = {.batch_rows = rows,
                   .learning_rate = 0.01,
                   .momentum = 0.9,
                   .in_order = true,
                   .classes = {name == "first" ? 0 : old, classes}};
  }
  [[nodiscard]] train_output done() const {
    const auto done = make_executor("cpu")->run(std::vector<mneme::job>{{.id = {}, .request = job}});
    REQUIRE(std::holds_alternative<work_output>(done[0]));
    return std::get<train_output>(std::get<work_output>(done[0]));
  }
};

} // namespace

TEST_CASE("a round of the official EWC trains plainly and updates running statistics in its Fisher pass",
          "[official][fed-ewc]") {
  official_steps both("fed_ewc/local_rounds");
  for (const std::string name : {"first", "later"}) {
    CAPTURE(name);
    round_of_client round(name);
    round.job.start = round.done().weights;
    round.job.options.classes = {0, classes};
    auto fisher = round;
    fisher.job.options.result = training_result::squared_gradients;
    const auto fresh = fisher.done().gradients.clamp_max(1e-4);
    round.job.options.learning_rate = 0.0; // the pass as fed-ewc makes it
    const auto& official = both[name.c_str()];
    small_nets::compare(both, name + " task, sent ", *round.net, round.done().weights->at(flat_weights),
                        official.at("sent"), 1e-5);
    auto known = fresh.clone();
    if (name == "later") // blended by the known classes, with the script's start
      known = fresh * (2.0 / 6.0) + 1e-5 * (4.0 / 6.0);
    small_nets::compare(both, name + " task, Fisher ", *round.net, known, official.at("fisher"), 1e-4);
  }
}

TEST_CASE("a round of the official LwF has cross-entropy of the task and distillation from the previous model",
          "[official][fed-lwf]") {
  official_steps both("fed_lwf/local_rounds");
  for (const std::string name : {"first", "later"}) {
    CAPTURE(name);
    round_of_client round(name);
    round.job.options.weight_decay = 5e-4;
    if (name == "later") {
      round.job.options.classes = {0, classes};
      round.job.add_teacher(weights_only(small_nets::weights(*round.net, "old.net.")), {.classes = {0, old}});
      round.job.objective = distillation_objective(old, {.weight = 3.0, .temperature = 2.0});
    }
    small_nets::compare(both, name + " task, sent ", *round.net, round.done().weights->at(flat_weights),
                        both[name.c_str()], 1e-5);
  }
}
