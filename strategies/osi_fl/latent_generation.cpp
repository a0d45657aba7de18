#include "strategies/osi_fl/latent_generation.hpp"
#include "runtime/base/check.hpp"
#include "strategies/osi_fl/latent_training.hpp"
#include "strategies/osi_fl/sliced_training.hpp"
#include <ATen/ATen.h>
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>
namespace mneme {

// -- sampling of latents ----------------------------------------------------------------------------------------------

latent_sampler::latent_sampler(const latent_shape& shape, const generation_settings& settings)
    : settings_(settings), denoiser_(shape), schedule_(cosine_schedule(diffusion_times)) {}

at::Tensor latent_sampler::latents(const at::Tensor& net, const at::Tensor& conditions, at::Tensor x) const {
  constexpr double latent_bound = 6.0;
  const auto times = sampling_times(diffusion_times, settings_.steps);
  const auto condition_rows = denoiser_.condition(net, conditions, latent_denoiser::stacked);
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
    auto noise = noise_under(condition_rows);
    // eps(null) + w (eps(c) - eps(null)) (OSI-FL, eq. 5)
    if (settings_.guidance != 1.0)
      noise = apply_guidance(noise_under(nothing), noise, settings_.guidance);
    x = ddim(step, x, noise);
  }
  return x;
}

// -- moments ----------------------------------------------------------------------------------------------------------

namespace {

/// C^p of a covariance [L, L] float64. Eigenvalues count as at least 1e-4 of the largest.
at::Tensor power(const at::Tensor& covariance, double p) {
  const auto [widths, directions] = at::linalg_eigh(covariance);
  const auto least = std::max(widths.max().item<double>() * 1e-4, 1e-12);
  return at::mm(directions * widths.clamp_min(least).pow(p), directions.t());
}

at::Tensor covariance_of(const at::Tensor& centered) {
  return at::mm(centered.t(), centered) / static_cast<double>(centered.size(0));
}

} // namespace

moment_map::moment_map(const at::Tensor& generated, const at::Tensor& rows) {
  const auto x = generated.to(at::kDouble), y = rows.to(at::kDouble);
  const auto mean = x.mean(0), spread = covariance_of(x - mean);
  const double n = static_cast<double>(rows.size(0)), share = n / (n + static_cast<double>(rows.size(1)));
  from = mean.to(at::kFloat);
  to = from;
  turn = at::eye(rows.size(1), from.options());
  if (rows.size(0) == 0)
    return;
  const auto center = y.mean(0);
  to = (share * center + (1.0 - share) * mean).to(at::kFloat);
  const auto blended = share * covariance_of(y - center) + (1.0 - share) * spread;
  turn = at::mm(power(spread, -0.5), power(blended, 0.5)).to(at::kFloat);
}

at::Tensor moment_map::moved(const at::Tensor& latents) const { return at::mm(latents - from, turn) + to; }

namespace {

/// Handles one kind of rows (latent_generator.hpp) per slice: samples latents under the mean embedding of these rows,
/// and maps the latents' moments to those of the rows.
class match_moments final : public looped_program {
public:
  match_moments(const latent_shape& shape, const generation_settings& settings)
      : shape_(shape), settings_(settings), sampler_(shape, settings) {}
  [[nodiscard]] std::string name() const override { return "moments of latents"; }
  [[nodiscard]] std::string identity() const override {
    return fmt::format("{} {} {}", shape_.identity(), settings_.steps, settings_.guidance);
  }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job&) const override {
    const auto L = shape_.latent();
    return {{.name = moment_tensors[0], .shape = {shape_.kinds, L, L}},
            {.name = moment_tensors[1], .shape = {shape_.kinds, L}},
            {.name = moment_tensors[2], .shape = {shape_.kinds, L}}};
  }

protected:
  [[nodiscard]] slice_result run_call(const program_call& call) const override {
    const auto kind = static_cast<std::int64_t>(call.slice);
    const auto map = map_of(call, kind);
    const std::array parts{map.turn, map.from, map.to};
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
    constexpr std::int64_t generated = 1'000;
    const auto members = (call.in.at("kinds") == kind).nonzero().flatten();
    const auto rows = call.in.at("latents").index_select(0, members);
    const auto embeddings = call.in.at("embeddings").index_select(0, members).to(at::kDouble);
    const auto condition = (embeddings.sum(0) / static_cast<double>(std::max<std::int64_t>(members.size(0), 1)));
    auto key = call.stream;
    key.index = static_cast<std::uint64_t>(kind);
    const auto noise = normal_numbers({1, generated, shape_.latent()}, key).to(call.device());
    const auto latents = sampler_.latents(call.in.at("denoiser"), condition.to(at::kFloat).view({1, 1, -1}), noise);
    return {latents[0], rows};
  }

