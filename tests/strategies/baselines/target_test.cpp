// TARGET: its loss by hand, a round of its generator, its pool, and the training of clients.
#include "runtime/models/function.hpp"
#include "runtime/models/image_layers.hpp"
#include "strategies/baselines/target_images.hpp"
#include "strategies/baselines/target_loss.hpp"
#include "strategies/shared/image_generator.hpp"
#include "tests/support/method_driver.hpp"
#include "tests/support/program_check.hpp"
#include <catch2/catch_approx.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <numeric>
#include <set>
using namespace mneme;
using namespace mneme::test;
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::int64_t classes = 6, side = 8;
const std::array<std::int64_t, 3> image{3, side, side};

model_ref classifier() {
  network_builder net("a convolution", image);
  add_convolution(net, "conv1", {.filters = 4, .stride = 2, .padding = 1, .bias = false});
  net.add_normalization("bn1", 0, activation::relu);
  add_mean_pool(net);
  net.add_head("fc", classes);
  return net.build();
}

target_settings few_steps() {
  target_settings settings{
      .shape = image, .scale = {0.02F, 0.02F, 0.02F}, .shift = {-2.0F, -2.0F, -2.0F}, .seen_classes = 4};
  settings.code = 5, settings.filters = 3, settings.rounds = 3, settings.steps = 2, settings.batch = 6;
  settings.student_steps = 3, settings.student_batch = 4;
  return settings;
}

program_job pool_job(const target_settings& settings, std::uint64_t seed = 1) {
  const auto net = classifier();
  auto in = std::make_shared<tensor_map>();
  const auto teacher = initial_weights(*net, 1) + 0.05 * drawn({net->size()}, 9).abs();
  in->put(flat_weights, teacher);
  in->put("student", teacher + 0.1 * drawn({net->size()}, 10)); // they agree on most images
  return {.body = target_program(net, settings), .in = in, .stream = {.seed = seed, .purpose = first_method_purpose}};
}
tensor_map pool_of(const target_settings& settings, std::uint64_t seed = 1) {
  return tensors_of(run_by_width({pool_job(settings, seed)}, 1)[0]);
}

} // namespace

TEST_CASE("TARGET distills old classes on images and learns new ones on own rows") {
  // Two own rows, one of them padding, and an image; of four classes two are old.
  const float log3 = std::log(3.0F);
  const auto z = at::stack({floats({9, 9, 0, log3}), floats({1, 2, 3, 4}), floats({0, 2, 5, 7})}).unsqueeze(0);
  const auto taught = at::stack({floats({1, 5}), floats({0, 0}), floats({2, 0})}).unsqueeze(0);
  const auto y = at::tensor(std::vector<std::int64_t>{3, -1, 0}, at::kLong).unsqueeze(0);
  const auto w = floats({1, 0, 1}).unsqueeze(0);
  const std::vector<std::shared_ptr<const tensor_map>> auxiliaries{nullptr};
  loss_input in{.logits = z, .features = z, .labels = y, .row_weight = w, .auxiliaries = auxiliaries};
  in.teachers = {{.logits = taught}};
  in.replayed = 1;
  const auto output = (*target_objective(2, 25.0, 2.0))(in);
  CHECK(output.terms[0].value[0].item<double>() == Approx(std::log(4.0 / 3.0)).epsilon(1e-6));
  CHECK(output.terms[1].value[0].item<double>() == Approx(25.0 * 1.044320).epsilon(1e-6));
  CHECK(output.values[0].item<double>() == Approx(26.108 + 0.287682).epsilon(1e-5));
  const auto slope = 25.0F / 2.0F * (0.26894142F - 0.73105858F); // k / T (softmax(z / T) - softmax(z_old / T))
  const auto expected = at::stack({floats({0, 0, 0.25F, -0.25F}), floats({0, 0, 0, 0}), floats({slope, -slope, 0, 0})});
  CHECK(largest_difference(output.d_logits[0].contiguous(), expected) < 1e-5);
}

