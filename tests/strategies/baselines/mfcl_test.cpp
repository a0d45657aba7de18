// MFCL: its loss terms by hand, its generator, and the training jobs of clients.
#include "runtime/models/image_layers.hpp"
#include "strategies/baselines/mfcl_generator.hpp"
#include "strategies/baselines/mfcl_loss.hpp"
#include "tests/support/learning.hpp"
#include "tests/support/method_driver.hpp"
#include "tests/support/program_check.hpp"
#include <catch2/catch_approx.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <numeric>
using namespace mneme;
using namespace mneme::test;
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::int64_t classes = 6, old_classes = 4, side = 8;
const std::array<std::int64_t, 3> image{3, side, side};

model_ref classifier() {
  network_builder net("a convolution", image);
  add_convolution(net, "conv1", {.filters = 5, .stride = 2, .padding = 1, .bias = false});
  net.add_normalization("bn1", 0, activation::relu);
  add_mean_pool(net);
  net.add_head("fc", classes);
  return net.build();
}

mfcl_settings few_steps() {
  mfcl_settings with{.shape = image, .seen_classes = old_classes};
  with.code = 5, with.filters = 3, with.steps = 7, with.batch = 6;
  return with;
}

double value_of(const at::Tensor& loss) { return loss.item<double>(); }

/// Statistics of one channel.
batch_statistics layer_of(double mean, double variance, double running_mean, double running_variance) {
  const auto channel = [](double value) { return at::full({1, 1}, value, at::kDouble); };
  return {.mean = channel(mean),
          .variance = channel(variance),
          .running_mean = channel(running_mean),
          .running_variance = channel(running_variance)};
}

/// Auxiliary tensors for features of width 2: the old head of two classes is the identity.
std::shared_ptr<const tensor_map> identity_head() {
  auto head = std::make_shared<tensor_map>();
  head->put(old_head_weight, at::eye(2, at::kFloat));
  head->put(old_head_bias, at::zeros({2}, at::kFloat));
  return head;
}

} // namespace

TEST_CASE("MFCL's generator matches statistics layer by layer", "[mfcl]") {
  const at::TensorOptions like(at::kDouble);
  // Values 0 and 1: mean 0.5, variance 0.25; 0.5 ln(0.25 / 4) - 0.5 (1 - (4 + 0.25) / 0.25).
  const auto apart = layer_of(0.5, 0.25, 1.0, 4.0), equal = layer_of(1.0, 4.0, 1.0, 4.0);
  CHECK(value_of(statistics_divergence({apart}, like)) == Approx(0.5 * std::log(0.25 / 4.0) - 0.5 * (1.0 - 17.0)));
  CHECK(value_of(statistics_divergence({equal}, like)) == Approx(0.0).margin(1e-12));
  CHECK(value_of(statistics_divergence({apart, equal}, like)) ==
        Approx(0.5 * value_of(statistics_divergence({apart}, like))));
}

TEST_CASE("MFCL smooths images by 25 weights", "[mfcl]") {
  auto point = at::zeros({1, 1, 9, 9}, at::kDouble);
  point[0][0][4][4].fill_(1.0);
  const auto weights = smoothed(point)[0][0].narrow(0, 2, 5).narrow(1, 2, 5).contiguous();
  const auto along = at::tensor({.1117, .2365, .3036, .2365, .1117}, at::kDouble);
  CHECK((weights.sum(0) - along).abs().max().item<double>() < 5e-5);
  CHECK((weights.sum(1) - along).abs().max().item<double>() < 5e-5);
  CHECK(weights[2][2].item<double>() == Approx(0.092198).epsilon(1e-4));
  CHECK(weights[0][0].item<double>() == Approx(0.012478).epsilon(1e-4));
  const auto gray = at::full({2, 3, 5, 6}, 0.7, at::kDouble);
  CHECK((smoothed(gray) - gray).abs().max().item<double>() < 1e-12);
}

