#include "strategies/osi_fl/diffusion/guided_images.hpp"
#include "runtime/models/diffusion.hpp"
#include "strategies/osi_fl/sliced_training.hpp"
#include <ATen/ATen.h>
#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
namespace mneme {
namespace {

constexpr std::int64_t sd_times = 1000;
constexpr double sd_first_beta = 0.00085, sd_last_beta = 0.012;

const diffusion_schedule& sd_schedule() {
  static const auto schedule = scaled_linear_schedule(sd_times, sd_first_beta, sd_last_beta);
  return schedule;
}

class generate_images final : public program {
public:
  generate_images(std::shared_ptr<const image_diffusion> by, std::shared_ptr<const captioner> nothing,
                  std::array<std::int64_t, 3> image, std::int64_t count)
      : by_(std::move(by)), nothing_(std::move(nothing)), image_(image), count_(count) {}

  [[nodiscard]] std::string name() const override { return "generation"; }
  [[nodiscard]] std::string identity() const override {
    return fmt::format("{} {} {} {}", by_->identity(), nothing_->identity(), fmt::join(image_, "x"), count_);
  }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job&) const override {
    return {{.name = "images", .shape = {count_, image_[0], image_[1], image_[2]}, .type = at::kByte}};
  }
  [[nodiscard]] std::int64_t stacked_bytes(const program_job&) const override {
    return 2 * count_ * nothing_->embedding_width() * static_cast<std::int64_t>(sizeof(float));
  }

  [[nodiscard]] std::vector<slice_result> run(std::span<const program_call> calls) const override {
    const auto device = calls.front().device();
    const auto slice = calls.front().slice;
    std::vector<at::Tensor> latents, condition_rows;
    for (const auto& call : calls) {
      latents.push_back(slice == 0 ? noise_of(call) : call.state.at("latents"));
      condition_rows.push_back(call.in.at("condition").view({1, -1}).expand({count_, -1}));
    }
    const auto nothing = nothing_->embeddings({""}, device).expand({std::ssize(calls) * count_, -1});
    const auto after = by_->step(slice, at::cat(latents), at::cat(condition_rows), nothing);
    const bool last = slice + 1 == by_->steps();
    const auto shown = last ? images_of(after) : after;
    std::vector<slice_result> steps;
    for (const auto& part : shown.split(count_))
      steps.push_back({.tensors = {{last ? "images" : "latents", part.clone()}},
                       .finished = last,
                       .progress = static_cast<double>(slice + 1) / static_cast<double>(by_->steps())});
    return steps;
  }

private:
  [[nodiscard]] at::Tensor noise_of(const program_call& call) const {
    const auto [channels, height, width] = by_->latent_shape();
    return normal_numbers({count_, channels, height, width}, call.stream).to(call.device());
  }

  [[nodiscard]] at::Tensor images_of(const at::Tensor& latents) const {
    auto shown = by_->images(latents);
    if (shown.size(2) != image_[1] || shown.size(3) != image_[2])
      shown = at::_upsample_bilinear2d_aa(shown, {image_[1], image_[2]}, false);
    if (image_[0] == 1) {
      const auto red = shown.narrow(1, 0, 1), green = shown.narrow(1, 1, 1), blue = shown.narrow(1, 2, 1);
      shown = red * 0.299 + green * 0.587 + blue * 0.114;
    }
    return (shown.clamp(0.0, 1.0) * 255.0).round().to(at::kByte).contiguous();
  }

  std::shared_ptr<const image_diffusion> by_;
  std::shared_ptr<const captioner> nothing_;
  std::array<std::int64_t, 3> image_;
  std::int64_t count_;
};

} // namespace

image_diffusion::image_diffusion(diffusion_parts parts, std::int64_t steps, double guidance)
    : parts_(std::move(parts)), guidance_(guidance) {
  for (auto i = steps; i-- > 0;)
    times_.push_back(i * (sd_times / steps) + 1);
}

std::string image_diffusion::identity() const {
  return fmt::format("{}, {}, {} steps, guidance {}", parts_.denoiser.net->identity(), parts_.decoder.net->identity(),
                     steps(), guidance_);
}

at::Tensor image_diffusion::noise_in(const at::Tensor& latents, std::int64_t time,
                                     const at::Tensor& condition_rows) const {
  const auto count = latents.size(0);
  const auto when = at::full({count, 1}, static_cast<double>(time), latents.options());
  const auto rows = at::cat({latents.flatten(1), when, condition_rows}, 1).view({count, 1, 1, -1});
  return results_of(parts_.denoiser, rows).view(latents.sizes());
}

at::Tensor image_diffusion::step(std::int64_t number, const at::Tensor& latents, const at::Tensor& condition_rows,
                                 const at::Tensor& nothing) const {
  const auto& schedule = sd_schedule();
  const auto time = times_[static_cast<std::size_t>(number)];
  const auto before = std::max<std::int64_t>(time - sd_times / steps(), 0); // the last step ends at time 0 instead of 1
  at::Tensor noise;
  if (guidance_ == 1.0)
    noise = noise_in(latents, time, condition_rows);
  else {
    const auto both = noise_in(at::cat({latents, latents}), time, at::cat({nothing, condition_rows})).chunk(2);
    noise = apply_guidance(both[0], both[1], guidance_);
  }
  return ddim({.signal = schedule.at(time), .signal_before = schedule.at(before)}, latents, noise);
}

at::Tensor image_diffusion::images(const at::Tensor& latents) const {
  const auto flat = results_of(parts_.decoder, latents);
  const auto side = static_cast<std::int64_t>(std::lround(std::sqrt(static_cast<double>(flat.size(1)) / 3.0)));
  return (flat.view({-1, 3, side, side}) / 2.0 + 0.5).clamp(0.0, 1.0);
}

program_ref guided_images(std::shared_ptr<const image_diffusion> by, std::shared_ptr<const captioner> nothing,
                          std::array<std::int64_t, 3> image, std::int64_t count) {
  return std::make_shared<const generate_images>(std::move(by), std::move(nothing), image, count);
}

} // namespace mneme