TEST_CASE("TARGET's generator takes one step per round, however many steps its copy takes") {
  auto settings = few_steps();
  settings.steps = 4;
  const auto net = classifier();
  const auto teacher = initial_weights(*net, 1), student = initial_weights(*net, 2);
  const auto generator = image_generator(image, settings.code, settings.filters);
  const auto start = initial_weights(*generator, 1);
  const target_draws drawn_once{.labels = at::arange(settings.batch, at::kLong) % 4,
                                .codes = drawn({settings.batch, 5}, 3)};
  std::map<outer_step, at::Tensor> after;
  for (const auto outer : {outer_step::first_order, outer_step::reptile}) {
    settings.outer = outer;
    target_generator_state now{.generator = adam(start.unsqueeze(0))};
    const auto round = target_round(*net, *generator, settings, teacher, student, now, drawn_once);
    CHECK(round.losses.size() == 4);
    for (const auto& step : round.losses) {
      CHECK(step.total == Approx(10.0 * step.statistics + 0.5 * step.labels + step.adversary).epsilon(1e-5));
      CHECK(step.adversary <= 0.0);
      CHECK(round.total <= step.total);
    }
    after[outer] = now.generator.weights()[0];
    const auto away = (after[outer] - start).abs().max().item<double>(); // a step of Adam, at 4 times 0.002
    CHECK(away == Approx(0.008).epsilon(1e-3));
    CHECK(now.past.numel() == 2 * 4);
  }
  CHECK_FALSE(at::equal(after[outer_step::first_order], after[outer_step::reptile]));
}

TEST_CASE("TARGET's pool has one batch per round in name order, with the same bits in any stack") {
  auto settings = few_steps();
  const auto whole = pool_of(settings);
  CHECK(whole.at("images").sizes() == at::IntArrayRef{18, 3, side, side});
  CHECK(whole.at("labels").max().item<std::int64_t>() < 4);
  CHECK_FALSE(at::equal(whole.at("images"), pool_of(settings, 2).at("images")));
  settings.most = 13; // 0-0.png .. 2-0.png
  const auto cut = pool_of(settings);
  CHECK(at::equal(cut.at("images"), whole.at("images").narrow(0, 0, 13)));
  CHECK(at::equal(cut.at("labels"), whole.at("labels").narrow(0, 0, 13)));
  check_program({pool_job(settings, 1), pool_job(settings, 2), pool_job(settings, 3)});
}

TEST_CASE("TARGET's generator fools the student after the warm-up, never with fewer rounds") {
  auto settings = few_steps();
  const auto objective = [&] { return pool_of(settings).at("objective").clone(); };
  const auto never = objective(); // three rounds, and a warm-up of 20
  settings.adversary = 0.0;
  CHECK(at::equal(objective(), never));
  settings.adversary = 100.0;
  CHECK(at::equal(objective(), never));
  settings.warm_up = 2;
  const auto fooling = objective();
  CHECK(fooling[0].item<double>() == never[0].item<double>());
  CHECK(fooling[1].item<double>() != never[1].item<double>());
  // The student's training after the first round affects only the next round.
  settings.warm_up = 1;
  const auto learned = objective();
  settings.student_rate = 5.0;
  const auto other = objective();
  CHECK(learned[1].item<double>() == other[1].item<double>());
  CHECK(learned[2].item<double>() != other[2].item<double>());
}

TEST_CASE("the rate of TARGET's student falls by half a cosine over all rounds") {
  target_settings settings{.rounds = 200};
  CHECK(settings.rate_of_student(0) == Approx(0.2));
  CHECK(settings.rate_of_student(100) == Approx(0.1001));
  CHECK(settings.rate_of_student(200) == Approx(2e-4));
  CHECK(settings.uses_adversary());
  settings.rounds = 10;
  CHECK_FALSE(settings.uses_adversary());
}

