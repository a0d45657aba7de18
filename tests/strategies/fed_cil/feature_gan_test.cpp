// GAN of features: Adam compared with PyTorch's formula, equal bits in any stack, and what it learns.
#include "runtime/models/function.hpp"
#include "strategies/fed_cil/feature_gan.hpp"
#include "tests/support/program_check.hpp"
#include "tests/support/tensors.hpp"
#include <catch2/catch_approx.hpp>
#include <cmath>
using namespace mneme;
using namespace mneme::test;
using Catch::Approx;

namespace {

const gan_shape small{.features = 3, .classes = 4, .latent = 5, .generator_width = 16, .critic_width = 16};

/// Rows of two classes around (2, 0, 0) and (0, 2, 0).
tensors_ref game_of(const feature_gan& gan, std::uint64_t seed, bool replays) {
  auto made = std::make_shared<tensor_map>();
  made->put("generator", initial_weights(*gan.generator(), seed));
  made->put("critic", initial_weights(*gan.critic(), seed));
  auto features = 0.2 * drawn({20, 3}, seed);
  auto labels = at::arange(20, at::kLong) % 2;
  features.index_put_({at::arange(20, at::kLong), labels}, features.gather(1, labels.unsqueeze(1)).squeeze(1) + 2.0);
  made->put("features", features);
  made->put("labels", replays ? labels + 2 : labels);
  made->put("classes_so_far", replays ? at::ones({4}) : floats({1, 1, 0, 0}));
  if (replays) {
    made->put("old_generator", initial_weights(*gan.generator(), 9));
    made->put("old_classes", floats({1, 1, 0, 0}));
    made->put("server_generator", initial_weights(*gan.generator(), 10));
    made->put("available", at::ones({4}));
  }
  return made;
}

program_job job_of(const std::shared_ptr<const feature_gan>& gan, std::uint64_t seed, gan_training training,
                   bool replays) {
  return {.body = gan_program(gan, training),
          .in = game_of(*gan, seed, replays),
          .stream = {.seed = seed, .purpose = first_method_purpose},
          .rows = 1};
}

} // namespace

TEST_CASE("Adam's steps equal PyTorch's, worked out by hand") {
  adam moving(floats({1.0F, -2.0F}).view({1, 2}));
  moving.step(floats({0.5F, 0.0F}).view({1, 2}), {.rate = 0.1, .beta1 = 0.5, .beta2 = 0.99});
  CHECK(moving.weights()[0][0].item<float>() == Approx(0.9F).epsilon(1e-6)); // the first step is the rate, by sign
  CHECK(moving.weights()[0][1].item<float>() == -2.0F);
  moving.step(floats({-1.0F, 0.0F}).view({1, 2}), {.rate = 0.1, .beta1 = 0.5, .beta2 = 0.99});
  const double first = (0.5 * 0.25 + 0.5 * -1.0) / (1.0 - 0.25);            // m = 0.25 after one step
  const double second = (0.99 * 0.0025 + 0.01 * 1.0) / (1.0 - 0.99 * 0.99); // v = 0.0025
  CHECK(moving.weights()[0][0].item<double>() == Approx(0.9 - 0.1 * first / (std::sqrt(second) + 1e-8)).epsilon(1e-6));
}

TEST_CASE("a game's bits do not depend on stacked games or slice boundaries") {
  for (const bool any : {false, true})
    for (const bool replays : {false, true}) {
      auto shape = small;
      shape.overwrites = any;
      const auto gan = std::make_shared<const feature_gan>(shape);
      gan_training training{.steps = 15, .batch = 6, .seen_classes = {0, 4}, .any_fakes = any};
      training.rates.rate = 1e-3;
      training.consistency = replays ? 1.0 : 0.0;
      std::vector<program_job> jobs;
      for (std::uint64_t seed = 1; seed <= 5; ++seed)
        jobs.push_back(job_of(gan, seed, training, replays));
      check_program(jobs);
    }
}

