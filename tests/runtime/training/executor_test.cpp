#include "runtime/kernels/cuda/on_device.hpp"
#include "runtime/training/executor.hpp"
#include "runtime/training/step_plan.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/learning.hpp"
#include "tests/support/wrapped_model.hpp"
#include <ATen/Parallel.h>
#include <catch2/catch_approx.hpp>
#include <limits>
using namespace mneme;
using namespace mneme::test;
using Catch::Approx;

namespace {

/// Parameters of all clients of a test.
struct setting {
  model_ref net{};
  std::shared_ptr<const dataset> source{};
  training_options options{};
  loss_ref objective{};
  bool shared_start = true;
};

/// Clients with 0 to 23 rows, unordered.
std::vector<job> ragged_clients(const setting& chosen, std::uint64_t clients) {
  std::vector<job> jobs;
  const auto shared = weights_only(initial_weights(*chosen.net, 1));
  for (std::uint64_t k = 0; k < clients; ++k) {
    const auto rows = static_cast<std::int64_t>(k * 11 % 24), first = static_cast<std::int64_t>(k % 5);
    jobs.push_back(
        {.id = {{k}, 0, 0},
         .request = train_job{.net = chosen.net,
                              .start = chosen.shared_start ? shared : weights_only(initial_weights(*chosen.net, k)),
                              .samples = rows_from(chosen.source, first, rows),
                              .objective = chosen.objective,
                              .options = chosen.options,
                              .stream = {.seed = 1, .client = {static_cast<std::uint32_t>(k)}}}});
  }
  return jobs;
}

outcomes run_in_groups(std::span<const job> jobs, std::size_t width) {
  const auto runs = make_executor("cpu");
  outcomes results;
  for (std::size_t first = 0; first < jobs.size(); first += width)
    for (auto& output : runs->run(jobs.subspan(first, std::min(width, jobs.size() - first))))
      results.push_back(std::move(output));
  return results;
}

double loss_of(const job_outcome& outcome) { return std::get<train_output>(std::get<work_output>(outcome)).loss_mean; }

std::map<std::string, double> terms_of(const job_outcome& outcome) {
  return std::get<train_output>(std::get<work_output>(outcome)).loss_terms();
}

/// Checks that every client's weights and loss have the same bits at every width.
void check_widths(const setting& chosen, std::uint64_t clients = 64) {
  const auto jobs = ragged_clients(chosen, clients);
  const auto alone = run_in_groups(jobs, 1);
  for (const std::size_t width : {2, 7, 16, 64}) {
    const auto fused = run_in_groups(jobs, width);
    std::size_t equal = 0;
    for (std::size_t k = 0; k < jobs.size(); ++k)
      equal += same_bits(weights_of(alone[k]), weights_of(fused[k])) && loss_of(alone[k]) == loss_of(fused[k]) &&
               terms_of(alone[k]) == terms_of(fused[k]);
    INFO("width " << width);
    CHECK(equal == jobs.size());
  }
  std::size_t trained = 0;
  for (std::size_t k = 0; k < jobs.size(); ++k)
    trained += !same_bits(weights_of(alone[k]), std::get<train_job>(jobs[k].request).start->at(flat_weights));
  CHECK(trained == jobs.size() - (clients + 23) / 24); // every 24th client has no rows
}

setting small_mlp(training_options options) {
  options.classes = {0, 10};
  return {.net = mlp_of({17}, 33, 10), .source = drawn_data(40, {1, 1, 33}, 10), .options = options};
}

/// Net whose forward pass throws if the weights start with 1e6.
class fragile final : public wrapped_model {
public:
  using wrapped_model::wrapped_model;
  activations forward(const at::Tensor& weights, const at::Tensor& inputs, class_range classes, tape* keep,
                      const training_mode* training) const override {
    if ((weights.select(1, 0) == 1e6F).any().item<bool>())
      (void)at::mm(at::zeros({2, 3}), at::zeros({2, 3})); // throws c10::Error
    return wrapped_model::forward(weights, inputs, classes, keep, training);
  }
};

/// Replaces the first initial weight of client k.
void set_first_weight(job& queued, float value) {
  auto& request = std::get<train_job>(queued.request);
  auto changed = request.start->at(flat_weights).clone();
  changed.mutable_data_ptr<float>()[0] = value;
  request.start = weights_only(changed);
}

} // namespace

