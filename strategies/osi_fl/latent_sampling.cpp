#include "strategies/osi_fl/latent_sampling.hpp"
#include "strategies/osi_fl/latent_training.hpp"
#include "strategies/osi_fl/sliced_training.hpp"
#include <ATen/ATen.h>
#include <cmath>
#include <fmt/format.h>
namespace mneme {

latent_sampler::latent_sampler(const latent_shape& shape, const generation_settings& with)
    : with_(with), denoiser_(shape), schedule_(cosine_schedule(diffusion_times)) {}

at::Tensor latent_sampler::latents(const at::Tensor& net, const at::Tensor& conditions, at::Tensor x) const {
  constexpr double latent_bound = 6.0;
  const auto times = sampling_times(diffusion_times, with_.steps);
  const auto told = denoiser_.condition(net, conditions, latent_denoiser::stacked);
  const auto nothing = denoiser_.no_condition(net).view({1, 1, -1});
  const auto when = denoiser_.time(net, times);
  for (std::size_t i = 0; i < times.size(); ++i) {
    const ddim_step step{.signal = schedule_.at(times[i]),
                         .signal_before = schedule_.at(i + 1 < times.size() ? times[i + 1] : -1),
                         .bound = latent_bound};
    const auto noise_under = [&](const at::Tensor& condition) {
      const auto v =
          denoiser_.velocities(net, x, condition + when[static_cast<std::int64_t>(i)], latent_denoiser::stacked);
      return noise_of_velocity(v, x, step.signal);
    };
    auto noise = noise_under(told);
    if (with_.guidance != 1.0)
      noise = guided(noise_under(nothing), noise, with_.guidance);
    x = ddim(step, x, noise);
  }
  return x;
}

// -- moments ----------------------------------------------------------------------------------------------------------

namespace {

/// C^p of a covariance [L, L] float64. No variance counts as less than a ten-thousandth of the largest.
at::Tensor power(const at::Tensor& covariance, double p) {
  const auto [widths, directions] = at::linalg_eigh(covariance);
  const auto least = std::max(widths.max().item<double>() * 1e-4, 1e-12);
  return at::mm(directions * widths.clamp_min(least).pow(p), directions.t());
}

at::Tensor covariance_of(const at::Tensor& centred) {
  return at::mm(centred.t(), centred) / static_cast<double>(centred.size(0));
}

} // namespace

moment_map::moment_map(const at::Tensor& made, const at::Tensor& rows) {
  const auto x = made.to(at::kDouble), y = rows.to(at::kDouble);
  const auto mean = x.mean(0), spread = covariance_of(x - mean);
  const double n = static_cast<double>(rows.size(0)), share = n / (n + static_cast<double>(rows.size(1)));
  from = mean.to(at::kFloat);
  to = from;
  turn = at::eye(rows.size(1), from.options());
  if (rows.size(0) == 0)
    return;
  const auto centre = y.mean(0);
  to = (share * centre + (1.0 - share) * mean).to(at::kFloat);
  const auto wanted = share * covariance_of(y - centre) + (1.0 - share) * spread;
  turn = at::mm(power(spread, -0.5), power(wanted, 0.5)).to(at::kFloat);
}

at::Tensor moment_map::moved(const at::Tensor& latents) const { return at::mm(latents - from, turn) + to; }

namespace {

/// Kind by kind, a slice each: latents are made under the mean embedding of the kind's rows, and mapped to them.
class match_moments final : public looped_program {
public:
  match_moments(const latent_shape& shape, const generation_settings& with)
      : shape_(shape), with_(with), sampler_(shape, with) {}
  [[nodiscard]] std::string name() const override { return "moments of latents"; }
  [[nodiscard]] std::string identity() const override {
    return fmt::format("{} {} {}", shape_.identity(), with_.steps, with_.guidance);
  }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job&) const override {
    const auto L = shape_.latent();
    return {{.name = moment_tensors[0], .shape = {shape_.kinds, L, L}},
            {.name = moment_tensors[1], .shape = {shape_.kinds, L}},
            {.name = moment_tensors[2], .shape = {shape_.kinds, L}}};
  }

protected:
  [[nodiscard]] program_step run_call(const program_call& call) const override {
    const auto kind = static_cast<std::int64_t>(call.slice);
    const auto found = map_of(call, kind);
    const std::array parts{found.turn, found.from, found.to};
    named_tensors tensors;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto* const name = moment_tensors[i];
      const auto own = parts[i].unsqueeze(0);
      tensors[name] = kind == 0 ? own : at::cat({call.state.at(name), own});
    }
    if (kind + 1 == shape_.kinds)
      return {.tensors = std::move(tensors)};
    return {.tensors = std::move(tensors),
            .finished = false,
            .progress = static_cast<double>(kind + 1) / static_cast<double>(shape_.kinds)};
  }

private:
  [[nodiscard]] moment_map map_of(const program_call& call, std::int64_t kind) const {
    constexpr std::int64_t made = 1'000;
    const auto members = (call.in.at("kinds") == kind).nonzero().flatten();
    const auto rows = call.in.at("latents").index_select(0, members);
    const auto embeddings = call.in.at("embeddings").index_select(0, members).to(at::kDouble);
    const auto condition = (embeddings.sum(0) / static_cast<double>(std::max<std::int64_t>(members.size(0), 1)));
    auto key = call.stream;
    key.index = static_cast<std::uint64_t>(kind);
    const auto noise = normal_numbers({1, made, shape_.latent()}, key).to(call.device());
    const auto latents =
        sampler_.latents(call.in.at("denoiser"), condition.to(at::kFloat).view({1, 1, -1}), noise);
    return {latents[0], rows};
  }

  latent_shape shape_;
  generation_settings with_;
  latent_sampler sampler_;
};

} // namespace

program_ref moment_matching(const latent_shape& shape, const generation_settings& with) {
  return std::make_shared<const match_moments>(shape, with);
}

} // namespace mneme
