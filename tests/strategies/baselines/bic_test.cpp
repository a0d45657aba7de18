// BiC: distillation from a corrected teacher, and the two numbers of stage 2, by hand and compared with official code.
#include "tests/support/rehearsing_client.hpp"
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <set>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::WithinAbs;

namespace {

/// Extra tensors of a broadcast: a teacher, and alpha and beta of each earlier task.
tensors_ref result_with_teacher(const rehearsing_client& client, const std::vector<double>& corrections) {
  auto extra = std::make_shared<tensor_map>(*weights_only(initial_weights(*client.setup.net, 77)));
  extra->put("corrections", at::tensor(corrections, at::kDouble).view({-1, 2}));
  return extra;
}

/// The training step of the scripts in tools/research/export/official.
struct official_step {
  at::Tensor rows = formula_tensor("bic.rows", {7, 5});
  rehearsed_step step{};
  official_step() {
    step = {.logits = run_value("net"),
            .labels = labels_of(golden_record("bic/ss_il")["labels"]),
            .teacher = run_value("old").narrow(1, 0, 4).contiguous()};
  }
  [[nodiscard]] at::Tensor run_value(const std::string& net) const {
    return at::linear(rows, formula_tensor(net + ".weight", {6, 5}), formula_tensor(net + ".bias", {6}));
  }
  void check(const loss& objective, const nlohmann::json& minus_gradient) const {
    const auto d = step.loss_of(objective).d_logits[0];
    const auto gradient = at::cat({d.t().mm(rows).flatten(), d.sum(0)});
    CHECK(largest_difference_of(-gradient, listed_tensor(minus_gradient, {36})) < 1e-6);
  }
};

/// Runs stage 2 as the method's job does. @return alpha and beta
std::pair<double, double> tuned(const at::Tensor& logits, const at::Tensor& labels, std::int64_t old,
                                const std::string& penalty = "0") {
  const rehearsing_client client("bic", {2, 2}, {{"memory", "40"}, {"penalty", penalty}});
  const auto jobs = jobs_of_kind<compute_job>(
      jobs_of_round(*client.method, *client.device, client.work(client.sent(1, true), client.rows_of(0, 1, 10))));
  auto in = std::make_shared<tensor_map>(*jobs.at(0).in);
  in->put("logits", logits);
  in->put("labels", labels);
  in->put("old", at::tensor(old, at::kLong));
  const auto out = jobs[0].run(*in).at("correction");
  return {out[0].item<double>(), out[1].item<double>()};
}

} // namespace

TEST_CASE("stage 1 equals SS-IL's code and, with all corrections, PyCIL's", "[bic]") {
  const official_step official;
  const rehearsing_client newest("bic", {2, 2, 2}), every_task("bic", {2, 2, 2}, {{"corrected_tasks", "all"}});
  const std::vector<double> corrections{1.0, 0.0, 0.8, -0.3};
  official.check(*newest.training(2, false, result_with_teacher(newest, corrections)).objective,
                 golden_record("bic/ss_il")["stage1_minus_gradient"]);
  official.check(*every_task.training(2, false, result_with_teacher(every_task, corrections)).objective,
                 golden_record("bic/pycil")["stage1_minus_gradient"]);
}

TEST_CASE("stage 2 finds the minimum", "[bic]") {
  const auto logits = at::tensor({0.0F, 1.0F, 0.0F, 3.0F, 1.0F, 2.0F, 0.5F, 1.5F}).view({4, 2});
  const auto labels = at::tensor({0, 1, 0, 1}, at::kLong);
  const auto [alpha, beta] = tuned(logits, labels, 1);
  CHECK_THAT(alpha, WithinAbs(1.859711, 1e-6));
  CHECK_THAT(beta, WithinAbs(-2.905236, 1e-6));
  const auto [held_alpha, held_beta] = tuned(logits, labels, 1, "0.05");
  CHECK_THAT(held_alpha, WithinAbs(0.652344, 1e-6));
  CHECK_THAT(held_beta, WithinAbs(-0.572986, 1e-6));
  // Without a penalty the mean probability of the new block is its share of the rows.
  const auto z = at::stack({logits.select(1, 0), logits.select(1, 1) * alpha + beta}, 1);
  CHECK_THAT(at::softmax(z, 1).select(1, 1).mean().item<double>(), WithinAbs(0.5, 1e-6));
}

