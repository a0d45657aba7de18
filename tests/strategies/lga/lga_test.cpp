// GLFC and LGA without actors: task detection, memories and uploads of clients, and refused settings.
#include "runtime/data/data_sources.hpp"
#include "strategies/lga/gradient_compensation.hpp"
#include "strategies/lga/prototype_proxy.hpp"
#include "strategies/shared/exemplar_selection.hpp"
#include "tests/support/data.hpp"
#include "tests/support/method_driver.hpp"
#include "tests/support/nets.hpp"
#include <ATen/ATen.h>
#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <numeric>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::int64_t features = 6, classes = 4;
using rows_of_client = std::vector<std::int64_t>;

/// Two tasks of two classes, and one client, which is informed of new tasks.
struct observing_client {
  std::unique_ptr<strategy> method;
  std::unique_ptr<executor> device = make_executor("cpu");
  std::shared_ptr<const dataset> rows = striped_rows(80, features, classes);
  method_setup setup = setup_of_run(model_named("mlp", {1, 1, features}, classes), features, 2);
  std::unique_ptr<server_half> server;
  memory_ref memory;
  tensors_ref advice;

  explicit observing_client(const std::string& name) : method(strategy_named(name)) {
    give_keys(*method, {{"memory", "8"}, {"reconstruction_steps", "2"}, {"images_per_gradient", "1"}});
    setup.training.batch = 4;
    setup.task_classes = {{0, 2}, {2, 4}};
    setup.oracle = true;
    method->prepare(setup);
    server = method->make_server();
  }
  [[nodiscard]] static round_info place_in(std::uint32_t task, std::uint32_t round) {
    auto info = class_task(task, 2);
    info.round = {round};
    return info;
  }
  [[nodiscard]] rows_of_client held_in(std::uint32_t task) const {
    rows_of_client mine;
    for (std::int64_t r = 0; r < 80; ++r)
      if (r % classes / 2 == task)
        mine.push_back(r);
    return mine;
  }
  [[nodiscard]] assignment work_in(std::uint32_t task, std::uint32_t round, bool observes) const {
    auto in = server->open_round(place_in(task, round));
    in.info = place_in(task, round);
    in.advice = advice;
    return {.in = std::make_shared<const broadcast>(in),
            .memory = memory,
            .samples = view_of(rows, held_in(task)),
            .seed = 5,
            .visit = round,
            .task = {task},
            .observes = observes};
  }
  client_result take_part(std::uint32_t task, std::uint32_t round, bool observes = false) {
    auto result = run_round(*method, *device, work_in(task, round, observes));
    memory = result.memory;
    return result;
  }
  [[nodiscard]] rows_of_client remembered(const char* name) const {
    const auto& found = memory->at(name);
    return {found.const_data_ptr<std::int64_t>(), found.const_data_ptr<std::int64_t>() + found.numel()};
  }
};

} // namespace

TEST_CASE("a client keeps its rows until it detects the end of a task, and exemplars afterwards") {
  for (const auto* name : {"lga", "glfc"}) {
    for (const bool observes : {false, true}) {
      CAPTURE(name, observes);
      observing_client client(name);
      const auto first = client.take_part(0, 0);
      CHECK(first.counts.at("transitions_detected") == 1.0);
      REQUIRE(first.to_proxy);
      CHECK(first.to_proxy->at("4.weight").size(0) == 2); // one prototype of each class
      CHECK(client.remembered("exemplars").empty());
      CHECK(client.remembered("current") == client.held_in(0));

      const auto second = client.take_part(0, 1);
      for (const auto* count : {"transitions_detected", "transitions_missed", "transitions_false"})
        CHECK(second.counts.at(count) == 0.0);
      CHECK_FALSE(second.to_proxy);

      const auto third = client.take_part(1, 2, observes);
      CHECK(third.counts.at("transitions_detected") == 1.0);
      CHECK((third.upload == nullptr) == observes);
      CHECK((third.to_proxy == nullptr) == observes);
      CHECK(client.remembered("current") == client.held_in(1));
      CHECK(client.remembered("pending").empty());
      const auto kept = client.remembered("exemplars");
      CHECK(kept.size() == 8); // 8 / 2 classes, each
      for (std::size_t i = 0; i < 8; ++i)
        CHECK(kept[i] % classes == static_cast<std::int64_t>(i) / 4);

      const auto fourth = client.take_part(1, 3);
      CHECK(fourth.rows == 40 + 8); // it trains on both
    }
  }
}

