// LANDER: its loss by hand, its generator's objective step by step against PyTorch's operators, and its round.
#include "runtime/method/gradients.hpp"
#include "runtime/models/function.hpp"
#include "runtime/models/network.hpp"
#include "strategies/lander/anchored_loss.hpp"
#include "strategies/lander/image_dreams.hpp"
#include "strategies/shared/adam.hpp"
#include "tests/support/golden.hpp"
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
  auto net = std::make_shared<network>("two convolutions", image);
  net->add_convolution("conv1", {.filters = 4, .padding = 1, .bias = false});
  net->add_normalisation("bn1", 0, activation::relu);
  net->add_convolution("conv2", {.filters = 6, .stride = 2, .padding = 1, .bias = false});
  net->add_normalisation("bn2", 0, activation::relu);
  net->add_mean_pool();
  net->add_head("fc", classes + embedding);
  return net;
}

/// What PyTorch's own layers make of images: logits, and mean and variance before each batch norm.
struct seen_by_pytorch {
  at::Tensor logits;
  std::vector<at::Tensor> statistics, running; // by layer: mean, variance
};
seen_by_pytorch reference(const model& net, const at::Tensor& flat, const at::Tensor& images) {
  const auto of = [&](const std::string& name) {
    for (const auto& entry : net.layout())
      if (entry.name == name)
        return as_in_files(flat, entry);
    FAIL("no parameter " << name);
    return at::Tensor{};
  };
  seen_by_pytorch seen;
  auto x = images;
  for (const std::string i : {"1", "2"}) {
    x = at::conv2d(x, of("conv" + i + ".weight"), {}, i == "1" ? 1 : 2, 1);
    seen.statistics.push_back(x.mean({0, 2, 3}));
    seen.statistics.push_back(x.var(at::OptionalIntArrayRef({0, 2, 3}), 0));
    seen.running.push_back(of("bn" + i + ".running_mean"));
    seen.running.push_back(of("bn" + i + ".running_var"));
    const auto &mean = seen.running[seen.running.size() - 2], &variance = seen.running.back();
    x = at::relu(
        at::batch_norm(x, of("bn" + i + ".weight"), of("bn" + i + ".bias"), mean, variance, false, 0.1, 1e-5, false));
  }
  seen.logits = at::linear(x.mean({2, 3}), of("fc.weight"), of("fc.bias"));
  return seen;
}

at::Tensor moved_weights(const model& net, std::uint64_t seed) {
  return initial_weights(net, seed) + 0.05 * drawn({net.size()}, seed + 100).abs();
}

} // namespace

TEST_CASE("parts weigh as in the public code: ten old classes of twenty") {
  const auto parts = part_weights_of(10, 20);
  CHECK(parts.fresh == Approx(0.3646).epsilon(1e-3)); // a = log2(11) = 3.459, b = 0.7071
  CHECK(parts.old == Approx(0.9785).epsilon(1e-3));
  CHECK(part_weights_of(0, 10).fresh == 1.0);
}

TEST_CASE("a client's loss and its gradient are those of the formula, and nothing pulls within the radius") {
  const std::vector<std::int64_t> labels{2, 3, 3, 2, -1, 0, 1, 1}; // a padded row, then three that are replayed
  anchored_terms terms{.classes = 6, .old = 2, .opened = 4, .anchoring = 5.0, .radius = 0.3, .temperature = 2.0};
  terms.anchors = drawn({6, 5}, 7);
  auto logits = drawn({8, 11}, 1);
  logits[1].narrow(0, 6, 5).copy_(terms.anchors[3] + 0.1); // 0.01 away: within
  const auto taught = drawn({8, 11}, 2);
  const auto weights = floats({0.25F, 0.25F, 0.25F, 0.25F, 0.0F, 0.5F / 3.0F, 0.5F / 3.0F, 0.5F / 3.0F});
  const auto z = logits.unsqueeze(0), y = at::tensor(labels, at::kLong).unsqueeze(0), w = weights.unsqueeze(0);
  const std::vector<std::shared_ptr<const tensor_map>> sides{nullptr};
  loss_input in{.logits = z, .features = z, .labels = y, .row_weight = w, .sides = sides};
  in.teacher = taught.unsqueeze(0);
  in.replayed = 3;
  const auto found = (*anchored_objective(terms))(in);

  const auto x = leaf_of(logits.to(at::kDouble)), t = taught.to(at::kDouble), anchors = terms.anchors.to(at::kDouble);
  const auto parts = part_weights_of(2, 4);
  auto sum = at::zeros({}, at::kDouble);
  for (std::int64_t i = 0; i < 4; ++i) {
    const auto label = labels[static_cast<std::size_t>(i)];
    const auto away = at::relu((x[i].narrow(0, 6, 5) - anchors[label]).square().mean() - 0.3);
    sum = sum + (-at::log_softmax(x[i].narrow(0, 2, 2), 0)[label - 2] + 5.0 * away) * (0.25 * parts.fresh);
  }
  for (std::int64_t i = 5; i < 8; ++i) {
    const auto p = at::softmax(t[i].narrow(0, 0, 2) / 2.0, 0);
    const auto kd = -(p * at::log_softmax(x[i].narrow(0, 0, 2) / 2.0, 0)).sum();
    const auto mapped = (x[i] - t[i]).narrow(0, 6, 5).square().mean();
    sum = sum + (kd + mapped) * (0.5 / 3.0 * parts.old);
  }
  CHECK(found.values[0].item<double>() == Approx(sum.item<double>()).epsilon(1e-6));
  CHECK(largest_difference(found.d_logits[0].contiguous(), gradients_of(sum, {x}).front().to(at::kFloat)) < 1e-6);
  CHECK(found.d_logits[0][1].narrow(0, 6, 5).abs().max().item<float>() == 0.0F);
}

