// Jobs of FedHAF's two stages, compared with the paper: layers, epochs, losses, starts and draws.
#include "strategies/fedhaf/adjustment_losses.hpp"
#include "tests/strategies/shared/split_client.hpp"
using namespace mneme;
using namespace mneme::test;
using namespace mneme::test::split_case;

namespace {

std::vector<train_job> stages_of(split_client& client, std::uint32_t task) {
  return jobs_of_kind<train_job>(client.jobs(task, client.sent(task)));
}

adjustment_terms terms_of(std::uint32_t tasks) {
  adjustment_terms terms;
  for (std::int64_t t = 0; t < tasks; ++t)
    terms.tasks.push_back({2 * t, 2 * t + 2});
  return terms;
}

bool is_loss(const train_job& job, const adjustment_terms& terms) {
  return job.objective->identity() == adjustment_objective(terms)->identity();
}

std::string as_text(const std::vector<std::string>& layers) {
  std::string text;
  for (const auto& layer : layers)
    text += layer + " ";
  return text;
}

} // namespace

TEST_CASE("stage 1 trains the head for its epochs, then stage 2 the module from the end of stage 1") {
  split_client client("fedhaf", {{"adjustment_epochs", "3"}});
  client.open(0);
  const auto stages = stages_of(client, 0);
  REQUIRE(stages.size() == 2);
  CHECK(as_text(stages[0].options.layers) == "head ");
  CHECK(as_text(stages[1].options.layers) == "adjustment ");
  CHECK(stages[0].options.epochs == 2);
  CHECK(stages[1].options.epochs == 3);
  CHECK(at::equal(stages[0].start->at(flat_weights), client.sent(0).weights->at(flat_weights)));
  const std::vector<job> alone{{.id = {}, .request = stages[0]}};
  const auto ended = client.device->run(alone);
  CHECK(at::equal(stages[1].start->at(flat_weights),
                  std::get<train_output>(std::get<work_output>(ended[0])).weights->at(flat_weights)));
  CHECK(stages[1].stream.visit == stages[0].stream.visit + (1U << 24U)); // another shuffle
  CHECK(stages[0].options.learning_rate == 0.02);
}

TEST_CASE("each stage has the losses of its equations, and labels enter stage 2 only in the first task") {
  struct expected {
    const char* keys;
    double first, later; // weight of cross-entropy in stage 2
  };
  for (const auto& [word, first, later] :
       {expected{"first-task", 1.0, 0.0}, expected{"always", 1.0, 1.0}, expected{"never", 0.0, 0.0}}) {
    split_client client("fedhaf", {{"stage2_ce", word}});
    for (const std::uint32_t task : {0U, 1U}) {
      client.open(task);
      const auto stages = stages_of(client, task);
      REQUIRE(stages.size() == 2);
      auto head = terms_of(task + 1), module = terms_of(task + 1);
      head.cross_entropy = head.distillation = 1.0;
      head.feature_distillation = head.feature_balance = 0.0;
      module.feature_distillation = 2.0;
      module.feature_balance = 1.0;
      module.distillation = 0.0;
      module.cross_entropy = task == 0 ? first : later;
      CAPTURE(word, task);
      CHECK(is_loss(stages[0], head));
      CHECK(is_loss(stages[1], module));
      CHECK(stages[0].teachers.empty() == (task == 0));
      (void)client.round(task);
    }
  }
}

TEST_CASE("without stages both parts train together, for the epochs of both, from the same start") {
  for (const auto* const word : {"as-staged", "joint"})
    for (const auto* const labels : {"first-task", "always", "never"}) {
      split_client client(
          "fedhaf",
          {{"ablation", "stages"}, {"adjustment_epochs", "3"}, {"stages_gradient", word}, {"stage2_ce", labels}});
      for (const std::uint32_t task : {0U, 1U}) {
        CAPTURE(word, labels, task);
        client.open(task);
        const auto jobs = stages_of(client, task);
        REQUIRE(jobs.size() == 1);
        auto both = terms_of(task + 1);
        both.feature_distillation = 2.0;
        both.feature_balance = both.cross_entropy = both.distillation = 1.0;
        if (word == std::string("as-staged")) {
          both.distillation_passes = false;
          both.labels_pass = labels == std::string("always") || (labels == std::string("first-task") && task == 0);
        }
        CHECK(is_loss(jobs[0], both));
        CHECK(jobs[0].options.layers.empty());
        CHECK(jobs[0].options.epochs == 5);
        (void)client.round(task);
      }
    }
}

TEST_CASE("with simultaneous stages the head has the gradient of all losses, the module that by features") {
  for (const bool labels : {false, true}) {
    CAPTURE(labels);
    split_client client("fedhaf", {{"ablation", "stages"}});
    client.open(0);
    (void)client.round(0);
    client.open(1);
    auto job = stages_of(client, 1).at(0);
    job.options.result = training_result::gradient;
    job.options.batch_rows = 0;
    job.options.epochs = 1;
    const auto gradient_by = [&](const adjustment_terms& terms) {
      job.objective = adjustment_objective(terms);
      const auto done = client.device->run(std::vector<mneme::job>{{.id = {}, .request = job}});
      return std::get<train_output>(std::get<work_output>(done[0])).gradients;
    };
    auto joint = terms_of(2);
    joint.feature_distillation = 2.0;
    joint.feature_balance = joint.cross_entropy = joint.distillation = 1.0;
    auto staged = joint, module = joint;
    staged.labels_pass = labels;
    staged.distillation_passes = false;
    module.cross_entropy = labels ? 1.0 : 0.0;
    module.distillation = 0.0;
    const auto as_staged = gradient_by(staged), of_all = gradient_by(joint), of_module = gradient_by(module);
    for (const auto& entry : job.net->layout()) {
      if (entry.buffer)
        continue;
      CAPTURE(entry.name);
      const auto part = [&](const at::Tensor& flat) { return flat.narrow(0, entry.offset, entry.size); };
      const bool head = entry.name.starts_with("head.");
      CHECK(at::allclose(part(as_staged), part(head ? of_all : of_module), 1e-5, 1e-7));
      CHECK(part(as_staged).abs().max().item<double>() > 0.0);
    }
    CHECK_FALSE(at::allclose(as_staged, of_all, 1e-3, 1e-5));
  }
}