TEST_CASE("the proxy sends no advice before its first model, and B1 follows B2 when gradients arrive") {
  observing_client client("glfc");
  const auto proxy = client.method->make_proxy();
  job_channel channel;
  generated_row_store made(row_format{.scale = {1.0f / 255.0f}, .shift = {-0.5f}, .classes = classes});
  server_context ctx(channel, nullptr, &made);
  const auto advice_after = [&](std::uint32_t task, std::uint32_t round, float fill, const tensors_ref& sent) {
    if (sent)
      proxy->receive({.upload = sent});
    const auto model = weights_only(at::full_like(client.setup.initial->at(flat_weights), fill));
    const auto info = observing_client::place_in(task, round);
    return read_advice(run_step(proxy->advise(ctx, info, model), channel, *client.device));
  };
  const auto fill_of = [](const old_model& which) {
    return which.weights ? which.weights->at(flat_weights)[0].item<float>() : -1.0f;
  };
  const auto sent = client.take_part(0, 0).to_proxy;
  const auto first = advice_after(0, 0, 0.5f, sent);
  CHECK(fill_of(first.before) == -1.0f);
  CHECK(fill_of(first.latest) == 0.5f);
  CHECK(first.latest.classes == 2);
  (void)advice_after(0, 1, 0.25f, nullptr); // all models predict alike: ties go to the later one
  const auto later = advice_after(1, 2, 0.125f, client.take_part(1, 2).to_proxy);
  CHECK(fill_of(later.before) == 0.25f);
  CHECK(later.before.classes == 2);
  CHECK(fill_of(later.latest) == 0.125f);
  CHECK(later.latest.classes == 4);
  CHECK(proxy->summary_metrics().at("reconstructions") == 4.0);

  archive saved;
  proxy->persist(saved);
  const auto bytes = saved.contents();
  archive loaded(bytes, 0, bytes->size());
  const auto elsewhere = client.method->make_proxy();
  elsewhere->persist(loaded);
  loaded.expect_end();
  CHECK(elsewhere->summary_metrics() == proxy->summary_metrics());
}

TEST_CASE("the last of the models with the best score is kept until a task begins") {
  // Ten rounds, of which the first six are not scored (Dong et al. 2023, section IV-C).
  const std::vector<double> scores{0, 0, 0, 0, 0, 0, 40, 55, 55, 50};
  best_models kept;
  const auto offer_all = [&](std::int64_t task) {
    for (std::size_t round = 0; round < scores.size(); ++round)
      kept.offer(scores[round], {.weights = nullptr, .classes = 100 * task + static_cast<std::int64_t>(round)});
  };
  offer_all(1);
  CHECK(kept.chosen.latest.classes == 108); // the later one of two models with 55
  CHECK(kept.chosen.before.classes == 0);
  kept.begin_task(true);
  CHECK(kept.chosen.before.classes == 108);
  kept.offer(0.0, {.weights = nullptr, .classes = 200});
  CHECK(kept.chosen.latest.classes == 200); // the best score was reset
  offer_all(2);
  CHECK(kept.chosen.latest.classes == 208);
  kept.begin_task(false); // does not reset the best score, as in the official code
  for (const double score : {0.0, 54.0})
    kept.offer(score, {.weights = nullptr, .classes = 300});
  CHECK(kept.chosen.latest.classes == 208);
  CHECK(kept.chosen.before.classes == 208);
}

TEST_CASE("the scale of the noise is the mean trace over all classes so far") {
  const auto traces = [](std::vector<double> values) { return at::tensor(values, at::kDouble); };
  const auto first = next_noise_scale(0.15, 0, traces({0.2, 0.4, 0.6}));
  CHECK(first == Catch::Approx(0.4)); // the initial value has no weight
  CHECK(next_noise_scale(first, 3, traces({1.0})) == Catch::Approx((3 * 0.4 + 1.0) / 4));
  double scale = next_noise_scale(0.15, 0, traces({0.3, 0.3}));
  for (std::int64_t classes = 2; classes < 10; classes += 2)
    scale = next_noise_scale(scale, classes, traces({0.3, 0.3}));
  CHECK(scale == Catch::Approx(0.3));
}

TEST_CASE("classes with images in a task's first round count once if more arrive in the second") {
  const auto traces = [](std::vector<double> values) { return at::tensor(values, at::kDouble); };
  running_scale omega{.scale = 0.1, .classes = 10};
  omega.begin_task();
  omega.learn(traces({0.2}));
  CHECK(omega.scale == Catch::Approx(1.2 / 11));
  omega.learn(traces({0.2, 0.4}));               // of both classes by then
  CHECK(omega.scale == Catch::Approx(1.6 / 12)); // 0.13333
  CHECK(omega.classes == 12);
}

