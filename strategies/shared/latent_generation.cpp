#include "runtime/base/check.hpp"
#include "runtime/models/diffusion.hpp"
#include "strategies/shared/latent_programs.hpp"
#include "strategies/shared/sliced_training.hpp"
#include <ATen/ATen.h>
#include <algorithm>
#include <fmt/format.h>
#include <numeric>
namespace mneme {
namespace {

// -- images from conditions -------------------------------------------------------------------------------------------

class generate final : public program {
public:
  generate(const latent_shape& shape, const generation_settings& with)
      : shape_(shape), with_(with), encoder_(shape), denoiser_(shape),
        schedule_(cosine_schedule(diffusion_times)) {}

  [[nodiscard]] std::string name() const override { return "generation"; }
  [[nodiscard]] std::string identity() const override {
    return fmt::format("{} {} {} {} {}", shape_.identity(), with_.images, with_.candidates, with_.steps,
                       with_.guidance);
  }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job&) const override {
    const auto [C, H, W] = shape_.image;
    return {{.name = "images", .shape = {with_.images, C, H, W}, .type = at::kByte}};
  }
  [[nodiscard]] std::int64_t stacked_bytes(const program_job&) const override {
    return drawn() * shape_.units * std::int64_t{sizeof(float)};
  }

  [[nodiscard]] std::vector<program_step> run(std::span<const program_call> calls) const override {
    std::vector<program_step> made;
    for (std::size_t first = 0; first < calls.size();) { // those that share their nets lie side by side
      auto last = first + 1;
      while (last < calls.size() && share_nets(calls[first], calls[last]))
        ++last;
      for (auto& images : images_of(calls.subspan(first, last - first)))
        made.push_back({.tensors = {{"images", std::move(images)}}});
      first = last;
    }
    return made;
  }

private:
  /// Images that are made for each condition, kept or not.
  [[nodiscard]] std::int64_t drawn() const { return with_.images * with_.candidates; }

  [[nodiscard]] static bool share_nets(const program_call& a, const program_call& b) {
    const auto is_shared = [&](const char* name) {
      return a.in.at(name).const_data_ptr() == b.in.at(name).const_data_ptr();
    };
    const bool one = a.in.find("encoder"), other = b.in.find("encoder");
    return is_shared("denoiser") && is_shared("basis") && one == other && (!one || is_shared("encoder"));
  }

  [[nodiscard]] std::vector<at::Tensor> images_of(std::span<const program_call> calls) const {
    std::vector<at::Tensor> conditions, noise;
    for (const auto& call : calls) {
      conditions.push_back(call.in.at("condition").view({1, shape_.embedding}));
      noise.push_back(normal_numbers({drawn(), shape_.latent()}, call.stream).to(call.device()));
    }
    const auto& nets = calls.front().in;
    const image_components components(nets);
    const auto latents = latents_of(nets.at("denoiser"), at::stack(conditions), at::stack(noise));
    const auto bytes = (components.pixels(latents) * 255.0).round().to(at::kByte);
    const auto [C, H, W] = shape_.image;
    std::vector<at::Tensor> images;
    for (std::size_t k = 0; k < calls.size(); ++k) {
      const auto made = bytes[static_cast<std::int64_t>(k)].reshape({drawn(), C, H, W});
      images.push_back(with_.candidates == 1 ? made.clone() : recognised(nets, components, conditions[k], made));
    }
    return images;
  }

  /// Those that the encoder takes for what the condition stands for, in their order; where they do not suffice, the
  /// likeliest others behind them. Call by call: convolutions of a stack would have other bits.
  [[nodiscard]] at::Tensor recognised(const tensor_map& nets, const image_components& components,
                                      const at::Tensor& condition, const at::Tensor& made) const {
    const auto& net = nets.at("encoder");
    const auto wanted = encoder_.logits(net, condition).argmax(1).item<std::int64_t>();
    const auto seen = encoder_.embeddings(net, components.normalised(made));
    const auto chances = at::softmax(encoder_.logits(net, seen), 1).detach();
    const auto right = (chances.argmax(1) == wanted).cpu();
    const auto likely = chances.select(1, wanted).contiguous().cpu();
    std::vector<std::int64_t> order(static_cast<std::size_t>(drawn()));
    std::iota(order.begin(), order.end(), 0);
    const auto* const is_right = right.const_data_ptr<bool>();
    const auto* const chance = likely.const_data_ptr<float>();
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return is_right[a] != is_right[b] ? is_right[a] : !is_right[a] && chance[a] > chance[b];
    });
    order.resize(static_cast<std::size_t>(with_.images));
    return made.index_select(0, at::tensor(order, at::kLong).to(made.device()));
  }

  /// x_0 of noise [K, Z, L] under conditions [K, 1, E].
  [[nodiscard]] at::Tensor latents_of(const at::Tensor& net, const at::Tensor& conditions, at::Tensor x) const {
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

  latent_shape shape_;
  generation_settings with_;
  image_encoder encoder_;
  latent_denoiser denoiser_;
  diffusion_schedule schedule_;
};

// -- conditions from rows ---------------------------------------------------------------------------------------------

class sum_up final : public looped_program {
public:
  sum_up(const latent_shape& shape, std::int64_t classes) : shape_(shape), classes_(classes), encoder_(shape) {}
  [[nodiscard]] std::string name() const override { return "class means"; }
  [[nodiscard]] std::string identity() const override { return fmt::format("{} {}", shape_.identity(), classes_); }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job&) const override {
    return {{.name = "means", .shape = {classes_, shape_.embedding}},
            {.name = "counts", .shape = {classes_}, .type = at::kLong}};
  }

protected:
  /// mu_k = sum of e_i over the rows of class k / their number, summed in float64 (OSI-FL, eq. 9).
  [[nodiscard]] program_step run_call(const program_call& call) const override {
    constexpr std::int64_t rows_at_once = 256;
    const auto labels = call.labels();
    auto sums = at::zeros({classes_, shape_.embedding}, labels.options().dtype(at::kDouble));
    auto counts = at::zeros({classes_}, labels.options());
    for (std::int64_t first = 0; first < call.samples.size(); first += rows_at_once) {
      const auto count = std::min(rows_at_once, call.samples.size() - first);
      std::vector<std::int64_t> where(static_cast<std::size_t>(count));
      std::iota(where.begin(), where.end(), first);
      const auto seen = encoder_.embeddings(call.in.at("encoder"), call.images(where)).detach().to(at::kDouble);
      // A product with one-hot rows: sums in one order on every device.
      const auto members = at::one_hot(labels.narrow(0, first, count), classes_);
      sums = sums + at::mm(members.to(at::kDouble).t(), seen);
      counts = counts + members.sum(0);
    }
    const auto divisors = counts.clamp_min(1).to(at::kDouble).unsqueeze(1);
    return {.tensors = {{"means", (sums / divisors).to(at::kFloat)}, {"counts", counts}}};
  }

private:
  latent_shape shape_;
  std::int64_t classes_;
  image_encoder encoder_;
};

} // namespace

program_ref latent_generation(const latent_shape& shape, const generation_settings& with) {
  return std::make_shared<const generate>(shape, with);
}
program_ref class_means(const latent_shape& shape, std::int64_t classes) {
  return std::make_shared<const sum_up>(shape, classes);
}

} // namespace mneme