TEST_CASE("MFCL's information loss is high if predictions cover few classes", "[mfcl]") {
  const auto missing_at = [](double p) {
    return value_of(entropy_deficit(at::tensor({p, 1.0 - p}, at::kDouble).log().unsqueeze(0)));
  };
  CHECK(missing_at(0.5) == Approx(0.0).margin(1e-12));
  CHECK(missing_at(0.9) == Approx(0.531004).epsilon(1e-6));
  const auto sure = at::tensor({1e6, 0.0}, at::kDouble).unsqueeze(0);
  CHECK(value_of(entropy_deficit(sure)) == Approx(1.0)); // 0 log 0 = 0
  CHECK(value_of(entropy_deficit(at::zeros({3, 1}, at::kDouble))) == 0.0);
}

TEST_CASE("MFCL's loss on own and generated rows equals values worked out by hand", "[mfcl]") {
  // Two own rows and a generated one, which the teacher assigns to class 1; of four classes two are old.
  const float log3 = std::log(3.0F);
  const auto z = at::stack({floats({0, 0, 0, log3}), floats({0, 0, log3, 0}), floats({0, log3, 0, 0})}).unsqueeze(0);
  const auto f = at::stack({floats({1, 0}), floats({0, 2}), floats({3, 4})}).unsqueeze(0);
  const auto taught = at::stack({floats({0, 0}), floats({0, 0}), floats({3, 4})}).unsqueeze(0);
  const auto y = at::tensor(std::vector<std::int64_t>{3, 2, 0}, at::kLong).unsqueeze(0);
  const auto w = floats({0.5, 0.5, 1}).unsqueeze(0);
  const std::vector<std::shared_ptr<const tensor_map>> auxiliaries{identity_head()};
  loss_input in{.logits = z, .features = f, .labels = y, .row_weight = w, .auxiliaries = auxiliaries};
  in.teachers = {{.logits = taught}};
  in.replayed = 1;
  const auto output = (*mfcl_objective(2, {}))(in);
  CHECK(output.terms[0].value[0].item<double>() == Approx(std::log(4.0 / 3.0)).epsilon(1e-6)); // both own rows
  CHECK(output.terms[1].value[0].item<double>() == Approx(std::log(2.0)).epsilon(1e-6));       // 3 of 6, all rows
  CHECK(output.terms[2].value[0].item<double>() == Approx(0.1 * 2.5 / 3.0).epsilon(1e-6));     // (1 + 4) / 2 of 3 rows
  // Differences (1, 0) and (0, 2) of two rows: 0.1 * 2.5
  // 2.
  auto two = in;
  const auto z2 = z.narrow(1, 0, 2), f2 = f.narrow(1, 0, 2), y2 = y.narrow(1, 0, 2), w2 = w.narrow(1, 0, 2);
  loss_input pair{.logits = z2, .features = f2, .labels = y2, .row_weight = w2, .auxiliaries = auxiliaries};
  pair.teachers = {{.logits = taught.narrow(1, 0, 2)}};
  CHECK((*mfcl_objective(2, {}))(pair).terms[2].value[0].item<double>() == Approx(0.125).epsilon(1e-6));

  // Only the first term has a gradient by features; the head learns from both.
  const auto quarter = 0.25F / 2.0F;
  const auto passing =
      at::stack({floats({0, 0, quarter, -quarter}), floats({0, 0, -quarter, quarter}), floats({0, 0, 0, 0})});
  CHECK(largest_difference(output.d_logits[0].contiguous(), passing) < 1e-6);
  const float sixth = 1.0F / 18.0F, half = -1.0F / 6.0F; // softmax (1/6, 1/6, 1/6, 1/2) of three rows
  const auto head = at::stack(
      {floats({sixth, sixth, sixth, half}), floats({sixth, sixth, half, sixth}), floats({sixth, half, sixth, sixth})});
  CHECK(largest_difference(output.d_head_logits[0].contiguous(), head.contiguous()) < 1e-6);
  const auto of_features = at::stack({floats({1, 0}), floats({0, 2}), floats({0, 0})}) * (0.1F / 3.0F);
  CHECK(largest_difference(output.d_features[0].contiguous(), of_features.contiguous()) < 1e-6);
}

TEST_CASE("MFCL's generators have as many parameters as the official ones", "[mfcl]") {
  CHECK(trained_parameter_count(*mfcl_generator({.shape = {3, 32, 32}})) == 8'423'939);
  CHECK(trained_parameter_count(*mfcl_generator({.shape = {3, 64, 64}, .upsamplings = 3})) == 8'571'779);
}

