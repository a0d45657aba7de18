// AFC: channels weighted by importance, by hand and compared with the official code.
#include "runtime/method/gradients.hpp"
#include "runtime/models/function.hpp"
#include "strategies/baselines/proxy_rehearsal.hpp"
#include "tests/support/nets.hpp"
#include "tests/support/rehearsing_client.hpp"
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <cmath>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::WithinAbs;

namespace {

model_ref proxy_net() {
  auto kind = kind_with("mlp", {});
  kind->set_head(head_kind::proxies);
  kind->set_proxies(2);
  return kind->build({1, 1, 5}, 4).value();
}

} // namespace

TEST_CASE("squared channels are compared by direction and weighted by importance", "[afc]") {
  // Two channels of 1 x 2 pixels: opposite ones in the first row, equal ones in the second.
  const auto a = at::tensor({1.0F, 0.0F, 2.0F, 1.0F}).view({1, 2, 1, 2});
  const auto b = at::tensor({0.0F, 1.0F, 4.0F, 2.0F}).view({1, 2, 1, 2});
  const auto weight = at::tensor({0.571429F, 1.428571F});
  CHECK_THAT(channel_rows(a, b, weight).item<double>(), WithinAbs(0.404061, 1e-6));
  CHECK_THAT(channel_rows(a, b, at::ones({2})).item<double>(), WithinAbs(0.707107, 1e-6));
  const auto pixels = [](const std::vector<float>& values) { return at::tensor(values).view({1, 1, 2, 2}); };
  CHECK_THAT(channel_rows(pixels({1, 2, 0, 1}), pixels({2, 1, 0, 1}), at::ones({1})).item<double>(),
             WithinAbs(1.0, 1e-6));
  const auto none = results_of(a * 0.0, [&](const at::Tensor& map) { return channel_rows(map, b * 0.0, weight); });
  CHECK(none.values.item<double>() == 0.0);
  CHECK(at::isfinite(none.gradient).all().item<bool>());
}

TEST_CASE("the distillation of maps equals the official code's", "[afc]") {
  const auto theirs = golden_record("afc/official");
  const std::vector<std::vector<std::int64_t>> shapes{{6, 2, 5, 4}, {6, 3, 4, 4}, {6, 4, 2, 2}};
  double value = 0.0;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const auto number = std::to_string(i);
    const auto weight = 1.0 + formula_tensor("afc.importance" + number, {shapes[i][1]}, 0.9);
    const auto rows = results_of(formula_tensor("podnet.map" + number, shapes[i]), [&](const at::Tensor& map) {
      return channel_rows(map, formula_tensor("podnet.old_map" + number, shapes[i]), weight);
    });
    value += rows.values.mean().item<double>() / 3.0;
    CHECK(largest_difference_of(rows.gradient / 18.0, listed_tensor(theirs["gradients"][i], shapes[i])) < 1e-6);
  }
  CHECK_THAT(value, WithinAbs(theirs["value"].get<double>(), 1e-6));
}

TEST_CASE("importance is the mean squared gradient of each row by a map, divided by its mean", "[afc]") {
  const auto net = proxy_net();
  const rehearsing_client client("afc", {2, 2}, {{"memory", "8"}, {"tuning_epochs", "1"}}, net);
  const auto result = client.round(client.work(client.sent(1, true), client.rows_of(0, 1, 5)));
  const auto jobs = jobs_of_kind<program_job>(
      jobs_of_round(*client.method, *client.device, client.work(client.sent(1, true), client.rows_of(0, 1, 5))));
  REQUIRE(jobs.size() == 1);
  const auto& weights = jobs[0].in->at(flat_weights);
  CHECK(at::equal(weights, result.upload->at(flat_weights))); // after the head was tuned
  const auto& rows = *jobs[0].samples.rows;
  const auto maps = net->maps();
  std::vector<at::Tensor> sums(maps.size());
  for (const auto number : rows) { // row by row
    auto image = (client.rows->images[number].to(at::kFloat) / 255.0F - 0.5F).view({1, 1, 1, 1, 5});
    const auto results = net->differentiable(leaf_of(weights.unsqueeze(0)), image, {0, 4}, {});
    const auto loss = nca_rows(results.logits[0], at::tensor({client.rows->label(number)}, at::kLong)).sum();
    std::vector<at::Tensor> values;
    for (const auto& map : results.maps)
      values.push_back(map.values);
    const auto gradients = gradients_of(loss, values);
    for (std::size_t m = 0; m < maps.size(); ++m) {
      const auto square = gradients[m].flatten().square().to(at::kDouble);
      sums[m] = sums[m].defined() ? sums[m] + square : square;
    }
  }
  for (std::size_t m = 0; m < maps.size(); ++m) {
    const auto& ours = result.upload->at("importance." + maps[m]);
    CHECK_THAT(ours.mean().item<double>(), WithinAbs(1.0, 1e-5));
    CHECK(largest_difference_of(ours, sums[m] / sums[m].mean()) < 1e-3); // the largest importance is about ten
  }
}

TEST_CASE("the server sends the mean importance of its clients with the teacher", "[afc]") {
  const auto net = proxy_net();
  const rehearsing_client client("afc", {2, 2}, {{"memory", "8"}, {"tuning_epochs", "0"}}, net);
  const auto server = client.method->make_server();
  job_channel channel;
  server_context ctx(channel);
  const auto last = client.sent(0, true);
  (void)run_step(server->open_task(ctx, last.info), channel, *client.device);
  const auto own = client.round(client.work(last, client.rows_of(0, 0, 5)));
  server->fold({.upload = own.upload, .rows = own.rows});
  run_step(server->close_round(ctx, last.info), channel, *client.device);
  (void)run_step(server->open_task(ctx, client.sent(1, false).info), channel, *client.device);
  const auto sent = server->open_round(client.sent(1, false).info);
  const auto name = "importance." + net->maps().front();
  CHECK(at::equal(sent.extra->at(name), own.upload->at(name)));
  CHECK_FALSE(client.round(client.work(client.sent(1, false), client.rows_of(0, 1, 5))).upload->find(name));
}
