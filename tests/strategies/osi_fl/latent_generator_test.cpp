// The small latent diffusion model: sizes of its nets, its optimizer, equal bits of its programs, and learning.
#include "runtime/method/gradients.hpp"
#include "strategies/osi_fl/latent_encoding.hpp"
#include "strategies/osi_fl/latent_generator.hpp"
#include "strategies/osi_fl/sliced_training.hpp"
#include "tests/support/learning.hpp"
#include "tests/support/method_driver.hpp"
#include "tests/support/program_check.hpp"
#include <catch2/matchers/catch_matchers_floating_point.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::WithinRel;

namespace {

const latent_shape small{.image = {1, 8, 8}, .kinds = 2, .embedding = 24, .units = 32, .blocks = 2, .latent_max = 6};

at::Tensor drawn_weights(const parameter_list& list, std::uint64_t seed) { return drawn({list.size()}, seed) * 0.15; }

/// Generation by nets of random weights, with a condition per job; with random moments if requested.
std::vector<program_job> generation_jobs(const latent_shape& shape, const generation_settings& settings,
                                         std::size_t count, bool moments = false) {
  const auto body = latent_generation(shape, settings);
  tensor_map nets;
  nets.put("denoiser", drawn_weights(latent_denoiser(shape).parameters(), 1));
  nets.put("basis", drawn({shape.latent(), shape.pixels()}, 2) * 0.15);
  nets.put("centre", drawn({shape.pixels()}, 3).sigmoid());
  nets.put("spread", drawn({shape.latent()}, 4).abs() + 0.1);
  nets.put("scale", floats(std::vector<float>(static_cast<std::size_t>(shape.image[0]), 0.01F)));
  nets.put("shift", floats(std::vector<float>(static_cast<std::size_t>(shape.image[0]), -0.5F)));
  nets.put("encoder", drawn_weights(image_encoder(shape).parameters(), 5));
  if (moments) {
    nets.put("turns", drawn({shape.kinds, shape.latent(), shape.latent()}, 6));
    nets.put("made_means", drawn({shape.kinds, shape.latent()}, 7));
    nets.put("row_means", drawn({shape.kinds, shape.latent()}, 8));
  }
  std::vector<program_job> jobs;
  for (std::size_t k = 0; k < count; ++k) {
    auto in = std::make_shared<tensor_map>(nets);
    in->put("condition", drawn({shape.embedding}, 10 + k) / std::sqrt(static_cast<double>(shape.embedding)));
    jobs.push_back({.body = body, .in = in, .stream = {.seed = 3, .purpose = first_method_purpose, .index = k}});
  }
  return jobs;
}

/// Descends the sum of (w_i - i)^2, one step at a time.
class parabola final : public sliced_training {
public:
  explicit parabola(const adam_settings& settings, std::int64_t of_slice)
      : sliced_training(settings), of_slice_(of_slice) {}
  [[nodiscard]] std::string name() const override { return "parabola"; }
  [[nodiscard]] std::string identity() const override { return std::to_string(of_slice_); }

protected:
  [[nodiscard]] std::int64_t size() const override { return 3; }
  [[nodiscard]] at::Tensor initial(const program_call&) const override { return floats({5.0F, -4.0F, 0.5F}); }
  [[nodiscard]] std::int64_t steps(const program_call&) const override { return 30; }
  [[nodiscard]] at::Tensor loss(const program_call&, const at::Tensor& weights, std::int64_t) const override {
    return (weights - floats({0.0F, 1.0F, 2.0F})).square().sum();
  }
  [[nodiscard]] std::int64_t steps_of_slice() const override { return of_slice_; }

private:
  std::int64_t of_slice_;
};

/// Eight by eight pixels with noise: label 0 is bright on the left, label 1 at the top.
std::shared_ptr<dataset> halves(std::int64_t rows) {
  auto made = drawn_data(rows, {1, 8, 8}, 2);
  auto* pixel = made->images.mutable_data_ptr<std::uint8_t>();
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t y = 0; y < 8; ++y)
      for (std::int64_t x = 0; x < 8; ++x, ++pixel)
        *pixel = static_cast<std::uint8_t>(*pixel / 4 + ((row % 2 == 0 ? x : y) < 4 ? 180 : 0));
  return made;
}