TEST_CASE("a game of images has the same bits in any stack") {
  const auto gan = std::make_shared<const feature_gan>(gan_shape{.features = 2 * 8 * 16,
                                                                 .classes = 4,
                                                                 .latent = 5,
                                                                 .generator_width = 2,
                                                                 .critic_width = 2,
                                                                 .overwrites = true,
                                                                 .image = {2, 8, 16},
                                                                 .scale = {0.01F, 0.02F},
                                                                 .shift = {-1.0F, -2.0F}});
  gan_training training{
      .steps = 3, .batch = 6, .seen_classes = {0, 4}, .any_fakes = true, .shuffles = true, .consistency = 1.0};
  std::vector<program_job> jobs;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    auto job = job_of(std::make_shared<const feature_gan>(small), seed, training, true);
    auto in = std::make_shared<tensor_map>(*job.in);
    for (const char* name : {"generator", "old_generator", "server_generator"})
      in->put(name, initial_weights(*gan->generator(), seed + static_cast<std::uint64_t>(name[0])));
    in->put("critic", initial_weights(*gan->critic(), seed));
    in->put("features", drawn({20, gan->shape().features}, seed));
    in->put("batches", at::full({}, static_cast<std::int64_t>(seed), at::kLong));
    job.in = in;
    job.body = gan_program(gan, training);
    jobs.push_back(job);
  }
  check_program(jobs);
}

TEST_CASE("images of a generator are pixels as nets read them") {
  const feature_gan gan({.features = 2 * 8 * 8,
                         .classes = 2,
                         .latent = 3,
                         .generator_width = 2,
                         .critic_width = 2,
                         .image = {2, 8, 8},
                         .scale = {0.01F, 0.02F},
                         .shift = {-1.0F, -2.0F}});
  auto weights = at::zeros({1, gan.generator()->size()}, at::kFloat);
  const auto gray = gan.rows(weights, gan.codes({0, 1}, {.seed = 1}).unsqueeze(0)).view({2, 2, 64}); // tanh(0)
  CHECK((gray.select(1, 0) - (127.5 * 0.01 - 1.0)).abs().max().item<double>() < 1e-6);
  CHECK((gray.select(1, 1) - (127.5 * 0.02 - 2.0)).abs().max().item<double>() < 1e-6);
}

TEST_CASE("a shuffle has each row once per pass, except a short last batch, and passes differ") {
  const rng_key stream{.seed = 3, .purpose = first_method_purpose};
  std::vector<std::vector<std::int64_t>> passes(2);
  for (std::int64_t number = 0; number < 6; ++number) {
    const auto batch = batch_of_shuffle(11, 3, number, stream);
    CHECK(batch.size() == 3);
    auto& pass = passes[static_cast<std::size_t>(number / 3)];
    pass.insert(pass.end(), batch.begin(), batch.end());
  }
  CHECK(passes[0] != passes[1]);
  for (auto& pass : passes) {
    std::sort(pass.begin(), pass.end());
    CHECK(std::adjacent_find(pass.begin(), pass.end()) == pass.end());
    CHECK((pass.size() == 9 && pass.front() >= 0 && pass.back() <= 10));
  }
  CHECK(batch_of_shuffle(11, 3, 4, stream) == batch_of_shuffle(11, 3, 4, stream));
}

TEST_CASE("initialization from N(0, 0.02) sets matrices, zero biases and scales of 1") {
  const feature_gan gan({.features = 64, .classes = 4, .generator_width = 8, .critic_width = 8, .image = {1, 8, 8}});
  const auto flat = normal_start(*gan.generator(), 1);
  for (const auto& entry : gan.generator()->layout()) {
    INFO(entry.name);
    const auto values = as_in_files(flat, entry);
    if (entry.shape.size() > 1)
      CHECK(std::abs(values.std().item<double>() - 0.02) < 0.006); // of 72 values and more
    else if (entry.name.find(".bn") != std::string::npos && entry.name.ends_with(".weight"))
      CHECK((values == 1.0).all().item<bool>());
    else if (!entry.buffer)
      CHECK(values.abs().max().item<double>() == 0.0);
  }
}

