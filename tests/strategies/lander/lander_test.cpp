// LANDER: its loss by hand, terms and draws of its generator, and its round.
#include "runtime/method/gradients.hpp"
#include "runtime/models/function.hpp"
#include "runtime/models/image_layers.hpp"
#include "strategies/lander/anchored_loss.hpp"
#include "strategies/lander/image_synthesis.hpp"
#include "strategies/shared/adam.hpp"
#include "strategies/shared/image_generator.hpp"
#include "tests/support/method_driver.hpp"
#include "tests/support/program_check.hpp"
#include <catch2/catch_approx.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
using namespace mneme;
using namespace mneme::test;
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::int64_t classes = 6, embedding = 5, side = 8;
const std::array<std::int64_t, 3> image{3, side, side};

/// Two convolutions with batch norms, and a head with rows for the map.
model_ref classifier() {
  network_builder net("two convolutions", image);
  add_convolution(net, "conv1", {.filters = 4, .padding = 1, .bias = false});
  net.add_normalization("bn1", 0, activation::relu);
  add_convolution(net, "conv2", {.filters = 6, .stride = 2, .padding = 1, .bias = false});
  net.add_normalization("bn2", 0, activation::relu);
  add_mean_pool(net);
  net.add_head("fc", classes + embedding);
  return net.build();
}

at::Tensor moved_weights(const model& net, std::uint64_t seed) {
  return initial_weights(net, seed) + 0.05 * drawn({net.size()}, seed + 100).abs();
}

} // namespace

TEST_CASE("loss weights for ten old of twenty classes are those of the official code") {
  const auto parts = part_weights_of(10, 20);
  CHECK(parts.fresh == Approx(0.3646).epsilon(1e-3)); // a = log2(11) = 3.459, b = 0.7071
  CHECK(parts.old == Approx(0.9785).epsilon(1e-3));
  CHECK(part_weights_of(0, 10).fresh == 1.0);
}

TEST_CASE("a client's loss and gradient equal the formula, with one hinge for the batch") {
  const std::vector<std::int64_t> labels{2, 3, 3, 2, -1, 0, 1, 1}; // a padding row, then three replayed ones
  anchored_terms terms{.classes = 6, .old = 2, .seen_classes = 4, .anchoring = 5.0, .radius = 0.3, .temperature = 2.0};
  terms.anchors = drawn({classes, embedding}, 4);
  auto logits = drawn({8, 11}, 1);
  logits[1].narrow(0, 6, 5).copy_(terms.anchors[3] + 0.1); // distance 0.01: in the radius, but the hinge is per batch
  const auto taught = drawn({8, 11}, 2);
  const auto weights = floats({0.25F, 0.25F, 0.25F, 0.25F, 0.0F, 0.5F / 3.0F, 0.5F / 3.0F, 0.5F / 3.0F});
  const auto z = logits.unsqueeze(0), y = at::tensor(labels, at::kLong).unsqueeze(0), w = weights.unsqueeze(0);
  const std::vector<std::shared_ptr<const tensor_map>> auxiliaries{nullptr};
  loss_input in{.logits = z, .features = z, .labels = y, .row_weight = w, .auxiliaries = auxiliaries};
  in.teachers = {{.logits = taught.unsqueeze(0)}};
  in.replayed = 3;

  const auto x = leaf_of(logits.to(at::kDouble)), t = taught.to(at::kDouble), anchors = terms.anchors.to(at::kDouble);
  const auto parts = part_weights_of(2, 4);
  const auto expected = [&](double radius) {
    auto sum = at::zeros({}, at::kDouble), away = at::zeros({}, at::kDouble);
    for (std::int64_t i = 0; i < 4; ++i) {
      const auto label = labels[static_cast<std::size_t>(i)];
      away = away + (x[i].narrow(0, 6, 5) - anchors[label]).square().mean() * 0.25;
      sum = sum - at::log_softmax(x[i].narrow(0, 2, 2), 0)[label - 2] * (0.25 * parts.fresh);
    }
    sum = sum + at::relu(away - radius) * (5.0 * parts.fresh);
    for (std::int64_t i = 5; i < 8; ++i) {
      const auto p = at::softmax(t[i].narrow(0, 0, 2) / 2.0, 0);
      const auto kd = -(p * at::log_softmax(x[i].narrow(0, 0, 2) / 2.0, 0)).sum();
      const auto mapped = (x[i] - t[i]).narrow(0, 6, 5).square().mean();
      sum = sum + (kd + mapped) * (0.5 / 3.0 * parts.old);
    }
    return sum;
  };
  for (const double radius : {0.3, 100.0}) { // hinge open, and closed
    terms.radius = radius;
    const auto found = (*anchored_objective(terms))(in);
    const auto sum = expected(radius);
    CHECK(found.values[0].item<double>() == Approx(sum.item<double>()).epsilon(1e-6));
    const auto slope = gradients_of(sum, {x}).front().to(at::kFloat);
    CHECK(largest_difference(found.d_logits[0].contiguous(), slope) < 1e-6);
    CHECK((found.d_logits[0][1].narrow(0, 6, 5).abs().max().item<float>() > 0.0F) == (radius < 1.0));
  }
}

