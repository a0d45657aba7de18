#include "strategies/osi_fl/latent_training.hpp"
#include "runtime/models/diffusion.hpp"
#include "strategies/osi_fl/sliced_training.hpp"
#include <ATen/ATen.h>
#include <fmt/format.h>
namespace mneme {
namespace {

// Kinds of random draws in a training; each value is added to the purpose of the job's stream.
enum class training_draw : std::uint32_t { weights, shuffle, noise, rows, members };

rng_key drawn_by(const program_call& call, training_draw purpose, std::int64_t index = 0) {
  auto key = call.stream;
  key.purpose += static_cast<std::uint32_t>(purpose);
  key.index = static_cast<std::uint64_t>(index);
  return key;
}

at::Tensor numbers(const std::vector<std::int64_t>& values, at::Device device) {
  return at::tensor(values, at::kLong).to(device);
}

/// Base of programs that train in several passes over the job's rows.
class pass_training : public sliced_training {
public:
  [[nodiscard]] std::string identity() const override {
    return fmt::format("{} {} {}", shape_.identity(), passes_, batch_);
  }

protected:
  pass_training(const latent_shape& shape, std::int64_t passes, std::int64_t batch, const adam_settings& settings)
      : sliced_training(settings), shape_(shape), passes_(passes), batch_(batch) {}
  [[nodiscard]] std::int64_t steps(const program_call& call) const override {
    return steps_of_passes(rows(call), batch_, passes_);
  }
  [[nodiscard]] virtual std::int64_t rows(const program_call& call) const { return call.samples.size(); }
  [[nodiscard]] std::vector<std::int64_t> positions(const program_call& call, std::int64_t step) const {
    return positions_of_step(rows(call), batch_, step, drawn_by(call, training_draw::shuffle));
  }
  [[nodiscard]] const latent_shape& shape() const { return shape_; }
  [[nodiscard]] std::int64_t batch() const { return batch_; }

private:
  latent_shape shape_;
  std::int64_t passes_, batch_;
};

// -- encoder ----------------------------------------------------------------------------------------------------------

class train_encoder final : public pass_training {
public:
  train_encoder(const latent_shape& shape, std::int64_t passes, std::int64_t batch)
      : pass_training(shape, passes, batch, {.rate = 1e-3, .last_share = 0.05}), net_(shape) {}
  [[nodiscard]] std::string name() const override { return "encoder training"; }

protected:
  [[nodiscard]] std::int64_t size() const override { return net_.parameters().size(); }
  [[nodiscard]] at::Tensor initial(const program_call& call) const override {
    return net_.parameters().initial(drawn_by(call, training_draw::weights));
  }
  [[nodiscard]] at::Tensor loss(const program_call& call, const at::Tensor& weights, std::int64_t step) const override {
    const auto where = positions(call, step);
    const auto kinds = call.in.at("kinds").index_select(0, numbers(where, call.device()));
    return at::cross_entropy_loss(net_.logits(weights, net_.embeddings(weights, call.images(where))), kinds);
  }

private:
  image_encoder net_;
};

// -- denoiser ---------------------------------------------------------------------------------------------------------

class train_denoiser final : public pass_training {
public:
  train_denoiser(const latent_shape& shape, std::int64_t passes, std::int64_t batch)
      : pass_training(
            shape, passes, batch,
            {.rate = 1e-3, .decay = 1e-4, .last_share = 0.05, .warm_up = 100, .norm_max = 1.0, .averages = true}),
        net_(shape), schedule_(cosine_schedule(diffusion_times)) {}
  [[nodiscard]] std::string name() const override { return "denoiser training"; }

protected:
  [[nodiscard]] std::int64_t size() const override { return net_.parameters().size(); }
  [[nodiscard]] std::int64_t rows(const program_call& call) const override { return call.in.at("latents").size(0); }
  [[nodiscard]] at::Tensor initial(const program_call& call) const override {
    return net_.parameters().initial(drawn_by(call, training_draw::weights));
  }
  /// E |v - v_theta(x_t, t, c)|^2: the loss of eq. 4 in terms of velocities, on latents noised by eqs. 2 and 3.
  [[nodiscard]] at::Tensor loss(const program_call& call, const at::Tensor& weights, std::int64_t step) const override {
    const auto where = positions(call, step);
    const auto count = std::ssize(where);
    const auto index = numbers(where, call.device());
    const auto x_0 = call.in.at("latents").index_select(0, index);
    const auto noise = normal_numbers(x_0.sizes(), drawn_by(call, training_draw::noise, step)).to(call.device());

    std::vector<std::int64_t> times, dropped;
    rng_stream draw(drawn_by(call, training_draw::rows, step));
    for (std::int64_t i = 0; i < count; ++i) {
      times.push_back(static_cast<std::int64_t>(draw.below(diffusion_times)));
      dropped.push_back(draw.uniform() < 0.1);
    }
    const auto x_t = add_noise(schedule_, x_0, noise, times).unsqueeze(0);
    const auto condition_rows =
        net_.condition(weights, conditions(call, where, step).unsqueeze(0), latent_denoiser::plain);
    const auto left_out = numbers(dropped, call.device()).to(at::kBool).view({1, count, 1});
    const auto known = at::where(left_out, net_.no_condition(weights).view({1, 1, -1}), condition_rows);
    const auto v =
        net_.velocities(weights, x_t, known + net_.time(weights, times).unsqueeze(0), latent_denoiser::plain);
    return (v - velocities(schedule_, x_0, noise, times).unsqueeze(0)).square().mean();
  }

private:
  /// Conditions [B, E]: every fourth row has its own embedding, the others the mean of 1 to 50 embeddings of their
  /// kind.
  [[nodiscard]] at::Tensor conditions(const program_call& call, const std::vector<std::int64_t>& where,
                                      std::int64_t step) const {
    constexpr std::uint64_t members_max = 50;
    const auto kinds = call.in.at("kinds").cpu();
    const auto* const kind = kinds.const_data_ptr<std::int64_t>();
    std::vector<std::vector<std::int64_t>> members(static_cast<std::size_t>(shape().kinds));
    for (std::int64_t row = 0; row < kinds.size(0); ++row)
      members[static_cast<std::size_t>(kind[row])].push_back(row);
    rng_stream draw(drawn_by(call, training_draw::members, step));
    std::vector<std::int64_t> chosen, first;
    for (std::size_t i = 0; i < where.size(); ++i) {
      first.push_back(std::ssize(chosen));
      if (i % 4 == 0) {
        chosen.push_back(where[i]);
        continue;
      }
      const auto& alike = members[static_cast<std::size_t>(kind[where[i]])];
      for (auto left = 1 + draw.below(members_max); left > 0; --left)
        chosen.push_back(alike[draw.below(alike.size())]);
    }
    constexpr std::int64_t mean_of_bag = 1;
    return std::get<0>(at::embedding_bag(call.in.at("embeddings"), numbers(chosen, call.device()),
                                         numbers(first, call.device()), false, mean_of_bag));
  }

  latent_denoiser net_;
  diffusion_schedule schedule_;
};

} // namespace

program_ref encoder_training(const latent_shape& shape, std::int64_t passes, std::int64_t batch) {
  return std::make_shared<const train_encoder>(shape, passes, batch);
}
program_ref denoiser_training(const latent_shape& shape, std::int64_t passes, std::int64_t batch) {
  return std::make_shared<const train_denoiser>(shape, passes, batch);
}

} // namespace mneme
