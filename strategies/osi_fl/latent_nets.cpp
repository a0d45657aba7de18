#include "strategies/osi_fl/latent_nets.hpp"
#include "runtime/base/check.hpp"
#include "runtime/models/function.hpp"
#include <ATen/ATen.h>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <numeric>
namespace mneme {

// -- parameters and pixels --------------------------------------------------------------------------------------------

namespace {

std::int64_t product(std::span<const std::int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

} // namespace

std::size_t parameter_list::add(std::vector<std::int64_t> shape, double bound) {
  const auto count = product(shape);
  entries_.push_back({.shape = std::move(shape), .size = count, .bound = bound});
  size_ += count;
  return entries_.size() - 1;
}

std::size_t parameter_list::add_layer(const std::vector<std::int64_t>& shape, bool zeros) {
  const auto inputs = product(std::span(shape).subspan(1));
  const double bound = zeros ? 0.0 : 1.0 / std::sqrt(static_cast<double>(inputs));
  const auto place = add(shape, bound);
  add({shape[0]}, bound);
  return place;
}

at::Tensor parameter_list::initial(const rng_key& key) const {
  auto flat = at::zeros({size_}, at::kFloat);
  auto* value = flat.mutable_data_ptr<float>();
  auto own = key;
  for (own.index = 0; own.index < entries_.size(); ++own.index) {
    const auto& [shape, size, bound] = entries_[own.index];
    rng_stream draw(own);
    for (std::int64_t i = 0; i < size; ++i, ++value)
      if (bound > 0.0)
        *value = static_cast<float>(draw.uniform(-bound, bound));
  }
  return flat;
}

std::vector<at::Tensor> parameter_list::parts(const at::Tensor& flat) const {
  MNEME_CHECK(flat.dim() == 1 && flat.size(0) == size_, flat.sizes(), size_);
  std::vector<std::int64_t> sizes;
  for (const auto& single : entries_)
    sizes.push_back(single.size);
  auto views = flat.split_with_sizes(sizes, 0);
  for (std::size_t i = 0; i < views.size(); ++i)
    views[i] = views[i].view(entries_[i].shape);
  return views;
}

at::Tensor pixel_normalization::pixels_of(const at::Tensor& rows) const {
  const auto by_channel = [&](const std::vector<float>& values) {
    return at::tensor(values, at::kFloat).view({1, -1, 1, 1}).to(rows.device());
  };
  return ((rows.detach() - by_channel(shift)) / by_channel(scale) / 255.0).clamp(0.0, 1.0);
}

// -- the nets ---------------------------------------------------------------------------------------------------------

namespace {

constexpr double logits_scale = 8.0; // factor by which unit-length embeddings are multiplied
constexpr std::int64_t time_numbers = 64, flat_units = 256;

/// Length of a side after `halvings` convolutions with stride 2, kernel 3 and padding 1.
std::int64_t halved(std::int64_t side, int halvings) {
  for (int i = 0; i < halvings; ++i)
    side = (side + 1) / 2;
  return side;
}

at::Tensor silu(const at::Tensor& x) { return at::silu(x); }

} // namespace

std::string latent_shape::identity() const {
  return fmt::format("{}x{}x{} {} {} {} {} {}", image[0], image[1], image[2], kinds, embedding, latent(), units,
                     blocks);
}

// -- encoder ----------------------------------------------------------------------------------------------------------

image_encoder::image_encoder(const latent_shape& shape) : shape_(shape) {
  if (shape.convolves()) {
    list_.add_layer({16, shape.image[0], 3, 3});
    list_.add_layer({32, 16, 3, 3});
    list_.add_layer({64, 32, 3, 3});
    list_.add_layer({shape.embedding, 64 * halved(shape.image[1], 3) * halved(shape.image[2], 3)});
  } else {
    list_.add_layer({flat_units, shape.pixels()});
    list_.add_layer({shape.embedding, flat_units});
  }
  head_ = list_.add_layer({shape.kinds, shape.embedding});
}

at::Tensor image_encoder::embeddings(const at::Tensor& flat, const at::Tensor& images) const {
  const auto p = list_.parts(flat);
  auto x = images;
  std::size_t next = 0;
  if (shape_.convolves())
    for (; next < 6; next += 2)
      x = at::relu(at::conv2d(x, p[next], p[next + 1], 2, 1));
  else
    for (x = x.flatten(1); next < 2; next += 2)
      x = at::relu(at::linear(x, p[next], p[next + 1]));
  const auto e = at::linear(x.flatten(1), p[next], p[next + 1]);
  return e / e.norm(2, {1}, true).clamp_min(1e-12);
}

at::Tensor image_encoder::logits(const at::Tensor& flat, const at::Tensor& embeddings) const {
  const auto p = list_.parts(flat);
  return at::linear(embeddings * logits_scale, p[head_], p[head_ + 1]);
}

// -- components -------------------------------------------------------------------------------------------------------

image_components::image_components(const tensor_map& from)
    : basis(from.at("basis")), center(from.at("centre")), spread(from.at("spread")), scale(from.at("scale")),
      shift(from.at("shift")) {}

at::Tensor image_components::latents(const at::Tensor& pixels) const {
  return at::mm(pixels.flatten(1) - center, basis.t()) / spread;
}

at::Tensor image_components::pixels(const at::Tensor& latents) const {
  return (stacked_product(latents * spread, basis.t().unsqueeze(0)) + center).clamp(0.0, 1.0);
}

at::Tensor image_components::normalized(const at::Tensor& bytes) const {
  return bytes.to(at::kFloat) * scale.view({1, -1, 1, 1}) + shift.view({1, -1, 1, 1});
}

// -- denoiser ---------------------------------------------------------------------------------------------------------

latent_denoiser::latent_denoiser(const latent_shape& shape) : shape_(shape) {
  const auto units = shape.units;
  time_ = list_.add_layer({units, time_numbers});
  list_.add_layer({units, units});
  condition_ = list_.add_layer({units, shape.embedding});
  list_.add_layer({units, units});
  none_ = list_.add({units}, 1.0 / std::sqrt(static_cast<double>(units)));
  in_ = list_.add_layer({units, shape.latent()});
  blocks_ = list_.add_layer({2 * units, units}); // layer for scales and shifts
  for (std::int64_t block = 0; block < shape.blocks; ++block) {
    if (block > 0)
      list_.add_layer({2 * units, units});
    list_.add_layer({units, units});
    list_.add_layer({units, units}, /*zeros=*/true);
  }
  out_ = list_.add_layer({shape.latent(), units}, /*zeros=*/true);
}

at::Tensor latent_denoiser::plain(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
  return at::linear(x, w, b);
}

at::Tensor latent_denoiser::stacked(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
  return stacked_product(x, w.unsqueeze(0)) + b;
}

/// Scales unit-length embeddings so that their entries have the size of standard normal numbers.
at::Tensor latent_denoiser::condition(const at::Tensor& flat, const at::Tensor& embeddings, product by) const {
  const auto p = list_.parts(flat);
  const auto scaled = embeddings * std::sqrt(static_cast<double>(shape_.embedding));
  const auto hidden = by_element(by(scaled, p[condition_], p[condition_ + 1]), silu);
  return by(hidden, p[condition_ + 2], p[condition_ + 3]);
}

at::Tensor latent_denoiser::no_condition(const at::Tensor& flat) const { return list_.parts(flat)[none_]; }

/// Encodes times as sines and cosines at 32 frequencies (Vaswani et al. 2017), which pass two linear layers.
at::Tensor latent_denoiser::time(const at::Tensor& flat, const std::vector<std::int64_t>& times) const {
  const auto p = list_.parts(flat);
  constexpr auto half = time_numbers / 2;
  auto waves = at::empty({std::ssize(times), time_numbers}, at::kFloat);
  auto* value = waves.mutable_data_ptr<float>();
  for (const auto at : times)
    for (std::int64_t i = 0; i < time_numbers; ++i) {
      const double frequency = std::exp(-std::log(1e4) * static_cast<double>(i % half) / static_cast<double>(half));
      const double angle = static_cast<double>(at) * frequency;
      *value++ = static_cast<float>(i < half ? std::sin(angle) : std::cos(angle));
    }
  const auto hidden = at::silu(at::linear(waves.to(flat.device()), p[time_], p[time_ + 1]));
  return at::linear(hidden, p[time_ + 2], p[time_ + 3]);
}

at::Tensor latent_denoiser::velocities(const at::Tensor& flat, const at::Tensor& x, const at::Tensor& condition_rows,
                                       product by) const {
  const auto p = list_.parts(flat);
  const auto tone = by_element(condition_rows, silu);
  auto h = by(x, p[in_], p[in_ + 1]);
  for (std::int64_t block = 0; block < shape_.blocks; ++block) {
    const auto at_block = blocks_ + static_cast<std::size_t>(6 * block);
    const auto film = by(tone, p[at_block], p[at_block + 1]).split(shape_.units, 2);
    auto inner = at::layer_norm(h, {shape_.units});
    inner = inner * (film[0] + 1.0) + film[1];
    inner = by_element(by(inner, p[at_block + 2], p[at_block + 3]), silu);
    h = h + by(inner, p[at_block + 4], p[at_block + 5]);
  }
  return by(by_element(h, silu), p[out_], p[out_ + 1]);
}

} // namespace mneme
