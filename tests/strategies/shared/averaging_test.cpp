#include "strategies/shared/averaging.hpp"
#include "tests/support/method_driver.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;

namespace {

constexpr std::int64_t features = 2, classes = 4; // linear: 4 x 2 weights and 4 biases

method_setup setup_of(trainable_part part = trainable_part::all,
                      upload_weighting weighting = upload_weighting::samples) {
  const auto net = model_named("linear", {1, 1, features}, classes);
  return {.net = net,
          .initial = weights_only(at::zeros({net->size()})),
          .trainable = part,
          .weighting = weighting,
          .tasks = 2};
}

delivery upload_of(std::uint32_t client, double value, std::int64_t rows) {
  return {.assignment = {client},
          .from = {client},
          .started_from = {},
          .upload = weights_only(at::full({12}, value)),
          .rows = rows};
}

at::Tensor closed(averaging_server& server) {
  job_channel channel;
  server_context ctx(channel);
  const auto device = make_executor("cpu");
  run_step(server.close_round(ctx, {}), channel, *device);
  return server.predict().weights->at(flat_weights);
}

/// Upload of one round of `name` by a client with rows of all classes, from weights of zero.
at::Tensor trained(const std::string& name, const round_info& info) {
  const auto method = strategy_named(name);
  auto setup = setup_of();
  setup.training = {.batch = 0, .learning_rate = 1.0, .weight_decay = 0.1};
  setup.initial = weights_only(at::ones({12}));
  method->prepare(setup);
  const auto server = method->make_server();
  auto in = server->open_round(info);
  in.info = info;
  const auto device = make_executor("cpu");
  std::vector<std::int64_t> rows;
  for (std::int64_t r = 0; r < 16; ++r)
    if (r % classes >= info.current_classes.low && r % classes < info.current_classes.high)
      rows.push_back(r);
  const auto result = run_round(
      *method, *device,
      {.in = std::make_shared<const broadcast>(in), .samples = view_of(striped_rows(16, features, classes), rows)});
  return result.upload->at(flat_weights);
}

} // namespace

TEST_CASE("uploads are averaged by rows, or uniformly") {
  averaging_server by_rows(setup_of());
  by_rows.fold(upload_of(0, 1.0, 1));
  by_rows.fold(upload_of(1, 5.0, 3));
  CHECK(at::equal(closed(by_rows), at::full({12}, 4.0))); // (1 * 1 + 3 * 5) / 4

  averaging_server uniform(setup_of(trainable_part::all, upload_weighting::uniform));
  uniform.fold(upload_of(0, 1.0, 1));
  uniform.fold(upload_of(1, 5.0, 3));
  CHECK(at::equal(closed(uniform), at::full({12}, 3.0)));
}

TEST_CASE("strategy.keep_share keeps a share of the old model") {
  auto setup = setup_of();
  setup.initial = weights_only(at::full({12}, 4.0F));
  setup.old_model_share = 0.5;
  averaging_server server(setup);
  server.fold(upload_of(0, 1.0, 3));
  server.fold(upload_of(1, 1.0, 5));
  CHECK(at::equal(closed(server), at::full({12}, 2.5F))); // (o + u) / 2
  server.fold(upload_of(0, 0.5, 1));
  CHECK(at::equal(closed(server), at::full({12}, 1.5F)));
}

TEST_CASE("sums restart at zero each round, in float64") {
  averaging_server server(setup_of());
  server.fold(upload_of(0, 16777216.0, 1)); // 2^24: adding 1 in float32 changes nothing
  server.fold(upload_of(1, 1.0, 1));
  server.fold(upload_of(2, 1.0, 1));
  server.fold(upload_of(3, 2.0, 1));
  CHECK(closed(server)[0].item<double>() == 4194305.0);
  server.fold(upload_of(0, 7.0, 2));
  CHECK(closed(server)[0].item<double>() == 7.0);
}

TEST_CASE("with trainable = head only the head is sent, and the rest once") {
  const auto setup = [] {
    auto changed = setup_of(trainable_part::head);
    changed.net = model_named("mlp", {1, 1, features}, classes); // 2-200-100-4
    changed.initial = weights_only(initial_weights(*changed.net, 1));
    return changed;
  }();
  averaging_server server(setup);
  const auto sent = server.open_round({});
  CHECK(sent.weights->size() == 2);
  CHECK(sent.weights->bytes() == 4 * (100 * 4 + 4));
  CHECK(sent.initial_payload->bytes() == 4 * setup.net->size());
  const transmitted_weights traveling(setup.net, trainable_part::head);
  CHECK(at::equal(traveling.complete(setup.initial->at(flat_weights), *sent.weights), setup.initial->at(flat_weights)));
}