  latent_shape shape_;
  generation_settings settings_;
  latent_sampler sampler_;
};

} // namespace

program_ref moment_matching(const latent_shape& shape, const generation_settings& settings) {
  return std::make_shared<const match_moments>(shape, settings);
}

namespace {

// -- generation of images ---------------------------------------------------------------------------------------------

class generate final : public program {
public:
  generate(const latent_shape& shape, const generation_settings& settings)
      : shape_(shape), settings_(settings), encoder_(shape), sampler_(shape, settings) {}

  [[nodiscard]] std::string name() const override { return "generation"; }
  [[nodiscard]] std::string identity() const override {
    return fmt::format("{} {} {} {} {}", shape_.identity(), settings_.images, settings_.candidates, settings_.steps,
                       settings_.guidance);
  }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job&) const override {
    const auto [C, H, W] = shape_.image;
    return {{.name = "images", .shape = {settings_.images, C, H, W}, .type = at::kByte}};
  }
  [[nodiscard]] std::int64_t stacked_bytes(const program_job&) const override {
    return drawn() * shape_.units * std::int64_t{sizeof(float)};
  }

  [[nodiscard]] std::vector<slice_result> run(std::span<const program_call> calls) const override {
    std::vector<slice_result> steps;
    for (std::size_t first = 0; first < calls.size();) { // calls that share their nets are adjacent
      auto last = first + 1;
      while (last < calls.size() && share_nets(calls[first], calls[last]))
        ++last;
      for (auto& images : images_of(calls.subspan(first, last - first)))
        steps.push_back({.tensors = {{"images", std::move(images)}}});
      first = last;
    }
    return steps;
  }

private:
  /// Number of images per condition before selection.
  [[nodiscard]] std::int64_t drawn() const { return settings_.images * settings_.candidates; }

  [[nodiscard]] static bool share_nets(const program_call& a, const program_call& b) {
    const auto is_shared = [&](const char* name) {
      return a.in.at(name).const_data_ptr() == b.in.at(name).const_data_ptr();
    };
    const auto is_shared_or_absent = [&](const char* name) {
      const bool in_a = a.in.find(name), in_b = b.in.find(name);
      return in_a == in_b && (!in_a || is_shared(name));
    };
    return is_shared("denoiser") && is_shared("basis") && is_shared_or_absent("encoder") &&
           is_shared_or_absent(moment_tensors[0]);
  }

  [[nodiscard]] std::vector<at::Tensor> images_of(std::span<const program_call> calls) const {
    std::vector<at::Tensor> conditions, noise;
    for (const auto& call : calls) {
      conditions.push_back(call.in.at("condition").view({1, shape_.embedding}));
      noise.push_back(normal_numbers({drawn(), shape_.latent()}, call.stream).to(call.device()));
    }
    const auto& nets = calls.front().in;
    const image_components components(nets);
    auto latents = sampler_.latents(nets.at("denoiser"), at::stack(conditions), at::stack(noise));
    if (nets.find(moment_tensors.front()))
      latents = matched(nets, conditions, latents);
    const auto bytes = (components.pixels(latents) * 255.0).round().to(at::kByte);
    const auto [C, H, W] = shape_.image;
    std::vector<at::Tensor> images;
    for (std::size_t k = 0; k < calls.size(); ++k) {
      const auto drawn_images = bytes[static_cast<std::int64_t>(k)].reshape({drawn(), C, H, W});
      images.push_back(settings_.candidates == 1 ? drawn_images.clone()
                                                 : recognized(nets, components, conditions[k], drawn_images));
    }
    return images;
  }

