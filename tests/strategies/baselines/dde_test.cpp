// DDE: predictions of neighbors and the drift, by hand and compared with the official code.
#include "tests/support/rehearsing_client.hpp"
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <cmath>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::WithinAbs;

namespace {

at::Tensor row(const std::vector<float>& values) { return at::tensor(values).unsqueeze(0); }

/// The compute job of this name in a round of the second task.
compute_job job_named(const std::string& name, const std::string& neighbors = "3") {
  const rehearsing_client client("dde", {3, 2}, {{"neighbours", neighbors}});
  for (const auto& job : jobs_of_kind<compute_job>(
           jobs_of_round(*client.method, *client.device, client.work(client.sent(1, true), client.rows_of(0, 1, 6)))))
    if (job.name == name)
      return job;
  FAIL(name);
  return {};
}
at::Tensor neighbors_of(const at::Tensor& features, const at::Tensor& labels, std::int64_t old, std::int64_t count) {
  tensor_map in;
  in.put("features", features);
  in.put("labels", labels);
  in.put("old", at::tensor(old, at::kLong));
  in.put("count", at::tensor(count, at::kLong));
  return job_named("neighbours").run(in).at("nearest");
}
at::Tensor answers_of(const at::Tensor& nearest, const at::Tensor& logits) {
  tensor_map in;
  in.put("nearest", nearest);
  in.put("logits", logits);
  return job_named("answers nearby").run(in).at("answers");
}

} // namespace

TEST_CASE("a row's prediction is averaged with its neighbors'", "[dde]") {
  const rehearsing_client client("dde", {2, 1});
  const auto objective = client.training(1).objective;
  rehearsed_step step{.logits = row({0.7F, 0.2F, 0.1F}).log(),
                      .labels = at::tensor({0}, at::kLong),
                      .targets = row({0.1F, 0.3F, 0.6F})};
  const auto output = step.loss_of(*objective);
  CHECK_THAT(output.values.item<double>(), WithinAbs(0.916291, 1e-6));
  CHECK(largest_difference_of(output.d_logits, row({-0.2625F, 0.175F, 0.0875F})) < 1e-6);
  step.targets = row({0.7F, 0.2F, 0.1F}); // equal predictions: the value of cross-entropy, and half its gradient
  const auto agreeing = step.loss_of(*objective);
  CHECK_THAT(agreeing.values.item<double>(), WithinAbs(-std::log(0.7), 1e-6));
  CHECK(largest_difference_of(agreeing.d_logits, row({-0.15F, 0.1F, 0.05F})) < 1e-6);
  step.targets = at::zeros({1, 3}); // no neighbors: cross-entropy
  const auto alone = step.loss_of(*objective);
  CHECK_THAT(alone.values.item<double>(), WithinAbs(-std::log(0.7), 1e-6));
  CHECK(largest_difference_of(alone.d_logits, row({-0.3F, 0.2F, 0.1F})) < 1e-6);
}

TEST_CASE("neighbors are new rows, and no row is its own neighbor", "[dde]") {
  const auto features = at::tensor({1.0F, 0.0F, 0.9F, 0.1F, 0.0F, 1.0F, 0.1F, 0.9F, 2.0F, 0.0F}).view({5, 2});
  const auto labels = at::tensor({0, 3, 3, 4, 4}, at::kLong); // row 4 is row 0 with another length
  const auto nearest = neighbors_of(features, labels, 3, 2);
  CHECK(at::equal(nearest, at::tensor({1, 3, 4, 3, 3, 1, 2, 1, 1, 3}, at::kLong).view({5, 2})));
  const auto few = neighbors_of(features, at::tensor({0, 0, 0, 0, 4}, at::kLong), 3, 2);
  CHECK(at::equal(few.flatten(), at::tensor({-1, 4, 4, 4, -1}, at::kLong))); // no equal rows
  const auto none = neighbors_of(features, at::zeros({5}, at::kLong), 3, 2);
  CHECK((none == -1).all().item<bool>());
  CHECK(answers_of(none, at::zeros({5, 4})).abs().max().item<float>() == 0.0F);
}

TEST_CASE("a step of DDE equals the official code's", "[dde]") {
  const auto theirs = golden_record("dde/official");
  const auto features = formula_tensor("dde.features", {10, 12}), weight = formula_tensor("dde.weight", {5, 12});
  const auto labels = labels_of(theirs["labels"]);
  const auto unit = [](const at::Tensor& x) { return x / x.norm(2, {1}, true); };
  const auto cosines = unit(features).mm(unit(weight).t());
  const auto nearest = neighbors_of(features, labels, 3, theirs["neighbours"].get<std::int64_t>());
  const rehearsing_client client("dde", {3, 2}, {{"distillation_weight", "0"}});
  const auto d =
      rehearsed_step{.logits = cosines * 2.0, .labels = labels, .targets = answers_of(nearest, cosines * 2.0)}
          .loss_of(*client.training(1).objective)
          .d_logits[0];
  CHECK_THAT(-(d * cosines).sum().item<double>(), WithinAbs(theirs["minus_sigma_gradient"].get<double>(), 2e-6));
  const auto d_unit = (d * 2.0).t().mm(unit(features));
  const auto gradient = (d_unit - unit(weight) * (unit(weight) * d_unit).sum(1, true)) / weight.norm(2, {1}, true);
  CHECK(largest_difference_of(-gradient, listed_tensor(theirs["minus_gradient"], {5, 12})) < 1e-6);
  CHECK(largest_difference_of(features.mean(0), listed_tensor(theirs["causal_embed"], {12})) < 1e-6); // after one step
}

TEST_CASE("after a task the server removes the drift from its predictions", "[dde]") {
  const auto trained_with = [](const std::string& alpha, const std::vector<float>& drift) {
    const rehearsing_client client("dde", {2, 2}, {{"alpha", alpha}});
    const auto server = client.method->make_server();
    job_channel channel;
    server_context ctx(channel);
    (void)run_step(server->open_task(ctx, client.sent(1, false).info), channel, *client.device);
    auto upload = std::make_shared<tensor_map>(*client.setup.initial);
    upload->put("drift", at::tensor(drift));
    server->fold({.upload = upload, .rows = 3});
    run_step(server->close_round(ctx, client.sent(1, true).info), channel, *client.device);
    return std::pair(client.setup.initial->at(flat_weights), server->predict().weights->at(flat_weights));
  };
  const auto [flat, learned] = trained_with("0.5", {0, 3, 0, 0, 0}); // its length has no effect
  const auto before = flat.narrow(0, 0, 20).view({4, 5}), after = learned.narrow(0, 0, 20).view({4, 5});
  CHECK(at::allclose(after.select(1, 1), before.select(1, 1) * 0.5));
  CHECK(at::equal(after.select(1, 0), before.select(1, 0))); // orthogonal to the drift
  CHECK(at::equal(learned.narrow(0, 20, 4), flat.narrow(0, 20, 4)));
  const auto [same, untouched] = trained_with("0", {0, 3, 0, 0, 0});
  CHECK(at::equal(same, untouched));
}
