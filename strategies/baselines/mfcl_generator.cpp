#include "strategies/baselines/mfcl_generator.hpp"
#include "runtime/method/gradients.hpp"
#include "runtime/models/image_layers.hpp"
#include "strategies/shared/image_generator.hpp"
#include <ATen/ATen.h>
#include <cmath>
#include <fmt/format.h>
namespace mneme {
namespace {

constexpr const char* last_normalization = "bn_image";
constexpr double wide_epsilon = 0.8; // the official code passes 0.8 as epsilon; it was meant as momentum

/// Reshapes features, channels last, to images [B, C, H, W].
at::Tensor as_images(const at::Tensor& features, const mfcl_settings& settings) {
  const auto [channels, height, width] = settings.shape;
  return features.unflatten(2, {height, width, channels}).permute({0, 1, 4, 2, 3})[0];
}

at::Tensor as_inputs(const at::Tensor& codes) { return codes.unflatten(1, {1, 1, -1}).unsqueeze(0); }

/// Offset of the first running statistic. Running statistics follow all parameters.
std::int64_t first_buffer(const model& generator) {
  for (const auto& entry : generator.layout())
    if (entry.buffer)
      return entry.offset;
  return generator.size();
}

/// Gradients [1, G], with zeros for buffers and for the last normalization.
at::Tensor trained_part(const at::Tensor& gradient, const model& generator) {
  auto part = gradient.clone();
  for (const auto& entry : generator.layout())
    if (entry.buffer || entry.name.starts_with(last_normalization))
      part.narrow(1, entry.offset, entry.size).zero_();
  return part;
}

} // namespace

// -- the generator ----------------------------------------------------------------------------------------------------

model_ref mfcl_generator(const mfcl_settings& settings) {
  const auto [channels, height, width] = settings.shape;
  const auto stages = settings.upsamplings, wide = 2 * settings.filters;
  network_builder net(
      fmt::format("mfcl generator {}-{}-{} {}x{}x{}", settings.code, settings.filters, stages, channels, height, width),
      std::array<std::int64_t, 3>{1, 1, settings.code});
  if (height % (1 << stages) != 0 || width % (1 << stages) != 0) {
    net.add_linear("fc1", 2 * wide, activation::relu);
    net.add_linear("fc2", channels * height * width, activation::tanh);
    add_images(net, channels, height, width);
    net.add_normalization(last_normalization, 0, activation::none);
    net.end_headless();
    return net.build();
  }
  net.add_linear("fc1", wide * (height >> stages) * (width >> stages), activation::none);
  add_images(net, wide, height >> stages, width >> stages);
  net.add_normalization("bn0", 0, activation::none);
  constexpr double slope = 0.2;
  for (std::int64_t i = 1; i <= stages; ++i) {
    add_upsampling(net, height >> (stages - i), width >> (stages - i), upsampling::nearest);
    add_convolution(net, fmt::format("conv{}", i), {.filters = i < stages ? wide : settings.filters, .padding = 1});
    net.add_normalization(fmt::format("bn{}", i), 0, activation::none, {.epsilon = wide_epsilon});
    net.add_activation(activation::leaky, slope);
  }
  add_convolution(net, "conv_image", {.filters = channels, .padding = 1, .after = activation::tanh});
  net.add_normalization(last_normalization, 0, activation::none);
  net.end_headless();
  return net.build();
}

std::int64_t trained_parameter_count(const model& generator) {
  std::int64_t count = 0;
  for (const auto& entry : generator.layout())
    count += entry.buffer || entry.name.starts_with(last_normalization) ? 0 : entry.size;
  return count;
}

at::Tensor mfcl_images(const model& generator, const mfcl_settings& settings, const at::Tensor& weights,
                       const at::Tensor& codes) {
  return as_images(generator.differentiable(weights.unsqueeze(0), as_inputs(codes), {}, {}).features, settings);
}

// -- loss of the generator --------------------------------------------------------------------------------------------

/// The 5 x 5 kernel is the product of two 1-d kernels.
at::Tensor smoothed(const at::Tensor& images) {
  constexpr std::int64_t reach = 2;
  if (images.size(2) <= reach || images.size(3) <= reach)
    return images;
  std::array<double, 2 * reach + 1> weights{};
  double sum = 0.0;
  for (std::int64_t i = -reach; i <= reach; ++i)
    sum += weights[static_cast<std::size_t>(i + reach)] = std::exp(-static_cast<double>(i * i) / 4.0);
  const auto along = [&](const at::Tensor& padded, std::int64_t axis) {
    at::Tensor mixed;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const auto moved = padded.narrow(axis, static_cast<std::int64_t>(i), padded.size(axis) - 2 * reach);
      const auto part = moved * (weights[i] / sum);
      mixed = mixed.defined() ? mixed + part : part;
    }
    return mixed;
  };
  return along(along(at::reflection_pad2d(images, {reach, reach, reach, reach}), 2), 3);
}