TEST_CASE("MFCL's generator makes images of any size", "[mfcl]") {
  for (const std::array<std::int64_t, 3> shape : {std::array<std::int64_t, 3>{1, 6, 9}, {2, 12, 8}, {1, 1, 6}}) {
    const mfcl_settings with{.shape = shape, .code = 5, .filters = 3};
    const auto generator = mfcl_generator(with);
    const auto shown = mfcl_images(*generator, with, initial_weights(*generator, 1), drawn({4, 5}, 3));
    CHECK(shown.sizes() == at::IntArrayRef{4, shape[0], shape[1], shape[2]});
    CHECK(smoothed(shown).sizes() == shown.sizes());
  }
}

TEST_CASE("a batch of MFCL's generator has mean 0 and variance 1 in each channel", "[mfcl]") {
  const auto with = few_steps();
  const auto generator = mfcl_generator(with);
  const auto weights = initial_weights(*generator, 1).to(at::kDouble).unsqueeze(0);
  const training_mode training;
  const auto codes = drawn({16, 5}, 3).to(at::kDouble).unflatten(1, {1, 1, -1}).unsqueeze(0);
  const auto pixels = generator->differentiable(weights, codes, {}, {.training = &training}).features[0].view({-1, 3});
  CHECK(pixels.mean(0).abs().max().item<double>() < 1e-9);
  CHECK((pixels.var(0, false) - 1.0).abs().max().item<double>() < 5e-3); // up to the epsilon
}

namespace {

program_job training_job(std::uint64_t seed) {
  const auto net = classifier();
  const auto with = few_steps();
  auto in = std::make_shared<tensor_map>();
  in->put(flat_weights, initial_weights(*net, 1));
  in->put("generator", initial_weights(*mfcl_generator(with), 2));
  return {.body = mfcl_training(net, with), .in = in, .stream = {.seed = seed, .purpose = first_method_purpose}};
}

program_job drawing_job(std::uint64_t seed, std::int64_t count) {
  auto in = std::make_shared<tensor_map>();
  in->put("generator", initial_weights(*mfcl_generator(few_steps()), 2));
  return {
      .body = mfcl_drawing(few_steps(), count, 3), .in = in, .stream = {.seed = seed, .purpose = first_method_purpose}};
}

} // namespace

TEST_CASE("results of MFCL's programs do not depend on stacked programs or slice boundaries", "[mfcl]") {
  check_program({training_job(1), training_job(2), training_job(3)});
  check_program({drawing_job(1, 9), drawing_job(2, 9)});
  const auto few = tensors_of(run_by_width({drawing_job(1, 9)}, 1)[0]);
  const auto many = tensors_of(run_by_width({drawing_job(1, 60)}, 1)[0]); // two slices of at most 48
  CHECK(many.at("images").size(0) == 60);
  CHECK(same_bits(few.at("images"), many.at("images").narrow(0, 0, 9).contiguous()));
  CHECK(largest_difference(many.at("images").narrow(0, 0, 12).contiguous(),
                           many.at("images").narrow(0, 48, 12).contiguous()) > 0.1);
}

TEST_CASE("MFCL's generator learns, and its last normalization keeps fixed scales", "[mfcl]") {
  const auto with = few_steps();
  const auto net = classifier(), generator = mfcl_generator(with);
  const auto start = initial_weights(*generator, 2);
  mfcl_generator_state now{adam(start.unsqueeze(0)), start.unsqueeze(0)};
  std::vector<double> totals;
  for (std::int64_t step = 0; step < 30; ++step) {
    const auto losses = mfcl_step(*net, *generator, with, initial_weights(*net, 1), drawn({6, 5}, 3), now);
    CHECK(losses.total == Approx(losses.labels + losses.information + losses.statistics + losses.smoothness));
    totals.push_back(losses.total);
  }
  CHECK(totals.back() < 0.8 * totals.front());
  const auto learned = now.whole(*generator);
  for (const auto& entry : generator->layout()) {
    const bool is_fixed = entry.name == "bn_image.weight" || entry.name == "bn_image.bias";
    CAPTURE(entry.name);
    CHECK(same_bits(as_in_files(learned, entry), as_in_files(start, entry)) == is_fixed);
  }
}

