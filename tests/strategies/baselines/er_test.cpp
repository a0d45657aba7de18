// Experience replay: a client's memory of its rows, and the loss of a step with replayed rows.
#include "runtime/method/gradients.hpp"
#include "tests/support/shown_steps.hpp"
#include "tests/support/tensors.hpp"
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <numeric>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::WithinRel;

namespace {

constexpr std::int64_t features = 3, classes = 4;
using numbers = std::vector<std::int64_t>;

struct client {
  std::unique_ptr<strategy> method = strategy_named("er");
  std::unique_ptr<executor> device = make_executor("cpu");
  std::shared_ptr<const dataset> rows = striped_rows(64, features, classes);
  method_setup setup = setup_of_run(model_named("linear", {1, 1, features}, classes), features, 4);

  explicit client(const key_list& keys) {
    give_keys(*method, keys.pairs);
    setup.training = {.epochs = 0, .batch = 4, .learning_rate = 0.1};
    method->prepare(setup);
  }
  [[nodiscard]] assignment work(std::uint32_t task, const numbers& own, memory_ref memory, std::uint64_t seed) const {
    broadcast in{.info = {.task = {task}, .seen_classes = {0, classes}, .current_classes = {0, classes}},
                 .weights = setup.initial};
    return {.in = std::make_shared<const broadcast>(in),
            .memory = std::move(memory),
            .samples = view_of(rows, own),
            .seed = seed};
  }
  /// The client's memory after a round.
  [[nodiscard]] memory_ref after(std::uint32_t task, const numbers& own, memory_ref memory = nullptr,
                                 std::uint64_t seed = 1) const {
    return run_round(*method, *device, work(task, own, std::move(memory), seed)).memory;
  }
};

numbers listed(const memory_ref& memory, const char* name = "rows") {
  const auto& kept = memory->at(name);
  return {kept.const_data_ptr<std::int64_t>(), kept.const_data_ptr<std::int64_t>() + kept.numel()};
}

numbers from_to(std::int64_t first, std::int64_t last) {
  numbers made(static_cast<std::size_t>(last - first));
  std::iota(made.begin(), made.end(), first);
  return made;
}

} // namespace

TEST_CASE("the first rows fill the buffer, and each task is added once", "[er]") {
  const client learner({{"buffer", "10"}});
  const auto first = learner.after(0, {5, 9, 2});
  CHECK(listed(first) == numbers{5, 9, 2});
  CHECK(listed(first, "met") == numbers{3, 0});
  CHECK(learner.after(0, {5, 9, 2}, first) == nullptr); // another round of the task
  const auto second = learner.after(1, {40, 41}, first);
  CHECK(listed(second) == numbers{5, 9, 2, 40, 41});
  CHECK(listed(second, "met") == numbers{5, 1});
}

TEST_CASE("the buffer is a uniform sample of all rows of all tasks", "[er]") {
  const client learner({{"buffer", "4"}});
  std::vector<int> kept(16);
  constexpr int runs = 1500;
  for (int seed = 0; seed < runs; ++seed) {
    const auto first = learner.after(0, from_to(0, 6), nullptr, seed);
    const auto buffer = listed(learner.after(1, from_to(6, 16), first, seed));
    REQUIRE(buffer.size() == 4);
    for (const auto row : buffer)
      ++kept[static_cast<std::size_t>(row)];
  }
  for (const auto count : kept) // 375 expected, standard deviation 17
    CHECK(std::abs(count - runs / 4) < 75);
}

TEST_CASE("the ring buffer keeps the last rows of each class", "[er]") {
  const client learner({{"buffer", "9"}, {"selection", "ring"}}); // two of each of four classes
  const auto first = learner.after(0, {0, 4, 8, 1});              // labels 0 0 0 1
  CHECK(listed(first) == numbers{4, 8, 1});
  CHECK(listed(learner.after(1, {2, 12, 5, 6}, first)) == numbers{8, 1, 2, 12, 5, 6});
}

TEST_CASE("a ring smaller than the classes is refused", "[er]") {
  const client small({{"buffer", "3"}, {"selection", "ring"}});
  const auto errors = small.method->check(small.setup);
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].where == "strategy.buffer");
  CHECK(errors[0].text ==
        "strategy.buffer = 3: selection = \"ring\" keeps as many rows of each of the 4 classes of the "
        "run; expected at least 4");
  CHECK(client({{"buffer", "3"}}).method->check(small.setup).empty());
}

TEST_CASE("replayed rows join every step once the memory has some", "[er]") {
  const client learner({{"buffer", "10"}, {"replay_rows", "2"}});
  const auto jobs_with = [&](memory_ref memory) {
    return jobs_of_kind<train_job>(
        jobs_of_round(*learner.method, *learner.device, learner.work(1, {20, 21}, std::move(memory), 1)));
  };
  const auto fresh = jobs_with(nullptr);
  CHECK(fresh.at(0).replay.samples.size() == 0);
  CHECK(fresh[0].options.replay_rows == 0);
  const auto replayed = jobs_with(learner.after(0, {5, 9, 2}));
  CHECK(*replayed.at(0).replay.samples.rows == numbers{5, 9, 2});
  CHECK(replayed[0].options.replay_rows == 2);
  CHECK(*replayed[0].samples.rows == numbers{20, 21}); // only these determine the weight of the upload
}

TEST_CASE("the loss is a mean over own and replayed rows together, without padding", "[er]") {
  const client learner({{"buffer", "10"}});
  const auto jobs = jobs_of_kind<train_job>(
      jobs_of_round(*learner.method, *learner.device, learner.work(1, {20, 21}, learner.after(0, {5, 9, 2}), 1)));
  const auto logits = drawn({1, 6, 4}, 3);
  const auto labels = at::tensor(std::vector<std::int64_t>{0, 3, -1, 1, 2, 2}, at::kLong).view({1, 6});
  // Two own rows and padding, three replayed ones.
  const auto weight = floats({0.5F, 0.5F, 0.0F, 1.0F / 3, 1.0F / 3, 1.0F / 3}).view({1, 6});
  const auto found = (*jobs.at(0).objective)(
      {.logits = logits, .features = logits, .labels = labels, .row_weight = weight, .auxiliaries = {}, .replayed = 3});
  const auto z = leaf_of(logits[0].to(at::kDouble));
  const auto real = at::tensor(std::vector<std::int64_t>{0, 1, 3, 4, 5}, at::kLong);
  const auto value = at::cross_entropy_loss(z.index_select(0, real), labels[0].index_select(0, real));
  CHECK_THAT(found.values.item<double>(), WithinRel(value.item<double>(), 1e-6));
  CHECK((found.d_logits[0].to(at::kDouble) - gradients_of(value, {z}).front()).abs().max().item<double>() < 1e-7);
}

TEST_CASE("the alternative loss is the sum of both means", "[er]") {
  const client learner({{"buffer", "10"}, {"loss", "sum"}});
  const auto jobs = jobs_of_kind<train_job>(
      jobs_of_round(*learner.method, *learner.device, learner.work(1, {20, 21}, learner.after(0, {5}), 1)));
  CHECK(jobs.at(0).options.replay_weight == 1.0);
  CHECK(jobs[0].objective->identity() == cross_entropy_objective()->identity());
}
