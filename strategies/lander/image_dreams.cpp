#include "strategies/lander/image_dreams.hpp"
#include "runtime/method/gradients.hpp"
#include "runtime/models/function.hpp"
#include "runtime/models/network.hpp"
#include "strategies/shared/adam.hpp"
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
namespace mneme {

model_ref image_generator(std::array<std::int64_t, 3> shape, std::int64_t inputs, std::int64_t filters) {
  const auto [channels, height, width] = shape;
  auto net =
      std::make_shared<network>(fmt::format("image generator {}-{} {}x{}x{}", inputs, filters, channels, height, width),
                                std::array<std::int64_t, 3>{1, 1, inputs});
  if (height % 4 != 0 || width % 4 != 0) {
    net->add_linear("fc1", 4 * filters, activation::relu);
    net->add_linear("fc2", channels * height * width, activation::sigmoid);
    net->end_headless();
    return net;
  }
  constexpr double slope = 0.2;
  net->add_linear("fc1", 2 * filters * (height / 4) * (width / 4), activation::none);
  net->add_images(2 * filters, height / 4, width / 4);
  net->add_normalisation("bn1", 0, activation::none);
  net->add_upsampling(height / 2, width / 2, upsampling::nearest);
  net->add_convolution("conv1", {.filters = 2 * filters, .padding = 1, .bias = false});
  net->add_normalisation("bn2", 0, activation::none);
  net->add_activation(activation::leaky, slope);
  net->add_upsampling(height, width, upsampling::nearest);
  net->add_convolution("conv2", {.filters = filters, .padding = 1, .bias = false});
  net->add_normalisation("bn3", 0, activation::none);
  net->add_activation(activation::leaky, slope);
  net->add_convolution("conv3", {.filters = channels, .padding = 1, .after = activation::sigmoid});
  net->end_headless();
  return net;
}

at::Tensor pictures_of(const at::Tensor& features, const std::array<std::int64_t, 3>& shape) {
  const auto [channels, height, width] = shape;
  if (height % 4 != 0 || width % 4 != 0) // linear layers count channel by channel
    return features.unflatten(2, {channels, height, width});
  return features.unflatten(2, {height, width, channels}).permute({0, 1, 4, 2, 3});
}

dream_loss loss_of_dreams(const model& net, const dream_settings& with, const at::Tensor& teacher,
                          const at::Tensor& student, const at::Tensor& shown, const at::Tensor& labels,
                          const at::Tensor& anchors, const at::Tensor& past) {
  const class_range outputs{0, with.classes + with.embedding};
  const auto inputs = shown.unsqueeze(0).contiguous(); // [1, B, ...]
  const auto answered = net.differentiable(teacher.unsqueeze(0), inputs, outputs, {.statistics = true});
  const auto logits = answered.logits[0].narrow(1, 0, with.opened), log_p = at::log_softmax(logits, 1); // [B, c]
  dream_loss loss;
  loss.labels = -log_p.gather(1, labels.unsqueeze(1)).mean();

  // |running - (0.1 now + 0.9 before)| of every layer, means and variances (Yin et al. 2020, eq. 4, without squares).
  constexpr double kept = 0.9;
  std::vector<at::Tensor> now;
  loss.statistics = at::zeros({}, shown.options());
  std::int64_t at = 0;
  const auto match = [&](const at::Tensor& running, const at::Tensor& value) {
    const auto before = past.defined() ? past.narrow(0, at, value.numel()) : value.detach();
    loss.statistics = loss.statistics + (running - (value * (1.0 - kept) + before * kept)).norm();
    now.push_back(before * kept + value.detach() * (1.0 - kept));
    at += value.numel();
  };
  for (const auto& layer : answered.statistics) {
    match(layer.running_mean[0], layer.mean[0]);
    match(layer.running_variance[0], layer.variance[0]);
  }
  loss.seen_statistics = now.empty() ? at::zeros({0}, shown.options()) : at::cat(now);

  loss.bound = loss.adversary = at::zeros({}, shown.options());
  if (with.embedding > 0) {
    const auto mapped = answered.logits[0].narrow(1, with.classes, with.embedding);
    loss.bound = at::relu((mapped - anchors.index_select(0, labels)).square().mean(1) - with.radius).mean();
  }
  if (student.defined()) { // where both agree, they are to disagree
    const auto other = net.differentiable(student.unsqueeze(0), inputs, {0, with.opened}, {}).logits[0];
    const auto agree = (other.argmax(1) == logits.argmax(1)).to(at::kFloat);
    const auto divergence = (log_p.exp() * (log_p - at::log_softmax(other, 1))).sum(1);
    loss.adversary = -(divergence * agree).mean();
  }
  loss.total = loss.statistics * with.statistics + loss.labels * with.labels + loss.adversary * with.adversary +
               loss.bound * with.bound;
  return loss;
}

namespace {

enum class dream_draw : std::uint64_t { noise, student };

class dreams final : public looped_program {
public:
  dreams(model_ref net, const dream_settings& with)
      : net_(std::move(net)), with_(with), generator_(image_generator(with.shape, with.noise, with.filters)) {}