/// Outcome of component_analysis over all rows.
tensor_map found_components(const std::shared_ptr<dataset>& source, const latent_shape& shape, std::int64_t passes) {
  const auto outcome = run_by_width({{.body = component_analysis(shape, passes),
                                      .samples = every_row_of(source),
                                      .stream = {.seed = 8, .purpose = first_method_purpose}}},
                                    1);
  return tensors_of(outcome[0]);
}

} // namespace

TEST_CASE("the nets have as many parameters as their layers state") {
  const latent_shape fashion{.image = {1, 28, 28}, .kinds = 10};
  CHECK(image_encoder(fashion).parameters().size() ==
        (9 + 1) * 16 + (9 * 16 + 1) * 32 + (9 * 32 + 1) * 64 + 1025 * 512 + 513 * 10);
  CHECK(image_encoder(fashion).parameters().size() == 553'226);
  constexpr auto units = 320, latent = 96;
  CHECK(latent_denoiser(fashion).parameters().size() ==
        (64 + 1) * units + 2 * (units + 1) * units + (512 + 1) * units + units + (latent + 1) * units +
            3 * ((units + 1) * 2 * units + 2 * (units + 1) * units) + (units + 1) * latent);
}

TEST_CASE("nets accept gray and color images of any size and return the same shape") {
  for (const auto& image :
       {shape3{1, 28, 28}, shape3{3, 32, 32}, shape3{3, 8, 12}, shape3{1, 1, 6}, shape3{3, 10, 10}}) {
    const latent_shape shape{.image = image, .kinds = 3};
    CAPTURE(shape.identity());
    const image_encoder encoder(shape);
    const auto x = drawn({2, image[0], image[1], image[2]}, 1).sigmoid();
    const auto e = encoder.embeddings(encoder.parameters().initial({.seed = 1}), x);
    CHECK((e.sizes() == at::IntArrayRef{2, 512}));
    CHECK(largest_difference(e.norm(2, {1}), floats({1.0F, 1.0F})) < 1e-5);
    const auto parts = found_components(std::make_shared<dataset>(*drawn_data(5, image, 3)), shape, 3);
    CHECK((image_components(parts).pixels(drawn({2, 4, shape.latent()}, 3)).sizes() ==
           at::IntArrayRef{2, 4, shape.pixels()}));
  }
}

TEST_CASE("components equal eigenvectors of the covariance and lose no more than these") {
  auto source = halves(300);
  const auto parts = found_components(source, small, 12);
  const auto x = (source->images.to(at::kDouble) / 255.0).flatten(1);
  const auto centered = x - x.mean(0);
  const auto [variances, vectors] = at::linalg_eigh(at::mm(centered.t(), centered) / 300.0);
  const auto best = vectors.flip(1).narrow(1, 0, 6), widest = variances.flip(0).narrow(0, 0, 6).sqrt();
  CHECK(largest_difference(parts.at("centre"), x.mean(0).to(at::kFloat)) < 1e-6);
  const auto roots = widest.sqrt() * std::sqrt(widest.mean().item<double>()); // variances of latents: widest / mean
  CHECK(largest_difference(parts.at("spread"), roots.to(at::kFloat)) < 1e-3);
  const auto basis = parts.at("basis");
  CHECK(largest_difference(at::mm(basis, basis.t()).contiguous(), at::eye(6)) < 1e-5);

  const image_components components(parts);
  const auto latents = components.latents(x.to(at::kFloat).view({300, 1, 8, 8}));
  CHECK(latents.mean(0).abs().max().item<float>() < 1e-4F);
  const auto expected = widest / widest.mean();
  CHECK(largest_difference(latents.square().mean(0), expected.to(at::kFloat)) < 1e-3);
  const auto lost = [&](const at::Tensor& seen) { return (seen.to(at::kDouble) - x).square().sum().item<double>(); };
  const auto fewest = lost((at::mm(at::mm(centered, best), best.t()) + x.mean(0)).clamp(0.0, 1.0));
  CHECK_THAT(lost(components.pixels(latents.unsqueeze(0))[0]), WithinRel(fewest, 1e-3));
}

TEST_CASE("equal rows have components of a small width and are reconstructed unchanged") {
  auto source = drawn_data(6, {1, 8, 8}, 2);
  source->images.fill_(51);
  const image_components components(found_components(source, small, 4));
  CHECK(components.spread.min().item<float>() > 0.0F);
  CHECK(largest_difference(components.center, at::full({64}, 0.2)) < 1e-6);
  const auto latents = components.latents(at::full({2, 1, 8, 8}, 0.2));
  CHECK(largest_difference(components.pixels(latents.unsqueeze(0)).contiguous(), at::full({1, 2, 64}, 0.2)) < 1e-6);
}

TEST_CASE("an untrained denoiser predicts zero for any condition") {
  const latent_denoiser net(small);
  const auto flat = net.parameters().initial({.seed = 4});
  const auto condition_rows = net.condition(flat, drawn({1, 5, 24}, 1), latent_denoiser::plain) + net.time(flat, {3});
  const auto v = net.velocities(flat, drawn({1, 5, 6}, 2), condition_rows, latent_denoiser::plain);
  CHECK(v.abs().max().item<float>() == 0.0F);
}

TEST_CASE("steps equal AdamW with warm-up, cosine, clipping and averaged weights, for any slices") {
  const adam_settings settings{
      .rate = 0.2, .decay = 0.1, .last_share = 0.05, .warm_up = 4, .norm_max = 3.0, .averages = true};
  // Independent implementation, number by number, in double precision.
  std::array<double, 3> w{5.0, -4.0, 0.5}, m{}, v{}, mean = w;
  for (int i = 0; i < 30; ++i) {
    std::array<double, 3> g{};
    double norm = 0.0;
    for (std::size_t k = 0; k < 3; ++k)
      norm += (g[k] = 2.0 * (w[k] - static_cast<double>(k))) * g[k];
    const double clip = std::min(1.0, 3.0 / std::sqrt(norm));
    const double rate =
        0.2 * (0.05 + 0.95 * (1.0 + std::cos(3.14159265358979 * i / 30.0)) / 2.0) * (i < 4 ? (i + 1) / 4.0 : 1.0);
    for (std::size_t k = 0; k < 3; ++k) {
      w[k] *= 1.0 - rate * 0.1;
      m[k] = 0.9 * m[k] + 0.1 * g[k] * clip;
      v[k] = 0.999 * v[k] + 0.001 * g[k] * clip * g[k] * clip;
      w[k] -= rate * (m[k] / (1.0 - std::pow(0.9, i + 1))) / (std::sqrt(v[k] / (1.0 - std::pow(0.999, i + 1))) + 1e-8);
      const double kept = std::min(0.999, (i + 1.0) / (i + 10.0));
      mean[k] = kept * mean[k] + (1.0 - kept) * w[k];
    }
  }
  at::Tensor first;
  for (const std::int64_t of_slice : {30, 7, 1}) {
    const auto body = std::make_shared<const parabola>(settings, of_slice);
    const auto found = tensors_of(run_by_width({{.body = body}}, 1)[0]).at("weights");
    for (std::int64_t k = 0; k < 3; ++k)
      CHECK_THAT(found[k].item<float>(), WithinRel(mean[static_cast<std::size_t>(k)], 1e-4));
    first = first.defined() ? first : found;
    CHECK(same_bits(found, first));
  }
}

TEST_CASE("every pass of a training has each row once, in another order") {
  const rng_key key{.seed = 1, .purpose = first_method_purpose};
  CHECK(steps_of_passes(10, 4, 3) == 9);
  std::vector<std::vector<std::int64_t>> passes(3);
  for (std::int64_t step = 0; step < 9; ++step) {
    const auto rows = positions_of_step(10, 4, step, key);
    CHECK(std::ssize(rows) == (step % 3 == 2 ? 2 : 4));
    auto& pass = passes[static_cast<std::size_t>(step / 3)];
    pass.insert(pass.end(), rows.begin(), rows.end());
  }
  CHECK(passes[0] != passes[1]);
  for (auto& pass : passes) {
    std::sort(pass.begin(), pass.end());
    CHECK((pass == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  }
}

TEST_CASE("images have the same bits for any stacked jobs") {
  for (const double guidance : {1.0, 2.5})
    for (const std::int64_t candidates : {1, 3}) {
      CAPTURE(guidance, candidates);
      check_program(
          generation_jobs(small, {.images = 3, .candidates = candidates, .steps = 4, .guidance = guidance}, 9));
    }
  check_program(generation_jobs({.image = {1, 28, 28}, .kinds = 10}, {.images = 5, .steps = 3}, 7));
  check_program(generation_jobs(small, {.images = 3, .steps = 4}, 9, /*moments=*/true));
}

TEST_CASE("mapped latents have mean and covariance of rows, blended with their own by number of rows") {
  const auto mixing = floats({1.0F, 0.5F, 0.0F, 0.0F, 2.0F, 0.3F, 0.4F, 0.0F, 0.7F}).view({3, 3});
  const auto turned = at::mm(drawn({400, 3}, 1), mixing);
  const auto made = turned.to(at::kDouble), rows = drawn({47, 3}, 2).to(at::kDouble) * 0.6 + 2.0;
  const auto covariance = [](const at::Tensor& x) {
    const auto centered = x - x.mean(0);
    return at::mm(centered.t(), centered) / static_cast<double>(x.size(0));
  };
  const auto moved = moment_map(made.to(at::kFloat), rows.to(at::kFloat)).moved(turned).to(at::kDouble);
  const double share = 47.0 / 50.0; // 47 rows, three numbers in a latent
  const auto mean = share * rows.mean(0) + (1.0 - share) * made.mean(0);
  const auto spread = share * covariance(rows) + (1.0 - share) * covariance(made);
  CHECK((moved.mean(0) - mean).abs().max().item<double>() < 1e-5);
  CHECK((covariance(moved) - spread).abs().max().item<double>() < 1e-5);

  const moment_map alone(turned, at::empty({0, 3})); // no statistics of the kind
  CHECK(largest_difference(alone.moved(turned), turned) < 1e-6);
}

TEST_CASE("moments are matched per kind, under the mean embedding of its rows") {
  const latent_denoiser net(small);
  constexpr std::int64_t rows = 60;
  auto in = std::make_shared<tensor_map>();
  in->put("denoiser", drawn_weights(net.parameters(), 1));
  in->put("embeddings", drawn({rows, small.embedding}, 2) / std::sqrt(static_cast<double>(small.embedding)));
  in->put("latents", drawn({rows, 6}, 3));
  in->put("kinds", at::arange(rows, at::kLong).remainder(3).clamp_max(1)); // twenty of kind 0, forty of kind 1
  const generation_settings settings{.steps = 3};
  const program_job job{
      .body = moment_matching(small, settings), .in = in, .stream = {.seed = 4, .purpose = first_method_purpose}};
  check_program({job});
  const auto outcome = run_by_width({job}, 1);
  const auto found = tensors_of(outcome[0]);
  for (std::int64_t kind = 0; kind < 2; ++kind) {
    const auto own = (in->at("kinds") == kind).nonzero().flatten();
    const auto condition = in->at("embeddings").index_select(0, own).mean(0);
    auto key = job.stream;
    key.index = static_cast<std::uint64_t>(kind);
    const auto made = latent_sampler(small, settings)
                          .latents(in->at("denoiser"), condition.view({1, 1, -1}), normal_numbers({1, 1'000, 6}, key));
    const moment_map expected(made[0], in->at("latents").index_select(0, own));
    CHECK(largest_difference(found.at("turns")[kind].contiguous(), expected.turn) < 1e-4);
    CHECK(largest_difference(found.at("made_means")[kind].contiguous(), expected.from) < 1e-5);
    CHECK(largest_difference(found.at("row_means")[kind].contiguous(), expected.to) < 1e-5);
  }
}

TEST_CASE("latents are mapped by the moments of their condition's kind") {
  const auto jobs = generation_jobs(small, {.images = 5, .candidates = 1, .steps = 3}, 2, /*moments=*/true);
  const auto outcomes = run_by_width(jobs, 2);
  const image_encoder encoder(small);
  for (std::size_t k = 0; k < 2; ++k) {
    const auto& in = *jobs[k].in;
    const auto condition = in.at("condition").view({1, 1, -1});
    const auto kind = encoder.logits(in.at("encoder"), condition[0]).argmax(1).item<std::int64_t>();
    const auto latents = latent_sampler(small, {.steps = 3})
                             .latents(in.at("denoiser"), condition, normal_numbers({1, 5, 6}, jobs[k].stream));
    const auto moved = at::mm(latents[0] - in.at("made_means")[kind], in.at("turns")[kind]) + in.at("row_means")[kind];
    const auto pixels = image_components(in).pixels(moved.unsqueeze(0)) * 255.0;
    const auto images = tensors_of(outcomes[k]).at("images").to(at::kFloat).view({5, 64});
    CHECK(largest_difference(images, pixels[0].contiguous()) <= 0.51);
  }
}

TEST_CASE("candidates assigned to the condition's kind are kept first, then the likeliest ones") {
  constexpr std::int64_t kept = 4, made = 12;
  const auto jobs = [&](std::int64_t images, std::int64_t candidates) {
    return generation_jobs(small, {.images = images, .candidates = candidates, .steps = 4}, 2);
  };
  const auto choosing = jobs(kept, made / kept);
  const auto every = run_by_width(jobs(made, 1), 2), chosen = run_by_width(choosing, 2);
  const image_encoder encoder(small);
  for (std::size_t k = 0; k < 2; ++k) {
    const auto& in = *choosing[k].in;
    const auto kind = encoder.logits(in.at("encoder"), in.at("condition").view({1, -1})).argmax(1).item<std::int64_t>();
    const auto shown = tensors_of(every[k]).at("images");
    const auto seen = encoder.embeddings(in.at("encoder"), shown.to(at::kFloat) * 0.01 - 0.5);
    const auto odds = at::softmax(encoder.logits(in.at("encoder"), seen), 1).select(1, kind); // one of two kinds
    std::vector<std::int64_t> order, others;
    for (std::int64_t i = 0; i < made; ++i)
      (odds[i].item<float>() > 0.5F ? order : others).push_back(i);
    std::stable_sort(others.begin(), others.end(),
                     [&](std::int64_t a, std::int64_t b) { return odds[a].item<float>() > odds[b].item<float>(); });
    order.insert(order.end(), others.begin(), others.end());
    order.resize(kept);
    CHECK(at::equal(tensors_of(chosen[k]).at("images"), shown.index_select(0, at::tensor(order, at::kLong))));
  }
}

TEST_CASE("guidance of 1 uses only the condition, guidance of 0 none") {
  const auto images = [](double guidance) {
    std::vector<at::Tensor> made;
    for (const auto& outcome :
         run_by_width(generation_jobs(small, {.images = 2, .steps = 5, .guidance = guidance}, 2), 1))
      made.push_back(tensors_of(outcome).at("images"));
    return made;
  };
  // Without a condition only the noise distinguishes images, so jobs with different conditions are equal.
  auto jobs = generation_jobs(small, {.images = 2, .steps = 5, .guidance = 0.0}, 2);
  jobs[1].stream = jobs[0].stream;
  const auto alike = run_by_width(jobs, 2);
  CHECK(at::equal(tensors_of(alike[0]).at("images"), tensors_of(alike[1]).at("images")));
  auto condition_rows = generation_jobs(small, {.images = 2, .steps = 5, .guidance = 1.0}, 2);
  condition_rows[1].stream = condition_rows[0].stream;
  const auto apart = run_by_width(condition_rows, 2);
  CHECK_FALSE(at::equal(tensors_of(apart[0]).at("images"), tensors_of(apart[1]).at("images")));
  CHECK_FALSE(at::equal(images(1.0)[0], images(3.0)[0]));
}

TEST_CASE("class means are means of embeddings with their counts, for any order of rows") {
  const auto source = halves(600);
  const image_encoder encoder(small);
  const auto flat = encoder.parameters().initial({.seed = 6});
  auto in = std::make_shared<tensor_map>();
  in->put("encoder", flat);
  const auto body = class_means(small, 3);
  const auto summary = [&](std::vector<std::int64_t> rows) {
    const auto outcome = run_by_width({{.body = body, .in = in, .samples = view_of(source, std::move(rows))}}, 1);
    return tensors_of(outcome[0]);
  };
  const auto two = summary({4, 6, 1});
  const auto shown = (source->images.to(at::kFloat) * source->scale[0] + source->shift[0]);
  const auto e = encoder.embeddings(flat, shown);
  CHECK(largest_difference(two.at("means")[0].contiguous(), ((e[4] + e[6]) / 2.0).contiguous()) < 1e-6);
  CHECK(largest_difference(two.at("means")[1].contiguous(), e[1].contiguous()) < 1e-6);
  CHECK(two.at("means")[2].abs().max().item<float>() == 0.0F);
  CHECK(at::equal(two.at("counts"), at::tensor({2, 1, 0}, at::kLong)));

  std::vector<std::int64_t> rows(600);
  std::iota(rows.begin(), rows.end(), 0);
  const auto forwards = summary(rows);
  std::reverse(rows.begin(), rows.end());
  CHECK(largest_difference(forwards.at("means"), summary(rows).at("means")) < 1e-6);
  CHECK(at::equal(forwards.at("counts"), at::tensor({300, 300, 0}, at::kLong)));
}

TEST_CASE("a generator trained on two kinds of images generates both from their class means") {
  const auto source = halves(240);
  method_setup setup{.tasks = 1, .classes = 2, .shape = {1, 8, 8}, .task_classes = {{0, 2}}, .seed = 5};
  latent_generator generator(
      setup, {.encoder_passes = 10, .denoiser_passes = 60, .batch = 48, .sampling = {.images = 20, .steps = 15}});
  const auto device = make_executor("cpu");
  const listed_rows rows(source, [](std::uint32_t) {
    std::vector<std::int64_t> every(200);
    std::iota(every.begin(), every.end(), 0);
    return every;
  });
  job_channel channel;
  server_context ctx(channel, &rows);
  run_step(generator.train(ctx), channel, *device);
  const auto means = run_by_width({{.body = class_means(latent_generator::shape_of(setup), 2),
                                    .in = generator.encoder(),
                                    .samples = rows_from(source, 200, 40)}},
                                  1);
  int right = 0;
  for (std::int64_t label = 0; label < 2; ++label) {
    const auto condition = tensors_of(means[0]).at("means")[label].clone();
    const auto made = run_by_width({generator.generation(condition, {.seed = 9, .purpose = first_method_purpose})}, 1);
    const auto images = tensors_of(made[0]).at("images").to(at::kFloat); // [20, 1, 8, 8]
    for (const auto& image : images.unbind(0)) {
      const auto left = image[0].narrow(1, 0, 4).mean() - image[0].narrow(1, 4, 4).mean();
      const auto top = image[0].narrow(0, 0, 4).mean() - image[0].narrow(0, 4, 4).mean();
      right += (label == 0 ? left - top : top - left).item<float>() > 60.0F;
    }
  }
  CHECK(right >= 36); // of 40
}