TEST_CASE("a generator's objective is PyTorch's, step by step") {
  const auto net = classifier();
  dream_settings with{.shape = image, .classes = classes, .opened = 4, .embedding = embedding};
  const auto teacher = moved_weights(*net, 1), student = moved_weights(*net, 2);
  const auto anchors = drawn({classes, embedding}, 3);
  const auto labels = at::arange(12, at::kLong) % 4;
  adam ours(drawn({12, 3, side, side}, 4)), theirs(ours.weights().clone());
  at::Tensor past;
  std::vector<at::Tensor> averages(4);
  for (int step = 0; step < 6; ++step) {
    const auto x = leaf_of(ours.weights()), y = leaf_of(theirs.weights());
    const auto found = loss_of_dreams(*net, with, teacher, student, x, labels, anchors, past);

    const auto seen = reference(*net, teacher, y), other = reference(*net, student, y);
    auto statistics = at::zeros({});
    for (std::size_t i = 0; i < 4; ++i) {
      const auto now = averages[i].defined() ? seen.statistics[i] * 0.1 + averages[i] * 0.9
                                             : seen.statistics[i] * 0.1 + seen.statistics[i].detach() * 0.9;
      statistics = statistics + (seen.running[i] - now).norm();
      averages[i] = now.detach();
    }
    const auto logits = seen.logits.narrow(1, 0, 4), disagreeing = other.logits.narrow(1, 0, 4);
    const auto ce = at::cross_entropy_loss(logits, labels);
    const auto mapped = seen.logits.narrow(1, classes, embedding);
    const auto away = at::mse_loss(mapped, anchors.index_select(0, labels), 0).mean(1);
    const auto bound = at::relu(away - 0.015).mean();
    const auto kl = at::kl_div(at::log_softmax(disagreeing, 1), at::softmax(logits, 1), 0).sum(1);
    const auto adversary = -(kl * (logits.argmax(1) == disagreeing.argmax(1)).to(at::kFloat)).mean();
    const auto total = statistics + 0.5 * ce + adversary + 5.0 * bound;

    CHECK(found.statistics.item<double>() == Approx(statistics.item<double>()).epsilon(1e-4));
    CHECK(found.labels.item<double>() == Approx(ce.item<double>()).epsilon(1e-4));
    CHECK(found.bound.item<double>() == Approx(bound.item<double>()).epsilon(1e-4));
    CHECK(found.adversary.item<double>() == Approx(adversary.item<double>()).epsilon(1e-4).margin(1e-7));
    CHECK(found.total.item<double>() == Approx(total.item<double>()).epsilon(1e-4));
    const auto slope = gradients_of(found.total, {x}).front(), expected = gradients_of(total, {y}).front();
    CHECK(largest_difference(slope.contiguous(), expected.contiguous()) < 1e-4);
    ours.step(slope, {.rate = 0.01, .beta1 = 0.5});
    theirs.step(expected, {.rate = 0.01, .beta1 = 0.5});
    past = found.seen_statistics;
  }
}