TEST_CASE("rows at 0.01 and 0.03 exceed a radius of 0.015 by 0.005, and both are drawn to anchors") {
  anchored_terms terms{.classes = 2, .old = 0, .seen_classes = 2, .anchoring = 1.0, .radius = 0.015};
  terms.anchors = at::zeros({2, 1});
  auto z = at::zeros({1, 2, 3});
  z[0][0][2] = std::sqrt(0.01F);
  z[0][1][2] = std::sqrt(0.03F);
  const auto y = at::zeros({1, 2}, at::kLong), w = at::full({1, 2}, 0.5F);
  const std::vector<std::shared_ptr<const tensor_map>> auxiliaries{nullptr};
  const auto found = (*anchored_objective(terms))(
      {.logits = z, .features = z, .labels = y, .row_weight = w, .auxiliaries = auxiliaries});
  CHECK(found.terms[1].value[0].item<double>() == Approx(0.005).epsilon(1e-5));
  CHECK(found.d_logits[0][0][2].item<float>() > 0.0F);
  CHECK(found.d_logits[0][1][2].item<float>() > 0.0F);
}

TEST_CASE("anchors without texts have the moments of the official table") {
  const auto anchors = draw_anchors(100, 512, {.seed = 1, .purpose = first_method_purpose}).to(at::kDouble);
  const auto unit = anchors / anchors.norm(2, {1}, true);
  const auto off = 1.0 / (100.0 * 99.0);
  CHECK(anchors.square().mean().sqrt().item<double>() == Approx(0.429).margin(0.02));
  CHECK((at::mm(unit, unit.t()).sum().item<double>() - 100.0) * off == Approx(0.777).margin(0.02));
  const auto squares = 2.0 * (anchors.square().sum() * 100.0 - anchors.sum(0).square().sum()); // over all pairs
  CHECK(squares.item<double>() * off / 512.0 == Approx(0.082).margin(0.003));
}

TEST_CASE("statistics are the batch's in the first round, later 0.1 of it plus 0.9 of the average") {
  network_builder net("a normalisation", std::array<std::int64_t, 3>{1, 1, 1});
  add_convolution(net, "conv", {.filters = 1, .kernel = 1, .bias = false});
  net.add_normalization("bn", 0, activation::none);
  add_mean_pool(net);
  net.add_head("fc", 2);
  const auto one = net.build();
  auto flat = initial_weights(*one, 1);
  for (const auto& entry : one->layout())
    if (entry.name == "conv.weight")
      put_as_in_files(flat, entry, at::ones(entry.shape));
  const synthesis_settings with{.shape = {1, 1, 1}, .classes = 2, .seen_classes = 2};
  const auto x = leaf_of(floats({1.0F + std::sqrt(3.0F), 1.0F - std::sqrt(3.0F)}).view({2, 1, 1, 1})); // 1, 3
  const auto labels = at::arange(2, at::kLong);
  const auto of_round = [&](const at::Tensor& past) {
    return compute_generator_loss(*one, with, flat, {}, x, labels, at::zeros({2, 0}), past).statistics;
  };
  const auto first = of_round({}), later = of_round(floats({0.5F, 2.0F})); // running: 0, 1
  CHECK(first.item<double>() == Approx(3.0).epsilon(1e-5));
  CHECK(gradients_of(first, {x}).front().sum().item<double>() == Approx(1.0).epsilon(1e-5));
  CHECK(later.item<double>() == Approx(1.65).epsilon(1e-5));
  CHECK(gradients_of(later, {x}).front().sum().item<double>() == Approx(0.1).epsilon(1e-5));
}

