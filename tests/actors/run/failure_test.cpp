// Failures end a run with an error that names client, round and job. Nothing hangs, and finished results are kept.
#include <ATen/TensorOperators.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h> // before Catch2, whose CHECK must be the last definition

#include "strategies/shared/averaging.hpp"
#include "tests/support/run.hpp"
#include "tests/support/scenario_text.hpp"
#include "tests/support/wrapped_model.hpp"
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <thread>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// FedAvg whose client 2 throws in the round and at the point given by its keys.
class throwing final : public averaging_method {
public:
  void keys(key_table& table) override {
    table.integer("round", round_, {.low = 0}, "The round in which something throws, from 1; 0: none.");
    table.text("place", place_,
               "Who throws: client, fold, close; upload: its size is not the one known; nan, sent: the server's model "
               "or broadcast "
               "is not finite.");
  }
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override {
    if (place_ == "client" && ctx.self() == client_id{2} && in.info.round.value + 1 == round_)
      throw std::runtime_error("the client's code is wrong");
    auto inner = averaging_method::client_round(ctx, in);
    auto result = co_await inner;
    if (place_ == "upload" && ctx.self() == client_id{2} && in.info.round.value + 1 == round_) {
      tensor_map more = *result.upload;
      more.put("more", at::zeros({3}));
      result.upload = std::make_shared<const tensor_map>(std::move(more));
    }
    co_return result;
  }
  std::unique_ptr<server_half> make_server() const override;

private:
  friend class throwing_server;
  std::int64_t round_ = 0;
  std::string place_ = "client";
};

class throwing_server final : public averaging_server {
public:
  throwing_server(const throwing& method, const method_setup& setup) : averaging_server(setup), method_(method) {}
  void fold(const delivery& in) override {
    if (method_.place_ == "fold" && in.started_from.value + 1 == method_.round_)
      throw std::runtime_error("the fold is wrong");
    averaging_server::fold(in);
  }
  task<void> close_round(server_context& ctx, const round_info& place) override {
    if (method_.place_ == "close" && place.round.value + 1 == method_.round_)
      throw std::runtime_error("the step is wrong");
    if (method_.place_ == "nan" && place.round.value + 1 == method_.round_) {
      average();
      set_weights(weights() * std::nan(""));
    }
    return averaging_server::close_round(ctx, place);
  }
  broadcast open_round(const round_info& place) override {
    auto sent = averaging_server::open_round(place);
    if (method_.place_ == "sent" && place.round.value + 1 == method_.round_)
      sent.weights = weights_only(sent.weights->at(flat_weights) / 0.0);
    return sent;
  }

private:
  const throwing& method_;
};

std::unique_ptr<server_half> throwing::make_server() const { return std::make_unique<throwing_server>(*this, setup()); }

const strategy_registration throwing_line{
    {.name = "throwing", .summary = "for tests", .make = []() -> std::unique_ptr<strategy> {
       return std::make_unique<throwing>();
     }}};

/// Linear net whose forward pass throws an error of LibTorch for batches of `rows` rows.
class fragile final : public wrapped_model {
public:
  fragile(model_ref inner, std::int64_t rows) : wrapped_model(std::move(inner)), rows_(rows) {}
  activations forward(const at::Tensor& weights, const at::Tensor& inputs, class_range classes, tape* keep,
                      const training_mode* mode) const override {
    if (inputs.size(1) == rows_)
      (void)at::mm(at::zeros({2, 3}), at::zeros({2, 3})); // throws c10::Error
    return wrapped_model::forward(weights, inputs, classes, keep, mode);
  }

private:
  std::int64_t rows_;
};

class fragile_kind final : public model_kind {
public:
  void keys(key_table& table) override { table.integer("rows", rows_, {.low = 1}, "Throws on steps of so many rows."); }
  tl::expected<model_ref, std::string> build(std::array<std::int64_t, 3> shape, std::int64_t classes) const override {
    for (const auto& entry : models())
      if (entry.name == "linear")
        return std::make_shared<const fragile>(entry.make()->build(shape, classes).value(), rows_);
    return tl::unexpected{std::string("no linear model")};
  }

private:
  std::int64_t rows_ = 1;
};

const model_registration fragile_line{
    {.name = "fragile", .summary = "for tests", .make = []() -> std::unique_ptr<model_kind> {
       return std::make_unique<fragile_kind>();
     }}};

const auto five_clients = made_scenario({{"data.shape", raw_toml("[3]")},
                                         {"data.classes", 2},
                                         {"data.rows", 42},
                                         {"tasks.kind", "single"},
                                         {"partition.kind", "iid"},
                                         {"clients.count", 5},
                                         {"rounds.per_task", 3},
                                         {"rounds.cohort", 5},
                                         {"model.name", "linear"},
                                         {"training.batch", 0},
                                         {"evaluation.every", 1}});
/// Method that throws in this round at this point.
scenario_text throwing(std::int64_t round, const char* place = nullptr) {
  auto made = five_clients.with({{"strategy.name", "throwing"}, {"strategy.round", round}});
  return place ? made.with({{"strategy.place", place}}) : made;
}

} // namespace