TEST_CASE("a step is padded to the next power of two of its own rows, at most a batch", "[executor]") {
  const step_plan plan{.rows = 23, .batch_rows = 10};
  CHECK(plan.steps() == 3);
  CHECK((plan.rows_of(0) == 10 && plan.padded_rows_of(0) == 10));
  CHECK((plan.rows_of(2) == 3 && plan.padded_rows_of(2) == 4));
  CHECK((step_plan{.rows = 9, .batch_rows = 10}.padded_rows_of(0) == 10));
  CHECK((step_plan{.rows = 20, .batch_rows = 10}.steps() == 2));
  CHECK((step_plan{.rows = 1, .batch_rows = 64}.padded_rows_of(0) == 1));
  const step_plan full{.rows = 33, .batch_rows = 0};
  CHECK((full.steps() == 1 && full.rows_of(0) == 33 && full.padded_rows_of(0) == 64));
  CHECK((step_plan{.rows = 0, .batch_rows = 0}.steps() == 0));
}

TEST_CASE("a client's bits do not depend on the width of its group", "[executor]") {
  at::set_num_threads(1);
  check_widths(small_mlp({.epochs = 2, .batch_rows = 5}));
  check_widths(small_mlp({.batch_rows = 0}));
  check_widths(small_mlp({.epochs = 2, .batch_rows = 8, .momentum = 0.9, .weight_decay = 0.01, .clip_norm = 0.5}));
  check_widths(small_mlp({.optimizer = optimizer_kind::adam, .epochs = 3, .batch_rows = 8, .learning_rate = 0.01}));
  check_widths(small_mlp({.optimizer = optimizer_kind::adamw, .batch_rows = 7, .weight_decay = 0.01}));
  check_widths(small_mlp({.batch_rows = 5, .trained = trainable_part::head}));
  auto proximal = small_mlp({.epochs = 2, .batch_rows = 5});
  proximal.objective = proximal_objective(0.1);
  proximal.shared_start = false;
  check_widths(proximal);
}

TEST_CASE("a convolutional client's bits do not depend on the width of its group", "[executor]") {
  at::set_num_threads(1);
  check_widths({.net = net_of("lenet", {1, 28, 28}, 10),
                .source = drawn_data(40, {1, 28, 28}, 10),
                .options = {.batch_rows = 5, .augment = augmentation_kind::crop_flip_jitter, .classes = {0, 10}}},
               32);
}

TEST_CASE("one step of plain SGD equals values worked out by hand", "[executor]") {
  // Softmax regression from zero weights on one row x = (2, 3), label 1 of 2: p = 1/2, so dW = (x, -x) / 2.
  auto source = std::make_shared<dataset>();
  source->images = at::tensor(std::vector<int>{2, 3}).to(at::kByte).view({1, 1, 1, 2});
  source->labels = {1};
  source->transforms.resize(1);
  source->scale = {1.0F};
  source->shift = {0.0F};
  const auto net = net_of("linear", {1, 1, 2}, 2);
  const std::vector<job> single{{.request = train_job{.net = net,
                                                      .start = weights_only(at::zeros({6})),
                                                      .samples = rows_from(source, 0, 1),
                                                      .options = {.learning_rate = 0.5, .classes = {0, 2}}}}};
  const auto result = make_executor("cpu")->run(single);
  CHECK(largest_difference(weights_of(result[0]), at::tensor({-0.5F, -0.75F, 0.5F, 0.75F, -0.25F, 0.25F})) < 1e-7);
  CHECK(loss_of(result[0]) == Approx(std::log(2.0)));
  CHECK(std::get<train_output>(std::get<work_output>(result[0])).rows_seen == 1);
}

TEST_CASE("plain SGD steps agree directly, through a buffer, and with zero momentum", "[executor]") {
  const auto plain = run_in_groups(ragged_clients(small_mlp({.epochs = 2, .batch_rows = 5}), 24), 8);
  const auto clipped =
      run_in_groups(ragged_clients(small_mlp({.epochs = 2, .batch_rows = 5, .clip_norm = 1e6}), 24), 8);
  for (std::size_t k = 0; k < plain.size(); ++k)
    CHECK(largest_difference(weights_of(plain[k]), weights_of(clipped[k])) < 1e-6);
}