TEST_CASE("matching batch statistics through a residual net is PyTorch's, step by step") {
  const auto golden = golden_record("lander/resnet8"); // tools/export/lander_reference.py
  constexpr std::int64_t px = 16, images = 12;
  const auto net = model_named("resnet8", {3, px, px}, classes + embedding);
  const auto made_net = [&](const std::string& prefix) {
    auto flat = at::empty({net->size()}, at::kFloat);
    for (const auto& entry : net->layout())
      put_as_in_files(flat, entry,
                      entry.buffer ? at::tensor(golden["running"][entry.name].get<std::vector<float>>(), at::kFloat)
                                   : made_values(prefix + entry.name, entry.shape));
    return flat;
  };
  const auto teacher = made_net("teacher."), student = made_net("student.");
  const auto values_of = [](const std::string& name, at::IntArrayRef sizes) {
    return at::tensor(formula(name, c10::multiply_integers(sizes)), at::kFloat).view(sizes);
  };
  const dream_settings with{.shape = {3, px, px}, .classes = classes, .opened = 4, .embedding = embedding};
  const auto anchors = values_of("anchors", {classes, embedding});
  const auto labels = at::arange(images, at::kLong) % 4;
  adam pixels(2 * values_of("pixels", {images, 3, px, px}));
  at::Tensor past;
  for (std::size_t step = 0; step < golden["steps"].size(); ++step) {
    const auto& expected = golden["steps"][step];
    const bool adverse = expected["adversary"] != 0.0;
    const auto x = leaf_of(pixels.weights());
    const auto found = loss_of_dreams(*net, with, teacher, adverse ? student : at::Tensor{}, x, labels, anchors, past);
    INFO("step " << step);
    const auto check = [&](const char* name, const at::Tensor& value) {
      INFO(name);
      CHECK(value.item<double>() == Approx(expected[name].get<double>()).epsilon(1e-4));
    };
    check("statistics", found.statistics);
    check("labels", found.labels);
    check("bound", found.bound);
    check("adversary", found.adversary);
    check("total", found.total);
    const auto slope = gradients_of(found.total, {x}).front();
    check_summary("gradient", slope, expected["gradient"], 1e-3);
    pixels.step(slope, {.rate = 0.02, .beta1 = 0.5});
    past = found.seen_statistics;
  }
  check_summary("pixels at the end", pixels.weights(), golden["pixels"], 1e-3);
}

TEST_CASE("the pool has a batch of each round from the last of the warm-up on, every seen class, and falls in loss") {
  const auto net = classifier();
  dream_settings with{.shape = image, .classes = classes, .opened = 4, .embedding = embedding};
  with.scale = {1.0F / 127.5F, 1.0F / 127.5F, 1.0F / 127.5F};
  with.shift = {-1.0F, -1.0F, -1.0F};
  with.noise = 8, with.filters = 4, with.rounds = 5, with.warm_up = 3, with.steps = 6, with.batch = 10;
  with.student_steps = 2;
  CHECK(with.images() == 30);
  auto in = std::make_shared<tensor_map>();
  in->put("weights", moved_weights(*net, 1));
  in->put("student", moved_weights(*net, 2));
  in->put("anchors", drawn({classes, embedding}, 3));
  std::vector<program_job> jobs;
  for (std::uint64_t seed = 1; seed <= 2; ++seed)
    jobs.push_back({.body = dream_program(net, with),
                    .in = in,
                    .stream = {.seed = seed, .purpose = first_method_purpose},
                    .rows = 1});
  const auto made = run_by_width(jobs, 2);
  const auto& out = tensors_of(made[0]);
  CHECK(out.at("images").sizes() == at::IntArrayRef{30, 3, side, side});
  CHECK(at::equal(out.at("labels").narrow(0, 0, 10), at::arange(10, at::kLong) % 4));
  CHECK(out.at("objective")[2].item<double>() < out.at("objective")[0].item<double>()); // still without a student
  CHECK_FALSE(at::equal(out.at("images"), tensors_of(made[1]).at("images")));
  CHECK(at::equal(out.at("images"), tensors_of(run_by_width(jobs, 1)[0]).at("images")));
}