TEST_CASE("an exception in client code names client and round and keeps the records") {
  const auto run = run_toml(throwing(2));
  CHECK(run.summary.status == "failed");
  CHECK_THAT(run.summary.error,
             ContainsSubstring("client 2, round 2") && ContainsSubstring("the client's code is wrong"));
  CHECK(std::count(run.metrics.begin(), run.metrics.end(), '\n') == 1);
  CHECK(run.summary.rounds == 1);
}

TEST_CASE("an upload of an unannounced size ends the run and names the client") {
  const auto run = run_toml(throwing(2, "upload"));
  CHECK(run.summary.status == "failed");
  CHECK_THAT(run.summary.error, ContainsSubstring("client 2, round 2") && ContainsSubstring("upload_size_known"));
}

TEST_CASE("a failed run has the same events and digest, whatever other clients have computed") {
  const auto failed = [](const char* width, std::int64_t threads) {
    return run_toml(five_clients, {.over = {{"model.name", "fragile"},
                                            {"model.rows", "16"},
                                            {"training.batch", "16"},
                                            {"partition.kind", "dirichlet"},
                                            {"partition.beta", "0.3"},
                                            {"data.rows", "300"},
                                            {"worker.fused_clients_max", width}},
                                   .threads = threads,
                                   .trace = true});
  };
  const auto expected = failed("1", 1);
  REQUIRE(expected.summary.status == "failed");
  for (const std::int64_t threads : {1, 2, 4})
    for (int again = 0; again < 3; ++again) {
      const auto run = failed("1", threads);
      CHECK(run.summary.run_digest == expected.summary.run_digest);
      CHECK(run.summary.virtual_seconds == expected.summary.virtual_seconds);
      CHECK(run.events == expected.events);
    }
}

TEST_CASE("an exception in the server half names the server") {
  const auto fold = run_toml(throwing(2, "fold"));
  CHECK(fold.summary.status == "failed");
  CHECK_THAT(fold.summary.error, ContainsSubstring("server") && ContainsSubstring("the fold is wrong"));
  const auto close = run_toml(throwing(3, "close"));
  CHECK(close.summary.status == "failed");
  CHECK_THAT(close.summary.error, ContainsSubstring("server") && ContainsSubstring("the step is wrong"));
}

TEST_CASE("a model that is not finite is reported as an error of the server") {
  const auto model = run_toml(throwing(2, "nan"));
  CHECK(model.summary.status == "failed");
  CHECK_THAT(model.summary.error, ContainsSubstring("server step, round 2: the new model of 'throwing' is not finite: "
                                                    "fc.weight holds values that are NaN or infinite") &&
                                      ContainsSubstring("training.learning_rate = "));
  CHECK(model.summary.rounds == 2);
  const auto sent = run_toml(throwing(3, "sent"));
  CHECK(sent.summary.status == "failed");
  CHECK_THAT(sent.summary.error,
             ContainsSubstring("server, opening a round: the broadcast of 'throwing' is not finite"));
}

TEST_CASE("an error of LibTorch in a fused batch fails only the responsible clients") {
  // 42 rows over five clients: two hold 9 rows (padded to 16), three hold 8.
  const auto run = run_toml(five_clients, {.over = {{"model.name", "fragile"}, {"model.rows", "16"}}});
  CHECK(run.summary.status == "failed");
  CHECK_THAT(run.summary.error,
             ContainsSubstring("round 1") && ContainsSubstring("client ") && ContainsSubstring("mat1 and mat2"));
}

TEST_CASE("NaN and infinite values end the run and name the client") {
  const auto run = run_toml(five_clients, {.over = {{"training.weight_decay", "1e12"}, {"training.epochs", "9"}}});
  CHECK(run.summary.status == "failed");
  CHECK_THAT(run.summary.error,
             ContainsSubstring("client ") && ContainsSubstring("round 1") && ContainsSubstring("finite"));
}

TEST_CASE("NaN and infinite values end the run with the same error if several workers host shards") {
  const auto failed = [](std::int64_t threads) {
    return run_toml(five_clients, {.over = {{"worker.shards", "2"},
                                            {"model.name", "mlp"},
                                            {"model.hidden", "[4096]"},
                                            {"training.batch", "2"},
                                            {"training.learning_rate", "1e12"},
                                            {"training.epochs", "9"}},
                                   .threads = threads,
                                   .trace = true});
  };
  const auto expected = failed(1);
  CHECK(expected.summary.status == "failed");
  CHECK_THAT(expected.summary.error,
             ContainsSubstring("client ") && ContainsSubstring("round 1") && ContainsSubstring("finite"));
  for (int again = 0; again < 3; ++again) {
    const auto run = failed(2);
    CHECK(run.summary.error == expected.summary.error);
    CHECK(run.summary.run_digest == expected.summary.run_digest);
    CHECK(run.events == expected.events);
  }
}

TEST_CASE("an interrupt ends the run after the current event and keeps the records") {
  std::atomic<int> interrupts = 0;
  std::jthread finger([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    interrupts = 1;
  });
  const auto run = run_toml(five_clients, {.over = {{"rounds.per_task", "1000000"}}, .interrupts = &interrupts});
  CHECK(run.summary.status == "interrupted");
  CHECK(run.summary.rounds > 0);
  CHECK(std::count(run.metrics.begin(), run.metrics.end(), '\n') >= run.summary.rounds - 1);
}