namespace {

/// Job of a later task: four own rows, and some generated ones.
train_job later_job(std::int64_t replayed, const mfcl_weights& weights) {
  const auto net = classifier();
  const auto own = drawn_data(8, image, classes);
  own->labels = {4, 5, 5, 4, 4, 5, 5, 4};
  train_job job{.net = net,
                .start = weights_only(initial_weights(*net, 1)),
                .samples = rows_from(own, 0, 4),
                .objective = mfcl_objective(old_classes, weights),
                .options = {.batch_rows = 4, .learning_rate = 0.1, .in_order = true, .classes = {0, classes}}};
  const auto teacher = initial_weights(*net, 2);
  job.add_teacher(weights_only(teacher), {.classes = {0, old_classes}});
  if (replayed > 0)
    job.replay.samples = rows_from(drawn_data(replayed, image, old_classes), 0, replayed);
  job.options.replay_rows = replayed;
  job.auxiliary = old_head(*net, teacher, old_classes);
  return job;
}

at::Tensor trained_by(const train_job& job) {
  const std::vector<mneme::job> batch{{.request = job}};
  return weights_of(make_executor("cpu")->run(batch)[0]);
}

/// Part of `flat` with this name.
at::Tensor part_named(const model& net, const at::Tensor& flat, const std::string& name) {
  for (const auto& entry : net.layout())
    if (entry.name == name)
      return as_in_files(flat, entry).clone();
  FAIL("no parameter is named " << name);
  return {};
}

} // namespace

TEST_CASE("MFCL's cross-entropy over all classes only reaches the head", "[mfcl]") {
  const auto net = classifier();
  const auto without = trained_by(later_job(6, {.head = 0.0, .features = 0.0}));
  const auto with = trained_by(later_job(6, {.head = 1.0, .features = 0.0}));
  const auto part_of = [&](const at::Tensor& flat, const char* name) { return part_named(*net, flat, name); };
  CHECK(same_bits(part_of(without, "conv1.weight"), part_of(with, "conv1.weight")));
  CHECK(same_bits(part_of(without, "bn1.weight"), part_of(with, "bn1.weight")));
  CHECK(largest_difference(part_of(without, "fc.weight"), part_of(with, "fc.weight")) > 1e-4);
  const auto distilled = trained_by(later_job(6, {.head = 0.0, .features = 1.0}));
  CHECK(largest_difference(part_of(without, "conv1.weight"), part_of(distilled, "conv1.weight")) > 1e-6);
}

TEST_CASE("MFCL's step without its two terms and without generated rows is cross-entropy over new classes", "[mfcl]") {
  const auto step = trained_by(later_job(0, {.head = 0.0, .features = 0.0}));
  auto plain = later_job(0, {});
  plain.objective = cross_entropy_objective();
  plain.remove_teachers();
  plain.options.classes = {old_classes, classes};
  CHECK(largest_difference(step, trained_by(plain)) < 1e-6);
  CHECK(largest_difference(step, trained_by(later_job(0, {}))) > 1e-4);
}

TEST_CASE("running statistics of MFCL's clients are updated twice per step, by all rows", "[mfcl]") {
  const auto net = classifier();
  auto job = later_job(6, {});
  const auto once = trained_by(job);
  job.options.running_stats_updates = 2;
  const auto twice = trained_by(job);
  job.replay.samples = {};
  job.options.replay_rows = 0;
  const auto own_rows = trained_by(job);
  for (const char* const name : {"bn1.running_mean", "bn1.running_var"}) {
    const auto start = part_named(*net, job.start->at(flat_weights), name);
    const auto of_rows = (part_named(*net, once, name) - start * 0.9) / 0.1;
    CHECK(largest_difference(part_named(*net, twice, name), (start * 0.81 + of_rows * 0.19).contiguous()) < 1e-6);
    CHECK(largest_difference(part_named(*net, twice, name), part_named(*net, own_rows, name)) > 1e-4);
  }
  CHECK(same_bits(part_named(*net, once, "fc.weight"), part_named(*net, twice, "fc.weight")));
}