TEST_CASE("GAN training continues from its own moments and step counts") {
  const auto gan = std::make_shared<const feature_gan>(small);
  gan_training training{.steps = 4, .batch = 6, .seen_classes = {0, 4}, .keeps_moments = true};
  training.rates.rate = 1e-3;
  const auto fresh = [&](std::uint64_t seed) {
    auto job = job_of(gan, seed, training, false);
    auto in = std::make_shared<tensor_map>(*job.in);
    for (const char* name : {"generator", "critic"})
      adam::put_initial_moments(name, in->at(name), *in);
    job.in = in;
    return job;
  };
  std::vector<program_job> jobs{fresh(1), fresh(2), fresh(3)};
  const auto first = run_by_width({jobs[1]}, 1);
  auto gone_on = std::make_shared<tensor_map>(*jobs[1].in);
  for (const auto& [name, value] : tensors_of(first[0]))
    gone_on->put(name, value);
  CHECK(gone_on->at("critic.steps").item<std::int64_t>() == 4);
  jobs[1].in = gone_on; // together with two that start
  check_program(jobs);
  const auto second = run_by_width({jobs[1]}, 1);
  CHECK(tensors_of(second[0]).at("critic.steps").item<std::int64_t>() == 8);
}

TEST_CASE("a pooled batch has each class of the clients equally often") {
  const auto gan = std::make_shared<const feature_gan>(small);
  auto in = std::make_shared<tensor_map>();
  in->put("generator", initial_weights(*gan->generator(), 1));
  in->put("critic", initial_weights(*gan->critic(), 1));
  in->put("classes_so_far", at::ones({4}));
  in->put("generators", at::stack({initial_weights(*gan->generator(), 2), initial_weights(*gan->generator(), 3)}));
  in->put("own_classes", at::stack({floats({0, 0, 1, 0}), floats({0, 0, 1, 1})}));
  in->put("old_generators", initial_weights(*gan->generator(), 4).unsqueeze(0));
  in->put("past_classes", floats({1, 1, 0, 0}).unsqueeze(0));
  const gan_training training{.steps = 60, .batch = 6, .seen_classes = {0, 4}, .any_fakes = true};
  std::vector<program_job> jobs;
  for (std::uint64_t seed = 1; seed <= 2; ++seed)
    jobs.push_back(
        {.body = gan_program(gan, training), .in = in, .stream = {.seed = seed, .purpose = first_method_purpose}});
  const auto games = run_by_width(jobs, 2);
  CHECK_FALSE(at::equal(tensors_of(games[0]).at("critic"), tensors_of(games[1]).at("critic")));
  check_program(jobs);
}

TEST_CASE("the critic learns to classify, and the generator to make rows of the classes") {
  const auto gan = std::make_shared<const feature_gan>(small);
  gan_training training{.steps = 300, .batch = 16, .seen_classes = {0, 2}};
  training.rates.rate = 5e-3;
  const auto device = make_executor("cpu");
  const std::vector<job> batch{{.id = {}, .request = job_of(gan, 3, training, false)}};
  const auto outcome = device->run(batch);
  REQUIRE(std::holds_alternative<work_output>(outcome[0]));
  const auto& out = *std::get<program_output>(std::get<work_output>(outcome[0])).out;
  const auto critic = out.at("critic").unsqueeze(0);
  const auto rows = game_of(*gan, 3, false);
  const auto error_text = [&](const at::Tensor& features) {
    return gan->critic()
        ->forward(critic, features.view({1, -1, 1, 1, 3}).contiguous(), {0, 2}, nullptr)
        .logits[0]
        .argmax(1);
  };
  CHECK(at::equal(error_text(rows->at("features")), rows->at("labels")));
  const std::vector<std::int64_t> labels{0, 1, 0, 1, 0, 1, 0, 1, 0, 1};
  const auto codes = gan->codes(labels, {.seed = 77}).view({1, 10, 1, 1, -1});
  const auto made = gan->generator()->forward(out.at("generator").unsqueeze(0), codes, {}, nullptr).features[0];
  CHECK((error_text(made) == at::tensor(labels, at::kLong)).sum().item<std::int64_t>() >= 9);
  const auto mean_of = [&](std::int64_t label) {
    return made.index_select(0, (at::tensor(labels) == label).nonzero().squeeze(1)).mean(0);
  };
  CHECK(mean_of(0)[0].item<float>() > mean_of(1)[0].item<float>()); // like the rows themselves
  CHECK(mean_of(1)[1].item<float>() > mean_of(0)[1].item<float>());
}