namespace {

/// Training job of a client of some rows in the second task, with a pool of six images.
train_job asked_of_client(const std::string& epoch_ends, std::int64_t rows, std::int64_t epochs) {
  auto method = strategy_named("target");
  give_keys(*method, {{"epoch_ends", epoch_ends}, {"replay_rows", "4"}});
  const auto net = classifier();
  auto source = std::make_shared<dataset>();
  source->images = at::zeros({rows, 3, side, side}, at::kByte);
  for (std::int64_t r = 0; r < rows; ++r)
    source->labels.push_back(2 + static_cast<std::int32_t>(r % 2));
  source->transforms.resize(1);
  source->scale = {0.01F, 0.01F, 0.01F};
  source->shift = {-1.0F, -1.0F, -1.0F};
  method_setup setup{.net = net, .initial = weights_only(initial_weights(*net, 5)), .tasks = 2, .classes = classes};
  setup.training.batch = 4;
  setup.training.epochs = epochs;
  setup.training.augment = augmentation_kind::crop_flip_jitter;
  method->prepare(setup);
  auto pool = std::make_shared<tensor_map>();
  pool->put("teacher", setup.initial->at(flat_weights));
  pool->put("images", at::arange(6, at::kByte).view({6, 1, 1, 1}).expand({6, 3, side, side}).contiguous());
  pool->put("labels", at::arange(6, at::kLong) % 2);
  broadcast in;
  in.weights = setup.initial;
  in.extra = pool;
  in.info = {.task = {1}, .rounds_of_task = 1, .seen_classes = {0, 4}, .current_classes = {2, 4}};
  std::vector<std::int64_t> mine(static_cast<std::size_t>(rows));
  std::iota(mine.begin(), mine.end(), 0);
  generated_row_store store({.scale = source->scale, .shift = source->shift});
  client_round_runner run(
      *method, {.in = std::make_shared<const broadcast>(in), .samples = view_of(source, mine), .seed = 5, .task = {1}},
      &store);
  auto step = run.start();
  return std::get<train_job>(std::get<plan>(step).front());
}

} // namespace

TEST_CASE("TARGET's clients use all own rows, or as many as the images have batches") {
  const auto whole = asked_of_client("own-rows", 24, 3);
  CHECK(whole.samples.size() == 24);
  CHECK(whole.options.epochs == 3);
  CHECK_FALSE(whole.options.in_order);
  CHECK(whole.options.replay_short_last);
  CHECK(whole.options.replay_rows == 4);
  CHECK(whole.options.replay_by == replay_pass::separate);
  CHECK(whole.options.replay_augment == augmentation_kind::crop_flip);
  CHECK(whole.options.teachers.at(0).classes == class_range{0, 2});
  CHECK(whole.options.classes == class_range{0, 4});

  // Six images are two batches: three epochs of two steps.
  const auto cut = asked_of_client("shorter", 24, 3);
  CHECK(cut.options.epochs == 1);
  CHECK(cut.options.in_order);
  CHECK(cut.samples.size() == 3 * 8);
  CHECK(cut.replay.samples.size() == 3 * 2 * 4);
  const auto& rows = *cut.samples.rows;
  for (std::size_t epoch = 0; epoch < 3; ++epoch)
    CHECK(std::set(rows.begin() + static_cast<std::ptrdiff_t>(8 * epoch),
                   rows.begin() + static_cast<std::ptrdiff_t>(8 * epoch + 8))
              .size() == 8);
  CHECK(std::set(rows.begin(), rows.end()).size() > 8); // other rows in each epoch
  CHECK(asked_of_client("shorter", 8, 3).options.epochs == 3);
}

TEST_CASE("TARGET refuses nets without batch norms, rows of numbers and tasks that repeat classes") {
  auto method = strategy_named("target");
  auto setup = setup_of_run(model_named("mlp", {1, 1, 6}, 4), 6, 2);
  setup.task_classes = {{0, 2}, {0, 2}};
  setup.scale.clear();
  std::map<std::string, std::string> findings;
  for (const auto& errors : method->check(setup))
    findings[errors.where] = errors.text;
  CHECK_THAT(findings["model.name"], ContainsSubstring("no batch norms"));
  CHECK_THAT(findings["data.name"], ContainsSubstring("expected images"));
  CHECK_THAT(findings["tasks.kind"], ContainsSubstring("repeat their classes"));
}