TEST_CASE("real images under a new ResNet-18 have an entropy that is detected in the first round") {
  MNEME_NEEDS_DATA(folder, "cifar-100-binary");
  const auto data =
      load_data({.name = "cifar100", .root = folder.parent_path(), .train_rows = 10, .test_rows = 32}, 1).value();
  auto rows = std::make_shared<dataset>();
  rows->images = data.test.images;
  rows->labels = data.test.labels;
  rows->transforms.resize(1);
  for (std::size_t c = 0; c < 3; ++c) {
    rows->scale.push_back(static_cast<float>(1.0 / 255.0 / data.deviation[c]));
    rows->shift.push_back(static_cast<float>(-data.mean[c] / data.deviation[c]));
  }
  const auto net = model_named("resnet18", {3, 32, 32}, 20);
  std::vector<std::int64_t> listed(32);
  std::iota(listed.begin(), listed.end(), 0);
  const auto device = make_executor("cpu");
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    const auto seen = run_plan(*device, {extract_job{.net = net,
                                                     .weights = weights_only(initial_weights(*net, seed)),
                                                     .samples = view_of(rows, listed)}});
    const auto logits = std::get<extract_output>(std::get<work_output>(seen[0])).logits;
    const auto entropy = [&](std::int64_t classes_seen) { return mean_entropy(logits.narrow(1, 0, classes_seen)); };
    CAPTURE(seed, entropy(5), entropy(10), entropy(20));
    CHECK((entropy(5) > 1.2 && entropy(5) < std::log(5.0)));
    CHECK((entropy(10) > 1.9 && entropy(10) < std::log(10.0)));
    CHECK((entropy(20) > 2.5 && entropy(20) < std::log(20.0)));
  }
}

TEST_CASE("incomplete settings are refused with reasons") {
  auto method = strategy_named("lga");
  give_keys(*method,
            {{"memory", "3"}, {"proxy_init", "10"}, {"reconstruction_steps", "5"}, {"images_per_gradient", "6"}});
  auto setup = setup_of_run(model_named("mlp", {1, 1, features}, classes), features, 2);
  setup.task_classes = {{0, 4}, {0, 4}};
  setup.rounds.per_task = 10;
  std::map<std::string, std::string> found;
  for (const auto& errors : method->check(setup))
    found[errors.where] = errors.text;
  CHECK_THAT(found["strategy.memory"], ContainsSubstring("strategy.memory = 3") && ContainsSubstring("at least 4"));
  CHECK_THAT(found["strategy.proxy_init"], ContainsSubstring("less than rounds.per_task = 10"));
  CHECK_THAT(found["strategy.images_per_gradient"], ContainsSubstring("at most strategy.reconstruction_steps = 5"));
  CHECK_THAT(found["tasks.kind"], ContainsSubstring("expected \"class-incremental\""));
  CHECK(found.size() == 4);
}

TEST_CASE("a head of several layers is refused, because the proxy scores linear heads") {
  for (const auto& hidden : {std::vector<std::int64_t>{}, {16}, {features}, {6, 7}})
    for (const char* const name : {"lga", "glfc"}) {
      CAPTURE(name, hidden);
      auto setup = setup_of_run(net_with_head("mlp", {1, 1, features}, hidden), features, 2);
      setup.task_classes = {{0, 2}, {2, 4}};
      setup.rounds.per_task = 20;
      const auto findings = strategy_named(name)->check(setup);
      CHECK(std::count_if(findings.begin(), findings.end(),
                          [](const auto& errors) { return errors.where == "model.head_hidden"; }) == !hidden.empty());
    }
}

TEST_CASE("a net with frozen parts is refused, because all parts of the net must be sent") {
  auto kind = kind_with("vit", {{"width", "8"}, {"heads", "2"}, {"depth", "2"}, {"patch", "4"}, {"adapter", "3"}});
  auto setup = setup_of_run(kind->build({1, 8, 8}, classes).value(), 64, 2);
  setup.task_classes = {{0, 2}, {2, 4}};
  const auto findings = strategy_named("glfc")->check(setup);
  CHECK(std::any_of(findings.begin(), findings.end(), [](const auto& errors) {
    return errors.where == "model.name" && errors.text.find("without model.adapter") != std::string::npos;
  }));
}

TEST_CASE("decays made for other numbers of rounds give a warning") {
  for (const std::int64_t rounds : {5, 10}) {
    auto method = strategy_named("lga");
    give_keys(*method, {{"rates", "official"}});
    auto setup = setup_of_run(model_named("mlp", {1, 1, features}, classes), features, 2);
    setup.task_classes = {{0, 2}, {2, 4}};
    setup.rounds.per_task = rounds;
    setup.training.epochs = 20;
    method->prepare(setup);
    const auto server = method->make_server();
    const auto device = make_executor("cpu");
    job_channel channel;
    server_context ctx(channel);
    const auto plan = run_step(server->open_task(ctx, class_task(0, 2)), channel, *device);
    CHECK(plan.observers == setup.clients);
    CHECK(ctx.take_warnings().size() == (rounds == 10 ? 0 : 1));
  }
}