  [[nodiscard]] std::string name() const override { return "dreams"; }
  [[nodiscard]] std::string identity() const override {
    return fmt::format("{}, {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} [{}] [{}]", net_->identity(),
                       generator_->identity(), with_.classes, with_.opened, with_.embedding, with_.noise, with_.rounds,
                       with_.warm_up, with_.steps, with_.batch, with_.student_steps, with_.rate, with_.input_rate,
                       with_.student_rate, with_.statistics, with_.labels, with_.adversary, with_.bound, with_.radius,
                       with_.student_temperature, fmt::join(with_.scale, " "), fmt::join(with_.shift, " "));
  }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job&) const override {
    const auto [channels, height, width] = with_.shape;
    return {{.name = "images", .shape = {with_.images(), channels, height, width}, .type = at::kByte},
            {.name = "labels", .shape = {with_.images()}, .type = at::kLong},
            {.name = "objective", .shape = {with_.rounds}, .type = at::kDouble},
            {.name = "statistics", .shape = {with_.rounds}, .type = at::kDouble}};
  }

protected:
  [[nodiscard]] program_step run_call(const program_call& call) const override;

private:
  /// What goes from round to round.
  struct dreamer {
    at::Tensor generator{}, student{};    // [G], [P]
    at::Tensor mean{}, deviation{};       // [channels] of what the nets are shown
    at::Tensor past{};                    // [S] or undefined
    at::Tensor images{}, labels{};        // the pool so far, or undefined
    at::Tensor objective{}, statistics{}; // [rounds]
  };
  [[nodiscard]] dreamer begun(const program_call& call) const;
  [[nodiscard]] dreamer gone_on(const program_call& call) const;
  void dream(const program_call& call, dreamer& now) const;
  void teach(const program_call& call, dreamer& now) const;
  [[nodiscard]] rng_key key_of(const program_call& call, dream_draw kind) const {
    auto key = call.stream;
    key.index = static_cast<std::uint64_t>(call.slice) << 8U | static_cast<std::uint64_t>(kind);
    return key;
  }
  [[nodiscard]] at::Tensor noisy(const program_call& call, const at::Tensor& labels) const;
  [[nodiscard]] at::Tensor by_channel(const at::Tensor& values) const { return values.view({-1, 1, 1}); }