TEST_CASE("the proximal term keeps weights closer to the start", "[executor]") {
  const auto distance = [](double mu) {
    auto chosen = small_mlp({.epochs = 10, .batch_rows = 5, .learning_rate = 0.1});
    chosen.objective = proximal_objective(mu);
    const auto jobs = ragged_clients(chosen, 2);
    const auto result = run_in_groups(jobs, 2);
    return at::norm(weights_of(result[1]) - std::get<train_job>(jobs[1].request).start->at(flat_weights))
        .item<double>();
  };
  CHECK(distance(5.0) < 0.5 * distance(0.0));
}

TEST_CASE("a training without epochs or rows returns the start and the number of rows", "[executor]") {
  auto jobs = ragged_clients(small_mlp({.epochs = 0}), 3);
  const auto idle = run_in_groups(jobs, 3);
  for (std::size_t k = 0; k < 3; ++k) {
    CHECK(same_bits(weights_of(idle[k]), std::get<train_job>(jobs[k].request).start->at(flat_weights)));
    CHECK(std::get<train_output>(std::get<work_output>(idle[k])).rows_seen ==
          std::get<train_job>(jobs[k].request).samples.size());
    CHECK(loss_of(idle[k]) == 0.0);
  }
  const auto without_rows = ragged_clients(small_mlp({}), 1);
  CHECK(same_bits(weights_of(run_in_groups(without_rows, 1)[0]),
                  std::get<train_job>(without_rows[0].request).start->at(flat_weights)));
}

TEST_CASE("classes outside the loss keep their bits under every optimizer", "[executor]") {
  for (const auto kind : {optimizer_kind::sgd, optimizer_kind::adamw}) {
    auto chosen =
        small_mlp({.optimizer = kind, .batch_rows = 4, .momentum = 0.9, .weight_decay = 0.1, .clip_norm = 1.0});
    chosen.source = drawn_data(40, {1, 1, 33}, 3); // labels 0, 1, 2
    chosen.options.classes = {0, 3};
    chosen.objective = proximal_objective(0.1);
    const auto jobs = ragged_clients(chosen, 16);
    const auto result = run_in_groups(jobs, 16);
    const auto& start = std::get<train_job>(jobs[1].request).start->at(flat_weights);
    for (const auto& parameter : chosen.net->layout())
      if (parameter.head) {
        const auto row = parameter.size / parameter.shape[0];
        const auto rest = [&](const at::Tensor& whole) { return whole.narrow(0, parameter.offset + 3 * row, 7 * row); };
        const auto covered = [&](const at::Tensor& whole) { return whole.narrow(0, parameter.offset, 3 * row); };
        CHECK(same_bits(rest(weights_of(result[1])), rest(start)));
        CHECK_FALSE(same_bits(covered(weights_of(result[1])), covered(start)));
      }
  }
}

TEST_CASE("a NaN in one model leaves the others bitwise equal and is reported in its outcome", "[executor]") {
  auto jobs = ragged_clients(small_mlp({.epochs = 2, .batch_rows = 5}), 16);
  const auto clean = run_in_groups(jobs, 16);
  set_first_weight(jobs[5], std::numeric_limits<float>::quiet_NaN());
  const auto hurt = run_in_groups(jobs, 16);
  for (std::size_t k = 0; k < jobs.size(); ++k)
    if (k != 5)
      CHECK(same_bits(weights_of(clean[k]), weights_of(hurt[k])));
  REQUIRE(std::holds_alternative<std::string>(hurt[5]));
  CHECK(std::get<std::string>(hurt[5]) ==
        "training diverged: after 4 steps on 7 rows fc1.weight holds values that are NaN or infinite; a smaller "
        "training.learning_rate (now 0.05) or a training.clip_norm may help");
}

