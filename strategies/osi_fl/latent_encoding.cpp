#include "strategies/osi_fl/latent_encoding.hpp"
#include "runtime/method/gradients.hpp"
#include "strategies/osi_fl/latent_nets.hpp"
#include "strategies/osi_fl/sliced_training.hpp"
#include <ATen/ATen.h>
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>
namespace mneme {
namespace {

// More axes: C channels, H height, W width, S search directions, S >= L.

constexpr std::int64_t rows_at_once = 256;

std::vector<std::int64_t> next_rows(std::int64_t first, std::int64_t rows) {
  std::vector<std::int64_t> range(static_cast<std::size_t>(std::min(rows_at_once, rows - first)));
  std::iota(range.begin(), range.end(), first);
  return range;
}

/// Values for each channel: [C].
at::Tensor by_channel(const program_call& call, const std::vector<float>& values) {
  return at::tensor(values, at::kFloat).to(call.device());
}

/// Rows as pixels in [0, 1].
at::Tensor pixels_of(const program_call& call, const std::vector<std::int64_t>& positions) {
  const auto& source = *call.samples.source;
  return pixel_normalization{.scale = source.scale, .shift = source.shift}.pixels_of(call.images(positions));
}

// -- components -------------------------------------------------------------------------------------------------------

/// Subspace iteration (Halko, Martinsson and Tropp 2011, "Finding structure with randomness", Algorithm 4.4). Each pass
/// multiplies orthonormal directions by the covariance of the rows and orthonormalizes them again. The program iterates
/// more directions than needed, because the last ones converge slowest.
class analyze_components final : public looped_program {
public:
  analyze_components(const latent_shape& shape, std::int64_t passes) : shape_(shape), passes_(passes) {}
  [[nodiscard]] std::string name() const override { return "principal components"; }
  [[nodiscard]] std::string identity() const override { return fmt::format("{} {}", shape_.identity(), passes_); }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job&) const override {
    return {{.name = "basis", .shape = {shape_.latent(), shape_.pixels()}},
            {.name = "centre", .shape = {shape_.pixels()}},
            {.name = "spread", .shape = {shape_.latent()}},
            {.name = "scale", .shape = {shape_.image[0]}},
            {.name = "shift", .shape = {shape_.image[0]}}};
  }

protected:
  /// Runs one pass in each slice.
  [[nodiscard]] slice_result run_call(const program_call& call) const override {
    const auto center = call.slice == 0 ? mean_of(call) : call.state.at("centre");
    const auto directions = call.slice == 0 ? first_directions(call) : call.state.at("directions");
    const auto moved = multiplied(call, center, directions);
    if (call.slice + 1 == passes_) {
      auto tensors = components(center, directions, moved);
      tensors["scale"] = by_channel(call, call.samples.source->scale);
      tensors["shift"] = by_channel(call, call.samples.source->shift);
      return {.tensors = std::move(tensors)};
    }
    return {.tensors = {{"centre", center}, {"directions", std::get<0>(at::linalg_qr(moved))}},
            .finished = false,
            .progress = static_cast<double>(call.slice + 1) / static_cast<double>(passes_)};
  }

private:
  [[nodiscard]] at::Tensor mean_of(const program_call& call) const {
    const auto rows = call.samples.size();
    auto sum = at::zeros({shape_.pixels()}, at::TensorOptions(at::kDouble).device(call.device()));
    for (std::int64_t first = 0; first < rows; first += rows_at_once)
      sum = sum + pixels_of(call, next_rows(first, rows)).flatten(1).sum(0, false, at::kDouble);
    return (sum / static_cast<double>(rows)).to(at::kFloat);
  }

  /// Draws orthonormal start directions: [D, S] float64.
  [[nodiscard]] at::Tensor first_directions(const program_call& call) const {
    constexpr std::int64_t more = 16;
    const auto count = std::min(shape_.latent() + more, shape_.pixels());
    const auto drawn = normal_numbers({shape_.pixels(), count}, call.stream).to(call.device());
    return std::get<0>(at::linalg_qr(drawn.to(at::kDouble)));
  }