  model_ref net_;
  dream_settings with_;
  model_ref generator_;
};

/// Standard normal numbers.
at::Tensor drawn_normal(at::IntArrayRef sizes, const rng_key& key) {
  auto values = at::empty(sizes, at::kFloat);
  rng_stream draw(key);
  for (std::int64_t i = 0; i < values.numel(); ++i)
    values.mutable_data_ptr<float>()[i] = static_cast<float>(draw.normal());
  return values;
}

dreams::dreamer dreams::begun(const program_call& call) const {
  const auto options = at::TensorOptions(at::kFloat).device(call.device());
  dreamer now;
  now.generator = initial_weights(*generator_, call.stream.seed).to(call.device());
  now.student = call.in.at("student");
  std::vector<float> mean, deviation; // v / 255 -> (v / 255 - mean) / deviation
  for (std::size_t c = 0; c < with_.scale.size(); ++c) {
    deviation.push_back(1.0F / (255.0F * with_.scale[c]));
    mean.push_back(-with_.shift[c] * deviation.back());
  }
  now.mean = at::tensor(mean, at::kFloat).to(options.device());
  now.deviation = at::tensor(deviation, at::kFloat).to(options.device());
  now.objective = at::zeros({with_.rounds}, at::kDouble);
  now.statistics = at::zeros({with_.rounds}, at::kDouble);
  return now;
}

dreams::dreamer dreams::gone_on(const program_call& call) const {
  const auto saved = [&](const char* name) {
    const auto* const value = call.state.find(name);
    return value ? value->clone() : at::Tensor{};
  };
  return {.generator = saved("generator"),
          .student = saved("student"),
          .mean = saved("mean"),
          .deviation = saved("deviation"),
          .past = saved("past"),
          .images = saved("images"),
          .labels = saved("labels"),
          .objective = saved("objective"),
          .statistics = saved("statistics_of_rounds")};
}

/// Embeddings of labels, normalised over the batch, through linear layers that are drawn anew in each round, one for
/// each run through the classes: they are the noise, [B, noise].
at::Tensor dreams::noisy(const program_call& call, const at::Tensor& labels) const {
  const auto& anchors = call.in.at("anchors");
  const auto embedded = anchors.index_select(0, labels); // [B, E]
  const auto [variance, mean] = at::var_mean(embedded, at::OptionalIntArrayRef({0}), 0, true);
  const auto level = (embedded - mean) / (variance + 1e-5).sqrt();
  const auto chunks = (with_.batch + with_.opened - 1) / with_.opened;
  const auto layers = drawn_normal({chunks, with_.noise, anchors.size(1)}, key_of(call, dream_draw::noise));
  std::vector<at::Tensor> chunks_of_noise;
  for (std::int64_t i = 0; i < chunks; ++i) {
    const auto first = i * with_.opened, count = std::min(with_.opened, with_.batch - first);
    chunks_of_noise.push_back(at::mm(level.narrow(0, first, count), layers[i].to(call.device()).t()));
  }
  return at::cat(chunks_of_noise);
}

/// A round of the generator's training; its best batch joins the pool.
void dreams::dream(const program_call& call, dreamer& now) const {
  const auto labels = (at::arange(with_.batch, at::kLong) % with_.opened).to(call.device());
  const auto codes = noisy(call, labels).unflatten(1, {1, 1, -1}).unsqueeze(0); // [1, B, 1, 1, noise]
  adam generator(now.generator), mean(now.mean), deviation(now.deviation);
  const training_mode training;
  const bool adverse = call.slice >= with_.warm_up;
  at::Tensor best;
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t step = 0; step < with_.steps; ++step) {
    const auto g = leaf_of(generator.weights()), m = leaf_of(mean.weights()), d = leaf_of(deviation.weights());
    const auto generated = generator_->differentiable(g.unsqueeze(0), codes, {}, {.training = &training});
    const auto pixels = pictures_of(generated.features, with_.shape)[0]; // [B, C, H, W] in [0, 1]
    const auto shown = (pixels - by_channel(m)) / by_channel(d);
    const auto loss = loss_of_dreams(*net_, with_, call.in.at(flat_weights), adverse ? now.student : at::Tensor{},
                                     shown, labels, call.in.at("anchors"), now.past);
    const auto slopes = gradients_of(loss.total, {g, m, d});
    if (const auto total = loss.total.detach().item<double>(); total < least) {
      least = total;
      best = pixels.detach();
      now.statistics[call.slice].fill_(loss.statistics.detach().item<double>());
    }
    now.past = loss.seen_statistics.detach();
    generator.step(slopes[0], {.rate = with_.rate, .beta1 = 0.5});
    mean.step(slopes[1], {.rate = with_.input_rate, .beta1 = 0.5});
    deviation.step(slopes[2], {.rate = with_.input_rate, .beta1 = 0.5});
  }
  now.generator = generator.weights();
  now.mean = mean.weights();
  now.deviation = deviation.weights();
  now.objective[call.slice].fill_(least);
  if (!best.defined())
    throw std::runtime_error("no step of the generator had a finite loss");
  if (call.slice + 1 < with_.warm_up)
    return;
  const auto bytes = (best * 255.0).round().to(at::kByte);
  now.images = now.images.defined() ? at::cat({now.images, bytes}) : bytes;
  now.labels = now.labels.defined() ? at::cat({now.labels, labels}) : labels;
}