TEST_CASE("an exception in a fused batch fails only the responsible job", "[executor]") {
  auto chosen = small_mlp({.batch_rows = 5});
  const auto expected = run_in_groups(ragged_clients(chosen, 16), 16);
  chosen.net = std::make_shared<fragile>(chosen.net);
  auto jobs = ragged_clients(chosen, 16);
  set_first_weight(jobs[3], 1e6F);
  const auto result = run_in_groups(jobs, 16);
  for (std::size_t k = 0; k < jobs.size(); ++k)
    if (k != 3)
      CHECK(same_bits(weights_of(result[k]), weights_of(expected[k])));
  REQUIRE(std::holds_alternative<std::string>(result[3]));
  CHECK(std::get<std::string>(result[3]).find("mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)") == 0);
  CHECK(std::get<std::string>(result[3]).find("frame") == std::string::npos); // no stack trace of LibTorch
}

/// Ends a run before step or block number `last` + 1.
class ending_watch final : public slice_monitor {
public:
  explicit ending_watch(int last) : left_(last) {}
  [[nodiscard]] bool should_continue(const std::string& /*name*/, double /*progress*/) override { return true; }
  [[nodiscard]] bool should_stop() override { return left_-- <= 0; }

private:
  int left_;
};

TEST_CASE("a run that ends between two steps waits for no training or pass", "[executor]") {
  const auto interrupted = [](const job_outcome& one) {
    const auto* const reason = std::get_if<std::string>(&one);
    return reason && *reason == interrupted_text;
  };
  auto by_one = small_mlp({.epochs = 3, .batch_rows = 5}), fused = by_one;
  fused.options.momentum = 0.9;
  for (const auto& chosen : {by_one, fused}) {
    const auto jobs = ragged_clients(chosen, 4);
    const auto whole = run_in_groups(jobs, 4);
    ending_watch early(7), late(100'000);
    const auto ended = make_executor("cpu")->run(jobs, &early), unhindered = make_executor("cpu")->run(jobs, &late);
    CHECK(interrupted(ended[3]));
    for (std::size_t k = 0; k < jobs.size(); ++k) {
      CHECK(same_bits(weights_of(unhindered[k]), weights_of(whole[k])));
      CHECK((interrupted(ended[k]) || same_bits(weights_of(ended[k]), weights_of(whole[k]))));
    }
  }
  const auto training = std::get<train_job>(ragged_clients(by_one, 4)[2].request);
  REQUIRE(training.samples.size() > 0);
  const std::vector<job> passes{
      {.id = {}, .request = extract_job{.net = by_one.net, .weights = training.start, .samples = training.samples}},
      {.id = {}, .request = extract_job{.net = by_one.net, .weights = training.start, .samples = training.samples}}};
  ending_watch between(1);
  const auto passed = make_executor("cpu")->run(passes, &between);
  CHECK(std::holds_alternative<work_output>(passed[0]));
  CHECK(interrupted(passed[1]));
}

TEST_CASE("weights of another size are refused with a reason, in trainings and passes", "[executor]") {
  const auto chosen = small_mlp({.batch_rows = 5});
  auto jobs = ragged_clients(chosen, 3);
  auto& training = std::get<train_job>(jobs[2].request);
  REQUIRE(training.samples.size() > 0);
  const auto size = chosen.net->size();
  training.start = weights_only(at::zeros({size - 1}));
  const auto result = run_in_groups(jobs, 3);
  const auto complaint = [&](const char* whose) {
    return std::string(whose) + " are Float[" + std::to_string(size - 1) + "]; expected contiguous float32 [" +
           std::to_string(size) + "], those of the net '" + chosen.net->identity() + "'";
  };
  CHECK(std::get<std::string>(result[2]).find(complaint("start weights")) == 0);
  CHECK(std::holds_alternative<work_output>(result[1]));
  const std::vector<job> pass{
      {.id = {}, .request = extract_job{.net = chosen.net, .weights = training.start, .samples = training.samples}}};
  CHECK(std::get<std::string>(make_executor("cpu")->run(pass)[0]).find(complaint("weights")) == 0);
}

TEST_CASE("rows that the data set does not have are refused with a reason, in every list", "[executor]") {
  const auto chosen = small_mlp({.batch_rows = 5});
  auto jobs = ragged_clients(chosen, 3);
  auto& training = std::get<train_job>(jobs[2].request);
  const auto known = training.samples.source->files_rows();
  for (const std::int64_t row : {known, std::int64_t{-1}, std::int64_t{1} << 62}) {
    auto rows = *training.samples.rows;
    rows.back() = row;
    training.samples.rows = std::make_shared<const std::vector<std::int64_t>>(rows);
    const auto complaint =
        "row " + std::to_string(row) + " is requested, but the data set has rows 0 to " + std::to_string(known - 1);
    const auto result = run_in_groups(jobs, 3);
    CHECK(std::get<std::string>(result[2]).find(complaint) == 0);
    CHECK(std::holds_alternative<work_output>(result[1]));
    const std::vector<job> pass{
        {.id = {}, .request = extract_job{.net = chosen.net, .weights = training.start, .samples = training.samples}}};
    CHECK(std::get<std::string>(make_executor("cpu")->run(pass)[0]).find(complaint) == 0);
  }
}

TEST_CASE("a label outside the loss is refused by row and label", "[executor]") {
  auto chosen = small_mlp({.batch_rows = 5});
  chosen.options.classes = {0, 3};
  const auto result = run_in_groups(ragged_clients(chosen, 2), 2);
  REQUIRE(std::holds_alternative<std::string>(result[1]));
  CHECK(std::get<std::string>(result[1]).find("but the loss covers labels 0 to 2") != std::string::npos);
  CHECK(std::holds_alternative<work_output>(result[0])); // it has no rows
}

TEST_CASE("training learns separable rows", "[executor]") {
  auto source = drawn_data(60, {1, 1, 20}, 3);
  for (std::int64_t row = 0; row < 60; ++row) // class c is bright in pixel c
    for (std::int64_t pixel = 0; pixel < 20; ++pixel)
      source->images.mutable_data_ptr<std::uint8_t>()[row * 20 + pixel] = pixel == row % 3 ? 255 : 0;
  const auto net = mlp_of({8}, 20, 3);
  const std::vector<job> training{
      {.request = train_job{.net = net,
                            .start = weights_only(initial_weights(*net, 1)),
                            .samples = rows_from(source, 0, 60),
                            .options = {.epochs = 30, .batch_rows = 16, .classes = {0, 3}}}}};
  const auto runs = make_executor("cpu");
  const auto trained = runs->run(training);
  const std::vector<job> asking{{.request = evaluate_job{.learned = {net, weights_only(weights_of(trained[0]))},
                                                         .samples = rows_from(source, 0, 60),
                                                         .mask = {0, 3}}}};
  const auto answer = runs->run(asking);
  CHECK(std::get<evaluate_output>(std::get<work_output>(answer[0])).correct == 60);
  CHECK(loss_of(trained[0]) < 0.3);
}

TEST_CASE("the width follows from net and options alone", "[executor]") {
  auto chosen = small_mlp({.batch_rows = 10});
  const auto some = ragged_clients(chosen, 2);
  CHECK(choose_width(some[0].request, "cpu") == choose_width(some[1].request, "cpu"));
  CHECK(choose_width(some[0].request, "cpu") == 128); // 7.5 kB each: MLP 33-17-10
  chosen.net = net_of("mlp", {1, 28, 28}, 10);
  CHECK(choose_width(ragged_clients(chosen, 1)[0].request, "cpu") == 1); // 0.8 MB
  CHECK(choose_width(extract_job{.net = chosen.net}, "cpu") == 1);
}

TEST_CASE("an unavailable device is refused", "[executor]") {
  CHECK(resolve_device("cpu").value() == "cpu");
  CHECK(resolve_device("auto").has_value());
  CHECK_FALSE(resolve_device("cuda:99").has_value());
  CHECK(resolve_device("gpu").error() == "device \"gpu\" is none of \"auto\", \"cpu\", \"cuda:0\", \"cuda:1\", ...");
  CHECK_FALSE(resolve_device("cuda:0x").has_value());
  if (!kernels::cuda::linked) {
    CHECK(resolve_device("auto").value() == "cpu");
    CHECK(resolve_device("cuda:0").error().find("was built without kernels for CUDA") != std::string::npos);
  }
}
