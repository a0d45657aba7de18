// Sums over several clients in the servers of FedDyn, FedET and FedIL+, by hand.
#include "tests/support/shown_steps.hpp"
#include <catch2/matchers/catch_matchers_floating_point.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::WithinRel;

namespace {

constexpr std::int64_t features = 3, classes = 4, size = (features + 1) * classes;

/// Server half of a method for four clients, starting from weights of zero.
struct lone_server {
  std::unique_ptr<strategy> method;
  std::unique_ptr<executor> device = make_executor("cpu");
  std::unique_ptr<server_half> half;
  generated_row_store made{row_format{.scale = {1.0F / 255.0F}, .shift = {-0.5F}, .classes = classes}};
  round_info info{.seen_classes = {0, classes}, .current_classes = {0, classes}};

  lone_server(const std::string& name, const std::vector<std::pair<std::string, std::string>>& keys)
      : method(strategy_named(name)) {
    give_keys(*method, keys);
    auto setup = setup_of_run(model_named("linear", {1, 1, features}, classes), features, 3);
    setup.initial = weights_only(at::zeros({size}));
    setup.weighting = upload_weighting::uniform;
    setup.task_classes = {{0, 2}, {2, 3}, {3, 4}};
    setup.clients = 4;
    method->prepare(setup);
    half = method->make_server();
  }
  void open_task(std::uint32_t task) {
    info.task = {task};
    job_channel channel;
    server_context ctx(channel, nullptr, &made);
    (void)run_step(half->open_task(ctx, info), channel, *device);
  }
  void fold(std::uint32_t client, tensor_map upload) {
    half->fold({.from = {client}, .upload = std::make_shared<const tensor_map>(std::move(upload)), .rows = 5});
  }
  plan close() {
    job_channel channel;
    server_context ctx(channel, nullptr, &made);
    plan seen;
    run_shown_step(half->close_round(ctx, info), channel, *device,
                   [&](const plan& wanted) { seen.insert(seen.end(), wanted.begin(), wanted.end()); });
    ++info.round.value;
    return seen;
  }
  /// First weight of the broadcast.
  [[nodiscard]] double sent() { return half->open_round(info).weights->at(flat_weights)[0].item<double>(); }
};

tensor_map weights_of(double value) {
  tensor_map made;
  made.put(flat_weights, at::full({size}, value, at::kFloat));
  return made;
}

} // namespace

TEST_CASE("FedDyn's server corrects by the share of participating clients and sends mean - h / alpha", "[dyn]") {
  lone_server server("fed-dyn", {{"alpha", "0.5"}});
  server.open_task(0);
  server.fold(0, weights_of(1.0));
  server.fold(1, weights_of(3.0));
  (void)server.close();
  // The mean is 2, from 0, over both participating clients: h = -0.5 * 2 = -1, and 2 + 1
  // 0.5 is sent.
  CHECK_THAT(server.sent(), WithinRel(4.0, 1e-6));
  server.fold(2, weights_of(10.0));
  (void)server.close();
  // One of three: h = -1 - 0.5 * (10 - 4)
  // 3 = -2, and 10 + 2
  // 0.5 is sent. The mean is evaluated.
  CHECK_THAT(server.sent(), WithinRel(14.0, 1e-6));
  CHECK(server.half->predict().weights->at(flat_weights)[0].item<double>() == 10.0);
}

TEST_CASE("FedET's server weights models by importance, averaged over clients that sent one", "[et]") {
  lone_server server("fed-et", {});
  const auto with_importance = [](double value, double importance) {
    auto upload = weights_of(value);
    upload.put("importance", at::full({size}, importance, at::kFloat));
    return upload;
  };
  server.open_task(0);
  server.fold(0, with_importance(2.0, 1.0));
  server.fold(1, with_importance(6.0, 3.0));
  server.fold(2, weights_of(50.0));
  (void)server.close();
  server.open_task(1);
  const auto extra = server.half->open_round(server.info).extra;
  REQUIRE(extra);
  CHECK_THAT(extra->at("importance")[3].item<double>(), WithinRel(2.0, 1e-6));
  CHECK_THAT(extra->at("weighted_model")[3].item<double>(), WithinRel((1.0 * 2.0 + 3.0 * 6.0) / 4.0, 1e-6));
  CHECK_THAT(server.sent(), WithinRel(58.0 / 3, 1e-6)); // the plain mean
}

TEST_CASE("FedIL+'s server replays features of the pooled mean and variance of every class", "[il+]") {
  lone_server server("fed-il-plus", {{"replayed", "3"}});
  const auto with_prototype = [](std::int32_t count, double mean, double variance) {
    auto upload = weights_of(0.0);
    upload.put("prototypes.classes", at::tensor({1}, at::kInt));
    upload.put("prototypes.counts", at::tensor({count}, at::kInt));
    upload.put("prototypes.means", at::full({1, features}, mean, at::kFloat));
    upload.put("prototypes.variances", at::full({1, features}, variance, at::kFloat));
    return upload;
  };
  server.open_task(0);
  server.fold(0, with_prototype(1, 4.0, 0.0));
  server.fold(1, with_prototype(3, 0.0, 4.0));
  server.info.round = {6};
  const auto jobs = jobs_of_kind<train_job>(server.close());
  REQUIRE(jobs.size() == 1);
  REQUIRE(jobs[0].samples.size() == 3);
  // Four rows: mean 1, mean square (16 + 3 * 4) / 4 = 7, deviation sqrt(7 - 1).
  rng_stream draw({.seed = 5, .purpose = first_method_purpose, .visit = 6, .index = 1});
  auto expected = at::empty({3 * features});
  for (std::int64_t i = 0; i < expected.numel(); ++i)
    expected[i] = 1.0 + std::sqrt(6.0) * draw.normal();
  const auto& source = *jobs[0].samples.source;
  const auto shown = source.vectors.defined() ? source.vectors : source.images;
  CHECK(at::allclose(shown.flatten().to(at::kFloat), expected, 1e-5, 1e-5));
  CHECK(source.label((*jobs[0].samples.rows)[0]) == 1);
}