TEST_CASE("a batch of 256 images has 26 noise layers, and eight runs of 30 classes with 16 at random") {
  const synthesis_settings with{};
  CHECK(with.noise_layers() == 26);
  constexpr std::int64_t texts = 512;
  const auto noise = with.noise_layers() * (texts * with.noise + with.noise);
  CHECK(noise == 3'414'528);
  const auto generator = image_generator({3, 32, 32}, with.noise, with.filters);
  auto learned = noise + 2 * texts;
  for (const auto& entry : generator->layout())
    learned += entry.buffer ? 0 : entry.size;
  CHECK(learned == 5'744'451);
  const auto labels = synthesis_labels(256, 30, {.seed = 1}), others = synthesis_labels(256, 30, {.seed = 2});
  CHECK(at::equal(labels.narrow(0, 0, 240), at::arange(240, at::kLong) % 30));
  CHECK_FALSE(at::equal(labels, others));
  CHECK(labels.max().item<std::int64_t>() < 30);
}

TEST_CASE("a student starts with the task's head and statistics and new layers") {
  const auto net = classifier();
  const auto teacher = moved_weights(*net, 1);
  const auto start = student_start(*net, teacher, classes, {.seed = 3, .purpose = first_method_purpose});
  for (const auto& entry : net->layout()) {
    INFO(entry.name);
    const auto before = as_in_files(teacher, entry), now = as_in_files(start, entry);
    if (entry.head) {
      CHECK(at::equal(now.narrow(0, 0, classes), before.narrow(0, 0, classes)));
      CHECK_FALSE(at::equal(now.narrow(0, classes, embedding), before.narrow(0, classes, embedding)));
    } else {
      CHECK(at::equal(now, before) == entry.buffer);
    }
    if (entry.name == "bn2.weight")
      CHECK((now - 1.0).abs().max().item<float>() < 0.1F);
    if (entry.name == "bn2.bias")
      CHECK(now.abs().max().item<float>() == 0.0F);
    if (entry.name == "conv2.weight") // Xavier: 2 / (9 (4 + 6))
      CHECK(now.square().mean().item<double>() == Approx(2.0 / 90.0).epsilon(0.3));
  }
}

TEST_CASE("views are crops of the padded image, flipped if requested") {
  const auto x = at::arange(2 * 3 * 5 * 4, at::kFloat).view({2, 3, 5, 4});
  const auto views = at::tensor(std::vector<std::int64_t>{4, 4, 0, 1, 7, 1}, at::kLong).view({2, 3});
  const auto crops = crop_and_flip(x, views);
  CHECK(at::equal(crops[0], x[0]));
  const auto padded = at::constant_pad_nd(x[1], {4, 4, 4, 4});
  CHECK(at::equal(crops[1], padded.narrow(1, 1, 5).narrow(2, 7, 4).flip({2})));
}

TEST_CASE("the pool has one batch per round after the warm-up, all seen classes, and a falling loss") {
  const auto net = classifier();
  synthesis_settings with{.shape = image, .classes = classes, .seen_classes = 4, .embedding = embedding};
  with.scale = {1.0F / 127.5F, 1.0F / 127.5F, 1.0F / 127.5F};
  with.shift = {-1.0F, -1.0F, -1.0F};
  with.noise = 8, with.filters = 4, with.rounds = 5, with.warm_up = 3, with.steps = 6, with.batch = 10;
  with.student_steps = 2, with.lead = 0;
  CHECK(with.images() == 30);
  auto in = std::make_shared<tensor_map>();
  in->put("weights", moved_weights(*net, 1));
  in->put("student", moved_weights(*net, 2));
  in->put("anchors", drawn({classes, embedding}, 3));
  std::vector<program_job> jobs;
  for (std::uint64_t seed = 1; seed <= 2; ++seed)
    jobs.push_back({.body = synthesis_program(net, with),
                    .in = in,
                    .stream = {.seed = seed, .purpose = first_method_purpose},
                    .rows = 1});
  const auto made = run_by_width(jobs, 2);
  const auto& out = tensors_of(made[0]);
  CHECK(out.at("images").sizes() == at::IntArrayRef{30, 3, side, side});
  CHECK(at::equal(out.at("labels").narrow(0, 0, 8), at::arange(8, at::kLong) % 4));
  CHECK(out.at("objective")[2].item<double>() < out.at("objective")[0].item<double>()); // without a student so far
  CHECK_FALSE(at::equal(out.at("images"), tensors_of(made[1]).at("images")));
  CHECK(at::equal(out.at("images"), tensors_of(run_by_width(jobs, 1)[0]).at("images")));
}