/// Steps of the student on the pool: T^2 KL(teacher || student) at T, and the mapped features.
void dreams::teach(const program_call& call, dreamer& now) const {
  const class_range outputs{0, with_.classes + with_.embedding};
  const auto scale = at::tensor(with_.scale, at::kFloat).to(call.device());
  const auto shift = at::tensor(with_.shift, at::kFloat).to(call.device());
  const training_mode training;
  rng_stream draw(key_of(call, dream_draw::student));
  const double T = with_.student_temperature;
  for (std::int64_t step = 0; step < with_.student_steps; ++step) {
    std::vector<std::int64_t> places;
    for (std::int64_t i = 0; i < std::min(with_.batch, now.images.size(0)); ++i)
      places.push_back(static_cast<std::int64_t>(draw.below(static_cast<std::uint64_t>(now.images.size(0)))));
    const auto rows = now.images.index_select(0, at::tensor(places, at::kLong).to(call.device())).to(at::kFloat);
    const auto inputs = (rows * by_channel(scale) + by_channel(shift)).unsqueeze(0);
    const auto taught = net_->differentiable(call.in.at(flat_weights).unsqueeze(0), inputs, outputs, {}).logits[0];
    const auto s = leaf_of(now.student);
    const function_mode learning{.training = &training, .statistics = true};
    const auto answered = net_->differentiable(s.unsqueeze(0), inputs, outputs, learning);
    const auto log_s = at::log_softmax(answered.logits[0].narrow(1, 0, with_.opened) / T, 1);
    const auto log_t = at::log_softmax(taught.narrow(1, 0, with_.opened) / T, 1).detach();
    auto loss = (log_t.exp() * (log_t - log_s)).sum(1).mean() * (T * T);
    if (with_.embedding > 0)
      loss = loss + (answered.logits[0] - taught.detach())
                            .narrow(1, with_.classes, with_.embedding)
                            .square()
                            .mean() *
                        with_.bound;
    const auto slope = gradients_of(loss, {s}).front();
    const auto moved = now.student - slope * with_.student_rate;
    now.student = with_moved_statistics(moved.unsqueeze(0), answered.statistics)[0].detach();
  }
}

program_step dreams::run_call(const program_call& call) const {
  auto now = call.slice == 0 ? begun(call) : gone_on(call);
  dream(call, now);
  if (now.images.defined() && call.slice + 1 < with_.rounds)
    teach(call, now);
  if (call.slice + 1 == with_.rounds)
    return {.tensors = {{"images", now.images},
                        {"labels", now.labels},
                        {"objective", now.objective},
                        {"statistics", now.statistics}}};
  program_step step{.finished = false,
                    .progress = static_cast<double>(call.slice + 1) / static_cast<double>(with_.rounds)};
  step.tensors = {{"generator", now.generator}, {"student", now.student},     {"mean", now.mean},
                  {"deviation", now.deviation}, {"objective", now.objective}, {"statistics_of_rounds", now.statistics}};
  if (now.past.numel() > 0)
    step.tensors["past"] = now.past;
  if (now.images.defined()) {
    step.tensors["images"] = now.images;
    step.tensors["labels"] = now.labels;
  }
  return step;
}

} // namespace

program_ref dream_program(model_ref net, const dream_settings& with) {
  return std::make_shared<dreams>(std::move(net), with);
}

} // namespace mneme
