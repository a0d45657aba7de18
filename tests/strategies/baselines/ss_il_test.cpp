// SS-IL: its separated softmax, by hand and compared with the official code.
#include "tests/support/rehearsing_client.hpp"
#include <catch2/matchers/catch_matchers_floating_point.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::WithinAbs;

namespace {

at::Tensor row(const std::vector<float>& values) { return at::tensor(values).unsqueeze(0); }
at::Tensor label(std::int64_t value) { return at::tensor({value}, at::kLong); }

} // namespace

TEST_CASE("new rows have no gradient by old scores, and old rows none by new ones", "[ss-il]") {
  const rehearsing_client client("ss-il", {2, 2});
  const auto objective = client.training(1).objective;
  const auto fresh = rehearsed_step{.logits = row({3, 0, 1, 0}), .labels = label(2)}.loss_of(*objective);
  CHECK_THAT(fresh.values.item<double>(), WithinAbs(0.313262, 1e-6));
  CHECK(fresh.d_logits[0].narrow(1, 0, 2).abs().max().item<float>() == 0.0F);
  const auto old = rehearsed_step{.logits = row({0, 1, 5, 5}), .labels = label(1)}.loss_of(*objective);
  CHECK_THAT(old.values.item<double>(), WithinAbs(0.313262, 1e-6));
  CHECK(old.d_logits[0].narrow(1, 2, 2).abs().max().item<float>() == 0.0F);
  const auto both = rehearsed_step{.logits = at::cat({row({3, 0, 1, 0}), row({0, 1, 5, 5})}),
                                   .labels = at::tensor({2, 1}, at::kLong),
                                   .replayed = 1}
                        .loss_of(*objective);
  CHECK_THAT(both.values.item<double>(), WithinAbs(0.313262, 1e-6)); // one mean over both
}

TEST_CASE("a constant added to all new scores changes nothing", "[ss-il]") {
  const rehearsing_client client("ss-il", {2, 2, 2});
  const auto objective = client.training(2).objective;
  const rehearsed_step step{.logits = formula_tensor("ss-il.z", {5, 6}, 2.0),
                            .labels = at::tensor({4, 0, 5, 3, 1}, at::kLong),
                            .teacher = formula_tensor("ss-il.q", {5, 4}, 2.0)};
  const auto output = step.loss_of(*objective);
  auto moved = step;
  moved.logits = step.logits.clone();
  moved.logits.narrow(1, 4, 2).add_(1.5);
  CHECK_THAT(moved.loss_of(*objective).values.item<double>(), WithinAbs(output.values.item<double>(), 1e-6));
  CHECK(output.d_logits[0].narrow(1, 4, 2).sum(1).abs().max().item<float>() < 1e-7F);
}

TEST_CASE("a step of SS-IL equals the official code's", "[ss-il]") {
  const auto theirs = golden_record("ss-il/official");
  const rehearsing_client client("ss-il", {2, 2, 2});
  const auto own = formula_tensor("ss-il.rows", {4, 5}), replayed = formula_tensor("ss-il.replayed", {3, 5});
  const auto rows = at::cat({own, replayed});
  const auto run_value = [&](const std::string& net) {
    return at::linear(rows, formula_tensor(net + ".weight", {6, 5}), formula_tensor(net + ".bias", {6}));
  };
  const auto ours =
      rehearsed_step{.logits = run_value("net"),
                     .labels = at::cat({labels_of(theirs["new_labels"]), labels_of(theirs["old_labels"])}),
                     .teacher = run_value("old").narrow(1, 0, 4).contiguous(),
                     .replayed = 3}
          .loss_of(*client.training(2).objective);
  const auto gradient = at::cat({ours.d_logits[0].t().mm(rows).flatten(), ours.d_logits[0].sum(0)});
  CHECK(largest_difference_of(-gradient, listed_tensor(theirs["minus_gradient"], {36})) < 1e-6);
}

TEST_CASE("exemplars join every step, a quarter of a batch, and the rate falls with the tasks", "[ss-il]") {
  const rehearsing_client client("ss-il", {2, 2, 2}, {{"memory", "12"}});
  const auto first = client.training(0), third = client.training(2);
  CHECK(first.replay.samples.size() == 0);
  CHECK(first.options.learning_rate == 0.1);
  CHECK(third.samples.size() == 8);
  CHECK(third.replay.samples.size() == 12);
  CHECK(third.options.replay_rows == 1); // batches of four
  CHECK_THAT(third.options.learning_rate, WithinAbs(0.1 / 3.0, 1e-15));
  CHECK(third.options.teachers.at(0).classes == class_range{0, 4});
}

TEST_CASE("a client without own rows replays batches of at least one row for any batch size", "[ss-il]") {
  rehearsing_client client("ss-il", {2, 2}, {{"memory", "12"}});
  client.setup.training.batch = 0; // all of a client's rows
  client.method->prepare(client.setup);
  const auto work = client.work(client.sent(1, false), client.rows_of(0, 0, 4)); // rows of the first task alone
  const auto jobs = jobs_of_kind<train_job>(jobs_of_round(*client.method, *client.device, work));
  REQUIRE(jobs.size() == 1);
  CHECK(jobs[0].samples.size() == 0);
  CHECK(jobs[0].replay.samples.size() == 8);
  CHECK(jobs[0].options.replay_rows == 1);
}