TEST_CASE("the generator fools the student only after the warm-up, at any temperature") {
  const auto net = classifier();
  synthesis_settings usual{.shape = image, .classes = classes, .seen_classes = 4, .embedding = embedding};
  usual.scale = {1.0F / 127.5F, 1.0F / 127.5F, 1.0F / 127.5F};
  usual.shift = {-1.0F, -1.0F, -1.0F};
  usual.noise = 8, usual.filters = 4, usual.rounds = 5, usual.warm_up = 3, usual.steps = 6, usual.batch = 10;
  usual.student_steps = 6, usual.student_rate = 0.5, usual.bound = 0.0, usual.lead = 0;
  usual.student_momentum = usual.student_decay = 0.0, usual.views = false;
  auto in = std::make_shared<tensor_map>();
  in->put("weights", moved_weights(*net, 1));
  in->put("student", moved_weights(*net, 1) + 0.1 * drawn({net->size()}, 7)); // they agree on most images
  in->put("anchors", drawn({classes, embedding}, 3));
  const auto objective = [&](const std::function<void(synthesis_settings&)>& change) {
    auto with = usual;
    change(with);
    const program_job job{.body = synthesis_program(net, with),
                          .in = in,
                          .stream = {.seed = 1, .purpose = first_method_purpose},
                          .rows = 1};
    return tensors_of(run_by_width({job}, 1)[0]).at("objective").clone();
  };
  const auto away = [](const at::Tensor& a, const at::Tensor& b) {
    return (a - b).narrow(0, 3, 2).abs().max().item<double>();
  };
  const auto fooling = objective([](synthesis_settings&) {});
  const auto alone = objective([](synthesis_settings& with) { with.adversary = 0.0; });
  CHECK(at::equal(fooling.narrow(0, 0, 3), alone.narrow(0, 0, 3)));
  CHECK(away(fooling, alone) > 0.0);
  CHECK(at::equal(objective([](synthesis_settings& with) { with.lead = 2; }), alone));

  // T^2 KL at T has the same gradient for all large T: (z - z of the teacher)
  // C.
  const auto at_temperature = [&](double T) {
    return objective([T](synthesis_settings& with) { with.student_temperature = T; });
  };
  const auto warm = at_temperature(200.0), warmer = at_temperature(400.0);
  const auto untaught = objective([](synthesis_settings& with) { with.student_rate = 0.0; });
  CHECK(away(warm, untaught) > 20.0 * away(warm, warmer));
}