at::Tensor statistics_divergence(const std::vector<batch_statistics>& layers, const at::TensorOptions& like) {
  constexpr double floor = 1e-8;
  auto sum = at::zeros({}, like);
  for (const auto& layer : layers) {
    const auto variance = layer.variance[0] + floor, running = layer.running_variance[0] + floor;
    const auto away = (running + (layer.running_mean[0] - layer.mean[0]).square()) / variance;
    sum = sum + ((variance / running).log() * 0.5).mean() - (1.0 - away).mean() * 0.5;
  }
  return layers.empty() ? sum : sum / static_cast<double>(layers.size());
}

at::Tensor entropy_deficit(const at::Tensor& logits) {
  const auto classes = logits.size(1);
  if (classes < 2)
    return at::zeros({}, logits.options());
  constexpr double least = 1e-30; // lower bound, so that 0 log 0 = 0
  const auto p = at::softmax(logits, 1).mean(0);
  return (p * p.clamp_min(least).log()).sum() / std::log(static_cast<double>(classes)) + 1.0;
}

at::Tensor mfcl_generator_state::whole(const model& generator_net) const {
  const auto learned = first_buffer(generator_net);
  return at::cat(
      {generator.weights()[0].narrow(0, 0, learned), running[0].narrow(0, learned, generator_net.size() - learned)});
}

mfcl_losses mfcl_step(const model& net, const model& generator, const mfcl_settings& settings,
                      const at::Tensor& teacher, const at::Tensor& codes, mfcl_generator_state& now) {
  const training_mode training;
  const auto g = leaf_of(now.generator.weights());
  const auto generated = generator.differentiable(g, as_inputs(codes), {}, {.training = &training, .statistics = true});
  const auto images = as_images(generated.features, settings);
  const auto answered = net.differentiable(teacher.unsqueeze(0), images.unsqueeze(0).contiguous(),
                                           {0, settings.seen_classes}, {.statistics = true});
  const auto logits = answered.logits[0]; // [B, opened]
  const auto taken_for = logits.argmax(1).unsqueeze(1);
  const auto labels = -at::log_softmax(logits / settings.temperature, 1).gather(1, taken_for).mean() * settings.labels;
  const auto information = entropy_deficit(logits) * settings.information;
  const auto statistics = statistics_divergence(answered.statistics, images.options()) * settings.statistics;
  const auto smoothness = (images - smoothed(images)).square().mean() * settings.smoothness;
  const auto total = labels + information + statistics + smoothness;
  const auto slope = gradients_of(total, {g}).front();
  now.generator.step(trained_part(slope, generator), {.rate = settings.rate});
  now.running = with_updated_running_stats(now.running, generated.statistics).detach();
  const auto value = [](const at::Tensor& loss) { return loss.detach().item<double>(); };
  return {value(total), value(labels), value(information), value(statistics), value(smoothness)};
}

// -- programs ---------------------------------------------------------------------------------------------------------