TEST_CASE("stage 2 agrees with 20,000 steps of SS-IL's code", "[bic]") {
  const official_step official;
  const auto [alpha, beta] = tuned(official.step.logits, official.step.labels, 4);
  const auto theirs = golden_record("bic/ss_il")["stage2_optimum"].get<std::vector<double>>();
  CHECK_THAT(alpha, WithinAbs(theirs[0], 1e-5));
  CHECK_THAT(beta, WithinAbs(theirs[1], 1e-5));
}

TEST_CASE("a hold-out is the same in all rounds of a task and is not trained on", "[bic]") {
  const rehearsing_client client("bic", {2, 2}, {{"memory", "40"}});
  const auto rows_trained = [&](bool last) {
    const auto jobs = jobs_of_kind<train_job>(
        jobs_of_round(*client.method, *client.device, client.work(client.sent(1, last), client.rows_of(0, 1, 10))));
    return *jobs.at(0).samples.rows;
  };
  const auto first = rows_trained(false);
  CHECK(first == rows_trained(true));
  const std::set<std::int64_t> trained(first.begin(), first.end());
  CHECK(trained.size() == first.size());
  const auto held = jobs_of_kind<extract_job>(
      jobs_of_round(*client.method, *client.device, client.work(client.sent(1, true), client.rows_of(0, 1, 10))));
  const auto& out = *held.back().samples.rows; // 0.1 * 40 / 2 of each of four classes
  std::map<std::int64_t, int> counts;
  for (const auto row : out) {
    CHECK_FALSE(trained.contains(row));
    ++counts[client.rows->label(row)];
  }
  CHECK(counts == std::map<std::int64_t, int>{{0, 2}, {1, 2}, {2, 2}, {3, 2}});
  CHECK(first.size() == 40 - out.size());
}

TEST_CASE("the server corrects the newest classes after a task's last round, by the mean of its clients", "[bic]") {
  const rehearsing_client client("bic", {2, 2}, {{"memory", "40"}});
  const auto server = client.method->make_server();
  job_channel channel;
  server_context ctx(channel);
  (void)run_step(server->open_task(ctx, client.sent(0, false).info), channel, *client.device);
  (void)run_step(server->open_task(ctx, client.sent(1, false).info), channel, *client.device);
  const auto flat = initial_weights(*client.setup.net, 9);
  const auto fold = [&](std::vector<double> correction) {
    auto upload = std::make_shared<tensor_map>(*weights_only(flat));
    if (!correction.empty())
      upload->put("correction", at::tensor(correction, at::kDouble));
    server->fold({.upload = upload, .rows = 4});
  };
  fold({0.5, -1.0, 1.0});
  fold({});
  fold({0.7, -2.0, 1.0});
  run_step(server->close_round(ctx, client.sent(1, true).info), channel, *client.device);
  const auto learned = server->predict().weights->at(flat_weights);
  const auto weight = [](const at::Tensor& net) { return net.narrow(0, 0, 20).view({4, 5}); };
  CHECK(at::equal(weight(learned).narrow(0, 0, 2), weight(flat).narrow(0, 0, 2)));
  CHECK(at::allclose(weight(learned).narrow(0, 2, 2), weight(flat).narrow(0, 2, 2) * 0.6, 1e-6));
  CHECK(at::allclose(learned.narrow(0, 22, 2), flat.narrow(0, 22, 2) * 0.6 - 1.5, 1e-5, 1e-6));
  CHECK(server->summary_metrics().at("alpha_2") == 0.6);
  const auto next = server->open_round(client.sent(1, false).info).extra->at("corrections");
  CHECK(at::equal(next, at::tensor({1.0, 0.0, 0.6, -1.5}, at::kDouble).view({2, 2})));
}

TEST_CASE("a hold-out that leaves no exemplar is refused", "[bic]") {
  const rehearsing_client client("bic", {2, 2}, {{"memory", "4"}});
  const auto errors = client.method->check(client.setup);
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].text == "strategy.holdout_share = 0.1: of the 1 exemplars that a class has, a hold-out of 1 leaves "
                          "none to be trained on; expected a smaller share or a larger strategy.memory");
}