TEST_CASE("a client's later rounds replay the pool, and the map's head rows train from the first task on") {
  auto method = strategy_named("lander");
  give_keys(*method, {{"embedding_width", "5"},
                      {"generator_rounds", "2"},
                      {"warm_up", "1"},
                      {"generator_steps", "2"},
                      {"generator_batch", "8"},
                      {"generator_width", "3"},
                      {"noise_width", "4"},
                      {"student_steps", "1"},
                      {"task_model", "best-round"}});
  const auto device = make_executor("cpu");
  auto source = std::make_shared<dataset>();
  const auto pixels = at::arange(48 * 3 * side * side, at::kLong).mul(37) % 251;
  source->images = pixels.to(at::kByte).view({48, 3, side, side});
  for (std::int32_t r = 0; r < 48; ++r)
    source->labels.push_back(r % 6);
  source->transforms.resize(1);
  source->scale = {0.01F, 0.01F, 0.01F};
  source->shift = {-1.0F, -1.0F, -1.0F};
  const auto net = classifier();
  method_setup setup{.net = net, .initial = weights_only(initial_weights(*net, 5)), .tasks = 2, .classes = classes};
  setup.training.batch = 8;
  setup.shape = image;
  setup.scale = source->scale;
  setup.shift = source->shift;
  setup.task_classes = {{0, 2}, {2, 6}};
  setup.clients = 1;
  CHECK(method->check(setup).empty());
  method->prepare(setup);
  const auto server = method->make_server();
  generated_row_store made({.scale = source->scale, .shift = source->shift});
  at::Tensor last = setup.initial->at(flat_weights);
  for (std::uint32_t task = 0; task < 2; ++task) {
    const auto current = setup.task_classes[task];
    const round_info info{
        .task = {task}, .rounds_of_task = 2, .seen_classes = {0, current.high}, .current_classes = current};
    job_channel channel;
    server_context ctx(channel, nullptr, &made);
    run_step(server->open_task(ctx, info), channel, *device);
    auto in = server->open_round(info);
    in.info = info;
    CHECK((in.extra != nullptr) == (task > 0));
    if (in.extra)
      CHECK(in.extra->at("images").sizes() == at::IntArrayRef{16, 3, side, side});
    std::vector<std::int64_t> mine;
    for (std::int64_t r = 0; r < 48; ++r)
      if (r % 6 >= info.current_classes.low && r % 6 < info.current_classes.high)
        mine.push_back(r);
    const auto result = run_round(
        *method, *device,
        {.in = std::make_shared<const broadcast>(in), .samples = view_of(source, mine), .seed = 5, .task = {task}});
    const auto next = result.upload->at(flat_weights);
    for (const auto& entry : net->layout())
      if (entry.name == "fc.weight")
        for (std::int64_t row = 0; row < classes + embedding; ++row) {
          const bool moved = !at::equal(as_in_files(last, entry)[row], as_in_files(next, entry)[row]);
          CHECK(moved ==
                (row < info.seen_classes.high || row >= classes)); // no weight decay: rows of later classes stay
        }
    const auto& first_epoch = result.upload->at("first_losses");
    CHECK(first_epoch[0].item<float>() > 0.0F);
    CHECK(first_epoch[1].item<float>() == (task == 0 ? 2.0F : 4.0F)); // 16 rows, 32 rows
    server->fold({.upload = result.upload, .rows = result.rows});
    run_step(server->close_round(ctx, info), channel, *device);
    last = server->predict().weights->at(flat_weights).clone();
  }
  CHECK(server->summary_metrics().at("dream_objective") > 0.0);
}

namespace {

using key_values = std::vector<std::pair<std::string, std::string>>;

/// LANDER's server over two tasks of the small classifier, and a round with uploads of one value each.
struct small_server {
  std::unique_ptr<strategy> method = strategy_named("lander");
  std::unique_ptr<executor> device = make_executor("cpu");
  model_ref net = classifier();
  std::unique_ptr<server_half> server;

  explicit small_server(key_values keys = {}) {
    keys.insert(keys.begin(), {{"embedding_width", "5"},
                               {"generator_rounds", "3"},
                               {"warm_up", "1"},
                               {"generator_steps", "1"},
                               {"generator_batch", "4"},
                               {"generator_width", "3"},
                               {"noise_width", "4"},
                               {"student_steps", "1"}});
    give_keys(*method, keys);
    method_setup setup{.net = net, .initial = weights_only(initial_weights(*net, 5)), .tasks = 2, .classes = classes};
    setup.weighting = upload_weighting::uniform;
    setup.shape = image;
    setup.scale = {0.01F, 0.01F, 0.01F};
    setup.shift = {-1.0F, -1.0F, -1.0F};
    setup.task_classes = {{0, 2}, {2, 6}};
    setup.clients = 2;
    method->prepare(setup);
    server = method->make_server();
  }
  [[nodiscard]] at::Tensor model() const { return server->predict().weights->at(flat_weights).clone(); }
  [[nodiscard]] static round_info place_of(std::uint32_t task, std::int64_t round, std::int64_t rounds) {
    const class_range current = task == 0 ? class_range{0, 2} : class_range{2, 6};
    return {.task = {task},
            .round_of_task = round,
            .rounds_of_task = rounds,
            .seen_classes = {0, current.high},
            .current_classes = current};
  }
  void open(std::uint32_t task) {
    job_channel channel;
    server_context ctx(channel);
    run_step(server->open_task(ctx, place_of(task, 0, 1)), channel, *device);
  }
  struct first_epoch {
    float losses = 0.0F, steps = 1.0F;
  };
  void round(const round_info& info, float value, const std::vector<first_epoch>& clients) {
    for (const auto& client : clients) {
      auto upload = std::make_shared<tensor_map>();
      upload->put(flat_weights, at::full({net->size()}, value));
      upload->put("first_losses", floats({client.losses, client.steps}));
      server->fold({.upload = upload, .rows = 4});
    }
    job_channel channel;
    server_context ctx(channel);
    run_step(server->close_round(ctx, info), channel, *device);
  }
};

} // namespace

