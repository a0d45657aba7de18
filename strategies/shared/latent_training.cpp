#include "runtime/models/diffusion.hpp"
#include "strategies/shared/latent_programs.hpp"
#include "strategies/shared/sliced_training.hpp"
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <numeric>
namespace mneme {
namespace {

// What a training draws, told apart by the purpose of its stream, counted from that of the job.
enum draws : std::uint32_t { weights_draw, shuffle_draw, noise_draw, rows_draw, latent_draw, members_draw };

rng_key drawn_by(const program_call& call, draws which, std::int64_t index = 0) {
  auto key = call.stream;
  key.purpose += which;
  key.index = static_cast<std::uint64_t>(index);
  return key;
}

at::Tensor numbers(const std::vector<std::int64_t>& values, at::Device device) {
  return at::tensor(values, at::kLong).to(device);
}

std::vector<std::int64_t> whole_range(std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> range(static_cast<std::size_t>(last - first));
  std::iota(range.begin(), range.end(), first);
  return range;
}

/// Rows as pixels in [0, 1]: what normalisation has done to them is undone.
at::Tensor pixels_of(const program_call& call, const std::vector<std::int64_t>& positions) {
  const auto shown = call.images(positions);
  const auto& source = *call.samples.source;
  const auto channels = std::ssize(source.scale);
  const auto by_channel = [&](const std::vector<float>& values) {
    return at::tensor(values, at::kFloat).view({1, channels, 1, 1}).to(call.device());
  };
  return ((shown - by_channel(source.shift)) / by_channel(source.scale) / 255.0).clamp(0.0, 1.0);
}

/// A training that goes over the job's rows pass by pass.
class pass_training : public sliced_training {
public:
  [[nodiscard]] std::string identity() const override {
    return fmt::format("{} {} {}", shape_.identity(), passes_, batch_);
  }

protected:
  pass_training(const latent_shape& shape, std::int64_t passes, std::int64_t batch, const adam_settings& with)
      : sliced_training(with), shape_(shape), passes_(passes), batch_(batch) {}
  [[nodiscard]] std::int64_t steps(const program_call& call) const override {
    return steps_of_passes(rows(call), batch_, passes_);
  }
  [[nodiscard]] virtual std::int64_t rows(const program_call& call) const { return call.samples.size(); }
  [[nodiscard]] std::vector<std::int64_t> positions(const program_call& call, std::int64_t step) const {
    return positions_of_step(rows(call), batch_, step, drawn_by(call, shuffle_draw));
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
      : pass_training(shape, passes, batch, {.rate = 1e-3}), net_(shape) {}
  [[nodiscard]] std::string name() const override { return "encoder training"; }

protected:
  [[nodiscard]] std::int64_t size() const override { return net_.parameters().size(); }
  [[nodiscard]] at::Tensor initial(const program_call& call) const override {
    return net_.parameters().initial(drawn_by(call, weights_draw));
  }
  [[nodiscard]] at::Tensor loss(const program_call& call, const at::Tensor& weights, std::int64_t step) const override {
    const auto where = positions(call, step);
    const auto kinds = call.in.at("kinds").index_select(0, numbers(where, call.device()));
    return at::cross_entropy_loss(net_.logits(weights, net_.embeddings(weights, call.images(where))), kinds);
  }

private:
  image_encoder net_;
};

// -- autoencoder ------------------------------------------------------------------------------------------------------

class train_autoencoder final : public pass_training {
public:
  train_autoencoder(const latent_shape& shape, std::int64_t passes, std::int64_t batch)
      : pass_training(shape, passes, batch, {.rate = 2e-3, .last_share = 0.0}), net_(shape) {}
  [[nodiscard]] std::string name() const override { return "autoencoder training"; }

protected:
  [[nodiscard]] std::int64_t size() const override { return net_.parameters().size(); }
  [[nodiscard]] at::Tensor initial(const program_call& call) const override {
    return net_.parameters().initial(drawn_by(call, weights_draw));
  }
  /// Summed over pixels, a mean over rows (Kingma and Welling 2014, eq. 10); the weight of the KL divergence is ours.
  [[nodiscard]] at::Tensor loss(const program_call& call, const at::Tensor& weights, std::int64_t step) const override {
    constexpr double divergence_weight = 0.0784;
    const auto x = pixels_of(call, positions(call, step));
    const auto [mean, log_variance] = net_.encoded(weights, x);
    const auto noise = normal_numbers(mean.sizes(), drawn_by(call, noise_draw, step)).to(call.device());
    const auto y = net_.decoded(weights, mean + (log_variance * 0.5).exp() * noise);
    // Grey pixels are wrong by -x log p - (1 - x) log(1 - p), colours by squared errors at a deviation of 0.14.
    const auto error = shape().image[0] == 1 ? at::softplus(y) - x * y : (at::sigmoid(y) - x).square() * 25.0;
    const auto divergence = (mean.square() + log_variance.exp() - 1.0 - log_variance) * 0.5;
    return (error.sum() + divergence.sum() * divergence_weight) / static_cast<double>(x.size(0));
  }

private:
  image_autoencoder net_;
};

// -- what both make of the rows ---------------------------------------------------------------------------------------

class encode_rows final : public looped_program {
public:
  explicit encode_rows(const latent_shape& shape) : shape_(shape), encoder_(shape), autoencoder_(shape) {}
  [[nodiscard]] std::string name() const override { return "encoding of public rows"; }
  [[nodiscard]] std::string identity() const override { return shape_.identity(); }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job& job) const override {
    const auto rows = job.samples.size();
    return {{.name = "embeddings", .shape = {rows, shape_.embedding}},
            {.name = "means", .shape = {rows, shape_.latent}},
            {.name = "deviations", .shape = {rows, shape_.latent}},
            {.name = "scale", .shape = {2}}};
  }

protected:
  [[nodiscard]] program_step run_call(const program_call& call) const override {
    constexpr std::int64_t rows_at_once = 256;
    std::vector<at::Tensor> embeddings, means, deviations;
    for (std::int64_t first = 0; first < call.samples.size(); first += rows_at_once) {
      const auto where = whole_range(first, std::min(call.samples.size(), first + rows_at_once));
      if (!call.in.find("embeddings"))
        embeddings.push_back(encoder_.embeddings(call.in.at("encoder"), call.images(where)).detach());
      const auto [mean, log_variance] = autoencoder_.encoded(call.in.at("autoencoder"), pixels_of(call, where));
      means.push_back(mean.detach());
      deviations.push_back((log_variance.detach() * 0.5).exp());
    }
    const auto every = at::cat(means);
    const double centre = every.mean(at::kDouble).item<double>();
    const double spread = std::max((every - centre).square().mean(at::kDouble).sqrt().item<double>(), 1e-6);
    const auto* const made = call.in.find("embeddings");
    return {.tensors = {{"embeddings", made ? *made : at::cat(embeddings)},
                        {"means", (every - centre) / spread},
                        {"deviations", at::cat(deviations) / spread},
                        {"scale", at::tensor({centre, spread}, at::kFloat).to(call.device())}}};
  }

private:
  latent_shape shape_;
  image_encoder encoder_;
  image_autoencoder autoencoder_;
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
  [[nodiscard]] std::int64_t rows(const program_call& call) const override { return call.in.at("means").size(0); }
  [[nodiscard]] at::Tensor initial(const program_call& call) const override {
    return net_.parameters().initial(drawn_by(call, weights_draw));
  }
  /// E |v - v_theta(x_t, t, c)|^2, with x_0 drawn anew from the normal of each row.
  [[nodiscard]] at::Tensor loss(const program_call& call, const at::Tensor& weights, std::int64_t step) const override {
    const auto where = positions(call, step);
    const auto count = std::ssize(where);
    const auto index = numbers(where, call.device());
    const std::array<std::int64_t, 2> latents{count, shape().latent};
    const auto fresh = normal_numbers(latents, drawn_by(call, latent_draw, step)).to(call.device());
    const auto x_0 =
        call.in.at("means").index_select(0, index) + call.in.at("deviations").index_select(0, index) * fresh;
    const auto noise = normal_numbers(latents, drawn_by(call, noise_draw, step)).to(call.device());

    std::vector<std::int64_t> times, dropped;
    rng_stream draw(drawn_by(call, rows_draw, step));
    for (std::int64_t i = 0; i < count; ++i) {
      times.push_back(static_cast<std::int64_t>(draw.below(diffusion_times)));
      dropped.push_back(draw.uniform() < 0.1);
    }
    const auto x_t = noised(schedule_, x_0, noise, times).unsqueeze(0);
    const auto told = net_.condition(weights, conditions(call, where, step).unsqueeze(0), latent_denoiser::plain);
    const auto left_out = numbers(dropped, call.device()).to(at::kBool).view({1, count, 1});
    const auto known = at::where(left_out, net_.no_condition(weights).view({1, 1, -1}), told);
    const auto v =
        net_.velocities(weights, x_t, known + net_.time(weights, times).unsqueeze(0), latent_denoiser::plain);
    return (v - velocities(schedule_, x_0, noise, times).unsqueeze(0)).square().mean();
  }

private:
  /// Every second row is told its own embedding, the others the mean of some of their kind. [B, E]
  [[nodiscard]] at::Tensor conditions(const program_call& call, const std::vector<std::int64_t>& where,
                                      std::int64_t step) const {
    constexpr std::uint64_t members_max = 50;
    const auto kinds = call.in.at("kinds").cpu();
    const auto* const kind = kinds.const_data_ptr<std::int64_t>();
    std::vector<std::vector<std::int64_t>> members(static_cast<std::size_t>(shape().kinds));
    for (std::int64_t row = 0; row < kinds.size(0); ++row)
      members[static_cast<std::size_t>(kind[row])].push_back(row);
    rng_stream draw(drawn_by(call, members_draw, step));
    std::vector<std::int64_t> chosen, first;
    for (std::size_t i = 0; i < where.size(); ++i) {
      first.push_back(std::ssize(chosen));
      if (i % 2 == 0) {
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
program_ref autoencoder_training(const latent_shape& shape, std::int64_t passes, std::int64_t batch) {
  return std::make_shared<const train_autoencoder>(shape, passes, batch);
}
program_ref latent_encoding(const latent_shape& shape) { return std::make_shared<const encode_rows>(shape); }
program_ref denoiser_training(const latent_shape& shape, std::int64_t passes, std::int64_t batch) {
  return std::make_shared<const train_denoiser>(shape, passes, batch);
}

} // namespace mneme