namespace {

struct asked_of_mfcl {
  program_job drawing{};
  train_job training{};
};

/// Training job of a client with five rows in round `round` of 100 of the second task.
asked_of_mfcl asked_in(std::int64_t round) {
  auto method = strategy_named("mfcl");
  give_keys(*method, {{"replay_rows", "4"}, {"code_width", "5"}, {"generator_width", "3"}});
  const auto net = classifier();
  const auto source = drawn_data(5, image, classes);
  source->labels = {4, 5, 4, 5, 4};
  method_setup setup{.net = net, .initial = weights_only(initial_weights(*net, 5)), .tasks = 2, .classes = classes};
  setup.shape = image;
  setup.training.batch = 2, setup.training.epochs = 3;
  setup.training.learning_rate = 0.1;
  setup.training.augment = augmentation_kind::crop_flip;
  method->prepare(setup);
  auto sent = std::make_shared<tensor_map>();
  sent->put("teacher", setup.initial->at(flat_weights));
  sent->put("generator", initial_weights(*mfcl_generator(few_steps()), 2));
  broadcast in;
  in.weights = setup.initial;
  in.extra = sent;
  in.info = {.task = {1},
             .round_of_task = round,
             .rounds_of_task = 100,
             .seen_classes = {0, classes},
             .current_classes = {4, 6}};
  generated_row_store store({.scale = source->scale, .shift = source->shift});
  client_round_runner run(
      *method, {.in = std::make_shared<const broadcast>(in), .samples = rows_from(source, 0, 5), .task = {1}}, &store);
  auto first = run.start();
  asked_of_mfcl asked{.drawing = std::get<program_job>(std::get<plan>(first).front())};
  auto second = run.resume(run_by_width({asked.drawing}, 1));
  asked.training = std::get<train_job>(std::get<plan>(second).front());
  return asked;
}

} // namespace

TEST_CASE("MFCL's clients draw as many images as their steps need, at a falling rate", "[mfcl]") {
  const auto asked = asked_in(0);
  CHECK(asked.drawing.body->outcome(asked.drawing)[0].shape == std::vector<std::int64_t>{3 * 3 * 4, 3, side, side});
  const auto& how = asked.training.options;
  CHECK(asked.training.replay.samples.size() == 36);
  CHECK(how.replay_rows == 4);
  CHECK(how.replay_by == replay_pass::joint);
  CHECK(how.replay_augment == augmentation_kind::none);
  CHECK(how.augment == augmentation_kind::crop_flip);
  CHECK(how.running_stats_updates == 2);
  CHECK(how.teachers.at(0).classes == class_range{0, 4});
  CHECK(asked.training.auxiliary->at(old_head_weight).sizes() == at::IntArrayRef{4, 5});
  CHECK(how.learning_rate == Approx(0.1));
  CHECK(asked_in(50).training.options.learning_rate == Approx(0.031623).epsilon(1e-4));
  CHECK(asked_in(99).training.options.learning_rate == Approx(0.010233).epsilon(1e-4));
}

TEST_CASE("MFCL refuses nets without batch norms and heads with hidden layers", "[mfcl]") {
  auto method = strategy_named("mfcl");
  auto setup = setup_of_run(model_named("mlp", {1, 1, 6}, 4), 6, 2);
  setup.shape = {3, 8, 8};
  const auto findings_of = [&] {
    std::map<std::string, std::string> findings;
    for (const auto& errors : method->check(setup))
      findings[errors.where] = errors.text;
    return findings;
  };
  auto findings = findings_of();
  CHECK_THAT(findings["model.name"], ContainsSubstring("no batch norms"));
  CHECK_FALSE(findings.contains("model.head"));
  network_builder net("hidden", image);
  add_convolution(net, "conv1", {.filters = 4});
  net.add_normalization("bn1", 0, activation::relu);
  add_mean_pool(net);
  net.add_head("fc", classes, {.hidden = {3}});
  setup.net = net.build();
  CHECK_THAT(findings_of()["model.head_hidden"], ContainsSubstring("as one linear layer on all features"));
}