TEST_CASE("a task ends with its last average, or with the model whose clients had the least first loss") {
  const key_values best{{"task_model", "best-round"}};
  small_server run(best);
  run.open(0);
  const auto before = run.model();
  run.round(small_server::place_of(0, 0, 3), 1.0F, {{2.0F}, {1.0F}});
  CHECK((run.model() == 1.0F).all().item<bool>()); // the average continues within the task
  run.round(small_server::place_of(0, 1, 3), 2.0F, {{0.5F}, {0.5F}});
  run.round(small_server::place_of(0, 2, 3), 3.0F, {{1.0F}, {0.5F}});
  CHECK((run.model() == 1.0F).all().item<bool>()); // the model at the start of the second round

  small_server once(best); // one round: its average is never the task's model
  once.open(0);
  once.round(small_server::place_of(0, 0, 1), 1.0F, {{2.0F}});
  CHECK(at::equal(once.model(), before));
  small_server last(key_values{{"task_model", "last-round"}});
  last.open(0);
  last.round(small_server::place_of(0, 0, 2), 1.0F, {{0.5F}});
  last.round(small_server::place_of(0, 1, 2), 2.0F, {{2.0F}});
  CHECK((last.model() == 2.0F).all().item<bool>());
}

// With varying cohorts a sum of losses would be least for clients with few rows.
TEST_CASE("a round's first loss is a mean over its clients' steps") {
  small_server run(key_values{{"task_model", "best-round"}});
  run.open(0);
  const auto before = run.model();
  run.round(small_server::place_of(0, 0, 2), 1.0F, {{2.0F, 1.0F}}); // a client with one batch
  run.round(small_server::place_of(0, 1, 2), 2.0F, {{3.0F, 4.0F}, {5.0F, 6.0F}});
  CHECK((run.model() == 1.0F).all().item<bool>()); // 0.8 a step, not 2
  CHECK_FALSE(at::equal(run.model(), before));
}

TEST_CASE("head rows of a task's classes may be drawn at its start, and the pool be cut by name") {
  small_server run(key_values{{"new_class_head", "drawn"}, {"pool_max", "10"}});
  const auto before = run.model();
  run.open(1);
  const auto sent = run.server->open_round(small_server::place_of(1, 0, 1));
  CHECK(sent.extra->at("images").sizes() == at::IntArrayRef{10, 3, side, side}); // of 12
  CHECK(sent.extra->at("labels").numel() == 10);
  CHECK(at::equal(sent.extra->at("teacher"), before));
  for (const auto& entry : run.net->layout()) {
    INFO(entry.name);
    const auto old = as_in_files(before, entry), now = as_in_files(run.model(), entry);
    if (!entry.head) {
      CHECK(at::equal(old, now));
      continue;
    }
    CHECK(at::equal(old.narrow(0, 0, 2), now.narrow(0, 0, 2)));
    CHECK(at::equal(old.narrow(0, 6, embedding), now.narrow(0, 6, embedding)));
    const auto fresh = now.narrow(0, 2, 4).abs().max().item<double>();
    CHECK((entry.name == "fc.bias" ? fresh == 0.0 : fresh > 0.5 && fresh <= std::sqrt(3.0 / 6.0)));
  }
}

TEST_CASE("nets without batch norms and impossible schedules are refused") {
  auto method = strategy_named("lander");
  give_keys(*method, {{"generator_rounds", "3"}, {"warm_up", "4"}});
  auto setup = setup_of_run(model_named("mlp", {1, 1, 6}, 4), 6, 2);
  setup.task_classes = {{0, 2}, {0, 2}};
  std::map<std::string, std::string> found;
  for (const auto& errors : method->check(setup))
    found[errors.where] = errors.text;
  CHECK_THAT(found["model.name"], ContainsSubstring("no batch norms"));
  CHECK_THAT(found["strategy.warm_up"], ContainsSubstring("at most strategy.generator_rounds = 3"));
  CHECK_THAT(found["tasks.kind"], ContainsSubstring("repeat their classes"));
}