  /// X' X V / n of the centered rows X [n, D] and directions V: [D, S] float64. Products are in float32, sums in
  /// float64.
  [[nodiscard]] static at::Tensor multiplied(const program_call& call, const at::Tensor& center,
                                             const at::Tensor& directions) {
    const auto rows = call.samples.size();
    const auto narrow = directions.to(at::kFloat);
    auto sum = at::zeros_like(directions);
    for (std::int64_t first = 0; first < rows; first += rows_at_once) {
      const auto x = pixels_of(call, next_rows(first, rows)).flatten(1) - center;
      sum = sum + at::mm(x.t(), at::mm(x, narrow)).to(at::kDouble);
    }
    return sum / static_cast<double>(rows);
  }

  /// Computes the components within the directions (Rayleigh-Ritz), in order of decreasing variance. Latents are
  /// divided by the root of a component's standard deviation, so that components of large variance emerge first from
  /// the noise, like coarse structure in images. The mean variance of the latents is 1. A standard deviation counts as
  /// at least a thousandth of the largest, to avoid division by 0.
  [[nodiscard]] named_tensors components(const at::Tensor& center, const at::Tensor& directions,
                                         const at::Tensor& moved) const {
    const auto within = at::mm(directions.t(), moved);
    const auto [variances, turns] = at::linalg_eigh((within + within.t()) * 0.5); // both are in ascending order
    const auto L = shape_.latent();
    const auto deviations = variances.flip(0).narrow(0, 0, L).clamp_min(0.0).sqrt();
    const auto widest = std::max(deviations.max().item<double>(), 1e-6);
    const auto spread = deviations.clamp_min(widest * 1e-3).sqrt();
    const auto variance = (deviations / spread).square().mean().item<double>();
    const auto basis = at::mm(directions, turns.flip(1).narrow(1, 0, L)).t().contiguous();
    return {{"basis", basis.to(at::kFloat)},
            {"centre", center},
            {"spread", (spread * std::sqrt(std::max(variance, 1e-12))).to(at::kFloat)}};
  }

  latent_shape shape_;
  std::int64_t passes_;
};

// -- encoding of rows -------------------------------------------------------------------------------------------------

class encode_rows final : public looped_program {
public:
  explicit encode_rows(const latent_shape& shape) : shape_(shape), encoder_(shape) {}
  [[nodiscard]] std::string name() const override { return "encoding of public rows"; }
  [[nodiscard]] std::string identity() const override { return shape_.identity(); }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job& job) const override {
    const auto rows = job.samples.size();
    return {{.name = "embeddings", .shape = {rows, shape_.embedding}},
            {.name = "latents", .shape = {rows, shape_.latent()}}};
  }

protected:
  [[nodiscard]] slice_result run_call(const program_call& call) const override {
    const image_components components(call.in);
    const auto* const given = call.in.find("embeddings");
    std::vector<at::Tensor> embeddings, latents;
    for (std::int64_t first = 0; first < call.samples.size(); first += rows_at_once) {
      const auto where = next_rows(first, call.samples.size());
      if (!given)
        embeddings.push_back(encoder_.embeddings(call.in.at("encoder"), call.images(where)).detach());
      latents.push_back(components.latents(pixels_of(call, where)));
    }
    return {.tensors = {{"embeddings", given ? *given : at::cat(embeddings)}, {"latents", at::cat(latents)}}};
  }

private:
  latent_shape shape_;
  image_encoder encoder_;
};

} // namespace

program_ref component_analysis(const latent_shape& shape, std::int64_t passes) {
  return std::make_shared<const analyze_components>(shape, passes);
}
program_ref latent_encoding(const latent_shape& shape) { return std::make_shared<const encode_rows>(shape); }

} // namespace mneme