TEST_CASE("with adapters only these and the head are sent and averaged, and the rest is sent once") {
  auto kind = std::unique_ptr<model_kind>{};
  for (const auto& entry : models())
    if (entry.name == "vit")
      kind = entry.make();
  key_table table;
  kind->keys(table);
  for (const auto& [key, value] :
       std::map<std::string, std::int64_t>{{"patch", 4}, {"width", 12}, {"depth", 2}, {"heads", 2}, {"adapter", 3}})
    *std::get<std::int64_t*>(table.find(key)->target) = value;
  auto setup = setup_of();
  setup.net = kind->build({1, 8, 8}, classes).value();
  setup.initial = weights_only(initial_weights(*setup.net, 1));
  averaging_server server(setup);
  const auto sent = server.open_round({});
  CHECK(sent.weights->size() == 2 * 4 + 2);
  CHECK(sent.weights->bytes() == 4 * (2 * (12 * 3 + 3 + 3 * 12 + 12) + (12 + 1) * classes));
  CHECK(sent.initial_payload->bytes() == 4 * setup.net->size());

  const transmitted_weights traveling(setup.net, trainable_part::all);
  const auto moved = setup.initial->at(flat_weights) + 1.0; // also changes the body, which a client must not do
  server.fold({.assignment = {0}, .from = {0}, .started_from = {}, .upload = traveling.pick(moved), .rows = 3});
  const auto end = closed(server);
  for (const auto& parameter : setup.net->layout()) {
    INFO(parameter.name);
    const auto piece = [&](const at::Tensor& flat) { return flat.narrow(0, parameter.offset, parameter.size); };
    CHECK(at::equal(piece(end), piece(parameter.frozen ? setup.initial->at(flat_weights) : moved)));
  }
}

TEST_CASE("fedavg's loss covers the opened classes, finetune's the current ones; other rows stay unchanged") {
  const round_info second_task{.task = {1}, .seen_classes = {0, 4}, .current_classes = {2, 4}};
  const auto old_rows = [](const at::Tensor& flat) { return flat.slice(0, 0, 4); }; // weights of classes 0 and 1
  CHECK_FALSE(at::equal(old_rows(trained("fedavg", second_task)), at::ones({4})));
  CHECK(at::equal(old_rows(trained("finetune", second_task)), at::ones({4})));
  const round_info first_task{.seen_classes = {0, 2}, .current_classes = {0, 2}};
  CHECK(at::equal(trained("fedavg", first_task).slice(0, 4, 8), at::ones({4}))); // not even by weight decay
}

TEST_CASE("FedBuff adds the weighted mean of changes, each relative to the model its client received") {
  auto setup = setup_of();
  setup.initial = weights_only(at::full({12}, 10.0));
  setup.rounds = {.mode = round_mode::async, .server_learning_rate = 0.5};
  averaging_server server(setup);
  auto fresh = upload_of(0, 12.0, 1), stale = upload_of(1, 3.0, 3);
  fresh.start = weights_only(at::full({12}, 10.0)); // changed by 2
  stale.start = weights_only(at::full({12}, 7.0));  // changed by -4, long ago
  stale.staleness_weight = 0.25;
  server.fold(fresh);
  server.fold(stale);
  // 10 + 0.5 * (1 * 1 * 2 + 3 * 0.25 * -4) / (1 + 3)
  CHECK(at::equal(closed(server), at::full({12}, 9.875)));
  server.fold(fresh); // the buffer was emptied: 9.875 + 0.5 * 2
  CHECK(at::equal(closed(server), at::full({12}, 10.875)));
}

TEST_CASE("FedAsync moves towards an upload by the mixing weight, less if it is stale") {
  auto setup = setup_of();
  setup.initial = weights_only(at::full({12}, 8.0));
  setup.rounds = {.mode = round_mode::async, .aggregation = aggregation_kind::fedasync, .mixing = 0.5};
  averaging_server server(setup);
  auto upload = upload_of(0, 16.0, 7);
  upload.staleness_weight = 0.25;
  server.fold(upload); // a = 0.125, for any number of rows
  CHECK(at::equal(closed(server), at::full({12}, 9.0)));
  setup.rounds.mixing = 1.0;
  averaging_server replacing(setup);
  replacing.fold(upload_of(0, 16.0, 7));
  CHECK(at::equal(closed(replacing), at::full({12}, 16.0)));
}

TEST_CASE("buffered changes of the head leave the frozen rest unchanged") {
  auto setup = setup_of(trainable_part::head);
  setup.rounds = {.mode = round_mode::async};
  setup.net = model_named("mlp", {1, 1, features}, classes);
  setup.initial = weights_only(initial_weights(*setup.net, 1));
  averaging_server server(setup);
  const auto sent = server.open_round({});
  auto moved = std::make_shared<tensor_map>();
  for (const auto& [name, value] : *sent.weights)
    moved->put(name, value + 1.0);
  server.fold({.upload = moved, .rows = 1, .start = sent.weights});
  const auto after = closed(server), before = setup.initial->at(flat_weights);
  CHECK(at::allclose((after - before).sum(), at::full({}, 100.0 * 4 + 4)));
}

TEST_CASE("joint trains on the rows of all tasks so far, or with one client on all clients' rows") {
  auto method = strategy_named("joint");
  CHECK(method->needs().rows == row_visibility::cumulative);
  key_table table;
  method->keys(table);
  REQUIRE(table.find("centralised") != nullptr);
  *std::get<bool*>(table.find("centralised")->target) = true;
  CHECK(method->needs().rows == row_visibility::centralized);
}
