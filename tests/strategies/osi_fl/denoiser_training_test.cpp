// Training of the denoiser of OSI-FL's generator, compared with an independent implementation, and its inputs.
#include "runtime/models/diffusion.hpp"
#include "strategies/osi_fl/latent_encoding.hpp"
#include "strategies/osi_fl/latent_training.hpp"
#include "strategies/osi_fl/sliced_training.hpp"
#include "tests/support/learning.hpp"
#include "tests/support/method_driver.hpp"
#include "tests/support/program_check.hpp"
using namespace mneme;
using namespace mneme::test;

namespace {

const latent_shape small{.image = {1, 8, 8}, .kinds = 2, .embedding = 24, .units = 32, .blocks = 2, .latent_max = 6};
constexpr std::int64_t rows = 20, batch = 8, passes = 4;

// Purposes of a training's draws, relative to that of its job.
enum draws : std::uint32_t { weights_draw, shuffle_draw, noise_draw, rows_draw, members_draw };

rng_key drawn_by(const program_call& call, draws which, std::int64_t index = 0) {
  auto key = call.stream;
  key.purpose += which;
  key.index = static_cast<std::uint64_t>(index);
  return key;
}

/// E |v - v_theta(x_t, t, c)|^2, row by row. Each step draws new noise and drops a tenth of the conditions. Every
/// fourth row has its own embedding as condition, the others a mean of 1 to 50 of their kind.
class by_the_formula final : public sliced_training {
public:
  by_the_formula()
      : sliced_training(
            {.rate = 1e-3, .decay = 1e-4, .last_share = 0.05, .warm_up = 100, .norm_max = 1.0, .averages = true}),
        net_(small), schedule_(cosine_schedule(diffusion_times)) {}
  [[nodiscard]] std::string name() const override { return "denoiser by the formula"; }
  [[nodiscard]] std::string identity() const override { return "1"; }

protected:
  [[nodiscard]] std::int64_t size() const override { return net_.parameters().size(); }
  [[nodiscard]] at::Tensor initial(const program_call& call) const override {
    return net_.parameters().initial(drawn_by(call, weights_draw));
  }
  [[nodiscard]] std::int64_t steps(const program_call&) const override { return steps_of_passes(rows, batch, passes); }
  [[nodiscard]] at::Tensor loss(const program_call& call, const at::Tensor& weights, std::int64_t step) const override {
    const auto where = positions_of_step(rows, batch, step, drawn_by(call, shuffle_draw));
    const auto count = std::ssize(where);
    const auto noise = normal_numbers({count, small.latent()}, drawn_by(call, noise_draw, step));
    rng_stream chances(drawn_by(call, rows_draw, step)), members(drawn_by(call, members_draw, step));
    auto sum = at::zeros({});
    for (std::int64_t i = 0; i < count; ++i) {
      const auto row = where[static_cast<std::size_t>(i)];
      const auto time = static_cast<std::int64_t>(chances.below(diffusion_times));
      const bool is_told = chances.uniform() >= 0.1;
      auto embedding = call.in.at("embeddings")[row];
      if (i % 4 != 0)
        embedding = mean_of_some(call, row, members);
      const auto x_0 = call.in.at("latents")[row];
      const double signal = schedule_.at(time);
      const auto x_t = x_0 * std::sqrt(signal) + noise[i] * std::sqrt(1.0 - signal);
      const auto v = noise[i] * std::sqrt(signal) - x_0 * std::sqrt(1.0 - signal);
      const auto condition_rows = is_told ? net_.condition(weights, embedding.view({1, 1, -1}), latent_denoiser::plain)
                                          : net_.no_condition(weights).view({1, 1, -1});
      const auto found =
          net_.velocities(weights, x_t.view({1, 1, -1}), condition_rows + net_.time(weights, {time}).unsqueeze(0),
                          latent_denoiser::plain);
      sum = sum + (found.view({-1}) - v).square().sum();
    }
    return sum / static_cast<double>(count * small.latent());
  }

private:
  [[nodiscard]] static at::Tensor mean_of_some(const program_call& call, std::int64_t row, rng_stream& draw) {
    const auto kinds = call.in.at("kinds");
    std::vector<std::int64_t> alike;
    for (std::int64_t other = 0; other < rows; ++other)
      if (kinds[other].item<std::int64_t>() == kinds[row].item<std::int64_t>())
        alike.push_back(other);
    auto sum = at::zeros({small.embedding});
    const auto many = 1 + draw.below(50);
    for (std::uint64_t left = many; left > 0; --left)
      sum = sum + call.in.at("embeddings")[alike[draw.below(alike.size())]];
    return sum / static_cast<double>(many);
  }

  latent_denoiser net_;
  diffusion_schedule schedule_;
};

program_job job_of(program_ref body) {
  auto in = std::make_shared<tensor_map>();
  in->put("embeddings", drawn({rows, small.embedding}, 1));
  in->put("latents", drawn({rows, small.latent()}, 2));
  in->put("kinds", at::arange(rows, at::kLong) % 2);
  return {.body = std::move(body), .in = in, .stream = {.seed = 3, .purpose = first_method_purpose}};
}

} // namespace

TEST_CASE("a denoiser learns velocities of latents under conditions, some averaged, some dropped") {
  const auto found = tensors_of(run_by_width({job_of(denoiser_training(small, passes, batch))}, 1)[0]).at("weights");
  const auto body = std::make_shared<const by_the_formula>();
  const auto expected = tensors_of(run_by_width({job_of(body)}, 1)[0]).at("weights");
  const auto start = latent_denoiser(small).parameters().initial({.seed = 3, .purpose = first_method_purpose});
  // Adam takes full steps where a gradient is only rounding, so a few weights may differ.
  const auto differing = ((found - expected).abs() > 1e-6).to(at::kFloat).mean().item<double>();
  const auto moving = ((expected - start).abs() > 1e-6).to(at::kFloat).mean().item<double>();
  CHECK(moving > 0.5);
  CHECK(differing < 0.01);
}

TEST_CASE("rows are distinguished by their embeddings and represented by their latents") {
  const auto source = drawn_data(30, {1, 8, 8}, 2);
  const image_encoder encoder(small);
  auto in = std::make_shared<tensor_map>();
  in->put("encoder", encoder.parameters().initial({.seed = 6}));
  in->put("basis", drawn({6, 64}, 2));
  in->put("centre", drawn({64}, 3));
  in->put("spread", drawn({6}, 4).abs() + 0.5);
  in->put("scale", floats({1.0F}));
  in->put("shift", floats({0.0F}));
  const auto outcome = run_by_width({{.body = latent_encoding(small), .in = in, .samples = every_row_of(source)}}, 1);
  const auto& made = tensors_of(outcome[0]);
  const auto pixels = (source->images.to(at::kFloat) / 255.0).flatten(1);
  const auto expected = at::mm(pixels - in->at("centre"), in->at("basis").t()) / in->at("spread");
  CHECK(largest_difference(made.at("latents"), expected) < 1e-4);
  const auto shown = source->images.to(at::kFloat) * source->scale[0] + source->shift[0];
  CHECK(largest_difference(made.at("embeddings"), encoder.embeddings(in->at("encoder"), shown)) < 1e-5);
}