  /// The kind that the encoder assigns to a condition [1, E].
  [[nodiscard]] std::int64_t kind_of(const tensor_map& nets, const at::Tensor& condition) const {
    return encoder_.logits(nets.at("encoder"), condition).argmax(1).item<std::int64_t>();
  }

  /// Maps latents [K, Z, L] to the moments of their kinds. Conditions are processed one at a time, because a product of
  /// the whole stack would change the bits.
  [[nodiscard]] at::Tensor matched(const tensor_map& nets, const std::vector<at::Tensor>& conditions,
                                   const at::Tensor& latents) const {
    std::vector<at::Tensor> moved;
    for (std::size_t k = 0; k < conditions.size(); ++k) {
      const auto kind = kind_of(nets, conditions[k]);
      const moment_map to(nets.at(moment_tensors[0])[kind], nets.at(moment_tensors[1])[kind],
                          nets.at(moment_tensors[2])[kind]);
      moved.push_back(to.moved(latents[static_cast<std::int64_t>(k)]));
    }
    return at::stack(moved);
  }

  /// Selects images that the encoder assigns to the condition's kind, in order. If there are too few, adds the images
  /// for which this kind is most likely. Runs call by call, because a convolution of the whole stack would change the
  /// bits.
  [[nodiscard]] at::Tensor recognized(const tensor_map& nets, const image_components& components,
                                      const at::Tensor& condition, const at::Tensor& images) const {
    const auto& net = nets.at("encoder");
    const auto kind = kind_of(nets, condition);
    const auto embeddings = encoder_.embeddings(net, components.normalized(images));
    const auto chances = at::softmax(encoder_.logits(net, embeddings), 1).detach();
    const auto right = (chances.argmax(1) == kind).cpu();
    const auto likely = chances.select(1, kind).contiguous().cpu();
    std::vector<std::int64_t> order(static_cast<std::size_t>(drawn()));
    std::iota(order.begin(), order.end(), 0);
    const auto* const is_right = right.const_data_ptr<bool>();
    const auto* const chance = likely.const_data_ptr<float>();
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return is_right[a] != is_right[b] ? is_right[a] : !is_right[a] && chance[a] > chance[b];
    });
    order.resize(static_cast<std::size_t>(settings_.images));
    return images.index_select(0, at::tensor(order, at::kLong).to(images.device()));
  }

  latent_shape shape_;
  generation_settings settings_;
  image_encoder encoder_;
  latent_sampler sampler_;
};

// -- class means of rows ----------------------------------------------------------------------------------------------

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
  /// mu_k = mean of e_i over the rows of class k, summed in float64 (OSI-FL, eq. 9).
  [[nodiscard]] slice_result run_call(const program_call& call) const override {
    constexpr std::int64_t rows_at_once = 256;
    const auto labels = call.labels();
    auto sums = at::zeros({classes_, shape_.embedding}, labels.options().dtype(at::kDouble));
    auto counts = at::zeros({classes_}, labels.options());
    for (std::int64_t first = 0; first < call.samples.size(); first += rows_at_once) {
      const auto count = std::min(rows_at_once, call.samples.size() - first);
      std::vector<std::int64_t> where(static_cast<std::size_t>(count));
      std::iota(where.begin(), where.end(), first);
      const auto embeddings = encoder_.embeddings(call.in.at("encoder"), call.images(where)).detach().to(at::kDouble);
      // A product with one-hot rows sums in the same order on every device.
      const auto members = at::one_hot(labels.narrow(0, first, count), classes_);
      sums = sums + at::mm(members.to(at::kDouble).t(), embeddings);
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

program_ref latent_generation(const latent_shape& shape, const generation_settings& settings) {
  return std::make_shared<const generate>(shape, settings);
}
program_ref class_means(const latent_shape& shape, std::int64_t classes) {
  return std::make_shared<const sum_up>(shape, classes);
}

} // namespace mneme
