// Training losses: summed per client, and read from the results of its jobs.
#include "runtime/method/client_round_runner.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include <catch2/catch_test_macros.hpp>
using namespace mneme;

namespace {

/// Reports a training loss. The test sets its results.
class telling_program final : public looped_program {
public:
  std::string name() const override { return "telling"; }
  std::string identity() const override { return ""; }
  std::vector<declared_tensor> outcome(const program_job&) const override {
    return {{.name = "training_loss", .shape = {1}}, {.name = "training_loss.game", .shape = {1}}};
  }

protected:
  slice_result run_call(const program_call&) const override { return {}; }
};

/// Trains, takes a gradient, runs a program, and sends nothing.
class three_jobs final : public strategy {
public:
  void prepare(const method_setup&) override {}
  task<client_result> client_round(client_context& ctx, const broadcast&) const override {
    auto training = ctx.train({});
    co_await training;
    auto looking = ctx.train({});
    co_await looking;
    auto playing = ctx.run({.body = std::make_shared<const telling_program>()});
    co_await playing;
    co_return client_result{.rows = 12};
  }
  std::unique_ptr<server_half> make_server() const override { return nullptr; }
};

outcomes trained(double loss, std::int64_t rows, bool weights) {
  train_output made{.loss_mean = loss, .loss_name = "cross_entropy", .rows_seen = rows};
  if (weights)
    made.weights = weights_only(at::zeros({1}));
  else
    made.gradients = at::zeros({1});
  return {work_output{std::move(made)}};
}

assignment of_twelve_rows() {
  assignment made{.in = std::make_shared<const broadcast>()};
  made.samples.rows = std::make_shared<const std::vector<std::int64_t>>(12);
  return made;
}

} // namespace

TEST_CASE("losses are weighted by rows, and a missing term counts as 0") {
  training_losses losses;
  CHECK(losses.empty());
  CHECK_FALSE(losses.mean());
  losses.add(2, 1.0, {{"a", 1.0}});
  losses.add(6, 3.0, {{"a", 1.0}, {"b", 2.0}});
  losses.add(0, 9.0, {{"c", 9.0}}); // no rows, so it is ignored
  CHECK(losses.mean() == 2.5);      // (2 * 1 + 6 * 3) / 8
  CHECK(losses.term_means() == std::map<std::string, double>{{"a", 1.0}, {"b", 1.5}});
  training_losses both;
  both.add(8, 0.5, {{"b", 0.5}});
  both.add(losses);
  CHECK(both.mean() == 1.5);
  CHECK(both.term_means() == std::map<std::string, double>{{"a", 0.5}, {"b", 1.0}});
}

TEST_CASE("a loss of one term adds up like one of several, and both survive an archive") {
  training_losses losses;
  losses.add(2, 1.0, "cross_entropy");
  losses.add(6, 3.0, {{"cross_entropy", 1.0}, {"a term with a longer name", 2.0}});
  losses.add(0, 9.0, "nothing");
  CHECK(losses.mean() == 2.5); // (2 * 1 + 6 * 3) / 8
  const std::map<std::string, double> means{{"cross_entropy", 1.0}, {"a term with a longer name", 1.5}};
  CHECK(losses.term_means() == means);
  archive saved;
  losses.persist(saved);
  const auto bytes = saved.contents();
  archive from(bytes, 0, bytes->size());
  training_losses back;
  back.add(1, 4.0, "forgotten by loading");
  back.persist(from);
  from.expect_end();
  CHECK(back.rows == 8.0);
  CHECK(back.term_means() == means);
}

TEST_CASE("a client's result has the losses of its trainings and programs but not of gradients") {
  const three_jobs method;
  client_round_runner run(method, of_twelve_rows());
  (void)run.start();
  (void)run.resume(trained(0.5, 4, true));
  (void)run.resume(trained(100.0, 4, false));
  tensor_map told;
  told.put("training_loss", at::full({1}, 2.0F));
  told.put("training_loss.game", at::full({1}, 1.5F));
  const auto step = run.resume({work_output{program_output{std::make_shared<const tensor_map>(told)}}});
  const auto& result = std::get<client_result>(step);
  REQUIRE(result.losses);
  CHECK(result.losses->rows == 16.0);    // the program counts with the client's 12 rows
  CHECK(result.losses->mean() == 1.625); // (4 * 0.5 + 12 * 2) / 16
  CHECK(result.losses->term_means() == std::map<std::string, double>{{"cross_entropy", 0.125}, {"game", 1.125}});
}

TEST_CASE("a round without a training has no losses") {
  const three_jobs method;
  client_round_runner run(method, of_twelve_rows());
  (void)run.start();
  (void)run.resume({work_output{train_output{.weights = weights_only(at::zeros({1}))}}}); // no rows, so no training
  (void)run.resume(trained(100.0, 4, false));
  const auto step = run.resume({work_output{program_output{std::make_shared<const tensor_map>()}}});
  CHECK_FALSE(std::get<client_result>(step).losses);
}