TEST_CASE("the student is fooled after the warm-up alone, and learns as fast at any temperature") {
  const auto net = classifier();
  dream_settings usual{.shape = image, .classes = classes, .opened = 4, .embedding = embedding};
  usual.scale = {1.0F / 127.5F, 1.0F / 127.5F, 1.0F / 127.5F};
  usual.shift = {-1.0F, -1.0F, -1.0F};
  usual.noise = 8, usual.filters = 4, usual.rounds = 5, usual.warm_up = 3, usual.steps = 6, usual.batch = 10;
  usual.student_steps = 6, usual.student_rate = 0.5, usual.bound = 0.0;
  auto in = std::make_shared<tensor_map>();
  in->put("weights", moved_weights(*net, 1));
  in->put("student", moved_weights(*net, 1) + 0.1 * drawn({net->size()}, 7)); // they agree on most images
  in->put("anchors", drawn({classes, embedding}, 3));
  const auto objective = [&](const std::function<void(dream_settings&)>& change) {
    auto with = usual;
    change(with);
    const program_job job{
        .body = dream_program(net, with), .in = in, .stream = {.seed = 1, .purpose = first_method_purpose}, .rows = 1};
    return tensors_of(run_by_width({job}, 1)[0]).at("objective").clone();
  };
  const auto away = [](const at::Tensor& a, const at::Tensor& b) {
    return (a - b).narrow(0, 3, 2).abs().max().item<double>();
  };
  const auto fooling = objective([](dream_settings&) {});
  const auto alone = objective([](dream_settings& with) { with.adversary = 0.0; });
  CHECK(at::equal(fooling.narrow(0, 0, 3), alone.narrow(0, 0, 3)));
  CHECK(away(fooling, alone) > 0.0);

  // T^2 KL at T has the same slope for all large T: (z - z of the teacher) / C.
  const auto at_temperature = [&](double T) {
    return objective([T](dream_settings& with) { with.student_temperature = T; });
  };
  const auto warm = at_temperature(200.0), warmer = at_temperature(400.0);
  const auto untaught = objective([](dream_settings& with) { with.student_rate = 0.0; });
  CHECK(away(warm, untaught) > 20.0 * away(warm, warmer));
}

TEST_CASE("a client's later round replays the pool, and rows of the head for the map learn from the first task on") {
  auto method = strategy_named("lander");
  give_keys(*method, {{"embedding_width", "5"},
                      {"generator_rounds", "2"},
                      {"warm_up", "1"},
                      {"generator_steps", "2"},
                      {"generator_batch", "8"},
                      {"generator_width", "3"},
                      {"noise_width", "4"},
                      {"student_steps", "1"}});
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
  row_store made({.scale = source->scale, .shift = source->shift});
  at::Tensor last = setup.initial->at(flat_weights);
  for (std::uint32_t task = 0; task < 2; ++task) {
    const auto current = setup.task_classes[task];
    const round_place place{.task = {task}, .rounds_of_task = 1, .opened = {0, current.high}, .current = current};
    job_desk desk;
    server_context ctx(desk, nullptr, &made);
    run_step(server->open_task(ctx, place), desk, *device);
    auto in = server->open_round(place);
    in.place = place;
    CHECK((in.extra != nullptr) == (task > 0));
    if (in.extra)
      CHECK(in.extra->at("images").sizes() == at::IntArrayRef{16, 3, side, side});
    std::vector<std::int64_t> mine;
    for (std::int64_t r = 0; r < 48; ++r)
      if (r % 6 >= place.current.low && r % 6 < place.current.high)
        mine.push_back(r);
    const auto result = run_round(
        *method, *device,
        {.in = std::make_shared<const broadcast>(in), .samples = view_of(source, mine), .seed = 5, .task = {task}});
    const auto next = result.upload->at(flat_weights);
    for (const auto& entry : net->layout())
      if (entry.name == "fc.weight")
        for (std::int64_t row = 0; row < classes + embedding; ++row) {
          const bool moved = !at::equal(as_in_files(last, entry)[row], as_in_files(next, entry)[row]);
          CHECK(moved == (row < place.opened.high || row >= classes)); // no decay here: rows to come wait
        }
    server->fold({.upload = result.upload, .rows = result.rows});
    run_step(server->close_round(ctx, place), desk, *device);
    last = server->predict().weights->at(flat_weights).clone();
  }
  CHECK(server->figures().at("dream_objective") > 0.0);
}

TEST_CASE("nets without batch norms and impossible schedules are refused") {
  auto method = strategy_named("lander");
  give_keys(*method, {{"generator_rounds", "3"}, {"warm_up", "4"}});
  auto setup = setup_of_run(model_named("mlp", {1, 1, 6}, 4), 6, 2);
  setup.task_classes = {{0, 2}, {0, 2}};
  std::map<std::string, std::string> found;
  for (const auto& wrong : method->check(setup))
    found[wrong.where] = wrong.text;
  CHECK_THAT(found["model.name"], ContainsSubstring("no batch normalisations"));
  CHECK_THAT(found["strategy.warm_up"], ContainsSubstring("at most strategy.generator_rounds = 3"));
  CHECK_THAT(found["tasks.kind"], ContainsSubstring("repeat classes"));
}