namespace {

std::string constants_of(const mfcl_settings& settings) {
  return fmt::format("{} {} {} {} {} {} {} {} {}", settings.seen_classes, settings.steps, settings.batch, settings.rate,
                     settings.labels, settings.information, settings.statistics, settings.smoothness,
                     settings.temperature);
}

rng_key numbered(const program_call& call, std::int64_t number) {
  auto key = call.stream;
  key.index = static_cast<std::uint64_t>(number);
  return key;
}

class mfcl_training_program final : public looped_program {
public:
  mfcl_training_program(model_ref net, const mfcl_settings& settings)
      : net_(std::move(net)), settings_(settings), generator_(mfcl_generator(settings)) {}
  [[nodiscard]] std::string name() const override { return "generator"; }
  [[nodiscard]] std::string identity() const override {
    return fmt::format("{}, {}, {}", net_->identity(), generator_->identity(), constants_of(settings_));
  }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job&) const override {
    return {{.name = "generator", .shape = {generator_->size()}},
            {.name = "objective", .shape = {}, .type = at::kDouble}};
  }

protected:
  [[nodiscard]] slice_result run_call(const program_call& call) const override {
    constexpr std::int64_t steps_of_slice = 5;
    mfcl_generator_state now;
    if (call.slice == 0) {
      now = {adam(call.in.at("generator").unsqueeze(0)), call.in.at("generator").unsqueeze(0)};
    } else {
      now = {adam::loaded("learnt", std::span(&call, 1)), call.state.at("running").unsqueeze(0)};
    }
    const auto first = call.slice * steps_of_slice, end_step = std::min(first + steps_of_slice, settings_.steps);
    double objective = 0.0;
    for (auto step = first; step < end_step; ++step) {
      const auto codes = draw_normal({settings_.batch, settings_.code}, numbered(call, step)).to(call.device());
      objective = mfcl_step(*net_, *generator_, settings_, call.in.at(flat_weights), codes, now).total;
    }
    if (end_step == settings_.steps)
      return {.tensors = {{"generator", now.whole(*generator_)}, {"objective", at::full({}, objective, at::kDouble)}}};
    slice_result paused{.finished = false,
                        .progress = static_cast<double>(end_step) / static_cast<double>(settings_.steps)};
    paused.tensors["running"] = now.running[0];
    now.generator.save("learnt", 0, paused.tensors);
    return paused;
  }

private:
  model_ref net_;
  mfcl_settings settings_;
  model_ref generator_;
};

class mfcl_drawing_program final : public looped_program {
public:
  mfcl_drawing_program(const mfcl_settings& settings, std::int64_t count, std::int64_t batch)
      : settings_(settings), count_(count), batch_(batch), generator_(mfcl_generator(settings)) {}
  [[nodiscard]] std::string name() const override { return "replay"; }
  [[nodiscard]] std::string identity() const override {
    return fmt::format("{}, {} {}", generator_->identity(), count_, batch_);
  }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job&) const override {
    const auto [channels, height, width] = settings_.shape;
    return {{.name = "images", .shape = {count_, channels, height, width}}};
  }

protected:
  [[nodiscard]] slice_result run_call(const program_call& call) const override {
    constexpr std::int64_t batches_of_slice = 16;
    std::vector<at::Tensor> parts;
    if (call.slice > 0)
      parts.push_back(call.state.at("images"));
    const auto rows_of_slice = batches_of_slice * batch_;
    const auto end_step = std::min((call.slice + 1) * rows_of_slice, count_);
    for (auto row = call.slice * rows_of_slice; row < end_step; row += batch_) {
      const auto codes = draw_normal({std::min(batch_, end_step - row), settings_.code}, numbered(call, row / batch_));
      parts.push_back(mfcl_images(*generator_, settings_, call.in.at("generator"), codes.to(call.device())));
    }
    return {.tensors = {{"images", at::cat(parts)}},
            .finished = end_step == count_,
            .progress = static_cast<double>(end_step) / static_cast<double>(count_)};
  }

private:
  mfcl_settings settings_;
  std::int64_t count_, batch_;
  model_ref generator_;
};

} // namespace

program_ref mfcl_training(model_ref net, const mfcl_settings& settings) {
  return std::make_shared<mfcl_training_program>(std::move(net), settings);
}

program_ref mfcl_drawing(const mfcl_settings& settings, std::int64_t count, std::int64_t batch) {
  return std::make_shared<mfcl_drawing_program>(settings, count, batch);
}

} // namespace mneme
